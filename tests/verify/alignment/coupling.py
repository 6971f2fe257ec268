"""The definition of an alignment, run: the first run with given draws, then the second with the shifted ones.

It knows nothing of the search: it follows the tree with numbers, as the interpreter does, and does what the proof says.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpaudit.verify.language import expression, nodes
from dpaudit.verify.proof import Alignment, Case, Proof
from tests.verify.interpreter import State


@dataclass
class Turn:
    """One path that was taken: its name, the variables at its start, its draws with their scales."""

    name: str
    index: int
    start: dict[str, Any]
    draws: dict[str, Fraction] = field(default_factory=dict)


@dataclass
class Run(State):
    """One run; `draw(place of the turn, its path so far, statement, scale)` gives the draws."""

    turns: list[Turn] = field(default_factory=list)

    def part(self, name: nodes.Part, block: nodes.Block) -> bool:
        self.turns.append(Turn("", self.index, dict(self.variables)))
        ends = super().part(name, block)
        self.turns[-1].name = nodes.path_name(name, self.decisions)
        return ends

    def drawn(self, statement: nodes.Draw, size: Any) -> Any:
        value = self.turns[-1].draws[statement.target] = self.draw(self, statement, size)
        return value


def moved(adjacency: str, count: int, rng: random.Random) -> list[Fraction]:
    """How far each answer moves; often as far as it may."""
    low, high = {"up": (0, 4), "down": (-4, 0)}.get(adjacency, (-4, 4))
    found = [Fraction(rng.choice((low, high, rng.randint(low, high))), 4) for _ in range(count)]
    if adjacency == "one-differs":
        chosen = rng.randrange(count)
        return [move if place == chosen else Fraction(0) for place, move in enumerate(found)]
    return found


def chosen_alignment(proof: Proof, run: Run) -> tuple[Alignment, Case]:
    """The alignment and the case that the proof has for a run."""
    counts = Counter(turn.name for turn in run.turns if turn.name.startswith("loop:"))
    for case in proof.cases:
        if case.counts is None or Counter(case.counts) == counts:
            return proof.alignments[case.alignment], case
    raise AssertionError(f"no case for {counts}")


def coupled_cost(
    proof: Proof, program: nodes.Program, parameters: dict[str, Fraction], count: int, rng: random.Random
) -> tuple[Fraction, Fraction]:
    """The cost of a random run of the first dataset and what the proof allows; fails where the outputs differ."""
    answers = [Fraction(rng.randint(-8, 8), 4) for _ in range(count)]
    moves = moved(proof.adjacency, count, rng)
    others = [answer + move for answer, move in zip(answers, moves, strict=True)]

    def noise(run: Run, draw: nodes.Draw, scale: Fraction) -> Fraction:
        size = Fraction(rng.randint(0, 12 * rng.choice((1, 1, 1, 8))), 4)
        return size if draw.law == "exponential" or rng.random() < 0.5 else -size

    first = Run(program, parameters, answers, noise)
    output = first.result()
    alignment, case = chosen_alignment(proof, first)
    shifts = {(shift.path, shift.draw): shift for shift in alignment.shifts}
    spent: list[Fraction] = []

    def again(run: Run, draw: nodes.Draw, scale: Fraction) -> Fraction:
        before, here = first.turns[len(run.turns) - 1], run.turns[-1]
        value, path = before.draws[draw.target], before.name
        if proof.shape == "winner":
            path = "winner" if output[0] == before.index and path.startswith("loop:") else ""
        if (shift := shifts.get((path, draw.target))) is None:
            return value
        amount = shift.constant + shift.answer * (moves[before.index] if count else 0)
        for name, factor in shift.differences.items():
            amount += factor * (here.start[name] - before.start[name])
        assert draw.law != "exponential" or amount >= 0
        spent.append(abs(amount) / scale)
        return value + amount

    found = Run(program, parameters, others, again).result()
    assert found == output, (answers, others, output, found)
    allowed, most = (cost_at(text, proof, program, parameters, answers) for text in (case.cost, proof.cost))
    assert allowed <= most
    return sum(spent, Fraction(0)), allowed


def cost_at(text: str, proof: Proof, program: nodes.Program, parameters: dict[str, Fraction], answers: Any) -> Fraction:
    """A cost of the proof at values of its parameters."""
    values: dict[str, Fraction] = {**parameters, **proof.fixed}
    return State(program, values, answers, lambda law, size: size).value(expression(text, program))  # type: ignore[no-any-return]
