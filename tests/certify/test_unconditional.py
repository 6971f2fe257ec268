"""The unconditional certifier by enumeration of both binomials: valid, tight, null, mirror; and its order of outcomes.

Probabilities are sums of at most some thousand floats of one sign, so they are good to about 1e-12 (`SUMMED`).
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from dpaudit.certify import CoinFlip, FixedSides, certify
from dpaudit.certify.cross_check import two_interval_epsilon
from dpaudit.certify.unconditional import (
    NUISANCE_SHARE,
    Region,
    ceiling,
    epsilon_lower,
    p_value,
    ratio_bound,
    statistic,
)
from dpaudit.claims import ApproximateDP, PureDP
from tests.cases import for_each
from tests.certify.exact import chances_of_sides, least_epsilon, power

SUMMED = 1e-11
SLACK = 0.06  # relative, of a p-value: what cells and blocks may add; where counts are large it is 0.015
Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=128)
def p_values(n: int, m: int, epsilon: float, delta: float, alpha: float) -> Floats:
    """The p-value of every outcome of n runs and m."""
    return np.array(
        [[p_value(FixedSides(x, y, n, m), epsilon, delta, alpha) for y in range(m + 1)] for x in range(n + 1)]
    )


SIZES_AND_LINES = [
    (n, m, epsilon, delta)
    for n, m in ((5, 5), (4, 9), (9, 4))
    for epsilon, delta in ((0.0, 0.0), (0.1, 0.0), (1.0, 0.0), (3.0, 0.0), (0.5, 0.05), (0.2, 0.3))
]
BY_DAY = [SIZES_AND_LINES[place] for place in (0, 7, 14, 9, 16, 5)]  # each line once, each size twice


@pytest.mark.long
@for_each(("n", "m", "epsilon", "delta"), BY_DAY, nightly=[case for case in SIZES_AND_LINES if case not in BY_DAY])
def test_valid_everywhere_and_at_every_level(n: int, m: int, epsilon: float, delta: float) -> None:
    """Pr(p-value <= u) <= u for every u, on the line and below it."""
    shares = np.concatenate([np.linspace(0.0, min(1.0, (1.0 - delta) / math.exp(epsilon)), 21), [0.97, 1.0]])
    for alpha in (0.2, 0.05, 0.001):
        values = p_values(n, m, epsilon, delta, alpha).ravel()
        order = np.argsort(values)
        last = np.append(np.diff(values[order]) > 0.0, True)
        for q in shares.tolist():
            for part in (1.0, 0.97, 0.8, 0.4):
                p = part * min(1.0, math.exp(epsilon) * q + delta)
                reached = np.cumsum(chances_of_sides(n, m, p, q).ravel()[order])
                assert np.all(reached[last] <= values[order][last] + SUMMED), (alpha, p, q)


@pytest.mark.long
@for_each(("n", "m", "epsilon", "delta"), [(40, 40, 1.0, 0.0), (25, 33, 0.5, 0.05)])
def test_sharp_with_more_runs(n: int, m: int, epsilon: float, delta: float) -> None:
    """The level is kept on the line, and nearly used up at the worst of its points."""

    @cache
    def refuted(x: int, y: int) -> bool:
        return p_value(FixedSides(x, y, n, m), epsilon, delta, 0.05) <= 0.05

    reached = [
        power(refuted, stats.binom(m, q), lambda y: n + 0 * y, min(1.0, math.exp(epsilon) * q + delta), rare=0.0)
        for q in np.linspace(0.01, (1.0 - delta) / math.exp(epsilon), 40).tolist()
    ]
    assert 0.85 * 0.05 <= max(reached) <= 0.05 + SUMMED


@pytest.mark.long
@for_each(("n", "m", "delta", "alpha"), [(4, 7, 0.0, 0.05), (6, 5, 0.05, 0.05), (6, 5, 0.0, 0.001)])
def test_the_bound_covers_the_truth(n: int, m: int, delta: float, alpha: float) -> None:
    bound = np.array(
        [[epsilon_lower(FixedSides(x, y, n, m), delta, alpha) for y in range(m + 1)] for x in range(n + 1)]
    )
    for p in (0.01, 0.1, 0.3, 0.5, 0.7311, 0.9, 1.0):
        for q in (0.001, 0.05, 0.2689, 0.5, 0.9):
            wrong = bound > least_epsilon(p, q, delta)
            assert chances_of_sides(n, m, p, q)[wrong].sum() <= alpha + SUMMED, (p, q)


def naive(counts: FixedSides, epsilon: float, delta: float, alpha: float) -> float:
    """The same p-value from its definition: every outcome by its score statistic, and a grid of q for the supremum."""
    x, y, n, m = counts.hits_p, counts.hits_q, counts.runs_p, counts.runs_q
    z, gamma = stats.norm.isf(alpha), NUISANCE_SHARE * alpha
    bound = ratio_bound(x, y, n, m, delta, z)
    inside = np.array(
        [[statistic(i, j, n, m, bound, delta) >= z if i + j else False for j in range(m + 1)] for i in range(n + 1)]
    )
    low = stats.beta.ppf(gamma / 2.0, y, m - y + 1) if y else 0.0
    high = stats.beta.isf(gamma / 2.0, y + 1, m - y) if y < m else 1.0
    grid = np.linspace(low, min(high, (1.0 - delta) / math.exp(epsilon)), 300)
    return gamma + max(
        float(chances_of_sides(n, m, min(1.0, math.exp(epsilon) * q + delta), q)[inside].sum()) for q in grid
    )


@for_each(
    ("counts", "epsilon", "delta", "alpha"),
    [
        (FixedSides(30, 9, 40, 40), 0.6, 0.0, 0.05),
        (FixedSides(40, 9, 40, 40), 0.9, 0.0, 0.05),
        (FixedSides(12, 0, 40, 40), 1.0, 0.0, 0.05),
        (FixedSides(12, 0, 12, 60), 2.5, 0.0, 0.001),
        (FixedSides(28, 15, 30, 80), 1.0, 0.0, 0.001),
        (FixedSides(25, 5, 30, 30), 0.8, 0.1, 0.05),
        (FixedSides(30, 12, 30, 30), 0.3, 0.02, 0.2),
    ],
)
def test_it_is_what_its_definition_says(counts: FixedSides, epsilon: float, delta: float, alpha: float) -> None:
    expected, value = naive(counts, epsilon, delta, alpha), p_value(counts, epsilon, delta, alpha)
    assert expected * (1.0 - 1e-6) <= value <= expected * (1.0 + SLACK)


sizes = st.one_of(st.integers(1, 40), st.integers(1, 10**4), st.integers(1, 10**7))


@st.composite
def evidences(draw: st.DrawFn) -> FixedSides:
    """Hits of two sides of which P is often the likelier one."""
    n = draw(sizes)
    m = draw(st.one_of(st.just(n), sizes))
    share = draw(st.floats(0.0, 1.0)) ** draw(st.integers(1, 4))
    x = min(n, round(n * share))
    return FixedSides(x, min(m, round(m * share * draw(st.floats(0.0, 1.1)))), n, m)


@pytest.mark.long
@settings(derandomize=True, deadline=None, max_examples=18)
@given(
    counts=evidences(),
    delta=st.sampled_from([0.0, 0.0, 1e-5, 1e-3, 0.05]),
    alpha=st.sampled_from([0.05, 0.01, 0.001, 1e-6]),
    epsilon=st.floats(0.0, 4.0),
    more=st.floats(1e-3, 1.0),
)
def test_bounds_and_p_values_of_any_size(
    counts: FixedSides, delta: float, alpha: float, epsilon: float, more: float
) -> None:
    """The bound is the largest epsilon refuted, and of two sides one has none. It falls with y, though the interval of
    q moves with y: at confidences in use. The p-value rises with epsilon and falls with x, but for the slack."""
    x, y, n, m = counts.hits_p, counts.hits_q, counts.runs_p, counts.runs_q
    bound = epsilon_lower(counts, delta, alpha)
    if bound > 0.0:
        assert p_value(counts, bound, delta, alpha) <= alpha
        assert p_value(counts, 0.9 * bound, delta, alpha) <= alpha
        spread = 1.0 if y == 0 else counts.estimate - bound
        assert p_value(counts, bound + 0.05 * abs(spread) + 1e-9, delta, alpha) > alpha
    if y < m:
        assert epsilon_lower(FixedSides(x, y + 1, n, m), delta, alpha) <= bound + 1e-3 * (1.0 + bound)
    value = p_value(counts, epsilon, delta, alpha)
    assert NUISANCE_SHARE * alpha <= value <= 1.0
    assert p_value(counts, epsilon + more, delta, alpha) >= value * (1.0 - SLACK)
    if x < n:
        assert p_value(FixedSides(x + 1, y, n, m), epsilon, delta, alpha) <= value * (1.0 + SLACK)
    equal, exchanged = FixedSides(x, x, n, n), FixedSides(y, x, m, n)
    assert (epsilon_lower(equal, delta, alpha), p_value(equal, 0.0, delta, alpha)) == (0.0, 1.0)
    assert min(bound, epsilon_lower(exchanged, delta, alpha)) == 0.0
    assert max(p_value(counts, 0.0, delta, alpha), p_value(exchanged, 0.0, delta, alpha)) == 1.0


@pytest.mark.long
@for_each(("x", "y", "runs"), [(50, 5, 100), (500_000, 184_000, 10**6)])
def test_the_certificate_never_contradicts_itself(x: int, y: int, runs: int) -> None:
    """A claim within the slack of the bound: the verdict is that of the p-value, and the bound agrees."""
    counts = FixedSides(x, y, runs, runs)
    bound = epsilon_lower(counts, 0.0, 0.05)
    for nudge in (-1e-3, -1e-6, 0.0, 1e-6, 1e-3) if runs < 10**6 else (-1e-6, 1e-6):
        certificate = certify(counts, PureDP(bound + nudge), 0.95, certifier="unconditional")
        assert certificate.refuted == (certificate.lower >= bound + nudge)
        assert certificate.lower == pytest.approx(bound, abs=1.1e-3)


@for_each("alpha", [0.05, 0.001])
@for_each(
    ("runs", "q"),
    [(10**4, math.exp(-1.0) / 2.0), (10**4, 1e-2), (10**5, 1e-3), (10**6, 1e-4), (10**8, 1e-5)],
    nightly=[(10**6, math.exp(-1.0) / 2.0), (10**6, 1e-3)],
)
def test_the_bound_is_as_good_as_the_score_bound(runs: int, q: float, alpha: float) -> None:
    """At the expected counts of a true log ratio of 1: the shortfall is at most 1 % larger."""
    x, y = round(math.e * q * runs), round(q * runs)
    score = math.log(ratio_bound(x, y, runs, runs, 0.0, float(special.ndtri(1.0 - alpha))))
    value, estimate = epsilon_lower(FixedSides(x, y, runs, runs), 0.0, alpha), math.log(x / y)
    assert estimate - value <= 1.01 * (estimate - score)


def test_tables_of_the_field_and_runs_saved_against_two_intervals() -> None:
    """As the asymptotic score test has it; for the bound of two intervals with 10^6 runs a side, a part is enough."""
    for runs, q, expected in ((10**4, 0.5 / math.e, 0.9616), (10**4, 1e-2, 0.8102), (10**5, 1e-3, 0.8095)):
        value = epsilon_lower(FixedSides(round(math.e * q * runs), round(q * runs), runs, runs), 0.0, 0.05)
        assert value == pytest.approx(expected, abs=2e-3)
    for mass, most in ((0.5, 0.60), (0.05, 0.40), (0.005, 0.40)):
        (x, y, runs), (a, b, fewer) = (
            (round(runs * mass), round(runs * mass * math.exp(-1.0)), runs) for runs in (10**6, int(most * 10**6))
        )
        older = two_interval_epsilon(CoinFlip(x, y, runs, runs), 0.0, 0.95)
        assert epsilon_lower(FixedSides(a, b, fewer, fewer), 0.0, 0.05) >= older


@pytest.mark.long
def test_the_ceiling_is_what_all_hits_give() -> None:
    """n runs without a hit of Q, all hits of P: q at most 1 - (alpha - gamma)^(1 / n)."""
    for runs in (10, 1000, 10**6):
        for alpha in (0.05, 0.001):
            value = ceiling(runs, runs, 0.0, alpha)
            exact = -math.log(-math.expm1(math.log(alpha * (1.0 - NUISANCE_SHARE)) / runs))
            assert value == pytest.approx(exact, rel=1e-6)
            if alpha == 0.05 or runs == 10:
                assert epsilon_lower(FixedSides(runs, 0, runs, runs), 0.0, alpha) == pytest.approx(value, rel=1e-3)
    assert ceiling(1000, 1000, 0.1, 0.05) < ceiling(1000, 1000, 0.0, 0.05)
    assert ceiling(1000, 0, 0.0, 0.05) == ceiling(0, 10, 0.0, 0.05) == ceiling(9, 9, 1.0, 0.05) == 0.0


@for_each("x, y, n, m", [(0, 0, 500, 500), (0, 0, 0, 0), (5, 0, 5, 0), (0, 0, 0, 5), (0, 9, 9, 9), (9, 9, 9, 9)])
def test_nothing_seen_says_nothing(x: int, y: int, n: int, m: int) -> None:
    for delta in (0.0, 1e-3, 1.0):
        assert epsilon_lower(FixedSides(x, y, n, m), delta, 0.05) == 0.0
        assert p_value(FixedSides(x, y, n, m), 1.0, delta, 0.05) == 1.0


def test_hits_that_delta_explains() -> None:
    """Above delta, but within chance of it: no ratio is certified, and the p-value is that of one binomial."""
    counts = FixedSides(105, 0, 1000, 1000)
    assert epsilon_lower(counts, 0.1, 0.05) == 0.0
    assert p_value(counts, 0.0, 0.1, 0.05) >= stats.binom.sf(104, 1000, 0.1)
    assert not certify(FixedSides(500, 0, 500, 500), ApproximateDP(0.0, 1.0), 0.95, certifier="unconditional").refuted


@pytest.mark.long
def test_enormous_claims_and_both_designs() -> None:
    """Given how many runs took each side, coins change nothing; and the sides may differ by any factor."""
    certain = FixedSides(10**8, 0, 10**8, 10**8)
    for epsilon, refuted in ((17.0, True), (18.0, False), (800.0, False)):
        assert (p_value(certain, epsilon, 0.0, 0.05) <= 0.05) == refuted
    assert p_value(certain, math.inf, 0.0, 0.05) == 1.0
    for x, y, n, m in ((90, 40, 100, 1000), (900, 1, 1000, 10)):
        fixed, coins = FixedSides(x, y, n, m), CoinFlip(x, y, n, m)
        assert epsilon_lower(fixed, 0.0, 0.05) == epsilon_lower(coins, 0.0, 0.05) > 0.0
        assert p_value(fixed, 0.5, 0.0, 0.05) == p_value(coins, 0.5, 0.0, 0.05)


def by_grid(x: int, y: int, n: int, m: int, ratio: float, offset: float) -> float:
    """T with the likeliest point of the line found on a grid, refined twice."""
    low, high = 0.0, min(1.0, (1.0 - offset) / ratio)
    for _ in range(4):
        q = np.linspace(low, high, 2001)
        p = np.minimum(1.0, ratio * q + offset)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [np.where(k > 0, k * np.log(share), 0.0) for k, share in ((x, p), (n - x, 1.0 - p))]
            terms += [np.where(k > 0, k * np.log(share), 0.0) for k, share in ((y, q), (m - y, 1.0 - q))]
        best = int(np.argmax(np.nan_to_num(sum(terms), nan=-np.inf)))
        low, high = q[max(0, best - 1)], q[min(2000, best + 1)]
    q0 = float(q[best])
    p0 = min(1.0, ratio * q0 + offset)
    return (x / n - ratio * y / m - offset) / math.sqrt(p0 * (1.0 - p0) / n + ratio**2 * q0 * (1.0 - q0) / m)


@for_each(("n", "m"), [(7, 12), (40, 25)])
def test_the_statistic_is_its_definition(n: int, m: int) -> None:
    """On a grid; and at a ratio of 1 without an offset, the pooled test of the books."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        x, y = int(rng.integers(1, n + 1)), int(rng.integers(0, m + 1))
        ratio, offset = float(rng.choice([0.5, 1.0, 1.7, 6.0])), float(rng.choice([0.0, 0.01, 0.3]))
        if x / n > ratio * y / m + offset:
            value = statistic(x, y, n, m, ratio, offset)
            assert value == pytest.approx(by_grid(x, y, n, m, ratio, offset), rel=1e-5), (x, y, ratio, offset)
    for x, y in ((n // 2, m // 5), (n, m // 2)):
        pooled = (x + y) / (n + m)
        expected = (x / n - y / m) / math.sqrt(pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m))
        assert statistic(x, y, n, m, 1.0, 0.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
@for_each("offset", [0.0, 1e-3, 0.02, 0.5])
@for_each(("n", "m"), [(5, 5), (7, 30), (30, 7), (25, 3)])
def test_the_order_is_nested_and_the_region_is_what_it_says(n: int, m: int, offset: float) -> None:
    """T rises in x and falls in y and in the ratio where x / n lies above the line: on this rest the nested order, the
    staircase and the cells. Not one outcome of T >= z is left out of the region, none further than rounding is in."""
    before = None
    for ratio in (0.3, 1.0, math.e, 20.0, 200.0):
        value = np.array([[statistic(x, y, n, m, ratio, offset) for y in range(m + 1)] for x in range(n + 1)])
        for z in (0.5, 1.645, 4.75):
            limits = Region(n, m, ratio, offset, z).limits(np.arange(n + 1))
            expected = [int(np.max(np.flatnonzero(row >= z), initial=-1)) for row in value]
            assert limits.tolist() == expected, (ratio, z)
        above = value > 0.0
        assert np.all(np.diff(value, axis=0)[above[1:] & above[:-1]] >= -1e-9)
        assert np.all(np.diff(value, axis=1)[above[:, 1:] & above[:, :-1]] <= 1e-9)
        assert before is None or np.all((value <= before + 1e-9)[above])
        before = value


@for_each(
    ("x", "y", "n", "m", "offset"),
    [(30, 10, 100, 100, 0.0), (30, 0, 100, 50, 0.01), (100, 3, 100, 400, 0.2), (5, 4, 9, 9, 0.0)],
)
def test_the_bound_is_the_root(x: int, y: int, n: int, m: int, offset: float) -> None:
    value = ratio_bound(x, y, n, m, offset, 1.645)
    assert statistic(x, y, n, m, value, offset) == pytest.approx(1.645, rel=1e-6)
    assert statistic(x, y, n, m, value, offset) >= 1.645
    assert y <= Region(n, m, value, offset, 1.645).limits(np.array([x]))[0]


def test_where_there_is_no_bound() -> None:
    assert ratio_bound(30, 0, 100, 100, 0.29, 1.645) == 0.0  # within chance of the offset alone
    assert ratio_bound(0, 0, 10, 10, 0.0, 1.645) == 0.0


def test_many_values_at_once_are_found_in_strides() -> None:
    region = Region(10**8, 10**8, 5e6, 0.0, 1.645)
    x = np.arange(0, 10**8, 9973)
    every = np.concatenate([region.limits(part) for part in np.array_split(x, 10)])
    assert region.limits(x).tolist() == every.tolist()
