"""Objective perturbation: its exact law with one feature, by change of variables, and what the correction is for.

Seeds are fixed; a comparison of a sample with a law fails by chance with probability at most 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import expit

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.objective_noise import corrected, spherical
from tests.cases import for_each

LEVEL = 1e-9
Data = list[list[float]]

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


@for_each("epsilon", [0.1, 1.0, 3.0])
@for_each("weight", [0.001, 0.05, 1.0])
def test_the_correction_keeps_every_pair_within_the_claim(epsilon: float, weight: float) -> None:
    entry = find("objective_perturbation")
    rng = np.random.default_rng(3)
    for _ in range(3):
        others = np.column_stack([rng.uniform(-1, 1, 4), rng.choice([-1, 1], 4)]).tolist()
        first, second = ([*others, [rng.uniform(-1, 1), rng.choice([-1, 1])]] for _ in range(2))
        loss = entry.true_loss(first, second, {"epsilon": epsilon, "weight": weight})
        assert loss is not None
        assert loss <= epsilon


def test_the_correction_is_that_of_the_paper() -> None:
    """It costs 2 ln(1 + c / (n lambda)) while that is less than epsilon; then lambda is raised until it is half."""
    assert corrected(1.0, 100, 0.1) == pytest.approx((1.0 - 2.0 * math.log(1.025), 0.0))
    left, added = corrected(1.0, 8, 0.005)
    assert left == 0.5
    assert 2.0 * math.log(1.0 + 0.25 / (8 * (0.005 + added))) == pytest.approx(0.5)


def test_without_the_correction_a_smaller_lambda_costs_more_without_end() -> None:
    """At w = 0, with nobody else, the curvatures are n lambda + 1/4 and n lambda: about ln(1 + c / (n lambda))."""
    twin = find("objective_perturbation.no_correction")
    pair = ([[1.0, 1], [0.0, 1]], [[0.0, 1], [0.0, 1]])
    losses = [twin.true_loss(*pair, {"weight": weight}) for weight in (1e-2, 1e-4, 1e-6)]
    for weight, loss in zip((1e-2, 1e-4, 1e-6), losses, strict=True):
        assert loss == pytest.approx(math.log1p(0.125 / weight), abs=1.0)


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
