"""Samplers of gradient descent: many runs at once, with the same parts as the programs of one run."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Masked, Places, Reals
from dpaudit.catalogue.learning.descent import programs
from dpaudit.catalogue.learning.descent.programs import clip_norms
from dpaudit.catalogue.learning.descent.steps import (
    Data,
    Descent,
    Model,
    Record,
    Total,
    Walk,
    bounded,
    clipped_total,
    flat,
    gathered,
    last,
    linear_pull,
    logistic_pull,
    paths,
    shortened,
)
from dpaudit.catalogue.noise import Rng

Noise = Callable[[Rng, int, int, float], Callable[[int], Model]]
Step = Callable[[Model, Model, Model], Model]
Batches = Callable[[Rng, int, int, Descent], Callable[[int], Bools]]


def fresh(rng: Rng, width: int, runs: int, spread: float) -> Callable[[int], Model]:
    """Noise for each coordinate in every step."""
    return lambda step: [rng.standard_normal(runs) * spread for _ in range(width)]


def first(rng: Rng, width: int, runs: int, spread: float) -> Callable[[int], Model]:
    """Noise in the first step, none later."""
    return lambda step: [rng.standard_normal(runs) * (spread if step == 0 else 0.0) for _ in range(width)]


def one(rng: Rng, width: int, runs: int, spread: float) -> Callable[[int], Model]:
    """One draw of noise, used again in every step."""
    draw = [rng.standard_normal(runs) * -spread for _ in range(width)]
    return lambda step: draw


def none(rng: Rng, width: int, runs: int, spread: float) -> Callable[[int], Model]:
    """No noise."""
    return lambda step: [np.zeros(runs) for _ in range(width)]


def average_clipped(model: Model, data: Data, at: Descent) -> Model:
    """The negative gradient of the average loss, clipped once it is an average."""
    total = gathered(model, data, lambda model, i: linear_pull(model, data[i]))
    return shortened([part / len(data) for part in total], at.clip)


def updates_clipped(model: Model, data: Data, at: Descent) -> Model:
    """The sum of the records' steps, each clipped, learning rate included."""
    clip = at.clip / at.learning_rate
    return gathered(model, data, lambda model, i: at.learning_rate * bounded(model, data[i], linear_pull, clip))


def coordinates_clipped(model: Model, data: Data, at: Descent) -> Model:
    """The sum of the negative gradients, every coordinate of each clipped by itself."""
    total = [np.zeros(model[0].shape) for _ in model]
    for record in data:
        pull = linear_pull(model, record)
        for j, feature in enumerate(record[0]):
            total[j] += np.clip(pull * feature, -at.clip, at.clip)
    return total


def of_the_sum(at: Descent) -> Step:
    """Uphill by the noisy sum of pulls over the public size."""
    weight = at.learning_rate / at.size
    return lambda model, total, draw: [w + weight * (s - z) for w, s, z in zip(model, total, draw, strict=True)]


def of_the_average(at: Descent) -> Step:
    """Uphill by what is an average already."""
    weight = at.learning_rate
    return lambda model, total, draw: [w + weight * (s - z) for w, s, z in zip(model, total, draw, strict=True)]


def of_the_updates(at: Descent) -> Step:
    """The learning rate is in the sum and in the noise."""
    return lambda model, total, draw: [w + (s + z) / at.size for w, s, z in zip(model, total, draw, strict=True)]


def with_penalty(at: Descent) -> Step:
    """The gradient of penalty |model|^2 / 2 is added to the noisy one."""
    return lambda model, total, draw: [
        w + at.learning_rate * ((s + z) / at.size - at.penalty * w) for w, s, z in zip(model, total, draw, strict=True)
    ]


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
    model = descent(data, 1, rng, at, noise=none, out=last)
    noisy = rng.standard_normal((model.shape[1], runs)) * (at.noise_multiplier * at.clip * at.learning_rate / at.size)
    noisy += model.T
    return noisy.T


def gradient_descent(data: Data, runs: int, rng: Rng, at: Descent) -> Reals:
    """Gradient descent: every run the same."""
    return np.tile(programs.gradient_descent(data, rng, at), (runs, 1))


def seeded(data: Data, runs: int, rng: Rng, at: Descent) -> Reals:
    """The noise of a generator that is seeded by the data and a small number: so many paths, each made once."""
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
    """Every record is drawn anew in each step, by itself."""
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
    held: list[Places] = []

    def joins(step: int) -> Bools:
        if step % an_epoch == 0:
            held[:] = [rng.random((records, runs)).argsort(axis=0)]
        start = step % an_epoch * size
        return np.asarray((held[0] >= start) & (held[0] < start + size))

    return joins


def clipped_pull(model: Model, record: Record, clip: float) -> Reals:
    """The pull of a record whose gradient is clipped."""
    return bounded(model, record, logistic_pull, clip)


def whole_pull(model: Model, record: Record, clip: float) -> Reals:
    """The pull of a record whose gradient is not clipped."""
    return logistic_pull(model, record)


def expected(total: Model, joins: Bools, at: Descent) -> Model:
    """The sum of a batch, divided by its public size."""
    return [part / at.size for part in total]


def expected_clipped(total: Model, joins: Bools, at: Descent) -> Model:
    """The average of a batch, clipped."""
    return shortened(expected(total, joins, at), at.clip)


def realised(total: Model, joins: Bools, at: Descent) -> Model:
    """The average over the records that are in the batch."""
    members: Any = np.maximum(joins.sum(axis=0), 1)
    return [part / members for part in total]


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
            return [
                w + at.learning_rate * (s - at.penalty * w + z)
                for w, s, z in zip(model, shift, draw(step), strict=True)
            ]

        return walk

    return out(paths(data, runs, at.steps, walker))
