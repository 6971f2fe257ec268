"""Cuts: an interval of q into cells that leave no point out, and whole numbers into blocks. How fine is here too.

Along the line p = R q + d the sum of Pr(x, y) over a set A of outcomes is bounded on a whole cell, in one of two ways.

Tilted. ln Pr(x, y) is concave in q, so it lies below its tangent at the centre c; the sum of exp(tangent) over A is
convex in q, so on a cell of half width h it is at most its value at one of the two ends. That is Pr(A) at the two
binomials tilted by h R / (p (1 - p)) and h / (c (1 - c)), times their moment generating functions: a factor of about
exp(h^2 I / 2), I the Fisher information about q.

Cornered, for a set that grows with x and shrinks with y: Pr(A) at the p of the upper end and the q of the lower one.
Its error is of the first order in h, but in units of the deviation of x / n - R y / m, so where R is large, and x
tells far more about q than y does, cells of this kind are fewer.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Integers, Reals

TILTED_WIDTH = 0.2  # of a cell times the root of the Fisher information: a factor of exp(0.2^2 / 8), 1.005
CORNERED_WIDTH = 0.006  # of a cell, in deviations of x / n - R y / m
MOST_TILTED = 1000  # cells; more than that are cornered
X_BLOCK = 0.0075  # of a deviation of x / n - R y / m, half of which is lost
LAW_BLOCK = 0.2  # of a deviation of x itself: what the geometric bound of a block bears
Y_BLOCK = 0.1  # the same for y
KNOTS = 800  # of the tables that arc lengths are read from; they decide how even a cut is, and nothing else


@dataclass(frozen=True, slots=True)
class Cells:
    """Points (p, q), rising, and factors: Pr(A) on the line is at most the largest factor * Pr(A | p, q)."""

    p: Reals
    q: Reals
    factor: Reals


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """p = ratio * q + offset for `low` <= q <= `high`, with p <= 1; `n` runs on side P and `m` on side Q."""

    ratio: float
    offset: float
    low: float
    high: float
    n: int
    m: int

    def p(self, q: Reals | float) -> Reals:
        """The probability of side P at each q, in the shape of q."""
        return np.minimum(1.0, self.ratio * np.asarray(q) + self.offset)

    def cells(self) -> Cells:
        """Cells over the whole of the line."""
        q = self._knots()
        across_p = 2.0 * math.sqrt(self.n) * np.diff(np.arcsin(np.sqrt(self.p(q))))
        across_q = 2.0 * math.sqrt(self.m) * np.diff(np.arcsin(np.sqrt(q)))
        edges = _even(q, np.hypot(across_p, across_q), TILTED_WIDTH)
        if len(edges) <= MOST_TILTED:
            return self._tilted(edges)
        middle = 0.5 * (q[1:] + q[:-1])
        edges = _even(q, self.ratio * np.diff(q) / self._deviation(self.p(middle), middle), CORNERED_WIDTH)
        return Cells(self.p(edges[1:]), edges[:-1], np.ones(len(edges) - 1))

    def x_edges(self, first: int, last: int) -> Integers:
        """Rising edges of blocks of x that hold first .. last: int64[blocks + 1], in hits."""

        def width(x: Reals) -> Reals:
            p = np.minimum(1.0, x / self.n)
            q = np.clip((p - self.offset) / self.ratio, self.low, self.high)
            return self.n * np.minimum(X_BLOCK * self._deviation(p, q), LAW_BLOCK * np.sqrt(p * (1.0 - p) / self.n))

        return spaced(first, last, width)

    def y_edges(self, first: int, last: int) -> Integers:
        """Rising edges of blocks of y that hold first .. last: int64[blocks + 1], in hits."""
        return spaced(first, last, lambda y: Y_BLOCK * np.sqrt(y * np.maximum(0.0, 1.0 - y / self.m)))

    def _tilted(self, edges: Reals) -> Cells:
        centre, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges) * (1.0 + 1e-12)
        p = self.p(centre)
        found = []
        for side in (-1.0, 1.0):
            by_p, by_q = side * half * self.ratio / (p * (1.0 - p)), side * half / (centre * (1.0 - centre))
            growth = self.n * _cumulant(p, by_p) + self.m * _cumulant(centre, by_q)
            found.append((_tilt(p, by_p), _tilt(centre, by_q), np.exp(growth)))
        p, q, factor = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(p)
        return Cells(p[order], q[order], factor[order])

    def _knots(self) -> Reals:
        turn = np.sin(np.linspace(0.0, math.pi / 2.0, KNOTS + 1)) ** 2  # closer at both ends, as deviations are
        return np.asarray(np.minimum(self.high, self.low + (self.high - self.low) * turn))

    def _deviation(self, p: Reals, q: Reals) -> Reals:
        return np.hypot(np.sqrt(p * (1.0 - p) / self.n), self.ratio * np.sqrt(q * (1.0 - q) / self.m))


def spaced(first: int, last: int, width: Callable[[Reals], Reals]) -> Integers:
    """Rising edges from `first` to last + 1, about width(value) apart, at least 1: int64[blocks + 1].

    `width` gets and gives float64[knots].

    >>> spaced(3, 6, lambda x: 0.0 * x).tolist()
    [3, 4, 5, 6, 7]
    """
    end = last + 1
    turn = np.sin(np.linspace(0.0, math.pi / 2.0, KNOTS + 1)) ** 2
    at = first + (end - first) * turn
    widths = np.maximum(1.0, width(at))
    steps = np.diff(at) / np.minimum(widths[1:], widths[:-1])
    if steps.sum() >= end - first - 1:
        return np.arange(first, end + 1)
    edges = np.unique(np.rint(_even(at, steps, 1.0)).astype(np.int64))
    edges[0], edges[-1] = first, end
    return edges


def _even(at: Reals, lengths: Reals, most: float) -> Reals:
    """Points from at[0] to at[-1], both exactly, no more than about `most` apart in the lengths between knots."""
    total = np.concatenate([[0.0], np.cumsum(lengths)])
    edges = np.interp(np.linspace(0.0, total[-1], max(1, math.ceil(total[-1] / most)) + 1), total, at)
    edges[0], edges[-1] = at[0], at[-1]
    return edges


def _tilt(share: Reals, by: Reals) -> Reals:
    """The success probability of a binomial whose law is tilted by exp(by * hits)."""
    up = share * np.exp(by)
    return np.asarray(up / (up + (1.0 - share)))


def _cumulant(share: Reals, by: Reals) -> Reals:
    """ln E exp(by (X - share)), X of one run."""
    return np.asarray(np.log1p(share * np.expm1(by)) - by * share)
