"""Weights of the cells of coordinates, from counts: log ratios, smoothed so that luck is not taken for a leak.

Along the numbers of a coordinate they follow a trend, and where all coordinates have the same cells a surface
(`smoothing`). What is left of a coordinate is pulled towards 0, as far as James & Stein (1961) say: a part of the
signal is kept that is 1 less the part of its energy which luck alone would have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.arrays import Bools, Integers, Reals
from dpaudit.events.search.smoothing import surface, trend

FEWEST_LINES, FEWEST_CELLS = 3, 5  # of a surface, and of numbers that have a trend
LARGEST = 1_500  # cells of a surface: beyond, each coordinate has its own trend


def weights(tables: Sequence[Integers], ordered: Sequence[Bools]) -> list[Reals]:
    """For each table of counts (cell, side) the weight of each of its cells: ln(first / second), 0 where nothing fell.

    `ordered` says which of the first cells of a table stand for numbers in order; the others are single values and
    tokens.

    >>> [part.round(2).tolist() for part in weights([np.array([[300, 100], [100, 300], [0, 0]])], [np.ones(2, bool)])]
    [[1.08, -1.08, 0.0]]
    """
    whole = [
        np.append(line, np.zeros(len(table) - len(line), np.bool_)) for table, line in zip(tables, ordered, strict=True)
    ]
    rows = [_row(table) for table in tables]
    parts: dict[int, tuple[Reals, Reals]] = {}
    for places in _alike(whole):
        hits = np.array([tables[place][whole[place]] for place in places], np.float64)
        for place, centre, variance in zip(places, *surface(hits[..., 0], hits[..., 1]), strict=True):
            parts[place] = centre - rows[place][2], variance
    found = []
    for place, ((ratio, weight, sides), line) in enumerate(zip(rows, whole, strict=True)):
        centre, variance = parts[place] if place in parts else _along(tables[place][line], sides)
        luck = (weight > 0.0).astype(np.float64)
        fit = ratio.copy()
        fit[line], luck[line] = centre, variance * weight[line]
        found.append(fit * _kept(fit, weight, float(luck.sum())))
    return found


def following(table: Integers) -> Reals:
    """What the second of two neighbours adds to the first: log ratios of the joint cells less those of the first's.

    `table` has a row for each joint cell, the first neighbour's cells one after the other. A sum of them along a chain
    is its log likelihood ratio, where each depends on the one before it alone.
    """
    size = math.isqrt(len(table))
    x, y = np.moveaxis(table[: size * size].reshape(size, size, 2).astype(np.float64), 2, 0)
    of_first = [side.sum(axis=1, keepdims=True) for side in (x, y)]
    hit, seen = x + y > 0.0, of_first[0] + of_first[1] > 0.0
    # 1 / size of a hit in each cell, so that a cell as rare as the luck of its row says has 0
    cell, row = ((a + part) / (b + part) for (a, b), part in (((x, y), 0.5), (of_first, 0.5 * size)))
    signal = np.where(hit, np.log(cell) - np.log(row), 0.0)
    weight = np.where(hit, 1.0 / (1.0 / (x + 0.5) + 1.0 / (y + 0.5)), 0.0)
    luck = float(hit.sum() - seen.sum())
    found = (signal * _kept(signal, weight, luck)).ravel()
    return np.append(found, np.zeros(len(table) - size * size))


def _row(table: Integers) -> tuple[Reals, Reals, float]:
    """The log ratio of each cell and its inverse variance, 0 where nothing fell, and the log ratio of all hits."""
    x, y = table.astype(np.float64).T
    hit, sides = x + y > 0.0, float(np.log((x.sum() + 1.0) / (y.sum() + 1.0)))
    ratio, variance = np.log((x + 0.5) / (y + 0.5)) - sides, 1.0 / (x + 0.5) + 1.0 / (y + 0.5)
    return np.where(hit, ratio, 0.0), np.where(hit, 1.0 / variance, 0.0), sides


def _along(table: Integers, sides: float) -> tuple[Reals, Reals]:
    """One coordinate's numbers along their trend, and the variances; cells that nothing fell into as their nearest."""
    x, y = table.astype(np.float64).T
    hit = np.flatnonzero(x + y)
    if len(hit) == 0:
        return np.zeros(len(x)), np.zeros(len(x))
    if len(hit) < FEWEST_CELLS:
        centre, variance = np.log((x + 0.5) / (y + 0.5))[hit], (1.0 / (x + 0.5) + 1.0 / (y + 0.5))[hit]
    else:
        centre, covariance = trend(x[hit], y[hit])
        variance = covariance.diagonal()
    nearest = np.maximum(np.searchsorted(hit, np.arange(len(x)), side="right") - 1, 0)
    return centre[nearest] - sides, variance[nearest]


def _alike(ordered: Sequence[Bools]) -> list[list[int]]:
    """The coordinates whose numbers have the same cells, where they are enough to make a surface."""
    groups: dict[bytes, list[int]] = {}
    for place, line in enumerate(ordered):
        groups.setdefault(line.tobytes(), []).append(place)
    return [
        places
        for places in groups.values()
        for cells in [int(ordered[places[0]].sum())]
        if len(places) >= FEWEST_LINES and cells >= FEWEST_CELLS and cells * len(places) <= LARGEST
    ]


def _kept(signal: Reals, weight: Reals, luck: float) -> float:
    """The part of a signal to keep."""
    energy = float((signal**2 * weight).sum())
    return max(0.0, 1.0 - luck / energy) if energy > 0.0 else 0.0
