"""Proofs do what they say on random runs: with shifted draws the second gives the same output, at the cost allowed.

This is the definition of an alignment, run. It knows nothing of the search: it follows the tree with numbers, as the
interpreter does, and does what the proof says.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from benchmarks.programs import PROGRAMS
from dpaudit.verify.alignment import prove
from dpaudit.verify.language import expression, nodes, read
from dpaudit.verify.proof import Proof
from tests.cases import for_each, some
from tests.verify.interpreter import InterpreterState


@dataclass
class Turn:
    """One path that was taken: its name, the variables at its start, its draws with their scales."""

    name: str
    index: int
    start: dict[str, Any]
    draws: dict[str, Fraction] = field(default_factory=dict)


@dataclass
class Run(InterpreterState):
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
    shifts = {(shift.path, shift.draw): shift for shift in proof.alignment.shifts}
    spent: list[Fraction] = []

    def again(run: Run, draw: nodes.Draw, scale: Fraction) -> Fraction:
        before, here = first.turns[len(run.turns) - 1], run.turns[-1]
        value = before.draws[draw.target]
        if (shift := shifts.get((before.name, draw.target))) is None:
            return value
        amount = shift.constant + shift.answer * (moves[before.index] if count else 0)
        for name, factor in shift.differences.items():
            amount += factor * (here.start[name] - before.start[name])
        assert draw.law != "exponential" or amount >= 0
        spent.append(abs(amount) / scale)
        return value + amount

    found = Run(program, parameters, others, again).result()
    assert found == output, (answers, others, output, found)
    allowed = InterpreterState(program, parameters, answers, lambda law, size: size)
    return sum(spent, Fraction(0)), allowed.value(expression(proof.cost, program))


RUNS = 40
PROVED = [name for name, case in PROGRAMS.items() if case.true != "infinite" and name != "c1_noisy_max"]


def values(names: tuple[str, ...], rng: random.Random) -> dict[str, Fraction]:
    whole = {"N": (1, 3), "M": (2, 4), "c": (1, 3), "T": (0, 3)}
    return {name: Fraction(rng.randint(*whole[name]) if name in whole else rng.choice((1, 2, 3))) for name in names}


@for_each("name", some(PROVED, 6))
def test_shifted_draws_give_the_same_output_at_the_cost(name: str) -> None:
    program, rng = read(PROGRAMS[name].function), random.Random(name)
    proof = prove(program, PROGRAMS[name].adjacency)
    assert isinstance(proof, Proof)
    largest = Fraction(0)
    for _ in range(RUNS):
        spent, allowed = coupled_cost(proof, program, values(program.parameters, rng), rng.randint(4, 7), rng)
        assert spent <= allowed
        largest = max(largest, spent / allowed)
    assert largest > Fraction(1, 4)  # so that the runs say something


def test_a_shift_that_is_too_small_is_seen() -> None:
    """The oracle itself can fail: with half of the threshold's shift outputs differ."""
    program, rng = read(PROGRAMS["c2_sparse_vector"].function), random.Random(1)
    proof = prove(program, "all-differ")
    assert isinstance(proof, Proof)
    alignment = proof.alignment
    halved = tuple(replace(s, constant=Fraction(1, 2)) if s.path.startswith("before") else s for s in alignment.shifts)
    wrong = replace(proof, alignment=replace(alignment, shifts=halved))
    runs = (coupled_cost(wrong, program, values(program.parameters, rng), 6, rng) for _ in range(RUNS))
    with pytest.raises(AssertionError):
        list(runs)
