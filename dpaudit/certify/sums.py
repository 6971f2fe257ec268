"""Upper bounds on the probability of a staircase of outcomes, at any number of runs: at a point, and along a line.

x hits of n runs and y of m; the staircase holds (x, y) where y <= k(x), and k rises. Its probability is the sum over
x of Pr(x) Pr(y <= k(x)). The values of x, and those of y, are taken in blocks. A binomial law is log-concave, so a
block of w values about its middle weighs at most w Pr(middle) exp(s^2 (w^2 - 1) / 24), where s is the step of ln Pr
there: the sum of the geometric law that touches it. A block of one value is exact. What lies beyond the blocks is
added by the incomplete beta function.

Along the line p = R q + d an interval of q is cut into cells that leave no point out. On a whole cell the sum of
Pr(x, y) over a set A of outcomes is bounded in one of two ways.

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
from dpaudit.certify.binomial import SLACK

BATCH = 32  # rows evaluated together: their tables stay in the cache
SPREAD = 16.0  # times the reach of a row: how far apart they may be
CERTAIN = 1.0 - 1e-15  # a larger p is taken as 1
SERIES_FROM = 20.0  # Stirling's series has an error below 1e-14 from here on


@dataclass(frozen=True, slots=True)
class Blocks:
    """Whole numbers 0 .. `runs` in blocks, and a bound on ln of a binomial weight of each.

    Block j holds edges[j] .. edges[j + 1] - 1. At log odds t the bound is
    constant[j] + linear[j] t + square[j] t^2 + runs ln(1 - p).
    """

    runs: int
    edges: Integers
    constant: Reals
    linear: Reals
    square: Reals | None

    @classmethod
    def between(cls, edges: Integers, runs: int) -> "Blocks":
        """The blocks between rising edges, int64[blocks + 1] in hits, the last at most runs + 1."""
        first, last = edges[:-1], edges[1:] - 1
        centre = (first + last) // 2
        c, middle = centre.astype(np.float64), np.asarray(0.5 * (first + last), dtype=np.float64)
        constant = _log_choices(c, float(runs))
        if np.all(last == first):
            return cls(runs, edges, constant, middle, None)
        width = (last - first + 1).astype(np.float64)
        bend = (width * width - 1.0) / 24.0
        step = np.log(np.where(bend > 0.0, (runs - c) / (c + 1.0), 1.0))  # ln Pr(c + 1) - ln Pr(c), but for the odds
        more: Reals = np.log(width) + (middle - c) * step + bend * step * step
        return cls(runs, edges, constant + more, np.asarray(middle + 2.0 * bend * step, dtype=np.float64), bend)

    def weights(self, share: Reals, part: slice) -> Reals:
        """Upper bounds on the weights of some blocks, a row for each probability strictly between 0 and 1.

        float64[points] in, float64[points, blocks of `part`] out.
        """
        log_no = np.log1p(-share)
        odds = (np.log(share) - log_no)[:, None]
        powers = odds * self.linear[part]
        powers += self.constant[part]
        powers += (self.runs * log_no)[:, None]
        if self.square is not None:
            powers += odds * odds * self.square[part]
        return np.exp(powers, out=powers)


@dataclass(frozen=True, slots=True)
class Staircase:
    """The set y <= k(x): `limits[j]` is the largest k in block j of `x_blocks`, `before` that below all blocks.

    What lies below the first of `y_blocks` is summed by the incomplete beta function; `places[j]` counts the blocks of
    y up to `limits[j]`.
    """

    x_blocks: Blocks
    y_blocks: Blocks
    limits: Integers
    places: Integers
    before: int

    @classmethod
    def of(cls, x_blocks: Blocks, y_edges: Integers, limits: Integers, before: int, runs_q: int) -> "Staircase":
        """`limits` int64[blocks of x], in hits of side Q, rise; so do `y_edges`, int64[blocks of y + 1].

        These hold limits + 1 wherever that lies between the first and the last of them.
        """
        places = np.searchsorted(y_edges, limits + 1, side="left")
        return cls(x_blocks, Blocks.between(y_edges, runs_q), limits, places, before)

    def probabilities(self, p: Reals, q: Reals, reach: float) -> Reals:
        """Upper bounds at the points (p, q), rising in p: float64[points] each, and the same out.

        `reach` standard deviations are summed block by block.
        """
        n, m = self.x_blocks.runs, self.y_blocks.runs
        bounds = np.empty(len(p))
        inner = np.flatnonzero((p < CERTAIN) & (q > 0.0))
        done = 0
        while done < len(inner):
            # rows far apart share no blocks: take those that need about the same ones
            share = p[inner[done]]
            far = share + SPREAD * reach * (share * (1.0 - share) / n) ** 0.5 + SPREAD / n
            count = int(np.searchsorted(p[inner[done : done + BATCH]], far, side="right"))
            rows = inner[done : done + max(1, count)]
            bounds[rows] = self._batch(p[rows], q[rows], reach)
            done += len(rows)
        # no hits of Q: all outcomes from the first block on that allows y = 0
        start = 0 if self.before >= 0 else int(self.x_blocks.edges[np.searchsorted(self.limits, 0)])
        bounds[q <= 0.0] = upper_tails(start, n, p[q <= 0.0])
        # all runs of P are hits: the last block holds them, or they are beyond all blocks
        sure = (p >= CERTAIN) & (q > 0.0)
        bounds[sure] = lower_tails(int(self.limits[-1]) if self.x_blocks.edges[-1] > n else m, m, q[sure])
        return bounds

    def _batch(self, p: Reals, q: Reals, reach: float) -> Reals:
        n, m, edges = self.x_blocks.runs, self.y_blocks.runs, self.x_blocks.edges
        low, high = (window(n, share, reach)[side] for side, share in enumerate((p.min(), p.max())))
        # blocks whose limit leaves Q no chance are closed together with those too low for P
        rare = window(m, float(q.min()), reach)[0]
        count = len(self.limits)
        start = min(
            count, max(0, int(np.searchsorted(edges, low, "right")) - 1, int(np.searchsorted(self.limits, rare)))
        )
        stop = min(count, max(start, int(np.searchsorted(edges, high))))
        below = self.before if start == 0 else int(self.limits[start - 1])
        bounds = upper_tails(int(edges[stop]), n, p)
        if below >= 0 and edges[start] > 0:
            bounds += lower_tails(int(edges[start]) - 1, n, p) * lower_tails(below, m, q)
        if stop > start:
            part = slice(start, stop)
            bounds += np.einsum("ij,ij->i", self.x_blocks.weights(p, part), self._below(part, q, reach))
        return np.minimum(bounds, 1.0)

    def _below(self, part: slice, q: Reals, reach: float) -> Reals:
        """Pr(y <= limit) for each row and each block of x."""
        edges, places = self.y_blocks.edges, self.places[part]
        top = window(self.y_blocks.runs, float(q.max()), reach)[1]
        end = len(edges) - 1
        first = min(int(places[0]), end)
        last = min(max(first, int(np.searchsorted(edges, top))), max(first, int(places[-1])), end)
        sums = np.empty((len(q), last - first + 2))
        sums[:, 0] = lower_tails(int(edges[first]) - 1, self.y_blocks.runs, q)
        if last > first:
            sums[:, 1:-1] = self.y_blocks.weights(q, slice(first, last))
            np.cumsum(sums[:, :-1], axis=1, out=sums[:, :-1])
        np.minimum(sums, 1.0, out=sums)
        sums[:, -1] = 1.0  # beyond the blocks of these rows
        return np.take(sums, np.minimum(places, last + 1) - first, axis=1)


def window(runs: int, share: float, reach: float) -> tuple[float, float]:
    """Where a binomial law lies but for about a normal tail beyond `reach`: a guide, nothing rests on it."""
    middle, spread = runs * share, reach * (runs * share * (1.0 - share)) ** 0.5
    return middle - spread, middle + spread + 0.25 * reach * reach + 2.0


def upper_tails(hits: int, runs: int, share: Reals) -> Reals:
    """Pr(Bin(runs, share) >= hits), rounded up, in the shape of `share`."""
    from scipy.special import betainc

    if hits <= 0:
        return np.ones(len(share))
    if hits > runs:
        return np.zeros(len(share))
    return np.minimum(1.0, betainc(hits, runs - hits + 1, share) * (1.0 + SLACK))


def lower_tails(hits: int, runs: int, share: Reals) -> Reals:
    """Pr(Bin(runs, share) <= hits), rounded up, in the shape of `share`."""
    from scipy.special import betaincc

    if hits < 0:
        return np.zeros(len(share))
    if hits >= runs:
        return np.ones(len(share))
    return np.minimum(1.0, betaincc(hits + 1, runs - hits, share) * (1.0 + SLACK))


def rounding(runs: int) -> float:
    """More than the relative error of a weight: the logarithms that cancel in it are of the size of `runs`."""
    return 1e-9 + 4e-15 * runs


def _log_choices(k: Reals, runs: float) -> Reals:
    """ln of the binomial coefficient, from terms no larger than its own size."""
    rest = runs - k
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(k > 0.0, k * np.log(k / runs), 0.0) + np.where(rest > 0.0, rest * np.log(rest / runs), 0.0)
    return np.asarray(_log_gap(np.array([runs]))[0] - _log_gap(k) - _log_gap(rest) - entropy)


def _log_gap(k: Reals) -> Reals:
    """ln k! - (k ln k - k); 0 at 0."""
    from scipy.special import gammaln

    large = np.maximum(k, SERIES_FROM)
    inverse = 1.0 / (large * large)
    series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / large
    small = np.minimum(np.maximum(k, 1.0), SERIES_FROM)
    direct = np.where(k > 0.0, gammaln(small + 1.0) - small * np.log(small) + small, 0.0)
    return np.asarray(np.where(k >= SERIES_FROM, 0.5 * np.log(2.0 * np.pi * large) + series, direct))


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
        tilts = []
        for side in (-1.0, 1.0):
            by_p, by_q = side * half * self.ratio / (p * (1.0 - p)), side * half / (centre * (1.0 - centre))
            growth = self.n * _cumulant(p, by_p) + self.m * _cumulant(centre, by_q)
            tilts.append((_tilt(p, by_p), _tilt(centre, by_q), np.exp(growth)))
        p, q, factor = (np.concatenate(parts) for parts in zip(*tilts, strict=True))
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
