"""Snapped noise: its loss against the cells of the grid, and outputs that stay on it. No test depends on chance."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpaudit.catalogue.additive import snapping
from tests.cases import for_each


@pytest.mark.parametrize(("epsilon", "sensitivity", "grid"), [(1.0, 1.0, 1.0), (3.0, 1.0, 0.5), (0.5, 3.0, 8.0)])
def test_outputs_lie_on_the_grid_and_inside_the_bound(epsilon: float, sensitivity: float, grid: float) -> None:
    entry = snapping.with_parameters({"epsilon": epsilon, "sensitivity": sensitivity, "bound": 10.25})
    rng = np.random.default_rng(1)
    found = entry.open().call(1.3, 5_000, rng)
    one_by_one = [entry.run(1.3, rng) for _ in range(500)]
    for value in {*found.tolist(), *one_by_one}:
        assert abs(value) == 10.25 or value % grid == 0.0
        assert abs(value) <= 10.25


def masses(edges: npt.NDArray[np.float64], centre: float, scale: float) -> npt.NDArray[np.float64]:
    """The probabilities of the cells of the line, from the nearer tail, so that small ones keep their digits."""
    low, high = np.array([-np.inf, *edges]), np.array([*edges, np.inf])
    noise = stats.laplace(centre, scale)
    above = noise.sf(low) - noise.sf(high)
    return np.where(low > centre, above, np.where(high < centre, noise.cdf(high) - noise.cdf(low), above))


@for_each(("first", "second"), [(10, 9), (0.3, 0.0), (4.0, -4.0), (6.0, 5.9), (-50, 50)])
@for_each("epsilon", [0.5, 1.0, 3.0])
@for_each("bound", [6.0, 6.5])
def test_the_loss_is_that_of_the_worst_cell(first: float, second: float, epsilon: float, bound: float) -> None:
    entry = snapping.with_parameters({"epsilon": epsilon, "bound": bound})
    grid = 2.0 ** math.ceil(math.log2(1.0 / epsilon))
    points = np.arange(-100, 101) * grid
    edges = (points[:-1] + points[1:]) / 2.0
    released = np.clip(points, -bound, bound)
    cells = np.array(
        [masses(edges, float(np.clip(answer, -bound, bound)), 1.0 / epsilon) for answer in (first, second)]
    )
    sums = np.array([cells[:, released == value].sum(axis=1) for value in np.unique(released)])
    worst = float(np.max(np.abs(np.log(sums[:, 0] / sums[:, 1]))))
    assert entry.true_epsilon(first, second) == pytest.approx(worst, abs=1e-9)


def test_the_claim_pays_for_the_rounding_of_floats() -> None:
    claim = snapping.claim({"epsilon": 1.0, "bound": 2.0**39})
    assert claim.promised(0.0) == pytest.approx(1.0 + 2.0**-10)
