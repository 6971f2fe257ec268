"""Samplers of gradient descent: many runs at once, with the same parts as the programs of one run.

The models of all runs move together, one array for each coordinate. For both models the gradient of a record's loss is
a number times its features, so clipping its l2 norm is clipping that number. Outputs are paths: all values of the first
coordinate, step by step, then those of the next one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Masked, Places, Reals
from dpaudit.catalogue.learning.descent import programs
from dpaudit.catalogue.learning.descent.programs import Data, Descent, Record, clip_norms, length
from dpaudit.catalogue.noise import Rng

Model = list[Reals]
Pull = Callable[[Model, Record], Reals]

BLOCK = 1 << 14  # runs that are worked on together: their models stay in the cache


Total = Callable[[Model, Data, Descent], Model]


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


def shortened(vector: Model, most: float) -> Model:
    """A vector of each run, clipped to an l2 norm of `most`.

    >>> [part.tolist() for part in shortened([np.array([3.0, 0.3]), np.array([4.0, 0.4])], 2.5)]
    [[1.5, 0.3], [2.0, 0.4]]
    """
    size = np.sqrt(sum(part * part for part in vector))
    factor = np.minimum(1.0, most / np.maximum(size, 1e-300))
    return [part * factor for part in vector]


Walk = Callable[[Model, int], Model]


def paths(data: Data, runs: int, steps: int, walker: Callable[[int], Walk]) -> Reals:
    """The models after each step, coordinate by coordinate: an array (coordinate, step, run).

    `walker(size)` starts a block of so many runs: a function from model and step to the next model.
    """
    width = len(data[0][0])
    out = np.empty((width, steps, runs))
    for start in range(0, runs, BLOCK):
        block = slice(start, min(start + BLOCK, runs))
        size = block.stop - start
        walk, model = walker(size), [np.zeros(size) for _ in range(width)]
        for step in range(steps):
            model = walk(model, step)
            for j, weights in enumerate(model):
                out[j, step, block] = weights
    return out


def flat(path: Reals) -> Reals:
    """A path as one row a run: all steps of the first coordinate, then those of the next."""
    return path.reshape(-1, path.shape[-1]).T


Noise = Callable[[Rng, int, int, float], Callable[[int], Model]]
Step = Callable[[Model, Model, Model], Model]
Batches = Callable[[Rng, int, int, Descent], Callable[[int], Bools]]


def fresh(rng: Rng, width: int, runs: int, spread: float) -> Callable[[int], Model]:
    """Noise for each coordinate in every step."""
    return lambda step: [rng.standard_normal(runs) * spread for _ in range(width)]


def one(rng: Rng, width: int, runs: int, spread: float) -> Callable[[int], Model]:
    """One draw of noise, used again in every step."""
    draw = [rng.standard_normal(runs) * -spread for _ in range(width)]
    return lambda step: draw


def coordinates_clipped(model: Model, data: Data, at: Descent) -> Model:
    """The sum of the negative gradients, every coordinate of each clipped by itself."""
    total = [np.zeros(model[0].shape) for _ in model]
    for record in data:
        pull = linear_pull(model, record)
        for j, feature in enumerate(record[0]):
            total[j] += np.clip(pull * feature, -at.clip, at.clip)
    return total


def each(follow: Callable[[Reals, Reals, Reals], Reals]) -> Step:
    """The next model, coordinate by coordinate, from the weight, the sum and the noise."""
    return lambda model, total, draw: [follow(w, s, z) for w, s, z in zip(model, total, draw, strict=True)]


def of_the_sum(at: Descent) -> Step:
    """Uphill by the noisy sum of pulls over the public size."""
    return each(lambda w, s, z: w + at.learning_rate / at.size * (s - z))


def with_momentum(at: Descent) -> Step:
    """The noisy gradients are remembered: each step goes along a fading sum of them."""
    velocity: Model = []

    def step(model: Model, total: Model, draw: Model) -> Model:
        past = velocity or [np.zeros(w.shape) for w in model]
        velocity[:] = [v * at.momentum + (s + z) / at.size for v, s, z in zip(past, total, draw, strict=True)]
        return [w + at.learning_rate * v for w, v in zip(model, velocity, strict=True)]

    return step


def descent(
    data: Data,
    runs: int,
    rng: Rng,
    at: Descent,
    *,
    total: Total = clipped_total,
    noise: Noise = fresh,
    spread: Callable[[Descent], float] = clip_norms,
    step: Callable[[Descent], Step] = of_the_sum,
    out: Callable[[Reals], Reals] = flat,
) -> Reals:
    """Many runs of DP gradient descent with the parts that a mistake changes."""

    def walker(block: int) -> Walk:
        draw, follow = noise(rng, len(data[0][0]), block, spread(at)), step(at)
        return lambda model, number: follow(model, total(model, data, at), draw(number))

    return out(paths(data, runs, at.steps, walker))


def noise_at_the_end(data: Data, runs: int, rng: Rng, at: Descent) -> Reals:
    """Exact steps, and one draw of noise for the last model."""
    model = descent(data, 1, rng, at, noise=PARTS["none"], out=PARTS["last"])
    noisy = rng.standard_normal((model.shape[1], runs)) * (at.noise_multiplier * at.clip * at.learning_rate / at.size)
    noisy += model.T
    return noisy.T


def gradient_descent(data: Data, runs: int, rng: Rng, at: Descent) -> Reals:
    """Gradient descent: every run the same."""
    return np.tile(programs.gradient_descent(data, rng, at), (runs, 1))


def seeded(data: Data, runs: int, rng: Rng, at: Descent) -> Reals:
    """The noise of a generator that is seeded by the data and a small number: one path for each number."""
    seeds = [np.random.default_rng([len(data), number]) for number in range(at.seeds)]
    return np.asarray([descent(data, 1, own, at)[0] for own in seeds])[rng.integers(at.seeds, size=runs)]


def stopping(data: Data, runs: int, rng: Rng, at: Descent) -> Masked:
    """The models up to the first one whose true training loss is small; what follows is masked."""
    path = descent(data, runs, rng, at)
    width = len(data[0][0])
    models = path.T.reshape(width, at.steps, runs)
    loss = sum(np.abs(linear_pull(list(models), record)) for record in data) / len(data)
    done = np.cumsum(np.asarray(loss) < at.tolerance, axis=0)
    hidden = np.concatenate([np.zeros((1, runs), bool), done[:-1] > 0])
    return np.ma.MaskedArray(path, mask=np.tile(hidden, (width, 1)).T)


def poisson(rng: Rng, records: int, runs: int, at: Descent) -> Callable[[int], Bools]:
    """In each step every record joins the batch independently."""
    return lambda step: rng.random((records, runs), np.float32) < at.rate


def of_exactly(rng: Rng, records: int, runs: int, at: Descent) -> Callable[[int], Bools]:
    """Fresh batches of B records, each record at most once."""
    return lambda step: np.asarray(rng.random((records, runs), np.float32).argsort(axis=0) < at.size)


def once(batches: Batches) -> Batches:
    """The batch of the first step is that of all steps."""

    def drawn(rng: Rng, records: int, runs: int, at: Descent) -> Callable[[int], Bools]:
        joins = batches(rng, records, runs, at)(0)
        return lambda step: joins

    return drawn


def shuffled(rng: Rng, records: int, runs: int, at: Descent, *, whole: bool = False) -> Callable[[int], Bools]:
    """A permutation of the records for each epoch, cut into full batches; what is left over is one if `whole`."""
    size = int(at.size)
    an_epoch = max(1, (records + size - 1 if whole else records) // size)
    order: list[Places] = []

    def joins(step: int) -> Bools:
        if step % an_epoch == 0:
            order[:] = [rng.random((records, runs)).argsort(axis=0)]
        start = step % an_epoch * size
        return np.asarray((order[0] >= start) & (order[0] < start + size))

    return joins


def clipped_pull(model: Model, record: Record, clip: float) -> Reals:
    """The pull of a record whose gradient is clipped."""
    return bounded(model, record, logistic_pull, clip)


def expected(total: Model, joins: Bools, at: Descent) -> Model:
    """The sum of a batch, divided by its public size."""
    return [part / at.size for part in total]


def dp_sgd(
    data: Data,
    runs: int,
    rng: Rng,
    at: Descent,
    *,
    batches: Batches = poisson,
    clip: Callable[[Model, Record, float], Reals] = clipped_pull,
    average: Callable[[Model, Bools, Descent], Model] = expected,
    out: Callable[[Reals], Reals] = flat,
) -> Reals:
    """Many runs of DP-SGD; the twins change the batches, the pull of a record or how a batch is averaged."""

    def walker(block: int) -> Walk:
        joins_of = batches(rng, len(data), block, at)
        draw = fresh(rng, len(data[0][0]), block, at.noise_multiplier * at.clip / at.size)

        def walk(model: Model, step: int) -> Model:
            joins = joins_of(step)
            total = gathered(model, data, lambda model, i: clip(model, data[i], at.clip) * joins[i])
            shift = average(total, joins, at)
            return each(lambda w, s, z: w + at.learning_rate * (s - at.penalty * w + z))(model, shift, draw(step))

        return walk

    return out(paths(data, runs, at.steps, walker))


PARTS: dict[str, Callable[..., Any]] = {  # those of many runs, by the names that they have for one run
    # the sum of the negative gradients
    "unclipped": lambda model, data, at: gathered(model, data, lambda model, i: linear_pull(model, data[i])),
    "average clipped": lambda model, data, at: shortened(
        [part / len(data) for part in PARTS["unclipped"](model, data, at)], at.clip
    ),
    "updates clipped": lambda model, data, at: gathered(
        model,
        data,
        lambda model, i: at.learning_rate * bounded(model, data[i], linear_pull, at.clip / at.learning_rate),
    ),
    "coordinates clipped": coordinates_clipped,
    # its noise
    "in the first step": lambda rng, width, runs, spread: (
        lambda step: [rng.standard_normal(runs) * (spread if step == 0 else 0.0) for _ in range(width)]
    ),
    "one draw": one,
    "none": lambda rng, width, runs, spread: lambda step: [np.zeros(runs) for _ in range(width)],
    # the next model
    "of the average": lambda at: each(lambda w, s, z: w + at.learning_rate * (s - z)),
    "of the updates": lambda at: each(lambda w, s, z: w + (s + z) / at.size),
    "with penalty": lambda at: each(lambda w, s, z: w + at.learning_rate * ((s + z) / at.size - at.penalty * w)),
    "with momentum": with_momentum,
    # the batches, the pull of a record in one, and the average over one
    "of exactly": of_exactly,
    "one poisson": once(poisson),
    "one of exactly": once(of_exactly),
    "shuffled": shuffled,
    "whole": lambda model, record, clip: logistic_pull(model, record),
    "expected, clipped": lambda total, joins, at: shortened(expected(total, joins, at), at.clip),
    "realised": lambda total, joins, at: [part / np.maximum(joins.sum(axis=0), 1) for part in total],
    # what is released
    "last": lambda path: path[:, -1].T,
    "mean": lambda path: np.asarray(path.mean(axis=1)).T,
}
