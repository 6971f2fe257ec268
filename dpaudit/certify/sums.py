"""Upper bounds on the probability of a staircase of outcomes under two binomials, at any number of runs.

x hits of n runs and y of m; the staircase holds (x, y) where y <= k(x), and k rises. Its probability is the sum over
x of Pr(x) Pr(y <= k(x)). The values of x, and those of y, are taken in blocks. A binomial law is log-concave, so a
block of w values about its middle weighs at most w Pr(middle) exp(s^2 (w^2 - 1) / 24), where s is the step of ln Pr
there: the sum of the geometric law that touches it. A block of one value is exact. What lies beyond the blocks is
added by the incomplete beta function.
"""

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
        found = np.empty(len(p))
        inner = np.flatnonzero((p < CERTAIN) & (q > 0.0))
        done = 0
        while done < len(inner):
            # rows far apart share no blocks: as many as reach over about the same ones
            share = p[inner[done]]
            far = share + SPREAD * reach * (share * (1.0 - share) / n) ** 0.5 + SPREAD / n
            count = int(np.searchsorted(p[inner[done : done + BATCH]], far, side="right"))
            rows = inner[done : done + max(1, count)]
            found[rows] = self._batch(p[rows], q[rows], reach)
            done += len(rows)
        # no hits of Q: all outcomes from the first block on that allows y = 0
        start = 0 if self.before >= 0 else int(self.x_blocks.edges[np.searchsorted(self.limits, 0)])
        found[q <= 0.0] = upper_tails(start, n, p[q <= 0.0])
        # all runs of P are hits: the last block holds them, or they are beyond all blocks
        sure = (p >= CERTAIN) & (q > 0.0)
        found[sure] = lower_tails(int(self.limits[-1]) if self.x_blocks.edges[-1] > n else m, m, q[sure])
        return found

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
        found = upper_tails(int(edges[stop]), n, p)
        if below >= 0 and edges[start] > 0:
            found += lower_tails(int(edges[start]) - 1, n, p) * lower_tails(below, m, q)
        if stop > start:
            part = slice(start, stop)
            found += np.einsum("ij,ij->i", self.x_blocks.weights(p, part), self._below(part, q, reach))
        return np.minimum(found, 1.0)

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
