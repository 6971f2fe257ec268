"""Scores learned from search runs: the cells of their terms, and the weights of these.

The terms of one group make several scores, by the same counts: every place with weights of its own, or those places
that have the same cells with the weights that all their hits together give (`pooled`), which luck moves less by as
many as there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from dpaudit.arrays import Bools, Integers, Singles
from dpaudit.events.cells import Binning
from dpaudit.events.features import Coordinate, Shape, single
from dpaudit.events.scores import LogRatio, Neighbours, Part, Term
from dpaudit.events.search.binning import Tables, around, atoms_of, binning
from dpaudit.events.search.weights import following, weights
from dpaudit.outputs import Column, Outputs

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
    return Tables(
        ((parts[0], bins), *((Neighbours(*each, bins), joint) for each in itertools.pairwise(parts))),
    )


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
