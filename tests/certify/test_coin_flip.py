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
from tests.cases import for_each
from tests.certify.exact import chances, least_epsilon, outcomes, power

SUMMED = 1e-11
CLAIMS: tuple[PureDP | ApproximateDP, ...] = (
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


@for_each("runs", [3, 17, 60])
@for_each("claim", CLAIMS)
def test_valid_everywhere_in_the_region_and_at_every_level(claim: Claim, runs: int) -> None:
    """Pr(p-value <= u) <= u for all u, on the boundary and below it: a p-value indeed."""
    cases, values = outcomes(runs), p_values(claim, runs)
    order = np.argsort(values)
    for q in (0.0, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.2689, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0):
        for part in (1.0, 0.999, 0.95, 0.8, 0.5, 0.1, 0.0):
            reached = np.cumsum(chances(cases, runs, part * claim.max_probability(q), q)[order])
            assert reached[-1] == pytest.approx(1.0, abs=SUMMED)
            assert np.all(reached <= values[order] + SUMMED), (part, q)


@for_each("delta", [0.0, 1e-3, 0.05, 0.3])
def test_the_bound_covers_the_truth(delta: float) -> None:
    """At any (p, q), equal sides among them, it is too large with probability alpha at most."""
    runs = 60
    for alpha in map(error_probability, CONFIDENCES):
        for p in (0.01, 0.1, 0.3, 0.5, 0.7311, 0.9, 1.0):
            for q in (0.001, 0.01, 0.05, 0.2689, 0.5, 0.9, 1.0):
                wrong = bounds(delta, runs, alpha) > least_epsilon(p, q, delta)
                assert chances(outcomes(runs), runs, p, q)[wrong].sum() <= alpha + SUMMED, (p, q)


@for_each("claim", CLAIMS)
def test_refuted_exactly_where_the_bound_exceeds_the_claim(claim: PureDP | ApproximateDP) -> None:
    """Over all outcomes; at a bound within rounding of the claim either may be the case."""
    for runs in (3, 17, 60):
        for alpha in map(error_probability, CONFIDENCES):
            refuted, bound = p_values(claim, runs) <= alpha, bounds(claim.delta, runs, alpha)
            rounding = np.abs(bound - claim.epsilon) <= 1e-7
            assert np.all((refuted == (bound > claim.epsilon)) | rounding)
            assert np.count_nonzero(rounding & (bound > 0.0)) <= 2


hits = st.one_of(st.integers(0, 40), st.integers(0, 10**4), st.integers(0, 10**7))
levels = st.sampled_from([0.8, 0.95, 0.99, 0.999, 0.999999])
small_deltas = st.sampled_from([0.0, 1e-9, 1e-5, 1e-3, 0.1])
exactly = settings(derandomize=True, deadline=None, max_examples=100)


@exactly
@given(x=hits, y=hits, spare=hits, delta=small_deltas, confidence=levels, epsilon=st.floats(0.0, 5.0))
def test_at_any_size_a_hair_decides(
    x: int, y: int, spare: int, delta: float, confidence: float, epsilon: float
) -> None:
    """A claim a hair below the bound is refuted, one above it is not; and a hair more than the p-value refutes."""
    counts = evidence(x, y, x + y + spare)
    bound = epsilon_lower(counts, delta, error_probability(confidence))
    for nudge in (-1e-3, -1e-6, 1e-6, 1e-3):
        # near certainty a relative slack of 1e-9 on the share is one of 1e-9 e^bound on the odds
        if bound > 0.0 and bound + nudge >= 0.0 and abs(nudge) >= 1e-8 * math.exp(bound):
            assert certify(counts, ApproximateDP(bound + nudge, delta), confidence).refuted == (nudge < 0.0)
    alpha, tolerance = p_value(counts, ApproximateDP(epsilon, delta)), 1e-8 * (1.0 + math.exp(epsilon))
    if alpha < 0.999:
        assert epsilon_lower(counts, delta, alpha * 1.001) > epsilon - tolerance
    if alpha > 1e-290:
        assert epsilon_lower(counts, delta, min(1.0, alpha) * 0.999) < epsilon + tolerance


def level_reached(claim: Claim, runs: int, p: float, q: float, alpha: float) -> float:
    """Pr(refuted) of many runs."""

    def refuted(x: int, y: int) -> bool:
        return p_value(evidence(x, y, runs), claim) <= alpha

    return power(refuted, stats.binom(runs, q / 2.0), lambda y: runs - y, p / (2.0 - q))


@pytest.mark.long
@for_each(
    ("claim", "runs", "q", "least"),
    [
        (PureDP(1.0), 2_000, 0.2689, 0.90),  # Laplace and randomised response
        (PureDP(1.0), 20_000, 0.001, 0.55),  # ten hits
        (PureDP(3.0), 20_000, 0.04, 0.90),
        (ApproximateDP(1.0, 1e-5), 20_000, 0.05, 0.65),
        (ApproximateDP(0.2, 0.01), 2_000, 0.4, 0.45),
    ],
    nightly=[
        (PureDP(1.0), 20_000, 0.01, 0.85),
        (PureDP(0.1), 2_000, 0.45, 0.90),
        (ApproximateDP(1.0, 1e-3), 20_000, 0.2689, 0.70),
        (ApproximateDP(0.2, 0.01), 20_000, 0.4, 0.45),
    ],
)
def test_tight_at_the_boundary(claim: Claim, runs: int, q: float, least: float) -> None:
    """At the boundary the claim is refuted with at least this part of alpha: the level is used, not hoarded.

    With delta the certificate also pays for the quantile of the delta part, and a tenth of alpha.
    """
    reached = level_reached(claim, runs, claim.max_probability(q), q, 0.05)
    assert least * 0.05 <= reached <= 0.05 + SUMMED


@for_each("few", [50, 1_000, 100_000])
@for_each("ratio", [1.5, math.e, 20.0])
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


@exactly
@given(x=hits, y=hits, spare=hits, delta=small_deltas, epsilon=st.floats(0.0, 3.0), confidence=levels)
def test_null_and_mirror(x: int, y: int, spare: int, delta: float, epsilon: float, confidence: float) -> None:
    """Fewer hits of P certify nothing; with the sides exchanged at most one has a bound, looking at opposite tails."""
    (low, high), runs, claim = sorted((x, y)), x + y + spare, ApproximateDP(epsilon, delta)
    nothing = certify(evidence(low, high, runs), ApproximateDP(0.0, delta), confidence)
    assert (nothing.lower, nothing.epsilon_lower, nothing.refuted) == (0.0, 0.0, False)
    assert nothing.p_value > 0.49
    one, other = (certify(evidence(a, b, runs), claim, confidence) for a, b in ((x, y), (y, x)))
    assert min(one.lower, other.lower) == 0.0
    smaller, larger = sorted((one.p_value, other.p_value))
    assert smaller + larger >= 1.0 or smaller < 0.5 <= larger


def test_the_ends() -> None:
    """Nothing seen, a delta that explains everything, and more than doubles hold."""
    for claim in CLAIMS:
        certificate = certify(CoinFlip(0, 0, 500, 500), claim, 0.95)
        assert (certificate.lower, certificate.p_value, certificate.refuted) == (0.0, 1.0, False)
        empty = certify(CoinFlip(0, 0, 0, 0), claim, 0.95)
        assert (empty.lower, empty.refuted) == (0.0, False)
    all_seen = certify(CoinFlip(500, 0, 500, 500), ApproximateDP(0.0, 1.0), 0.95)
    assert (all_seen.lower, all_seen.refuted) == (0.0, False)
    certain = CoinFlip(10**10, 0, 10**10, 10**10)
    assert [certify(certain, PureDP(epsilon), 0.999).refuted for epsilon in (10.0, 40.0, 800.0)] == [True, False, False]
    assert math.isfinite(certify(certain, PureDP(1.0), 0.999).lower)
