"""What the search proves: the least cost, for right programs and for wrong ones, and why where it proves nothing."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import pytest

from audits.lectures.claims import holdout
from audits.lectures.claims.proofs import thresholdout
from benchmarks.exact import least_bound
from benchmarks.programs import (
    FAMILY,
    PROGRAMS,
    RIGHT,
    changed,
    least_cost,
    lyu_1,
    not_scaled,
    sparse_redrawn,
)
from dpaudit.errors import InvalidSpec, OutOfTime
from dpaudit.verify.alignment import Unproved, prove
from dpaudit.verify.checker import check, epsilon
from dpaudit.verify.deadline import within
from dpaudit.verify.language import read
from dpaudit.verify.proof import ADJACENCIES, Adjacency, Proof
from dpaudit.verify.witnesses import pair_loss
from dpaudit.verify.witnesses.outputs import at_least
from tests.cases import for_each, some

SECONDS = 2.0


def proved(source: object, adjacency: Adjacency = "all-differ", **given: object) -> Proof:
    found = prove(read(source), adjacency, **given)  # type: ignore[arg-type]
    assert isinstance(found, Proof), found
    return found


def unproved(source: object, adjacency: Adjacency = "all-differ", **given: object) -> Unproved:
    found = prove(read(source), adjacency, **given)  # type: ignore[arg-type]
    assert isinstance(found, Unproved), found
    return found


def test_the_search_among_shifts_ends_with_the_time() -> None:
    """Without a question to the solver: no shift of eight draws helps where a ninth cannot make up for three steps."""
    draws = "\n".join(f"        v{number} = rng.laplace(scale=1)" for number in range(8))
    source = f"def f(q, rng):\n    out = []\n    for x in q:\n{draws}\n        out.append(3 * x + rng.laplace())\n"
    with within(0.2), pytest.raises(OutOfTime):
        prove(read(f"{source}    return out\n"), "all-differ")


GROWING = {  # what the least cost grows like with the number of answers, where there is no proof; None: no alignment
    "w1_noisy_max_value": "eps*n/2",
    "w5_sparse_unscaled": "eps*n/2",
    "w7_gap_value": "eps*n/(4*N)",
    "w8_adaptive_value": "3*eps*n/(8*N)",
    "w3_smart_sum_missing_draw": None,
    "w4_sparse_no_query_noise": None,
    "lyu_3": "eps*n/(2*c)",
    "lyu_6": "eps*n/2",
    "no_cut_off": "eps*n/4",
    "no_threshold_noise": "eps*n/(4*c)",
    "lyu_5": None,
}
assert {*GROWING} == {name for name, case in (PROGRAMS | FAMILY).items() if case.true == "infinite"}
COUPLED = "c1_noisy_max"  # has a proof by coupling alone
BOUNDED = [name for name, case in (PROGRAMS | FAMILY).items() if case.true != "infinite" and name != COUPLED]


@for_each("name", some(BOUNDED, 7))
def test_programs_get_their_least_cost_in_time_and_the_checker_agrees(name: str) -> None:
    case = (PROGRAMS | FAMILY)[name]
    claim = case.claim if name in PROGRAMS else None
    began = time.process_time()
    proof = proved(case.function, getattr(case, "adjacency", "all-differ"), claim=claim)
    assert time.process_time() - began < SECONDS
    assert proof.claim == claim
    for values in ({"eps": 1, "N": 1, "c": 1}, {"eps": 2, "N": 3, "c": 5}):
        assert eval(proof.cost, {}, values) == eval(case.true, {}, values)
    checked = check(proof)
    assert (checked.cost, checked.keeps_claim) == (proof.cost, claim and name in RIGHT)


@for_each("name", some(GROWING, 5))
def test_programs_without_a_bound_get_no_proof_and_what_grows_is_named(name: str) -> None:
    case = (PROGRAMS | FAMILY)[name]
    found = unproved(case.function, getattr(case, "adjacency", "all-differ"))
    assert found.growing == GROWING[name]
    assert found.line is not None
    assert name != "w4_sparse_no_query_noise" or (found.line == 6 and "line 6" in found.reason)


def largest_class(name: str, answers: int, c: int) -> Fraction:
    """The closed form of the loss over all answers: the worst class of runs."""
    variant = FAMILY[name]
    scales = variant.threshold(Fraction(1), c), variant.answers(Fraction(1), c)
    most = min(c, answers) if variant.halts else answers
    return max(least_cost(*scales, answers - tops, tops) for tops in range(most + 1))


BITS = ("lyu_1", "lyu_4", "lyu_6", "no_cut_off", "no_threshold_noise", "half_noise", "not_scaled")


@for_each("name", some(BITS, 4))
@for_each(("answers", "c"), [(2, 1), (8, 3)], nightly=[(4, 1), (16, 1)])
def test_of_so_many_answers_the_least_bound_is_the_closed_form_of_the_loss(name: str, answers: int, c: int) -> None:
    given = {"eps": Fraction(1), "T": Fraction(0)} | ({"c": Fraction(c)} if FAMILY[name].halts else {})
    found = least_bound(FAMILY[name].function, "all-differ", given, answers)
    assert float(found) == pytest.approx(float(largest_class(name, answers, c)), rel=1e-12)


@for_each("seed", range(4), nightly=range(4, 30))
def test_random_scales_are_bounded_by_the_better_of_two_alignments_and_never_below_the_loss(seed: int) -> None:
    rng = random.Random(seed)
    scales = [Fraction(rng.randint(1, 12), rng.randint(1, 4)) for _ in range(2)]
    tops, answers = rng.randint(1, 3), rng.randint(1, 6)
    words = [f"{scale.numerator} / ({scale.denominator} * eps)" for scale in scales]
    sparse = changed(lyu_1, "sparse", ("2 / eps", words[0]), ("4 * c / eps", words[1]))
    given = {"eps": Fraction(1), "T": Fraction(0), "c": Fraction(tops)}
    found = Fraction(least_bound(sparse, "all-differ", given, answers))
    truth = max(least_cost(*scales, answers - k, k) for k in range(min(tops, answers) + 1))
    assert found >= truth * (1 - Fraction(1, 10**12))
    either = min(answers / scales[1], 1 / scales[0] + 2 * tops / scales[1])
    assert float(found) == pytest.approx(float(either), rel=1e-12)


def test_one_sided_noise_is_never_shifted_below_zero() -> None:
    release = "def f(data, rng, eps):\n    return data + rng.exponential(scale=1 / eps)\n"
    assert proved(release, "down").cost == "eps"
    assert unproved(release, "up").growing is None
    unproved(release, "all-differ")


@pytest.mark.parametrize("law", ["gumbel", "normal"])
def test_other_noise_has_no_alignment(law: str) -> None:
    found = unproved(f"def f(data, rng, s):\n    return data + rng.{law}(scale=s)\n")
    assert law in found.reason
    assert found.line == 2


def test_redrawn_threshold_is_not_paid_for_after_the_last_top() -> None:
    """One way, a threshold kept still with the tops paid by 1 each is cheaper where answers fall."""
    for adjacency, cost in (("all-differ", "eps"), ("up", "3*eps/4"), ("down", "eps/4")):
        assert proved(sparse_redrawn, adjacency).cost == cost  # type: ignore[arg-type]


def test_a_claim_that_is_missing_its_assert_is_told_so() -> None:
    found = unproved(changed(not_scaled, "sparse", ("    assert c >= 1\n", "")))
    assert found.growing is None
    assert "assert" in found.reason
    assert "c >= 1" in found.reason
    assert proved(not_scaled).cost == "(c*eps + eps)/2"
    assert proved(not_scaled, fixed={"c": 2}).cost == "3*eps/2"


@for_each("least", ["N >= 1", "N >= 1 and N > 0", "N > 0 and N >= 1"])
def test_scales_that_may_be_negative_or_0_are_refused(least: str) -> None:
    source = f"def f(data, rng, N):\n    assert {least}\n    return data + rng.laplace(scale=SCALE)\n"
    for scale, fixed in (("N - 1", {}), ("N - 3", {}), ("0 * N - 1", {"N": 2})):
        assert "positive" in unproved(source.replace("SCALE", scale), fixed=fixed).reason
    assert proved(source.replace("SCALE", "N")).cost == "1/N"


def test_costs_of_unrelated_parameters_are_not_compared_by_guess() -> None:
    source = """
def f(data, rng, a, b, side):
    if side > 0:
        return_value = data + rng.laplace(scale=a)
    else:
        return_value = data + rng.laplace(scale=b)
    return return_value
"""
    assert "values" in unproved(source).reason
    assert proved(source, fixed={"a": 2, "b": 3}).cost == "1/2"


def test_partial_sums_need_one_that_differs() -> None:
    assert set(get_args(Adjacency)) == set(ADJACENCIES)
    for adjacency in get_args(Adjacency):
        found = prove(read(PROGRAMS["c8_partial_sum"].function), adjacency)
        assert isinstance(found, Proof) == (adjacency == "one-differs")


@for_each(
    ("given", "word"),
    [
        ({"adjacency": "all"}, "adjacency"),
        ({"fixed": {"M": 1}}, "'M'"),
        ({"fixed": {"N": Fraction(1, 2)}}, "whole"),
        ({"fixed": {"N": 0}}, "asserts"),
        ({"claim": "eps +"}, "eps"),
        ({"source": "def f(q, rng):\n    assert 1 > 2\n    return q\n"}, "no values keep what f asserts"),
    ],
)
def test_wrong_questions_are_errors(given: dict[str, Any], word: str) -> None:
    asked = {"source": PROGRAMS["c2_sparse_vector"].function, "adjacency": "all-differ", **given}
    with pytest.raises(InvalidSpec, match=word):
        prove(read(asked.pop("source")), asked.pop("adjacency"), **asked)


# --- Thresholdout, as the lecture notes have it -----------------------------------------------------------------------


def test_thresholdout_keeps_its_budget_and_loses_what_the_catalogue_says_of_holdout_sets() -> None:
    """Numbers in units of 1 / n, by which a record moves them; a positive answer costs 1/2 + 1/2 + 1 over sigma."""
    proof = proved(thresholdout, claim="2*budget/sigma")
    assert (proof.cost, check(proof).keeps_claim) == ("2*budget/sigma", True)
    less = replace(proof, claim="3*budget/(2*sigma)")  # without the share of the value's noise
    assert check(less).keeps_claim is False
    assert epsilon(less, {"budget": 3, "sigma": 4, "threshold": 0}) == Fraction(3, 2)
    first, second = [13] * 12 + [11, 19], [14] * 12 + [10, 18]  # per answer 12 queries below the threshold, one above
    given, output = {"sigma": 4, "budget": 2, "threshold": 12}, [None] * 12 + [at_least(200)]
    found = pair_loss(read(thresholdout), first * 2, second * 2, given, [output * 2])
    assert found.loss.lower == pytest.approx(holdout.loss(holdout.EPOCH * 2, 2), rel=1e-9)


def test_a_redrawn_threshold_is_tight() -> None:
    """32 queries, two epochs of 15 below and one above, all within 2 of the threshold."""
    first, second, output = [1] * 15 + [-1], [2] * 15 + [-2], ([None] * 15 + [True]) * 2
    found = pair_loss(read(sparse_redrawn), first * 2, second * 2, {"eps": 2, "N": 2, "T": 0}, [output]).forward
    assert 1.9998 <= found.at_event.lower <= found.at_event.upper <= 2.0
