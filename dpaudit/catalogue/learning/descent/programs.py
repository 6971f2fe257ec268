"""Gradient descent one run at a time, as the notes write it: on a linear model, and on a logistic one in batches.

A mistake is an edit of them: of the sum, its noise, the step, the batches or what is released.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import made_of
from dpaudit.catalogue.noise import Rng

Record = list[Any]  # [features, label]
Data = list[Record]
Path = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Descent:
    """The parameters of a descent; `size` is what sums are divided by, and the last ones are those of some twins."""

    learning_rate: float = 1.0
    steps: int = 1
    noise_multiplier: float = 0.0
    clip: float = math.inf
    size: float = 1.0
    rate: float = 1.0
    delta: float = 0.0
    records: int = 0
    seeds: int = 1
    tolerance: float = 0.0
    momentum: float = 0.0
    penalty: float = 0.0
    epsilon: float = math.inf


Batches = Callable[[Data, Rng, Descent], Iterator[Data]]


def planned(function: Callable[..., Any], **parts: Any) -> Callable[..., Any]:
    """The function of data and a descent as entries call it, with their parameters as keywords; `parts` are bound."""

    @made_of(function)
    def call(*given: Any, **parameters: Any) -> Any:
        descent = Descent(**{"size" if name == "batch_size" else name: parameters[name] for name in parameters})
        return function(*given, descent, **parts)

    call.__dict__["again"] = partial(planned, **parts)
    return call


def length(record: Record) -> float:
    """The l2 norm of a record's features."""
    return float(np.linalg.norm(record[0]))


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


def flattened(models: list[Reals]) -> Path:
    """The models of a run as one tuple: all steps of the first coordinate, then those of the next.

    >>> flattened([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    (1.0, 3.0, 2.0, 4.0)
    """
    return tuple(float(weight) for coordinate in zip(*models, strict=True) for weight in coordinate)


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


def clip_norms(at: Descent) -> float:
    """The noise on a sum of clipped gradients."""
    return at.noise_multiplier * at.clip


def descent(data: Data, rng: Rng, at: Descent) -> Path:
    """Algorithm 2 of the notes."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(at.steps):
        total = clipped_sum(model, data, at)
        noise = rng.normal(scale=clip_norms(at), size=len(model))
        model = model - at.learning_rate * (total + noise) / at.size
        models.append(model)
    return flattened(models)


def seeded_by_the_data(data: Data, rng: Rng, at: Descent) -> Path:
    """The generator of the noise is seeded with the number of records and the number of the experiment."""
    return descent(data, np.random.default_rng([len(data), int(rng.integers(at.seeds))]), at)


def poisson(data: Data, rng: Rng, at: Descent) -> Iterator[Data]:
    """In each step every record joins the batch independently."""
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


def dp_sgd(data: Data, rng: Rng, at: Descent) -> Path:
    """Algorithm 3 of the notes."""
    model, models, drawn = np.zeros(len(data[0][0])), [], poisson(data, rng, at)
    for _ in range(at.steps):
        batch = next(drawn)
        total = sum((clipped(logistic_gradient(model, record), at.clip) for record in batch), np.zeros(len(model)))
        noise = rng.normal(scale=clip_norms(at), size=len(model)) / at.size
        model = model - at.learning_rate * (total / at.size + at.penalty * model + noise)
        models.append(model)
    return flattened(models)
