"""Regions of straight lines: tables and profiles, what they refuse, and what iterating and thinning may do to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from dpaudit.claims import ApproximateDP, GaussianDP, PrivacyProfile, PureDP, TradeOffDP
from dpaudit.claims.profile import Lines, iterated
from dpaudit.errors import InvalidSpec
from tests.cases import for_each

Q = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 60), 1.0 - np.geomspace(1e-9, 0.5, 60)[-2::-1], [1.0]])
line_sets = st.lists(st.tuples(st.floats(0.0, 6.0), st.floats(0.0, 1.0)), min_size=1, max_size=12)


def least(lines: list[tuple[float, float]], q: float) -> float:
    """G(q) by trying every line and every mirror image."""
    rising = [math.exp(epsilon) * q + delta for epsilon, delta in lines]
    falling = [1.0 - (1.0 - q - delta) * math.exp(-epsilon) for epsilon, delta in lines]
    return min(1.0, *rising, *falling)


@pytest.mark.long
@settings(derandomize=True, deadline=None, max_examples=150)
@given(lines=line_sets)
def test_a_region_is_the_least_of_all_its_lines(lines: list[tuple[float, float]]) -> None:
    region = Lines.of(lines)
    assert set(region.lines) <= {(epsilon, delta) for epsilon, delta in lines}
    for q in Q.tolist():
        assert region.max_probability(q) == pytest.approx(least(lines, q), abs=1e-12)
    assert all(a > b for a, b in zip(region.epsilon, region.epsilon[1:], strict=False))
    assert all(a < b for a, b in zip(region.delta, region.delta[1:], strict=False))
    for epsilon, delta in region.lines:
        assert region.epsilon_at(delta) == epsilon
        assert region.delta_at(epsilon) == delta


@settings(derandomize=True, deadline=None, max_examples=100)
@given(lines=line_sets, tolerance=st.sampled_from([1e-6, 1e-3, 0.1]))
def test_thinning_grows_a_region_by_no_more_than_it_says(lines: list[tuple[float, float]], tolerance: float) -> None:
    region = Lines.of(lines)
    thin = region.thinned(tolerance)
    for q in Q.tolist():
        exact, value = region.max_probability(q), thin.max_probability(q)
        assert exact - 1e-15 <= value
        if exact + q <= 1.0:
            assert value <= exact * (1.0 + 2.0 * tolerance) + 1e-12


@settings(derandomize=True, deadline=None, max_examples=60)
@given(lines=line_sets)
def test_two_steps_are_the_composition_of_the_boundary_with_itself(lines: list[tuple[float, float]]) -> None:
    region = Lines.of(lines)
    twice, thrice = region.after(region), region.after(region).after(region)
    for q in Q.tolist():
        exact = region.max_probability(region.max_probability(q))
        assert twice.max_probability(q) == pytest.approx(exact, abs=1e-9)
        assert thrice.max_probability(q) == pytest.approx(region.max_probability(exact), abs=1e-9)


@for_each("distance", [2, 3, 6])
def test_lines_at_a_distance_agree_with_the_closed_forms(distance: int) -> None:
    pure = PrivacyProfile(((0.3, 0.0),)).at_distance(distance)
    assert pure.epsilon_at(0.0) == pytest.approx(0.3 * distance, rel=1e-12)
    one, far = PrivacyProfile(((0.3, 1e-6),)).at_distance(distance), ApproximateDP(0.3, 1e-6).at_distance(distance)
    assert one.delta == pytest.approx(far.delta, rel=1e-9)
    assert one.epsilon_at(far.delta * (1.0 + 1e-9)) == pytest.approx(far.epsilon, rel=1e-6)
    assert iterated(Lines.of([(0.0, 0.25)]), 8, 1e-6).max_probability(0.1) == 1.0


def test_a_profile_is_sorted_keeps_its_points_and_with_one_is_approximate_dp() -> None:
    for at in (0.0, 0.01, 0.1, 1.0):
        one, exact = PrivacyProfile([(1.0, 0.01)]), ApproximateDP(1.0, 0.01)
        assert (one.epsilon_at(at), one.delta_at(at)) == (exact.epsilon_at(at), exact.delta_at(at))
    claim = PrivacyProfile(np.array([[1.0, 0.02], [0.5, 0.1]]), "local")  # type: ignore[arg-type]
    assert claim.curve == ((0.5, 0.1), (1.0, 0.02))
    assert str(claim) == "privacy profile of 2 points"
    assert str(PrivacyProfile([(1.0, 0.0)])) == "privacy profile of 1 point"
    assert claim == PrivacyProfile(((0.5, 0.1), (1.0, 0.02)), claim.relation)


@for_each(
    ("curve", "message"),
    [
        ([], "curve needs at least one point"),
        (3.0, "curve must be a sequence of points, got 3.0"),
        ("ab", "curve must be a sequence of points, got 'ab'"),
        ([(1.0, 0.1), (2.0,)], r"curve\[1\] must be a point of two numbers, got \(2.0,\)"),
        ([(-1.0, 0.1)], r"epsilon of curve\[0\] must be finite and at least 0, got -1.0"),
        ([(math.inf, 0.1)], r"epsilon of curve\[0\] must be finite"),
        ([(1.0, 1.5)], r"delta of curve\[0\] must be in \[0, 1\], got 1.5"),
        ([(1.0, math.nan)], r"delta of curve\[0\] must be a number, got NaN"),
        ([(True, 0.1)], r"epsilon of curve\[0\] must be a number, got True"),
    ],
)
def test_a_wrong_profile_is_refused(curve: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=f"^{message}") as caught:
        PrivacyProfile(curve)
    assert "\n" not in str(caught.value)


@for_each(
    ("f", "exact"),
    [
        (lambda x: float(ndtr(-ndtri(x) - 1.0)), GaussianDP(1.0)),
        (lambda x: float(ndtr(-ndtri(x) - 0.1)), GaussianDP(0.1)),
        (lambda x: max(0.0, 1.0 - math.e * x, (1.0 - x) / math.e), PureDP(1.0)),
        (lambda x: max(0.0, 0.99 - math.e * x, (0.99 - x) / math.e), ApproximateDP(1.0, 0.01)),
    ],
    ids=["gaussian", "gaussian-small", "pure", "approximate"],
)
def test_a_function_becomes_a_table_that_allows_a_little_more(f: Callable[[float], float], exact: Any) -> None:
    claim = TradeOffDP(f)
    assert len(claim.table) < 1500
    for q in Q.tolist():
        assert exact.max_probability(q) <= claim.max_probability(q) + 1e-15
        if 1e-6 <= q <= 0.9:
            assert claim.max_probability(q) <= exact.max_probability(q) * (1.0 + 3e-4)
    for delta in (0.02, 0.1):
        assert exact.epsilon_at(delta) * (1.0 - 1e-12) <= claim.epsilon_at(delta) <= exact.epsilon_at(delta) + 2e-3
    again = TradeOffDP(claim.f, outer=True)
    assert again == claim
    assert again.region == claim.region


def test_a_function_is_symmetrised() -> None:
    """One half of the trade-off is given, the other follows; the larger of f and its inverse counts."""
    half = TradeOffDP(((0.0, 1.0), (0.25, 0.25), (1.0, 0.0)))
    lop = TradeOffDP(((0.0, 1.0), (0.2, 0.4), (1.0, 0.0)))
    mirrored = TradeOffDP(((0.0, 1.0), (0.4, 0.2), (1.0, 0.0)))
    for q in Q.tolist():
        assert half.max_probability(q) == pytest.approx(PureDP(math.log(3.0)).max_probability(q), abs=1e-14)
        assert lop.max_probability(q) == pytest.approx(mirrored.max_probability(q), abs=1e-14)
        low = min(1.0 - np.interp(q, *zip(*one.table, strict=True)) for one in (lop, mirrored))
        assert lop.max_probability(q) == pytest.approx(low, abs=1e-14)


def test_a_table_of_perfect_privacy_and_of_none() -> None:
    assert TradeOffDP(((0.0, 1.0), (1.0, 0.0))).epsilon_at(0.0) == pytest.approx(0.0, abs=1e-14)
    nothing = TradeOffDP(((0.0, 0.0), (1.0, 0.0)))
    assert nothing.max_probability(0.0) == 1.0
    assert nothing.epsilon_at(0.5) == math.inf
    assert TradeOffDP(lambda x: 0.0).max_probability(0.0) == 1.0
    assert TradeOffDP(lambda x: 1.0 - x).max_probability(0.3) == pytest.approx(0.3, rel=1e-9)


@for_each(
    ("f", "message"),
    [
        ([], "f must have points from a type I error of 0 to one of 1, got no point"),
        ([(0.1, 0.5), (1.0, 0.0)], "f must have points from a type I error of 0 to one of 1, got 0.1 to 1"),
        ([(0.0, 0.5), (0.9, 0.0)], "f must have points from a type I error of 0 to one of 1, got 0 to 0.9"),
        ([(0.0, 0.9), (0.5, 0.3), (0.4, 0.3), (1.0, 0.0)], "f must have rising type I errors, got 0.4 after 0.5"),
        ([(0.0, 0.3), (0.5, 0.4), (1.0, 0.0)], r"f must not rise, got f\(0.5\) = 0.4 after f\(0.0\) = 0.3"),
        ([(0.0, 1.0), (0.5, 0.6), (1.0, 0.0)], r"f must be at most 1 - x, got f\(0.5\) = 0.6"),
        ([(0.0, 0.9), (0.3, 0.61), (0.5, 0.2), (1.0, 0.0)], r"f must be convex, got f\(0.3\) = 0.61 above the line"),
        ([(0.0, 1.2), (1.0, 0.0)], r"f\(0\) must be in \[0, 1\], got 1.2"),
        ([(0.0, "a"), (1.0, 0.0)], r"f\(0\) must be a number, got 'a'"),
        (5, "f must be a sequence of points, got 5"),
        (lambda x: 1.0 - x * x, r"f must be at most 1 - x, got f\("),
        (lambda x: (1.0 - x) * (0.5 + 0.1 * math.cos(20 * x)), r"f must not rise, got f\("),
        (lambda x: (1.0 - x) * (1.0 - 0.5 * (x > 0.3)), r"f must be convex, got f\("),
        (lambda x: math.nan, r"f\(0.0\) must be a number, got NaN"),
        (lambda x: None, r"f\(0.0\) must be a number, got None"),
    ],
)
def test_a_wrong_trade_off_function_is_refused_at_its_point(f: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=f"^{message}") as caught:
        TradeOffDP(f)
    assert "\n" not in str(caught.value)
