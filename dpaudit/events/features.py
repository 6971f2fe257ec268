"""Features: what an event looks at. Each turns outputs into one column, rounded to float32.

Rounding comes before any threshold: unrounded doubles of f(x) + noise part two datasets by their last bits,
which is a finding about floating point and not about the calibration of the noise.
"""

from __future__ import annotations

import hashlib
import math
import sys
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from dpaudit.errors import UnsoundAudit
from dpaudit.sampling.outputs import ABSENT, LENGTH, NOT_A_NUMBER, TYPE, Column, Outputs, Path

Floats = npt.NDArray[np.float32]


class Feature(Protocol):
    """A frozen, printable, storable function from outputs to one column."""

    @property
    def wanted(self) -> frozenset[Path] | None:
        """The paths it reads; None for all."""

    def column(self, outputs: Outputs) -> Column:
        """The feature of each run, numbers as float32."""

    def to_dict(self) -> dict[str, Any]:
        """The feature as results store it."""


def spell(path: Path) -> str:
    """A path as Python would write it: `output[0]`, `output["total"]`, `len(output)`.

    >>> spell((0, "total")), spell((LENGTH,))
    ("output[0]['total']", 'len(output)')
    """
    text = "output"
    for step in path:
        if step in (LENGTH, TYPE):
            text = f"{str(step)[1:]}({text})"
        elif isinstance(step, str) and step.startswith("@has "):
            text = f"({step[5:]} in {text})"
        elif isinstance(step, str) and step.startswith("@"):
            text = f"{text}[{step[1:]!r}]" if step.startswith("@@") else f"{text}[{step[1:]}]"
        else:
            text = f"{text}[{step!r}]"
    return text


def rounded(column: Column) -> Column:
    """The column with its numbers as float32."""
    return column if column.values.dtype == np.float32 else Column(single(column.values), column.codes)


def single(values: npt.NDArray[np.generic]) -> Floats:
    """The numbers as float32; beyond its range they are infinities."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32)


def stored(number: float) -> float | str:
    """A number as JSON can hold it: infinities are the strings "inf" and "-inf"."""
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def _matrix(outputs: Outputs, paths: tuple[Path, ...]) -> npt.NDArray[np.float64]:
    """The numbers at some paths, a row for each run; NaN where there is none."""
    matrix = np.empty((outputs.runs, len(paths)))
    for j, path in enumerate(paths):
        matrix[:, j] = outputs.column(path).values
    return matrix


@dataclass(frozen=True, slots=True)
class Coordinate:
    """What stands at one path: a number or a token. `centre` is taken off first where values are far from 0."""

    path: Path = ()
    centre: float = 0.0
    kind: ClassVar[str] = "coordinate"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset({self.path})

    def column(self, outputs: Outputs) -> Column:
        column = outputs.column(self.path)
        if self.centre:
            column = Column(column.values.astype(np.float64) - self.centre, column.codes)
        return rounded(column)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "path": list(self.path), **({"centre": self.centre} if self.centre else {})}

    def __str__(self) -> str:
        return spell(self.path) + (f" - {self.centre!r}" if self.centre else "")


@dataclass(frozen=True, slots=True)
class Ordered:
    """The number of a given rank among the coordinates: 0 the least, -1 the greatest."""

    paths: tuple[Path, ...]
    rank: int
    kind: ClassVar[str] = "ordered"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(self.paths)

    def column(self, outputs: Outputs) -> Column:
        matrix = _matrix(outputs, self.paths)
        if self.rank in (0, -1):
            with np.errstate(all="ignore"):
                found = np.fmin.reduce(matrix, axis=1) if self.rank == 0 else np.fmax.reduce(matrix, axis=1)
            return rounded(Column(found))
        if self.rank > 0:  # NaN sorts last, so both ends count numbers only
            return rounded(Column(np.sort(matrix, axis=1)[:, self.rank]))
        return rounded(Column(-np.sort(-matrix, axis=1)[:, -self.rank - 1]))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "paths": [list(path) for path in self.paths], "rank": self.rank}

    def __str__(self) -> str:
        names = {0: "min(output)", -1: "max(output)"}
        return names.get(self.rank, f"sorted(output)[{self.rank}]")


@dataclass(frozen=True, slots=True)
class Difference:
    """One coordinate less another."""

    left: Path
    right: Path
    kind: ClassVar[str] = "difference"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset({self.left, self.right})

    def column(self, outputs: Outputs) -> Column:
        left, right = (outputs.column(path).values.astype(np.float64) for path in (self.left, self.right))
        with np.errstate(invalid="ignore"):
            return rounded(Column(left - right))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "left": list(self.left), "right": list(self.right)}

    def __str__(self) -> str:
        return f"{spell(self.left)} - {spell(self.right)}"


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of the coordinates that are numbers."""

    paths: tuple[Path, ...]
    kind: ClassVar[str] = "sum"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(self.paths)

    def column(self, outputs: Outputs) -> Column:
        with np.errstate(invalid="ignore"):
            return rounded(Column(np.nansum(_matrix(outputs, self.paths), axis=1)))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "paths": [list(path) for path in self.paths]}

    def __str__(self) -> str:
        return "sum(output)"


@dataclass(frozen=True, slots=True)
class Equal:
    """1 where two coordinates are equal, number or token, otherwise 0."""

    left: Path
    right: Path
    kind: ClassVar[str] = "equal"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset({self.left, self.right})

    def column(self, outputs: Outputs) -> Column:
        left, right = outputs.column(self.left), outputs.column(self.right)
        numbers = single(left.values) == single(right.values)
        tokens = (left.tokens == right.tokens) & (left.tokens != 0)
        return Column((numbers | tokens).astype(np.float32))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "left": list(self.left), "right": list(self.right)}

    def __str__(self) -> str:
        return f"({spell(self.left)} == {spell(self.right)})"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The position of the greatest coordinate, or of the least; the first of equals, NaN where none is a number."""

    paths: tuple[Path, ...]
    greatest: bool = True
    kind: ClassVar[str] = "extreme"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(self.paths)

    def column(self, outputs: Outputs) -> Column:
        matrix = _matrix(outputs, self.paths)
        sign = 1.0 if self.greatest else -1.0
        finite = np.clip(sign * matrix, -sys.float_info.max, None)  # so that -inf still is above what is no number
        position = np.argmax(np.where(np.isnan(matrix), -np.inf, finite), axis=1).astype(np.float32)
        position[np.isnan(matrix).all(axis=1)] = np.nan
        return Column(position)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "paths": [list(path) for path in self.paths], "greatest": self.greatest}

    def __str__(self) -> str:
        return "argmax(output)" if self.greatest else "argmin(output)"


@dataclass(frozen=True, slots=True)
class Present:
    """How many of the coordinates are there."""

    paths: tuple[Path, ...]
    kind: ClassVar[str] = "present"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(self.paths)

    def column(self, outputs: Outputs) -> Column:
        count = np.zeros(outputs.runs, np.float32)
        for path in self.paths:
            codes = outputs.column(path).codes
            count += 1.0 if codes is None else codes != np.uint64(ABSENT.code)
        return Column(count)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "paths": [list(path) for path in self.paths]}

    def __str__(self) -> str:
        return "number of entries present in output"


@dataclass(frozen=True, slots=True)
class FirstOf:
    """The position of the first coordinate of a kind: a number, a token (by its code), or any number at all.

    Their number of coordinates where there is none.
    """

    paths: tuple[Path, ...]
    number: float | None = None
    code: int | None = None
    label: str = "a number"
    kind: ClassVar[str] = "first-of"

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(self.paths)

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

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "paths": [list(path) for path in self.paths],
            "number": self.number,
            "code": self.code,
            "label": self.label,
        }

    def __str__(self) -> str:
        return f"position of the first {self.label} in output"


@dataclass(frozen=True, slots=True)
class Whole:
    """The output as one token: equal codes for equal outputs, numbers compared as float32."""

    kind: ClassVar[str] = "whole"

    @property
    def wanted(self) -> None:
        return None

    def column(self, outputs: Outputs) -> Column:
        if not outputs.complete:
            raise UnsoundAudit(
                "outputs have more different keys than can be compared whole; return fewer, or a summary"
            )
        codes = np.ones(outputs.runs, np.uint64)
        for path in outputs.columns:
            if not (path and path[-1] in (LENGTH, TYPE)):
                _mix(codes, outputs.column(path), _multiplier(path))
        return Column(np.broadcast_to(np.float32(np.nan), (outputs.runs,)), codes | np.uint64(1))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def __str__(self) -> str:
        return "output"


def _mix(codes: npt.NDArray[np.uint64], column: Column, multiplier: np.uint64) -> None:
    """Adds one column to the codes: multilinear hashing, an absent cell adding nothing."""
    with np.errstate(over="ignore"):
        cells = (single(column.values) + np.float32(0.0)).view(np.uint32).astype(np.uint64)
        cells += np.uint64(1)
        if column.values.dtype.kind == "f":
            unknown = np.isnan(column.values)
            if unknown.any():
                cells[unknown] = np.uint64(NOT_A_NUMBER.code)
        if column.codes is not None:
            there = column.codes != 0
            cells[there] = column.codes[there]
            cells[column.codes == np.uint64(ABSENT.code)] = 0
        cells *= multiplier
        codes += cells


def _multiplier(path: Path) -> np.uint64:
    hashed = hashlib.blake2b(repr(path).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(hashed, "little") | 1)
