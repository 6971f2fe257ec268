"""Distributions of the privacy loss, against closed forms, direct integrals and each other."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.stats import norm

from dpaudit.losses.composing import laplace_epsilon, transcript_epsilon
from dpaudit.losses.distribution import (
    ALONE,
    Losses,
    Mixture,
    added,
    gaussian_delta,
    gaussian_epsilon,
    mixture_epsilon,
    poisson,
    repeated_epsilon,
    step_losses,
    subsampled_gaussian_epsilon,
    two_batches,
)
from tests.cases import for_each
from tests.catalogue.between import between_epsilons

DIGITS = 1e-5  # relative: five digits
FROZEN = json.loads(Path(__file__).with_name("frozen_losses.json").read_text())  # of dp-accounting: freeze_losses.py


@for_each("row", [row for row in FROZEN["subsampled"] if row["steps"] <= 10])
def test_sampled_normal_noise_agrees_with_dp_accounting(row: dict[str, float]) -> None:
    low, high = between_epsilons(row["delta"], row["noise"], row["rate"], int(row["steps"]))
    assert row["low"] <= high <= row["high"] * (1.0 + 1e-4)
    assert low <= row["high"]


@for_each("row", [row for row in FROZEN["laplace"] if row["steps"] <= 5])
def test_laplace_noise_agrees_with_dp_accounting(row: dict[str, float]) -> None:
    found = laplace_epsilon(int(row["steps"]), row["epsilon"], row["delta"])
    assert row["low"] * (1.0 - 1e-9) <= found <= row["high"] * (1.0 + DIGITS)


@for_each("delta", [0.1, 0.01, 1e-5])
@for_each(("noise", "steps"), [(1.0, 1), (2.0, 5), (0.5, 4), (4.0, 40)])
def test_full_batches_are_one_gaussian_release(noise: float, steps: int, delta: float) -> None:
    """Rate 1: mu = sqrt(T) / noise, in closed form (Balle & Wang 2018, theorem 8)."""
    low, high = between_epsilons(delta, noise, 1.0, steps)
    exact = gaussian_epsilon(delta, math.sqrt(steps) / noise)
    assert low <= exact <= high
    assert high - low <= 5.0 * DIGITS * exact


@pytest.mark.parametrize("delta", [1e-14, 1e-12, 1e-9])
@pytest.mark.parametrize(("noise", "steps"), [(5.0, 100), (1.0, 100)])
def test_rare_losses_are_not_made_up_by_the_transform(noise: float, steps: int, delta: float) -> None:
    """What it adds to a hundred thousand cells is more than such a delta: no lower bound is better than a wrong one."""
    low, high = between_epsilons(delta, noise, 1.0, steps)
    assert low <= gaussian_epsilon(delta, math.sqrt(steps) / noise) <= high
    assert (low > 0.0) == (delta >= 1e-9)


def one_step_delta(epsilon: float, noise: float, rate: float) -> float:
    """The hockey-stick divergence of one subsampled step, by quadrature; the larger of the two orders."""

    def q(x: float) -> float:
        return math.exp(-((x / noise) ** 2) / 2.0) / (noise * math.sqrt(2.0 * math.pi))

    def p(x: float) -> float:
        return (1.0 - rate) * q(x) + rate * q(x - 1.0)

    def larger(one: object, other: object) -> float:
        def part(x: float) -> float:
            return max(0.0, one(x) - math.exp(epsilon) * other(x))  # type: ignore[operator]

        cuts = np.linspace(-10.0 * noise, 1.0 + 10.0 * noise, 21)
        return sum(integrate.quad(part, a, b, epsabs=1e-12, limit=200)[0] for a, b in itertools.pairwise(cuts))

    return max(larger(p, q), larger(q, p))


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.5), (0.6, 0.1), (2.0, 0.9)])
def test_one_subsampled_step_is_its_integral(noise: float, rate: float) -> None:
    low, high = between_epsilons(0.01, noise, rate, 1)
    assert one_step_delta(low * (1.0 - 1e-6), noise, rate) >= 0.01
    assert one_step_delta(high * (1.0 + 1e-6), noise, rate) <= 0.01
    assert high - low <= DIGITS * high


def two_steps_delta(epsilon: float, noise: float, rate: float) -> float:
    """Two subsampled steps, both outputs on a fine grid: the midpoint rule in the plane."""
    axis = np.linspace(-8.0 * noise, 1.0 + 8.0 * noise, 1501)
    axis = (axis[1:] + axis[:-1]) / 2.0
    q = norm.pdf(axis, 0.0, noise) * (axis[1] - axis[0])
    ratio = 1.0 - rate + rate * np.exp((2.0 * axis - 1.0) / (2.0 * noise**2))
    both, chance = np.multiply.outer(ratio, ratio), np.multiply.outer(q, q)
    forth = float((chance * np.maximum(both - math.exp(epsilon), 0.0)).sum())
    return max(forth, float((chance * np.maximum(1.0 - math.exp(epsilon) * both, 0.0)).sum()))


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.5), (0.7, 0.2)])
def test_two_subsampled_steps_are_their_integral(noise: float, rate: float) -> None:
    low, high = between_epsilons(0.01, noise, rate, 2)
    exact = optimize.brentq(lambda epsilon: two_steps_delta(epsilon, noise, rate) - 0.01, 0.01, 10.0, xtol=1e-9)
    assert low * (1.0 - DIGITS) <= exact <= high * (1.0 + DIGITS)
    assert high - low <= DIGITS * high


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.5, 4), (0.7, 0.2, 6), (1.0, 0.1, 20)])
def test_the_two_sides_agree_to_four_digits_and_a_finer_grid_lies_between(
    noise: float, rate: float, steps: int
) -> None:
    low, high = between_epsilons(0.01, noise, rate, steps)
    finer = between_epsilons(0.01, noise, rate, steps, 5e-4)
    assert high - low <= 1e-4 * high
    assert low <= finer[1]
    assert finer[0] <= high
    assert finer[1] - finer[0] <= high - low


def test_adding_and_removing_are_two_orders() -> None:
    forth, back = step_losses(poisson(0.3, 1.0), ALONE, "above")
    assert forth.epsilon(0.01) > back.epsilon(0.01) > 0.0
    assert back.start + back.width * (len(back.masses) - 1) <= -math.log(0.7) + 1e-9  # never above ln 1 / (1 - rate)
    assert mixture_epsilon(0.01, poisson(0.3, 1.0)) == repeated_epsilon(0.01, (forth, back), 1)
    assert repeated_epsilon(0.01, (forth, back), 1) == pytest.approx(forth.epsilon(0.01), rel=1e-9)


def test_losses_of_unlike_steps_add_up() -> None:
    """Shifts 1.2 and 0.5 together are one of 1.3."""
    steps = [step_losses(Mixture((shift,), (1.0,)), ALONE, "above")[0] for shift in (1.2, 0.5)]
    assert added(steps).epsilon(0.01) == pytest.approx(gaussian_epsilon(0.01, 1.3), rel=DIGITS)
    assert added(steps).delta(1.0) == pytest.approx(gaussian_delta(1.0, 1.3), rel=DIGITS)


def test_an_infinite_loss_stays_infinite() -> None:
    some = Losses(0.0, 1.0, np.array([0.9]), 0.1)
    assert some.epsilon(0.05) == math.inf
    assert added([some, some]).infinite == pytest.approx(0.19)
    assert added([some, some]).epsilon(0.2) == 0.0


def test_no_step_is_no_loss_and_more_steps_are_more() -> None:
    epsilons = [subsampled_gaussian_epsilon(0.01, 1.0, 0.5, steps) for steps in (1, 2, 4)]
    assert epsilons == sorted(epsilons)
    assert subsampled_gaussian_epsilon(0.5, 1.0, 0.1, 1) == 0.0


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_transcript_of_equal_steps_is_the_composition(steps: int) -> None:
    found = transcript_epsilon(0.01, steps, lambda seen: (np.asarray(0.5), np.asarray(1.0)), 1.0)
    low, high = between_epsilons(0.01, 1.0, 0.5, steps)
    assert low * (1.0 - 2e-6) <= found <= high * (1.0 + 2e-6)


def test_a_transcript_feels_its_past() -> None:
    """A shift that only follows a high first output lies between none and always."""

    def law(seen: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(1.0), np.where(seen[0] > 0.0, 1.0, 0.0) if seen else np.asarray(1.0)

    found = transcript_epsilon(0.01, 2, law, 1.0)
    assert gaussian_epsilon(0.01, 1.0) < found < gaussian_epsilon(0.01, math.sqrt(2.0))


def test_an_epoch_of_two_shuffled_batches_is_its_integral() -> None:
    """The record in either batch with probability 0.4, left over with 0.2: the midpoint rule in the plane."""
    used, shift = 0.8, 1.0
    axis = np.linspace(-8.0, 9.0, 1501)
    axis = (axis[1:] + axis[:-1]) / 2.0
    q = norm.pdf(axis) * (axis[1] - axis[0])
    one = np.exp(shift * axis - shift**2 / 2.0)
    ratio, chance = 1.0 - used + used * np.add.outer(one, one) / 2.0, np.multiply.outer(q, q)
    for order, losses in zip((1.0, -1.0), two_batches(used, shift), strict=True):
        for epsilon in (0.1, 0.5, 1.0):
            if order > 0.0:
                exact = float((chance * np.maximum(ratio - math.exp(epsilon), 0.0)).sum())
            else:
                exact = float((chance * np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0)).sum())
            assert losses.delta(epsilon) == pytest.approx(exact, rel=1e-4, abs=1e-6)
