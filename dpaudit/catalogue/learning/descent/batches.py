"""DP-SGD on a logistic model: one run at a time, as the notes write it, and many runs at once. A batch a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.catalogue.learning.descent.programs import Path, Vector, clipped, flattened
from dpaudit.catalogue.learning.descent.runs import every_step
from dpaudit.catalogue.learning.descent.steps import (
    Data,
    Floats,
    Model,
    Record,
    Rng,
    Walk,
    bounded,
    flat,
    gathered,
    logistic_pull,
    paths,
    shortened,
)

Joins = npt.NDArray[np.bool_]


def logistic_gradient(model: Vector, record: Record) -> Vector:
    """The gradient of the logistic loss of a record, labels 0 and 1.

    >>> logistic_gradient(np.array([0.0, 0.0]), [[2.0, 1.0], 1.0])
    array([-1. , -0.5])
    """
    features = np.asarray(record[0], float)
    return np.asarray((1.0 / (1.0 + np.exp(-(features @ model))) - record[1]) * features)


# --- one run ----------------------------------------------------------------------------------------------------


def dp_sgd(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> Path:
    """Algorithm 3 of the notes, with Poisson batches; the model after the last step."""
    model = np.zeros(len(data[0][0]))
    for _ in range(steps):
        batch = [record for record in data if rng.random() < rate]
        total = sum((clipped(logistic_gradient(model, record), clip) for record in batch), np.zeros(len(model)))
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / batch_size
    return tuple(model.tolist())


def dp_sgd_iterates(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> Path:
    """Algorithm 3 of the notes, with Poisson batches; the models after every step."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        batch = [record for record in data if rng.random() < rate]
        total = sum((clipped(logistic_gradient(model, record), clip) for record in batch), np.zeros(len(model)))
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / batch_size
        models.append(model)
    return flattened(models)


def one_batch(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> Path:
    """The batch is drawn once, before the first step."""
    model = np.zeros(len(data[0][0]))
    batch = [record for record in data if rng.random() < rate]
    for _ in range(steps):
        total = sum((clipped(logistic_gradient(model, record), clip) for record in batch), np.zeros(len(model)))
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / batch_size
    return tuple(model.tolist())


def no_clipping(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> Path:
    """Gradients are not clipped."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        batch = [record for record in data if rng.random() < rate]
        total = sum((logistic_gradient(model, record) for record in batch), np.zeros(len(model)))
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / batch_size
        models.append(model)
    return flattened(models)


def clipping_per_batch(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> Path:
    """The average gradient of a batch is clipped."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        batch = [record for record in data if rng.random() < rate]
        average = sum((logistic_gradient(model, record) for record in batch), np.zeros(len(model))) / batch_size
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model)) / batch_size
        model = model - learning_rate * (clipped(average, clip) + noise)
        models.append(model)
    return flattened(models)


def realised_batch_size(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> Path:
    """The sum is divided by the number of records that are in the batch."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        batch = [record for record in data if rng.random() < rate]
        total = sum((clipped(logistic_gradient(model, record), clip) for record in batch), np.zeros(len(model)))
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model)) / batch_size
        model = model - learning_rate * (total / max(len(batch), 1) + noise)
        models.append(model)
    return flattened(models)


def shuffled_batches(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> Path:
    """Each epoch deals the shuffled records out in full batches; what is left over waits for the next epoch."""
    model, models = np.zeros(len(data[0][0])), []
    waiting: list[int] = []
    for _ in range(steps):
        if len(waiting) < batch_size:
            waiting = rng.permutation(len(data)).tolist()
        batch, waiting = [data[i] for i in waiting[: int(batch_size)]], waiting[int(batch_size) :]
        total = sum((clipped(logistic_gradient(model, record), clip) for record in batch), np.zeros(len(model)))
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / batch_size
        models.append(model)
    return flattened(models)


# --- many runs at once --------------------------------------------------------------------------------------------


def poisson(rng: Rng, records: int, runs: int, rate: float, batch_size: float) -> Callable[[int], Joins]:
    """Every record is drawn anew in each step, by itself."""
    return lambda step: rng.random((records, runs), np.float32) < rate


def drawn_once(rng: Rng, records: int, runs: int, rate: float, batch_size: float) -> Callable[[int], Joins]:
    """The batch of the first step is that of all steps."""
    joins = poisson(rng, records, runs, rate, batch_size)(0)
    return lambda step: joins


def shuffled(rng: Rng, records: int, runs: int, rate: float, batch_size: float) -> Callable[[int], Joins]:
    """A permutation of the records for each epoch, cut into full batches."""
    size = int(batch_size)
    an_epoch = max(1, records // size)
    held: list[npt.NDArray[np.intp]] = []

    def joins(step: int) -> Joins:
        if step % an_epoch == 0:
            held[:] = [rng.random((records, runs)).argsort(axis=0)]
        start = step % an_epoch * size
        return np.asarray((held[0] >= start) & (held[0] < start + size))

    return joins


def clipped_pull(model: Model, record: Record, clip: float) -> Floats:
    """The pull of a record whose gradient is clipped."""
    return bounded(model, record, logistic_pull, clip)


def whole_pull(model: Model, record: Record, clip: float) -> Floats:
    """The pull of a record whose gradient is not clipped."""
    return logistic_pull(model, record)


def expected_average(total: Model, joins: Joins, clip: float, size: float) -> Model:
    """The sum of a batch, divided by its public size."""
    return [part / size for part in total]


def clipped_average(total: Model, joins: Joins, clip: float, size: float) -> Model:
    """The average of a batch, clipped."""
    return shortened([part / size for part in total], clip)


def realised_average(total: Model, joins: Joins, clip: float, size: float) -> Model:
    """The average over the records that are in the batch."""
    members: Any = np.maximum(joins.sum(axis=0), 1)
    return [part / members for part in total]


def sgd_runs(
    data: Data,
    runs: int,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
    *,
    batches: Callable[..., Callable[[int], Joins]] = poisson,
    pull: Callable[[Model, Record, float], Floats] = clipped_pull,
    average: Callable[[Model, Joins, float, float], Model] = expected_average,
    out: Callable[[Floats], Floats] = flat,
) -> Floats:
    """Many runs of DP-SGD; the twins change the batches, the pull of a record or how a batch is averaged."""

    def walker(block: int) -> Walk:
        joins_of = batches(rng, len(data), block, rate, batch_size)

        def walk(model: Model, step: int) -> Model:
            joins = joins_of(step)
            total = gathered(model, data, lambda model, i: pull(model, data[i], clip) * joins[i])
            shift = average(total, joins, clip, batch_size)
            draw = every_step(rng, len(model), block, step, noise_multiplier * clip / batch_size)
            return [w + learning_rate * (s + z) for w, s, z in zip(model, shift, draw, strict=True)]

        return walk

    return out(paths(data, runs, steps, walker))
