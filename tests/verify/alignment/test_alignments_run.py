"""Every proof is done what it says on random runs: the second run gives the same output, and costs what is allowed."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from benchmarks.programs import FAMILY, PROGRAMS
from dpaudit.verify.alignment import prove
from dpaudit.verify.language import read
from dpaudit.verify.proof import Proof
from tests.cases import for_each
from tests.verify.alignment.coupling import coupled_cost

RUNS = 60
PROVED = [
    name
    for name, case in PROGRAMS.items()
    if case.right or case.name in ("w2_partial_sum_half_noise", "w6_sparse_lee_clifton")
]


def values(names: tuple[str, ...], rng: random.Random) -> dict[str, Fraction]:
    whole = {"N": (1, 3), "M": (2, 4), "c": (1, 3), "T": (0, 3)}
    return {name: Fraction(rng.randint(*whole[name]) if name in whole else rng.choice((1, 2, 3))) for name in names}


@for_each("name", PROVED)
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


@pytest.mark.parametrize("name", ["lyu_1", "lyu_2", "lyu_3", "lyu_4", "lyu_6", "gap"])
def test_the_same_where_the_shifts_depend_on_the_class_of_the_run(name: str) -> None:
    program, rng = read(FAMILY[name].function), random.Random(name)
    for answers, c in ((2, 1), (5, 2)):
        fixed = {"c": Fraction(c)} if "c" in program.parameters else {}
        proof = prove(program, "all-differ", fixed=fixed, answers=answers)
        assert isinstance(proof, Proof)
        for _ in range(RUNS // 2):
            spent, allowed = coupled_cost(proof, program, {**values(program.parameters, rng), **fixed}, answers, rng)
            assert spent <= allowed


def test_a_shift_that_is_too_small_is_seen() -> None:
    """The oracle itself can fail: with half of the threshold's shift outputs differ."""
    from dataclasses import replace

    program, rng = read(PROGRAMS["c2_sparse_vector"].function), random.Random(1)
    proof = prove(program, "all-differ")
    assert isinstance(proof, Proof)
    alignment = proof.alignments[0]
    halved = tuple(replace(s, constant=Fraction(1, 2)) if s.path.startswith("before") else s for s in alignment.shifts)
    wrong = replace(proof, alignments=(replace(alignment, shifts=halved),))
    differ = 0
    for _ in range(RUNS):
        try:
            coupled_cost(wrong, program, values(program.parameters, rng), 6, rng)
        except AssertionError:
            differ += 1
    assert differ
