"""Exact laws of a report of several bits: the probability of each pattern, listed in the order of binary numbers."""

from __future__ import annotations

import numpy as np

from dpaudit.arrays import Bits, Reals


def patterns(bits: int) -> Bits:
    """All patterns of this many bits, one a row; the first bit is the highest.

    >>> patterns(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    numbers = np.arange(2**bits)[:, None]
    return np.asarray(numbers >> np.arange(bits)[::-1] & 1, np.int8)


def independent(ones: Reals) -> Reals:
    """The law of independent bits, each 1 with its own probability.

    >>> independent(np.array([0.5, 0.25]))
    array([0.375, 0.125, 0.375, 0.125])
    """
    return np.asarray(np.prod(np.where(patterns(len(ones)) == 1, ones, 1.0 - ones), axis=1))


def one_hot(value: int, values: int) -> Bits:
    """The unary code of a value: a 1 in its place, 0 elsewhere.

    >>> one_hot(1, 3).tolist()
    [0, 1, 0]
    """
    return np.asarray(np.arange(values) == value, np.int8)
