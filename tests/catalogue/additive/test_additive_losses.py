"""The exact losses of additive noise against densities, sums and events that do not use them.

Nothing depends on chance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, stats

from dpaudit.catalogue import find
from dpaudit.catalogue.additive.normal import analytic_sigma, classic_sigma, halved_sigma, printed_sigma, tail_sigma
from dpaudit.losses.comparisons import centred_loss
from dpaudit.losses.distribution import gaussian_delta, gaussian_epsilon, gaussian_mu
from tests.cases import for_each

Floats = npt.NDArray[np.float64]
AT = np.linspace(-40.0, 40.0, 16_001)


def largest(first: Floats, second: Floats) -> float:
    """The largest |log ratio| of two log densities."""
    return float(np.max(np.abs(first - second)))


# --- Laplace noise ------------------------------------------------------------------------------------------------


def test_different_scales_part_in_the_tails_without_bound() -> None:
    losses = [
        largest(*(stats.laplace(0.0, b).logpdf(np.array([-reach, reach])) for b in (1.0, 2.0))) for reach in (10, 40)
    ]
    assert losses[1] > losses[0] + 10.0
    assert centred_loss(0.0, 1.0, 0.0, 2.0) == math.inf
    assert centred_loss(2.0, 0.0, 2.0, 0.0) == 0.0
    assert centred_loss(2.0, 0.0, 3.0, 0.0) == math.inf


GRADES = [70.0, 80.0, 55.0, 95.0]


# --- integers -----------------------------------------------------------------------------------------------------


# --- norms and normal noise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "order"), [("norm_l1", 1), ("norm_l2", 2), ("norm_linf", math.inf), ("k_norm_l2", 2)])
def test_the_log_density_of_a_norm_is_lipschitz_and_reaches_its_slope(name: str, order: float) -> None:
    rng, entry = np.random.default_rng(2), find(name)
    scale = 1.0 if name.startswith("k_") else 2.0
    first, second = rng.normal(size=(2, 3))
    at = np.concatenate([rng.normal(scale=5.0, size=(20_000, 3)), first + np.outer([-5, 5], first - second)])
    ratios = (np.linalg.norm(at - second, order, axis=1) - np.linalg.norm(at - first, order, axis=1)) / scale
    assert entry.true_epsilon(first.tolist(), second.tolist()) == pytest.approx(float(np.max(np.abs(ratios))), rel=1e-9)


def test_a_length_from_the_exponential_law_makes_a_pole() -> None:
    """In the plane the mass within r of the vector is 1 - e^-r there, and of order r^2 one step away."""
    losses = []
    for radius in (0.1, 0.01):
        near = -math.expm1(-radius)
        far = integrate.dblquad(
            lambda phi, r: r * math.exp(-math.hypot(1 + r * math.cos(phi), r * math.sin(phi)))
            / (2 * math.pi * math.hypot(1 + r * math.cos(phi), r * math.sin(phi))),
            0, radius, 0, 2 * math.pi, epsabs=0, epsrel=1e-6,
        )[0]  # fmt: skip
        losses.append(math.log(near / far))
    assert losses[0] > 3.0
    assert losses[1] == pytest.approx(losses[0] + math.log(10.0), abs=0.1)


@pytest.mark.parametrize(
    ("sigma", "value", "true_delta"),
    [
        (classic_sigma, 4.845, 4.1e-8),
        (printed_sigma, 6.442, 2.2e-12),
        (halved_sigma, 4.609, 1.4e-7),
        (analytic_sigma, 3.731, 1e-5),
    ],
)
def test_the_calibrations_at_one_and_1e_5(sigma: Any, value: float, true_delta: float) -> None:
    assert sigma(1.0, 1e-5, 1.0) == pytest.approx(value, abs=5e-4)
    assert sigma(1.0, 1e-5, 3.0) == pytest.approx(3.0 * sigma(1.0, 1e-5, 1.0))
    assert gaussian_delta(1.0, 1.0 / sigma(1.0, 1e-5, 1.0)) == pytest.approx(true_delta, rel=0.03)


@for_each("epsilon", [0.01, 0.5, 1.0, 5.0, 30.0])
@for_each("delta", [1e-10, 1e-5, 0.01, 0.3])
def test_the_analytic_calibration_is_exact_and_the_tail_asks_for_more(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-9)
    assert gaussian_epsilon(delta, mu) == pytest.approx(epsilon, rel=1e-6)
    tail = 1.0 / tail_sigma(epsilon, delta, 1.0)
    assert stats.norm.sf(epsilon / tail - tail / 2.0) == pytest.approx(delta, rel=1e-9)
    assert tail < mu
