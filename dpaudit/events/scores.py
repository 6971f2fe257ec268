"""Joint events: one number that sums what all coordinates say, learned on a pilot and stored whole, as numbers.

`LogRatio` adds, for each coordinate or each step from one to the next, the log ratio of the cell it falls into: the
likelihood ratio where these are independent. `Linear` is a weighted sum of standardised coordinates, of their
distances from the centre, or of squares. Validity never depends on either; a bad score loses power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.events.cells import Binning
from dpaudit.events.features import Coordinate, Difference, Shape, plain_feature, rounded, single, stored
from dpaudit.outputs import Column, Numbers, Outputs, Path, Token

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


def _clipped(numbers: Reals) -> Reals:
    return np.clip(numbers, -1.0, 1.0)


OF: Mapping[str, Callable[[Reals], Reals]] = {  # what of standardised numbers is weighed
    "values": np.asarray,
    "clipped": _clipped,
    "distances": np.abs,
    "squares": np.square,
}


def weighed(numbers: Numbers, centre: float | Reals, scale: float | Reals, of: str) -> Reals:
    """What is weighed of numbers, of the shape they have: 0 where there is none, infinities as a million."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = OF[of]((numbers.astype(np.float64) - centre) / scale)
    return found if np.isfinite(found).all() else np.nan_to_num(found, nan=0.0, posinf=1e6, neginf=-1e6)


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum over standardised coordinates, `of` their values or another function of them.

    A coordinate that is no number counts as its centre.
    """

    paths: tuple[Path, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    of: str = "values"
    kind: ClassVar[str] = "linear"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(self.paths)

    def column(self, outputs: Outputs) -> Column:
        total = np.zeros(outputs.runs)
        # entry by entry: a product of matrices may add in an order that depends on the other runs
        for path, centre, scale, weight in zip(self.paths, self.centres, self.scales, self.weights, strict=True):
            total += weight * weighed(outputs.column(path).values, centre, scale, self.of)
        return rounded(Column(total))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "paths": [list(path) for path in self.paths],
            "centres": list(self.centres),
            "scales": list(self.scales),
            "weights": list(self.weights),
            **({"of": self.of} if self.of != "values" else {}),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Linear:
        """The score of a stored result."""
        fields = {name: tuple(stored[name]) for name in ("centres", "scales", "weights")}
        return cls(tuple(tuple(path) for path in stored["paths"]), **fields, of=stored.get("of", "values"))

    def __str__(self) -> str:
        what = {"values": "", "clipped": "clipped "}.get(self.of, f"{self.of} of ")
        return f"linear score of {what}{len(self.paths)} coordinates"
