"""Gaussian and Rényi regions against distributions: integrals, sums and chains that know nothing of binary formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from dpaudit.claims import GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.claims import renyi_curve as curve
from dpaudit.claims.rounding import above, crossing
from dpaudit.claims.tradeoff import profile
from tests.cases import for_each
from tests.claims.definitions import Reals, renyi


@for_each("mu", [1e-3, 0.05, 0.5, 1.0, 3.0])
@for_each("share", [-0.5, 0.0, 0.5, 2.0, 4.0])
def test_the_gaussian_profile_is_the_integral_of_the_excess(mu: float, share: float) -> None:
    """delta = integral of max(0, phi(x - mu) - e^epsilon phi(x)), from where the densities cross."""
    epsilon = share * mu
    start = epsilon / mu + mu / 2.0
    excess, error = quad(
        lambda x: math.exp(-((x - mu) ** 2) / 2.0) * -math.expm1(epsilon - mu * x + mu**2 / 2.0),
        start,
        start + 40.0,
        epsabs=0.0,
        epsrel=1e-11,
        limit=200,
    )
    exact = excess / math.sqrt(2.0 * math.pi)
    assert profile(mu, epsilon) == pytest.approx(exact, rel=2e-11)
    assert profile(mu, epsilon) >= exact - 2.0 * error


@for_each("mu", [1e-3, 0.268, 1.0, 10.0, 50.0])
@for_each("delta", [1e-12, 1e-5, 0.1])
def test_gaussian_epsilon_and_mu_are_rounded_to_the_safe_side(mu: float, delta: float) -> None:
    epsilon = GaussianDP(mu).epsilon_at(delta)
    if epsilon == 0.0:
        assert profile(mu, 0.0) <= delta
        return
    assert profile(mu, epsilon) <= delta  # what was evaluated, not what was hoped for
    assert profile(mu, epsilon * (1.0 - 1e-9)) > delta
    lower = GaussianDP(1.0).lower(epsilon, delta)
    assert profile(lower, epsilon) <= delta
    assert lower == pytest.approx(mu, rel=1e-9)


def test_claims_of_nothing_and_of_everything() -> None:
    for claim in (GaussianDP(0.0), RenyiDP(2.0, 0.0), ZeroConcentratedDP(0.0), PureDP(0.0)):
        assert claim.epsilon_at(0.0) == 0.0
        assert claim.delta_at(0.0) <= 1e-15
        assert claim.max_probability(0.3) == pytest.approx(0.3)
    for loose in (GaussianDP(1e3), RenyiDP(2.0, 1e3), RenyiDP(1e4, 1e3), ZeroConcentratedDP(1e4)):
        assert loose.max_probability(0.3) == 1.0
        assert loose.epsilon_at(1e-6) > 500.0
        assert loose.tangent(0.3).holds(1.0, 0.3)
        assert loose.lower(5.0, 1e-6) > 0.0
    assert GaussianDP(1e200).epsilon_at(1e-6) == math.inf  # mu squared is no double
    for tiny in (GaussianDP(1e-12), RenyiDP(2.0, 1e-20), ZeroConcentratedDP(1e-20)):
        assert tiny.epsilon_at(1e-6) < 1e-5
        assert tiny.tangent(0.3).holds(0.3, 0.3)
    # beyond the doubles a tangent promises nothing: of order 2, p <= q + sqrt(c q) with c = e^epsilon - 1, so delta is
    # c / 4 / (e^t - 1) at t
    claim = RenyiDP(2.0, 1e-12)
    assert claim.epsilon_at(1e-30) == pytest.approx(math.log(0.25e-12 / 1e-30), rel=1e-4)
    assert claim.epsilon_at(1e-300) >= math.log(0.25e-12 / 1e-300)


@for_each("order", [1.01, 1.5, 2.0, 8.0, 64.0, 1000.0])
def test_below_the_diagonal_the_divergence_of_p_from_q_binds(order: float) -> None:
    rng = np.random.default_rng(5)
    q, p = rng.random(5_000) ** 3, rng.random(5_000)
    q, p = (part[(p > q) & (p + q <= 1.0)] for part in (q, p))
    assert np.all(renyi(order, p, q) >= renyi(order, q, p) * (1.0 - 1e-9) - 1e-8)
    np.testing.assert_allclose(curve.divergence(order, q, p), renyi(order, p, q), rtol=1e-6, atol=1e-9)


@for_each(("order", "epsilon"), [(2.0, 0.5), (1.1, 0.3), (20.0, 2.0), (300.0, 0.1), (2.0, 1e-6)])
def test_the_arc_lies_on_its_level_and_its_slope_is_that_of_the_level(order: float, epsilon: float) -> None:
    end = curve.corner(order, epsilon)
    assert end is not None
    assert end.p + end.q == pytest.approx(1.0, rel=1e-9)
    assert end.epsilon > 0.0
    start = -math.log((end.p - end.q) / (1.0 - end.q))
    for further in (0.0, 0.1, 1.0, 5.0, 20.0):
        at = curve.tangent_at(order, epsilon, start + further)
        if at.q < 1e-250:
            continue
        level = float(renyi(order, np.array(at.p), np.array(at.q)))
        assert level == pytest.approx(epsilon, rel=1e-7, abs=1e-12 / (order - 1.0))
        assert at.p - math.exp(at.epsilon) * at.q == pytest.approx(at.delta, rel=1e-6, abs=1e-12)


@pytest.mark.long
def test_any_pair_of_distributions_keeps_to_the_region_of_its_divergence() -> None:
    """Sums over six outcomes; the events of the pair are points of the region, in both orders."""
    rng = np.random.default_rng(6)
    for _ in range(15):
        p, q = rng.dirichlet(np.full(6, 0.7)), rng.dirichlet(np.full(6, 0.7))
        order = float(rng.choice([1.2, 2.0, 5.0, 30.0]))
        level = max(_divergence(order, p, q), _divergence(order, q, p))
        if level > 100.0:
            continue
        claim = RenyiDP(order, level)
        for inside in range(1, 63):
            chosen = [bool(inside >> bit & 1) for bit in range(6)]
            for first, second in ((p, q), (q, p)):
                x, y = float(first[chosen].sum()), float(second[chosen].sum())
                assert x <= claim.max_probability(y) * (1.0 + 1e-9)
                for delta in (1e-4, 0.05):
                    assert x <= math.exp(min(700.0, claim.epsilon_at(delta))) * y + delta + 1e-15


def _divergence(order: float, p: Reals, q: Reals) -> float:
    logs = order * np.log(p) + (1.0 - order) * np.log(q)
    return float(logs.max() + math.log(float(np.exp(logs - logs.max()).sum()))) / (order - 1.0)


def test_group_privacy_of_zcdp_holds_along_random_chains() -> None:
    """Four distributions in a row: xi is what the steps need at a rho; the ends keep to the claim at distance 3."""
    rng = np.random.default_rng(7)
    orders = (1.0 + np.geomspace(1e-3, 1e3, 40)).tolist()
    tightest = math.inf
    for _ in range(30):
        rows = [rng.dirichlet(np.full(4, 2.0))]
        for _ in range(3):
            step = rows[-1] * np.exp(rng.normal(0.0, 0.4, 4))
            rows.append(step / step.sum())
        rho = float(rng.choice([0.0, 0.02, 0.1]))
        steps = list(itertools.pairwise(rows))
        needs = [_divergence(a, x, y) - rho * a for a in orders for x, y in (*steps, *((b, a) for a, b in steps))]
        claim = ZeroConcentratedDP(rho, max(0.0, *needs)).at_distance(3)
        for a in orders:
            for x, y in ((rows[0], rows[3]), (rows[3], rows[0])):
                spare = claim.xi + claim.rho * a - _divergence(a, x, y)
                tightest = min(tightest, spare)
                assert spare >= -1e-9
    assert tightest < 2.0
    far = ZeroConcentratedDP(0.1, 0.2).at_distance(4)
    assert (far.rho, far.xi) == pytest.approx((1.6, 0.2 * 4.0 * (1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0)))


@for_each("root", [1e-90, 1e-9, 0.3, 1.0, 1234.5])
def test_a_crossing_is_bracketed_by_what_was_evaluated(root: float) -> None:
    for function in (lambda x: root - x, lambda x: math.log(root) - math.log(x), lambda x: root**3 - x**3):
        low, high = crossing(function, root / 100.0, root * 7.0)
        assert low <= root * (1.0 + 1e-14)
        assert high >= root * (1.0 - 1e-14)
        assert function(low) > 0.0 >= function(high)
        assert high - low <= 3e-14 * root
    low, high = crossing(lambda x: math.inf if x < root else -math.inf, 0.0, 2.0 * root)
    assert low < root <= high


def test_the_double_above_an_exact_number() -> None:
    from fractions import Fraction

    for numerator in range(1, 400):
        exact = Fraction(numerator, 97)
        assert Fraction(math.nextafter(above(exact), 0.0)) < exact <= Fraction(above(exact))
    assert above(Fraction(10) ** 400) == math.inf
