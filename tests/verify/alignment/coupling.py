"""The definition of an alignment, run: the first run with given draws, then the second with the shifted ones.

It knows nothing of the search: it follows the tree with numbers, as an interpreter does, and does what the proof says.
"""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpaudit.verify.language import expression
from dpaudit.verify.language.nodes import (
    All,
    Answer,
    Arithmetical,
    Assign,
    Branch,
    Compared,
    Draw,
    Emit,
    Emitted,
    Index,
    Length,
    Number,
    Program,
    ProgramParameter,
    Stop,
    Symbol,
    Variable,
)
from dpaudit.verify.language.nodes import Any as SomeOf
from dpaudit.verify.proof import Alignment, Proof

OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv}
OPERATIONS["%"] = operator.mod
ORDERS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass
class Turn:
    """One path that was taken: its name, the variables at its start, its draws with their scales."""

    name: str
    index: int
    start: dict[str, Any]
    draws: list[tuple[str, Fraction, Fraction]] = field(default_factory=list)


class Run:
    """One run; `draw(place of the turn, name of the draw, law, scale)` gives the draws."""

    def __init__(self, program: Program, answers: list[Fraction], parameters: dict[str, Fraction], draw: Any) -> None:
        self.program, self.answers, self.parameters, self.draw = program, answers, parameters, draw
        self.known: dict[str, Any] = {}
        self.outputs: list[Any] = []
        self.turns: list[Turn] = []
        self.index = 0
        self._block("before", program.before)
        for self.index in range(len(answers) if program.loop is not None else 0):
            if self._block("loop", program.loop or ()):
                break
        self._block("after", program.after)
        self.result = tuple(
            tuple(self.outputs) if isinstance(part, Emitted) else self.value(part) for part in program.result
        )

    def _block(self, part: str, block: Any) -> bool:
        self.turns.append(Turn("", self.index, dict(self.known)))
        decisions: list[str] = []
        stopped = self._followed(block, decisions)
        self.turns[-1].name = f"{part}:{''.join(decisions)}"
        return stopped

    def _followed(self, block: Any, decisions: list[str]) -> bool:
        for statement in block:
            match statement:
                case Assign(target, value, _):
                    self.known[target] = self.value(value)
                case Draw(target, law, scale, _):
                    size = self.value(scale)
                    self.known[target] = self.draw(len(self.turns) - 1, target, law, size)
                    self.turns[-1].draws.append((target, self.known[target], size))
                case Emit(value, key, _):
                    self.outputs.append((None if key is None else self.value(key), self.value(value)))
                case Branch(condition, then, otherwise, _):
                    truth = self.value(condition)
                    decisions.append("T" if truth else "F")
                    if self._followed(then if truth else otherwise, decisions):
                        return True
                case Stop():
                    return True
        return False

    def value(self, part: Any) -> Any:
        match part:
            case Number(value):
                return value
            case Symbol(name):
                return name
            case ProgramParameter(name):
                return self.parameters[name]
            case Variable(name):
                return self.known[name]
            case Answer():
                return self.answers[self.index]
            case Index():
                return Fraction(self.index)
            case Length():
                return Fraction(len(self.answers))
            case Arithmetical(operation, left, right):
                return OPERATIONS[operation](self.value(left), self.value(right))
            case Compared(order, left, right):
                return ORDERS[order](self.value(left), self.value(right))
            case All(parts):
                return all(self.value(each) for each in parts)
            case SomeOf(parts):
                return any(self.value(each) for each in parts)
        return not self.value(part.part)


def moved(adjacency: str, count: int, rng: random.Random) -> list[Fraction]:
    """How far each answer moves; often as far as it may."""
    low, high = {"up": (0, 4), "down": (-4, 0)}.get(adjacency, (-4, 4))
    found = [Fraction(rng.choice((low, high, rng.randint(low, high))), 4) for _ in range(count)]
    if adjacency == "one-differs":
        chosen = rng.randrange(count)
        return [move if place == chosen else Fraction(0) for place, move in enumerate(found)]
    return found


def chosen_alignment(proof: Proof, run: Run) -> tuple[Alignment, Any]:
    """The alignment and the case that the proof has for a run."""
    counts: dict[str, int] = {}
    for turn in run.turns:
        if turn.name.startswith("loop:"):
            counts[turn.name] = counts.get(turn.name, 0) + 1
    for case in proof.cases:
        if case.counts is None or {name: times for name, times in case.counts.items() if times} == counts:
            return proof.alignments[case.alignment], case
    raise AssertionError(f"no case for {counts}")


def coupled_cost(
    proof: Proof, program: Program, parameters: dict[str, Fraction], count: int, rng: random.Random
) -> tuple[Fraction, Fraction]:
    """The cost of a random run of the first dataset and what the proof allows; fails where the outputs differ."""
    answers = [Fraction(rng.randint(-8, 8), 4) for _ in range(count)]
    moves = moved(proof.adjacency, count, rng)
    others = [answer + move for answer, move in zip(answers, moves, strict=True)]

    def noise(turn: int, name: str, law: str, scale: Fraction) -> Fraction:
        size = Fraction(rng.randint(0, 12 * rng.choice((1, 1, 1, 8))), 4)
        return size if law == "exponential" or rng.random() < 0.5 else -size

    first = Run(program, answers, parameters, noise)
    alignment, case = chosen_alignment(proof, first)
    shifts = {(shift.path, shift.draw): shift for shift in alignment.shifts}
    spent = Fraction(0)

    def again(turn: int, name: str, law: str, scale: Fraction) -> Fraction:
        nonlocal spent
        before = first.turns[turn]
        value = next(value for known, value, _ in before.draws if known == name)
        path = before.name
        if proof.shape == "winner":
            path = "winner" if first.result[0] == before.index and path.startswith("loop:") else ""
        shift = shifts.get((path, name))
        if shift is None:
            return value
        here = second_runs[-1].turns[turn].start
        amount = shift.constant + shift.answer * (moves[before.index] if count else 0)
        amount += sum(
            (factor * (here[variable] - before.start[variable]) for variable, factor in shift.differences.items()),
            Fraction(0),
        )
        assert law != "exponential" or amount >= 0
        spent += abs(amount) / scale
        return value + amount

    second_runs: list[Run] = []

    class Second(Run):
        def __init__(self) -> None:
            second_runs.append(self)
            super().__init__(program, others, parameters, again)

    second = Second()
    assert second.result == first.result, (answers, others, first.result, second.result)
    values = {**parameters, **proof.fixed}
    allowed = Run(program, answers, values, noise).value(expression(case.cost, program))
    assert allowed <= Run(program, answers, values, noise).value(expression(proof.cost, program))
    return spent, allowed
