"""Exact losses of one epoch of two shuffled batches: a record is in one of them, or was left over.

With noise of standard deviation 1 the likelihood ratio of an epoch is 1 - c + c (r1 + r2) / 2, where r is the ratio
of a batch that holds the record, and c the chance that it is in a batch at all.
"""

import math

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.losses.distribution import REACH, WIDTH, Losses, from_cells

_NODES = np.linspace(-40.0, 24.0, 385)  # u, for a distance of ln(1 + e^u) from the end: there it is e^u


def two_batches(used: float, shift: float, width: float = 2.0 * WIDTH) -> tuple[Losses, Losses]:
    """The losses of an epoch, from above, with the record and back; it is in a batch with probability `used`.

    >>> losses, _ = two_batches(1.0, 1.0)
    >>> round(float(losses.masses.sum()) + losses.infinite, 6)
    1.0
    """
    highest = math.log1p(used * math.expm1((REACH + shift) * shift - shift**2 / 2.0))
    lowest = math.log1p(-used) if used < 1.0 else -REACH * shift - shift**2 / 2.0
    values = lowest + width * np.arange(int((highest - lowest) / width) + 2)
    sums = np.maximum(2.0 * np.expm1(values) / used + 2.0, 0.0)  # r1 + r2 at the edges
    alone = _below(sums, shift, 0.0)
    joined = (1.0 - used) * alone + used * _below(sums, shift, shift)
    p, q = (np.maximum(np.diff(below), 0.0) for below in (joined, alone))
    return from_cells(values.astype(np.float64), p, q, "above")


def _below(sums: Reals, shift: float, centre: float) -> Reals:
    """The probability that r1 + r2 is at most each of these, with the noise of the first batch around `centre`.

    An integral over the first output, which ends where r1 alone is the whole sum.
    """
    from scipy.special import ndtr

    with np.errstate(divide="ignore"):
        end = np.log(sums) / shift + shift / 2.0
    distance = np.log1p(np.exp(_NODES))
    step = float(_NODES[1] - _NODES[0]) * -np.expm1(-distance) / np.sqrt(2.0 * np.pi)
    total = np.zeros(len(sums))
    for away, weight in zip(distance, step, strict=True):
        rest = np.log(-np.expm1(-shift * away)) / shift  # of the second output, below the end
        total += weight * np.exp(-((end - away - centre) ** 2) / 2.0) * ndtr(end + rest)
    return total
