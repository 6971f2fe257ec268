"""Joint events: one number that sums what all coordinates say, learned on a pilot and stored whole, as numbers.

`LogRatio` adds, for each coordinate or each step from one to the next, the log ratio of the cell it falls into: the
likelihood ratio where these are independent. `Linear` is a logistic regression on standardised coordinates, fitted by
scikit-learn. Validity never depends on either; a bad score loses power.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.events.cells import Binning
from dpaudit.events.features import Coordinate, Difference, Shape, plain_feature, rounded, single, stored
from dpaudit.outputs import Column, Outputs, Path, Token

Part = Coordinate | Difference | Shape


@dataclass(frozen=True, slots=True)
class Term:
    """What one coordinate, or the difference of two, adds to the score: a weight for each cell of its binning."""

    coordinate: Part
    bins: Binning
    weights: tuple[float, ...]

    def values(self, outputs: Outputs) -> Reals:
        """The weight of each run, in nats: float64[runs]."""
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
