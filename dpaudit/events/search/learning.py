"""Scores learned from search runs: the cells of their terms, and the weights of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.arrays import Bools, Integers, Singles
from dpaudit.events.cells import Binning
from dpaudit.events.features import Shape, single
from dpaudit.events.scores import LogRatio, Part, Term
from dpaudit.events.search.binning import Tables, around, atoms_of, binning
from dpaudit.events.search.weights import weights
from dpaudit.outputs import Outputs

GROUPS = 20  # cells of one coordinate's numbers
FEWEST_IN_A_TAIL = 32  # outputs of the pilot beyond the last edge that they choose
ALIKE = 8.0  # from the 5 % to the 95 % quantile of all, at most, in units of a coordinate's quartile distance
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


def _same_range(numbers: Sequence[Singles]) -> bool:
    """Whether each of several coordinates spreads about as far as all of them together."""
    if len(numbers) < 2:
        return False
    finite = [each[np.isfinite(each)].astype(np.float64) for each in numbers]
    low, high = np.quantile(np.concatenate(finite), [0.05, 0.95])
    quarters = [np.quantile(each, [0.25, 0.75]) for each in finite]
    return all(low <= first and third <= high and high - low <= ALIKE * (third - first) for first, third in quarters)


def _edges(numbers: Singles) -> Singles:
    """`GROUPS` cells of about equal mass in the middle, tails, and a cell of its own for each value that recurs."""
    finite = numbers[np.isfinite(numbers)]
    middle = finite[(np.linspace(0.0, 1.0, GROUPS + 1)[1:-1] * (len(finite) - 1)).astype(np.intp)]
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


def log_ratio(terms: Tables, counts: Integers) -> LogRatio:
    """The log-ratio score whose terms these are, from counts of them.

    Where the first is a shape, the others say what the numbers add to it: their ratios given that they are there.
    """
    tables = terms.split(counts)
    lines = [~bins.alone for _, bins in terms.features]
    shaped = isinstance(terms.features[0][0], Shape)
    if shaped:
        tables = [tables[0], *(_given(table, line) for table, line in zip(tables[1:], lines[1:], strict=True))]
    found = weights(tables[:1], lines[:1]) + weights(tables[1:], lines[1:]) if shaped else weights(tables, lines)
    return LogRatio(
        tuple(
            Term(feature, bins, tuple(float(weight) for weight in each))  # type: ignore[arg-type]
            for (feature, bins), each in zip(terms.features, found, strict=True)
        )
    )


def _given(table: Integers, line: Bools) -> Integers:
    """The counts of the numbers alone."""
    kept = np.zeros_like(table)
    kept[: len(line)][line] = table[: len(line)][line]
    return kept
