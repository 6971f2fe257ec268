"""Every form against its definition: half-planes hold the region and touch it, and each answer inverts another."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dpaudit.claims import FORMS, Claim, Relation, TradeOffDP, ZeroConcentratedDP, claim_from_dict
from dpaudit.claims.renyi import ORDERS
from dpaudit.errors import InvalidSpec
from tests.claims.definitions import CLAIMS, MEMBERS, Reals, allowed, boundary, renyi

Q = np.concatenate([np.geomspace(1e-9, 0.5, 120), 1.0 - np.geomspace(1e-9, 0.5, 120)[-2::-1]])
DELTAS = (1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.2)

every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=str)
every_member = pytest.mark.parametrize("member", [make for _, make in MEMBERS], ids=[name for name, _ in MEMBERS])


@lru_cache(maxsize=64)
def edge(claim: Claim) -> Reals:
    """G on the grid, from the definition."""
    return boundary(claim, Q)


def orders_in_a_grid(claim: Claim) -> float:
    """How far the definition, on the test's own orders, may allow more than the region."""
    return 5e-3 if isinstance(claim, ZeroConcentratedDP) else 1e-9


@lru_cache(maxsize=64)
def surely_allowed(claim: Claim) -> tuple[Reals, Reals]:
    """Points (q, p) that the definition allows."""
    if not isinstance(claim, ZeroConcentratedDP):
        return Q, edge(claim) * (1.0 - 1e-14) - 4e-16
    some, orders = Q[::12], np.array(ORDERS)[:, None]
    low, high = some.copy(), np.ones_like(some)
    for _ in range(30):
        middle = np.where(high > 2.0 * low, np.sqrt(low * high), (low + high) / 2.0)
        worst = np.maximum(renyi(orders, middle, some), renyi(orders, some, middle)) - claim.xi - claim.rho * orders
        inside = np.max(worst, axis=0) <= 0.0
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return some, low


def largest(value: Callable[[float], float], rarest: float = 1e-18) -> float:
    """The largest value, from q = `rarest` on, of a concave function of q or of one with a single peak."""
    grid = np.linspace(math.log(rarest), -1e-12, 60)
    best = int(np.argmax([value(math.exp(x)) for x in grid]))
    ends = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    optimum = minimize_scalar(lambda x: -value(math.exp(x)), bounds=ends, method="bounded", options={"xatol": 1e-9})
    return -float(optimum.fun)


@pytest.mark.long
@every_claim
def test_the_boundary_is_what_the_definition_allows(claim: Claim) -> None:
    values = np.array([claim.max_probability(q) for q in Q.tolist()])
    assert np.all(values >= edge(claim) * (1.0 - orders_in_a_grid(claim)))
    assert np.all(values <= edge(claim) * (1.0 + 1e-8))
    assert claim.max_probability(1.0) == 1.0
    assert claim.max_probability(0.0) == pytest.approx(claim.delta, abs=1e-15)


@every_claim
def test_no_allowed_point_leaves_a_tangent(claim: Claim) -> None:
    q, p = surely_allowed(claim)
    for at in (0.0, 1e-9, 1e-5, 1e-3, 0.05, 0.2, 0.4, 0.5, 0.7, 0.95, 0.9999, 1.0):
        plane = claim.tangent(at)
        assert all(plane.holds(y, x) for x, y in zip(q.tolist(), p.tolist(), strict=True)), at
        assert plane.holds(1.0, 1.0)
        edge_here = claim.max_probability(at)
        if at > 0.0 and edge_here < 1.0:
            assert plane.ratio * at + plane.offset == pytest.approx(edge_here, rel=1e-9)


@pytest.mark.long
@every_claim
@pytest.mark.parametrize("delta", DELTAS)
def test_the_half_plane_at_a_delta_holds_the_region_and_is_the_least(claim: Claim, delta: float) -> None:
    epsilon = claim.epsilon_at(delta)
    if epsilon == math.inf:
        assert delta < claim.delta
        return
    q, p = surely_allowed(claim)
    assert np.all(p <= math.exp(epsilon) * q + delta)
    if 0.0 < epsilon < 20.0:
        # where q is far below delta the difference has no digits left
        least = largest(lambda q: (claim.max_probability(q) - delta) / q, 1e-6 if claim.delta else 1e-18)
        assert math.log(least) == pytest.approx(epsilon, rel=2e-5 if isinstance(claim, ZeroConcentratedDP) else 1e-6)


@every_claim
def test_delta_and_epsilon_invert_each_other(claim: Claim) -> None:
    for delta in DELTAS:
        epsilon = claim.epsilon_at(delta)
        if 0.0 < epsilon < math.inf:
            assert claim.delta_at(epsilon) == pytest.approx(delta, rel=1e-7)
            assert claim.delta_at(epsilon * 1.001) <= delta * (1.0 + 1e-12)
    epsilons = np.linspace(0.0, 6.0, 40).tolist()
    profile = [claim.delta_at(epsilon) for epsilon in epsilons]
    assert all(a >= b for a, b in itertools.pairwise(profile))
    assert claim.epsilon_at(1.0) == 0.0
    assert claim.delta_at(math.inf) == pytest.approx(claim.delta, abs=1e-150)


@pytest.mark.long
@every_claim
def test_the_profile_is_the_largest_excess(claim: Claim) -> None:
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        slope = math.exp(epsilon)
        excess = largest(lambda q, slope=slope: claim.max_probability(q) - slope * q)
        assert claim.delta_at(epsilon) == pytest.approx(max(0.0, excess), rel=1e-4, abs=1e-8)
        q, p = surely_allowed(claim)
        assert np.all(p - math.exp(epsilon) * q <= claim.delta_at(epsilon) + 1e-15)


@every_claim
def test_regions_are_symmetric(claim: Claim) -> None:
    """The two datasets exchanged, and the event with its complement: (q, p) becomes (1 - p, 1 - q)."""
    for q in (1e-6, 1e-3, 0.05, 0.3, 0.6):
        p = claim.max_probability(q)
        if p < 1.0 - 1e-9:
            assert claim.max_probability(1.0 - p) == pytest.approx(1.0 - q, rel=1e-7)
    q, p = np.array([0.01, 0.2, 0.3, 0.6]), np.array([0.05, 0.3, 0.9, 0.99])
    assert claim.least_parameter(1.0 - p, 1.0 - q) == pytest.approx(claim.least_parameter(q, p), rel=1e-9)


@every_claim
def test_epsilon_falls_as_delta_grows(claim: Claim) -> None:
    values = [claim.epsilon_at(delta) for delta in (0.0, *np.geomspace(1e-14, 1.0, 80).tolist())]
    assert all(a >= b * (1.0 - 1e-12) for a, b in itertools.pairwise(values))
    assert all(value >= 0.0 for value in values)


@every_member
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.05])
def test_the_bound_on_the_parameter_inverts_the_members(member: Callable[[float], Claim], delta: float) -> None:
    for value in (1e-3, 0.05, 0.7, 3.0):
        claim = member(value)
        epsilon = claim.epsilon_at(delta)
        if 0.0 < epsilon < math.inf:
            assert claim.lower(epsilon, delta) == pytest.approx(claim.promised(delta), rel=1e-8)
            assert claim.lower(epsilon * (1.0 - 1e-9), delta) <= claim.promised(delta)
    bounds = [member(1.0).lower(epsilon, delta) for epsilon in (0.0, 0.01, 0.1, 1.0, 5.0, 30.0)]
    assert bounds[0] == 0.0
    assert bounds == sorted(bounds)


@every_claim
def test_a_bound_that_says_nothing_is_zero(claim: Claim) -> None:
    assert claim.lower(0.0, 0.01) == 0.0
    assert claim.lower(-1.0, 0.01) == 0.0
    if claim.epsilon_at(0.0) == math.inf and claim.parameter in ("mu", "rho"):
        assert claim.lower(1.0, 0.0) == 0.0


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    which=st.sampled_from([make for _, make in MEMBERS]),
    value=st.floats(1e-3, 4.0),
    exponent=st.floats(-12.0, -0.5),
    share=st.floats(0.2, 3.0),
)
def test_a_bound_above_the_parameter_means_the_member_is_refuted(
    which: Callable[[float], Claim], value: float, exponent: float, share: float
) -> None:
    """lower(e, d) > theta if and only if e > epsilon_theta(d): the rule that makes an inverted bound valid."""
    claim, delta = which(value), 10.0**exponent
    promised = claim.epsilon_at(delta)
    if not 1e-6 < promised < 500.0 or abs(share - 1.0) < 1e-6:
        return
    assert (claim.lower(promised * share, delta) > value) == (share > 1.0)


@every_claim
def test_the_least_parameter_is_that_of_the_boundary(claim: Claim) -> None:
    q = np.array([1e-6, 1e-3, 0.05, 0.2, 0.45, 0.7])
    p = np.array([claim.max_probability(x) for x in q.tolist()])
    inside = p < 1.0
    value = claim.least_parameter(q, p)[inside]
    shift = claim.form in ("TradeOffDP", "PrivacyProfile")
    promised = 0.0 if shift else claim.promised(0.01)
    if isinstance(claim, ZeroConcentratedDP):  # a coarse search over orders
        assert value == pytest.approx(promised, rel=2e-2)
    else:
        assert value == pytest.approx(promised, rel=1e-6, abs=1e-6)


@every_claim
def test_the_least_parameter_takes_any_point(claim: Claim) -> None:
    q, p = (part.ravel() for part in np.meshgrid([0.0, 1e-9, 0.3, 0.5, 1.0], [0.0, 1e-9, 0.3, 0.5, 1.0]))
    value = claim.least_parameter(q, p)
    assert value.shape == q.shape
    assert not np.any(np.isnan(value))
    assert np.all(value[(q == 0.0) & (p > claim.delta)] == np.inf)
    assert np.all(value[p < q] <= 1e-12)
    assert claim.least_parameter(q.reshape(5, 5), p.reshape(5, 5)).shape == (5, 5)


@every_claim
@pytest.mark.parametrize(("q", "p"), [(0.05, 0.4), (0.01, 0.02), (1e-4, 0.3), (0.3, 0.65), (0.6, 0.95)])
def test_the_frozen_delta_is_the_best_for_its_point(claim: Claim, q: float, p: float) -> None:
    """At it the point's half-plane bounds the parameter by what the region gives, and at others by less."""
    delta = claim.delta_through(q, p)
    assert 0.0 <= delta < 1.0
    q, p = (q, p) if p + q <= 1.0 else (1.0 - p, 1.0 - q)
    if claim.form in ("TradeOffDP", "PrivacyProfile") or p <= delta:
        return
    exact = float(claim.least_parameter(np.array([q]), np.array([p]))[0])
    bound = claim.lower(math.log((p - delta) / q), delta)
    assert bound == pytest.approx(exact, rel=2e-2 if isinstance(claim, ZeroConcentratedDP) else 1e-6)
    for other in (delta * 0.5, delta * 1.5):
        if other < p and claim.epsilon_at(other) < math.inf:
            assert claim.lower(math.log((p - other) / q), other) <= exact * (1.0 + 2e-2)


@every_claim
def test_points_of_a_search_need_not_be_inside_the_square(claim: Claim) -> None:
    for q, p in ((0.0, 0.5), (0.0, 0.0), (0.5, 1.0), (1.0, 1.0), (0.5, 0.2)):
        assert 0.0 <= claim.delta_through(q, p) <= 1.0


# as values


@every_claim
@pytest.mark.parametrize("relation", [None, Relation.LOCAL])
def test_claims_come_back_from_json_bit_for_bit(claim: Claim, relation: Relation | None) -> None:
    stored = claim.to_dict() | {"relation": None if relation is None else relation.value}
    again = claim_from_dict(json.loads(json.dumps(stored, allow_nan=False)))
    assert again.relation is relation
    assert again.to_dict() == stored
    assert type(again) is type(claim)
    assert (again == claim) == (relation is None)
    assert (hash(again) == hash(claim)) or relation is not None
    for q in (1e-7, 0.01, 0.4, 0.9):
        assert again.max_probability(q) == claim.max_probability(q)
        assert again.tangent(q) == claim.tangent(q)
    assert again.epsilon_at(0.01) == claim.epsilon_at(0.01)


@every_claim
def test_claims_are_named_shortly(claim: Claim) -> None:
    assert 0 < len(str(claim)) < 40
    assert "\n" not in str(claim)
    assert type(claim) in FORMS


@pytest.mark.long
@every_claim
@pytest.mark.parametrize("distance", [2, 3, 5])
def test_at_a_distance_nothing_that_a_chain_allows_is_refused(claim: Claim, distance: int) -> None:
    far = claim.at_distance(distance)
    assert claim.at_distance(1) is claim
    for q in (1e-6, 1e-3, 0.02, 0.3, 0.8):
        p = q
        for _ in range(distance):
            p = claim.max_probability(min(1.0, p))
        # the orders of zCDP are a grid: rho is met to a few parts in a hundred thousand
        assert p <= far.max_probability(q) * (1.0 + (1e-4 if isinstance(claim, ZeroConcentratedDP) else 1e-9))
        if claim.form in ("GaussianDP", "RenyiDP", "TradeOffDP", "PrivacyProfile"):  # the chain itself
            assert far.max_probability(q) <= p * (1.0 + 5e-4)


@every_claim
@pytest.mark.parametrize("value", [-1e-9, 1.01, math.nan, "half", None], ids=repr)
def test_probabilities_are_asked_for(claim: Claim, value: float) -> None:
    for ask in (claim.max_probability, claim.tangent, claim.epsilon_at):
        with pytest.raises(InvalidSpec, match=r"^(q|delta) must be"):
            ask(value)
    with pytest.raises(InvalidSpec, match=r"^delta must be"):
        claim.lower(1.0, value)


def test_membership_of_the_oracle_is_not_trivial() -> None:
    for claim in CLAIMS:
        test = allowed(claim)
        assert test(np.array([0.3]), np.array([0.3001]))[0]
        assert not test(np.array([0.01]), np.array([0.999]))[0]
    assert isinstance(CLAIMS[12], TradeOffDP)
