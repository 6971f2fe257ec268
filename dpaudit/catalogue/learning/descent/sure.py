"""Exact losses of gradient descent where something is told without noise: mostly infinite, and where they are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpaudit.catalogue.learning.descent.losses import FAR, canary, gaussian_mu, need, others
from dpaudit.catalogue.learning.descent.steps import Data, Floats, length

_SAME = 1e-9  # of the size of what is compared: closer than this is equal


def _unclipped_law(data: Data, step: float, spread: float, steps: int) -> tuple[Floats, Floats]:
    """Mean and covariance of the last model, which is normal: every step is linear in the model before it."""
    x, y = np.array([record[0] for record in data], float), np.array([record[1] for record in data], float)
    one = np.eye(x.shape[1])
    turn, mean, covariance = one - step * (x.T @ x), np.zeros(x.shape[1]), 0.0 * one
    for _ in range(steps):
        mean = turn @ mean + step * (x.T @ y)
        covariance = turn @ covariance @ turn.T + spread**2 * one
    return mean, covariance


def _differ(one: Floats, other: Floats) -> bool:
    return bool(np.abs(one - other).max() > _SAME * max(np.abs(one).max(), np.abs(other).max()))


def no_noise_mu(
    first: Data, second: Data, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> float:
    """Infinite, unless both datasets lead to the same model."""
    one, other = (_unclipped_law(data, learning_rate / size, 0.0, steps)[0] for data in (first, second))
    return math.inf if _differ(one, other) else 0.0


def unclipped_mu(
    first: Data, second: Data, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> float:
    """Infinite where the models scatter differently, as they do from the second step on: no mu covers two widths.

    After a single step the record's gradient is a shift, as long as its error is large.
    """
    step = learning_rate / size
    laws = [_unclipped_law(data, step, step * noise_multiplier * clip, steps) for data in (first, second)]
    (mean, covariance), (other_mean, other_covariance) = laws
    if _differ(covariance, other_covariance):
        return math.inf
    moved = mean - other_mean
    return math.sqrt(float(moved @ np.linalg.solve(covariance, moved)))


def _first_step_mu(features: float, label: float, noise_multiplier: float, clip: float) -> float:
    return min(clip, features * abs(label)) / (noise_multiplier * clip)


def first_step_mu(first: Data, second: Data, noise_multiplier: float, clip: float, steps: int, **_: Any) -> float:
    """Infinite from the second step on, which is exact; the first is a step like any other."""
    record = canary(first, second)
    if record is None or not any(record[0]):
        return 0.0
    return math.inf if steps > 1 else _first_step_mu(length(record), record[1], noise_multiplier, clip)


def one_noise_mu(
    first: Data,
    second: Data,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
) -> float:
    """Infinite where the record's gradient may change: a record that is always clipped only shifts the one noise."""
    record = canary(first, second)
    if record is None or not any(record[0]):
        return 0.0
    past = steps - 1
    pulls = len(others(first, second)) + 1 + FAR * noise_multiplier
    reach = length(record) * learning_rate * clip / size * pulls * past
    if past and length(record) * (abs(record[1]) - reach) < clip:
        return math.inf
    return _first_step_mu(length(record), record[1], noise_multiplier, clip)


def seeded_mu(first: Data, second: Data, **_: Any) -> float:
    """Infinite, unless the datasets are the same: with one record more all seeds are others."""
    return 0.0 if canary(first, second) is None else math.inf


def stopping_mu(
    first: Data, second: Data, noise_multiplier: float, clip: float, steps: int, tolerance: float, **_: Any
) -> float:
    """Infinite where the record alone keeps the descent going, and the others would let it stop."""
    record, rest = canary(first, second), others(first, second)
    if record is None:
        return 0.0
    if steps == 1:
        return _first_step_mu(length(record), record[1], noise_multiplier, clip)
    need(
        not any(record[0]) and abs(record[1]) >= tolerance * (len(rest) + 1), "the record's error keeps it from ending"
    )
    x, y = np.array([each[0] for each in rest], float), np.array([each[1] for each in rest], float)
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    need(float(np.abs(x @ best - y).mean()) < tolerance, "the other records let it end")
    return math.inf


# --- harmless changes: the loss of all steps, with the drift that they allow ---------------------------------------


def momentum_mu(first: Data, second: Data, learning_rate: float, steps: int, momentum: float, **given: Any) -> float:
    """The models determine the noisy gradients; in the end a gradient has moved the model 1 + m + m^2 + ... times."""
    furthest = learning_rate * sum(momentum**k for k in range(steps))
    return gaussian_mu(first, second, learning_rate=furthest, steps=steps, **given)


def regularised_mu(first: Data, second: Data, learning_rate: float, steps: int, penalty: float, **given: Any) -> float:
    """The same; the regulariser shrinks the model, unless it overshoots."""
    furthest = learning_rate * max(1.0, abs(1.0 - learning_rate * penalty)) ** (steps - 1)
    return gaussian_mu(first, second, learning_rate=furthest, steps=steps, **given)
