"""Joint events: one number that sums what all coordinates say, learned on a pilot and stored whole, as numbers.

`LogRatio` adds, for each coordinate, the log ratio of the cell it falls into: the likelihood ratio where
coordinates are independent. `Linear` is a logistic regression on standardised coordinates, fitted by
scikit-learn. Validity never depends on either; a bad score loses power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpaudit.events.binning import Binning, binning
from dpaudit.events.features import Coordinate, rounded, single, stored
from dpaudit.sampling.outputs import Column, Outputs, Path, Token

GROUPS = 24  # cells of one coordinate's numbers
PSEUDO_COUNT = 3.0


@dataclass(frozen=True, slots=True)
class Term:
    """What one coordinate adds to the score: a weight for each cell of its binning."""

    coordinate: Coordinate
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
        place = written["coordinate"]
        tokens = tuple(Token(token["label"], token["code"]) for token in written["tokens"])
        return cls(
            Coordinate(tuple(place["path"]), place.get("centre", 0.0)),
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
        return frozenset(term.coordinate.path for term in self.terms)

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
        return f"log-ratio score of {len(self.terms)} coordinates"


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


def learn_log_ratio(first: Outputs, second: Outputs, coordinates: Sequence[Coordinate]) -> LogRatio:
    """The log-ratio score from a pilot: cells of equal mass, counts smoothed by `PSEUDO_COUNT`."""
    labels = {**first.labels, **second.labels}
    return LogRatio(tuple(_term(first, second, coordinate, labels) for coordinate in coordinates))


def _term(first: Outputs, second: Outputs, coordinate: Coordinate, labels: dict[int, str]) -> Term:
    columns = [coordinate.column(side) for side in (first, second)]
    tokens = np.concatenate([column.tokens for column in columns])
    values = np.concatenate([single(column.values) for column in columns])
    fine = binning(Column(values, tokens), labels)
    numbers = np.sort(values[tokens == 0])
    edges = fine.edges
    if len(edges) > GROUPS:
        picks = numbers[np.linspace(0, len(numbers) - 1, GROUPS + 1).astype(np.intp)[1:-1]]
        edges = np.unique(picks)
    coarse = Binning(edges, fine.tokens)
    counts = [coarse.counts(column) + PSEUDO_COUNT for column in columns]
    weights = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    empty = counts[0] + counts[1] <= 2.0 * PSEUDO_COUNT
    weights[empty] = 0.0
    return Term(coordinate, coarse, tuple(float(weight) for weight in weights))


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
