"""Tails seen through their neighbours: the log ratio of a rare tail, smoothed along the thresholds that lead to it.

In a quarter of all mass, thresholds `RATIO` apart in mass cut a tail into cells whose counts are independent.
Their log ratios are smoothed by a trend whose slope changes little from cell to cell (Whittaker 1923); how little
is the choice that makes the counts likeliest. A far tail with few hits then borrows from the nearer ones, and is
neither taken for a leak when it was lucky nor given up because it is rare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.arrays import Places, Reals
from dpaudit.events.search.goal import Spread
from dpaudit.events.search.smoothing import trend

SMOOTHED = 0.25  # of both sides' mass: larger tails have hits enough
RATIO = math.sqrt(2.0)
FEWEST_CELLS = 5
FEWEST_IN_A_CELL = 5.0


@dataclass(frozen=True, slots=True)
class Tails:
    """Nested tails: the index of each among the candidates, its smoothed hits, and how sure they are.

    `moved` is the deviation of P's share of the hits, in hits that change sides.
    """

    at: Places
    x: Reals
    y: Reals
    moved: Reals

    def mirrored(self) -> Tails:
        """The same with the sides exchanged."""
        return Tails(self.at, self.y, self.x, self.moved)

    def spread(self, z: Reals | float) -> Spread:
        """The luck in (ln p, ln q), `z` deviations of it: hits that change sides, and hits of both."""
        common = 1.0 / (self.x + self.y)
        p, q = self.moved / self.x, self.moved / self.y
        return Spread(z**2 * (p**2 + common), z**2 * (q**2 + common), z**2 * (common - p * q))


def smoothed(x: Reals, y: Reals) -> Tails | None:
    """The tails among nested candidates with these counts, smallest first; None where they are too few to smooth.

    `x` and `y` are hits of the two sides, float64[candidates], and grow.
    """
    both = x + y
    top = SMOOTHED * both[-1] if len(both) else 0.0
    if top < FEWEST_IN_A_CELL * RATIO**FEWEST_CELLS:
        return None
    levels = top / RATIO ** np.arange(1 + int(math.log(top / FEWEST_IN_A_CELL) / math.log(RATIO)))
    at = np.unique(np.searchsorted(both, levels, side="right") - 1)
    at = at[(at >= 0) & (both[at] > 0.0)]
    if len(at) < FEWEST_CELLS:
        return None
    mine, other = np.diff(x[at], prepend=0.0), np.diff(y[at], prepend=0.0)
    centre, covariance = trend(mine, other)
    share = 1.0 / (1.0 + np.exp(-centre))
    hits = mine + other
    # of a sum over the first cells: what a change of each cell's log ratio moves from one side to the other
    weight = hits * share * (1.0 - share)
    moved = np.cumsum(np.cumsum(weight[:, None] * covariance * weight[None, :], axis=0), axis=1).diagonal()
    return Tails(at, np.cumsum(hits * share), np.cumsum(hits * (1.0 - share)), np.sqrt(np.maximum(moved, 0.0)))
