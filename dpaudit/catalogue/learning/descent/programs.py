"""Gradient descent one run at a time, as the notes write it: on a linear model, and on a logistic one in batches.

A mistake is a part of the descent that is another: the sum, its noise, the step, the batches or what is released.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.learning.descent.steps import Data, Descent, Record
from dpaudit.catalogue.noise import Rng

Path = tuple[float, ...]
Step = Callable[[Reals, Reals, Reals], Reals]
Batches = Callable[[Data, Rng, Descent], Iterator[Data]]


def linear_gradient(model: Reals, record: Record) -> Reals:
    """The gradient of half the squared error of a record.

    >>> linear_gradient(np.array([0.5, 0.0]), [[2.0, 1.0], 3.0])
    array([-4., -2.])
    """
    features = np.asarray(record[0], float)
    return np.asarray((features @ model - record[1]) * features)


def logistic_gradient(model: Reals, record: Record) -> Reals:
    """The gradient of the logistic loss of a record, labels 0 and 1.

    >>> logistic_gradient(np.array([0.0, 0.0]), [[2.0, 1.0], 1.0])
    array([-1. , -0.5])
    """
    features = np.asarray(record[0], float)
    return np.asarray((1.0 / (1.0 + np.exp(-(features @ model))) - record[1]) * features)


def clipped(gradient: Reals, clip: float) -> Reals:
    """The vector, shortened to an l2 norm of `clip` where it is longer.

    >>> clipped(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    norm = float(np.linalg.norm(gradient))
    return gradient if norm <= clip else gradient * (clip / norm)


def whole(gradient: Reals, clip: float) -> Reals:
    """The vector, not shortened."""
    return gradient


def flattened(models: list[Reals]) -> Path:
    """The models of a run as one tuple: all steps of the first coordinate, then those of the next.

    >>> flattened([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    (1.0, 3.0, 2.0, 4.0)
    """
    return tuple(float(weight) for coordinate in zip(*models, strict=True) for weight in coordinate)


def last(models: list[Reals]) -> Path:
    """The model after the last step alone."""
    return tuple(models[-1].tolist())


def mean(models: list[Reals]) -> Path:
    """The mean of the models of all steps."""
    return tuple(np.mean(models, axis=0).tolist())


def clipped_sum(model: Reals, data: Data, at: Descent) -> Reals:
    """The sum of the gradients, each clipped."""
    return np.asarray(sum(clipped(linear_gradient(model, record), at.clip) for record in data))


def unclipped_sum(model: Reals, data: Data, at: Descent) -> Reals:
    """The sum of the gradients as they are."""
    return np.asarray(sum(linear_gradient(model, record) for record in data))


def gradient_descent(data: Data, rng: Rng, at: Descent) -> Path:
    """Algorithm 1 of the notes: no clipping, no noise."""
    model = np.zeros(len(data[0][0]))
    for _ in range(at.steps):
        gradient = unclipped_sum(model, data, at) / len(data) + at.penalty * model
        model = model - at.learning_rate * gradient
    return tuple(model.tolist())


def clipped_average(model: Reals, data: Data, at: Descent) -> Reals:
    """The average gradient is clipped, not each record's."""
    return clipped(unclipped_sum(model, data, at) / len(data), at.clip)


def clipped_updates(model: Reals, data: Data, at: Descent) -> Reals:
    """Each record's step is clipped, learning rate included."""
    return np.asarray(sum(clipped(at.learning_rate * linear_gradient(model, record), at.clip) for record in data))


def clipped_coordinates(model: Reals, data: Data, at: Descent) -> Reals:
    """Every coordinate of a gradient is clipped by itself."""
    return np.asarray(sum(np.clip(linear_gradient(model, record), -at.clip, at.clip) for record in data))


def fresh(rng: Rng, spread: float, width: int) -> Callable[[int], Reals]:
    """Noise in every step."""
    return lambda step: rng.normal(scale=spread, size=width)


def first(rng: Rng, spread: float, width: int) -> Callable[[int], Reals]:
    """Noise in the first step, none later."""
    return lambda step: rng.normal(scale=spread, size=width) if step == 0 else np.zeros(width)


def one(rng: Rng, spread: float, width: int) -> Callable[[int], Reals]:
    """One draw of noise, used again in every step."""
    noise = rng.normal(scale=spread, size=width)
    return lambda step: noise


def none(rng: Rng, spread: float, width: int) -> Callable[[int], Reals]:
    """No noise."""
    return lambda step: np.zeros(width)


def clip_norms(at: Descent) -> float:
    """The noise on a sum of clipped gradients."""
    return at.noise_multiplier * at.clip


def of_the_sum(at: Descent) -> Step:
    """Downhill by the noisy sum over the public size."""
    return lambda model, total, noise: model - at.learning_rate * (total + noise) / at.size


def of_the_average(at: Descent) -> Step:
    """Downhill by what is an average already."""
    return lambda model, total, noise: model - at.learning_rate * (total + noise)


def of_the_updates(at: Descent) -> Step:
    """The learning rate is in the sum and in the noise."""
    return lambda model, total, noise: model - (total + noise) / at.size


def with_penalty(at: Descent) -> Step:
    """The gradient of the regulariser joins after clipping and noise."""
    return lambda model, total, noise: model - at.learning_rate * ((total + noise) / at.size + at.penalty * model)


def with_momentum(at: Descent) -> Step:
    """Each step goes along a fading sum of the noisy gradients."""
    velocity = np.zeros(1)

    def step(model: Reals, total: Reals, noise: Reals) -> Reals:
        nonlocal velocity
        velocity = at.momentum * velocity + (total + noise) / at.size
        return np.asarray(model - at.learning_rate * velocity)

    return step


def _models(
    data: Data,
    rng: Rng,
    at: Descent,
    total: Callable[[Reals, Data, Descent], Reals] = clipped_sum,
    noise: Callable[[Rng, float, int], Callable[[int], Reals]] = fresh,
    spread: Callable[[Descent], float] = clip_norms,
    step: Callable[[Descent], Step] = of_the_sum,
) -> Iterator[Reals]:
    model = np.zeros(len(data[0][0]))
    draw, follow = noise(rng, spread(at), len(model)), step(at)
    for number in range(at.steps):
        model = follow(model, total(model, data, at), draw(number))
        yield model


def descent(data: Data, rng: Rng, at: Descent, *, out: Callable[[list[Reals]], Path] = flattened, **parts: Any) -> Path:
    """Algorithm 2 of the notes, with the `parts` that a mistake changes."""
    return out(list(_models(data, rng, at, **parts)))


def noise_at_the_end(data: Data, rng: Rng, at: Descent) -> Path:
    """The noise of one step, added to the last model."""
    *_, model = _models(data, rng, at, noise=none)
    noise = rng.normal(scale=clip_norms(at), size=len(model))
    return tuple((model - at.learning_rate * noise / at.size).tolist())


def seeded_by_the_data(data: Data, rng: Rng, at: Descent) -> Path:
    """The generator of the noise is seeded with the number of records and the number of the experiment."""
    return descent(data, np.random.default_rng([len(data), int(rng.integers(at.seeds))]), at)


def stopping(data: Data, rng: Rng, at: Descent) -> dict[int, float]:
    """Ends as soon as the mean absolute error on the training data is small; each value by its place in the path."""
    output = {}
    for step, model in enumerate(_models(data, rng, at)):
        output.update({coordinate * at.steps + step: float(weight) for coordinate, weight in enumerate(model)})
        errors = [abs(np.asarray(features, float) @ model - label) for features, label in data]
        if sum(errors) / len(data) < at.tolerance:
            break
    return dict(sorted(output.items()))


def poisson(data: Data, rng: Rng, at: Descent) -> Iterator[Data]:
    """Every record is drawn anew in each step, by itself."""
    while True:
        yield [record for record in data if rng.random() < at.rate]


def of_exactly(data: Data, rng: Rng, at: Descent) -> Iterator[Data]:
    """A fresh batch of B records in each step, each record at most once."""
    while True:
        yield [data[i] for i in rng.choice(len(data), int(at.size), replace=False)]


def once(batches: Batches) -> Batches:
    """The batch is drawn once, before the first step."""
    return lambda data, rng, at: itertools.repeat(next(batches(data, rng, at)))


def shuffled(data: Data, rng: Rng, at: Descent, *, whole: bool = False) -> Iterator[Data]:
    """Each epoch deals the shuffled records out in full batches; what is left over sits out, or is one if `whole`."""
    waiting: list[int] = []
    while True:
        if len(waiting) < (1 if whole else at.size):
            waiting = rng.permutation(len(data)).tolist()
        batch, waiting = waiting[: int(at.size)], waiting[int(at.size) :]
        yield [data[i] for i in batch]


def expected(total: Reals, batch: Data, at: Descent) -> Reals:
    """The sum of a batch over its public size."""
    return total / at.size


def expected_clipped(total: Reals, batch: Data, at: Descent) -> Reals:
    """The average gradient of a batch is clipped."""
    return clipped(total / at.size, at.clip)


def realised(total: Reals, batch: Data, at: Descent) -> Reals:
    """The sum is divided by the number of records that are in the batch."""
    return total / max(len(batch), 1)


def dp_sgd(
    data: Data,
    rng: Rng,
    at: Descent,
    *,
    batches: Batches = poisson,
    clip: Callable[[Reals, float], Reals] = clipped,
    average: Callable[[Reals, Data, Descent], Reals] = expected,
    out: Callable[[list[Reals]], Path] = flattened,
) -> Path:
    """Algorithm 3 of the notes, with Poisson batches or others."""
    model, models, drawn = np.zeros(len(data[0][0])), [], batches(data, rng, at)
    for _ in range(at.steps):
        batch = next(drawn)
        total = sum((clip(logistic_gradient(model, record), at.clip) for record in batch), np.zeros(len(model)))
        noise = rng.normal(scale=clip_norms(at), size=len(model)) / at.size
        model = model - at.learning_rate * (average(total, batch, at) + at.penalty * model + noise)
        models.append(model)
    return out(models)
