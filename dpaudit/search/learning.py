"""Scores learned from search runs: the cells of their terms, and the weights of these.

The terms of one group make several scores, by the same counts: every place with weights of its own, or those places
that have the same cells with the weights that all their hits together give (`pooled`), which luck moves less by as
many as there are.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Reals, Singles
from dpaudit.events.features import Coordinate, Shape, single
from dpaudit.events.scores import Binning, LogRatio, Neighbours, Part, Term
from dpaudit.outputs.canonical import Column, Outputs
from dpaudit.search.binning import Tables, around, atoms_of, binning
from dpaudit.search.smoothing import surface, trend

FEWEST_LINES, FEWEST_CELLS = 3, 5  # of a surface, and of numbers that have a trend
LARGEST = 1_500  # cells of a surface: beyond, each coordinate has its own trend


def weights(tables: Sequence[Integers], ordered: Sequence[Bools]) -> list[Reals]:
    """For each table of counts (cell, side) the weight of each of its cells: ln(first / second), 0 where nothing fell.

    `ordered` says which of the first cells of a table stand for numbers in order; the others are single values and
    tokens. They are smoothed so that luck is not taken for a leak: along the numbers of a coordinate they follow a
    trend, and where all coordinates have the same cells a surface (`smoothing`). What is left of a coordinate is pulled
    towards 0, as far as James & Stein (1961) say: a part of the signal is kept that is 1 less the part of its energy
    which luck alone would have.

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


GROUPS = 20  # cells of one coordinate's numbers
FEWEST_IN_A_TAIL = 32  # outputs of the pilot beyond the last edge that they choose
ALIKE = 8.0  # from the 5 % to the 95 % quantile of all, at most, in units of a coordinate's quartile distance
COARSE, MOST_BESIDE = 8, 24  # cells of a neighbour's numbers, and the most of a neighbour
FEWEST_ALIKE = 3  # places of the same cells, for a score with the same weights for them
BEYOND = 8  # further edges, where a longer search will still find numbers


def cells_of(parts: Sequence[Part], both: Outputs) -> Tables:
    """Cells for the terms of a score; the same for all coordinates where their numbers have about the same range."""
    columns = [part.column(both) for part in parts]
    fine = [binning(column, dict(both.labels)) for column in columns]
    numbers = [np.sort(single(column.values[column.tokens == 0])) for column in columns]
    spread = [
        len(bins.edges) > GROUPS and np.isfinite(each).sum() > GROUPS for bins, each in zip(fine, numbers, strict=True)
    ]
    together = [each for each, many in zip(numbers, spread, strict=True) if many]
    common = _edges(np.sort(np.concatenate(together))) if _same_range(together) else None
    edges = [
        bins.edges if not many else _edges(each) if common is None else common
        for bins, each, many in zip(fine, numbers, spread, strict=True)
    ]
    return Tables(
        tuple((part, Binning(each, bins.tokens)) for part, each, bins in zip(parts, edges, fine, strict=True))
    )


def alike(parts: Sequence[Coordinate], both: Outputs) -> Tables:
    """The same cells for all coordinates, whatever their ranges: those of their numbers and tokens together."""
    bins = _together(parts, both, GROUPS)
    return Tables(tuple((part, bins) for part in parts))


def chain_of(parts: Sequence[Coordinate], both: Outputs) -> Tables | None:
    """The first coordinate, and each with the next in cells that all have alike; None where that would be many."""
    bins = _together(parts, both, COARSE)
    if bins.cells > MOST_BESIDE:
        return None
    joint = Binning(single(np.arange(bins.cells**2 - 1) + 0.5))
    return Tables(((parts[0], bins), *((Neighbours(*each, bins), joint) for each in itertools.pairwise(parts))))


def _together(parts: Sequence[Coordinate], both: Outputs, groups: int) -> Binning:
    columns = [part.column(both) for part in parts]
    values, codes = (np.concatenate(each) for each in zip(*((c.values, c.tokens) for c in columns), strict=True))
    fine = binning(Column(values, codes), dict(both.labels))
    numbers = np.sort(single(values[codes == 0]))
    few = len(fine.edges) <= groups or np.isfinite(numbers).sum() <= groups
    return Binning(fine.edges if few else _edges(numbers, groups), fine.tokens)


def _same_range(numbers: Sequence[Singles]) -> bool:
    """Whether each of several coordinates spreads about as far as all of them together."""
    if len(numbers) < 2:
        return False
    finite = [each[np.isfinite(each)].astype(np.float64) for each in numbers]
    low, high = np.quantile(np.concatenate(finite), [0.05, 0.95])
    quarters = [np.quantile(each, [0.25, 0.75]) for each in finite]
    return all(low <= first and third <= high and high - low <= ALIKE * (third - first) for first, third in quarters)


def _edges(numbers: Singles, groups: int = GROUPS) -> Singles:
    """`GROUPS` cells of about equal mass in the middle, tails, and a cell of its own for each value that recurs."""
    finite = numbers[np.isfinite(numbers)]
    middle = finite[(np.linspace(0.0, 1.0, groups + 1)[1:-1] * (len(finite) - 1)).astype(np.intp)]
    if groups < GROUPS:  # without tails
        return np.unique(np.concatenate([middle, around(atoms_of(numbers))]))
    tails = [_tail(finite), -_tail(-finite[::-1])]
    return np.unique(np.concatenate([middle, *tails, around(atoms_of(numbers))]))


def _tail(numbers: Singles) -> Singles:
    """Edges of the lower tail of sorted numbers, from one to the next half their mass; the last ones as if it went on.

    Where a tail falls off exponentially, its halvings are evenly apart.
    """
    first = np.ceil(np.log2(GROUPS))
    halvings = np.arange(first, max(np.log2(len(numbers) / FEWEST_IN_A_TAIL), first + 2.0))
    seen = numbers[(0.5**halvings * (len(numbers) - 1)).astype(np.intp)].astype(np.float64)
    apart = (seen[0] - seen[-1]) / (len(seen) - 1)
    return single(np.concatenate([seen, seen[-1] - apart * np.arange(1.0, BEYOND + 1.0)]))


def ways(terms: Tables) -> tuple[bool, ...]:
    """Whether pooled, for each score that these terms make."""
    places: dict[Binning, int] = {}
    for _, bins in terms.features:
        places[bins] = places.get(bins, 0) + 1
    return (False, True) if max(places.values()) >= FEWEST_ALIKE else (False,)


def scores_of(terms: Tables, counts: Integers) -> list[LogRatio]:
    """The scores that these terms make, from counts of them: as many whatever the counts."""
    return [log_ratio(terms, counts, pooled=pooled) for pooled in ways(terms)]


def log_ratio(terms: Tables, counts: Integers, *, pooled: bool = False) -> LogRatio:
    """The log-ratio score whose terms these are, from counts of them.

    Where the first is a shape, the others say what the numbers add to it: their ratios given that they are there.
    Neighbours say what each adds to the one before it.
    """
    tables = terms.split(counts)
    lines = [~bins.alone for _, bins in terms.features]
    shaped = isinstance(terms.features[0][0], Shape)
    if shaped:
        tables = [tables[0], *(_given(table, line) for table, line in zip(tables[1:], lines[1:], strict=True))]
    which = list(range(len(tables)))  # of several that are alike, the first
    if pooled:
        cells = [(bins, isinstance(feature, Neighbours)) for feature, bins in terms.features]
        which = [cells.index(each) for each in cells]
        tables = [sum(t for t, place in zip(tables, which, strict=True) if place == j) for j in range(len(tables))]  # type: ignore[misc]
    learned = sorted(set(which))
    chained = [j for j in learned if isinstance(terms.features[j][0], Neighbours)]
    found = {j: following(tables[j]) for j in chained}
    for group in ([0], learned[1:]) if shaped else (learned,):
        rest = [j for j in group if j not in found]
        found |= zip(rest, weights([tables[j] for j in rest], [lines[j] for j in rest]), strict=True)
    return LogRatio(
        tuple(
            Term(feature, bins, tuple(found[j].tolist()))  # type: ignore[arg-type]
            for (feature, bins), j in zip(terms.features, which, strict=True)
        ),
        pooled,
    )


def _given(table: Integers, line: Bools) -> Integers:
    """The counts of the numbers alone."""
    kept = np.zeros_like(table)
    kept[: len(line)][line] = table[: len(line)][line]
    return kept
