"""Exact laws of noisy counts that are drawn with whole numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpaudit.arrays import Reals


def geosample_steps(epsilon: float) -> int:
    """The k of GeoSample as its programs compute it: with the natural logarithm.

    >>> geosample_steps(0.1)
    3
    """
    return math.ceil(math.log(2.0 / epsilon))


def geosample_law(k: int, n: int, count: int) -> Reals:
    """The probabilities of 0, ..., n for GeoSample (Balcer & Vadhan 2018, algorithm 4.8), each rounded once.

    >>> (geosample_law(3, 5, 1) * 111_537).round().tolist()
    [52488.0, 6561.0, 5832.0, 5184.0, 4608.0, 36864.0]
    """
    outcomes = (2 ** (k + 1) + 1) * (2**k + 1) ** (n - 1)
    upto = [2 ** (k * (count - z)) * (2**k + 1) ** (n - count + z) for z in range(count)]
    upto += [outcomes - 2 ** (k * (z - count + 1)) * (2**k + 1) ** (n - 1 - z + count) for z in range(count, n)]
    edges = [0, *upto, outcomes]
    return np.array([(high - low) / outcomes for low, high in itertools.pairwise(edges)])
