"""Exact limits and tails: never on the wrong side, and not further from the truth than they say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from dpaudit.certify.binomial import LEAST, lower_limit, quantile, upper_limit, upper_tail
from tests.certify.exact import long_tail, tail

MOST = 60
ALPHAS = ("0.05", "0.001", "0.0009", "0.5", "1e-9")
SHARES = (0.5, 0.25, 1e-3, 1.0 / (1.0 + math.exp(-1.0)), 0.999, 1e-12)
TIGHT = 3e-9  # relative: a slack of 1e-9, and the rounding around it


@pytest.mark.long
@pytest.mark.parametrize("alpha", ALPHAS)
def test_limits_are_on_the_safe_side_and_tight(alpha: str) -> None:
    """All hits of up to 60 runs. At the limit the tail is at most alpha; a hair further it is above alpha."""
    error = Fraction(alpha)
    for runs in range(1, MOST + 1, 1 if alpha == "0.05" else 7):
        for hits in range(runs + 1):
            low, high = lower_limit(hits, runs, float(alpha)), upper_limit(hits, runs, float(alpha))
            if hits:
                assert tail(hits, runs, low) <= error
                assert tail(hits, runs, Fraction(low) * Fraction(1.0 + TIGHT)) > error
            else:
                assert low == 0.0
            if hits < runs:
                assert 1 - tail(hits + 1, runs, high) <= error
                assert 1 - tail(hits + 1, runs, Fraction(high) / Fraction(1.0 + TIGHT)) > error
            else:
                assert high == 1.0


@pytest.mark.parametrize("share", SHARES)
def test_tails_are_rounded_up_and_tight(share: float) -> None:
    for runs in (*range(1, 31), 47, MOST):
        for hits in range(runs + 1):
            exact, value = tail(hits, runs, share), Fraction(upper_tail(hits, runs, share))
            assert exact <= value, (hits, runs)
            assert value <= max(Fraction(LEAST), exact * Fraction(1.0 + TIGHT)), (hits, runs)


@pytest.mark.parametrize("gamma", ["0.005", "0.0001", "0.5", "1e-12"])
def test_quantiles_are_exact(gamma: str) -> None:
    """The smallest b whose tail is at most gamma."""
    for share in (*SHARES, 0.0):
        for runs in (1, 2, 3, 7, 20, MOST):
            value = quantile(runs, share, float(gamma))
            assert tail(value + 1, runs, share) <= Fraction(gamma)
            # one less is too few, or so near to it that rounding up decides
            assert value == 0 or tail(value, runs, share) * Fraction(1.0 + TIGHT) > Fraction(gamma)


def test_the_ends() -> None:
    assert upper_tail(0, 5, 0.3) == 1.0
    assert upper_tail(6, 5, 0.3) == 0.0
    assert upper_tail(10**6, 10**6, 0.5) == LEAST
    assert (lower_limit(3, 5, 0.0), upper_limit(3, 5, 0.0)) == (0.0, 1.0)
    assert (lower_limit(0, 0, 0.05), upper_limit(0, 0, 0.05)) == (0.0, 1.0)
    assert quantile(50, 0.3, 1.0) == 0
    assert quantile(50, 0.3, 0.0) == 50


def random_counts(count: int) -> list[tuple[int, int, float]]:
    """Hits, runs and alpha over eight decades: about the middle, and at both edges."""
    rng = np.random.default_rng(2)
    counts = []
    for _ in range(count):
        runs = int(10.0 ** rng.uniform(2.0, 8.5))
        hits = [
            int(rng.integers(0, runs, endpoint=True)),
            int(rng.integers(0, 30)),
            runs - int(rng.integers(0, 30)),
            int(min(runs, 10.0 ** rng.uniform(0.0, 8.5))),
        ][rng.integers(4)]
        counts.append((max(0, hits), runs, float(rng.choice([0.05, 0.045, 1e-3, 1e-6]))))
    return counts


def test_limits_agree_with_the_libraries_at_any_size() -> None:
    """statsmodels inverts another beta function (that of scipy.stats); the tail itself checks both."""
    for hits, runs, alpha in random_counts(400):
        low, high = lower_limit(hits, runs, alpha), upper_limit(hits, runs, alpha)
        theirs = proportion_confint(hits, runs, alpha=2.0 * alpha, method="beta")
        if hits:
            assert low == pytest.approx(float(theirs[0]), rel=1e-8)
            assert stats.binom.sf(hits - 1, runs, low) <= alpha
        if hits < runs:
            assert high == pytest.approx(float(theirs[1]), rel=1e-8)
            # the upper limit serves the cross-check alone; beyond 10^7 runs its inverse loses digits
            assert runs > 10**7 or stats.binom.cdf(hits, runs, high) <= alpha


def test_tails_of_many_runs_against_45_digits() -> None:
    """The slack covers the error of the incomplete beta function, with room to spare, from four deviations
    below the mean to nine above."""
    rng = np.random.default_rng(3)
    for _ in range(150):
        runs, share = int(10.0 ** rng.uniform(2.0, 7.0)), float(rng.choice(SHARES[:5]))
        deviation = max(1.0, math.sqrt(runs * share * (1.0 - share)))
        hits = min(runs, max(1, round(runs * share + rng.uniform(-4.0, 9.0) * deviation)))
        exact = long_tail(hits, runs, share)
        if exact > LEAST:
            assert exact <= upper_tail(hits, runs, share) <= exact * (1.0 + TIGHT)


def test_limits_of_many_runs_against_45_digits() -> None:
    """At the lower limit the tail is at most alpha: what every certificate rests on."""
    for hits, runs, alpha in random_counts(200):
        if hits == 0 or min(hits, runs - hits) > 10**6:
            continue
        assert long_tail(hits, runs, lower_limit(hits, runs, alpha)) <= alpha


def test_the_oracles_agree_with_each_other() -> None:
    for runs in (5, 60, 200):
        for hits in range(0, runs + 1, 3):
            assert long_tail(hits, runs, 0.25) == pytest.approx(float(tail(hits, runs, 0.25)), rel=1e-14)
