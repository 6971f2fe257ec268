"""The Rényi bound of several bins: valid, tight, null, mirror."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit.certify import Binned, certify
from dpaudit.certify.binned import ORDERS, ceiling, divergence_lower, p_value, rho_lower
from dpaudit.certify.certificate import error_probability
from dpaudit.claims import GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.errors import InvalidSpec

SUMMED = 1e-11
SHARES = [((0.7, 0.2, 0.1), (0.3, 0.4, 0.3)), ((0.5, 0.5, 0.0), (0.1, 0.8, 0.1)), ((1 / 3,) * 3, (1 / 3,) * 3)]


def divergence(p: tuple[float, ...], q: tuple[float, ...], order: float) -> float:
    terms = [a**order * b ** (1.0 - order) for a, b in zip(p, q, strict=True) if a > 0.0]
    return math.log(math.fsum(terms)) / (order - 1.0)


def outcomes(runs: int, bins: int) -> list[tuple[int, ...]]:
    """All counts of that many bins that hold every run."""
    return [found for found in itertools.product(range(runs + 1), repeat=bins) if sum(found) == runs]


# --- valid ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.2, 0.05])
@pytest.mark.parametrize(("p", "q"), SHARES)
def test_the_bound_covers_the_truth(p: tuple[float, ...], q: tuple[float, ...], alpha: float) -> None:
    """All outcomes of two multinomials: too large a bound, at any of several orders, has probability alpha at most."""
    runs = 9
    cases = outcomes(runs, 3)
    chance_p, chance_q = stats.multinomial(runs, p).pmf(cases), stats.multinomial(runs, q).pmf(cases)
    wrong = 0.0
    for (x, a), (y, b) in itertools.product(zip(cases, chance_p, strict=True), zip(cases, chance_q, strict=True)):
        if a * b > 1e-9:
            found = Binned(x, y, runs, runs)
            wrong += (
                a * b * any(divergence_lower(found, order, alpha) > divergence(p, q, order) for order in (1.5, 8.0))
            )
    assert wrong <= alpha + 1e-5  # what was left out as too unlikely


def test_false_refutations_at_the_boundary() -> None:
    """2,000 seeded runs of each of two mechanisms on the boundary of their claims, at confidence 0.8.

    At most 0.2 of them may refute; far fewer do. More than 0.25 has a chance below 1e-6 at a true rate of 0.2.
    """
    rng = np.random.default_rng(11)
    for p, q in SHARES[:2]:
        claim, rho = RenyiDP(2.0, divergence(p, q, 2.0)), max(divergence(p, q, a) / a for a in ORDERS)
        x, y = rng.multinomial(400, p, size=2000), rng.multinomial(300, q, size=2000)
        found = [Binned(tuple(a), tuple(b), 400, 300) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert np.mean([divergence_lower(one, 2.0, 0.2) > claim.epsilon for one in found]) <= 0.25
        assert np.mean([rho_lower(one, 0.2) > rho for one in found]) <= 0.25


# --- the p-value and the bound are one statement ------------------------------------------------------------------

counts = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=12)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(pairs=counts, spare=st.integers(0, 10**6), order=st.sampled_from([1.1, 2.0, 8.0, 64.0]))
def test_the_p_value_is_the_least_alpha_that_refutes(pairs: list[tuple[int, int]], spare: int, order: float) -> None:
    x, y = (tuple(side) for side in zip(*pairs, strict=True))
    found = Binned(x, y, sum(x) + spare, sum(y) + spare)
    for confidence in (0.95, 0.999):
        alpha = error_probability(confidence)
        bound = divergence_lower(found, order, alpha)
        for nudge in (0.9, 1.1):
            if bound > 1e-6:
                made = certify(found, RenyiDP(order, nudge * bound), confidence, certifier="binned")
                assert made.refuted == (nudge < 1.0)
                assert made.lower == bound
                assert (made.epsilon_lower, made.delta) == (None, 0.0)


def test_monotone_in_alpha() -> None:
    found = Binned((500, 300, 200), (200, 300, 500), 1000, 1000)
    for order in (1.5, 2.0, 16.0):
        bounds = [divergence_lower(found, order, alpha) for alpha in (1e-9, 1e-4, 0.01, 0.2, 0.9)]
        assert bounds == sorted(bounds)
    assert p_value(found, RenyiDP(2.0, 0.1), 0.1) < p_value(found, RenyiDP(2.0, 0.2), 0.2) <= 1.0


# --- tight ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("runs", "bins", "least"), [(10**4, 8, 0.55), (10**5, 8, 0.75), (10**6, 16, 0.88)])
def test_most_of_the_divergence_of_a_gaussian(runs: int, bins: int, least: float) -> None:
    """At the expected counts of N(1, 1) against N(0, 1), where D_2 is 1 and rho 1/2."""
    cuts = np.linspace(-1.5, 2.0 + 0.55 * math.log10(runs), bins - 1)
    p, q = (np.diff(np.concatenate([[0.0], stats.norm.cdf(cuts - mu), [1.0]])) for mu in (1.0, 0.0))
    found = Binned(
        tuple(np.floor(runs * p).astype(int).tolist()), tuple(np.floor(runs * q).astype(int).tolist()), runs, runs
    )
    assert least <= divergence_lower(found, 2.0, 0.05) <= 1.0
    assert rho_lower(found, 0.05) >= divergence_lower(found, 2.0, 0.05) / 2.0
    assert rho_lower(found, 0.05) <= 0.5


def test_several_bins_say_more_than_one_event() -> None:
    cuts = np.linspace(-1.0, 3.0, 7)
    p, q = (np.diff(np.concatenate([[0.0], stats.norm.cdf(cuts - mu), [1.0]])) for mu in (1.0, 0.0))
    x, y = np.floor(10**6 * p).astype(int), np.floor(10**6 * q).astype(int)
    several = divergence_lower(Binned(tuple(x.tolist()), tuple(y.tolist()), 10**6, 10**6), 2.0, 0.05)
    events = [
        Binned((int(x[k:].sum()), int(x[:k].sum())), (int(y[k:].sum()), int(y[:k].sum())), 10**6, 10**6)
        for k in range(1, 8)
    ]
    assert several > 1.2 * max(divergence_lower(event, 2.0, 0.05) for event in events)


def test_no_bins_say_more_than_the_ceiling() -> None:
    for runs in (10, 1000, 10**6):
        most = ceiling(runs, runs, 0.05)
        for order in (1.1, 2.0, 64.0):
            assert divergence_lower(Binned((runs,), (0,), runs, runs), order, 0.05) <= most
            assert divergence_lower(Binned((runs // 2, runs // 2), (0, 0), runs, runs), order, 0.05) <= most


# --- null and mirror --------------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=60)
@given(pairs=counts, order=st.sampled_from([1.1, 2.0, 8.0]))
def test_null_equal_sides_certify_nothing(pairs: list[tuple[int, int]], order: float) -> None:
    x = tuple(a for a, _ in pairs)
    assert divergence_lower(Binned(x, x, sum(x), sum(x)), order, 0.05) == 0.0
    made = certify(Binned(x, x, sum(x), sum(x)), ZeroConcentratedDP(0.0), 0.95, certifier="binned")
    assert (made.lower, made.refuted) == (0.0, False)


def test_mirror() -> None:
    """Sides exchanged where the bins are mirror images of each other: the same bound; and the order of bins is free."""
    straight = Binned((700, 200, 100), (100, 200, 700), 1000, 1000)
    other = Binned((100, 200, 700), (700, 200, 100), 1000, 1000)
    for order in (1.5, 4.0):
        assert divergence_lower(straight, order, 0.05) == pytest.approx(divergence_lower(other, order, 0.05), rel=1e-12)


# --- the ends ---------------------------------------------------------------------------------------------------


def test_claims_and_orders() -> None:
    found = Binned((900, 100), (100, 900), 1000, 1000)
    xi = certify(found, ZeroConcentratedDP(0.1, xi=0.2), 0.95, certifier="binned")
    assert xi.lower == rho_lower(found, 0.05, xi=0.2) < rho_lower(found, 0.05)
    assert rho_lower(found, 0.05, order=2.0) == divergence_lower(found, 2.0, 0.05) / 2.0 <= rho_lower(found, 0.05)
    for claim in (PureDP(1.0), GaussianDP(1.0)):
        with pytest.raises(InvalidSpec, match="the binned certifier takes claims of the forms RenyiDP and Zero"):
            certify(found, claim, 0.95, certifier="binned")


def test_nothing_seen_says_nothing() -> None:
    for found in (Binned((0, 0), (0, 0), 0, 0), Binned((0, 0), (5, 5), 10, 10), Binned((5,), (0,), 5, 0)):
        made = certify(found, RenyiDP(2.0, 0.5), 0.95, certifier="binned")
        assert (made.lower, made.p_value, made.refuted) == (0.0, 1.0, False)


def test_divergences_beyond_floats() -> None:
    found = Binned((10**9, 0), (0, 10**9), 10**9, 10**9)
    assert 19.0 < divergence_lower(found, 64.0, 0.05) < 21.0
