"""Weighted guesses about one run: valid against the best mechanism there is, tight, silent at the null, mirrored."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpaudit.scores import one_run
from dpaudit.scores.one_run import Weights, design, excess, ranked, tail, weighted_lower, weighted_p_value
from tests.cases import for_each
from tests.scores.naive import largest_chance, weighted_tail, weighted_vectors

LP = 1e-7  # what the linear program is good to


def step_of(epsilon: float) -> tuple[float, float]:
    """The step that shares a design."""
    return next((a, b) for a, b in pairwise(one_run.EPSILONS) if a <= epsilon < b)


@for_each(("weights", "canaries"), [((2, 1), 2), ((2, 1), 3), ((2, 2, 1), 3), ((3, 1, 1), 3), ((2, 1, 1), 3)])
@for_each(("epsilon", "delta"), [(0.0, 0.02), (0.7, 0.0), (1.5, 0.05)])
def test_valid_no_mechanism_does_better(weights: tuple[int, ...], canaries: int, epsilon: float, delta: float) -> None:
    each = sorted(set(weights), reverse=True)
    used = Weights(tuple(each), tuple(map(weights.count, each)))
    outputs = weighted_vectors(weights, canaries)
    for least in range(1, used.total + 1):
        best = largest_chance(canaries, epsilon, delta, outputs, lambda v, r, least=least: v >= least)
        assert best <= weighted_p_value(used, least, canaries, epsilon, delta) + LP


def test_tight_without_delta_the_best_mechanism_reaches_it() -> None:
    used, outputs = Weights((2, 1), (1, 2)), weighted_vectors((2, 1, 1), 3)
    for least in range(1, 5):
        best = largest_chance(3, 0.7, 0.0, outputs, lambda v, r, least=least: v >= least)
        assert weighted_p_value(used, least, 3, 0.7, 0.0) == pytest.approx(best, abs=1e-6)


@for_each(("weights", "counts"), [((4, 3, 2, 1), (3, 2, 5, 8)), ((3, 1), (20, 40)), ((5, 2), (1, 7)), ((2,), (9,))])
def test_the_tail_is_that_of_integers(weights: tuple[int, ...], counts: tuple[int, ...]) -> None:
    used, each = Weights(weights, counts), dict(zip(weights, counts, strict=True))
    for q in (Fraction(1, 2), Fraction(7, 8)):
        for v in {1, used.total // 2, used.total - 3, used.total}:
            exact = float(weighted_tail(each, v, q))
            assert exact * (1.0 - 1e-12) <= tail(used, v, float(q)) <= exact * (1.0 + 1e-6)
    assert (tail(used, 0, 0.5), tail(used, used.total + 1, 0.5)) == (1.0, 0.0)


@for_each("epsilon", [0.0, 0.35, 1.0])
def test_valid_and_tight_exact_coverage_of_randomised_response(epsilon: float) -> None:
    """The bound is above epsilon only where the design of its step refutes it: as often as the tail says."""
    alpha, m = 0.05, 60
    used = design(m, step_of(epsilon)[1], 0.0, alpha, "both", step_of(epsilon)[0])
    q = 1.0 / (1.0 + math.exp(-epsilon))
    refuting = [v for v in range(used.total + 1) if tail(used, v, q) <= alpha]
    assert 0.3 * alpha < tail(used, refuting[0], q) <= alpha
    rng = np.random.default_rng(5)
    for _ in range(3):
        right = rng.random(m) < q + 0.1
        assert weighted_lower(right, 0.0, alpha)[0] <= epsilon or used.won(right) >= refuting[0]


def test_one_weight_is_the_plain_bound_and_delta_costs_at_least_as_much() -> None:
    for right, made in ((80, 100), (95, 100)):
        plain = one_run.Guesses(right, made, 1000, fixed=True)
        for delta in (0.0, 1e-5):
            mine = weighted_p_value(Weights((1,), (made,)), right, 1000, 1.0, delta)
            assert one_run.p_value(plain, 1.0, delta) <= mine + 1e-12
        assert weighted_p_value(Weights((1,), (made,)), right, 1000, 1.0, 0.0) == one_run.p_value(plain, 1.0, 0.0)
    few, many = (excess(Weights((2, 1), (n, n)), 1000, 0.7, 1e-5) for n in (5, 500))
    assert few > many > 0.0


def test_a_design_knows_numbers_alone() -> None:
    rng = np.random.default_rng(1)
    coins = rng.random(4000) < 0.5
    bound, _, used = weighted_lower(ranked(rng.normal(size=4000) + 1.5 * coins, coins, rng), 1e-5, 0.05)
    assert used == design(4000, step_of(bound)[1], 1e-5, 0.05, "both", step_of(bound)[0])
    assert bound > 2.7


def test_null_and_mirror() -> None:
    rng = np.random.default_rng(2)
    coins, scores = rng.random(600) < 0.5, rng.normal(size=600)
    half = np.arange(600) % 2 == 0
    assert weighted_lower(half, 1e-5, 0.05)[0] == 0.0
    for event, other in (("in", "out"), ("both", "both")):
        one = ranked(scores, coins, np.random.default_rng(0), event)
        two = ranked(-scores, ~coins, np.random.default_rng(0), other)
        assert one.sum() == two.sum()
        assert event == "both" or (one == two).all()


def test_ties_are_broken_by_the_generator() -> None:
    coins = np.arange(1000) < 500
    first = [int(ranked(np.zeros(1000), coins, np.random.default_rng(s), "in")[:100].sum()) for s in range(20)]
    assert abs(np.mean(first) - 50.0) < 9.0 * 4.75 / math.sqrt(20)
    assert len(set(first)) > 1
