"""Features of several coordinates together: equality, counts and positions; the table of kinds, older ones too."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.events.features import (
    Coordinate,
    Feature,
    OfFields,
    OfPaths,
    Shape,
    Whole,
    read_fields,
    single,
    spell,
    taken_over,
)
from dpaudit.events.grammar import Expression
from dpaudit.outputs.canonical import ABSENT, Column, Outputs, Path

Paths = tuple[Path, ...]


def ordered(paths: Paths, rank: int, steps: bool = False) -> Expression:
    """The number of a given rank among the coordinates, or their steps: 0 the least, -1 the greatest."""
    of = (Expression("steps", paths),) if steps else paths
    return Expression({0: "min", -1: "max"}[rank], of) if rank in (0, -1) else Expression("ordered", of, (float(rank),))


def above(paths: Paths, threshold: float, steps: bool = False) -> Expression:
    """How many of the coordinates, or of their steps, are numbers above a threshold."""
    return Expression("sum", (Expression("above", (Expression("steps", paths),) if steps else paths, (threshold,)),))


def product(left: Path, right: Path, centres: tuple[float, float]) -> Expression:
    """One coordinate times another, each less a centre."""
    sides = zip((left, right), centres, strict=True)
    return Expression(
        "times", tuple(Expression("less", (path,), (centre,)) if centre else path for path, centre in sides)
    )


EARLIER: dict[str, Callable[..., Expression]] = {  # what the kinds of older results are in the grammar
    "sum": lambda paths: Expression("sum", paths),
    "extreme": lambda paths, greatest: Expression("argmax" if greatest else "argmin", paths),
    "ordered": ordered,
    "above": above,
    "difference": lambda left, right: Expression("minus", (left, right)),
    "product": product,
    "residue": lambda path, modulus: Expression("modulo", (path,), (modulus,)),
    "decimals": lambda path: Expression("decimals", (path,)),
}


@dataclass(frozen=True, slots=True)
class Equal(OfFields, kind="equal"):
    """1 where two coordinates are equal, number or token, otherwise 0."""

    left: Path
    right: Path

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset({self.left, self.right})

    def column(self, outputs: Outputs) -> Column:
        left, right = outputs.column(self.left), outputs.column(self.right)
        numbers = single(left.values) == single(right.values)
        tokens = (left.tokens == right.tokens) & (left.tokens != 0)
        return Column((numbers | tokens).astype(np.float32))

    def __str__(self) -> str:
        return f"({spell(self.left)} == {spell(self.right)})"


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


KINDS = (Coordinate, Shape, Whole, Equal, Present, Distinct, FirstOf, Expression)


def plain_feature(written: dict[str, Any]) -> Feature | None:
    """The feature of a written result; None for a kind that is none of these.

    >>> print(plain_feature({"kind": "coordinate", "path": [2]}))
    output[2]
    """
    if written.get("kind") in EARLIER:
        return EARLIER[written["kind"]](**read_fields(written))
    return next((each.from_dict(written) for each in KINDS if each.kind == written.get("kind")), None)
