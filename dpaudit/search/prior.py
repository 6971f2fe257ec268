"""What the counts of all cells say about each of them: empirical Bayes over log ratios (Robbins 1956).

Given the hits that both sides have in a cell, the hits of P are binomial; the log odds of the cells are drawn from one
law, which their counts show: its likeliest one on a grid (Kiefer & Wolfowitz 1956), by steps of EM (Laird 1978). Among
a hundred cells of ratio 1 the luckiest is taken for one of them; one that is too far out to be, is believed nearly
whole. No cell is its own witness: its prior is learned from cells of other folds, and one cell's worth
of a law that is flat in the logarithm of how far a log ratio is from none.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Bools, Reals

POINTS, NEAREST, FARTHEST = 121, 0.02, 16.0  # of the grid: log odds, about even up to the first, geometric to the last
FOLDS = 4  # of the cells
EVEN = 0.5  # of the law that EM starts from says that nothing is told
UNLIKELY = 1e-12  # beside the likeliest place of a cell, so that it is in no other
STEPS, KINDS = 40, 256  # of EM, which never come to an end and need not; kinds of cells that teach it, of all ratios


@dataclass(frozen=True, slots=True)
class Believed:
    """Of each cell: P's share of its hits, and the variance of that share; float64[cells] both."""

    share: Reals
    variance: Reals

    def mirrored(self) -> "Believed":
        """The same for the other side's share."""
        return Believed(1.0 - self.share, self.variance)


def believed(x: Reals, y: Reals, alone: float = 0.3, single: Bools | None = None) -> Believed:
    """The posterior of each cell with these hits of two sides, float64[cells]; all hits together say what is even.

    The flat law counts for `alone` cells: less where more features than this one could show a cell like no other. Where
    some cells are `single` values and others are not, each kind is believed by what its own kind shows.

    >>> made = believed(np.array([300.0, 90.0]), np.array([100.0, 310.0]))
    >>> made.share.round(1).tolist()
    [0.7, 0.2]
    """
    even = math.log((x.sum() + 1.0) / (y.sum() + 1.0))
    mean, variance = np.zeros(len(x)), np.zeros(len(x))
    kind = np.zeros(len(x), np.bool_) if single is None else single
    for cells in (kind, ~kind):
        if cells.any():
            mean[cells], variance[cells] = _posterior(x[cells], y[cells], even, alone)
    hits = x + y  # and all cells together have the hits that they have
    up, down = (x.sum() + 0.5) / ((hits * mean).sum() + 0.5), (y.sum() + 0.5) / ((hits * (1.0 - mean)).sum() + 0.5)
    return Believed(mean * up / (mean * up + (1.0 - mean) * down), variance)


def _posterior(x: Reals, y: Reals, even: float, alone: float) -> tuple[Reals, Reals]:
    """The mean and the variance of P's share of each cell, of one kind."""
    width = math.asinh(FARTHEST / NEAREST)
    grid = even + NEAREST * np.sinh(np.linspace(-width, width, POINTS))
    fold = np.arange(len(x)) % FOLDS
    _, one, alike = np.unique(x * (y.max(initial=0.0) + 1.0) + y, return_index=True, return_inverse=True)
    hits = np.stack([x[one], y[one]])
    others = np.zeros((len(one), FOLDS))  # so many cells with these hits are not in the fold
    np.add.at(others, alike, 1.0 - np.eye(FOLDS)[fold])
    mine, other = hits
    seen = np.log((mine + 0.5) / (other + 0.5))
    luck = 1.0 / (mine + 0.5) + 1.0 / (other + 0.5)
    # of a cell that is known better than the grid is fine, only so many hits are asked where on the grid it lies
    apart = (2.0 * width / (POINTS - 1)) ** 2 * ((seen - even) ** 2 + NEAREST**2)
    asked = np.minimum(1.0, luck / apart)
    fit = (asked * mine)[:, None] * grid - (asked * (mine + other))[:, None] * np.logaddexp(0.0, grid)
    fit = np.exp(fit - fit.max(axis=1, keepdims=True))
    weight = np.full((POINTS, FOLDS), (1.0 - EVEN) / POINTS)  # cells of one hit fit any law that is as wide both ways
    weight[POINTS // 2] += EVEN
    near = np.flatnonzero(fit.max(axis=0) > UNLIKELY)  # of the grid, where some cell may be
    grid, fit, weight = grid[near], np.ascontiguousarray(fit[:, near]), weight[near]
    some = np.argsort(seen, kind="stable")[:: -(-len(seen) // KINDS)]
    likely, cells = fit[some], others[some] * (others.sum(axis=0) / np.maximum(others[some].sum(axis=0), 1.0))
    turned, total = np.ascontiguousarray(likely.T), cells.sum(axis=0) + alone
    cells, least = cells / total, alone / POINTS / total
    for _ in range(STEPS):
        weight = weight * (turned @ (cells / (likely @ weight))) + least  # with those left out their sum is 1
    odds = fit[alike] * weight.T[fold]
    odds /= odds.sum(axis=1, keepdims=True)
    seen, luck, apart, asked = (part[alike] for part in (seen, luck, apart, asked))
    share = 1.0 / (1.0 + np.exp(-grid))
    mean = odds @ share
    variance = np.maximum(odds @ share**2 - mean**2, 0.0)
    centre = odds @ grid
    spread = np.maximum(odds @ grid**2 - centre**2, 0.0) + apart / 12.0
    more = (1.0 - asked) / luck  # what the hits that were not asked know
    spread = 1.0 / (1.0 / spread + more)
    finer = 1.0 / (1.0 + np.exp(-(centre + spread * more * (seen - centre))))
    mean, variance = (
        np.where(asked < 1.0, sure, rough)
        for sure, rough in ((finer, mean), (spread * (finer * (1.0 - finer)) ** 2, variance))
    )
    return mean, variance
