"""Samplers of gradient descent on a linear model: all records in every step, noise on the sum of their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.catalogue.learning.descent.steps import (
    Data,
    Floats,
    Model,
    Rng,
    Total,
    Walk,
    bounded,
    clipped_total,
    flat,
    gathered,
    last,
    linear_pull,
    paths,
    shortened,
)

Noise = Callable[[Rng, int, int, int, float], Model]


def every_step(rng: Rng, width: int, runs: int, step: int, scale: float) -> Model:
    """Fresh noise for each coordinate."""
    return [rng.standard_normal(runs) * scale for _ in range(width)]


def first_step(rng: Rng, width: int, runs: int, step: int, scale: float) -> Model:
    """Noise in the first step, none later."""
    return every_step(rng, width, runs, step, scale if step == 0 else 0.0)


def average_clipped(model: Model, data: Data, clip: float) -> Model:
    """The negative gradient of the average loss, clipped once it is an average."""
    total = gathered(model, data, lambda model, i: linear_pull(model, data[i]))
    return shortened([part / len(data) for part in total], clip)


def each_coordinate(model: Model, data: Data, clip: float) -> Model:
    """The sum of the negative gradients, every coordinate of each clipped by itself."""
    total = [np.zeros(model[0].shape) for _ in model]
    for record in data:
        pull = linear_pull(model, record)
        for j, feature in enumerate(record[0]):
            total[j] += np.clip(pull * feature, -clip, clip)
    return total


def descent_runs(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    *,
    total: Total = clipped_total,
    noise: Noise = every_step,
    scale: Callable[[float, float], float] = lambda clip, size: clip,
    out: Callable[[Floats], Floats] = flat,
    averaged: bool = False,
) -> Floats:
    """Many runs of DP gradient descent; the twins change the sum, the noise, its scale or what is released.

    `averaged`: the sum is an average already, and the noise is for one.
    """
    width = len(data[0][0])
    weight = learning_rate if averaged else learning_rate / size
    spread = noise_multiplier * (clip / size if averaged else scale(clip, size))

    def walker(block: int) -> Walk:
        def walk(model: Model, step: int) -> Model:
            shift, draw = total(model, data, clip), noise(rng, width, block, step, spread)
            return [w + weight * (s - z) for w, s, z in zip(model, shift, draw, strict=True)]

        return walk

    return out(paths(data, runs, steps, walker))


def noise_at_the_end(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
) -> Floats:
    """Exact steps, and one draw of noise for the last model."""
    model = last(_exact(data, noise_multiplier, clip, learning_rate, steps, size, clipped_total))
    noisy = rng.standard_normal((model.shape[1], runs)) * (noise_multiplier * clip * learning_rate / size)
    noisy += model.T
    return noisy.T


def no_noise(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    *,
    total: Total,
) -> Floats:
    """Gradient descent: every run the same."""
    model = last(_exact(data, noise_multiplier, clip, learning_rate, steps, size, total))
    return np.tile(model, (runs, 1))


def _exact(
    data: Data, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float, total: Total
) -> Floats:
    """The path of one run without noise."""

    def walk(model: Model, step: int) -> Model:
        return [w + learning_rate / size * s for w, s in zip(model, total(model, data, clip), strict=True)]

    return paths(data, 1, steps, lambda block: walk)


def one_noise(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
) -> Floats:
    """One draw of noise, used again in every step."""

    def walker(block: int) -> Walk:
        draw = every_step(rng, len(data[0][0]), block, 0, noise_multiplier * clip)

        def walk(model: Model, step: int) -> Model:
            total = clipped_total(model, data, clip)
            return [w + learning_rate / size * (s + z) for w, s, z in zip(model, total, draw, strict=True)]

        return walk

    return flat(paths(data, runs, steps, walker))


def seeded(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    seeds: int,
) -> Floats:
    """The noise of a generator that is seeded by the data and a small number: so many paths, each made once."""
    given = (noise_multiplier, clip, learning_rate, steps, size)
    made = [descent_runs(data, 1, np.random.default_rng([len(data), number]), *given)[0] for number in range(seeds)]
    return np.asarray(made)[rng.integers(seeds, size=runs)]


def update_clipped(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
) -> Floats:
    """Each record's step, learning rate included, is clipped; the noise is scaled as if its gradient were."""

    def walker(block: int) -> Walk:
        def walk(model: Model, step: int) -> Model:
            total = gathered(
                model, data, lambda model, i: learning_rate * bounded(model, data[i], linear_pull, clip / learning_rate)
            )
            draw = every_step(rng, len(model), block, step, learning_rate * noise_multiplier * clip)
            return [w + (s + z) / size for w, s, z in zip(model, total, draw, strict=True)]

        return walk

    return flat(paths(data, runs, steps, walker))


def with_momentum(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    momentum: float,
) -> Floats:
    """The noisy gradients are remembered: each step goes along a fading sum of them."""

    def walker(block: int) -> Walk:
        velocity = [np.zeros(block) for _ in data[0][0]]

        def walk(model: Model, step: int) -> Model:
            draw = every_step(rng, len(model), block, step, noise_multiplier * clip)
            for v, s, z in zip(velocity, clipped_total(model, data, clip), draw, strict=True):
                v *= momentum
                v += (s + z) / size
            return [w + learning_rate * v for w, v in zip(model, velocity, strict=True)]

        return walk

    return flat(paths(data, runs, steps, walker))


def regularised(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    penalty: float,
) -> Floats:
    """The gradient of penalty |model|^2 / 2 is added to the noisy one."""

    def walker(block: int) -> Walk:
        def walk(model: Model, step: int) -> Model:
            draw = every_step(rng, len(model), block, step, noise_multiplier * clip)
            total = clipped_total(model, data, clip)
            return [
                w + learning_rate * ((s + z) / size - penalty * w) for w, s, z in zip(model, total, draw, strict=True)
            ]

        return walk

    return flat(paths(data, runs, steps, walker))


def stopping(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    tolerance: float,
) -> np.ma.MaskedArray[Any, np.dtype[Any]]:
    """The models up to the first one whose true training loss is small; what follows is masked."""
    path = descent_runs(data, runs, rng, noise_multiplier, clip, learning_rate, steps, size)
    width = len(data[0][0])
    models = path.T.reshape(width, steps, runs)
    loss = sum(np.abs(linear_pull(list(models), record)) for record in data) / len(data)
    done = np.cumsum(np.asarray(loss) < tolerance, axis=0)
    hidden = np.concatenate([np.zeros((1, runs), bool), done[:-1] > 0])
    return np.ma.MaskedArray(path, mask=np.tile(hidden, (width, 1)).T)
