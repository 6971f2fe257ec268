"""Exact losses of Laplace noise whose centre, and perhaps scale, depends on the data."""

import math

import numpy as np

from dpaudit.base.arrays import Reals


def centred_loss(first: float, first_scale: float, second: float, second_scale: float) -> float:
    """The loss between Lap(first_scale) around one centre and Lap(second_scale) around another; a scale may be 0.

    Where the scales differ the wider noise wins in the tails without bound. Where they agree the log ratio of the
    densities is largest beyond both centres.

    >>> centred_loss(3.0, 0.5, 4.0, 0.5), centred_loss(3.0, 0.5, 3.0, 1.0)
    (2.0, inf)
    """
    if (first, first_scale) == (second, second_scale):
        return 0.0
    if first_scale != second_scale or first_scale == 0.0:
        return math.inf
    return abs(first - second) / first_scale


def clamped_loss(first: float, second: float, scale: float, low: float, high: float) -> float:
    """The loss between two answers whose noisy versions are clamped to [low, high]: that of the two ends.

    The log ratio is monotone from one end to the other, and an end holds the whole tail beyond it.

    >>> clamped_loss(10.0, 9.0, 1.0, 0.0, 10.0)
    1.0
    """
    above = [log_tail((high - answer) / scale) for answer in (first, second)]
    below = [log_tail((answer - low) / scale) for answer in (first, second)]
    return max(abs(above[0] - above[1]), abs(below[0] - below[1]))


def log_tail(distance: float) -> float:
    """ln Pr(Lap(1) > distance).

    >>> log_tail(3.0) == -3.0 - math.log(2.0)
    True
    """
    if distance >= 0.0:
        return -distance - math.log(2.0)
    return math.log1p(-math.exp(distance) / 2.0)


def vector_loss(first: Reals, second: Reals, scale: float) -> float:
    """The loss between vectors of answers that each get Laplace noise of their own: their l1 distance over the scale.

    >>> vector_loss(np.array([1.0, 2.0]), np.array([2.0, 0.0]), 6.0)
    0.5
    """
    return float(np.abs(np.subtract(first, second)).sum()) / scale
