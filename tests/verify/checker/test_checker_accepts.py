"""Proofs written by hand are accepted, and what the checker says of them is what they show."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.checker import check, epsilon
from dpaudit.verify.proof import Alignment, Case, Potential
from tests.cases import for_each
from tests.verify.checker.certificates import NO_CUT_OFF, RIGHT, SPARSE, counted, proof, shift, tops


@for_each("name", RIGHT)
def test_a_right_proof_is_accepted_and_keeps_its_claim(name: str) -> None:
    stated = RIGHT[name]
    checked = check(stated)
    assert checked.keeps_claim is True
    assert checked.cost == stated.cost
    assert len(checked.obligations) >= 4


def test_a_check_takes_a_fraction_of_a_second() -> None:
    check(RIGHT["c2"])
    begin = time.process_time()
    check(RIGHT["c7"])
    assert time.process_time() - begin < 2.0


def test_the_answer_says_what_is_shown_for_which_inputs() -> None:
    checked = check(RIGHT["c4"])
    loss = "the privacy loss of c4_sparse_decreasing is at most eps/2"
    assert checked.statement == f"{loss} (one way: from the first dataset to the second)"
    assert checked.scope == (
        "all real query answers, any number of answers; every answer falls by at most 1 from the first dataset to the "
        "second (one way); any eps, N, T as assumed"
    )
    assert checked.assumptions == ("N >= 1", "eps > 0", "N is whole", "arithmetic of real numbers, not of floats")


def test_the_obligations_are_words_with_paths_and_lines() -> None:
    obligations = check(RIGHT["c2"]).obligations
    assert "loop:TF: both runs take the same branch at line 7" in obligations
    assert "loop:TF: the output of line 8 is the same in both runs" in obligations
    assert "entry: t' - t is kept at 1" in obligations
    assert "loop:TF: the cost is within the potential" in obligations
    assert "after: (from loop:TT): the cost is at most eps" in obligations


@for_each(
    ("changes", "keeps"),
    [
        ({"claim": "eps*9/10"}, False),
        ({"claim": "eps*N"}, True),
        ({"claim": "eps*N/2"}, False),
        ({"claim": "eps*N/2", "fixed": {"N": Fraction(2)}}, True),
        ({"claim": "eps*eps"}, False),
        ({"claim": None}, None),
        ({"assumptions": ("eps > 0", "N >= 1")}, True),
        ({"cases": (Case(0, "eps"),)}, True),
        ({"cost": "eps*101/100"}, False),
        ({"cost": "2*eps"}, False),
        ({"cost": "eps + 1"}, False),
        ({"cost": "eps*N", "claim": "2*eps*N"}, True),
    ],
)
def test_a_proof_of_its_cost_is_one_whether_or_not_it_keeps_a_claim(
    changes: dict[str, Any], keeps: bool | None
) -> None:
    stated = replace(RIGHT["c2"], **changes)
    checked = check(stated)
    assert (checked.cost, checked.keeps_claim) == (stated.cost, keeps)


def test_a_number_of_answers_narrows_a_proof_for_any_number() -> None:
    assert "8 answers" in check(replace(RIGHT["c2"], answers=8)).scope


def test_a_cost_may_grow_with_the_number_of_answers() -> None:
    shifts = tops("draw_2", top=(0, -1), paths=("loop:T", "loop:F"))
    counting = NO_CUT_OFF.replace("out = []", "out = []\n    seen = 0").replace("if x", "seen += 1\n        if x")
    growing = Alignment(shifts=shifts, bounds=("seen == index",), potential=Potential("0", {"seen": "eps/2"}))
    stated = proof(counting, growing, cost="n*eps/2")
    assert check(stated).keeps_claim is False
    assert epsilon(stated, {"eps": 1, "n": 8}) == 4
    with pytest.raises(InvalidSpec, match="needs a value of n"):
        epsilon(stated, {"eps": 1})


def test_alignments_may_differ_between_classes_of_runs() -> None:
    still = Alignment(shifts=tops("draw_2", top=(0, -1), paths=("loop:TT", "loop:TF", "loop:FF")))
    risen = Alignment(shifts=(shift("before:", "draw_1", 1), *tops("draw_2", top=(1, -1), paths=("loop:TT",))))
    cases = {
        (("loop:FF", 3),): (1, "eps/2"),
        (("loop:FF", 2), ("loop:TT", 1)): (0, "3*eps/4"),
        (("loop:FF", 1), ("loop:TT", 1)): (0, "eps/2"),
        (("loop:TT", 1),): (0, "eps/4"),
    }
    stated = counted(SPARSE, (still, risen), cases, answers=3, fixed={"N": Fraction(1)}, cost="3*eps/4")
    assert check(stated).keeps_claim is True


# --- costs as numbers ------------------------------------------------------------------------------------------


def test_epsilon_is_the_cost_at_parameter_values() -> None:
    assert epsilon(RIGHT["c4"], {"eps": Fraction(1, 3), "N": 5}) == Fraction(1, 6)
    assert epsilon(RIGHT["sparse, 2 of 3 answers"], {"eps": 8}) == 3


@for_each(
    ("parameters", "message"),
    [
        ({}, "needs a value of eps"),
        ({"eps": 0}, "outside the proof's scope"),
        ({"eps": -1}, "outside the proof's scope"),
        ({"eps": 1, "N": 0}, "outside the proof's scope"),
        ({"eps": 1, "N": Fraction(1, 2)}, "N must be whole"),
        ({"eps": 1, "sigma": 1}, "no parameter 'sigma'"),
        ({"eps": 1, "n": 0}, "the proof is for"),
    ],
)
def test_epsilon_refuses_what_is_outside_the_proof(parameters: dict[str, Fraction | int], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        epsilon(RIGHT["c2"], parameters)


def test_epsilon_refuses_another_value_of_what_is_fixed() -> None:
    stated = RIGHT["sparse, 2 of 3 answers"]
    assert epsilon(stated, {"eps": 1, "N": 2, "n": 3}) == Fraction(3, 8)
    with pytest.raises(InvalidSpec, match="the proof is for N = 2"):
        epsilon(stated, {"eps": 1, "N": 3})
    with pytest.raises(InvalidSpec, match="n = 4: the proof is for"):
        epsilon(stated, {"eps": 1, "n": 4})
