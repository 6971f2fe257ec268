"""Leaks in vectors and lists, of our own making: dependence, ties, orders, lengths."""

from __future__ import annotations

import functools
import math
from functools import partial
from typing import Any

import numpy as np

from benchmarks.classes.leak import (
    DRAWS,
    Floats,
    Leak,
    Points,
    Rng,
    apart,
    cells,
    density,
    discrete_laplace_noise,
    integers,
    laplace,
    normal_below,
    rates,
    sampled,
)


def _lagged(data: int, runs: int, rng: Rng) -> Floats:
    """Noise of twenty entries that remembers the entry before."""
    weight = 0.3 if data else 0.0
    noise = rng.standard_normal((runs, 20))
    for j in range(1, 20):
        noise[:, j] = weight * noise[:, j - 1] + math.sqrt(1.0 - weight**2) * noise[:, j]
    return noise


@functools.cache
def _lagged_law() -> Points:
    def ratio(first: bool, rng: Rng) -> Floats:
        x = _lagged(int(first), DRAWS, rng)
        rest = (x[:, 1:] - 0.3 * x[:, :-1]) ** 2 / (1.0 - 0.09)
        return np.asarray((x[:, 1:] ** 2 - rest).sum(axis=1) / 2.0 - 19.0 * math.log(1.0 - 0.09) / 2.0)

    return sampled(ratio)


def _product(data: int, runs: int, rng: Rng) -> Floats:
    """Entries 0 and 3 of six move together, or against each other."""
    x = rng.standard_normal((runs, 6))
    weight = 0.5 if data else -0.5
    x[:, 3] = weight * x[:, 0] + math.sqrt(1.0 - weight**2) * x[:, 3]
    return x


@functools.cache
def _product_law() -> Points:
    def ratio(first: bool, rng: Rng) -> Floats:
        x = _product(int(first), DRAWS, rng)
        return np.asarray(x[:, 0] * x[:, 3] / 0.75)  # of two correlations .5 and -.5 only the product stays

    return sampled(ratio)


def _entry_scale(data: int, runs: int, rng: Rng) -> Floats:
    """Of ten entries the fourth has more noise on one dataset."""
    x = rng.standard_normal((runs, 10))
    x[:, 3] *= 1.6 if data else 1.0
    return x


def _entry_scale_law() -> Points:
    return cells(*(density(normal_below(0.0, scale), -9.0, 9.0) for scale in (1.6, 1.0)))


def _median(data: float, runs: int, rng: Rng) -> Floats:
    """Eleven numbers in any order whose median is a noisy answer."""
    x = rng.exponential(3.0, (runs, 11))
    x[:, :5] *= -1.0
    x[:, 5] = 0.0
    return rng.permuted(x, axis=1) + (data + rng.laplace(0.0, 0.5, runs))[:, None]


def _ties(data: int, runs: int, rng: Rng) -> Any:
    """Sorted draws from fifty, without replacement but for one run in twenty on the first dataset."""
    without = np.argsort(rng.random((runs, 50)), axis=1)[:, :6]
    again = (rng.random(runs) < 0.05) & (data == 1)
    return np.sort(np.where(again[:, None], rng.integers(0, 50, (runs, 6)), without), axis=1)


def _duplicates(data: int, runs: int, rng: Rng) -> list[Any]:
    """The same in the order of the draws, as lists of names."""
    without = np.argsort(rng.random((runs, 50)), axis=1)[:, :6]
    again = (rng.random(runs) < 0.1) & (data == 1)
    drawn = np.where(again[:, None], rng.integers(0, 50, (runs, 6)), without)
    return [[f"user {j}" for j in row] for row in drawn.tolist()]


def _tied(chance: float) -> Points:
    """An output with a tie comes from draws with replacement alone."""
    return apart(chance * (1.0 - math.prod(1.0 - j / 50.0 for j in range(6))))


def _shuffled(data: int, runs: int, rng: Rng) -> Any:
    """A shuffle of eight items that now and then does nothing."""
    order = np.argsort(rng.random((runs, 8)), axis=1)
    return np.where(((rng.random(runs) < 0.01) & (data == 1))[:, None], np.arange(8), order)


def _top(data: int, runs: int, rng: Rng) -> Any:
    """The five of thirty with the largest noisy counts, the largest first; item 17 has one more on one dataset."""
    utilities = np.linspace(1.0, 0.0, 30)
    utilities[17] += 1.5 * data
    return np.argsort(-(utilities + rng.gumbel(size=(runs, 30))), axis=1)[:, :5]


@functools.cache
def _top_law() -> Points:
    def ratio(first: bool, rng: Rng) -> Floats:
        weights = [np.exp(np.linspace(1.0, 0.0, 30)) for _ in range(2)]
        weights[0][17] *= math.exp(1.5)
        total = np.zeros(0)
        chosen = np.concatenate([_top(int(first), 40_000, rng) for _ in range(10)])
        logs = []
        for each in weights:  # without replacement, each in proportion to its weight (Plackett & Luce)
            taken = each[chosen]
            left = each.sum() - np.cumsum(taken, axis=1) + taken
            logs.append(np.log(taken / left).sum(axis=1))
        total = logs[0] - logs[1]
        return np.asarray(total)

    return sampled(ratio)


def _long_list(data: int, runs: int, rng: Rng) -> list[Any]:
    """Numbers of no use, in a list whose length says it."""
    lengths = np.clip(data + discrete_laplace_noise(rng, 0.5, runs), 0, None)
    return np.split(rng.standard_normal(int(lengths.sum())), np.cumsum(lengths)[:-1])


def of_lists() -> list[Leak]:
    """The classes; sizes at which the best event certifies well above nothing."""
    small, middle = 20_000, 100_000
    return [
        Leak(
            "lagged",
            "dependence",
            "noise of twenty entries with correlation .3 at lag 1",
            _lagged,
            (1, 0),
            middle,
            _lagged_law,
        ),
        Leak(
            "product",
            "dependence",
            "entries 0 and 3 of six together or against each other",
            _product,
            (1, 0),
            middle,
            _product_law,
        ),
        Leak(
            "entry_scale",
            "wide",
            "entry 3 of ten has 1.6 times the noise",
            _entry_scale,
            (1, 0),
            middle,
            _entry_scale_law,
        ),
        Leak(
            "median",
            "dependence",
            "the median of eleven numbers in any order, loss 2",
            _median,
            (1.0, 0.0),
            small,
            partial(laplace, 1.0, 0.5),
        ),
        Leak(
            "duplicates",
            "dependence",
            "a name twice among six in any order",
            _duplicates,
            (1, 0),
            middle,
            partial(_tied, 0.1),
        ),
        Leak(
            "shuffled",
            "dependence",
            "a shuffle that does nothing in .01 of runs",
            _shuffled,
            (1, 0),
            middle,
            partial(rates, 0.01 + 0.99 / 40_320, 1.0 / 40_320),
        ),
        Leak(
            "long_list",
            "text",
            "the length of a list, loss 2",
            _long_list,
            (21, 20),
            small,
            partial(integers, 1, 0.5),
        ),
        Leak("ties", "dependence", "a tie among six sorted draws", _ties, (1, 0), middle, partial(_tied, 0.05)),
        Leak("top", "dependence", "the top five of thirty, one item e^1.5 likelier", _top, (1, 0), middle, _top_law),
    ]
