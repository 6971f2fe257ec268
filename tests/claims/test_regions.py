"""Regions against brute force: what the claim allows is what some pair of distributions reaches, and no more."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.claims import ApproximateDP, Claim, HalfPlane, PureDP

EPSILONS = (0.0, 0.1, math.log(2.0), 1.0, 3.0)
DELTAS = (0.0, 1e-5, 0.01, 0.3, 1.0)
GRID = np.concatenate([np.linspace(0.0, 1.0, 101), [1e-12, 1e-6, 1.0 - 1e-6]])
ROUNDING = 1e-12

epsilons = st.floats(0.0, 8.0)
deltas = st.one_of(st.just(0.0), st.floats(0.0, 0.5))
probabilities = st.floats(0.0, 1.0)


CLAIMS: list[Claim] = [
    *(PureDP(epsilon) for epsilon in EPSILONS),
    *(ApproximateDP(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS),
]


def extremal(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """The pair that reaches every corner: with probability delta the data itself, otherwise randomised response."""
    share = 1.0 / (1.0 + math.exp(-epsilon))
    rest = 1.0 - delta
    return [delta, 0.0, rest * share, rest * (1.0 - share)], [0.0, delta, rest * (1.0 - share), rest * share]


def events(p: list[float], q: list[float]) -> Iterator[tuple[float, float]]:
    """(P(S), Q(S)) of all sets of outputs."""
    for inside in itertools.product((0, 1), repeat=len(p)):
        yield (
            min(1.0, sum(x for x, i in zip(p, inside, strict=True) if i)),
            min(1.0, sum(x for x, i in zip(q, inside, strict=True) if i)),
        )


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_extremal_pair_fills_the_region_and_never_leaves_it(claim: Claim) -> None:
    """Every event of it lies in the region; its events, mixed at random, reach the boundary at every Q(S)."""
    epsilon = float(getattr(claim, "epsilon"))
    points = [*events(*extremal(epsilon, claim.delta)), (1.0, 1.0)]  # the last: all outputs, free of rounding
    for p, q in points:
        assert p <= claim.max_probability(q) + ROUNDING
    for q in GRID:
        reached = max(
            (p1 + (p2 - p1) * (q - q1) / (q2 - q1) if q2 > q1 else max(p1, p2))
            for (p1, q1), (p2, q2) in itertools.product(points, repeat=2)
            if q1 <= q <= q2
        )
        assert claim.max_probability(float(q)) == pytest.approx(reached, abs=1e-9)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_boundary_is_the_largest_probability_that_both_orders_allow(claim: Claim) -> None:
    ratio, delta = math.exp(float(getattr(claim, "epsilon"))), claim.delta

    def allowed(p: float, q: float) -> bool:
        """P against Q on the event, and Q against P on its complement: the definition, both ways."""
        return p <= ratio * q + delta + ROUNDING and 1.0 - q <= ratio * (1.0 - p) + delta + ROUNDING

    for q in GRID:
        edge = claim.max_probability(float(q))
        assert 0.0 <= edge <= 1.0
        assert edge >= q - ROUNDING
        assert allowed(edge, float(q))
        assert edge == 1.0 or not allowed(edge + 1e-9, float(q))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), epsilon=st.floats(0.0, 3.0), atoms=st.integers(2, 6))
def test_any_pair_lies_in_the_region_of_its_own_delta(seed: int, epsilon: float, atoms: int) -> None:
    """delta(epsilon) is the largest excess of an event: with it all events are allowed, with less one is not."""
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(atoms, 0.7)).tolist() for _ in range(2))
    both = [*events(p, q), *events(q, p)]
    excess = max(a - math.exp(epsilon) * b for a, b in both)
    claim = ApproximateDP(epsilon, min(1.0, max(0.0, excess)))
    assert all(a <= claim.max_probability(b) + 1e-9 for a, b in both)
    if excess > 1e-6:
        smaller = ApproximateDP(epsilon, excess - 1e-7)
        assert any(a > smaller.max_probability(b) + 1e-9 for a, b in both)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_tangent_holds_the_region_and_touches_it(claim: Claim) -> None:
    for at in GRID:
        plane = claim.tangent(float(at))
        edges = [claim.max_probability(float(q)) for q in GRID]
        assert all(plane.ratio * q + plane.offset >= edge - ROUNDING for q, edge in zip(GRID, edges, strict=True))
        if at <= 1.0 - claim.delta:  # beyond it the region is the whole square: nothing can be refuted there
            assert plane.ratio * at + plane.offset == pytest.approx(claim.max_probability(float(at)), abs=1e-9)


@settings(derandomize=True, deadline=None)
@given(epsilon=epsilons, delta=deltas, p=probabilities, q=probabilities)
def test_refuting_a_tangent_refutes_the_claim(epsilon: float, delta: float, p: float, q: float) -> None:
    claim = ApproximateDP(epsilon, delta)
    if not claim.tangent(q).holds(p, q):
        assert p > claim.max_probability(q) - ROUNDING


@settings(derandomize=True, deadline=None)
@given(epsilon=epsilons, delta=deltas, low=probabilities, high=probabilities)
def test_the_boundary_rises_and_is_concave(epsilon: float, delta: float, low: float, high: float) -> None:
    claim = ApproximateDP(epsilon, delta)
    low, high = sorted((low, high))
    left, right = claim.max_probability(low), claim.max_probability(high)
    assert left <= right + ROUNDING
    assert claim.max_probability((low + high) / 2.0) >= (left + right) / 2.0 - ROUNDING


@settings(derandomize=True, deadline=None)
@given(epsilon=epsilons, more=st.floats(0.0, 2.0), delta=deltas, extra=st.floats(0.0, 0.5), q=probabilities)
def test_a_weaker_claim_allows_more(epsilon: float, more: float, delta: float, extra: float, q: float) -> None:
    assert PureDP(epsilon).max_probability(q) == ApproximateDP(epsilon, 0.0).max_probability(q)
    assert PureDP(epsilon).max_probability(q) <= PureDP(epsilon + more).max_probability(q) + ROUNDING
    stronger, weaker = ApproximateDP(epsilon, delta), ApproximateDP(epsilon + more, delta + extra)
    assert stronger.max_probability(q) <= weaker.max_probability(q) + ROUNDING


@pytest.mark.parametrize(
    "claim", [PureDP(0.2), PureDP(1.0), ApproximateDP(0.0, 0.01), ApproximateDP(0.7, 1e-3)], ids=str
)
@pytest.mark.parametrize("distance", [1, 2, 3, 7])
def test_the_claim_at_a_distance_is_the_chain_of_claims(claim: Claim, distance: int) -> None:
    """Along D0, D1, ..., Dk each step allows G; k steps allow no more than the claim at distance k, and just that."""
    far = claim.at_distance(distance)
    for q in (0.0, 1e-6, 1e-4, 0.01, 0.3, 0.9, 1.0):
        p = q
        for _ in range(distance):
            p = claim.max_probability(p)
        assert p <= far.max_probability(q) + ROUNDING
    p = 1e-6
    for _ in range(distance):
        p = claim.max_probability(p)
    assert p == pytest.approx(far.max_probability(1e-6), rel=1e-9)
    assert claim.at_distance(1).max_probability(0.01) == pytest.approx(claim.max_probability(0.01), rel=1e-15)


def test_claims_far_beyond_any_number_still_are_regions() -> None:
    for claim in (PureDP(800.0), ApproximateDP(800.0, 0.5), PureDP(1.0).at_distance(2000)):
        assert claim.max_probability(1e-300) == 1.0
        assert claim.max_probability(0.0) == claim.delta
        assert claim.tangent(0.5).holds(p=1.0, q=0.5)
    assert ApproximateDP(1.0, 1e-9).at_distance(2000).delta == 1.0


def test_a_half_plane_holds_its_own_edge() -> None:
    plane = HalfPlane(ratio=2.0, offset=0.25)
    assert plane.holds(p=0.75, q=0.25)
    assert not plane.holds(p=0.7500001, q=0.25)
