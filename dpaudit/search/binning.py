"""Cells of one feature: ordered bins of its numbers, and its tokens; chosen on a pilot, then counted.

Bins are a fine even grid where that fits (two nanoseconds a value), and explicit edges where values repeat
or spread over many scales. Labels say how tokens are printed: those of the outputs, and whole outputs as written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Places, Singles
from dpaudit.events.features import Coordinate, Feature, Shape, Whole, rounded, single
from dpaudit.events.scores import Binning, LogRatio, Neighbours
from dpaudit.outputs.canonical import (
    ABSENT,
    NONE,
    NOT_A_NUMBER,
    TIMED_OUT,
    TYPE,
    Column,
    Numbers,
    Outputs,
    Path,
    Sample,
    Token,
    derived,
)
from dpaudit.search.entries import MOST, coordinates_of

EVEN_BINS = 4096
SMALLEST_STEP = 1e-30  # it and its inverse must be float32 numbers
FEW_VALUES = 1024  # up to this many different numbers have a bin each
FEWER_VALUES, MOST_UNSEEN = 64, 0.1  # up to this many have borders half-way between them; the mass of values seen once
MOST_ATOMS = 4096  # values of many that have a bin each, the commonest
WIDE = 400.0  # a spread of more interquartile ranges than this calls for quantile edges
QUANTILE_BINS, WIDE_BINS = 1024, 512  # by mass, and even over the range
MOST_TOKENS = 4096
REPEATED = 0.002  # a value that makes up this part of the pilot is an atom of a score
AROUND, CROWDED = 8, 3.0  # bins to either side, and how many times their outputs a crowded bin holds


def binning(column: Column, labels: dict[int, str], exact: Numbers | None = None) -> Binning:
    """Cells for a feature that looks like this on a pilot; `exact` are its numbers before they were rounded."""
    numbers = column.tokens == 0
    values = single(column.values[numbers])
    bins = _bins(np.sort(values), recurring(values if exact is None else exact[numbers], values))
    return Binning(bins.edges, tokens_of(column, labels), bins.step)


def tokens_of(column: Column, labels: Mapping[int, str]) -> tuple[Token, ...]:
    """The tokens of a column, the commonest first, with the labels that they are printed by."""
    codes = column.tokens
    known, times = np.unique(codes[codes != 0], return_counts=True) if codes.any() else (codes[:0], codes[:0])
    order = np.argsort(-times, kind="stable")[:MOST_TOKENS]
    names = {NOT_A_NUMBER.code: NOT_A_NUMBER.label, **labels}
    return tuple(Token(names.get(int(known[j]), f"#{int(known[j]):016x}"), int(known[j])) for j in order)


def recurring(exact: Numbers, values: Singles) -> Singles:
    """The values, rising, whose exact numbers recur more often than by chance; both of one length.

    Were there no atoms, numbers would be seen k times as in a Poisson law with the mean that once and twice show: fewer
    than one such is expected of those taken. Doubles of a continuous law never recur, float32 numbers do.
    """
    rising = np.sort(exact)
    new = np.append(True, rising[1:] != rising[:-1])[: len(exact)]
    if new.all():
        return values[:0]
    starts = np.flatnonzero(new)
    times = np.diff(np.append(starts, len(exact)))
    once, twice = int(np.count_nonzero(times == 1)), int(np.count_nonzero(times == 2))
    mean = 2.0 * twice / max(once, 1)
    expected, fewest = once * mean / 2, 2  # seen k times: once mean^(k-1) / k!, which may be beyond all floats
    while expected >= 1.0 and fewest <= len(exact):
        fewest += 1
        expected *= mean / fewest
    often = np.flatnonzero(times >= fewest)
    if len(often) == 0:
        return values[:0]
    common = often[np.argsort(-times[often], kind="stable")[:MOST_ATOMS]]
    return np.asarray(np.unique(values[np.isin(exact, rising[starts[common]])]))


def _bins(numbers: Singles, atoms: Singles) -> Binning:
    if len(numbers) == 0:
        return Binning(np.empty(0, np.float32))
    new = np.append(True, numbers[1:] != numbers[:-1])  # a difference of infinities is no number
    if np.count_nonzero(new) <= FEW_VALUES:
        values = numbers[new]
        times = np.diff(np.append(np.flatnonzero(new), len(numbers)))
        unseen = np.count_nonzero(times == 1) / len(numbers)  # the mass of it (Good 1953)
        if len(values) <= FEWER_VALUES or not 0.0 < unseen < MOST_UNSEEN:
            return Binning(_between(values))
        return Binning(np.unique(np.concatenate([around(values), _beyond(values[np.isfinite(values)])])))
    finite = numbers[np.isfinite(numbers)]
    quarter, three = finite[len(finite) // 4], finite[3 * len(finite) // 4]
    span = float(finite[-1]) - float(finite[0])
    if len(atoms) == 0 and len(finite) == len(numbers) and span < WIDE * float(three - quarter):
        low, step = float(finite[0]) - span / 4.0, 1.5 * span / EVEN_BINS
        edges = single(low + step * np.arange(1, EVEN_BINS))
        if SMALLEST_STEP < step < 1.0 / SMALLEST_STEP and np.all(edges[1:] > edges[:-1]):
            even = Binning(edges, step=step)
            if not _crowded(even.counts(Column(numbers))):
                return even
    values = numbers[new]
    picks = values[np.linspace(0, len(values) - 1, QUANTILE_BINS).astype(np.intp)]
    evenly = single(np.linspace(float(finite[0]), float(finite[-1]), WIDE_BINS))
    return Binning(np.unique(np.concatenate([picks, evenly, around(atoms), _beyond(finite)])))


def _crowded(counts: Integers) -> bool:
    """Whether some bin holds far more than those around it: a finer structure than the bins are."""
    full = np.flatnonzero(counts > AROUND)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(counts, AROUND), 2 * AROUND + 1)[full]
    return bool(np.any(counts[full] > AROUND + CROWDED * np.median(around, axis=1)))


def atoms_of(numbers: Singles) -> Singles:
    """The values, rising, that make up a part of the sorted numbers each, `REPEATED` or more; one axis in and out."""
    if not len(numbers):
        return numbers
    starts = np.concatenate([[0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1])
    times = np.diff(np.append(starts, len(numbers)))
    return np.asarray(numbers[starts][times > max(5.0, REPEATED * len(numbers))])


def around(values: Singles) -> Singles:
    """Rising edges that give each value a bin of its own, two a value: just below it, and itself."""
    with np.errstate(over="ignore"):  # below the least of all is none
        below = np.nextafter(values, np.float32(-np.inf))
    return np.unique(np.concatenate([below, values]))


def _between(values: Singles) -> Singles:
    """Edges half-way between neighbouring values: a bin for each, and thresholds that people can read."""
    with np.errstate(invalid="ignore"):  # between the two infinities
        middle = ((values[:-1].astype(np.float64) + values[1:]) / 2.0).astype(np.float32)
    return np.where((middle < values[1:]) & (middle >= values[:-1]), middle, values[:-1])


def _beyond(numbers: Singles) -> Singles:
    """Edges outside the pilot's range, where a longer search will still find numbers."""
    span = float(numbers[-1]) - float(numbers[0])
    steps = np.arange(1, 17) / 32.0 * span
    return single(np.concatenate([float(numbers[0]) - steps, float(numbers[-1]) + steps]))


@dataclass(frozen=True, slots=True)
class Tables:
    """The reducer of search: counts of the cells of several features, one after the other, a column for each side."""

    features: tuple[tuple[Feature, Binning], ...]

    @property
    def cells(self) -> int:
        """The number of all cells."""
        return sum(bins.cells for _, bins in self.features)

    @property
    def wanted(self) -> frozenset[Path] | None:
        paths: set[Path] = set()
        for feature, _ in self.features:
            if feature.wanted is None:
                return None
            paths |= feature.wanted
        return frozenset(paths)

    def __call__(self, first: Sample, second: Sample) -> Integers:
        return np.stack([self._side(sample) for sample in (first, second)], axis=1)

    def _side(self, sample: Sample) -> Integers:
        if sample.outputs.runs == 0:  # every call of a batched mechanism has such a side
            return np.zeros(self.cells, np.int64)
        known: Known = {}
        cells = [(_places(feature, bins, sample.outputs, known), bins.cells) for feature, bins in self.features]
        return np.concatenate([np.bincount(places, sample.counts, many) for places, many in cells]).astype(np.int64)

    def mixed(self, outputs: Outputs, second: Bools) -> Integers:
        """The same of outputs in the order of their runs."""
        return self(Sample(outputs.take(~second)), Sample(outputs.take(second)))

    def split(self, counts: Integers) -> list[Integers]:
        """The table of each feature, int64[its cells, sides], from int64[all cells, sides]."""
        borders = np.cumsum([bins.cells for _, bins in self.features])[:-1]
        return np.split(counts, borders)


Known = dict[Any, Any]  # columns of features of some outputs, and their cells, which several scores may share


def _places(feature: Feature, bins: Binning, outputs: Outputs, known: Known) -> Places:
    """The cells that a feature of outputs falls into; those of all but scores are `known` from then on."""
    if isinstance(feature, LogRatio):  # to the same bits as its own column
        terms = ((each.table, _places(each.coordinate, each.bins, outputs, known)) for each in feature.terms)
        return bins.places(rounded(Column(sum((table.take(cells) for table, cells in terms), np.zeros(outputs.runs)))))
    key = feature, bins
    if (found := known.get(key)) is None:
        if isinstance(feature, Neighbours):
            sides = (_places(each, feature.bins, outputs, known) for each in (feature.left, feature.right))
            found = feature.joined(*sides)
        else:
            if (column := known.get(feature)) is None:
                column = known[feature] = feature.column(outputs)
            found = bins.places(column)
        known[key] = found
    return found


LONGEST_VALUE = 120
PLAIN = {each.code: each.label for each in (NONE, NOT_A_NUMBER, TIMED_OUT)}


def binning_of(feature: Feature, both: Outputs, column: Column | None = None) -> Binning:
    """The cells of a feature, chosen on these outputs; `column` is its own where that is known."""
    exact = both.column(feature.path).values if isinstance(feature, Coordinate) else None
    return binning(feature.column(both) if column is None else column, labels_of(feature, both), exact)


def labels_of(feature: Feature, both: Outputs) -> dict[int, str]:
    """How the tokens of a feature are printed: those of the outputs, whole outputs and shapes as they are written."""
    if not isinstance(feature, Whole | Shape):
        return dict(both.labels)
    codes, rows = np.unique(feature.column(both).tokens, return_index=True)
    places = [path for path in coordinates_of(both) if not derived(path)][:MOST]
    atoms = None if isinstance(feature, Whole) else frozenset(feature.values)
    return {
        int(code): written(both, int(row), places, atoms)[:LONGEST_VALUE]
        for code, row in zip(codes[:512], rows[:512], strict=True)
    }


def written(
    outputs: Outputs, row: int, places: Sequence[Path], atoms: frozenset[float] | None = None, digits: str = "g"
) -> str:
    """One output as Python would write it; of a shape only the numbers among its `atoms` as they are."""
    tree: dict[int | str, Any] = {}
    for path in ((), *places):
        column = outputs.column(path)
        code = int(column.tokens[row])
        number = float(column.values[row])
        text = f"{number:{digits}}" if code == 0 else PLAIN.get(code) or outputs.labels.get(code, "nan")
        if code == 0 and atoms is not None and float(single(column.values[row : row + 1])[0]) not in atoms:
            text = "a number"
        if code != ABSENT.code and not path:
            return text
        if code != ABSENT.code:
            node = tree
            for step in path[:-1]:
                node = node.setdefault(step, {})
            node[path[-1]] = text
    heads = {path[:end] for path in places for end in range(len(path))}
    types = {head: outputs.labels.get(int(outputs.column((*head, TYPE)).tokens[row])) for head in heads}
    return _nested(tree, (), types)


def _nested(node: Any, path: Path, types: Mapping[Path, str | None]) -> str:
    if not isinstance(node, dict):
        return str(node)
    entries = {step: _nested(each, (*path, step), types) for step, each in node.items()}
    if all(isinstance(step, int) for step in node) and types.get(path) != "type dict":
        inner = ", ".join(entries.values())
        return f"({inner})" if types.get(path) == "type tuple" else f"[{inner}]"
    return f"{{{', '.join(_entry(step, text) for step, text in entries.items())}}}"


def _entry(step: int | str, text: str) -> str:
    """A key with its value; of a set, the element alone."""
    name = step if isinstance(step, str) else ""
    if name.startswith("@has "):
        return name[5:]
    return f"{name[1:] if name[:1] == '@' != name[1:2] else repr(step)}: {text}"
