"""Exact losses of counts that are rounded: every cell is drawn by itself, so their log ratios add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.losses.comparisons import below
from dpaudit.losses.discrete import log_ratios

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
