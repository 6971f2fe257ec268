"""The certifier by exact enumeration of the coin-flip design: valid, tight, null, mirror; no random numbers.

Probabilities are sums of at most 10^5 floats of one sign, so they are good to about 1e-12 (`SUMMED`).
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

from dpaudit.base.validate import error_probability
from dpaudit.certify import CoinFlip, certify, coin_flip
from dpaudit.certify.coin_flip import epsilon_lower
from dpaudit.claims import ApproximateDP, Claim, PureDP
from tests.certify.exact import chances, outcomes

SUMMED = 1e-11
CLAIMS: tuple[Claim, ...] = (
    PureDP(0.0),
    PureDP(0.1),
    PureDP(1.0),
    PureDP(3.0),
    ApproximateDP(0.0, 0.1),
    ApproximateDP(0.5, 1e-3),
    ApproximateDP(1.0, 0.05),
    ApproximateDP(1.0, 0.3),
    ApproximateDP(0.2, 0.8),
)
CONFIDENCES = (0.8, 0.95, 0.999)
Floats = npt.NDArray[np.float64]


def evidence(x: int, y: int, runs: int) -> CoinFlip:
    """The evidence with these hits; how the other runs fell decides nothing."""
    spare = (runs - x - y) // 2
    return CoinFlip(x, y, x + spare, runs - x - spare)


def p_value(counts: CoinFlip, claim: Claim) -> float:
    """The p-value of a claim at its own delta."""
    return coin_flip.p_value(counts, claim.epsilon_at(claim.delta), claim.delta)


@lru_cache(maxsize=64)
def p_values(claim: Claim, runs: int) -> Floats:
    """The p-value of every outcome of `runs` runs."""
    return np.array([p_value(evidence(int(x), int(y), runs), claim) for x, y in outcomes(runs)])


@lru_cache(maxsize=64)
def bounds(delta: float, runs: int, alpha: float) -> Floats:
    """The bound of every outcome of `runs` runs."""
    return np.array([epsilon_lower(evidence(int(x), int(y), runs), delta, alpha) for x, y in outcomes(runs)])


def allowed_points(claim: Claim) -> list[tuple[float, float]]:
    """Points (p, q) of the region: its boundary, and inside it."""
    points = []
    for q in (0.0, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.2689, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0):
        edge = claim.max_probability(q)
        points += [(edge * part, q) for part in (1.0, 0.999, 0.95, 0.8, 0.5, 0.1, 0.0)]
    return points


# --- valid ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [3, 17, 60])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_valid_everywhere_in_the_region(claim: Claim, runs: int) -> None:
    """At every allowed point the probability of a refutation is at most alpha, whatever alpha."""
    cases, values = outcomes(runs), p_values(claim, runs)
    for p, q in allowed_points(claim):
        probability = chances(cases, runs, p, q)
        assert probability.sum() == pytest.approx(1.0, abs=SUMMED)
        for confidence in CONFIDENCES:
            alpha = error_probability(confidence)
            assert probability[values <= alpha].sum() <= alpha + SUMMED, (p, q)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_p_value_is_one_at_every_level(claim: Claim) -> None:
    """Pr(p-value <= u) <= u for all u, not only for the levels that people choose: a p-value indeed."""
    runs = 60
    cases, values = outcomes(runs), p_values(claim, runs)
    order = np.argsort(values)
    for p, q in allowed_points(claim)[::3]:
        reached = np.cumsum(chances(cases, runs, p, q)[order])
        assert np.all(reached <= values[order] + SUMMED), (p, q)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05, 0.3])
@pytest.mark.parametrize("runs", [17, 60])
def test_the_bound_covers_the_truth(delta: float, runs: int) -> None:
    """At any (p, q): the bound exceeds the least epsilon that allows the point with probability at most alpha."""
    cases = outcomes(runs)
    for confidence in CONFIDENCES:
        alpha = error_probability(confidence)
        bound = bounds(delta, runs, alpha)
        for p in (0.01, 0.1, 0.3, 0.5, 0.7311, 0.9, 1.0):
            for q in (0.001, 0.05, 0.2689, 0.5, 0.9):
                truth = max(0.0, math.log((p - delta) / q)) if p > delta else 0.0
                assert chances(cases, runs, p, q)[bound > truth].sum() <= alpha + SUMMED, (p, q)


# --- the p-value and the bound are one statement ------------------------------------------------------------------


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_refuted_exactly_where_the_bound_exceeds_the_claim(claim: Claim) -> None:
    """Over all outcomes; at a bound within rounding of the claim either may be the case."""
    epsilon = float(getattr(claim, "epsilon"))
    for runs in (3, 17, 60):
        for confidence in CONFIDENCES:
            alpha = error_probability(confidence)
            refuted, bound = p_values(claim, runs) <= alpha, bounds(claim.delta, runs, alpha)
            rounding = np.abs(bound - epsilon) <= 1e-7
            assert np.all((refuted == (bound > epsilon)) | rounding)
            assert np.count_nonzero(rounding & (bound > 0.0)) <= 2


hits = st.one_of(st.integers(0, 40), st.integers(0, 10**4), st.integers(0, 10**7))
levels = st.sampled_from([0.8, 0.95, 0.99, 0.999, 0.999999])
small_deltas = st.sampled_from([0.0, 1e-9, 1e-5, 1e-3, 0.1])
exactly = settings(derandomize=True, deadline=None, max_examples=150)


@exactly
@given(
    x=hits, y=hits, spare=hits, delta=small_deltas, confidence=levels, nudge=st.sampled_from([-1e-3, -1e-6, 1e-6, 1e-3])
)
def test_at_any_size_too(x: int, y: int, spare: int, delta: float, confidence: float, nudge: float) -> None:
    """A claim a hair below the bound is refuted, and one a hair above is not."""
    counts = evidence(x, y, x + y + spare)
    bound = epsilon_lower(counts, delta, error_probability(confidence))
    # near certainty a relative slack of 1e-9 on the share is one of 1e-9 e^bound on the odds
    if bound <= 0.0 or bound + nudge < 0.0 or abs(nudge) < 1e-8 * math.exp(bound):
        return
    claim = ApproximateDP(bound + nudge, delta)
    assert certify(counts, claim, confidence).refuted == (nudge < 0.0)


@exactly
@given(x=hits, y=hits, spare=hits, delta=small_deltas, epsilon=st.floats(0.0, 5.0))
def test_the_p_value_is_the_least_alpha_that_refutes(x: int, y: int, spare: int, delta: float, epsilon: float) -> None:
    """The rule itself, run at a little more than the p-value and at a little less."""
    counts, claim = evidence(x, y, x + y + spare), ApproximateDP(epsilon, delta)
    alpha = p_value(counts, claim)
    tolerance = 1e-8 * (1.0 + math.exp(epsilon))
    if alpha < 0.999:
        assert epsilon_lower(counts, delta, alpha * 1.001) > epsilon - tolerance
    if alpha > 1e-290:
        assert epsilon_lower(counts, delta, min(1.0, alpha) * 0.999) < epsilon + tolerance


# --- tight ------------------------------------------------------------------------------------------------------


def level_reached(claim: Claim, runs: int, p: float, q: float, alpha: float) -> float:
    """Pr(refuted) for many runs: hits of Q by hits of Q, the least hits of P that refute found by bisection.

    The least hits rise with y, so each is sought a few above the one before, in steps that double.
    """
    law = stats.binom(runs, q / 2.0)

    def refuted(x: int, y: int) -> bool:
        return p_value(evidence(x, y, runs), claim) <= alpha

    total, low = 0.0, 0
    for y in range(int(law.ppf(1e-9)), int(law.ppf(1.0 - 1e-9)) + 1):
        if not refuted(runs - y, y):
            continue
        high, step = low, 1
        while high < runs - y and not refuted(high, y):
            low, high, step = high + 1, min(runs - y, high + step), 2 * step
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if refuted(middle, y) else (middle + 1, high)
        total += law.pmf(y) * stats.binom.sf(low - 1, runs - y, p / (2.0 - q))
    return float(total)


@pytest.mark.long
@pytest.mark.parametrize(
    ("claim", "runs", "q", "least"),
    [
        (PureDP(1.0), 2_000, 0.2689, 0.90),  # Laplace and randomised response
        (PureDP(1.0), 20_000, 0.01, 0.85),  # a hundred hits
        (PureDP(1.0), 20_000, 0.001, 0.55),  # ten
        (PureDP(0.1), 2_000, 0.45, 0.90),
        (PureDP(3.0), 20_000, 0.04, 0.90),
        (ApproximateDP(1.0, 1e-3), 20_000, 0.2689, 0.70),
        (ApproximateDP(1.0, 1e-5), 20_000, 0.05, 0.65),
        (ApproximateDP(0.2, 0.01), 20_000, 0.4, 0.45),
    ],
    ids=str,
)
def test_tight_at_the_boundary(claim: Claim, runs: int, q: float, least: float) -> None:
    """At the boundary the claim is refuted with at least this part of alpha: the level is used, not hoarded.

    With delta the certificate also pays for the quantile of the delta part, and a tenth of alpha.
    """
    reached = level_reached(claim, runs, claim.max_probability(q), q, 0.05)
    assert least * 0.05 <= reached <= 0.05 + SUMMED


@pytest.mark.parametrize("ratio", [1.5, math.e, 20.0])
@pytest.mark.parametrize("few", [50, 1_000, 100_000])
def test_the_bound_is_as_good_as_the_asymptotic_one(ratio: float, few: int) -> None:
    """ln(x / y) - z sqrt(1 / x + 1 / y), the Wald bound of a log ratio of Poisson counts."""
    x, y = round(ratio * few), few
    deviation = math.sqrt(1.0 / x + 1.0 / y)
    for confidence in (0.95, 0.999):
        z = float(special.ndtri(confidence))
        expected = max(0.0, math.log(x / y) - z * deviation)
        bound = epsilon_lower(CoinFlip(x, y, 10 * x, 10 * x), 0.0, error_probability(confidence))
        assert bound == pytest.approx(expected, abs=(0.15 * z + 1.2) * deviation**2 + 2e-7)


def test_the_ceiling_is_what_all_hits_give() -> None:
    """ln(1 / (alpha^(-1/t) - 1)) for t hits on one side and none on the other."""
    ceiling = coin_flip.CoinFlipCertifier().ceiling
    for hits_p in (10, 1_000, 10**6):
        for alpha in (0.05, 0.001):
            exact = -math.log(math.expm1(-math.log(alpha) / hits_p))
            assert ceiling(hits_p, hits_p, 0.0, alpha) == pytest.approx(exact, rel=1e-3)
            assert ceiling(hits_p, hits_p, 0.0, alpha) <= exact
    assert ceiling(1_000, 1_000, 1.0, 0.05) < ceiling(1_000, 1_000, 0.1, 0.05) < ceiling(1_000, 1_000, 0.0, 0.05)


# --- null and mirror --------------------------------------------------------------------------------------------


@exactly
@given(x=hits, y=hits, spare=hits, delta=small_deltas, confidence=levels)
def test_null_equal_sides_certify_nothing(x: int, y: int, spare: int, delta: float, confidence: float) -> None:
    low, high = sorted((x, y))
    certificate = certify(evidence(low, high, x + y + spare), ApproximateDP(0.0, delta), confidence)
    assert (certificate.lower, certificate.epsilon_lower) == (0.0, 0.0)
    assert not certificate.refuted
    assert certificate.p_value > 0.49


@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 1.0])
def test_null_the_bound_is_zero_but_for_alpha(p: float) -> None:
    runs = 60
    for confidence in CONFIDENCES:
        alpha = error_probability(confidence)
        for delta in (0.0, 0.05):
            positive = bounds(delta, runs, alpha) > 0.0
            assert chances(outcomes(runs), runs, p, p)[positive].sum() <= alpha + SUMMED


@exactly
@given(x=hits, y=hits, spare=hits, delta=small_deltas, epsilon=st.floats(0.0, 3.0), confidence=levels)
def test_mirror_never_both_sides(x: int, y: int, spare: int, delta: float, epsilon: float, confidence: float) -> None:
    """The same counts with the sides exchanged: at most one of the two has a bound, and they look at opposite tails."""
    runs, claim = x + y + spare, ApproximateDP(epsilon, delta)
    one, other = (certify(evidence(a, b, runs), claim, confidence) for a, b in ((x, y), (y, x)))
    assert min(one.lower, other.lower) == 0.0
    assert one.p_value + other.p_value >= 1.0 or min(one.p_value, other.p_value) < 0.5 <= max(
        one.p_value, other.p_value
    )


def test_mirror_the_law_is_symmetric() -> None:
    """P and Q exchanged, and the outcomes exchanged with them: the same numbers."""
    runs = 17
    for claim in CLAIMS:
        table = dict(zip(map(tuple, outcomes(runs).tolist()), p_values(claim, runs), strict=True))
        straight = chances(outcomes(runs), runs, 0.6, 0.2)
        exchanged = chances(outcomes(runs)[:, ::-1], runs, 0.2, 0.6)
        np.testing.assert_allclose(straight, exchanged, rtol=1e-12)
        assert all(table[x, y] == p_value(evidence(x, y, runs), claim) for x, y in table)


# --- monotone ---------------------------------------------------------------------------------------------------


@pytest.mark.long
@exactly
@given(
    x=hits,
    y=hits,
    spare=hits,
    more=st.integers(1, 1000),
    delta=small_deltas,
    epsilon=st.floats(0, 3),
    confidence=levels,
)
def test_monotone(x: int, y: int, spare: int, more: int, delta: float, epsilon: float, confidence: float) -> None:
    """More hits of P speak against the claim, more of Q for it; so do more delta, epsilon and confidence."""
    claim, runs = ApproximateDP(epsilon, delta), x + y + spare + more

    def figures(
        x: int, y: int, runs: int = runs, claim: Claim = claim, confidence: float = confidence
    ) -> tuple[float, float]:
        certificate = certify(evidence(x, y, runs), claim, confidence)
        return certificate.lower, -certificate.p_value

    here = figures(x, y)
    assert np.all(np.subtract(figures(x + more, y), here) >= 0.0)
    assert np.all(np.subtract(figures(x, y + more), here) <= 0.0)
    assert figures(x, y, claim=ApproximateDP(epsilon, min(1.0, 2.0 * delta + 0.01)))[0] <= here[0]
    assert figures(x, y, claim=ApproximateDP(epsilon + 0.1, delta))[1] <= here[1] + 1e-12
    assert figures(x, y, confidence=0.5 + confidence / 2.0)[0] <= here[0]
    assert figures(x, y, confidence=0.5 + confidence / 2.0)[1] == here[1]
    longer = figures(x, y, runs=2 * runs)
    assert longer == here if delta == 0.0 else longer[0] <= here[0]


@pytest.mark.parametrize(
    "claim", [PureDP(0.0), PureDP(1.0), ApproximateDP(1.0, 0.05), ApproximateDP(0.2, 0.8)], ids=str
)
def test_monotone_over_all_outcomes(claim: Claim) -> None:
    runs = 40
    table = dict(zip(map(tuple, outcomes(runs).tolist()), p_values(claim, runs), strict=True))
    for (x, y), value in table.items():
        assert (x + 1, y) not in table or table[x + 1, y] <= value
        assert (x, y + 1) not in table or table[x, y + 1] >= value
        assert (x + 1, y - 1) not in table or table[x + 1, y - 1] <= value


# --- the ends ---------------------------------------------------------------------------------------------------


def test_nothing_seen_says_nothing() -> None:
    for claim in CLAIMS:
        certificate = certify(CoinFlip(0, 0, 500, 500), claim, 0.95)
        assert (certificate.lower, certificate.p_value, certificate.refuted) == (0.0, 1.0, False)
        empty = certify(CoinFlip(0, 0, 0, 0), claim, 0.95)
        assert (empty.lower, empty.refuted) == (0.0, False)


def test_delta_one_can_never_be_refuted() -> None:
    """Its quantile takes all hits that chance would give; a bound needs more hits than half of all runs."""
    assert certify(CoinFlip(500, 0, 500, 500), ApproximateDP(0.0, 1.0), 0.95).lower == 0.0
    assert not certify(CoinFlip(500, 0, 500, 500), ApproximateDP(0.0, 1.0), 0.95).refuted


def test_enormous_claims_and_counts() -> None:
    certain = CoinFlip(10**10, 0, 10**10, 10**10)
    assert certify(certain, PureDP(10.0), 0.999).refuted
    assert not certify(certain, PureDP(40.0), 0.999).refuted
    assert not certify(certain, PureDP(800.0), 0.999).refuted
    assert math.isfinite(certify(certain, PureDP(1.0), 0.999).lower)
