"""Cells of one feature: ordered bins of its numbers, and its tokens. Bin i holds the numbers in (edges[i-1], edges[i]].

Search counts them; a learned score has a weight for each.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Integers, Places, Singles, Words
from dpaudit.events.features.column import single
from dpaudit.outputs.canonical import Column, Token


@dataclass(frozen=True, slots=True, eq=False)
class Binning:
    """The cells of a feature: `len(edges) + 1` bins, then a cell for each token, then one for tokens never seen.

    With `step` the edges are even and bins are found by arithmetic; a value within rounding of an edge may
    then be counted one bin aside, which concerns the search alone.
    """

    edges: Singles
    tokens: tuple[Token, ...] = ()
    step: float | None = None
    _order: Places = field(init=False, repr=False, compare=False)
    _known: Words = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        codes = np.array([token.code for token in self.tokens], np.uint64)
        object.__setattr__(self, "_order", np.argsort(codes))
        object.__setattr__(self, "_known", codes[self._order])

    def __eq__(self, other: object) -> bool:  # of arrays, == is no truth value
        return isinstance(other, Binning) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

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
        found = np.zeros(self.bins, np.bool_)
        found[1:-1] = np.nextafter(self.edges[1:], np.float32(-np.inf)) == self.edges[:-1]
        return found

    def counts(self, column: Column, times: Integers | None = None) -> Integers:
        """How many runs fall into each cell: int64[cells]; each entry of the column counts `times` over, int64 too."""
        cell = self._number_cells(column.values)
        if column.codes is not None or self._has_nan(column.values):
            codes = column.tokens
            rows = np.flatnonzero(codes)
            cell[rows] = self.token_cells(codes[rows])
        if times is None:
            return np.bincount(cell, minlength=self.cells)
        return np.bincount(cell, weights=times, minlength=self.cells).astype(np.int64)

    def _has_nan(self, values: npt.NDArray[np.generic]) -> bool:
        return bool(len(values)) and values.dtype.kind == "f" and bool(np.isnan(np.min(values)))

    def _number_cells(self, values: npt.NDArray[np.generic]) -> Places:
        if len(self.edges) == 0:
            return np.zeros(len(values), np.intp)
        if self.step is None:
            return np.searchsorted(self.edges, values, side="left")
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
