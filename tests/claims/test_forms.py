"""Every form against its definition: half-planes hold the region and touch it, and each answer inverts another."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dpaudit.claims import FORMS, Claim, Relation, ZeroConcentratedDP, claim_from_dict
from dpaudit.claims.renyi import ORDERS
from dpaudit.errors import InvalidSpec
from tests.cases import NIGHTLY, for_each, some
from tests.claims.definitions import CLAIMS, MEMBERS, Reals, allowed, boundary, renyi

Q = np.concatenate([np.geomspace(1e-9, 0.5, 120), 1.0 - np.geomspace(1e-9, 0.5, 120)[-2::-1]])
DELTAS = (1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.2)
STEP_BY_LINES = ("TradeOffDP", "PrivacyProfile")  # their parameter is a shift of every line


def concentrated(claim: Claim) -> bool:
    """Whether an answer takes a search among a thousand orders."""
    return isinstance(claim, ZeroConcentratedDP)


def few(claim: Claim, values: tuple[float, ...]) -> tuple[float, ...]:
    """By day every third where a claim is slow."""
    return values[::3] if concentrated(claim) and not NIGHTLY else values


@cache
def edge(claim: Claim) -> tuple[Reals, Reals]:
    """Points (q, G(q)), from the definition."""
    q = Q[::8] if concentrated(claim) else Q
    return q, boundary(claim, q)


@cache
def surely_allowed(claim: Claim) -> tuple[Reals, Reals]:
    """Points (q, p) that the definition allows."""
    if not concentrated(claim):
        return Q, edge(claim)[1] * (1.0 - 1e-14) - 4e-16
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
@for_each("claim", CLAIMS)
def test_the_boundary_is_what_the_definition_allows(claim: Claim) -> None:
    """To 5e-3 where the definition is taken at the orders of a grid; and the oracle is not trivial."""
    q, exact = edge(claim)
    values = np.array([claim.max_probability(each) for each in q.tolist()])
    assert np.all(values >= exact * (1.0 - (5e-3 if concentrated(claim) else 1e-9)))
    assert np.all(values <= exact * (1.0 + 1e-8))
    assert claim.max_probability(1.0) == 1.0
    assert claim.max_probability(0.0) == pytest.approx(claim.delta, abs=1e-15)
    for least in (1e-15, 1e-9, 1e-3):  # equal laws are within every claim, to the last digit
        assert claim.max_probability(least) >= least
    assert allowed(claim)(np.array([0.3]), np.array([0.3]))[0]
    assert not allowed(claim)(np.array([0.01]), np.array([0.999]))[0]


@pytest.mark.long
@for_each("claim", CLAIMS)
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
@for_each("claim", some(CLAIMS, 9))
def test_half_planes_hold_the_region_and_are_the_least(claim: Claim) -> None:
    """At a delta, and at an epsilon."""
    q, p = surely_allowed(claim)
    for delta in few(claim, DELTAS):
        epsilon = claim.epsilon_at(delta)
        if epsilon == math.inf:
            assert delta < claim.delta
            continue
        assert np.all(p <= math.exp(epsilon) * q + delta)
        if 0.0 < epsilon < 20.0:
            # where q is far below delta the difference has no digits left
            rarest = 1e-6 if claim.delta else 1e-18
            least = largest(lambda q, delta=delta: (claim.max_probability(q) - delta) / q, rarest)
            assert math.log(least) == pytest.approx(epsilon, rel=2e-5 if concentrated(claim) else 1e-6)
    for epsilon in few(claim, (0.3, 0.0, 1.0, 2.5)):
        slope = math.exp(epsilon)
        excess = largest(lambda q, slope=slope: claim.max_probability(q) - slope * q)
        assert claim.delta_at(epsilon) == pytest.approx(max(0.0, excess), rel=1e-4, abs=1e-8)
        assert np.all(p - slope * q <= claim.delta_at(epsilon) + 1e-15)


@for_each("claim", CLAIMS)
def test_delta_and_epsilon_fall_and_invert_each_other(claim: Claim) -> None:
    for delta in DELTAS:
        epsilon = claim.epsilon_at(delta)
        if 0.0 < epsilon < math.inf:
            assert claim.delta_at(epsilon) == pytest.approx(delta, rel=1e-7)
            assert claim.delta_at(epsilon * 1.001) <= delta * (1.0 + 1e-12)
    profile = [claim.delta_at(epsilon) for epsilon in np.linspace(0.0, 6.0, 40).tolist()]
    assert all(a >= b for a, b in itertools.pairwise(profile))
    values = [claim.epsilon_at(delta) for delta in (0.0, *np.geomspace(1e-14, 0.4, 36).tolist(), 0.55, 0.7, 0.85, 1.0)]
    assert all(a >= b * (1.0 - 1e-12) and b >= 0.0 for a, b in itertools.pairwise(values))
    assert claim.epsilon_at(1.0) == 0.0
    assert claim.delta_at(math.inf) == pytest.approx(claim.delta, abs=1e-150)


@for_each("delta", [1e-12, 1e-6, 1e-3, 0.05])
@for_each("name, member", MEMBERS)
def test_the_bound_on_the_parameter_inverts_the_members(
    name: str, member: Callable[[float], Claim], delta: float
) -> None:
    for value in (1e-3, 0.05, 0.7, 3.0):
        claim = member(value)
        epsilon = claim.epsilon_at(delta)
        if 0.0 < epsilon < math.inf:
            assert claim.lower(epsilon, delta) == pytest.approx(claim.promised(delta), rel=1e-8)
            assert claim.lower(epsilon * (1.0 - 1e-9), delta) <= claim.promised(delta)
    bounds = [member(1.0).lower(epsilon, delta) for epsilon in (-1.0, 0.0, 0.01, 0.1, 1.0, 5.0, 30.0)]
    assert bounds[:2] == [0.0, 0.0]
    assert bounds == sorted(bounds)
    if member(1.0).epsilon_at(0.0) == math.inf and member(1.0).parameter in ("mu", "rho"):
        assert member(1.0).lower(1.0, 0.0) == 0.0


@settings(derandomize=True, deadline=None, max_examples=100)
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
    if 1e-6 < promised < 500.0 and abs(share - 1.0) >= 1e-6:
        assert (claim.lower(promised * share, delta) > value) == (share > 1.0)


@for_each("claim", CLAIMS)
def test_the_least_parameter_is_that_of_the_boundary_symmetric_and_there_for_any_point(claim: Claim) -> None:
    """The datasets exchanged, and the event with its complement: (q, p) becomes (1 - p, 1 - q)."""
    q = np.array([1e-6, 1e-3, 0.05, 0.2, 0.45, 0.7])
    p = np.array([claim.max_probability(x) for x in q.tolist()])
    promised = 0.0 if claim.form in STEP_BY_LINES else claim.promised(0.01)
    # of many orders, a coarse search
    close = pytest.approx(promised, rel=2e-2) if concentrated(claim) else pytest.approx(promised, rel=1e-6, abs=1e-6)
    assert claim.least_parameter(q, p)[p < 1.0] == close
    for x, y in zip(q.tolist(), p.tolist(), strict=True):
        if y < 1.0 - 1e-9:
            assert claim.max_probability(1.0 - y) == pytest.approx(1.0 - x, rel=1e-7)
    q, p = np.array([0.01, 0.2, 0.3, 0.6]), np.array([0.05, 0.3, 0.9, 0.99])
    assert claim.least_parameter(1.0 - p, 1.0 - q) == pytest.approx(claim.least_parameter(q, p), rel=1e-9)
    q, p = np.meshgrid([0.0, 1e-9, 0.3, 0.5, 1.0], [0.0, 1e-9, 0.3, 0.5, 1.0])
    value = claim.least_parameter(q, p)
    assert (value.shape, np.any(np.isnan(value))) == ((5, 5), False)
    assert np.all(value[(q == 0.0) & (p > claim.delta)] == np.inf)
    assert np.all(value[p <= q] <= 1e-12)
    assert claim.least_parameter(q.ravel(), p.ravel()).shape == (25,)


@for_each(("q", "p"), [(0.05, 0.4), (0.01, 0.02), (1e-4, 0.3), (0.3, 0.65), (0.6, 0.95)])
@for_each("claim", CLAIMS)
def test_the_frozen_delta_is_the_best_for_its_point(claim: Claim, q: float, p: float) -> None:
    """At it the point's half-plane bounds the parameter by what the region gives, and at others by less."""
    delta = claim.delta_through(q, p)
    assert 0.0 <= delta < 1.0
    for x, y in ((0.0, 0.5), (0.0, 0.0), (0.5, 1.0), (1.0, 1.0), (0.5, 0.2)):  # of a search, at the edge of the square
        assert 0.0 <= claim.delta_through(x, y) <= 1.0
    q, p = (q, p) if p + q <= 1.0 else (1.0 - p, 1.0 - q)
    if claim.form in STEP_BY_LINES or p <= delta:
        return
    exact = float(claim.least_parameter(np.array([q]), np.array([p]))[0])
    bound = claim.lower(math.log((p - delta) / q), delta)
    assert bound == pytest.approx(exact, rel=2e-2 if concentrated(claim) else 1e-6)
    for other in (delta * 0.5, delta * 1.5):
        if other < p and claim.epsilon_at(other) < math.inf:
            assert claim.lower(math.log((p - other) / q), other) <= exact * (1.0 + 2e-2)


@pytest.mark.long
@for_each("distance", [2, 5], nightly=[3])
@for_each("claim", CLAIMS)
def test_at_a_distance_nothing_that_a_chain_allows_is_refused(claim: Claim, distance: int) -> None:
    far = claim.at_distance(distance)
    assert claim.at_distance(1) is claim
    for q in (1e-6, 1e-3, 0.02, 0.3, 0.8):
        p = q
        for _ in range(distance):
            p = claim.max_probability(min(1.0, p))
        # the orders of zCDP are a grid: rho is met to a few parts in a hundred thousand
        assert p <= far.max_probability(q) * (1.0 + (1e-4 if concentrated(claim) else 1e-9))
        if claim.form in ("GaussianDP", "RenyiDP", *STEP_BY_LINES):  # the chain itself; of others at small q alone
            assert far.max_probability(q) <= p * (1.0 + 5e-4)


@for_each("relation", [None, Relation.LOCAL])
@for_each("claim", CLAIMS)
def test_claims_come_back_from_json_bit_for_bit(claim: Claim, relation: Relation | None) -> None:
    stored = claim.to_dict() | {"relation": None if relation is None else relation.value}
    again = claim_from_dict(json.loads(json.dumps(stored, allow_nan=False)))
    assert (again.relation, again.to_dict(), type(again)) == (relation, stored, type(claim))
    assert (again == claim) == (relation is None)
    assert (hash(again) == hash(claim)) or relation is not None
    for q in (1e-7, 0.01, 0.4, 0.9):
        assert again.max_probability(q) == claim.max_probability(q)
        assert again.tangent(q) == claim.tangent(q)
    assert again.epsilon_at(0.01) == claim.epsilon_at(0.01)
    assert 0 < len(str(claim)) < 40
    assert type(claim) in FORMS


@for_each("value", [-1e-9, 1.01, math.nan, "half", None])
@for_each("claim", CLAIMS)
def test_probabilities_are_asked_for(claim: Claim, value: float) -> None:
    for ask in (claim.max_probability, claim.tangent, claim.epsilon_at):
        with pytest.raises(InvalidSpec, match=r"^(q|delta) must be"):
            ask(value)
    with pytest.raises(InvalidSpec, match=r"^delta must be"):
        claim.lower(1.0, value)
