"""Scores learned from search runs: log ratios, which are the cells of terms and their weights, and directions.

The terms of one group make several scores, by the same counts: every place with weights of its own, or those places
that have the same cells with the weights that all their hits together give (`pooled`), which luck moves less by as
many as there are.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Reals, Singles
from dpaudit.events.features import Coordinate, Shape, single
from dpaudit.events.scores import OF, Binning, Linear, LogRatio, Neighbours, Part, Term, weighed
from dpaudit.outputs.canonical import Column, Outputs, Path
from dpaudit.search.binning import Tables, around, atoms_of, binning, tokens_of
from dpaudit.search.smoothing import surface, trends

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
    fits = []
    alone = [place for place in range(len(tables)) if place not in parts]
    for place, (centre, variance) in zip(alone, _along([tables[j][whole[j]] for j in alone]), strict=True):
        parts[place] = centre - rows[place][2] if variance.any() else centre, variance
    for place, ((ratio, weight, _), line) in enumerate(zip(rows, whole, strict=True)):
        centre, variance = parts[place]
        luck = (weight > 0.0).astype(np.float64)
        fit = ratio.copy()
        fit[line], luck[line] = centre, variance * weight[line]
        fits.append(fit * _signal_share(fit, weight, float(luck.sum())))
    return fits


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
    ratios = (signal * _signal_share(signal, weight, luck)).ravel()
    return np.append(ratios, np.zeros(len(table) - size * size))


def _row(table: Integers) -> tuple[Reals, Reals, float]:
    """The log ratio of each cell and its inverse variance, 0 where nothing fell, and the log ratio of all hits."""
    x, y = table.astype(np.float64).T
    hit, sides = x + y > 0.0, float(np.log((x.sum() + 1.0) / (y.sum() + 1.0)))
    ratio, variance = np.log((x + 0.5) / (y + 0.5)) - sides, 1.0 / (x + 0.5) + 1.0 / (y + 0.5)
    return np.where(hit, ratio, 0.0), np.where(hit, 1.0 / variance, 0.0), sides


def _along(lines: Sequence[Integers]) -> Iterator[tuple[Reals, Reals]]:
    """Each coordinate's numbers along their trend, and variances; cells that nothing fell into as their nearest."""
    hit = [np.flatnonzero(line.sum(axis=1)) for line in lines]
    seen = [line[cells].astype(np.float64) for line, cells in zip(lines, hit, strict=True)]
    found = iter(trends([each for each in seen if len(each) >= FEWEST_CELLS]))
    for line, cells, each in zip(lines, hit, seen, strict=True):
        if len(each) >= FEWEST_CELLS:
            centre, covariance = next(found)
            variance = covariance.diagonal()
        else:
            x, y = each.T + 0.5
            centre, variance = np.log(x / y), 1.0 / x + 1.0 / y
        nearest = np.maximum(np.searchsorted(cells, np.arange(len(line)), side="right") - 1, 0)
        yield (centre[nearest], variance[nearest]) if len(each) else (np.zeros(len(line)), np.zeros(len(line)))


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


def _signal_share(signal: Reals, weight: Reals, luck: float) -> float:
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
    numbers = [np.sort(single(column.values[column.tokens == 0])) for column in columns]
    together = [each for each in numbers if _many(each, GROUPS)]
    common = _edges(np.sort(np.concatenate(together))) if _same_range(together) else None
    edges = [
        (_edges(each) if common is None else common) if _many(each, GROUPS) else binning(column, {}).edges
        for column, each in zip(columns, numbers, strict=True)
    ]
    bins = (Binning(each, tokens_of(column, both.labels)) for each, column in zip(edges, columns, strict=True))
    return Tables(tuple(zip(parts, bins, strict=True)))


def _many(numbers: Singles, groups: int) -> bool:
    """Whether sorted numbers are of too many values for a cell each."""
    values = 1 + np.count_nonzero(numbers[1:] != numbers[:-1])
    return bool(values > groups + 1 and np.count_nonzero(np.isfinite(numbers)) > groups)


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
    column, numbers = Column(values, codes), np.sort(single(values[codes == 0]))
    edges = _edges(numbers, groups) if _many(numbers, groups) else binning(column, {}).edges
    return Binning(edges, tokens_of(column, both.labels))


def _same_range(numbers: Sequence[Singles]) -> bool:
    """Whether each of several coordinates, sorted, spreads about as far as all of them together."""
    if len(numbers) < 2:
        return False
    finite = [each[np.isfinite(each)] for each in numbers]
    low, high = np.quantile(np.concatenate(finite, dtype=np.float64), [0.05, 0.95], overwrite_input=True)
    quarters = [each[[len(each) // 4, 3 * len(each) // 4]].astype(np.float64) for each in finite]
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
    by_term = {j: following(tables[j]) for j in chained}
    for group in ([0], learned[1:]) if shaped else (learned,):
        rest = [j for j in group if j not in by_term]
        by_term |= zip(rest, weights([tables[j] for j in rest], [lines[j] for j in rest]), strict=True)
    return LogRatio(
        tuple(
            Term(feature, bins, tuple(by_term[j].tolist()))  # type: ignore[arg-type]
            for (feature, bins), j in zip(terms.features, which, strict=True)
        ),
        pooled,
    )


def _given(table: Integers, line: Bools) -> Integers:
    """The counts of the numbers alone."""
    numbers = np.zeros_like(table)
    numbers[: len(line)][line] = table[: len(line)][line]
    return numbers


# --- directions from one side to the other, which weigh the numbers of all entries ---
# The diagonal direction is the difference of means over the pooled variance (Fisher 1936); learned in d entries on n
# runs a side, of a shift by mu it keeps about the part 1 / sqrt(1 + 4 d / (n mu^2)). Entries with a small difference
# are left out as well, for a few of many carry the leak (Fan & Fan 2008), and up to `MOST_TOGETHER` entries their
# covariance is taken into account, shrunk towards the identity (Ledoit & Wolf 2004). All that of the values, of values
# cut off, of distances from the centre and of their squares. What is best on runs that it was not learned on, by two
# folds, is learned once more on all.


LEFT_OUT = (0.0, 1.5, 3.0)  # differences below this many standard errors get no weight
MOST_TOGETHER = 256  # entries whose covariance is taken into account
FEWEST = 32  # runs of a side in a fold
SURE_Z = 2.0  # standard errors from 0 that the best is on runs that did not make it
SMALL, FEWEST_RUNS = 1 << 18, 32  # products of entries, and runs, at a time: threads take longer than so many products
PIECE, FEW = 1 << 20, 8  # cells at a time, and entries that are weighed at a time
LARGEST_NUMBER = 1e6  # that a number may count when weights are learned
GLANCE, GLANCED = 1 << 10, 1 << 7  # runs that centre and scale are read off, and entries at a time


@dataclass(frozen=True, slots=True)
class _Rule:
    """One way to learn weights: what of the numbers is weighed, what is left out, whether the covariance counts."""

    of: str
    least: float
    together: bool = False


def dense(first: Outputs, second: Outputs, paths: Sequence[Path]) -> tuple[Linear, ...]:
    """The best direction score over the numbers at these paths, and one of another kind where it may be better.

    None where no rule parts the sides on runs that it was not learned on.
    """
    if min(first.runs, second.runs) < 2 * FEWEST or not paths:
        return ()
    sides = (first, second)
    some = [paths[start : start + GLANCED] for start in range(0, len(paths), GLANCED)]
    glances = [np.concatenate([each.numbers(part, slice(GLANCE + 1)) for each in sides], axis=1) for part in some]
    centres, scales = (np.concatenate(each) for each in zip(*map(_standard, glances), strict=True))
    there = scales > 0.0
    if not there.any():
        return ()
    data = _Data(sides, paths, centres, np.where(there, scales, 1.0), there)
    rules = [_Rule(of, least) for of in OF for least in LEFT_OUT]
    rules += [_Rule("values", 0.0, True)] if 1 < len(paths) <= MOST_TOGETHER else []
    apart = data.held_out(rules)
    order = np.argsort(-apart, kind="stable")
    top, error = int(order[0]), 2.0 / np.sqrt(data.runs)
    if apart[top] < SURE_Z * error:
        return ()
    # what is within a standard error may be better (Breiman et al. 1984), if it weighs something else
    other = [int(each) for each in order if rules[each].of != rules[top].of and apart[each] >= apart[top] - error]
    return tuple(data.learned(rules[each], paths) for each in (top, *other[:1]))


def _standard(glance: Reals) -> tuple[Reals, Reals]:
    """Centre and scale of each row: median and median distance, or the standard deviation where that is 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(glance)
        middle = np.where(finite, glance, np.nan)
        middle[~finite.any(axis=1)] = 0.0
        centres = np.nanmedian(middle, axis=1)
        away = middle - centres[:, None]
        scales = 1.4826 * np.nanmedian(np.abs(away), axis=1)
        return centres, np.where(scales > 0.0, scales, np.sqrt(np.nanmean(away**2, axis=1)))


class _Data:
    """The outputs of both sides, standardised piece by piece, and in two folds: half of the runs each."""

    def __init__(
        self, sides: tuple[Outputs, Outputs], paths: Sequence[Path], centres: Reals, scales: Reals, there: Bools
    ) -> None:
        self.sides, self.paths, self.centres, self.scales, self.there = sides, paths, centres, scales, there
        self.runs = sum(side.runs for side in sides)
        self.entries = len(centres)
        self.moments = {of: self._moments(of) for of in OF}

    def pieces(self, side: int, of: str, some: slice = slice(None)) -> Iterator[tuple[slice, Reals]]:
        """What is weighed of one side's numbers, of some runs: entries, and float64[entries, runs]."""
        runs = len(range(self.sides[side].runs)[some])
        step = max(1, PIECE // max(1, runs))
        for start in range(0, self.entries, step):
            rows = slice(start, min(start + step, self.entries))
            values = np.empty((rows.stop - start, runs))
            for first in range(start, rows.stop, FEW):  # what is beside the values is as large
                few = slice(first, min(first + FEW, rows.stop))
                numbers = self.sides[side].numbers(self.paths[few], some)
                terms = weighed(numbers, self.centres[few, None], self.scales[few, None], of)
                np.clip(terms, -LARGEST_NUMBER, LARGEST_NUMBER, out=values[first - start : few.stop - start])
            yield rows, values

    def fold(self, side: int, fold: int) -> slice:
        """The runs of a fold, of those of a side."""
        half = self.sides[side].runs // 2
        return slice(half, None) if fold else slice(half)

    def _moments(self, of: str) -> Reals:
        """Number, sum and sum of squares: float64[3, folds, sides, entries]."""
        moments = np.zeros((3, 2, 2, self.entries))
        for side in (0, 1):
            for rows, piece in self.pieces(side, of):
                for fold in (0, 1):
                    part = piece[:, self.fold(side, fold)]
                    moments[:, fold, side, rows] = (
                        np.full(len(part), part.shape[1]),
                        part.sum(axis=1),
                        np.einsum("ij,ij->i", part, part),
                    )
        return moments

    def weights(self, rule: _Rule, folds: Sequence[int]) -> Reals:
        """The weight of each entry, learned on some folds."""
        count, total, squares = self.moments[rule.of][:, list(folds)].sum(axis=1)
        means = total / count
        spreads = np.maximum(squares / count - means**2, 0.0)
        difference, error = means[0] - means[1], np.sqrt((spreads / count).sum(axis=0))
        pooled = (spreads * count).sum(axis=0) / count.sum(axis=0)
        mask = self.there & (pooled > 0.0) & (np.abs(difference) >= rule.least * error)
        if rule.together:
            return self._together(difference, means, folds, mask)
        return np.where(mask, difference / np.where(pooled > 0.0, pooled, 1.0), 0.0)

    def _together(self, difference: Reals, means: Reals, folds: Sequence[int], mask: Bools) -> Reals:
        """The direction by the covariance within the sides, shrunk as far as Ledoit & Wolf (2004, lemma 3.2) say."""
        size = int(mask.sum())
        if size == 0:
            return np.zeros(self.entries)
        parts = []
        for side in (0, 1):
            whole = np.concatenate([piece for _, piece in self.pieces(side, "values")]) - means[side][:, None]
            parts.append(whole[mask][:, self.fold(side, folds[0])] if len(folds) == 1 else whole[mask])
        away = np.concatenate(parts, axis=1)
        runs = away.shape[1]
        spread = np.sqrt((away**2).mean(axis=1))
        spread[spread == 0.0] = 1.0  # an entry that is constant in this half
        away /= spread[:, None]
        covariance = inner(away) / runs
        far = float(((covariance - np.eye(size)) ** 2).sum())
        luck = float(((away**2).sum(axis=0) ** 2).sum() / runs - (covariance**2).sum()) / runs
        part = min(1.0, luck / far) if far > 0.0 else 1.0
        weights = np.zeros(self.entries)
        shrunk = part * np.eye(size) + (1.0 - part) * covariance + 1e-9 * np.eye(size)
        weights[mask] = np.linalg.solve(shrunk, difference[mask] / spread) / spread
        return weights

    def held_out(self, rules: Sequence[_Rule]) -> Reals:
        """How far each rule, learned on one fold, parts the sides on the other: in deviations, the mean of both."""
        distances = np.zeros((2, len(rules)))
        for of, group in itertools.groupby(range(len(rules)), lambda place: rules[place].of):
            places = list(group)
            distances[:, places] = [self._parted(of, rules, places, fold) for fold in (0, 1)]
        return np.asarray(distances.mean(axis=0))

    def _parted(self, of: str, rules: Sequence[_Rule], places: Sequence[int], fold: int) -> Reals:
        weights = np.array([self.weights(rules[place], [1 - fold]) for place in places])
        means, spreads = np.zeros((2, len(places))), np.zeros((2, len(places)))
        for side in (0, 1):
            scores = np.zeros((len(places), len(range(self.sides[side].runs)[self.fold(side, fold)])))
            pieces = self.pieces(side, of, self.fold(side, fold))
            for rows, piece in pieces:  # einsum: small products are not worth threads
                scores += np.einsum("rj,jk->rk", weights[:, rows], piece)
            means[side], spreads[side] = np.mean(scores, axis=1), np.var(scores, axis=1)
        deviation = np.sqrt(spreads.mean(axis=0))
        return np.where(deviation > 0.0, (means[0] - means[1]) / np.where(deviation > 0.0, deviation, 1.0), 0.0)

    def learned(self, rule: _Rule, paths: Sequence[Path]) -> Linear:
        """The score of a rule learned on all; its scale is one, for halves are counted together."""
        weights = self.weights(rule, [0, 1])
        weights = weights / np.abs(weights).sum()
        places = np.flatnonzero(weights).tolist()
        centres, scales, weights = (each[places].tolist() for each in (self.centres, self.scales, weights))
        return Linear(tuple(paths[place] for place in places), tuple(centres), tuple(scales), tuple(weights), rule.of)


def inner(rows: Reals | Singles) -> Any:
    """The products of all rows with each other, a few runs at a time: in this thread, where rows are not too many."""
    step = max(FEWEST_RUNS, SMALL // len(rows) ** 2)
    pieces = (rows[:, start : start + step] for start in range(0, rows.shape[1], step))
    return sum(piece @ piece.T for piece in pieces)
