"""The certified privacy profile: its limits against statsmodels, its coverage by counting all outcomes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from dpaudit.certify import Binned, CoinFlip, Evidence, FixedSides
from dpaudit.certify.binomial import SLACK
from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.claims import PureDP
from tests.cases import for_each
from tests.certify.exact import chances_of_sides

EPSILONS = (0.0, 0.2, 0.7, 1.0, 2.0, 4.0)


def exact_profile(p: float, q: float, epsilon: float) -> float:
    """The profile of two laws on two outputs, both ways, by its definition."""
    ratio = math.exp(epsilon)
    sides = ((p, q), (1.0 - p, 1.0 - q), (q, p), (1.0 - q, 1.0 - p))
    return max(0.0, *(a - ratio * b for a, b in sides))


def curve(profile: LowerProfile) -> list[float]:
    return [profile.delta_at(epsilon) for epsilon in EPSILONS]


@for_each(
    ("evidence", "events", "share"),
    [
        (FixedSides(83, 12, 200, 310), [(83, 12)], 0.005),
        (Binned((40, 30, 20), (5, 20, 60), 100, 100), [(40, 5), (70, 25)], 0.0025),
    ],
)
def test_limits_are_those_of_two_intervals_at_equal_shares_of_the_error(
    evidence: Evidence, events: list[tuple[int, int]], share: float
) -> None:
    """Of half the error a side; the first bins together are an event each, and share it."""
    profile = LowerProfile.of(evidence, confidence=0.99)
    for (low, high), (x, y) in zip(profile.limits, events, strict=True):
        least = proportion_confint(x, evidence.runs_p, alpha=2.0 * share, method="beta")[0]
        most = proportion_confint(y, evidence.runs_q, alpha=2.0 * share, method="beta")[1]
        assert low == pytest.approx(least, rel=1e-8)
        assert high == pytest.approx(most, rel=1e-8)
        assert (low <= least, high >= most) == (True, True)


@for_each(("p", "q"), [(0.5, 0.1), (0.9, 0.45), (0.3, 0.3), (0.97, 0.6), (0.15, 0.01)])
def test_the_whole_curve_is_below_the_truth_with_the_confidence_stated(p: float, q: float) -> None:
    runs, confidence = 14, 0.8
    truth = np.array([exact_profile(p, q, epsilon) for epsilon in EPSILONS])
    wrong = [
        [np.any(curve(LowerProfile.of(CoinFlip(x, y, runs, runs), confidence)) > truth) for y in range(runs + 1)]
        for x in range(runs + 1)
    ]
    assert chances_of_sides(runs, runs, p, q)[np.array(wrong)].sum() <= 1.0 - confidence


def test_with_many_runs_the_curve_is_the_truth_and_never_more_than_a_claim_that_is_kept() -> None:
    runs = 10**9
    profile = LowerProfile.of(CoinFlip(7 * runs // 10, 4 * runs // 10, runs, runs), confidence=0.999)
    for epsilon in EPSILONS:
        value, true = profile.delta_at(epsilon), exact_profile(0.7, 0.4, epsilon)
        assert true - 1e-3 <= value <= true
    q, runs = 1.0 / (1.0 + math.e), 1_000_000
    profile = LowerProfile.of(CoinFlip(int((1.0 - q) * runs), int(q * runs) + 1, runs, runs), confidence=0.999)
    assert all(profile.delta_at(epsilon) <= PureDP(1.0).delta_at(epsilon) for epsilon in EPSILONS)


def test_the_complement_counts_where_the_event_says_less() -> None:
    """P holds of nine in ten and Q of half: outside, of one in ten and of half."""
    profile = LowerProfile(((0.9, 0.5),), 0.95)
    assert profile.epsilon_at(0.0) == pytest.approx(math.log(5.0))
    assert profile.delta_at(1.0) == pytest.approx(0.5 - math.e * 0.1)
    assert profile.delta_at(1.0) > max(0.0, 0.9 - math.e * 0.5)


def test_the_curve_falls_and_its_inverse_agrees() -> None:
    profile = LowerProfile.of(CoinFlip(900, 100, 1000, 1000), confidence=0.95)
    values = [profile.delta_at(epsilon / 50.0) for epsilon in range(150)]
    assert values == sorted(values, reverse=True)
    for delta in (0.0, 0.01, 0.3, 0.7):
        epsilon = profile.epsilon_at(delta)
        assert profile.delta_at(epsilon) == pytest.approx(delta, abs=1e-9)
        assert profile.delta_at(epsilon + 1e-6) <= delta
    assert profile.epsilon_at(0.999) == 0.0


def test_null_equal_counts_certify_nothing() -> None:
    """Limits of one count on equal sides always overlap, whatever the confidence; so do no runs, at any epsilon."""
    for runs, confidence in itertools.product((1, 7, 400), (0.5, 0.95, 1 - 1e-6)):
        for hits in {0, 1, runs // 3, runs // 2, runs}:
            profile = LowerProfile.of(FixedSides(hits, hits, runs, runs), confidence)
            assert (curve(profile), profile.epsilon_at(0.0)) == ([0.0] * len(EPSILONS), 0.0)
    nothing = LowerProfile.of(CoinFlip(0, 0, 0, 0), confidence=0.95)
    assert [nothing.delta_at(epsilon) for epsilon in (0.0, 1.0, 1e9, math.inf)] == [0.0] * 4
    assert nothing.epsilon_at(0.0) == 0.0
    assert LowerProfile.of(CoinFlip(10, 0, 10, 10), 0.95).delta_at(800.0) == 0.0


@for_each(("x", "y", "n", "m"), [(90, 10, 100, 120), (30, 2, 40, 400), (400, 350, 400, 400)])
def test_mirror_the_side_was_frozen_with_the_event(x: int, y: int, n: int, m: int) -> None:
    """The swapped pair certifies nothing of the same event, and of its complement as much, up to the limits' slack."""
    profile = LowerProfile.of(FixedSides(x, y, n, m), 0.95)
    complement = LowerProfile.of(FixedSides(m - y, n - x, m, n), 0.95)
    assert profile.delta_at(0.0) > 0.0
    assert curve(LowerProfile.of(FixedSides(y, x, m, n), 0.95)) == [0.0] * len(EPSILONS)
    for epsilon in EPSILONS:
        slack = 2.0 * SLACK * (1.0 + math.exp(epsilon))  # two limits each, the second one times e^epsilon
        assert complement.delta_at(epsilon) == pytest.approx(profile.delta_at(epsilon), rel=0.0, abs=slack)
