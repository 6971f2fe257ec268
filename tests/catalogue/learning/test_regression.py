"""The fit drawn from a grid, regression from noisy sums, and NoisyStats: their exact laws against other oracles.

Seeds are fixed; a comparison of a sample with a law fails by chance with probability at most 1e-9.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.regression import line, slope_density
from tests.cases import for_each

LEVEL = 1e-9
Data = list[list[float]]


def pairs(seed: int, count: int, low: float) -> list[tuple[Data, Data]]:
    """Datasets with one record replaced by another, most often at the corners."""
    rng = np.random.default_rng(seed)
    ends = np.array([low, 0.0, 1.0])
    made = []
    for _ in range(count):
        others = rng.uniform(low, 1.0, (rng.integers(1, 9), 2)).tolist()
        made.append(([*others, rng.choice(ends, 2).tolist()], [*others, rng.choice(ends, 2).tolist()]))
    return made


# --- the exponential mechanism ----------------------------------------------------------------------------------


def chances(data: Data, factor: float, sign: float = 1.0) -> np.ndarray:
    """Pr(theta) proportional to e^(-factor (sum loss / n + sign 0.1 theta^2)), as the notes define it, at length."""
    weights = []
    for theta in (-1.0, -0.5, 0.0, 0.5, 1.0):
        total = sum((y - theta * x) ** 2 for x, y in data)
        weights.append(math.exp(-factor * (total / len(data) + sign * 0.1 * theta**2)))
    return np.array(weights) / sum(weights)


@pytest.mark.parametrize(("twin", "sign"), [(None, 1.0), ("sign_turned", -1.0)])
def test_the_fit_has_the_probabilities_of_its_definition(twin: str | None, sign: float) -> None:
    entry = find("exponential_fit" + (f".{twin}" if twin else ""))
    first, second = entry.default_pair
    laws = [chances(data, len(data) / 8.0, sign) for data in (first, second)]
    assert entry.true_loss(first, second) == pytest.approx(np.abs(np.log(laws[0] / laws[1])).max(), rel=1e-12)
    drawn = entry.open().call(first, 100_000, np.random.default_rng(1))
    seen = [np.count_nonzero(drawn == theta) for theta in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    assert stats.chisquare(seen, laws[0] * 100_000).pvalue > LEVEL


def test_a_sum_in_the_exponent_moves_n_times_as_far() -> None:
    """With the sum, n is in the exponent twice."""
    entry = find("exponential_fit.sum_for_average")
    first, second = entry.default_pair
    laws = [chances(data, len(data) ** 2 / 8.0, -1.0 / len(data)) for data in (first, second)]
    assert entry.true_loss(first, second) == pytest.approx(np.abs(np.log(laws[0] / laws[1])).max(), rel=1e-12)


def test_no_pair_costs_the_fit_more_than_the_claim() -> None:
    entry = find("exponential_fit")
    for first, second in pairs(2, 200, -1.0):
        assert entry.true_loss(first, second) <= 1.0  # type: ignore[operator]
        assert entry.sign_turned.true_loss(first, second) <= 1.0  # type: ignore[operator]


def test_the_fit_comes_close_to_the_best_slope_as_the_data_grow() -> None:
    """McSherry & Talwar's theorem 6: a slope of much more than the least loss is rare."""
    entry = find("exponential_fit").with_parameters({"cells": 21})
    data = [[x, 0.7 * x] for x in (0.9, -0.8, 1.0, -1.0)] * 250
    drawn = entry.open().call(data, 20_000, np.random.default_rng(3))
    slopes = np.linspace(-1.0, 1.0, 21)
    risks = np.array([np.mean([(y - t * x) ** 2 for x, y in data]) + 0.1 * t * t for t in slopes])
    beta = 0.01
    allowed = risks.min() + 2.0 * 4.0 / len(data) * math.log(21 / beta)
    over = np.count_nonzero(risks[np.rint((drawn + 1.0) * 10.0).astype(int)] > allowed)
    assert stats.binom.sf(over - 1, 20_000, beta) > LEVEL


# --- sums -------------------------------------------------------------------------------------------------------


def test_the_line_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.uniform(-1, 1, (2, 9))
    sums = np.array([9.0, x.sum(), y.sum(), x @ y, x @ x])
    assert line(sums) == pytest.approx(np.polyfit(x, y, 1))


def test_the_sums_cost_what_they_move_by_and_at_most_the_claim() -> None:
    entry = find("regression_from_sums")
    rng = np.random.default_rng(5)
    others = rng.uniform(-1, 1, (6, 2)).tolist()
    for x, y in itertools.product((-3.0, -1.0, 0.0, 0.4, 1.0), repeat=2):
        a, b = max(-1.0, x), y if y > -1.0 else -1.0
        moved = 1.0 + abs(a) + abs(b) + abs(a * b) + a * a
        assert entry.true_loss([*others, [x, y]], others) == pytest.approx(moved / 5.0)
        assert entry.budget_not_split.true_loss([*others, [x, y]], others) == pytest.approx(moved)
        assert moved <= 5.0


def test_bounds_from_the_data_are_the_scales() -> None:
    entry = find("regression_from_sums")
    data = entry.default_pair[1]
    x, y = np.array(data).T
    sums = np.array([len(data), x.sum(), y.sum(), x @ y, x @ x])
    told = entry.bounds_from_data.open().call(data, 50_000, np.random.default_rng(7)) - sums
    scales = [5.0, 4.5, 4.5, 4.05, 4.05]
    assert all(stats.kstest(told[:, j], stats.laplace(scale=scales[j]).cdf).pvalue > LEVEL for j in range(5))


def test_a_noisy_line_comes_close_as_the_data_grow() -> None:
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, 20_000)
    data = np.column_stack([x, np.clip(0.5 * x + 0.2, -1, 1)]).tolist()
    lines = line(find("regression_from_sums").open().call(data, 2_000, np.random.default_rng(9)).T)
    assert np.abs(lines - np.array([[0.5], [0.2]])).max() < 0.05  # sums of 6,667 and more, noise of 5 ln(1e13) at most


# --- NoisyStats -------------------------------------------------------------------------------------------------


@for_each(("covariance", "variance", "scale"), [(0.4, 0.5, 2.5), (-0.3, 0.2, 1.0), (0.0, 0.7, 0.5)])
@for_each("slope", [-30.0, -1.0, -0.2, 0.0, 0.3, 1.0, 1.0 + 1e-9, 5.0, 200.0])
def test_the_density_of_the_slope_is_its_integral(
    slope: float, covariance: float, variance: float, scale: float
) -> None:
    def integrand(b: float) -> float:
        return b * math.exp(-(abs(slope * b - covariance) + abs(b - variance)) / scale) / (4.0 * scale * scale)

    stops = sorted({0.0, variance, covariance / slope if slope * covariance > 0.0 else 0.0})
    stops.append(stops[-1] + 60.0 * scale / (1.0 + abs(slope)))
    exact = sum(integrate.quad(integrand, *ends, epsabs=0.0, epsrel=1e-11)[0] for ends in itertools.pairwise(stops))
    assert slope_density(np.array([slope]), covariance, variance, scale)[0] == pytest.approx(exact, rel=1e-9)


def test_slopes_have_that_density_and_runs_without_a_line_the_rest() -> None:
    entry = find("noisy_stats")
    data = entry.default_pair[0]
    x, y = np.array(data).T
    covariance, variance = (x - x.mean()) @ (y - y.mean()), (x - x.mean()) @ (x - x.mean())
    drawn = entry.open().call(data, 100_000, np.random.default_rng(10))
    without = int(np.count_nonzero(np.ma.getmaskarray(drawn)[:, 0]))
    assert stats.binomtest(without, 100_000, float(stats.laplace(variance, 2.5).cdf(0.0))).pvalue > LEVEL
    edges = np.array([-40.0, -8.0, -3.0, -1.0, -0.4, 0.0, 0.4, 1.0, 3.0, 8.0, 40.0])
    slopes, intercepts = drawn[~np.ma.getmaskarray(drawn)[:, 0]].data.T
    for low, high in itertools.pairwise(edges):
        chance = integrate.quad(lambda s: slope_density(np.array([s]), covariance, variance, 2.5)[0], low, high)[0]
        seen = int(np.count_nonzero((slopes >= low) & (slopes < high)))
        assert stats.binomtest(seen, 100_000, chance).pvalue > LEVEL
    standard = (intercepts - y.mean() + slopes * x.mean()) / (3.0 * (1.0 + np.abs(slopes)) / 6.0)
    assert stats.kstest(standard, stats.laplace.cdf).pvalue > LEVEL


def test_no_pair_costs_noisy_stats_more_than_the_claim() -> None:
    entry = find("noisy_stats")
    for first, second in pairs(11, 5, 0.0):
        assert entry.true_loss(first, second) <= 1.0  # type: ignore[operator]


def test_its_twins_have_no_epsilon_where_their_fault_shows() -> None:
    entry = find("noisy_stats")
    same_x = ([[0.0, 0.1], [1.0, 0.9], [0.5, 0.0]], [[0.0, 0.1], [1.0, 0.9], [0.5, 1.0]])
    assert entry.mean_of_y_only.true_loss(*same_x) == pytest.approx(1.0 / 3.0)  # the mean of y alone
    assert math.isfinite(entry.exact_variance.true_loss(*same_x))  # type: ignore[arg-type]
    for twin in (entry.mean_of_y_only, entry.exact_variance):
        assert twin.true_loss(*twin.default_pair) == math.inf
