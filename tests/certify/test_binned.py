"""The Rényi bound of several bins: valid, tight, null, mirror."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit.base.validate import error_probability
from dpaudit.certify import Binned, certify
from dpaudit.certify.binned import ORDERS, p_value, parameter_lower
from dpaudit.certify.binomial import lower_limit, upper_limit
from dpaudit.claims import GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.errors import InvalidSpec
from tests.cases import for_each

SHARES = [((0.7, 0.2, 0.1), (0.3, 0.4, 0.3)), ((0.5, 0.5, 0.0), (0.1, 0.8, 0.1)), ((1 / 3,) * 3, (1 / 3,) * 3)]


def divergence_lower(evidence: Binned, order: float, alpha: float) -> float:
    return parameter_lower(evidence, RenyiDP(order, 1.0), alpha)


def rho_lower(evidence: Binned, alpha: float, xi: float = 0.0) -> float:
    return parameter_lower(evidence, ZeroConcentratedDP(1.0, xi), alpha)


def divergence(p: tuple[float, ...], q: tuple[float, ...], order: float) -> float:
    terms = [a**order * b ** (1.0 - order) for a, b in zip(p, q, strict=True) if a > 0.0]
    return math.log(math.fsum(terms)) / (order - 1.0)


@pytest.mark.long
@for_each("alpha", [0.2, 0.05])
@for_each(("p", "q"), SHARES)
def test_the_bound_covers_the_truth(p: tuple[float, ...], q: tuple[float, ...], alpha: float) -> None:
    """All outcomes of two multinomials: too large a bound, at any of several orders, has probability alpha at most."""
    runs = 7
    cases = [counts for counts in itertools.product(range(runs + 1), repeat=3) if sum(counts) == runs]
    chance_p, chance_q = stats.multinomial(runs, p).pmf(cases), stats.multinomial(runs, q).pmf(cases)
    wrong, truths = 0.0, [(order, divergence(p, q, order)) for order in (1.5, 8.0)]
    for (x, a), (y, b) in itertools.product(zip(cases, chance_p, strict=True), zip(cases, chance_q, strict=True)):
        if a * b > 1e-9:
            counts = Binned(x, y, runs, runs)
            wrong += a * b * any(divergence_lower(counts, order, alpha) > truth for order, truth in truths)
    assert wrong <= alpha + 1e-5  # what was left out as too unlikely


@for_each("alpha", [0.2, 0.05])
@for_each(("p", "q"), [(0.7, 0.3), (0.4, 0.4), (1.0, 0.8)], nightly=[(0.2, 0.05), (0.99, 0.9)])
def test_two_outcomes_on_the_boundary(p: float, q: float, alpha: float) -> None:
    """All outcomes of 30 runs of one side and 20 of the other: refuted with probability alpha at most."""
    claim = RenyiDP(2.0, divergence((p, 1.0 - p), (q, 1.0 - q), 2.0))
    chance_p, chance_q = stats.binom.pmf(range(31), 30, p), stats.binom.pmf(range(21), 20, q)
    for flipped in (False, True):  # a wrong order of the bins is no less valid
        wrong = 0.0
        for x, y in itertools.product(range(31), range(21)):
            counts = [(x, 30 - x), (y, 20 - y)]
            evidence = Binned(*(each[::-1] if flipped else each for each in counts), 30, 20)
            if chance_p[x] * chance_q[y] > 1e-12 and divergence_lower(evidence, 2.0, alpha) > claim.epsilon:
                wrong += chance_p[x] * chance_q[y]
                assert p_value(evidence, claim, claim.epsilon) <= alpha * (1.0 + 1e-6)
        assert wrong <= alpha


def test_false_refutations_at_the_boundary() -> None:
    """1,000 seeded runs of each of two mechanisms on the boundary of their claims, at confidence 0.8.

    At most 0.2 of them may refute; far fewer do. More than 0.27 has a chance below 1e-6 at a true rate of 0.2.
    """
    rng = np.random.default_rng(11)
    for p, q in SHARES[:2]:
        claim, rho = RenyiDP(2.0, divergence(p, q, 2.0)), max(divergence(p, q, a) / a for a in ORDERS)
        x, y = rng.multinomial(400, p, size=1000), rng.multinomial(300, q, size=1000)
        values = [Binned(tuple(a), tuple(b), 400, 300) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert np.mean([divergence_lower(one, 2.0, 0.2) > claim.epsilon for one in values]) <= 0.27
        assert np.mean([rho_lower(one, 0.2) > rho for one in values]) <= 0.27


counts = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=12)


@pytest.mark.long
@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    pairs=counts,
    spare=st.integers(0, 10**6),
    order=st.sampled_from([1.1, 2.0, 8.0, 64.0]),
    confidence=st.sampled_from([0.95, 0.999]),
    ulps=st.integers(-3, 3),
)
def test_the_p_value_is_the_least_alpha_that_refutes(
    pairs: list[tuple[int, int]], spare: int, order: float, confidence: float, ulps: int
) -> None:
    """To the last digit; and equal sides certify nothing."""
    x, y = (tuple(side) for side in zip(*pairs, strict=True))
    counts = Binned(x, y, sum(x) + spare, sum(y) + spare)
    bound = near = divergence_lower(counts, order, error_probability(confidence))
    for _ in range(abs(ulps)):
        near = max(0.0, math.nextafter(near, math.copysign(math.inf, ulps)))
    for claimed in (near, *((0.9 * bound, 1.1 * bound) if bound > 1e-6 else ())):
        certificate = certify(counts, RenyiDP(order, claimed), confidence, certifier="binned")
        assert certificate.refuted == (bound > claimed)
        assert (certificate.lower, certificate.epsilon_lower, certificate.delta) == (bound, None, 0.0)
    equal = certify(Binned(x, x, sum(x), sum(x)), ZeroConcentratedDP(0.0), confidence, certifier="binned")
    assert (equal.lower, equal.refuted) == (0.0, False)


def gaussians(mu: float, runs: int, cuts: npt.NDArray[np.float64]) -> Binned:
    """The expected counts of N(mu, 1) against N(0, 1) between falling cuts: bins in order of falling ratio."""
    sides = (np.diff(np.concatenate([[0.0], stats.norm.sf(cuts - mean), [1.0]])) for mean in (mu, 0.0))
    x, y = (tuple(np.floor(runs * side).astype(int).tolist()) for side in sides)
    return Binned(x, y, runs, runs)


@for_each(
    ("mu", "order", "runs", "cuts", "least"),
    [
        (1.0, 2.0, 10**4, (3.0, -0.6, 7), 0.74),
        (1.0, 2.0, 10**5, (3.6, -0.9, 9), 0.88),
        (1.0, 2.0, 10**6, (4.2, -1.2, 15), 0.94),
        (1.0, 8.0, 10**5, (3.2, 3.2, 1), 0.52),
        (0.161, 2.0, 450_000, (0.0, 0.0, 1), 0.56),
        (0.161, 2.0, 450_000, (1.2, -1.0, 3), 0.76),
        (0.161, 2.0, 450_000, (1.8, -1.6, 9), 0.82),
    ],
)
def test_most_of_the_divergence_of_a_gaussian(
    mu: float, order: float, runs: int, cuts: tuple[float, float, int], least: float
) -> None:
    """At the expected counts, as a part of D_a = a mu^2 / 2; and rho is mu^2 / 2."""
    counts, truth = gaussians(mu, runs, np.linspace(*cuts)), order * mu**2 / 2.0
    assert least * truth <= divergence_lower(counts, order, 0.05) <= truth
    assert divergence_lower(counts, order, 0.05) / order <= rho_lower(counts, 0.05) <= mu**2 / 2.0


def test_no_two_laws_within_the_limits_have_less() -> None:
    """Seeded: 3,000 pairs of laws that keep the limits, found apart from the code; and one of them has the bound."""
    rng = np.random.default_rng(5)
    for x, y in (((300, 500, 200), (100, 400, 500)), ((40, 30, 20, 10), (5, 10, 35, 50)), ((9, 1, 90), (1, 9, 90))):
        runs, k = sum(x), len(x)
        hits_p, hits_q, share = np.cumsum(x)[:-1], np.cumsum(y)[:-1], 0.05 / (2 * (k - 1))
        low = stats.beta.ppf(share, hits_p, runs - hits_p + 1)
        high = stats.beta.isf(share, hits_q + 1, runs - hits_q)
        least = math.inf
        for _ in range(3000):
            room = rng.exponential(0.02 * rng.random(), (2, k - 1))
            p, q = np.minimum(low + room[0], 1.0), np.maximum(high - room[1], 1e-9)
            p, q = (np.diff(np.concatenate([[0.0], side, [1.0]])) for side in (np.sort(p), np.sort(q)))
            least = min(least, divergence(tuple(p), tuple(q), 2.0))
        bound = divergence_lower(Binned(x, y, runs, runs), 2.0, 0.05)
        assert bound <= least <= bound + 0.05


def test_bins_that_say_nothing_cost_their_share_alone_and_several_say_more_than_one_event() -> None:
    """A bin whose ratio its neighbours have too: the same curve, at limits for one event more."""
    two, three = Binned((60, 40), (20, 80), 100, 100), Binned((30, 30, 40), (10, 10, 80), 100, 100)
    assert divergence_lower(three, 2.0, 0.04) == pytest.approx(divergence_lower(two, 2.0, 0.02), rel=1e-6)
    counts = gaussians(1.0, 10**6, np.linspace(3.0, -1.0, 7))
    x, y, runs = counts.counts_p, counts.counts_q, counts.runs_p
    events = [Binned((sum(x[:k]), sum(x[k:])), (sum(y[:k]), sum(y[k:])), runs, runs) for k in range(1, 8)]
    assert divergence_lower(counts, 2.0, 0.05) > 1.2 * max(divergence_lower(event, 2.0, 0.05) for event in events)


def test_no_bins_say_more_than_the_ceiling() -> None:
    for runs in (10, 1000, 10**6):
        most = math.log(lower_limit(runs, runs, 0.025) / upper_limit(0, runs, 0.025))
        for order in (1.1, 2.0, 64.0):
            assert divergence_lower(Binned((runs,), (0,), runs, runs), order, 0.05) <= most
            assert divergence_lower(Binned((runs // 2, runs // 2), (0, 0), runs, runs), order, 0.05) <= most
    beyond = Binned((10**9, 0), (0, 10**9), 10**9, 10**9)  # what is raised to order 64 is no float
    assert 19.0 < divergence_lower(beyond, 64.0, 0.05) < 21.0


def test_mirror() -> None:
    """Sides exchanged: what the bins in the other order say of D(Q || P), and in this order nothing."""
    x, y = (500, 400, 100), (50, 150, 800)
    straight = divergence_lower(Binned(x, y, 1000, 1000), 4.0, 0.05)
    turned = divergence_lower(Binned(y[::-1], x[::-1], 1000, 1000), 4.0, 0.05)
    assert 0.0 < straight <= divergence(tuple(a / 1000 for a in x), tuple(b / 1000 for b in y), 4.0)
    assert 0.0 < turned <= divergence(tuple(b / 1000 for b in y), tuple(a / 1000 for a in x), 4.0)
    assert divergence_lower(Binned(y, x, 1000, 1000), 4.0, 0.05) == 0.0


def test_claims_and_orders() -> None:
    counts = Binned((900, 100), (100, 900), 1000, 1000)
    xi = certify(counts, ZeroConcentratedDP(0.1, xi=0.2), 0.95, certifier="binned")
    assert xi.lower == rho_lower(counts, 0.05, xi=0.2) < rho_lower(counts, 0.05)
    assert divergence_lower(counts, 2.0, 0.05) / 2.0 <= rho_lower(counts, 0.05)
    for claim in (PureDP(1.0), GaussianDP(1.0)):
        with pytest.raises(InvalidSpec, match="the binned certifier takes claims of the forms RenyiDP and Zero"):
            certify(counts, claim, 0.95, certifier="binned")


def test_nothing_seen_says_nothing() -> None:
    for counts in (Binned((0, 0), (0, 0), 0, 0), Binned((0, 0), (5, 5), 10, 10), Binned((5,), (0,), 5, 0)):
        certificate = certify(counts, RenyiDP(2.0, 0.5), 0.95, certifier="binned")
        assert (certificate.lower, certificate.p_value, certificate.refuted) == (0.0, 1.0, False)
