"""The certified privacy profile: its limits against statsmodels, its coverage by counting all outcomes."""

from __future__ import annotations

import itertools
import math

import pytest
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from dpaudit.certify import Binned, CoinFlip, FixedSides
from dpaudit.certify.binomial import SLACK
from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.claims import PureDP

EPSILONS = (0.0, 0.2, 0.7, 1.0, 2.0, 4.0)


def exact_profile(p: float, q: float, epsilon: float) -> float:
    """The profile of two laws on two outputs, both ways, by its definition."""
    ratio = math.exp(epsilon)
    sides = ((p, q), (1.0 - p, 1.0 - q), (q, p), (1.0 - q, 1.0 - p))
    return max(0.0, *(a - ratio * b for a, b in sides))


def test_limits_are_those_of_two_intervals_at_half_the_error_a_side() -> None:
    profile = LowerProfile.of(FixedSides(83, 12, 200, 310), confidence=0.99)
    ((low, high),) = profile.limits
    assert low == pytest.approx(proportion_confint(83, 200, alpha=0.01, method="beta")[0], rel=1e-8)
    assert high == pytest.approx(proportion_confint(12, 310, alpha=0.01, method="beta")[1], rel=1e-8)
    assert low <= proportion_confint(83, 200, alpha=0.01, method="beta")[0]
    assert high >= proportion_confint(12, 310, alpha=0.01, method="beta")[1]


def test_the_complement_of_an_event_may_tell_more() -> None:
    """P holds of nine in ten and Q of half: outside, of one in ten and of half."""
    assert LowerProfile(((0.9, 0.5),), 0.95).epsilon_at(0.0) == pytest.approx(math.log(5.0))


def test_the_first_bins_together_share_the_error() -> None:
    profile = LowerProfile.of(Binned((40, 30, 20), (5, 20, 60), 100, 100), confidence=0.98)
    assert len(profile.limits) == 2
    for (low, high), x, y in zip(profile.limits, (40, 70), (5, 25), strict=True):
        assert low == pytest.approx(proportion_confint(x, 100, alpha=0.01, method="beta")[0], rel=1e-8)
        assert high == pytest.approx(proportion_confint(y, 100, alpha=0.01, method="beta")[1], rel=1e-8)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.1), (0.9, 0.45), (0.3, 0.3), (0.97, 0.6), (0.15, 0.01)])
def test_the_whole_curve_is_below_the_truth_with_the_confidence_stated(p: float, q: float) -> None:
    runs, confidence = 14, 0.8
    truth = [exact_profile(p, q, epsilon) for epsilon in EPSILONS]
    wrong = 0.0
    for x, y in itertools.product(range(runs + 1), repeat=2):
        profile = LowerProfile.of(CoinFlip(x, y, runs, runs), confidence)
        if any(profile.delta_at(epsilon) > true for epsilon, true in zip(EPSILONS, truth, strict=True)):
            wrong += binom.pmf(x, runs, p) * binom.pmf(y, runs, q)
    assert wrong <= 1.0 - confidence


def test_limits_at_the_whole_error_would_be_wrong_too_often() -> None:
    """So the coverage above can fail: a curve from limits that hold one by one does."""
    runs, p, q, alpha = 14, 0.5, 0.15, 0.4
    wrong = {
        share: sum(
            binom.pmf(x, runs, p) * binom.pmf(y, runs, q)
            for x, y in itertools.product(range(runs + 1), repeat=2)
            if proportion_confint(x, runs, alpha=2.0 * share, method="beta")[0] > p
            or proportion_confint(y, runs, alpha=2.0 * share, method="beta")[1] < q
        )
        for share in (alpha, alpha / 2.0)
    }
    assert wrong[alpha / 2.0] <= alpha < wrong[alpha]


def test_with_many_runs_the_curve_is_the_truth() -> None:
    runs = 10**9
    profile = LowerProfile.of(CoinFlip(7 * runs // 10, 4 * runs // 10, runs, runs), confidence=0.999)
    for epsilon in EPSILONS:
        value, true = profile.delta_at(epsilon), exact_profile(0.7, 0.4, epsilon)
        assert true - 1e-3 <= value <= true


def test_the_complement_counts_where_the_event_says_less() -> None:
    profile = LowerProfile(((0.9, 0.5),), 0.95)
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
    """Limits of one count on equal sides always overlap, whatever the confidence."""
    for runs, confidence in itertools.product((1, 7, 400), (0.5, 0.95, 1 - 1e-6)):
        for hits in {0, 1, runs // 3, runs // 2, runs}:
            profile = LowerProfile.of(FixedSides(hits, hits, runs, runs), confidence)
            assert [profile.delta_at(epsilon) for epsilon in EPSILONS] == [0.0] * len(EPSILONS)
            assert profile.epsilon_at(0.0) == 0.0


def test_mirror_the_side_was_frozen_with_the_event() -> None:
    """The swapped pair certifies nothing of the same event, and of its complement as much, up to the limits' slack."""
    for x, y, n, m in ((90, 10, 100, 120), (30, 2, 40, 400), (400, 350, 400, 400)):
        profile = LowerProfile.of(FixedSides(x, y, n, m), 0.95)
        swapped = LowerProfile.of(FixedSides(y, x, m, n), 0.95)
        complement = LowerProfile.of(FixedSides(m - y, n - x, m, n), 0.95)
        assert profile.delta_at(0.0) > 0.0
        assert [swapped.delta_at(epsilon) for epsilon in EPSILONS] == [0.0] * len(EPSILONS)
        for epsilon in EPSILONS:
            slack = 2.0 * SLACK * (1.0 + math.exp(epsilon))  # two limits each, the second one times e^epsilon
            assert complement.delta_at(epsilon) == pytest.approx(profile.delta_at(epsilon), rel=0.0, abs=slack)


def test_no_runs_and_huge_epsilons_certify_nothing() -> None:
    profile = LowerProfile.of(CoinFlip(0, 0, 0, 0), confidence=0.95)
    assert [profile.delta_at(epsilon) for epsilon in (0.0, 1.0, 1e9, math.inf)] == [0.0] * 4
    assert profile.epsilon_at(0.0) == 0.0
    assert LowerProfile.of(CoinFlip(10, 0, 10, 10), 0.95).delta_at(800.0) == 0.0


def test_counts_as_a_claim_allows_do_not_exceed_it() -> None:
    claim = PureDP(1.0)
    q = 1.0 / (1.0 + math.e)
    runs = 1_000_000
    profile = LowerProfile.of(CoinFlip(int((1.0 - q) * runs), int(q * runs) + 1, runs, runs), confidence=0.999)
    assert all(profile.delta_at(epsilon) <= claim.delta_at(epsilon) for epsilon in EPSILONS)
