"""Private regression and classification: optima by general minimisers, laws by change of variables and quadrature.

Seeds are fixed; a comparison of a sample with a law fails by chance with probability at most 1e-9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import expit

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.objective_noise import corrected, minimisers, spherical
from dpaudit.catalogue.learning.regression import line, slope_density
from dpaudit.catalogue.promises import HUBER, HUBER_HINGE, LOGISTIC, MarginLoss, classifier, in_unit_ball
from tests.cases import for_each

LEVEL = 1e-9
Data = list[list[float]]


# --- output perturbation ---------------------------------------------------------------------------------------------


def random_records(seed: int, records: int = 8, features: int = 2) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((records, features))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    return np.column_stack([x, rng.choice([-1.0, 1.0], records)]).tolist()


def huber_hinge(margin: Any) -> Any:
    """The Huber loss as Chaudhuri, Monteleoni & Sarwate 2011 write it, in three pieces."""
    middle = (1 + HUBER - margin) ** 2 / (4 * HUBER)
    return np.where(margin > 1 + HUBER, 0.0, np.where(np.abs(1 - margin) <= HUBER, middle, 1 - margin))


@pytest.mark.parametrize("weight", [0.05, 0.4, 2.0])
@pytest.mark.parametrize(
    ("loss", "value"),
    [(HUBER_HINGE, huber_hinge), (LOGISTIC, lambda m: np.logaddexp(0.0, -m))],
    ids=["hinge", "logistic"],
)
def test_the_optimum_is_that_of_a_general_minimiser(loss: MarginLoss, value: Any, weight: float) -> None:
    for seed in range(4):
        data = random_records(seed, features=3)
        signed = np.array(data)[:, :-1] * np.array(data)[:, -1:]

        def objective(w: Any, signed: Any = signed) -> float:
            return float(value(signed @ w).mean() + weight / 2 * w @ w)

        found = classifier(data, weight, loss)
        assert found == pytest.approx(optimize.minimize(objective, np.zeros(3), tol=1e-12).x, abs=1e-4)
        assert all(objective(found) <= objective(found + 1e-4 * step) for step in np.vstack([np.eye(3), -np.eye(3)]))


def test_slope_and_curvature_are_derivatives() -> None:
    margin = np.linspace(-3.0, 3.0, 37) + 0.01
    for loss in (HUBER_HINGE, LOGISTIC):
        step = 1e-6
        assert (loss.value(margin + step) - loss.value(margin - step)) / (2 * step) == pytest.approx(
            loss.slope(margin), abs=1e-8
        )
        assert (loss.slope(margin + step) - loss.slope(margin - step)) / (2 * step) == pytest.approx(
            loss.curvature(margin), abs=1e-8
        )


def test_features_are_scaled_down_and_never_up() -> None:
    assert in_unit_ball([3.0, 4.0, -1.0]) == pytest.approx([0.6, 0.8, -1.0])
    assert in_unit_ball([0.3, 0.4, 1.0]) == [0.3, 0.4, 1.0]


def test_the_loss_is_the_largest_ratio_of_densities() -> None:
    entry = find("output_perturbation")
    first, second = entry.default_pair
    one, other = (classifier([in_unit_ball(r) for r in data], 0.4, HUBER_HINGE) for data in (first, second))
    rng = np.random.default_rng(3)
    z = one + rng.standard_normal((100_000, 2)) * rng.exponential(3.0, (100_000, 1))
    ratios = 0.5 * 10 * 0.4 * (np.linalg.norm(z - other, axis=1) - np.linalg.norm(z - one, axis=1))
    loss = entry.true_loss(first, second)
    assert loss is not None
    assert 0.999 * loss < ratios.max() <= loss + 1e-12


# --- ridge ------------------------------------------------------------------------------------------------------


# --- objective perturbation ------------------------------------------------------------------------------------------


OTHERS: Data = [[0.1, -1], [0.12, -1], [0.08, -1], [0.1, -1], [0.11, -1], [0.09, -1], [0.1, -1]]
PAIR = ([*OTHERS, [1.0, 1]], [*OTHERS, [0.1, -1]])


def slope(data: Data, steepness: float, w: Any) -> Any:
    """The derivative of sum ln(1 + e^(-y x w)) + steepness w^2 / 2."""
    return steepness * w - sum(x * y * expit(-x * y * w) for x, y in data)


def cdf(data: Data, steepness: float, scale: float) -> Callable[[Any], Any]:
    """The optimum lies below w just where the noise b is above minus the slope there."""
    law = stats.laplace(scale=scale)
    return lambda w: law.cdf(slope(data, steepness, w))


def steepness_and_scale(name: str, records: int, weight: float) -> tuple[float, float]:
    left, added = corrected(1.0, records, weight)
    return {
        "objective_perturbation": (records * (weight + added), 2.0 / left),
        "objective_perturbation.no_correction": (records * weight, 2.0),
        "objective_perturbation.divided_twice": (records * (weight + added), 2.0 / (records * left)),
    }[name]


NAMES = ["objective_perturbation", "objective_perturbation.no_correction", "objective_perturbation.divided_twice"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weight", [0.005, 0.5])
def test_sampler_and_loss_follow_from_the_distribution_function(name: str, weight: float) -> None:
    entry = find(name)
    laws = [cdf(data, *steepness_and_scale(name, 8, weight)) for data in PAIR]
    sampled = entry.with_parameters({"weight": weight}).open().call(PAIR[0], 40_000, np.random.default_rng(1))[:, 0]
    assert stats.kstest(sampled, laws[0]).pvalue > LEVEL
    edges = np.sinh(np.linspace(-9.0, 9.0, 2_001))
    masses = [np.diff(law(edges)) for law in laws]
    seen = np.minimum(*masses) > 1e-9  # below, differences of a distribution function are rounding
    largest = np.abs(np.log(masses[0][seen] / masses[1][seen])).max()
    loss = entry.true_loss(*PAIR, {"weight": weight})
    assert loss is not None
    assert largest <= loss + 1e-6
    assert largest > 0.99 * loss or weight == 0.5  # the others have their largest ratio where nobody goes


def test_the_optimum_of_a_run_is_that_of_a_general_minimiser() -> None:
    entry = find("objective_perturbation").with_parameters({"weight": 0.005})
    data = PAIR[0]
    left, added = corrected(1.0, 8, 0.005)
    for seed in range(20):
        noise = float(spherical(np.random.default_rng(seed), 1, 1)[0, 0]) * 2.0 / left
        signed = np.array([x * y for x, y in data])

        def objective(w: float, noise: float = noise, signed: np.ndarray = signed) -> float:
            return float(np.logaddexp(0.0, -signed * w).sum() + 4.0 * (0.005 + added) * w * w + noise * w)

        best = optimize.minimize_scalar(objective, bracket=(-1.0, 1.0), tol=1e-12).x
        assert entry.with_parameters({"weight": 0.005}).run(data, np.random.default_rng(seed))[0] == pytest.approx(
            best, abs=1e-5
        )


def test_the_correction_is_that_of_the_paper() -> None:
    """It costs 2 ln(1 + c / (n lambda)) while that is less than epsilon; then lambda is raised until it is half."""
    assert corrected(1.0, 100, 0.1) == pytest.approx((1.0 - 2.0 * math.log(1.025), 0.0))
    left, added = corrected(1.0, 8, 0.005)
    assert left == 0.5
    assert 2.0 * math.log(1.0 + 0.25 / (8 * (0.005 + added))) == pytest.approx(0.5)


def test_the_density_is_one() -> None:
    """The change of variables loses no mass: |db / dw| is the curvature."""
    data = PAIR[0]
    steepness, scale = steepness_and_scale("objective_perturbation.no_correction", 8, 0.05)

    def density(w: float) -> float:
        tails = [(x * y, expit(-x * y * w)) for x, y in data]
        bend = steepness + sum(z * z * t * (1.0 - t) for z, t in tails)
        return float(math.exp(-abs(slope(data, steepness, w)) / scale) / (2.0 * scale) * bend)

    kink = optimize.brentq(lambda w: slope(data, steepness, w), -50, 50)
    assert sum(integrate.quad(density, *ends)[0] for ends in ((-300, kink), (kink, 300))) == pytest.approx(1.0)


# --- objective perturbation with several features --------------------------------------------------------------------


@for_each("steepness", [1e-4, 0.03, 1.0, 30.0])
def test_no_run_of_many_ends_short_of_its_optimum(steepness: float) -> None:
    """From weak to strong regularisers, for noise near and far; some against a general search for a root."""
    rng = np.random.default_rng(5)
    signed = 5.0 * rng.uniform(-1.0, 1.0, (6, 5))
    noise = spherical(rng, 500, 5) * rng.choice([0.1, 1.0, 20.0, 300.0], (500, 1))
    found = minimisers(signed, steepness, noise)
    gradient = steepness * found + noise - expit(-found @ signed.T) @ signed
    assert (np.linalg.norm(gradient, axis=1) < 1e-9 * (1.0 + np.linalg.norm(noise, axis=1))).all()
    for b, w in zip(noise[:4], found, strict=False):
        best = optimize.root(lambda w, b=b: steepness * w + b - signed.T @ expit(-signed @ w), w + 0.01, tol=1e-12).x
        assert best == pytest.approx(w, abs=1e-6 * (1.0 + np.linalg.norm(w)))


def test_a_pair_that_is_turned_loses_the_same() -> None:
    """The largest ratio may lie on a line without end on which one record has a small margin, askew to all axes."""
    turn = np.array([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
    twin = find("objective_perturbation").no_correction
    turned = [[[*(turn @ record[:2]).tolist(), record[2]] for record in data] for data in twin.default_pair]
    assert twin.true_loss(*turned) == pytest.approx(twin.true_loss(*twin.default_pair), rel=1e-4)


# --- the fit drawn from a grid, regression from noisy sums, NoisyStats -----------------------------------------------


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


def test_the_line_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.uniform(-1, 1, (2, 9))
    sums = np.array([9.0, x.sum(), y.sum(), x @ y, x @ x])
    assert line(sums) == pytest.approx(np.polyfit(x, y, 1))


def test_a_noisy_line_comes_close_as_the_data_grow() -> None:
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, 20_000)
    data = np.column_stack([x, np.clip(0.5 * x + 0.2, -1, 1)]).tolist()
    lines = line(find("regression_from_sums").open().call(data, 2_000, np.random.default_rng(9)).T)
    assert np.abs(lines - np.array([[0.5], [0.2]])).max() < 0.05  # sums of 6,667 and more, noise of 5 ln(1e13) at most


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
