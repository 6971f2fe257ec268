"""Regions of one line against brute force: what the claim allows some pair of distributions reaches, and no more.

Boundary and tangents of every form against its definition: `test_forms.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.claims import ApproximateDP, HalfPlane, PureDP
from tests.cases import for_each

GRID = np.concatenate([np.linspace(0.0, 1.0, 51), [1e-12, 1e-6, 1.0 - 1e-6]]).tolist()
ROUNDING = 1e-12

probabilities = st.floats(0.0, 1.0)


def events(p: list[float], q: list[float]) -> Iterator[tuple[float, float]]:
    """(P(S), Q(S)) of all sets of outputs."""
    for inside in itertools.product((0, 1), repeat=len(p)):
        yield (
            min(1.0, sum(x for x, i in zip(p, inside, strict=True) if i)),
            min(1.0, sum(x for x, i in zip(q, inside, strict=True) if i)),
        )


@for_each("delta", [0.0, 1e-5, 0.01, 0.3, 1.0])
@for_each("epsilon", [0.0, 0.1, math.log(2.0), 1.0, 3.0])
def test_the_extremal_pair_fills_the_region_and_never_leaves_it(epsilon: float, delta: float) -> None:
    """Every event of it lies in the region and below each tangent; mixed at random, its events reach the boundary at
    every Q(S). The pair: with probability delta the data itself, otherwise randomised response."""
    claim, rest, share = ApproximateDP(epsilon, delta), 1.0 - delta, 1.0 / (1.0 + math.exp(-epsilon))
    p, q = [delta, 0.0, rest * share, rest * (1.0 - share)], [0.0, delta, rest * (1.0 - share), rest * share]
    points = [*events(p, q), (1.0, 1.0)]  # the last: all outputs, free of rounding
    for at in GRID:
        plane, edge = claim.tangent(at), claim.max_probability(at)
        assert all(b <= claim.max_probability(a) + ROUNDING for b, a in points)
        assert all(b <= plane.ratio * a + plane.offset + ROUNDING for b, a in points)
        if at <= 1.0 - delta:  # beyond it the region is the whole square: nothing can be refuted there
            assert plane.ratio * at + plane.offset == pytest.approx(edge, abs=1e-9)
        reached = max(
            (p1 + (p2 - p1) * (at - q1) / (q2 - q1) if q2 > q1 else max(p1, p2))
            for (p1, q1), (p2, q2) in itertools.product(points, repeat=2)
            if q1 <= at <= q2
        )
        assert edge == pytest.approx(reached, abs=1e-9)
        assert delta > 0.0 or PureDP(epsilon).max_probability(at) == edge


@settings(derandomize=True, deadline=None, max_examples=30)
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


@settings(derandomize=True, deadline=None)
@given(
    epsilon=st.floats(0.0, 8.0), delta=st.one_of(st.just(0.0), st.floats(0.0, 0.5)), p=probabilities, q=probabilities
)
def test_refuting_a_tangent_refutes_the_claim(epsilon: float, delta: float, p: float, q: float) -> None:
    claim = ApproximateDP(epsilon, delta)
    if not claim.tangent(q).holds(p, q):
        assert p > claim.max_probability(q) - ROUNDING


@for_each("distance", [1, 2, 3, 7])
@for_each("claim", [PureDP(0.2), PureDP(1.0), ApproximateDP(0.0, 0.01), ApproximateDP(0.7, 1e-3)])
def test_the_claim_at_a_distance_is_the_chain_of_claims(claim: PureDP | ApproximateDP, distance: int) -> None:
    """Along D0, D1, ..., Dk each step allows G; k steps allow no more than the claim at distance k, and just that."""
    far = claim.at_distance(distance)
    for q in (1e-6, 0.0, 1e-4, 0.01, 0.3, 0.9, 1.0):
        p = q
        for _ in range(distance):
            p = claim.max_probability(p)
        assert p <= far.max_probability(q) + ROUNDING
        assert q != 1e-6 or p == pytest.approx(far.max_probability(q), rel=1e-9)


def test_claims_far_beyond_any_number_still_are_regions() -> None:
    for claim in (PureDP(800.0), ApproximateDP(800.0, 0.5), PureDP(1.0).at_distance(2000)):
        assert claim.max_probability(1e-300) == 1.0
        assert claim.max_probability(0.0) == claim.delta
        assert claim.tangent(0.5).holds(p=1.0, q=0.5)
    assert ApproximateDP(1.0, 1e-9).at_distance(2000).delta == 1.0
    edge = HalfPlane(ratio=2.0, offset=0.25)  # it holds its own edge
    assert [edge.holds(p, q=0.25) for p in (0.75, 0.7500001)] == [True, False]
