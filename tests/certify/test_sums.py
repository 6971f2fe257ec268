"""Bounds on the weight of a staircase and of a line of points, against plain sums: above them, and close."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.certify.sums import Blocks, ClaimLine, Staircase, lower_tails, rounding, spaced, upper_tails
from dpaudit.certify.unconditional import Region
from tests.cases import for_each
from tests.certify.exact import tail

REACH = 6.0


def plain(region: Region, p: float, q: float) -> float:
    """Pr(y <= limit(x)) summed over every x that matters."""
    n, spread = region.n, 10.0 * math.sqrt(region.n * p * (1.0 - p)) + 60.0
    x = np.arange(max(0, math.floor(n * p - spread)), min(n, math.ceil(n * p + spread)) + 1)
    limits = region.limits(x)
    return float(np.sum(stats.binom.pmf(x, n, p) * np.where(limits >= 0, stats.binom.cdf(limits, region.m, q), 0.0)))


@for_each("share", [1e-6, 0.03, 0.5, 0.97])
@for_each("runs", [1, 2, 30, 1000, 10**8])
def test_blocks_weigh_at_least_their_values(runs: int, share: float) -> None:
    rng = np.random.default_rng(7)
    spread = math.sqrt(runs * share * (1.0 - share)) + 1.0
    low = max(0, math.floor(runs * share - 6 * spread))
    cuts = np.minimum(runs + 1, low + np.cumsum(rng.integers(1, 2 + int(spread / 8.0), size=80)))
    edges = np.unique(np.concatenate([[low], cuts]))
    value = Blocks.between(edges, runs).weights(np.array([share]), slice(None))[0]
    exact = np.diff(stats.binom.cdf(edges - 1, runs, share))
    large = exact > 1e-6  # a difference of two sums near 1: good to about 1e-16
    assert np.all(value[large] * (1.0 + rounding(runs)) >= exact[large] * (1.0 - 1e-9))
    assert np.all(value[large] <= exact[large] * 1.05)


@for_each("runs", [1, 5, 40])
def test_single_values_are_exact_and_tails_rounded_up(runs: int) -> None:
    shares = np.array([0.5, 0.25, 1e-3, 0.999])
    values = Blocks.between(np.arange(runs + 2), runs).weights(shares, slice(None))
    for value, share in zip(values, shares.tolist(), strict=True):
        exact = [float(tail(k, runs, share) - tail(k + 1, runs, share)) for k in range(runs + 1)]
        np.testing.assert_allclose(value, exact, rtol=1e-11)
    for hits in range(-1, runs + 2):
        upper, lower = upper_tails(hits, runs, shares), lower_tails(hits, runs, shares)
        for above, below, share in zip(upper, lower, shares.tolist(), strict=True):
            assert tail(hits, runs, share) <= above
            assert 1 - tail(hits + 1, runs, share) <= below


@pytest.mark.long
@for_each(
    ("region", "p", "q"),
    [
        (Region(40, 25, 2.0, 0.0, 1.645), 0.3, 0.1),
        (Region(40, 25, 2.0, 0.05, 3.0), 0.6, 0.2),
        (Region(10**4, 300, 2.6, 1e-3, 1.645), 0.05, 0.02),
        (Region(10**5, 10**5, 400.0, 0.0, 1.645), 0.9, 0.9 / 405.0),
        (Region(10**5, 10**5, 5.0, 0.1, 1.645), 0.101, 2e-4),
    ],
    nightly=[
        (Region(10**4, 10**4, 2.6, 0.0, 1.645), 0.5, 0.18),
        (Region(10**5, 10**5, 2.7, 0.0, 1.645), 0.5, 0.184),
    ],
)
def test_a_staircase_weighs_at_least_its_outcomes_and_cells_leave_no_point_out(
    region: Region, p: float, q: float
) -> None:
    """For several points at once, near ones and far ones. The largest cell is at least the probability at every point
    of the line, and not much above the largest of them."""
    high = min(1.6 * q, (1.0 - region.offset) / region.ratio)
    line = ClaimLine(region.ratio, region.offset, 0.6 * q, high, region.n, region.m)
    x_edges = line.x_edges(0, region.n)
    limits = region.limits(x_edges[1:] - 1)
    y_edges = np.union1d(line.y_edges(0, region.m), limits[limits >= 0] + 1)
    stairs = Staircase.of(Blocks.between(x_edges, region.n), y_edges, limits, -1, region.m)
    shares = np.array([0.999 * p, p, min(1.0, 1.01 * p)])
    for share, value in zip(shares.tolist(), stairs.probabilities(shares, np.full(3, q), REACH), strict=True):
        exact = plain(region, share, q)
        assert exact * (1.0 - 1e-9) <= value * (1.0 + 2.0 * rounding(region.n))
        assert value <= 1.04 * exact + 1e-6
    cells = line.cells()
    assert np.all(np.diff(cells.p) >= 0.0)
    largest = float(np.max(stairs.probabilities(cells.p, cells.q, REACH) * cells.factor))
    most = max(plain(region, float(line.p(b)), float(b)) for b in np.linspace(line.low, line.high, 15))
    assert most * (1.0 - 1e-9) <= largest <= 1.05 * most + 1e-6


def test_the_two_ends_of_the_line() -> None:
    """q = 0: y is 0 for certain. p = 1: x is n for certain."""
    region = Region(30, 30, 3.0, 0.0, 1.645)
    limits = region.limits(np.arange(31))
    stairs = Staircase.of(Blocks.between(np.arange(32), 30), np.arange(32), limits, -1, 30)
    value = stairs.probabilities(np.array([0.2, 1.0]), np.array([0.0, 0.3]), REACH)
    first = int(np.argmax(limits >= 0))
    ends = [stats.binom.sf(first - 1, 30, 0.2), stats.binom.cdf(limits[-1], 30, 0.3)]
    np.testing.assert_allclose(value, ends, rtol=1e-8)


@for_each(("first", "last"), [(0, 0), (3, 70), (0, 10**8), (10**8 - 50, 10**8), (999, 10**6)])
def test_edges_hold_everything_once(first: int, last: int) -> None:
    edges = spaced(first, last, lambda x: 0.05 * np.sqrt(x))
    assert (edges[0], edges[-1]) == (first, last + 1)
    assert np.all(np.diff(edges) >= 1)
