"""Statements of lecture notes about programs: proved for any number of answers, and tight by the exact loss of a pair.

Sparse vector with a redrawn threshold, report noisy max, Thresholdout. The statements about noise, composition and
definitions are checked where the notes are audited, in `tests/audits/lectures/`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from audits.lectures.claims import holdout
from audits.lectures.claims.proofs import thresholdout
from benchmarks.programs import c1_noisy_max, changed, sparse_redrawn
from dpaudit.verify.alignment import prove
from dpaudit.verify.checker import check
from dpaudit.verify.checker import epsilon as proof_epsilon
from dpaudit.verify.language import read
from dpaudit.verify.proof import Adjacency, Proof
from dpaudit.verify.witnesses import pair_loss
from dpaudit.verify.witnesses.outputs import at_least


def proved(function: Callable[..., Any], adjacency: Adjacency, claim: str, fixed: dict[str, int] | None = None) -> str:
    """The cost of a proof that the search finds and the checker accepts, for any number of answers."""
    proof = prove(read(function), adjacency, claim=claim, fixed=fixed)
    assert isinstance(proof, Proof), proof
    assert proof.answers is None
    checked = check(proof)
    assert checked.keeps_claim
    return checked.cost


# --- a: sparse vector, threshold redrawn --------------------------------------------------------------------------


@pytest.mark.parametrize("c", [1, 2, 3, 10, None])
def test_a_sparse_with_redraw_is_epsilon_dp(c: int | None) -> None:
    """sigma = 2 c / epsilon for the threshold, 2 sigma for the queries; None: for every c at once."""
    assert proved(sparse_redrawn, "all-differ", "eps", {"N": c} if c else None) == "eps"


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(2)])
def test_a_is_tight(epsilon: Fraction) -> None:
    """32 queries, two epochs of 15 below and one above, all within 2 of the threshold."""
    first, second = [1] * 15 + [-1], [2] * 15 + [-2]
    output = ([None] * 15 + [True]) * 2
    found = pair_loss(read(sparse_redrawn), first * 2, second * 2, {"eps": epsilon, "N": 2, "T": 0}, [output]).forward
    assert 0.9999 * epsilon <= found.at_event.lower <= found.at_event.upper <= epsilon


# --- g: report noisy max -------------------------------------------------------------------------------------------


noisy_max = changed(c1_noisy_max, "noisy_max", ("2 / eps", "1 / eps"))


@pytest.mark.parametrize("adjacency", ["up", "down"])
def test_g_noisy_max_over_counts_is_epsilon_dp_when_a_record_comes_or_goes(adjacency: Adjacency) -> None:
    """All counts move one way; both ways together are adding and removing."""
    assert proved(noisy_max, adjacency, "eps") == "eps"


def test_g_it_is_tight_for_counts() -> None:
    found = pair_loss(read(noisy_max), [0, 40, 40], [1, 40, 40], {"eps": Fraction(1)})
    assert found.exact
    assert 1.0 - 1e-12 <= found.backward.loss.lower <= 1.0 <= found.backward.loss.upper + 1e-12


def test_g_it_is_two_epsilon_where_counts_move_both_ways() -> None:
    """General queries of sensitivity 1, and counts when a record is replaced: proved, and reached with three."""
    assert proved(noisy_max, "all-differ", "2*eps") == "2*eps"
    unkept = prove(read(noisy_max), "all-differ", claim="eps")
    assert isinstance(unkept, Proof)
    assert check(unkept).keeps_claim is False
    found = pair_loss(read(noisy_max), [0, 40, 40], [1, 39, 39], {"eps": Fraction(1)})
    assert 2.0 - 1e-12 <= found.backward.loss.lower <= found.backward.loss.upper <= 2.0 + 1e-12


def test_g_no_extreme_answers_are_needed_to_see_it() -> None:
    found = pair_loss(read(noisy_max), [0] * 10, [1] + [-1] * 9, {"eps": Fraction(1)})
    assert found.backward.loss.upper < found.forward.loss.lower or found.forward.loss.upper < found.backward.loss.lower
    assert max(found.forward.loss.lower, found.backward.loss.lower) == pytest.approx(1.6072, abs=6e-5)


# --- h: Thresholdout ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "cost"), [(1, "2/sigma"), (5, "10/sigma"), (None, "2*budget/sigma")])
def test_h_thresholdout_keeps_its_budget(budget: int | None, cost: str) -> None:
    """Numbers in units of 1 / n, by which a record moves them: 2 B / (sigma n) for sigma in the units of answers.

    What is compared and what is told are two numbers; an analyst may choose each query by the outputs so far.
    """
    assert proved(thresholdout, "all-differ", "2*budget/sigma", {"budget": budget} if budget else None) == cost


@pytest.mark.parametrize("budget", [1, 2])
def test_h_it_loses_what_the_catalogue_says_of_holdout_sets(budget: int) -> None:
    """Per answer 12 queries 13 / n away from the training set, that go to 14, and one 11 away; the threshold is 12."""
    first, second = [13] * 12 + [11, 19], [14] * 12 + [10, 18]
    given, output = {"sigma": 2 * budget, "budget": budget, "threshold": 12}, [None] * 12 + [at_least(200)]
    found = pair_loss(read(thresholdout), first * budget, second * budget, given, [output * budget])
    assert found.loss.lower == pytest.approx(holdout.loss(holdout.EPOCH * budget, budget), rel=1e-9)


def test_h_one_positive_answer_costs_a_threshold_a_comparison_and_a_value() -> None:
    """1/2 + 1/2 + 1 over sigma; without the value noise's share the claim would not be kept."""
    proof = prove(read(thresholdout), "all-differ", claim="3*budget/(2*sigma)")
    assert isinstance(proof, Proof)
    assert check(proof).keeps_claim is False
    assert proof_epsilon(proof, {"budget": 3, "sigma": 4, "threshold": 0}) == Fraction(3, 2)
