"""Leaks in one number, of our own making: each is something that a real implementation could do."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from benchmarks.classes.leak import (
    Floats,
    Leak,
    Points,
    Rng,
    apart,
    cells,
    density,
    discrete_laplace,
    discrete_laplace_noise,
    laplace_below,
    rates,
)

SPAN = np.arange(-400, 401)  # integers that hold all of a law but for less than e^-10


def _to_five(data: int, runs: int, rng: Rng) -> Any:
    """Noise that one run in twenty rounds to the nearest five."""
    noise = discrete_laplace_noise(rng, 10.0, runs)
    return data + np.where(rng.random(runs) < 0.05, 5 * np.rint(noise / 5.0), noise)


def _to_five_law() -> Points:
    noise, fives = discrete_laplace(10.0, SPAN), np.zeros(len(SPAN))
    np.add.at(fives, (5 * np.rint(SPAN / 5.0)).astype(int) - SPAN[0], noise)
    law = 0.95 * noise + 0.05 * fives
    return cells(np.append(0.0, law), np.append(law, 0.0))


def _odd_exact(data: int, runs: int, rng: Rng) -> Any:
    """Counts that are odd go out without noise once in a hundred runs."""
    noise = discrete_laplace_noise(rng, 20.0, runs)
    return data + np.where((data % 2 == 1) & (rng.random(runs) < 0.01), 0, noise)


def _odd_exact_law() -> Points:
    noise = discrete_laplace(20.0, SPAN)
    odd = 0.99 * noise
    odd[-SPAN[0]] += 0.01
    return cells(np.append(0.0, odd), np.append(noise, 0.0))


def _upward(data: float, runs: int, rng: Rng) -> Floats:
    """Noise clamped at 0 from below."""
    return data + np.maximum(0.0, rng.laplace(0.0, 200.0, runs))


def _upward_law() -> Points:
    """The second side's atom lies below all of the first; so does the noise on it less than one above."""
    edge = 0.5 * math.exp(-1.0 / 200.0)
    return cells([0.0, 0.0, 0.5, 0.5], [0.5, 0.5 - edge, 0.0, edge])


def _signed(data: float, runs: int, rng: Rng) -> Floats:
    """One run in fifty keeps the sign of the data."""
    noisy = data + rng.laplace(0.0, 5.0, runs)
    return np.where(rng.random(runs) < 0.02, np.copysign(noisy, data), noisy)


def _signed_law() -> Points:
    """By value: of a kept sign, the mass of the other half line comes over."""
    grid = np.linspace(-100.0, 100.0, 20_001)
    laws = []
    for mean in (0.5, -0.5):
        mass = np.diff(laplace_below(mean, 5.0)(grid))
        kept = np.where(np.sign((grid[1:] + grid[:-1]) / 2.0) == np.sign(mean), mass + mass[::-1], 0.0)
        laws.append(0.98 * mass + 0.02 * kept)
    return cells(*laws)


def _decimals(data: int, runs: int, rng: Rng) -> Floats:
    """Two decimals; on the first dataset one run in fifty keeps three."""
    noisy = rng.laplace(50.0, 10.0, runs)
    return np.where((data == 1) & (rng.random(runs) < 0.02), np.round(noisy, 3), np.round(noisy, 2))


def _zero(data: int, runs: int, rng: Rng) -> Floats:
    """Small cells are suppressed: an exact zero among numbers on both sides of it."""
    return np.where(rng.random(runs) < (0.02 if data else 0.003), 0.0, rng.laplace(size=runs))


def _nan(data: int, runs: int, rng: Rng) -> Floats:
    return np.where(rng.random(runs) < (0.02 if data else 0.004), np.nan, rng.laplace(size=runs))


def _raises(data: int, rng: Rng) -> float:
    if rng.random() < (0.05 if data else 0.01):
        raise ValueError("no rows left")
    return float(rng.laplace())


def _scales(data: int, runs: int, rng: Rng) -> Floats:
    """A few values have thirty times the noise: one in twenty, or one in a hundred."""
    return rng.laplace(size=runs) * np.where(rng.random(runs) < (0.05 if data else 0.01), 30.0, 1.0)


def _scales_law() -> Points:
    def below(wide: float, points: Floats) -> Floats:
        return wide * laplace_below(0.0, 30.0)(points) + (1.0 - wide) * laplace_below(0.0, 1.0)(points)

    return cells(*(density(partial(below, wide), -200.0, 200.0) for wide in (0.05, 0.01)))


def _clock(data: int, runs: int, rng: Rng) -> Any:
    """Seconds of a day, as time stamps: jobs of the first dataset start more often at a whole minute."""
    second = rng.integers(0, 86_400, runs)
    whole = rng.random(runs) < (0.05 if data else 0.0)
    return 1_700_006_400 + np.where(whole, second - second % 60, second)


def _mean_of_count(data: int, runs: int, rng: Rng) -> Floats:
    """A noisy sum of integers over the true number of rows, with a noisy number of rows."""
    total = 5_000 + discrete_laplace_noise(rng, 30.0, runs)
    return np.column_stack([total / data, data + discrete_laplace_noise(rng, 10.0, runs)])


def _mean_of_count_law() -> Points:
    """A mean that both sides can give is a rare chance: sum / 100 is k / 99 where 100 divides the sum."""
    total = discrete_laplace(30.0, SPAN)
    both = float(total[(SPAN + 5_000) % 100 == 0].sum())
    return apart(1.0 - both)


def of_numbers() -> list[Leak]:
    """The classes; sizes at which the best event certifies well above nothing."""
    small, middle, large = 20_000, 100_000, 400_000
    return [
        Leak(
            "to_five",
            "lattices",
            "noise rounded to the nearest five in .05 of runs",
            _to_five,
            (12, 11),
            middle,
            _to_five_law,
            claim=(0.1, 0.0),
        ),
        Leak(
            "odd_exact",
            "atoms",
            "no noise on odd counts in .01 of runs",
            _odd_exact,
            (11, 10),
            large,
            _odd_exact_law,
            claim=(0.1, 0.0),
        ),
        Leak(
            "upward",
            "atoms",
            "noise of scale 200 clamped at 0",
            _upward,
            (11.0, 10.0),
            middle,
            _upward_law,
            claim=(0.1, 0.0),
        ),
        Leak(
            "signed",
            "atoms",
            "the sign kept in .02 of runs",
            _signed,
            (0.5, -0.5),
            large,
            _signed_law,
            claim=(0.2, 0.0),
        ),
        Leak(
            "decimals",
            "lattices",
            "three decimals kept in .02 of runs",
            _decimals,
            (1, 0),
            middle,
            partial(apart, 0.018),
        ),
        Leak(
            "zero",
            "atoms",
            "an exact zero, .02 against .003, among numbers around it",
            _zero,
            (1, 0),
            middle,
            partial(rates, 0.02, 0.003),
        ),
        Leak(
            "raises",
            "tokens",
            "an exception, .05 against .01",
            _raises,
            (1, 0),
            small,
            partial(rates, 0.05, 0.01),
            alone=True,
        ),
        Leak(
            "clock",
            "lattices",
            "whole minutes among time stamps, .05 more often",
            _clock,
            (1, 0),
            middle,
            partial(rates, 0.05 + 0.95 / 60, 1.0 / 60),
        ),
        Leak(
            "mean",
            "lattices",
            "a noisy sum of integers over the true count",
            _mean_of_count,
            (100, 99),
            middle,
            _mean_of_count_law,
        ),
        Leak("nan", "tokens", "NaN, .02 against .004", _nan, (1, 0), middle, partial(rates, 0.02, 0.004)),
        Leak("scales", "tails", "thirty times the noise, .05 against .01", _scales, (1, 0), middle, _scales_law),
    ]
