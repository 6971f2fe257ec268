"""Joint events: one number that sums what all coordinates say, learned on a pilot and stored whole, as numbers.

`LogRatio` adds, for each coordinate or each step from one to the next, the log ratio of the cell it falls into: the
likelihood ratio where these are independent. `Linear` is a logistic regression on standardised coordinates, fitted by
scikit-learn. Validity never depends on either; a bad score loses power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpaudit.events.binning import Binning, Counts, Tables, around, atoms_of, binning
from dpaudit.events.features import Coordinate, Difference, Shape, plain_feature, rounded, single, stored
from dpaudit.events.weights import weights
from dpaudit.outputs import Column, Outputs, Path, Token

GROUPS = 20  # cells of one coordinate's numbers
FEWEST_IN_A_TAIL = 32  # outputs of the pilot beyond the last edge that they choose
ALIKE = 8.0  # from the 5 % to the 95 % quantile of all, at most, in units of a coordinate's quartile distance
BEYOND = 8  # further edges, where a longer search will still find numbers


Part = Coordinate | Difference | Shape
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Term:
    """What one coordinate, or the difference of two, adds to the score: a weight for each cell of its binning."""

    coordinate: Part
    bins: Binning
    weights: tuple[float, ...]

    def values(self, outputs: Outputs) -> npt.NDArray[np.float64]:
        """The weight of each run."""
        column = self.coordinate.column(outputs)
        cell = np.searchsorted(self.bins.edges, single(column.values), side="left")
        codes = column.tokens
        rows = np.flatnonzero(codes)
        cell[rows] = self.bins.token_cells(codes[rows])
        return np.asarray(self.weights)[cell]

    def to_dict(self) -> dict[str, Any]:
        """The term as results store it."""
        return {
            "coordinate": self.coordinate.to_dict(),
            "edges": [stored(float(edge)) for edge in self.bins.edges],
            "tokens": [{"label": token.label, "code": token.code} for token in self.bins.tokens],
            "weights": list(self.weights),
        }

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> Term:
        """The term of a stored result."""
        tokens = tuple(Token(token["label"], token["code"]) for token in written["tokens"])
        return cls(
            plain_feature(written["coordinate"]),  # type: ignore[arg-type]
            Binning(np.array([float(edge) for edge in written["edges"]], np.float32), tokens),
            tuple(written["weights"]),
        )


@dataclass(frozen=True, slots=True)
class LogRatio:
    """The sum over coordinates of the log ratio of the cell each falls into."""

    terms: tuple[Term, ...]
    kind: ClassVar[str] = "log-ratio"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(path for term in self.terms for path in term.coordinate.wanted)

    def column(self, outputs: Outputs) -> Column:
        total = np.zeros(outputs.runs)
        for term in self.terms:
            total += term.values(outputs)
        return rounded(Column(total))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "terms": [term.to_dict() for term in self.terms]}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> LogRatio:
        """The score of a stored result."""
        return cls(tuple(Term.from_dict(term) for term in stored["terms"]))

    def __str__(self) -> str:
        shapes, steps = (sum(isinstance(term.coordinate, kind) for term in self.terms) for kind in (Shape, Difference))
        shape = "the shape and " if shapes else ""
        return f"log-ratio score of {shape}{len(self.terms) - shapes} {'steps' if steps else 'coordinates'}"


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum of standardised coordinates; a coordinate that is no number counts as its mean."""

    paths: tuple[Path, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    kind: ClassVar[str] = "linear"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(self.paths)

    def column(self, outputs: Outputs) -> Column:
        total = np.zeros(outputs.runs)
        for path, centre, scale, weight in zip(self.paths, self.centres, self.scales, self.weights, strict=True):
            values = outputs.column(path).values.astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                total += weight * np.nan_to_num((values - centre) / scale, nan=0.0, posinf=1e6, neginf=-1e6)
        return rounded(Column(total))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "paths": [list(path) for path in self.paths],
            "centres": list(self.centres),
            "scales": list(self.scales),
            "weights": list(self.weights),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Linear:
        """The score of a stored result."""
        fields = {name: tuple(stored[name]) for name in ("centres", "scales", "weights")}
        return cls(tuple(tuple(path) for path in stored["paths"]), **fields)

    def __str__(self) -> str:
        return f"logistic score of {len(self.paths)} coordinates"


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


def _same_range(numbers: Sequence[Floats]) -> bool:
    """Whether each of several coordinates spreads about as far as all of them together."""
    if len(numbers) < 2:
        return False
    finite = [each[np.isfinite(each)].astype(np.float64) for each in numbers]
    low, high = np.quantile(np.concatenate(finite), [0.05, 0.95])
    quarters = [np.quantile(each, [0.25, 0.75]) for each in finite]
    return all(low <= first and third <= high and high - low <= ALIKE * (third - first) for first, third in quarters)


def _edges(numbers: Floats) -> Floats:
    """`GROUPS` cells of about equal mass in the middle, tails, and a cell of its own for each value that recurs."""
    finite = numbers[np.isfinite(numbers)]
    middle = finite[(np.linspace(0.0, 1.0, GROUPS + 1)[1:-1] * (len(finite) - 1)).astype(np.intp)]
    tails = [_tail(finite), -_tail(-finite[::-1])]
    return np.unique(np.concatenate([middle, *tails, around(atoms_of(numbers))]))


def _tail(numbers: Floats) -> Floats:
    """Edges of the lower tail of sorted numbers, from one to the next half their mass; the last ones as if it went on.

    Where a tail falls off exponentially, its halvings are evenly apart.
    """
    first = np.ceil(np.log2(GROUPS))
    halvings = np.arange(first, max(np.log2(len(numbers) / FEWEST_IN_A_TAIL), first + 2.0))
    seen = numbers[(0.5**halvings * (len(numbers) - 1)).astype(np.intp)].astype(np.float64)
    apart = (seen[0] - seen[-1]) / (len(seen) - 1)
    return single(np.concatenate([seen, seen[-1] - apart * np.arange(1.0, BEYOND + 1.0)]))


def log_ratio(terms: Tables, counts: Counts) -> LogRatio:
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


def _given(table: Counts, line: npt.NDArray[np.bool_]) -> Counts:
    """The counts of the numbers alone."""
    kept = np.zeros_like(table)
    kept[: len(line)][line] = table[: len(line)][line]
    return kept


def learn_linear(first: Outputs, second: Outputs, paths: Sequence[Path]) -> Linear:
    """The logistic score from a pilot; needs scikit-learn (`ImportError` without it)."""
    from sklearn.linear_model import LogisticRegression

    matrix = np.concatenate([_numbers(side, paths) for side in (first, second)])
    with np.errstate(invalid="ignore"):
        finite = np.where(np.isfinite(matrix), matrix, np.nan)
        centres = np.nan_to_num(np.nanmedian(finite, axis=0))
        scales = np.nan_to_num(np.nanmedian(np.abs(finite - centres), axis=0)) * 1.4826
    scales = np.where(scales > 0.0, scales, 1.0)
    scaled = np.nan_to_num((finite - centres) / scales)
    side = np.repeat([1, 0], [first.runs, second.runs])
    weights = LogisticRegression(C=1.0, max_iter=50).fit(np.clip(scaled, -30.0, 30.0), side).coef_[0]
    return Linear(
        tuple(paths),
        tuple(float(centre) for centre in centres),
        tuple(float(scale) for scale in scales),
        tuple(float(weight) for weight in weights),
    )


def _numbers(outputs: Outputs, paths: Sequence[Path]) -> npt.NDArray[np.float64]:
    return np.column_stack([outputs.column(path).values.astype(np.float64) for path in paths])
