"""Distributions of the privacy loss, against closed forms, direct integrals and each other."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
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
Floats = npt.NDArray[np.float64]
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


@for_each("delta", [0.1, 1e-5], nightly=[0.01])
@for_each(("noise", "steps"), [(1.0, 1), (4.0, 40)], nightly=[(2.0, 5), (0.5, 4)])
def test_full_batches_are_one_gaussian_release(noise: float, steps: int, delta: float) -> None:
    """Rate 1: mu = sqrt(T) / noise, in closed form (Balle & Wang 2018, theorem 8)."""
    low, high = between_epsilons(delta, noise, 1.0, steps)
    exact = gaussian_epsilon(delta, math.sqrt(steps) / noise)
    assert low <= exact <= high
    assert high - low <= 5.0 * DIGITS * exact


@for_each(("delta", "noise"), [(1e-9, 5.0), (1e-12, 5.0)], nightly=[(1e-14, 5.0), (1e-9, 1.0), (1e-14, 1.0)])
def test_rare_losses_are_not_made_up_by_the_transform(delta: float, noise: float) -> None:
    """What it adds to a hundred thousand cells is more than such a delta: no lower bound is better than a wrong one."""
    low, high = between_epsilons(delta, noise, 1.0, 100)
    assert low <= gaussian_epsilon(delta, 10.0 / noise) <= high
    assert (low > 0.0) == (delta >= 1e-9)


def outputs(noise: float, points: int) -> tuple[Floats, Floats]:
    """Midpoints of a grid over one output, and their chances without the record."""
    edges = np.linspace(-9.0 * noise, 1.0 + 9.0 * noise, points)
    middle = (edges[1:] + edges[:-1]) / 2.0
    return middle, norm.pdf(middle, 0.0, noise) * (edges[1] - edges[0])


def excess(epsilon: float, ratio: Floats, chance: Floats) -> tuple[float, float]:
    """The hockey-stick divergences of both orders, from the ratio of the laws on a grid."""
    over, under = np.maximum(ratio - math.exp(epsilon), 0.0), np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0)
    return float((chance * over).sum()), float((chance * under).sum())


@for_each(
    ("noise", "rate", "steps"), [(1.0, 0.5, 1), (0.6, 0.1, 1), (2.0, 0.9, 1), (0.7, 0.2, 2)], nightly=[(1.0, 0.5, 2)]
)
def test_subsampled_steps_are_their_integral(noise: float, rate: float, steps: int) -> None:
    """By the midpoint rule, of two steps in the plane."""
    low, high = between_epsilons(0.01, noise, rate, steps)
    at, chance = outputs(noise, 100_001 if steps == 1 else 1_501)
    ratio = 1.0 - rate + rate * np.exp((2.0 * at - 1.0) / (2.0 * noise**2))
    if steps == 2:
        ratio, chance = np.multiply.outer(ratio, ratio), np.multiply.outer(chance, chance)
    off = 1e-6 if steps == 1 else DIGITS
    assert max(excess(low * (1.0 - off), ratio, chance)) >= 0.01 >= max(excess(high * (1.0 + off), ratio, chance))
    assert high - low <= DIGITS * high


@pytest.mark.parametrize(("noise", "rate", "steps"), [(0.7, 0.2, 6), (1.0, 0.1, 20)])
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
    at, chance = outputs(1.0, 1_501)
    one = np.exp(at - 0.5)
    ratio, chance = 0.2 + 0.4 * np.add.outer(one, one), np.multiply.outer(chance, chance)
    for epsilon in (0.1, 0.5, 1.0):
        found = tuple(losses.delta(epsilon) for losses in two_batches(0.8, 1.0))
        assert found == pytest.approx(excess(epsilon, ratio, chance), rel=1e-4, abs=1e-6)
