"""The order of outcomes against its definition: the score statistic with its maximum found by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.certify.unconditional import Region, ratio_bound, statistic

SIZES = ((5, 5), (7, 30), (30, 7), (25, 3))
OFFSETS = (0.0, 1e-3, 0.02, 0.5)
RATIOS = (0.3, 1.0, math.e, 20.0)


def by_grid(x: int, y: int, n: int, m: int, ratio: float, offset: float) -> float:
    """T with the likeliest point of the line found on a grid, refined twice."""
    low, high = 0.0, min(1.0, (1.0 - offset) / ratio)
    for _ in range(4):
        q = np.linspace(low, high, 2001)
        p = np.minimum(1.0, ratio * q + offset)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [np.where(k > 0, k * np.log(share), 0.0) for k, share in ((x, p), (n - x, 1.0 - p))]
            terms += [np.where(k > 0, k * np.log(share), 0.0) for k, share in ((y, q), (m - y, 1.0 - q))]
        best = int(np.argmax(np.nan_to_num(sum(terms), nan=-np.inf)))
        low, high = q[max(0, best - 1)], q[min(2000, best + 1)]
    q0 = float(q[best])
    p0 = min(1.0, ratio * q0 + offset)
    return (x / n - ratio * y / m - offset) / math.sqrt(p0 * (1.0 - p0) / n + ratio**2 * q0 * (1.0 - q0) / m)


def table(n: int, m: int, ratio: float, offset: float) -> np.ndarray:
    return np.array([[statistic(x, y, n, m, ratio, offset) for y in range(m + 1)] for x in range(n + 1)])


@pytest.mark.parametrize(("n", "m"), [(7, 12), (40, 25)])
def test_the_statistic_is_its_definition(n: int, m: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        x, y = int(rng.integers(1, n + 1)), int(rng.integers(0, m + 1))
        ratio, offset = float(rng.choice([0.5, 1.0, 1.7, 6.0])), float(rng.choice([0.0, 0.01, 0.3]))
        if x / n > ratio * y / m + offset:
            value = statistic(x, y, n, m, ratio, offset)
            assert value == pytest.approx(by_grid(x, y, n, m, ratio, offset), rel=1e-5), (x, y, ratio, offset)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_it_rises_in_x_and_falls_in_y_and_in_the_ratio(n: int, m: int) -> None:
    """Where x / n lies above the line; on this rest the nested order, the staircase and the cells."""
    for offset in OFFSETS:
        before = None
        for ratio in RATIOS:
            value = table(n, m, ratio, offset)
            above = value > 0.0
            both = above[1:] & above[:-1]
            assert np.all(np.diff(value, axis=0)[both] >= -1e-9)
            both = above[:, 1:] & above[:, :-1]
            assert np.all(np.diff(value, axis=1)[both] <= 1e-9)
            assert before is None or np.all((value <= before + 1e-9)[above])
            before = value


@pytest.mark.long
@pytest.mark.parametrize("z", [0.5, 1.645, 4.75])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_region_is_what_the_statistic_says(n: int, m: int, z: float) -> None:
    """Not one outcome of T >= z is left out, and none further than rounding is in."""
    for offset in OFFSETS:
        for ratio in (*RATIOS, 200.0):
            limits = Region(n, m, ratio, offset, z).limits(np.arange(n + 1))
            inside = table(n, m, ratio, offset)
            expected = [int(np.max(np.flatnonzero(row >= z), initial=-1)) for row in inside]
            assert limits.tolist() == expected, (ratio, offset)


def test_the_bound_is_the_root() -> None:
    for x, y, n, m, offset in (
        (30, 10, 100, 100, 0.0),
        (30, 0, 100, 50, 0.01),
        (100, 3, 100, 400, 0.2),
        (5, 4, 9, 9, 0),
    ):
        value = ratio_bound(x, y, n, m, offset, 1.645)
        assert statistic(x, y, n, m, value, offset) == pytest.approx(1.645, rel=1e-6)
        assert statistic(x, y, n, m, value, offset) >= 1.645
        assert y <= Region(n, m, value, offset, 1.645).limits(np.array([x]))[0]
    assert ratio_bound(30, 0, 100, 100, 0.29, 1.645) == 0.0  # within chance of the offset alone
    assert ratio_bound(0, 0, 10, 10, 0.0, 1.645) == 0.0


def test_koopman_and_the_pooled_test_of_the_books() -> None:
    """At a ratio of 1 without an offset the constrained maximum is the pooled share."""
    for x, y, n, m in ((30, 20, 100, 100), (7, 2, 40, 90)):
        pooled = (x + y) / (n + m)
        expected = (x / n - y / m) / math.sqrt(pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m))
        assert statistic(x, y, n, m, 1.0, 0.0) == pytest.approx(expected, rel=1e-9)


def test_many_values_at_once_are_found_in_strides() -> None:
    region = Region(10**8, 10**8, 5e6, 0.0, 1.645)
    x = np.arange(0, 10**8, 9973)
    every = np.concatenate([region.limits(part) for part in np.array_split(x, 10)])
    assert region.limits(x).tolist() == every.tolist()
