"""Exact limits and tails: never on the wrong side, and not further from the truth than they say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from dpaudit.certify.binomial import LEAST, lower_limit, quantile, upper_limit, upper_tail
from tests.cases import for_each
from tests.certify.exact import long_tail, tail

MOST = 60
SHARES = (0.5, 0.25, 1e-3, 1.0 / (1.0 + math.exp(-1.0)), 0.999, 1e-12)
TIGHT = 3e-9  # relative: a slack of 1e-9, and the rounding around it


@for_each(
    ("alpha", "step"), [("0.05", 4), ("0.001", 19), ("0.0009", 19), ("0.5", 19), ("1e-9", 19)], nightly=[("0.05", 1)]
)
def test_limits_are_on_the_safe_side_and_tight(alpha: str, step: int) -> None:
    """All hits of up to 60 runs. At the limit the tail is at most alpha; a hair further it is above alpha."""
    error = Fraction(alpha)
    for runs in (1, 2, *range(3, MOST + 1, step)):
        for hits in range(runs + 1):
            low, high = lower_limit(hits, runs, float(alpha)), upper_limit(hits, runs, float(alpha))
            assert low == 0.0 or hits
            assert high == 1.0 or hits < runs
            if hits:
                assert tail(hits, runs, low) <= error < tail(hits, runs, Fraction(low) * Fraction(1.0 + TIGHT))
            if hits < runs:
                below = 1 - tail(hits + 1, runs, high), 1 - tail(hits + 1, runs, Fraction(high) / Fraction(1.0 + TIGHT))
                assert below[0] <= error < below[1]


@for_each("share", SHARES)
def test_tails_are_rounded_up_and_tight_and_quantiles_exact(share: float) -> None:
    """A quantile is the smallest b whose tail is at most gamma."""
    for runs in (1, 2, 3, 7, 20, 47, MOST):
        for hits in range(runs + 1):
            exact, value = tail(hits, runs, share), Fraction(upper_tail(hits, runs, share))
            assert exact <= value <= max(Fraction(LEAST), exact * Fraction(1.0 + TIGHT)), (hits, runs)
        for gamma in ("0.005", "0.0001", "0.5", "1e-12"):
            spared = quantile(runs, share, float(gamma))
            assert tail(spared + 1, runs, share) <= Fraction(gamma)
            # one less is too few, or so near to it that rounding up decides
            assert spared == 0 or tail(spared, runs, share) * Fraction(1.0 + TIGHT) > Fraction(gamma)


def test_the_ends() -> None:
    assert [upper_tail(hits, 5, 0.3) for hits in (0, 6)] == [1.0, 0.0]
    assert upper_tail(10**6, 10**6, 0.5) == LEAST
    assert (lower_limit(3, 5, 0.0), upper_limit(3, 5, 0.0)) == (0.0, 1.0)
    assert (lower_limit(0, 0, 0.05), upper_limit(0, 0, 0.05)) == (0.0, 1.0)
    assert (quantile(50, 0.3, 1.0), quantile(50, 0.3, 0.0), quantile(50, 0.0, 0.05)) == (0, 50, 0)


def test_limits_of_any_size_against_a_library_and_45_digits() -> None:
    """Over eight decades, about the middle and at both edges. statsmodels inverts another beta function (that of
    scipy.stats). At the lower limit the tail is at most alpha: what every certificate rests on."""
    rng = np.random.default_rng(2)
    for number in range(300):
        runs = int(10.0 ** rng.uniform(2.0, 8.5))
        middle, edge = int(rng.integers(0, runs, endpoint=True)), int(rng.integers(0, 30))
        hits = max(0, [middle, edge, runs - edge, int(min(runs, 10.0 ** rng.uniform(0.0, 8.5)))][rng.integers(4)])
        alpha = float(rng.choice([0.05, 0.045, 1e-3, 1e-6]))
        low, high = lower_limit(hits, runs, alpha), upper_limit(hits, runs, alpha)
        theirs = proportion_confint(hits, runs, alpha=2.0 * alpha, method="beta")
        if hits:
            assert low == pytest.approx(float(theirs[0]), rel=1e-8)
            assert stats.binom.sf(hits - 1, runs, low) <= alpha
            if number % 2 and min(hits, runs - hits) <= 10**6:
                assert long_tail(hits, runs, low) <= alpha
        if hits < runs:
            assert high == pytest.approx(float(theirs[1]), rel=1e-8)
            # the upper limit serves the cross-check alone; beyond 10^7 runs its inverse loses digits
            assert runs > 10**7 or stats.binom.cdf(hits, runs, high) <= alpha


def test_tails_of_many_runs_against_45_digits() -> None:
    """The slack covers the error of the incomplete beta function, with room to spare, from four deviations
    below the mean to nine above."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        runs, share = int(10.0 ** rng.uniform(2.0, 7.0)), float(rng.choice(SHARES[:5]))
        deviation = max(1.0, math.sqrt(runs * share * (1.0 - share)))
        hits = min(runs, max(1, round(runs * share + rng.uniform(-4.0, 9.0) * deviation)))
        exact = long_tail(hits, runs, share)
        if exact > LEAST:
            assert exact <= upper_tail(hits, runs, share) <= exact * (1.0 + TIGHT)
    for hits in range(0, 61, 3):  # the oracles agree with each other
        assert long_tail(hits, 60, 0.25) == pytest.approx(float(tail(hits, 60, 0.25)), rel=1e-14)
