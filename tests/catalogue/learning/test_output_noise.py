"""Output perturbation: the optimum, how far one record moves it, and the law of the noise.

Seeds are fixed; a comparison of a sample with a law fails by chance with probability at most 1e-9.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.regression import sensitivity
from dpaudit.catalogue.promises import HUBER, HUBER_HINGE, LOGISTIC, MarginLoss, classifier, in_unit_ball

LEVEL = 1e-9


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


@pytest.mark.parametrize("name", ["output_perturbation", "gaussian_output_perturbation"])
@pytest.mark.parametrize("weight", [0.02, 0.4, 3.0])
def test_no_replaced_record_costs_more_than_the_claim(name: str, weight: float) -> None:
    entry = find(name)
    for seed in range(25):
        first, other = random_records(seed), random_records(seed + 1000)
        loss = entry.true_loss(first, [*first[:-1], other[0]], {"weight": weight})
        assert loss is not None
        assert loss <= 1.0 + 1e-9


def test_the_sensitivity_is_reached_by_a_straight_loss() -> None:
    """Margins below 1 - h: each record pulls with its full weight, a turned label moves w* by 2 / (n lambda)."""
    first, second = find("output_perturbation").default_pair
    assert find("output_perturbation").true_loss(first, second, {"weight": 1.0}) == pytest.approx(1.0, rel=1e-12)


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


@pytest.mark.parametrize(("twin", "shape"), [(None, 2.0), ("exponential_radius", 1.0)])
def test_the_noise_has_its_radius_and_every_direction(twin: str | None, shape: float) -> None:
    entry = find("output_perturbation" + (f".{twin}" if twin else ""))
    data = entry.default_pair[0]
    noise = entry.open().call(data, 100_000, np.random.default_rng(4))
    noise = noise - classifier([in_unit_ball(record) for record in data], 0.4, HUBER_HINGE)
    radius = np.linalg.norm(noise, axis=1)
    assert stats.kstest(radius, stats.gamma(shape, scale=2 / (10 * 0.4)).cdf).pvalue > LEVEL
    assert stats.kstest(np.arctan2(noise[:, 1], noise[:, 0]), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > LEVEL


def test_one_feature_has_nothing_to_get_wrong_about_the_radius() -> None:
    pair = ([[1.0, 1.0], [0.5, -1.0]], [[1.0, -1.0], [0.5, -1.0]])
    entry = find("output_perturbation")
    assert entry.exponential_radius.true_loss(*pair) == entry.true_loss(*pair)
    assert entry.laplace_per_coordinate.true_loss(*pair) == pytest.approx(entry.true_loss(*pair))


def test_normal_noise_has_its_sigma() -> None:
    entry = find("gaussian_output_perturbation")
    data = entry.default_pair[0]
    optimum = classifier([in_unit_ball(record) for record in data], 1.0, LOGISTIC)
    for each, sigma in ((entry, 0.2), (entry.variance_for_deviation, 0.04), (entry.one_draw, 0.2)):
        noise = each.open().call(data, 50_000, np.random.default_rng(5)) - optimum
        assert all(stats.kstest(noise[:, j], stats.norm(scale=sigma).cdf).pvalue > LEVEL for j in (0, 1))
        assert (np.ptp(noise, axis=1).max() < 1e-12) == (each is entry.one_draw)


# --- ridge ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.01, 0.2, 1.0, 5.0])
def test_ridge_stays_within_its_sensitivity(weight: float) -> None:
    entry = find("ridge_output_perturbation")
    rng = np.random.default_rng(6)
    corners = [[x, y] for x in (-1.0, -0.3, 0.1, 1.0) for y in (-1.0, 1.0)]
    for _ in range(20):
        others = rng.uniform(-1, 1, (rng.integers(1, 12), 2)).round(3).tolist()
        for first in corners:
            for second in corners:
                loss = entry.true_loss([*others, first], [*others, second], {"weight": weight})
                assert loss is not None
                assert loss <= 1.0 + 1e-9


def test_ridge_is_the_minimum_of_the_notes_objective() -> None:
    entry = find("ridge_output_perturbation")
    data = entry.default_pair[0]
    x, y = np.array(data).T
    best = optimize.minimize_scalar(lambda w: ((y - w * x) ** 2).mean() + w * w, tol=1e-12).x
    noisy = entry.open().call(data, 100_000, np.random.default_rng(7))
    assert stats.kstest(noisy, stats.laplace(best, sensitivity(10, 1.0, 1.0)).cdf).pvalue > LEVEL
    summed = optimize.minimize_scalar(lambda w: ((y - w * x) ** 2).sum() + w * w, tol=1e-12).x
    noisy = entry.sum_for_average.open().call(data, 100_000, np.random.default_rng(8))
    assert stats.kstest(noisy, stats.laplace(summed, sensitivity(10, 1.0, 1.0)).cdf).pvalue > LEVEL


def test_one_label_without_bounds_moves_the_ridge_as_far_as_it_likes() -> None:
    entry = find("ridge_output_perturbation").labels_not_clipped
    data = entry.default_pair[0]
    losses = [entry.true_loss([*data[:-1], [1.0, y]], [*data[:-1], [1.0, 0.0]]) for y in (10.0, 1000.0)]
    assert losses[1] == pytest.approx(100.0 * losses[0])  # type: ignore[operator]
    assert math.isfinite(losses[0])  # type: ignore[arg-type]
