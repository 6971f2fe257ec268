"""Learned scores: one number that sums what all coordinates say, learned on a pilot and stored whole, as numbers.

`Binning` has the cells of one feature, which search counts; a score has a weight for each: ordered bins of
its numbers, bin i those in (edges[i-1], edges[i]], and its tokens.

`LogRatio` adds, for each coordinate, each step from one to the next or each pair of neighbours, the log ratio of the
cell it falls into: the likelihood ratio where these are independent, or form a chain. `Linear` is a weighted sum of
standardised coordinates, of their distances from the centre, or of squares. Validity never depends on either; a bad
score loses power.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Integers, Places, Reals, Singles, Words
from dpaudit.events.features import Coordinate, OfPaths, Shape, rounded, single, stored
from dpaudit.events.grammar import Expression
from dpaudit.events.joint import plain_feature
from dpaudit.outputs.canonical import Column, Numbers, Outputs, Path, Token

FEW_EDGES, FEW_VALUES = 3, 1 << 10  # below either, a search is as quick as buckets are
BUCKETS, STEPS = 16, 2  # for each edge, and the most edges of one that are compared one by one
TAILS, UNSURE = (0, 8, 4), 2  # parts of the edges at either end that are outside the grid, and that a search finds


class _Buckets:
    """Finds the cells of many numbers, as `searchsorted` does, to the bit; those of NaN are some cell.

    Each step to a number's bucket, of an even grid, keeps order, as rounding does: whatever is in a lower bucket is
    below, and only the edges of its own have to be compared with it.
    """

    def __init__(self, edges: Singles, tail: int) -> None:
        left_out = len(edges) // tail if tail else 0
        self.edges, self.padded = edges, np.append(edges, np.float32(np.inf))
        self.low, self.high = edges[left_out], edges[-1 - left_out]
        with np.errstate(all="ignore"):
            self.scale = np.float32(BUCKETS * len(edges)) / (self.high - self.low)
        even = bool(np.isfinite(self.low) and 0.0 < self.scale < np.inf)
        many = np.bincount(self._of(edges)) if even else np.array([len(edges)])
        self.first, self.crowded, self.steps = np.cumsum(many) - many, many > STEPS, min(STEPS, int(many.max()))
        self.unsure = int(many[self.crowded].sum())  # edges that a search has to tell apart

    def _of(self, values: npt.NDArray[np.generic]) -> Places:
        place: Singles = np.fmin(values if values.dtype == np.float32 else single(values), self.high)
        np.fmax(place, self.low, out=place)
        place -= self.low
        place *= self.scale
        return place.astype(np.intp)

    def __call__(self, values: npt.NDArray[np.generic]) -> Places:
        bucket = self._of(values)
        cell: Places = self.first.take(bucket)
        for _ in range(self.steps):
            cell += values > self.padded.take(cell)  # type: ignore[operator]
        if self.unsure:
            rows = np.flatnonzero(self.crowded.take(bucket))
            cell[rows] = np.searchsorted(self.edges, values[rows], side="left")
        return cell


@dataclass(frozen=True, slots=True, eq=False)
class Binning:
    """The cells of a feature: `len(edges) + 1` bins, then a cell for each token, then one for all other tokens.

    With `step` the edges are even and bins are found by arithmetic; a value within rounding of an edge may
    then be counted one bin aside, which concerns the search alone.
    """

    edges: Singles
    tokens: tuple[Token, ...] = ()
    step: float | None = None
    _order: Places = field(init=False, repr=False, compare=False)
    _known: Words = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)  # of numbers, and so the same in every process
    _buckets: list[_Buckets | None] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        codes = np.array([token.code for token in self.tokens], np.uint64)
        object.__setattr__(self, "_order", np.argsort(codes))
        object.__setattr__(self, "_known", codes[self._order])
        object.__setattr__(self, "_hash", hash((len(self.edges), len(codes), *self.edges[:4].tolist())))

    def __eq__(self, other: object) -> bool:  # of arrays, == is no truth value
        return isinstance(other, Binning) and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash  # asked for at every look-up

    def _key(self) -> tuple[bytes, tuple[Token, ...], float | None]:
        return self.edges.tobytes(), self.tokens, self.step

    @property
    def bins(self) -> int:
        """The number of ordered bins."""
        return len(self.edges) + 1

    @property
    def cells(self) -> int:
        """The number of all cells."""
        return self.bins + len(self.tokens) + 1

    @property
    def alone(self) -> Bools:
        """Which bins hold one value only: bool[bins]."""
        single_valued = np.zeros(self.bins, np.bool_)
        with np.errstate(over="ignore"):  # below the least of all is none
            single_valued[1:-1] = np.nextafter(self.edges[1:], np.float32(-np.inf)) == self.edges[:-1]
        return single_valued

    def counts(self, column: Column, times: Integers | None = None) -> Integers:
        """How many runs fall into each cell: int64[cells]; each entry of the column counts `times` over, int64 too."""
        return np.bincount(self.places(column), times, self.cells).astype(np.int64, copy=False)

    def places(self, column: Column) -> Places:
        """The cell that each entry of a column falls into."""
        cell = self._number_cells(column.values)
        if column.codes is not None or self._has_nan(column.values):
            codes = column.tokens
            rows = np.flatnonzero(codes)
            cell[rows] = self.token_cells(codes[rows])
        return cell

    def _has_nan(self, values: npt.NDArray[np.generic]) -> bool:
        return bool(len(values)) and values.dtype.kind == "f" and bool(np.isnan(values.min()))

    def _number_cells(self, values: npt.NDArray[np.generic]) -> Places:
        if len(self.edges) == 0:
            return np.zeros(len(values), np.intp)
        if self.step is None:
            if len(self.edges) >= FEW_EDGES and len(values) >= FEW_VALUES and not self._buckets:
                trials = (_Buckets(self.edges, tail) for tail in TAILS)
                self._buckets.append(next((each for each in trials if each.unsure * UNSURE <= len(self.edges)), None))
            buckets = self._buckets[0] if self._buckets and len(values) >= FEW_VALUES else None
            return np.searchsorted(self.edges, values, side="left") if buckets is None else buckets(values)
        with np.errstate(invalid="ignore", over="ignore"):
            place: Singles = single(values) - self.edges[0]  # before the division, which would lose the low digits
            place *= np.float32(1.0 / self.step)
            place += np.float32(1.0)
            np.clip(place, 0.0, len(self.edges), out=place)
            return place.astype(np.intp)

    def token_cells(self, codes: Words) -> Places:
        """The cells of tokens, by their codes; both in one shape."""
        if not self.tokens:
            return np.full(len(codes), self.bins, np.intp)
        place = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
        return self.bins + np.where(self._known[place] == codes, self._order[place], len(self.tokens))

    def interval(self, first: int, last: int) -> tuple[float, float]:
        """The interval (low, high] of the bins first .. last."""
        low = -np.inf if first == 0 else float(self.edges[first - 1])
        high = np.inf if last == len(self.edges) else float(self.edges[last])
        return low, high


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
        left, right = (self.bins.places(each.column(outputs)) for each in (self.left, self.right))
        return rounded(Column(self.joined(left, right)))

    def joined(self, left: Places, right: Places) -> Places:
        """The numbers, from the cells that either falls into: the places of a cell for each."""
        return left * self.bins.cells + right

    def to_dict(self) -> dict[str, Any]:
        sides = {"left": self.left.to_dict(), "right": self.right.to_dict()}
        return {"kind": self.kind, **sides, **_written(self.bins)}

    def __str__(self) -> str:
        return f"{self.left} beside {self.right}"


Part = Coordinate | Expression | Shape | Neighbours


@dataclass(frozen=True, slots=True)
class Term:
    """What one coordinate, the difference of two or a pair of neighbours adds to the score: a weight for each cell."""

    coordinate: Part
    bins: Binning
    weights: tuple[float, ...]
    table: Reals = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", np.array(self.weights))

    def values(self, outputs: Outputs) -> Reals:
        """The weight of each run, in nats: float64[runs]."""
        return self.table.take(self.bins.places(self.coordinate.column(outputs)))

    def to_dict(self) -> dict[str, Any]:
        """The term as results store it."""
        weights = list(map(stored, self.weights))
        return {"coordinate": self.coordinate.to_dict(), **_written(self.bins), "weights": weights}

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> "Term":
        """The term of a stored result."""
        return cls(_part(written["coordinate"]), _bins(written), tuple(map(float, written["weights"])))


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
        words = {term.coordinate.word for term in self.terms if isinstance(term.coordinate, Expression)}
        what = "neighbours" if Neighbours in kinds else "steps" if words == {"minus"} else "coordinates"
        what += " and products" if words == {"times"} else " and expressions" if words - {"minus"} else ""
        alike = ", all alike" if self.pooled else ""
        return f"log-ratio score of {shape}{len(self.terms) - (Shape in kinds)} {what}{alike}"


OF: Mapping[str, Callable[[Reals], Reals]] = {  # what of standardised numbers is weighed
    "values": np.asarray,
    "clipped": lambda numbers: np.clip(numbers, -1.0, 1.0),
    "distances": np.abs,
    "squares": np.square,
}


def weighed(numbers: Numbers, centre: float | Reals, scale: float | Reals, of: str) -> Reals:
    """What is weighed of numbers, of the shape they have: 0 where there is none, infinities as a million."""
    with np.errstate(invalid="ignore", over="ignore"):
        terms = np.subtract(numbers, centre, dtype=np.float64)
        terms = OF[of](np.divide(terms, scale, out=terms))
    return terms if np.isfinite(terms).all() else np.nan_to_num(terms, nan=0.0, posinf=1e6, neginf=-1e6)


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
