"""Features of one coordinate, and of the output as one token: whole, or as to its shape."""

import hashlib
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Singles, Words
from dpaudit.errors import UnsoundAudit
from dpaudit.events.features.column import OfFields, OfPath, OfPaths, rounded, single, spell
from dpaudit.events.features.joint import taken_over
from dpaudit.outputs.canonical import ABSENT, LENGTH, NOT_A_NUMBER, Column, Outputs, Path, beside, derived


@dataclass(frozen=True, slots=True)
class Coordinate(OfPath, kind="coordinate"):
    """What stands at one path: a number or a token. `centre` is taken off first where values are far from 0."""

    path: Path = ()
    centre: float = 0.0

    def column(self, outputs: Outputs) -> Column:
        column = outputs.column(self.path)
        if self.centre:
            column = Column(column.values.astype(np.float64) - self.centre, column.codes)
        return rounded(column)

    def __str__(self) -> str:
        return spell(self.path) + (f" - {self.centre!r}" if self.centre else "")


@dataclass(frozen=True, slots=True)
class Whole(OfFields, kind="whole"):
    """The output as one token: equal codes for equal outputs, numbers compared as float32."""

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
            if not (path and path[-1] == LENGTH or derived(path) or beside(path)):
                _mix(codes, outputs.column(path), _multiplier(path))
        return Column(np.broadcast_to(np.float32(np.nan), (outputs.runs,)), codes | np.uint64(1))

    def __str__(self) -> str:
        return "output"


@dataclass(frozen=True, slots=True)
class Shape(OfPaths, kind="shape"):
    """The output as one token in which numbers only stand for being there, apart from some `values` that recur."""

    values: tuple[float, ...] = ()

    def column(self, outputs: Outputs) -> Column:
        codes = np.ones(outputs.runs, np.uint64)
        for path in self.paths:
            column = outputs.column(path)
            _mix(codes, Column(self._there(single(column.values)), column.codes), _multiplier(path))
        return Column(np.broadcast_to(np.float32(np.nan), (outputs.runs,)), codes | np.uint64(1))

    def _there(self, numbers: Singles) -> Singles:
        """Numbers as 1, or where they recur as 2, 3, ...; NaN as it is."""
        there = np.where(np.isnan(numbers), numbers, np.float32(1.0))
        for place, value in enumerate(self.values):
            there[numbers == np.float32(value)] = 2.0 + place
        return there

    def __str__(self) -> str:
        return f"shape of {taken_over(self.paths)}"


def _mix(codes: Words, column: Column, multiplier: np.uint64) -> None:
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
