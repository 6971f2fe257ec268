"""Exact laws of noisy counts that are drawn with whole numbers."""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.losses.comparisons import below
from dpaudit.losses.discrete import log_ratios


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


_REACH = 30.0  # scales of noise beyond the larger count; further out no ratio changes


def random_rounding_loss(first: Sequence[int], second: Sequence[int], base: int) -> float:
    """Rounding at random to multiples of `base`, up with a probability of remainder / base.

    >>> random_rounding_loss([3], [2], 3), round(random_rounding_loss([2], [1], 3), 4)
    (inf, 0.6931)
    """
    multiples = 2 + max(*first, *second) // base

    def law(count: int) -> Reals:
        chances = np.zeros(multiples)
        quotient, remainder = divmod(count, base)
        chances[quotient : quotient + 2] = 1.0 - remainder / base, remainder / base
        return chances

    return _sum_over_cells(first, second, law)


def rounded_noise_loss(first: Sequence[int], second: Sequence[int], scale: float, base: int) -> float:
    """Lap(scale) added, then rounded to a multiple of `base` and cut off at 0.

    >>> rounded_noise_loss([3], [2], 1.0, 5)
    1.0
    """
    multiples = 2 + int((max(*first, *second) + _REACH * scale) / base)
    edges = base * np.arange(0.5, multiples)

    def law(count: int) -> Reals:
        # what lies above an edge comes from the lower tail, which keeps its digits
        return -np.diff(below(np.asarray(count - edges, float), scale), prepend=1.0, append=0.0)

    return _sum_over_cells(first, second, law)


def _sum_over_cells(first: Sequence[int], second: Sequence[int], law: Callable[[int], Reals]) -> float:
    cells = [(law(p), law(q)) for p, q in zip(first, second, strict=True) if p != q]
    one = sum(float(np.max(log_ratios(p, q))) for p, q in cells)
    other = sum(float(np.max(log_ratios(q, p))) for p, q in cells)
    return round(max(one, other), 12)
