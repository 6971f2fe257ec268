"""Gradient descent with many runs at once: the models of all runs move together, one array for each coordinate.

A record is [features, label]. For both models the gradient of a record's loss is a number times its features, so
clipping its l2 norm is clipping that number. Outputs are paths: all values of the first coordinate, step by step,
then those of the next one.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, made_of

Record = list[Any]
Data = list[Record]
Model = list[Reals]
Pull = Callable[[Model, Record], Reals]

BLOCK = 1 << 14  # runs that are worked on together: their models stay in the cache


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


Total = Callable[[Model, Data, Descent], Model]


def planned(function: Callable[..., Any], **parts: Any) -> Callable[..., Any]:
    """The function of data and a descent as entries call it, with their parameters as keywords; `parts` are bound."""

    @made_of(function)
    def call(*given: Any, **parameters: Any) -> Any:
        descent = Descent(**{"size" if name == "batch_size" else name: parameters[name] for name in parameters})
        return function(*given, descent, **parts)

    return call


def coded(
    program: Callable[..., Any], sampler: Callable[..., Any], loss: Callable[..., Any], **parts: tuple[Any, Any]
) -> Code:
    """A descent with some parts changed, each a pair: that of one run, and that of many."""
    one, runs = ({name: pair[place] for name, pair in parts.items()} for place in (0, 1))
    return Code(planned(program, **one), planned(sampler, **runs), planned(loss))


def score(model: Model, record: Record) -> Reals:
    """What a linear model predicts for a record."""
    return np.asarray(sum(weight * feature for weight, feature in zip(model, record[0], strict=True)))


def linear_pull(model: Model, record: Record) -> Reals:
    """The negative gradient of half the squared error, as a multiple of the features.

    >>> linear_pull([np.array([0.5])], [[2.0], 3.0])
    array([2.])
    """
    return np.asarray(record[1] - score(model, record))


def logistic_pull(model: Model, record: Record) -> Reals:
    """The negative gradient of the logistic loss, labels 0 and 1, as a multiple of the features.

    >>> logistic_pull([np.array([0.0])], [[2.0], 1.0])
    array([0.5])
    """
    return np.asarray(record[1] - 1.0 / (1.0 + np.exp(-score(model, record))))


def length(record: Record) -> float:
    """The l2 norm of a record's features."""
    return float(np.linalg.norm(record[0]))


def bounded(model: Model, record: Record, pull: Pull, clip: float) -> Reals:
    """The pull of a record whose gradient is clipped to an l2 norm of `clip`."""
    size = length(record)
    return np.clip(pull(model, record), -clip / size, clip / size) if size else pull(model, record)


def gathered(model: Model, data: Data, pulls: Callable[[Model, int], Reals]) -> Model:
    """The sum over all records of pull times features; `pulls(model, i)` is that of record i in each run."""
    total = [np.zeros(model[0].shape) for _ in model]
    for place, (features, _) in enumerate(data):
        if any(features):
            strength = pulls(model, place)
            for j, feature in enumerate(features):
                if feature:
                    total[j] += strength * feature
    return total


def clipped_total(model: Model, data: Data, at: Descent) -> Model:
    """The sum of the clipped negative gradients of a linear model."""
    return gathered(model, data, lambda model, i: bounded(model, data[i], linear_pull, at.clip))


def unclipped_total(model: Model, data: Data, at: Descent) -> Model:
    """The same without clipping."""
    return gathered(model, data, lambda model, i: linear_pull(model, data[i]))


def shortened(vector: Model, most: float) -> Model:
    """A vector of each run, clipped to an l2 norm of `most`.

    >>> [part.tolist() for part in shortened([np.array([3.0, 0.3]), np.array([4.0, 0.4])], 2.5)]
    [[1.5, 0.3], [2.0, 0.4]]
    """
    size = np.sqrt(sum(part * part for part in vector))
    factor = np.minimum(1.0, most / np.maximum(size, 1e-300))
    return [part * factor for part in vector]


def blocks(runs: int) -> Iterator[slice]:
    """The runs, a block at a time."""
    return (slice(start, min(start + BLOCK, runs)) for start in range(0, runs, BLOCK))


Walk = Callable[[Model, int], Model]


def paths(data: Data, runs: int, steps: int, walker: Callable[[int], Walk]) -> Reals:
    """The models after each step, coordinate by coordinate: an array (coordinate, step, run).

    `walker(size)` starts a block of so many runs: a function from model and step to the next model.
    """
    width = len(data[0][0])
    out = np.empty((width, steps, runs))
    for block in blocks(runs):
        size = block.stop - block.start
        walk, model = walker(size), [np.zeros(size) for _ in range(width)]
        for step in range(steps):
            model = walk(model, step)
            for j, weights in enumerate(model):
                out[j, step, block] = weights
    return out


def flat(path: Reals) -> Reals:
    """A path as one row a run: all steps of the first coordinate, then those of the next."""
    return path.reshape(-1, path.shape[-1]).T


def last(path: Reals) -> Reals:
    """The model after the last step alone."""
    return path[:, -1].T


def mean(path: Reals) -> Reals:
    """The mean of the models after all steps."""
    return np.asarray(path.mean(axis=1)).T
