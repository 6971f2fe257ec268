"""Features of several coordinates together: ranks, sums, differences, counts and positions; and the table of kinds."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals, Singles
from dpaudit.events.features import (
    FEW,
    Coordinate,
    Decimals,
    Feature,
    OfPaths,
    OfTwo,
    Residue,
    Shape,
    Whole,
    rounded,
    single,
    spell,
    taken_over,
)
from dpaudit.events.grammar import Expression
from dpaudit.outputs.canonical import ABSENT, Column, Numbers, Outputs, Path

PIECE = 1 << 20  # numbers that are looked at together


def _pieces(outputs: Outputs, paths: tuple[Path, ...], steps: bool = False) -> Iterator[Reals]:
    """The numbers at some paths, a row for each run, some runs at a time; NaN where there is none.

    As `steps`, each less the one before it: the first as it is.
    """
    runs = max(1, PIECE // len(paths)) if paths else max(1, outputs.runs)
    for start in range(0, max(1, outputs.runs), runs):
        # of one run it may be the outputs' own
        matrix = np.ascontiguousarray(outputs.numbers(paths, slice(start, start + runs)).T)
        if steps:
            with np.errstate(invalid="ignore"):
                matrix = np.concatenate([matrix[:, :1], np.diff(matrix, axis=1)], axis=1)
        yield matrix


def levels_of(outputs: Outputs, paths: tuple[Path, ...], steps: bool, parts: tuple[float, ...]) -> tuple[float, ...]:
    """The different numbers below which these parts of all entries at the paths lie, or of their steps."""
    numbers = np.concatenate([matrix[np.isfinite(matrix)] for matrix in _pieces(outputs, paths, steps)])
    return tuple(float(level) for level in np.unique(single(np.quantile(numbers, parts)))) if len(numbers) else ()


@dataclass(frozen=True, slots=True)
class OfEntries(OfPaths, ABC):
    """A number that each run has by its entries at the paths, or by their steps."""

    @abstractmethod
    def of(self, matrix: Reals) -> Numbers:
        """The number of each run, from a matrix with a row for each of them."""

    def column(self, outputs: Outputs) -> Column:
        with np.errstate(all="ignore"):
            parts = [self.of(matrix) for matrix in _pieces(outputs, self.paths, getattr(self, "steps", False))]
        return rounded(Column(np.concatenate(parts)))


@dataclass(frozen=True, slots=True)
class Ordered(OfEntries, kind="ordered"):
    """The number of a given rank among the coordinates, or their steps: 0 the least, -1 the greatest."""

    rank: int
    steps: bool = False

    def of(self, matrix: Reals) -> Numbers:
        if self.rank in (0, -1):
            return np.asarray((np.fmax if self.rank else np.fmin).reduce(matrix, axis=1))
        numbers = single(matrix)  # in the same order, and quicker to sort
        if self.rank > 0:  # NaN sorts last, so both ends count numbers only
            return np.sort(numbers, axis=1)[:, self.rank]
        return -np.sort(-numbers, axis=1)[:, -self.rank - 1]

    def __str__(self) -> str:
        over = taken_over(self.paths, self.steps)
        return {0: f"min({over})", -1: f"max({over})"}.get(self.rank, f"sorted({over})[{self.rank}]")


@dataclass(frozen=True, slots=True)
class Above(OfEntries, kind="above"):
    """How many of the coordinates, or of their steps, are numbers above a threshold."""

    threshold: float
    steps: bool = False

    def of(self, matrix: Reals) -> Singles:
        return np.asarray((single(matrix) > np.float32(self.threshold)).sum(axis=1), np.float32)

    def __str__(self) -> str:
        few = len(self.paths) < FEW and not self.steps
        over = f"{'entries of ' if few else ''}{taken_over(self.paths, self.steps)}"
        return f"number of {over} above {np.float32(self.threshold)!s}"


@dataclass(frozen=True, slots=True)
class Difference(OfTwo, kind="difference"):
    """One coordinate less another."""

    def column(self, outputs: Outputs) -> Column:
        left, right = (outputs.column(path).values.astype(np.float64) for path in (self.left, self.right))
        with np.errstate(invalid="ignore"):
            return rounded(Column(left - right))

    def __str__(self) -> str:
        return f"{spell(self.left)} - {spell(self.right)}"


@dataclass(frozen=True, slots=True)
class Sum(OfEntries, kind="sum"):
    """The sum of the coordinates that are numbers."""

    def of(self, matrix: Reals) -> Reals:
        return np.asarray(np.nansum(matrix, axis=1))

    def __str__(self) -> str:
        return f"sum({taken_over(self.paths)})"


@dataclass(frozen=True, slots=True)
class Equal(OfTwo, kind="equal"):
    """1 where two coordinates are equal, number or token, otherwise 0."""

    def column(self, outputs: Outputs) -> Column:
        left, right = outputs.column(self.left), outputs.column(self.right)
        numbers = single(left.values) == single(right.values)
        tokens = (left.tokens == right.tokens) & (left.tokens != 0)
        return Column((numbers | tokens).astype(np.float32))

    def __str__(self) -> str:
        return f"({spell(self.left)} == {spell(self.right)})"


@dataclass(frozen=True, slots=True)
class Extreme(OfEntries, kind="extreme"):
    """The position of the greatest coordinate, or of the least; the first of equals, NaN where none is a number."""

    greatest: bool = True

    def of(self, matrix: Reals) -> Singles:
        sign = 1.0 if self.greatest else -1.0
        finite = np.clip(sign * matrix, -sys.float_info.max, None)  # so that -inf still is above what is no number
        position: Singles = np.argmax(np.where(np.isnan(matrix), -np.inf, finite), axis=1).astype(np.float32)
        position[np.isnan(matrix).all(axis=1)] = np.nan
        return position

    def __str__(self) -> str:
        return f"{'argmax' if self.greatest else 'argmin'}({taken_over(self.paths)})"


@dataclass(frozen=True, slots=True)
class Present(OfPaths, kind="present"):
    """How many of the coordinates are there."""

    def column(self, outputs: Outputs) -> Column:
        count = np.zeros(outputs.runs, np.float32)
        for path in self.paths:
            codes = outputs.column(path).codes
            count += 1.0 if codes is None else codes != np.uint64(ABSENT.code)
        return Column(count)

    def __str__(self) -> str:
        return f"number of entries present in {taken_over(self.paths)}"


@dataclass(frozen=True, slots=True)
class Distinct(OfPaths, kind="distinct"):
    """How many different values stand among the coordinates that are there, numbers and tokens."""

    def column(self, outputs: Outputs) -> Column:
        cells = np.empty((len(self.paths), outputs.runs), np.uint64)
        for row, path in zip(cells, self.paths, strict=True):
            column = outputs.column(path)
            numbers = (single(column.values) + np.float32(0.0)).view(np.uint32)  # of the two zeros one
            row[:] = np.where(column.tokens == 0, numbers, column.tokens)
        cells.sort(axis=0)
        absent = np.any(cells == np.uint64(ABSENT.code), axis=0)
        changes = np.count_nonzero(cells[1:] != cells[:-1], axis=0)
        return Column((changes + 1.0 - absent).astype(np.float32))

    def __str__(self) -> str:
        return f"number of different entries of {taken_over(self.paths)}"


@dataclass(frozen=True, slots=True)
class FirstOf(OfPaths, kind="first-of"):
    """The position of the first coordinate of a kind: a number, a token (by its code), or any number at all.

    Their number of coordinates where there is none.
    """

    number: float | None = None
    code: int | None = None
    label: str = "a number"

    def column(self, outputs: Outputs) -> Column:
        first = np.full(outputs.runs, len(self.paths), np.float32)
        for j in range(len(self.paths) - 1, -1, -1):
            column = outputs.column(self.paths[j])
            if self.code is not None:
                first[column.tokens == np.uint64(self.code)] = j
            elif self.number is not None:
                first[single(column.values) == np.float32(self.number)] = j
            else:
                first[column.tokens == 0] = j
        return Column(first)

    def __str__(self) -> str:
        return f"position of the first {self.label} in {taken_over(self.paths)}"


@dataclass(frozen=True, slots=True)
class Product(OfTwo, kind="product"):
    """One coordinate times another, each less a centre."""

    centres: tuple[float, float]

    def column(self, outputs: Outputs) -> Column:
        left, right = (outputs.column(path).values.astype(np.float64) for path in (self.left, self.right))
        with np.errstate(invalid="ignore", over="ignore"):
            return rounded(Column((left - self.centres[0]) * (right - self.centres[1])))

    def __str__(self) -> str:
        sides = zip((self.left, self.right), self.centres, strict=True)
        return " * ".join(f"({spell(path)} - {centre:.6g})" if centre else spell(path) for path, centre in sides)


KINDS = (
    *(Coordinate, Shape, Whole, Residue, Decimals),
    *(Ordered, Above, Difference, Product, Sum, Equal, Extreme, Present, Distinct, FirstOf, Expression),
)


def plain_feature(written: dict[str, Any]) -> Feature | None:
    """The feature of a written result; None for a kind that is none of these.

    >>> print(plain_feature({"kind": "coordinate", "path": [2]}))
    output[2]
    """
    return next((each.from_dict(written) for each in KINDS if each.kind == written.get("kind")), None)
