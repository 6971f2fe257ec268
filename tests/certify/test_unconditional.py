"""The unconditional certifier by enumeration of both binomials: valid, tight, null, mirror; no random numbers.

Probabilities are sums of at most some thousand floats of one sign, so they are good to about 1e-12 (`SUMMED`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from dpaudit.certify import CoinFlip, FixedSides, certify
from dpaudit.certify.cross_check import two_interval_epsilon
from dpaudit.certify.unconditional import NUISANCE_SHARE, ceiling, epsilon_lower, p_value, ratio_bound, statistic
from dpaudit.claims import ApproximateDP, PureDP

SUMMED = 1e-11
SLACK = 0.06  # relative, of a p-value: what cells and blocks may add; where counts are large it is 0.015
LINES = ((0.0, 0.0), (0.1, 0.0), (1.0, 0.0), (3.0, 0.0), (0.5, 0.05), (0.2, 0.3))  # epsilon, delta
ALPHAS = (0.2, 0.05, 0.001)
Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=128)
def p_values(n: int, m: int, epsilon: float, delta: float, alpha: float) -> Floats:
    """The p-value of every outcome of n runs and m."""
    return np.array(
        [[p_value(FixedSides(x, y, n, m), epsilon, delta, alpha) for y in range(m + 1)] for x in range(n + 1)]
    )


def chances(n: int, m: int, p: float, q: float) -> Floats:
    return np.outer(stats.binom.pmf(np.arange(n + 1), n, p), stats.binom.pmf(np.arange(m + 1), m, q))


def allowed_points(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """Points (p, q) on the line and below it."""
    shares = np.concatenate([np.linspace(0.0, min(1.0, (1.0 - delta) / math.exp(epsilon)), 41), [0.97, 1.0]])
    return [(min(1.0, math.exp(epsilon) * q + delta) * part, q) for q in shares for part in (1.0, 0.97, 0.8, 0.4)]


# --- valid ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("n", "m"), [(5, 5), (4, 9), (9, 4)])
@pytest.mark.parametrize(("epsilon", "delta"), LINES)
def test_valid_everywhere_and_at_every_level(n: int, m: int, epsilon: float, delta: float) -> None:
    """Pr(p-value <= u) <= u for every u, on the line and below it."""
    for alpha in ALPHAS:
        values = p_values(n, m, epsilon, delta, alpha).ravel()
        order = np.argsort(values)
        last = np.append(np.diff(values[order]) > 0.0, True)
        for p, q in allowed_points(epsilon, delta):
            reached = np.cumsum(chances(n, m, p, q).ravel()[order])
            assert np.all(reached[last] <= values[order][last] + SUMMED), (alpha, p, q)


@pytest.mark.long
@pytest.mark.parametrize(("n", "m", "epsilon", "delta"), [(40, 40, 1.0, 0.0), (25, 33, 0.5, 0.05)])
def test_valid_and_sharp_with_more_runs(n: int, m: int, epsilon: float, delta: float) -> None:
    """The level is kept at every point, and nearly used up at the worst of them."""
    alpha = 0.05
    refuted = p_values(n, m, epsilon, delta, alpha) <= alpha
    reached = [float(chances(n, m, p, q)[refuted].sum()) for p, q in allowed_points(epsilon, delta)]
    assert 0.85 * alpha <= max(reached) <= alpha + SUMMED


@pytest.mark.long
@pytest.mark.parametrize(("delta", "alpha"), [(0.0, 0.05), (0.05, 0.05), (0.0, 0.001)])
def test_the_bound_covers_the_truth(delta: float, alpha: float) -> None:
    n, m = 6, 9
    bound = np.array(
        [[epsilon_lower(FixedSides(x, y, n, m), delta, alpha) for y in range(m + 1)] for x in range(n + 1)]
    )
    for p in (0.01, 0.1, 0.3, 0.5, 0.7311, 0.9, 1.0):
        for q in (0.001, 0.05, 0.2689, 0.5, 0.9):
            truth = max(0.0, math.log((p - delta) / q)) if p > delta else 0.0
            assert chances(n, m, p, q)[bound > truth].sum() <= alpha + SUMMED, (p, q)


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
    return gamma + max(float(chances(n, m, min(1.0, math.exp(epsilon) * q + delta), q)[inside].sum()) for q in grid)


@pytest.mark.parametrize(
    ("x", "y", "n", "m", "epsilon", "delta", "alpha"),
    [
        (30, 9, 40, 40, 0.6, 0.0, 0.05),
        (40, 9, 40, 40, 0.9, 0.0, 0.05),
        (12, 0, 40, 40, 1.0, 0.0, 0.05),
        (12, 0, 12, 60, 2.5, 0.0, 0.001),
        (28, 15, 30, 80, 1.0, 0.0, 0.001),
        (25, 5, 30, 30, 0.8, 0.1, 0.05),
        (30, 12, 30, 30, 0.3, 0.02, 0.2),
    ],
)
def test_it_is_what_its_definition_says(
    x: int, y: int, n: int, m: int, epsilon: float, delta: float, alpha: float
) -> None:
    counts, expected = FixedSides(x, y, n, m), naive(FixedSides(x, y, n, m), epsilon, delta, alpha)
    value = p_value(counts, epsilon, delta, alpha)
    assert expected * (1.0 - 1e-6) <= value <= expected * (1.0 + SLACK)


# --- the p-value and the bound are one statement ------------------------------------------------------------------

sizes = st.one_of(st.integers(1, 40), st.integers(1, 10**4), st.integers(1, 10**7))
deltas = st.sampled_from([0.0, 0.0, 1e-5, 1e-3, 0.05])
alphas = st.sampled_from([0.05, 0.01, 0.001, 1e-6])
few = settings(derandomize=True, deadline=None, max_examples=40)


@st.composite
def evidences(draw: st.DrawFn) -> FixedSides:
    """Hits of two sides of which P is often the likelier one."""
    n = draw(sizes)
    m = draw(st.one_of(st.just(n), sizes))
    share = draw(st.floats(0.0, 1.0)) ** draw(st.integers(1, 4))
    x = min(n, round(n * share))
    return FixedSides(x, min(m, round(m * share * draw(st.floats(0.0, 1.1)))), n, m)


@pytest.mark.long
@few
@given(counts=evidences(), delta=deltas, alpha=alphas)
def test_the_bound_is_the_largest_epsilon_refuted(counts: FixedSides, delta: float, alpha: float) -> None:
    bound = epsilon_lower(counts, delta, alpha)
    if bound > 0.0:
        assert p_value(counts, bound, delta, alpha) <= alpha
        assert p_value(counts, 0.9 * bound, delta, alpha) <= alpha
        spread = 1.0 if counts.hits_q == 0 else counts.estimate - bound
        assert p_value(counts, bound + 0.05 * abs(spread) + 1e-9, delta, alpha) > alpha


@pytest.mark.long
@few
@given(counts=evidences(), delta=deltas, alpha=alphas, epsilon=st.floats(0.0, 4.0), more=st.floats(1e-3, 1.0))
def test_monotone(counts: FixedSides, delta: float, alpha: float, epsilon: float, more: float) -> None:
    """The p-value rises with epsilon and falls with x, but for the slack; it never is below its share of alpha."""
    value = p_value(counts, epsilon, delta, alpha)
    assert NUISANCE_SHARE * alpha <= value <= 1.0
    assert p_value(counts, epsilon + more, delta, alpha) >= value * (1.0 - SLACK)
    if counts.hits_p < counts.runs_p:
        one_more = FixedSides(counts.hits_p + 1, counts.hits_q, counts.runs_p, counts.runs_q)
        assert p_value(one_more, epsilon, delta, alpha) <= value * (1.0 + SLACK)


@pytest.mark.long
@few
@given(counts=evidences(), delta=deltas, alpha=alphas)
def test_the_bound_falls_with_the_hits_of_the_other_side(counts: FixedSides, delta: float, alpha: float) -> None:
    """The interval of q moves with y, so nothing forces this; at confidences in use it holds."""
    if counts.hits_q < counts.runs_q:
        one_more = FixedSides(counts.hits_p, counts.hits_q + 1, counts.runs_p, counts.runs_q)
        bound = epsilon_lower(counts, delta, alpha)
        assert epsilon_lower(one_more, delta, alpha) <= bound + 1e-3 * (1.0 + bound)


def test_monotone_over_all_outcomes() -> None:
    values = p_values(14, 6, 1.0, 0.0, 0.05)
    assert np.all(np.diff(values, axis=0) <= SLACK * values[:-1])
    refuted = values <= 0.05
    assert np.all(refuted[1:] >= refuted[:-1])
    assert np.all(refuted[:, 1:] <= refuted[:, :-1])


@pytest.mark.long
def test_the_certificate_never_contradicts_itself() -> None:
    """A claim within the slack of the bound: the verdict is that of the p-value, and the bound agrees."""
    for x, y, runs in ((900, 100, 1000), (50, 5, 100), (500_000, 184_000, 10**6)):
        counts = FixedSides(x, y, runs, runs)
        bound = epsilon_lower(counts, 0.0, 0.05)
        for nudge in (-1e-3, -1e-6, 0.0, 1e-6, 1e-3):
            certificate = certify(counts, PureDP(bound + nudge), 0.95, certifier="unconditional")
            assert certificate.refuted == (certificate.lower >= bound + nudge)
            assert certificate.lower == pytest.approx(bound, abs=1.1e-3)


# --- tight ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize(
    ("runs", "q", "loss"),
    [
        (10**4, math.exp(-1.0) / 2.0, 0.01),
        (10**4, 1e-2, 0.01),
        (10**5, 1e-3, 0.01),
        (10**6, math.exp(-1.0) / 2.0, 0.01),
        (10**6, 1e-3, 0.01),
        (10**6, 1e-4, 0.01),
        (10**8, 1e-5, 0.01),
    ],
)
def test_the_bound_is_as_good_as_the_score_bound(runs: int, q: float, loss: float, alpha: float) -> None:
    """At the expected counts of a true log ratio of 1: the shortfall is at most 1 % larger."""
    x, y = round(math.e * q * runs), round(q * runs)
    score = math.log(ratio_bound(x, y, runs, runs, 0.0, float(special.ndtri(1.0 - alpha))))
    value = epsilon_lower(FixedSides(x, y, runs, runs), 0.0, alpha)
    estimate = math.log(x / y)
    assert estimate - value <= (1.0 + loss) * (estimate - score)


def test_table_of_the_field() -> None:
    """Bounds at expected counts with 10^4 and 10^5 runs a side, as the asymptotic score test gives them."""
    for runs, q, expected in ((10**4, 0.5 / math.e, 0.9616), (10**4, 1e-2, 0.8102), (10**5, 1e-3, 0.8095)):
        value = epsilon_lower(FixedSides(round(math.e * q * runs), round(q * runs), runs, runs), 0.0, 0.05)
        assert value == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(("mass", "most"), [(0.5, 0.60), (0.05, 0.40), (0.005, 0.40)])
def test_runs_saved_against_two_intervals(mass: float, most: float) -> None:
    """For the bound that two intervals reach with 10^6 runs a side, this many of them are enough."""

    def expected(runs: int) -> FixedSides:
        return FixedSides(round(runs * mass), round(runs * mass * math.exp(-1.0)), runs, runs)

    runs = 10**6
    two = expected(runs)
    older = two_interval_epsilon(CoinFlip(two.hits_p, two.hits_q, runs, runs), 0.0, 0.95)
    assert epsilon_lower(expected(int(most * runs)), 0.0, 0.05) >= older


@pytest.mark.long
def test_the_ceiling_is_what_all_hits_give() -> None:
    """n runs without a hit of Q, all hits of P: q at most 1 - (alpha - gamma)^(1 / n)."""
    for runs in (10, 1000, 10**6):
        for alpha in (0.05, 0.001):
            value = ceiling(runs, runs, 0.0, alpha)
            exact = -math.log(-math.expm1(math.log(alpha * (1.0 - NUISANCE_SHARE)) / runs))
            assert value == pytest.approx(exact, rel=1e-6)
            assert epsilon_lower(FixedSides(runs, 0, runs, runs), 0.0, alpha) == pytest.approx(value, rel=1e-3)
    assert ceiling(1000, 1000, 0.1, 0.05) < ceiling(1000, 1000, 0.0, 0.05)
    assert ceiling(1000, 0, 0.0, 0.05) == ceiling(0, 10, 0.0, 0.05) == ceiling(9, 9, 1.0, 0.05) == 0.0


# --- null and mirror --------------------------------------------------------------------------------------------


@few
@given(counts=evidences(), delta=deltas, alpha=alphas)
def test_null_equal_sides_certify_nothing(counts: FixedSides, delta: float, alpha: float) -> None:
    runs = counts.runs_p
    equal = FixedSides(counts.hits_p, counts.hits_p, runs, runs)
    assert epsilon_lower(equal, delta, alpha) == 0.0
    assert p_value(equal, 0.0, delta, alpha) == 1.0


@pytest.mark.long
@few
@given(counts=evidences(), delta=deltas, alpha=alphas)
def test_mirror_never_both_sides(counts: FixedSides, delta: float, alpha: float) -> None:
    """The sides exchanged with their runs: at most one of the two has a bound, and one p-value is 1."""
    other = FixedSides(counts.hits_q, counts.hits_p, counts.runs_q, counts.runs_p)
    assert min(epsilon_lower(counts, delta, alpha), epsilon_lower(other, delta, alpha)) == 0.0
    assert max(p_value(counts, 0.0, delta, alpha), p_value(other, 0.0, delta, alpha)) == 1.0


def test_mirror_the_law_is_symmetric() -> None:
    """P and Q exchanged, and the outcomes with them: refuted in the other order with the same probability."""
    refuted = p_values(6, 14, 0.1, 0.0, 0.05) <= 0.05
    straight = chances(6, 14, 0.8, 0.2)[refuted].sum()
    assert straight == pytest.approx(chances(14, 6, 0.2, 0.8).T[refuted].sum(), rel=1e-12)


# --- the ends ---------------------------------------------------------------------------------------------------


def test_nothing_seen_says_nothing() -> None:
    for counts in (
        FixedSides(0, 0, 500, 500),
        FixedSides(0, 0, 0, 0),
        FixedSides(5, 0, 5, 0),
        FixedSides(0, 0, 0, 5),
        FixedSides(0, 9, 9, 9),
        FixedSides(9, 9, 9, 9),
    ):
        for delta in (0.0, 1e-3, 1.0):
            assert epsilon_lower(counts, delta, 0.05) == 0.0
            assert p_value(counts, 1.0, delta, 0.05) == 1.0


def test_hits_that_delta_explains() -> None:
    """Above delta, but within chance of it: no ratio is certified, and the p-value is that of one binomial."""
    counts = FixedSides(105, 0, 1000, 1000)
    assert epsilon_lower(counts, 0.1, 0.05) == 0.0
    assert p_value(counts, 0.0, 0.1, 0.05) >= stats.binom.sf(104, 1000, 0.1)
    assert not certify(FixedSides(500, 0, 500, 500), ApproximateDP(0.0, 1.0), 0.95, certifier="unconditional").refuted


@pytest.mark.long
def test_enormous_claims_and_counts() -> None:
    certain = FixedSides(10**8, 0, 10**8, 10**8)
    for epsilon, refuted in ((10.0, True), (17.0, True), (18.0, False), (40.0, False), (700.0, False), (800.0, False)):
        assert (p_value(certain, epsilon, 0.0, 0.05) <= 0.05) == refuted
    assert p_value(certain, math.inf, 0.0, 0.05) == 1.0


@pytest.mark.long
def test_both_designs_and_uneven_sides() -> None:
    """Given how many runs took each side, coins change nothing; and the sides may differ by any factor."""
    for x, y, n, m in ((90, 10, 100, 100), (90, 40, 100, 1000), (900, 1, 1000, 10)):
        fixed, coins = FixedSides(x, y, n, m), CoinFlip(x, y, n, m)
        assert epsilon_lower(fixed, 0.0, 0.05) == epsilon_lower(coins, 0.0, 0.05) > 0.0
        assert p_value(fixed, 0.5, 0.0, 0.05) == p_value(coins, 0.5, 0.0, 0.05)
