"""The integrals behind the exact losses, against adaptive quadrature; published values stand in `losses.txt`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.catalogue import find
from dpaudit.losses.comparisons import halting, winning
from dpaudit.losses.distribution import gaussian_delta
from tests.cases import for_each
from tests.catalogue.quadrature import Laplace, halts, wins


@for_each("scale", [0.5, 4.0])
def test_the_plain_formulas_are_those_of_scipy(scale: float) -> None:
    law, at = Laplace(scale), np.linspace(-50.0, 50.0, 101)
    for name in ("pdf", "cdf", "sf"):
        found = [getattr(law, name)(float(x)) for x in at]
        assert found == pytest.approx(getattr(stats.laplace(scale=scale), name)(at), rel=1e-12)


@for_each(
    ("answers", "threshold", "scales"),
    [([1, 1, 1, -1], 0.0, (2, 4)), ([2, -2, 0.5], 1.0, (4, 8)), ([0, 3], -2.0, (1, 0.5)), ([-3, 7], 0.0, (2, 2))],
)
def test_halting_agrees_with_adaptive_quadrature(
    answers: list[float], threshold: float, scales: tuple[float, float]
) -> None:
    found = halting(np.array(answers, float), threshold, *scales)
    assert found == pytest.approx(halts(answers, threshold, *scales), rel=1e-8)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)


def test_halting_without_noise_on_the_answers() -> None:
    assert halting(np.array([0.0, 1.0]), 0.0, 2.0, 0.0)[1] == pytest.approx(0.196735, abs=1e-6)


@for_each("answers", [[0.0, 0.0, 1.0], [5.0, -5.0], [1.0, 1.0, 1.0, 1.0, 0.0]])
@for_each("scale", [0.5, 3.0])
def test_winning_agrees_with_adaptive_quadrature(answers: list[float], scale: float) -> None:
    assert winning(np.array(answers), scale) == pytest.approx(wins(answers, scale), rel=1e-8)


@for_each(("answers", "loss"), [(2, 0.5477), (2, 1.3069), (10, 1.6072)])
def test_noisy_max_on_general_queries_has_the_published_losses(answers: int, loss: float) -> None:
    """From (0, ..., 0) to (1, -1, ..., -1) with Lap(1): above the claim, so the entry is for counts only."""
    data = ([0.0] * answers, [1.0] + [-1.0] * (answers - 1))
    ratios = np.abs(np.log(winning(np.array(data[0]), 1.0) / winning(np.array(data[1]), 1.0)))
    assert min(abs(ratios - loss)) < 5.1e-5
    found = find("report_noisy_max_general.counts_noise").true_epsilon(*data)
    assert found == pytest.approx(ratios.max())


@for_each("epsilon", [0.0, 0.3, 1.0, 4.0])
@for_each("mu", [0.2, 1.0, 3.0])
def test_the_delta_of_normal_noise_is_the_integral_of_the_excess(epsilon: float, mu: float) -> None:
    cross = epsilon / mu + mu / 2  # where the density moved by mu is e^epsilon times the other
    x = np.linspace(cross, cross + 16.0, 40_001)
    excess = np.exp(-((x - mu) ** 2) / 2.0) - np.exp(epsilon - x**2 / 2.0)
    integral = float(integrate.simpson(excess, x=x)) / math.sqrt(2.0 * math.pi)
    assert gaussian_delta(epsilon, mu) == pytest.approx(integral, rel=1e-7)


def test_the_classic_gaussian_is_loose() -> None:
    """At epsilon = 1, delta = 1e-5 the classic sigma is 4.845 and its true delta 4.1e-8."""
    sigma = math.sqrt(2 * math.log(1.25e5))
    assert sigma == pytest.approx(4.845, abs=5e-4)
    assert gaussian_delta(1.0, 1 / sigma) == pytest.approx(4.1e-8, rel=0.02)
    entry = find("gaussian").with_parameters({"epsilon": 1.0, "delta": 1e-5})
    loss = entry.true_epsilon(0, 1)
    assert loss is not None
    assert gaussian_delta(loss, 1 / sigma) == pytest.approx(1e-5, rel=1e-9)
    assert entry.true_epsilon(0.0, 1e-6) == 0.0
