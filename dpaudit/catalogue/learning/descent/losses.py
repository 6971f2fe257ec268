"""Exact losses of gradient descent on a canary pair: a small dataset with and without a record that is always clipped.

In units of the clip norm such a record moves every sum that it joins by one, whatever the model is by then.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.catalogue.learning.descent.steps import Data, Record, length
from dpaudit.errors import InvalidSpec
from dpaudit.losses.distribution import (
    ALONE,
    Mixture,
    mixture_epsilon,
    poisson,
    repeated_epsilon,
    step_losses,
    subsampled_gaussian_epsilon,
)
from dpaudit.losses.shuffled import two_batches
from dpaudit.losses.transcripts import Floats, transcript_epsilon

FAR = 8.0  # deviations of the noise within which a canary must stay clipped: it leaves with probability 1e-15


def canary(first: Data, second: Data) -> Record | None:
    """The record that one dataset has beside those of the other; None where they are equal.

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


def others(first: Data, second: Data) -> Data:
    """The records that both datasets have."""
    return min((first, second), key=len)


def own_features(record: Record, rest: Data) -> bool:
    """Whether a record has features only where all others have none, so that no other model weight feels it."""
    return not any(a and b for other in rest for a, b in zip(record[0], other[0], strict=True))


def need(kept: bool, what: str) -> None:
    """Raises `InvalidSpec` where the pair is none that the loss is known for."""
    if not kept:
        raise InvalidSpec(f"the exact loss is known for pairs where {what}")


# --- a linear model, all records in every step: mu --------------------------------------------------------------


def _drift(
    noise_multiplier: float, clip: float, learning_rate: float, steps: int, records: float, size: float
) -> float:
    """How far the model may get before the last step: `records` pull all the way, and the noise helps."""
    past = steps - 1
    return learning_rate * clip / size * (records * past + FAR * noise_multiplier * math.sqrt(past))


def gaussian_mu(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    *,
    own: bool = False,
    **_: Any,
) -> float:
    """sqrt(T) / noise multiplier: the record joins all T steps. `own`: it must have features of its own."""
    record = canary(first, second)
    if record is None:
        return 0.0
    rest = others(first, second)
    reach = length(record) * _drift(noise_multiplier, clip, learning_rate, steps, len(rest) + 1, size)
    need(length(record) * (abs(record[1]) - reach) >= clip, "the record is clipped in every step")
    need(not own or own_features(record, rest), "the record has features of its own")
    return math.sqrt(steps) / noise_multiplier


def noise_at_the_end_mu(first: Data, second: Data, noise_multiplier: float, steps: int, **given: Any) -> float:
    """T / noise multiplier: T steps of the record, one draw of noise."""
    return math.sqrt(steps) * gaussian_mu(first, second, noise_multiplier, steps=steps, own=True, **given)


def averaged_mu(first: Data, second: Data, noise_multiplier: float, steps: int, **given: Any) -> float:
    """The sum of a step's weights over the root of their squares, the weights T, T - 1, ..., 1."""
    all_steps = gaussian_mu(first, second, noise_multiplier, steps=steps, own=True, **given)
    weights = np.arange(1.0, steps + 1.0)
    return all_steps * float(weights.sum() / math.sqrt(steps * (weights @ weights)))


def replaced_mu(first: Data, second: Data, noise_multiplier: float, clip: float, **given: Any) -> float:
    """2 sqrt(T) / noise multiplier: one record leaves, and one that pulls the other way comes."""
    if first == second:
        return 0.0
    gone, come = ([record for record in one if record not in two] for one, two in ((first, second), (second, first)))
    need(len(gone) == len(come) == 1 and gone[0][0] == come[0][0], "one label is replaced")
    need(gone[0][1] * come[0][1] < 0.0, "the record and the one in its place pull in opposite directions")
    rest = [record for record in first if record in second]
    return 2.0 * gaussian_mu(rest, second, noise_multiplier, clip, own=True, **given)


def after_averaging_mu(
    first: Data, second: Data, noise_multiplier: float, clip: float, steps: int, size: float, **given: Any
) -> float:
    """2 size sqrt(T) / noise multiplier: the clipped average turns round, and the noise is for one record of `size`."""
    record, rest = canary(first, second), others(first, second)
    if record is None:
        return 0.0
    line = [each[0] for each in (record, *rest)]
    need(all(features == line[0] for features in line), "all records have the same features")
    reach = length(record) * _drift(noise_multiplier / size, clip, steps=steps, records=1, size=1.0, **given)
    before = [sum(each[1] for each in data) / len(data) for data in (rest, [*rest, record])]
    need(before[0] * before[1] < 0.0, "the record turns the average gradient round")
    need(length(record) * (min(map(abs, before)) - reach) >= clip, "the average is clipped in every step")
    return 2.0 * size * math.sqrt(steps) / noise_multiplier


def per_coordinate_mu(first: Data, second: Data, clip: float, **given: Any) -> float:
    """sqrt(d) times what a clipped gradient would tell: the record is clipped in each of its d coordinates."""
    record = canary(first, second)
    if record is None:
        return 0.0
    need(len({abs(feature) for feature in record[0]}) == 1, "the record's features are of one size")
    return math.sqrt(len(record[0])) * gaussian_mu(first, second, clip=clip * math.sqrt(len(record[0])), **given)


# --- a logistic model, Poisson batches: epsilon at delta --------------------------------------------------------


def _is_canary(first: Data, second: Data, *, silent: bool, steps: int, **given: Any) -> bool:
    """Whether there is a record at all; raises `InvalidSpec` where it is not clipped in every step or not alone.

    `silent`: the other records must have no features, and so no gradients.
    """
    record, rest = canary(first, second), others(first, second)
    if record is None:
        return False
    need(
        _clipped_within(record, _drift(steps=steps, records=1, **given), given["clip"]), "the record is always clipped"
    )
    need(own_features(record, rest), "the record has features of its own")
    need(not silent or not any(any(other[0]) for other in rest), "the other records have no features")
    return True


def _clipped_within(record: Record, drift: float, clip: float) -> bool:
    """Whether a logistic gradient is at least as long as the clip norm while the weights are at most `drift`."""
    size = length(record)
    return size / (1.0 + math.exp(size * drift)) >= clip


def all_iterates(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> float:
    """All steps are seen: T times a subsampled Gaussian."""
    given = {"noise_multiplier": noise_multiplier, "clip": clip, "learning_rate": learning_rate, "size": batch_size}
    if not _is_canary(first, second, silent=False, steps=steps, **given):
        return 0.0
    return subsampled_gaussian_epsilon(delta, noise_multiplier, rate, steps)


def last_iterate(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> float:
    """The sum of all steps is seen: a binomial number of shifts in the noise of T steps."""
    given = {"noise_multiplier": noise_multiplier, "clip": clip, "learning_rate": learning_rate, "size": batch_size}
    if not _is_canary(first, second, silent=False, steps=steps, **given):
        return 0.0
    joined = [math.comb(steps, k) * rate**k * (1.0 - rate) ** (steps - k) for k in range(steps + 1)]
    unit = noise_multiplier * math.sqrt(steps)
    return mixture_epsilon(delta, Mixture(tuple(k / unit for k in range(steps + 1)), tuple(joined)))


def one_batch(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> float:
    """The record joins every step or none."""
    given = {"noise_multiplier": noise_multiplier, "clip": clip, "learning_rate": learning_rate, "size": batch_size}
    if not _is_canary(first, second, silent=False, steps=steps, **given):
        return 0.0
    return mixture_epsilon(delta, poisson(rate, math.sqrt(steps) / noise_multiplier))


def per_batch(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> float:
    """Alone in the average, the record moves it by the clip norm: `batch_size` times what the noise is for."""
    record, rest = canary(first, second), others(first, second)
    if record is None:
        return 0.0
    drift = _drift(noise_multiplier / batch_size, clip, learning_rate, steps, 1, 1.0)
    need(_clipped_within(record, drift, clip * batch_size), "the average is clipped whenever the record is in it")
    need(not any(any(other[0]) for other in rest), "the other records have no features")
    return repeated_epsilon(delta, step_losses(poisson(rate, batch_size / noise_multiplier), ALONE, "above"), steps)


def realised_size(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> float:
    """Divided by the k others in its batch and itself, the record's share is 1 / (k + 1), not 1 / `batch_size`."""
    given = {"noise_multiplier": noise_multiplier / batch_size, "clip": clip, "learning_rate": learning_rate}
    if not _is_canary(first, second, silent=True, steps=steps, size=1.0, **given):
        return 0.0
    n = len(others(first, second))
    chances = [rate * math.comb(n, k) * rate**k * (1.0 - rate) ** (n - k) for k in range(n + 1)]
    shifts = [batch_size / (noise_multiplier * (k + 1)) for k in range(n + 1)]
    joined = Mixture((0.0, *shifts), (1.0 - rate, *chances))
    return repeated_epsilon(delta, step_losses(joined, ALONE, "above"), steps)


def shuffled(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> float:
    """In a full batch the record takes the place of one that pulls the other way: a shift of two clip norms."""
    record, rest = canary(first, second), others(first, second)
    if record is None:
        return 0.0
    drift = _drift(noise_multiplier, clip, learning_rate, steps, batch_size, batch_size)
    need(all(_clipped_within(each, drift, clip) for each in (record, *rest)), "all records are always clipped")
    need(all(other[0] == record[0] and other[1] != record[1] for other in rest), "all others pull the other way")
    need(len(rest) == 2 * batch_size and steps % 2 == 0, "an epoch has two batches, and all epochs are whole")
    used = 2 * batch_size / (len(rest) + 1)
    return repeated_epsilon(delta, two_batches(used, 2.0 / noise_multiplier), steps // 2)


@lru_cache(maxsize=64)
def _unclipped(size: float, unit: float, step: float, rate: float, steps: int, delta: float) -> float:
    def law(seen: list[Floats]) -> tuple[Floats, Floats]:
        weight = step * sum(seen, np.zeros(1))
        return np.asarray(rate), size / (1.0 + np.exp(np.minimum(size * weight, 700.0))) / unit

    return transcript_epsilon(delta, steps, law, size / unit)


def unclipped(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    rate: float,
    batch_size: float,
    delta: float,
) -> float:
    """The record's shift is its own gradient, which depends on the models seen so far: a sum over a grid of them."""
    record, rest = canary(first, second), others(first, second)
    if record is None:
        return 0.0
    need(own_features(record, rest), "the record has features of its own")
    unit = noise_multiplier * clip
    return _unclipped(length(record), unit, learning_rate * unit / batch_size, rate, steps, delta)
