"""Objective perturbation with several features: the law by change of variables, and the optimum by a general minimiser.

Seeds are fixed; a comparison of a sample with a law fails by chance with probability at most 1e-9.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.objective_noise import corrected, minimisers, spherical
from dpaudit.errors import InvalidSpec

VECTORS = find("objective_perturbation")


def test_the_optimum_is_that_of_a_general_minimiser() -> None:
    """From weak to strong regularisers, for noise near and far."""
    rng = np.random.default_rng(3)
    signed = rng.uniform(-1.0, 1.0, (6, 3)) / math.sqrt(3.0)
    for steepness in (1e-4, 0.01, 1.0, 30.0):
        noise = spherical(rng, 5, 3) * np.array([0.1, 1.0, 1.0, 5.0, 20.0])[:, None]
        found = minimisers(signed, steepness, noise)
        for b, w in zip(noise, found, strict=True):

            def gradient(w: Any, b: Any = b, steepness: float = steepness) -> Any:
                return steepness * w + b - signed.T @ (1.0 / (1.0 + np.exp(np.minimum(700.0, signed @ w))))

            assert np.abs(gradient(w)).max() < 1e-9 * (1.0 + np.linalg.norm(b))
            best = optimize.root(gradient, w + 0.01, tol=1e-12).x
            assert best == pytest.approx(w, abs=1e-6 * (1.0 + np.linalg.norm(w)))


def test_no_run_of_many_ends_short_of_its_optimum() -> None:
    rng = np.random.default_rng(5)
    signed = 5.0 * rng.uniform(-1.0, 1.0, (6, 5))
    for steepness in (1e-4, 0.03, 1.0):
        noise = spherical(rng, 500, 5) * rng.choice([0.1, 1.0, 20.0, 300.0], (500, 1))
        w = minimisers(signed, steepness, noise)
        gradient = steepness * w + noise - expit(-w @ signed.T) @ signed
        assert (np.linalg.norm(gradient, axis=1) < 1e-9 * (1.0 + np.linalg.norm(noise, axis=1))).all()


def test_the_sample_lies_where_the_density_says() -> None:
    """With nobody but records without features, w = -b / steepness: a Gamma length."""
    left, added = corrected(1.0, 2, 0.01)
    silent = [[0.0, 0.0, 0.0, 1], [0.0, 0.0, 0.0, -1]]
    sample = np.asarray(VECTORS.open().call(silent, 20_000, np.random.default_rng(4)))
    length = np.linalg.norm(sample, axis=1) * 2 * (0.01 + added) * left / 2.0
    assert stats.kstest(length, stats.gamma(3).cdf).pvalue > 1e-9
    assert stats.kstest(sample[:, 0] / np.linalg.norm(sample, axis=1), stats.uniform(-1, 2).cdf).pvalue > 1e-9


def test_no_pair_in_two_or_three_dimensions_loses_more_than_the_claim() -> None:
    rng = np.random.default_rng(6)
    for features, epsilon, weight in ((2, 0.3, 0.002), (2, 2.0, 0.2), (3, 1.0, 0.05)):
        table = rng.standard_normal((5, features))
        table /= np.maximum(1.0, np.linalg.norm(table, axis=1, keepdims=True))
        records = np.column_stack([table, rng.choice([-1.0, 1.0], 5)]).tolist()
        loss = VECTORS.true_loss(records[:4], records[1:], {"epsilon": epsilon, "weight": weight})
        assert loss is not None
        assert 0.05 * epsilon < loss <= epsilon


def test_the_loss_without_the_correction_is_that_of_the_determinant() -> None:
    """One record along a line far from it, the other saturated: ln((n lambda + 1/4) / n lambda), and not far above."""
    twin = VECTORS.no_correction
    pair = ([[1.0, 0.0, 1], [0.0, 0.0, 1]], [[0.0, 1.0, 1], [0.0, 0.0, 1]])
    loss = twin.true_loss(*pair, {"weight": 1e-3})
    assert loss is not None
    assert math.log(1.0 + 0.25 / 2e-3) < loss < math.log(1.0 + 0.25 / 2e-3) + 0.5


def test_a_pair_that_is_turned_loses_the_same() -> None:
    """The largest ratio may lie on a line without end on which one record has a small margin, askew to all axes."""
    turn = np.array([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
    twin = VECTORS.no_correction
    turned = [[[*(turn @ record[:2]).tolist(), record[2]] for record in data] for data in twin.default_pair]
    assert twin.true_loss(*turned) == pytest.approx(twin.true_loss(*twin.default_pair), rel=1e-4)


def test_more_than_three_features_have_no_exact_loss() -> None:
    record = [0.1, 0.1, 0.1, 0.1, 1]
    with pytest.raises(InvalidSpec, match="at most three features"):
        VECTORS.true_loss([record], [record])
    assert VECTORS.radius_of_one_feature.true_loss([record], [record]) == 0.0
