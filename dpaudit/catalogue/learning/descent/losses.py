"""Exact losses of gradient descent on a canary pair: a small dataset with and without a record that is always clipped.

In units of the clip norm such a record moves every sum that it joins by one, whatever the model is by then.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, wraps

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.learning.descent.programs import Data, Descent, Record, length
from dpaudit.errors import InvalidSpec
from dpaudit.losses.composing import transcript_epsilon
from dpaudit.losses.distribution import (
    ALONE,
    Mixture,
    mixture_epsilon,
    poisson,
    repeated_epsilon,
    step_losses,
    subsampled_gaussian_epsilon,
    two_batches,
)

_SAME = 1e-9  # of the size of what is compared: closer than this is equal
FAR = 8.0  # deviations of the noise within which a canary must stay clipped: it leaves with probability 1e-15


def canary(first: Data, second: Data) -> Record | None:
    """The record that only one of the two datasets has; None where they are equal.

    >>> canary([[[1.0], 0.0]], [[[1.0], 0.0], [[2.0], 5.0]])
    [[2.0], 5.0]
    """
    small, large = sorted((list(first), list(second)), key=len)
    for record in small:
        if record not in large:
            raise InvalidSpec("the exact loss is known for a dataset with and without one record")
        large.remove(record)
    if len(large) > 1:
        raise InvalidSpec("the exact loss is known for a dataset with and without one record")
    return large[0] if large else None


def with_and_without(loss: Callable[..., float]) -> Callable[..., float]:
    """The loss of a pair, from `loss(record, rest, at)` of its canary and the other records; 0 without a canary."""

    @wraps(loss)
    def of_pair(first: Data, second: Data, at: Descent, **given: bool) -> float:
        record = canary(first, second)
        return 0.0 if record is None else loss(record, min((first, second), key=len), at, **given)

    return of_pair


def own_features(record: Record, rest: Data) -> bool:
    """Whether a record has features only where all others have none, so that no other model weight feels it."""
    return not any(a and b for other in rest for a, b in zip(record[0], other[0], strict=True))


def need(condition: bool, what: str) -> None:
    """Raises `InvalidSpec` where the pair is none that the loss is known for."""
    if not condition:
        raise InvalidSpec(f"the exact loss is known for pairs where {what}")


def drift(at: Descent, records: float) -> float:
    """How far the model may get before the last step: `records` pull all the way, and the noise helps."""
    past = at.steps - 1
    return at.learning_rate * at.clip / at.size * (records * past + FAR * at.noise_multiplier * math.sqrt(past))


@with_and_without
def gaussian_mu(record: Record, rest: Data, at: Descent, *, own: bool = False) -> float:
    """sqrt(T) / noise multiplier: the record joins all T steps. `own`: it must have features of its own."""
    reach = length(record) * drift(at, len(rest) + 1)
    need(length(record) * (abs(record[1]) - reach) >= at.clip, "the record is clipped in every step")
    need(not own or own_features(record, rest), "the record has features of its own")
    return math.sqrt(at.steps) / at.noise_multiplier


def averaged_mu(first: Data, second: Data, at: Descent) -> float:
    """The sum of a step's weights over the root of their squares, the weights T, T - 1, ..., 1."""
    weights = np.arange(1.0, at.steps + 1.0)
    all_steps = gaussian_mu(first, second, at, own=True)
    return all_steps * float(weights.sum() / math.sqrt(at.steps * (weights @ weights)))


def replaced_mu(first: Data, second: Data, at: Descent) -> float:
    """2 sqrt(T) / noise multiplier: one record leaves, and one that pulls the other way comes."""
    if first == second:
        return 0.0
    gone, come = ([record for record in one if record not in two] for one, two in ((first, second), (second, first)))
    need(len(gone) == len(come) == 1 and gone[0][0] == come[0][0], "one label is replaced")
    need(gone[0][1] * come[0][1] < 0.0, "the record and the one in its place pull in opposite directions")
    return 2.0 * gaussian_mu([record for record in first if record in second], second, at, own=True)


@with_and_without
def after_averaging_mu(record: Record, rest: Data, at: Descent) -> float:
    """2 size sqrt(T) / noise multiplier: the clipped average turns round, and the noise is for one record of `size`."""
    line = [each[0] for each in (record, *rest)]
    need(all(features == line[0] for features in line), "all records have the same features")
    reach = length(record) * drift(replace(at, noise_multiplier=at.noise_multiplier / at.size, size=1.0), 1)
    before = [sum(each[1] for each in data) / len(data) for data in (rest, [*rest, record])]
    need(before[0] * before[1] < 0.0, "the record turns the average gradient round")
    need(length(record) * (min(map(abs, before)) - reach) >= at.clip, "the average is clipped in every step")
    return 2.0 * at.size * math.sqrt(at.steps) / at.noise_multiplier


@with_and_without
def per_coordinate_mu(record: Record, rest: Data, at: Descent) -> float:
    """sqrt(d) times what a clipped gradient would tell: the record is clipped in each of its d coordinates."""
    need(len({abs(feature) for feature in record[0]}) == 1, "the record's features are of one size")
    wide = math.sqrt(len(record[0]))
    return wide * gaussian_mu([*rest, record], rest, replace(at, clip=at.clip * wide))


# --- something is released without noise: mostly infinite -----------------------------------------------------------


def _unclipped_law(data: Data, step: float, spread: float, steps: int) -> tuple[Reals, Reals]:
    """Mean and covariance of the last model, which is normal: every step is linear in the model before it."""
    x, y = np.array([record[0] for record in data], float), np.array([record[1] for record in data], float)
    one = np.eye(x.shape[1])
    turn, mean, covariance = one - step * (x.T @ x), np.zeros(x.shape[1]), 0.0 * one
    for _ in range(steps):
        mean = turn @ mean + step * (x.T @ y)
        covariance = turn @ covariance @ turn.T + spread**2 * one
    return mean, covariance


def unclipped_mu(first: Data, second: Data, at: Descent) -> float:
    """Infinite where the models scatter differently, as they do from the second step on: no mu covers two widths.

    After a single step the record's gradient is a shift, as long as its error is large.
    """
    step = at.learning_rate / at.size
    laws = [_unclipped_law(data, step, step * at.noise_multiplier * at.clip, at.steps) for data in (first, second)]
    (mean, covariance), (other_mean, other_covariance) = laws
    if np.abs(covariance - other_covariance).max() > _SAME * max(
        np.abs(covariance).max(), np.abs(other_covariance).max()
    ):
        return math.inf
    moved = mean - other_mean
    return math.sqrt(float(moved @ np.linalg.solve(covariance, moved)))


def _of_one_step(record: Record, at: Descent) -> float:
    return float(min(at.clip, length(record) * abs(record[1]))) / (at.noise_multiplier * at.clip)


@with_and_without
def first_step_mu(record: Record, rest: Data, at: Descent) -> float:
    """Infinite from the second step on, which is exact; the first is a step like any other."""
    if not any(record[0]):
        return 0.0
    return math.inf if at.steps > 1 else _of_one_step(record, at)


@with_and_without
def one_noise_mu(record: Record, rest: Data, at: Descent) -> float:
    """Infinite where the record's gradient may change: a record that is always clipped only shifts the one noise."""
    if not any(record[0]):
        return 0.0
    past = at.steps - 1
    pulls = len(rest) + 1 + FAR * at.noise_multiplier
    reach = length(record) * at.learning_rate * at.clip / at.size * pulls * past
    if past and length(record) * (abs(record[1]) - reach) < at.clip:
        return math.inf
    return _of_one_step(record, at)


def seeded_mu(first: Data, second: Data, at: Descent) -> float:
    """Infinite, unless the datasets are the same: with one record more all seeds are others."""
    return 0.0 if canary(first, second) is None else math.inf


@with_and_without
def stopping_mu(record: Record, rest: Data, at: Descent) -> float:
    """Infinite where the record alone keeps the descent going, and the others would let it stop."""
    if at.steps == 1:
        return _of_one_step(record, at)
    keeps = not any(record[0]) and abs(record[1]) >= at.tolerance * (len(rest) + 1)
    need(keeps, "the record's error keeps it from ending")
    x, y = np.array([each[0] for each in rest], float), np.array([each[1] for each in rest], float)
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    need(float(np.abs(x @ best - y).mean()) < at.tolerance, "the other records let it end")
    return math.inf


# --- harmless changes: the loss of all steps, with the drift that they allow ----------------------------------------


def momentum_mu(first: Data, second: Data, at: Descent) -> float:
    """The models determine the noisy gradients; in the end a gradient has moved the model 1 + m + m^2 + ... times."""
    furthest = at.learning_rate * sum(at.momentum**k for k in range(at.steps))
    return gaussian_mu(first, second, replace(at, learning_rate=furthest))


def regularised_mu(first: Data, second: Data, at: Descent) -> float:
    """The same; the regulariser shrinks the model, unless it overshoots."""
    furthest = at.learning_rate * max(1.0, abs(1.0 - at.learning_rate * at.penalty)) ** (at.steps - 1)
    return gaussian_mu(first, second, replace(at, learning_rate=furthest))


def _need_canary(record: Record, rest: Data, at: Descent, *, silent: bool = False) -> None:
    """Raises `InvalidSpec` where the record is not clipped in every step or not alone with its features.

    `silent`: the other records must have no features, and so no gradients.
    """
    need(clipped_within(record, drift(at, 1), at.clip), "the record is always clipped")
    need(own_features(record, rest), "the record has features of its own")
    need(not silent or not any(any(other[0]) for other in rest), "the other records have no features")


def clipped_within(record: Record, drift: float, clip: float) -> bool:
    """Whether a logistic gradient is at least as long as the clip norm while the weights are at most `drift`."""
    size = length(record)
    return size / (1.0 + math.exp(size * drift)) >= clip


@with_and_without
def all_iterates(record: Record, rest: Data, at: Descent) -> float:
    """All steps are seen: T times a subsampled Gaussian."""
    _need_canary(record, rest, at)
    return subsampled_gaussian_epsilon(at.delta, at.noise_multiplier, at.rate, at.steps)


@with_and_without
def last_iterate(record: Record, rest: Data, at: Descent) -> float:
    """The sum of all steps is seen: a binomial number of shifts in the noise of T steps."""
    _need_canary(record, rest, at)
    counts = range(at.steps + 1)
    joined = [math.comb(at.steps, k) * at.rate**k * (1.0 - at.rate) ** (at.steps - k) for k in counts]
    unit = at.noise_multiplier * math.sqrt(at.steps)
    return mixture_epsilon(at.delta, Mixture(tuple(k / unit for k in counts), tuple(joined)))


@with_and_without
def one_batch(record: Record, rest: Data, at: Descent) -> float:
    """The record joins every step or none."""
    _need_canary(record, rest, at)
    return mixture_epsilon(at.delta, poisson(at.rate, math.sqrt(at.steps) / at.noise_multiplier))


@with_and_without
def per_batch(record: Record, rest: Data, at: Descent) -> float:
    """Alone in the average, the record moves it by the clip norm: `batch_size` times what the noise is for."""
    reach = drift(replace(at, noise_multiplier=at.noise_multiplier / at.size, size=1.0), 1)
    need(clipped_within(record, reach, at.clip * at.size), "the average is clipped whenever the record is in it")
    need(not any(any(other[0]) for other in rest), "the other records have no features")
    step = step_losses(poisson(at.rate, at.size / at.noise_multiplier), ALONE, "above")
    return repeated_epsilon(at.delta, step, at.steps)


@with_and_without
def realised_size(record: Record, rest: Data, at: Descent) -> float:
    """Divided by the k others in its batch and itself, the record's share is 1 / (k + 1), not 1 / `batch_size`."""
    averaged = replace(at, noise_multiplier=at.noise_multiplier / at.size, size=1.0)
    _need_canary(record, rest, averaged, silent=True)
    n = len(rest)
    chances = [at.rate * math.comb(n, k) * at.rate**k * (1.0 - at.rate) ** (n - k) for k in range(n + 1)]
    shifts = [at.size / (at.noise_multiplier * (k + 1)) for k in range(n + 1)]
    joined = Mixture((0.0, *shifts), (1.0 - at.rate, *chances))
    return repeated_epsilon(at.delta, step_losses(joined, ALONE, "above"), at.steps)


@with_and_without
def shuffled(record: Record, rest: Data, at: Descent) -> float:
    """In a full batch the record takes the place of one that pulls the other way: a shift of two clip norms."""
    reach = drift(at, at.size)
    need(all(clipped_within(each, reach, at.clip) for each in (record, *rest)), "all records are always clipped")
    need(all(other[0] == record[0] and other[1] != record[1] for other in rest), "all others pull the other way")
    need(len(rest) == 2 * at.size and at.steps % 2 == 0, "an epoch has two batches, and all epochs are whole")
    used = 2 * at.size / (len(rest) + 1)
    return repeated_epsilon(at.delta, two_batches(used, 2.0 / at.noise_multiplier), at.steps // 2)


@lru_cache(maxsize=64)
def _unclipped(size: float, unit: float, step: float, rate: float, steps: int, delta: float) -> float:
    def law(seen: list[Reals]) -> tuple[Reals, Reals]:
        weight = step * sum(seen, np.zeros(1))
        return np.asarray(rate), size / (1.0 + np.exp(np.minimum(size * weight, 700.0))) / unit

    return transcript_epsilon(delta, steps, law, size / unit)


@with_and_without
def unclipped(record: Record, rest: Data, at: Descent) -> float:
    """The record's shift is its own gradient, which depends on the models seen so far: a sum over a grid of them."""
    need(own_features(record, rest), "the record has features of its own")
    unit = at.noise_multiplier * at.clip
    return _unclipped(length(record), unit, at.learning_rate * unit / at.size, at.rate, at.steps, at.delta)
