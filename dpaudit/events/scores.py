"""Joint events: one number that sums what all coordinates say, learned on a pilot and stored whole, as numbers.

`LogRatio` adds, for each coordinate, each step from one to the next or each pair of neighbours, the log ratio of the
cell it falls into: the likelihood ratio where these are independent, or form a chain. `Linear` is a weighted sum of
standardised coordinates, of their distances from the centre, or of squares. Validity never depends on either; a bad
score loses power.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.base.arrays import Places, Reals
from dpaudit.events.cells import Binning
from dpaudit.events.features import plain_feature
from dpaudit.events.features.column import OfPaths, rounded, single, stored
from dpaudit.events.features.joint import Difference, Product
from dpaudit.events.features.plain import Coordinate, Shape
from dpaudit.outputs.canonical import Column, Numbers, Outputs, Path, Token


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Which cells two coordinates fall into, as one number: that of the left one times all there are, plus the right's.

    A chain of them is what a process without a longer memory says (Markov 1913).
    """

    left: Coordinate
    right: Coordinate
    bins: Binning
    kind: ClassVar[str] = "neighbours"

    @property
    def wanted(self) -> frozenset[Path]:
        return self.left.wanted | self.right.wanted

    def column(self, outputs: Outputs) -> Column:
        left, right = (cells_in(self.bins, each.column(outputs)) for each in (self.left, self.right))
        return rounded(Column(left * self.bins.cells + right))

    def to_dict(self) -> dict[str, Any]:
        sides = {"left": self.left.to_dict(), "right": self.right.to_dict()}
        return {"kind": self.kind, **sides, **_written(self.bins)}

    def __str__(self) -> str:
        return f"{self.left} beside {self.right}"


Part = Coordinate | Difference | Product | Shape | Neighbours


@dataclass(frozen=True, slots=True)
class Term:
    """What one coordinate, the difference of two or a pair of neighbours adds to the score: a weight for each cell."""

    coordinate: Part
    bins: Binning
    weights: tuple[float, ...]

    def values(self, outputs: Outputs) -> Reals:
        """The weight of each run, in nats: float64[runs]."""
        return np.asarray(self.weights)[cells_in(self.bins, self.coordinate.column(outputs))]

    def to_dict(self) -> dict[str, Any]:
        """The term as results store it."""
        return {
            "coordinate": self.coordinate.to_dict(),
            **_written(self.bins),
            "weights": list(map(stored, self.weights)),
        }

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> "Term":
        """The term of a stored result."""
        return cls(_part(written["coordinate"]), _bins(written), tuple(map(float, written["weights"])))


def cells_in(bins: Binning, column: Column) -> Places:
    """The cell that each entry of a column falls into."""
    cell = np.searchsorted(bins.edges, single(column.values), side="left")
    codes = column.tokens
    rows = np.flatnonzero(codes)
    cell[rows] = bins.token_cells(codes[rows])
    return cell


def _written(bins: Binning) -> dict[str, Any]:
    return {
        "edges": [stored(float(edge)) for edge in bins.edges],
        "tokens": [{"label": token.label, "code": token.code} for token in bins.tokens],
    }


def _bins(written: dict[str, Any]) -> Binning:
    tokens = tuple(Token(token["label"], token["code"]) for token in written["tokens"])
    return Binning(np.array([float(edge) for edge in written["edges"]], np.float32), tokens)


def _part(written: dict[str, Any]) -> Part:
    if written["kind"] != Neighbours.kind:
        return plain_feature(written)  # type: ignore[return-value]
    left, right = (plain_feature(written[side]) for side in ("left", "right"))
    return Neighbours(left, right, _bins(written))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class LogRatio:
    """The sum over coordinates of the log ratio of the cell each falls into.

    `pooled`: coordinates of the same cells have the same weights, learned from all of them together.
    """

    terms: tuple[Term, ...]
    pooled: bool = False
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
        pooled = {"pooled": True} if self.pooled else {}
        return {"kind": self.kind, **pooled, "terms": [term.to_dict() for term in self.terms]}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "LogRatio":
        """The score of a stored result."""
        return cls(tuple(Term.from_dict(term) for term in stored["terms"]), stored.get("pooled", False))

    def __str__(self) -> str:
        kinds = {type(term.coordinate) for term in self.terms}
        shape = "the shape and " if Shape in kinds else ""
        what = "neighbours" if Neighbours in kinds else "steps" if Difference in kinds else "coordinates"
        what += " and products" if Product in kinds else ""
        alike = ", all alike" if self.pooled else ""
        return f"log-ratio score of {shape}{len(self.terms) - (Shape in kinds)} {what}{alike}"


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
class Linear(OfPaths, kind="linear"):
    """A weighted sum over standardised coordinates, `of` their values or another function of them.

    A coordinate that is no number counts as its centre.
    """

    centres: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    of: str = "values"

    def column(self, outputs: Outputs) -> Column:
        total = np.zeros(outputs.runs)
        # entry by entry: a product of matrices may add in an order that depends on the other runs
        for path, centre, scale, weight in zip(self.paths, self.centres, self.scales, self.weights, strict=True):
            total += weight * weighed(outputs.column(path).values, centre, scale, self.of)
        return rounded(Column(total))

    def __str__(self) -> str:
        what = {"values": "", "clipped": "clipped "}.get(self.of, f"{self.of} of ")
        return f"linear score of {what}{len(self.paths)} coordinates"
