"""Conversions: each result is implied by its claim (regions) and no better than the theory."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dpaudit.claims import (
    ApproximateDP,
    Claim,
    GaussianDP,
    PrivacyProfile,
    PureDP,
    Relation,
    RenyiDP,
    TradeOffDP,
    ZeroConcentratedDP,
    claim_from_dict,
    implies,
    to_approximate,
    to_gaussian,
    to_profile,
    to_renyi,
    to_zcdp,
)
from dpaudit.claims.calculus import WAYS
from dpaudit.errors import InvalidSpec
from tests.cases import for_each, some
from tests.claims.definitions import CLAIMS, renyi

Q = np.concatenate([np.geomspace(1e-9, 0.5, 16), 1.0 - np.geomspace(1e-9, 0.5, 16)[-2::-1]]).tolist()


def within(claim: Claim, other: Claim) -> bool:
    """Whether the region of a claim lies within that of another, on a grid."""
    return all(claim.max_probability(q) <= other.max_probability(q) * (1.0 + 1e-12) for q in Q)


@pytest.mark.long
@for_each("claim", some(CLAIMS, 9))
def test_a_claim_lies_within_all_that_it_is_converted_to(claim: Claim) -> None:
    for delta in (0.02, 0.2, 0.35):
        if claim.epsilon_at(delta) < math.inf:
            implied = to_approximate(claim, delta)
            assert within(claim, implied)
            assert implies(claim, implied)
            assert implied.delta == delta
    profile = to_profile(claim)
    assert within(claim, profile)
    for q in (1e-6, 1e-3, 0.1, 0.4):
        assert profile.max_probability(q) == pytest.approx(claim.max_probability(q), rel=2e-3, abs=2e-12)


@for_each("epsilon", [0.0, 0.01, 0.5, 1.0, 4.0, 20.0])
def test_what_pure_dp_implies(epsilon: float) -> None:
    claim = PureDP(epsilon, Relation.LOCAL)
    for implied in (to_zcdp(claim), to_gaussian(claim), *(to_renyi(claim, a) for a in (1.01, 2.0, 8.0, 500.0))):
        assert within(claim, implied)
        assert implied.relation is Relation.LOCAL
    assert to_zcdp(claim).rho == epsilon**2 / 2.0
    # randomised response has this divergence, so no smaller one follows
    q = 1.0 / (1.0 + math.exp(epsilon))
    for order in (1.5, 2.0, 10.0):
        value = float(renyi(order, np.array(1.0 - q), np.array(q)))
        assert to_renyi(claim, order).epsilon == pytest.approx(value, rel=1e-6, abs=1e-14)
        assert to_renyi(claim, order).epsilon >= value * (1.0 - 1e-8) - 1e-15
    assert to_gaussian(claim).max_probability(q) == pytest.approx(1.0 - q, rel=1e-12)


@for_each("epsilon", [0.0, 1e-12, 0.0001197362544954906, 0.0003301413391161212, 0.006036308862753918, 0.7, 3.0, 20.0])
def test_a_small_mu_is_rounded_up_too(epsilon: float) -> None:
    """2 Phi(mu / 2) - 1 = tanh(epsilon / 2), in balls."""
    arb = pytest.importorskip("flint").arb
    for mu in to_gaussian(PureDP(epsilon)).mu * (1.0 - np.geomspace(1e-16, 1e-9, 60)):
        if implies(PureDP(epsilon), GaussianDP(float(mu))):
            assert (arb(float(mu)) / arb(8).sqrt()).erf() >= (arb(epsilon) / 2).tanh()


def test_what_gaussian_dp_implies() -> None:
    claim = GaussianDP(1.5)
    assert within(claim, to_zcdp(claim))
    assert within(claim, to_renyi(claim, 4.0))
    assert to_zcdp(claim).rho == 1.125
    assert to_renyi(claim, 4.0).epsilon == 4.5
    assert to_gaussian(claim) is claim
    assert to_approximate(claim, 1e-5).epsilon == claim.epsilon_at(1e-5)
    for epsilon in (0.1, 1.0, 5.0):
        assert to_profile(claim).delta_at(epsilon) == pytest.approx(claim.delta_at(epsilon), rel=5e-3)
        assert to_profile(claim).delta_at(epsilon) >= claim.delta_at(epsilon)


@for_each("rho", [1e-4, 0.05, 0.5, 5.0])
@for_each("delta", [1e-12, 1e-3])
def test_the_ways_from_zcdp_are_ordered(rho: float, delta: float) -> None:
    """The region is the best there is; the best order of the formula of 2020 comes next; that of 2016 last."""
    claim = ZeroConcentratedDP(rho, 0.01)
    region, orders, simple = (to_approximate(claim, delta, way=way).epsilon for way in WAYS)
    assert region <= orders * (1.0 + 3e-4)  # 128 orders a decade against a continuum
    assert orders <= simple
    assert simple == pytest.approx(0.01 + rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta)))


@for_each(("order", "epsilon"), [(1.5, 0.1), (2.0, 0.5), (8.0, 1.0), (64.0, 0.1)])
def test_the_ways_from_renyi_dp_are_ordered(order: float, epsilon: float) -> None:
    claim = RenyiDP(order, epsilon)
    region, orders, simple = (to_approximate(claim, 1e-5, way=way).epsilon for way in WAYS)
    assert region <= orders <= simple
    assert to_renyi(ZeroConcentratedDP(0.25, 0.5), 2.0).epsilon == 1.0
    assert to_renyi(claim, order * 0.9).epsilon == epsilon
    assert within(claim, to_renyi(claim, 1.0 + (order - 1.0) / 2.0))


def test_implies_compares_regions_and_relations() -> None:
    table = TradeOffDP(((0.0, 1.0), (0.25, 0.25), (1.0, 0.0)))
    yes: list[tuple[Claim, Claim]] = [
        (PureDP(1.0), PureDP(1.0)),
        (PureDP(1.0), ApproximateDP(0.9, 0.1)),
        (PureDP(0.5), GaussianDP(1.0)),
        (GaussianDP(1.0), GaussianDP(1.0)),
        (GaussianDP(1.0), ZeroConcentratedDP(0.5)),
        (GaussianDP(1.0), RenyiDP(2.0, 1.0)),
        (GaussianDP(1.0), ApproximateDP(4.378, 1e-5)),
        (RenyiDP(4.0, 1.0), RenyiDP(2.0, 1.0)),
        (ZeroConcentratedDP(0.5, 0.1), ZeroConcentratedDP(0.5, 0.2)),
        (ZeroConcentratedDP(0.5), RenyiDP(3.0, 1.5)),
        (table, PureDP(math.log(3.0) + 1e-12)),
        (PureDP(math.log(3.0) - 1e-12), table),
        (PrivacyProfile(((1.0, 1e-6), (0.5, 0.01))), ApproximateDP(1.0, 1e-6)),
        (table, table),
        (PureDP(0.0), GaussianDP(0.1)),
        (PureDP(1.0, Relation.LOCAL), PureDP(1.0)),
    ]
    no: list[tuple[Claim, Claim]] = [
        (PureDP(1.01), PureDP(1.0)),
        (ApproximateDP(0.5, 1e-9), PureDP(1.0)),
        (ApproximateDP(0.5, 1e-9), GaussianDP(0.1)),
        (GaussianDP(1.0), ApproximateDP(4.377, 1e-5)),
        (GaussianDP(1.01), ZeroConcentratedDP(0.5)),
        (RenyiDP(2.0, 1.0), RenyiDP(4.0, 1.0)),
        (ZeroConcentratedDP(0.5, 0.2), ZeroConcentratedDP(0.5, 0.1)),
        (ApproximateDP(1.0, 1e-6), PrivacyProfile(((1.0, 1e-6), (0.5, 0.01)))),
        (PureDP(1.0), PureDP(1.0, Relation.LOCAL)),
        (PureDP(1.0, Relation.REPLACE_ONE), PureDP(2.0, Relation.LOCAL)),
    ]
    for claim, other in yes:
        assert implies(claim, other), (claim, other)
    for claim, other in no:
        assert not implies(claim, other), (claim, other)


def bent(ratio: float) -> Callable[[float], float]:
    """The trade-off function of pure DP."""
    return lambda x: max(0.0, 1.0 - ratio * x, (1.0 - x) / ratio)


@for_each("epsilon", [1e-3, 0.3, math.log(3.0), 3.0, 12.0])
def test_what_proves_is_rounded_the_other_way(epsilon: float) -> None:
    """Randomised response keeps what is a hair above its truth, and not what is as much below, in every form."""
    claim, q = PureDP(epsilon), 1.0 / (1.0 + math.exp(epsilon))
    truths: list[tuple[Callable[[float], Claim], float]] = [
        (lambda mu: GaussianDP(mu), float(-2.0 * ndtri(q))),
        (lambda rho: ZeroConcentratedDP(rho), epsilon * math.tanh(epsilon / 2.0)),  # the limit of D_a / a at order 1
        (lambda xi: ZeroConcentratedDP(0.0, xi), epsilon),  # that of D_a at infinity
        (lambda e: TradeOffDP(bent(math.exp(e))), epsilon),
        (lambda e: PrivacyProfile(((e, 0.0), (0.1, 1.0))), epsilon),
    ]
    for order in (1.0001, 2.0, 30.0):
        divergence = float(renyi(order, np.array(1.0 - q), np.array(q)))
        truths.append((lambda e, order=order: RenyiDP(order, e), divergence))  # type: ignore[misc]
    for value, truth in truths:
        assert implies(claim, value(truth * (1.0 + 1e-7))), value(truth)
        assert implies(ApproximateDP(epsilon, 0.0), value(truth * (1.0 + 1e-7))), value(truth)
        assert not implies(claim, value(truth * (1.0 - 1e-7))), value(truth)


def test_no_order_breaks_a_concentrated_claim_that_was_shown() -> None:
    for epsilon, share in itertools.product((0.01, 0.5, 2.0, 20.0), (0.0, 0.3, 0.7, 0.99, 0.999999)):
        rho = share * epsilon * math.tanh(epsilon / 2.0)
        least = ZeroConcentratedDP(rho, epsilon * (1.0 - share) * (1.0 + 1e-8))
        assert implies(PureDP(epsilon), least)
        assert not implies(PureDP(epsilon), ZeroConcentratedDP(rho, 0.0))
        for order in (1.0 + np.geomspace(1e-9, 1e9, 400)).tolist():
            assert to_renyi(PureDP(epsilon), order).epsilon <= (least.xi + rho * order) * (1.0 + 1e-6)  # 1e-16 / 1e-9


def test_what_doubles_cannot_tell_from_1_proves_nothing() -> None:
    for epsilon, low, high in ((46.0, 17.8, 18.6), (600.0, 60.0, 70.0)):
        for claim in (PureDP(epsilon), ApproximateDP(epsilon, 0.0), PrivacyProfile(((epsilon, 0.0),))):
            assert not implies(claim, GaussianDP(low))
            assert implies(claim, GaussianDP(high))
            assert not implies(claim, RenyiDP(2.0, 0.9 * epsilon))


def test_events_alone_show_no_divergence() -> None:
    """P = (.5, .3, .2), Q = (.2, .3, .5): D_2 is ln 1.63, of the best event ln 1.5625; the largest ratio is 2.5."""
    table = TradeOffDP(((0.0, 1.0), (0.2, 0.5), (0.5, 0.2), (1.0, 0.0)))
    for epsilon in (math.log(1.6), math.log(1.63) - 1e-9):
        assert not implies(table, RenyiDP(2.0, epsilon))
    assert implies(table, RenyiDP(2.0, math.log(1.9001)))  # randomised response with this ratio has ln 1.9
    assert implies(table, GaussianDP(1.06))  # mu is less than with the largest ratio alone, 1.132
    assert not implies(table, GaussianDP(0.8))


def test_a_grid_that_allows_more_than_a_function_proves_nothing_of_it() -> None:
    third = math.log(3.0)
    for mu in (1.34897, 1.3489, 1.3487):  # f(1/4) = 0.250003, 0.250025, 0.250089: above the 1/4 of randomised response
        assert not implies(PureDP(third), TradeOffDP(lambda x, mu=mu: float(ndtr(ndtri(1.0 - x) - mu))))
    assert implies(PureDP(third), TradeOffDP(lambda x: float(ndtr(ndtri(1.0 - x) - 1.34898))))
    claim = TradeOffDP(bent(3.0))
    assert implies(PureDP(third), claim)
    assert implies(claim, claim)
    stored = pickle.loads(pickle.dumps(claim))
    assert stored == claim == claim_from_dict(claim.to_dict())
    for equal in (stored, claim_from_dict(claim.to_dict()), replace(claim, relation=Relation.LOCAL)):
        assert not implies(PureDP(0.5 * third, Relation.LOCAL), equal)  # the function is lost, and only a table left
    assert implies(PureDP(third), TradeOffDP(((0.0, 1.0), (0.25, 0.25), (1.0, 0.0))))
    assert not implies(PureDP(third), TradeOffDP(((0.0, 1.0), (0.25, 0.25 + 1e-12), (1.0, 0.0))))


@for_each(
    ("convert", "message"),
    [
        (lambda: to_approximate(GaussianDP(1.0), 0.0), r"delta must be larger, got 0.0: 1-GDP implies no finite"),
        (lambda: to_approximate(ApproximateDP(1.0, 0.1), 0.05), r"delta must be larger, got 0.05"),
        (lambda: to_approximate(RenyiDP(2.0, 1.0), 0.0, way="orders"), r"delta must be larger, got 0.0"),
        (lambda: to_approximate(PureDP(1.0), 0.1, way="simple"), r"way 'simple' is for RenyiDP and ZeroConc"),
        (lambda: to_approximate(PureDP(1.0), 0.1, way="best"), r"way must be one of region, orders, simple"),
        (lambda: to_approximate(PureDP(1.0), 1.5), r"delta must be in \[0, 1\], got 1.5"),
        (lambda: to_zcdp(ApproximateDP(1.0, 0.1)), r"only PureDP, GaussianDP and ZeroConcentratedDP imply zCDP"),
        (lambda: to_renyi(PureDP(1.0), 1.0), r"order must be above 1, got 1.0"),
        (lambda: to_renyi(PureDP(1.0), math.inf), r"order must be finite, got inf; a claim of infin"),
        (lambda: to_renyi(RenyiDP(2.0, 1.0), 3.0), r"order must be at most that of the claim, 2, got 3"),
        (lambda: to_renyi(ApproximateDP(1.0, 0.1), 2.0), r"only PureDP, GaussianDP, .* imply Rényi DP"),
        (lambda: to_gaussian(ZeroConcentratedDP(1.0)), r"only PureDP and GaussianDP imply Gaussian DP, got 1-zCDP"),
    ],
)
def test_what_does_not_follow_is_refused(convert: object, message: str) -> None:
    assert callable(convert)
    with pytest.raises(InvalidSpec, match=f"^{message}") as caught:
        convert()
    assert "\n" not in str(caught.value)
