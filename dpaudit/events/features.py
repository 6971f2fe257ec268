"""Features: frozen functions from outputs to one column, rounded to float32; here those of one coordinate or of all.

Rounding comes before any threshold: unrounded doubles of f(x) + noise part two datasets by their last bits,
which is a finding about floating point and not about the calibration of the noise.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Singles, Words
from dpaudit.errors import UnsoundAudit
from dpaudit.outputs.canonical import (
    ABSENT,
    BEYOND,
    CLASS,
    LENGTH,
    METADATA,
    NOT_A_NUMBER,
    PRINTED_AS,
    READ_AS,
    STATE,
    Column,
    Outputs,
    Path,
    derived,
    is_metadata,
)

READINGS = {  # how what a text says is printed; else `(what in text)`
    "float": "float({})",
    "json": "json.loads({})",
    "len": "len({})",
    "prefix": "prefix of {}",
    "digits": "digits in {}",
    "upper": "capitals in {}",
    "blanks": "blanks in {}",
    "unpacked": "unpacked {}",
    "int16 little": "int16 at byte of {}",
    "int16 big": "big-endian int16 at byte of {}",
}
WORDS: dict[int | str, str] = {CLASS: "type", STATE: "vars", BEYOND: "digits beyond a double of "}


class Feature(Protocol):
    """A frozen, printable, storable function from outputs to one column."""

    @property
    def wanted(self) -> frozenset[Path] | None:
        """The paths it reads; None for all."""

    def column(self, outputs: Outputs) -> Column:
        """The feature of each run, numbers as float32."""

    def to_dict(self) -> dict[str, Any]:
        """The feature as results store it."""


def _numbers(written: Iterable[Any]) -> tuple[float, ...]:
    return tuple(map(float, written))


AGAIN: dict[str, Callable[[Any], Any]] = {  # from a written field to the value; the others are as they are written
    **dict.fromkeys(("path", "left", "right"), tuple),
    "paths": lambda written: tuple(map(tuple, written)),
    **dict.fromkeys(("values", "centres", "edges", "scales", "weights"), _numbers),
    **dict.fromkeys(("threshold", "modulus", "step", "centre"), float),
    "number": lambda written: None if written is None else float(written),
    "width": int,
}
FEW = 64  # entries up to which words call them the output
UNWRITTEN = {"steps": False, "centre": 0.0, "of": "values"}  # fields that are left out where they have this value


@dataclass(frozen=True, slots=True)
class OfFields:
    """What results store of a feature: its kind and its fields, in their order."""

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str = "") -> None:
        if kind:  # `slots=True` makes the class a second time, and passes no kind
            cls.kind = kind

    def to_dict(self) -> dict[str, Any]:
        """The feature as results store it."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        left_out = {name for name, usual in UNWRITTEN.items() if name in values and values[name] == usual}
        return {"kind": self.kind, **{name: _written(value) for name, value in values.items() if name not in left_out}}

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> Self:
        """The feature of a stored result."""
        return cls(**read_fields(written))


def read_fields(written: dict[str, Any]) -> dict[str, Any]:
    """The fields of a stored feature, as values."""
    return {name: AGAIN.get(name, lambda it: it)(it) for name, it in written.items() if name != "kind"}


@dataclass(frozen=True, slots=True)
class OfPath(OfFields):
    """A feature of what stands at one path."""

    path: Path

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset({self.path})


@dataclass(frozen=True, slots=True)
class OfPaths(OfFields):
    """A feature of what stands at several paths."""

    paths: tuple[Path, ...]

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset(self.paths)


def spell(path: Path) -> str:
    """A path as Python would write it: `output[0]`, `output["total"]`, `len(output)`.

    >>> spell((0, "total")), spell((LENGTH,))
    ("output[0]['total']", 'len(output)')
    >>> spell((READ_AS + "json", "total")), spell((1, READ_AS + "numbers", 0))
    ("json.loads(output)['total']", '(numbers in output[1])[0]')
    """
    text = "output"
    for step in path:
        if step in (LENGTH, PRINTED_AS) or step in METADATA:
            text = f"{WORDS.get(step, str(step)[1:])}({text})"
        elif isinstance(step, str) and step.startswith(READ_AS):
            text = READINGS.get(step[len(READ_AS) :], f"({step[len(READ_AS) :]} in {{}})").format(text)
        elif isinstance(step, str) and step.startswith("@has "):
            text = f"({step[5:]} in {text})"
        elif isinstance(step, str) and step.startswith("@"):
            text = f"{text}[{step[1:]!r}]" if step.startswith("@@") else f"{text}[{step[1:]}]"
        else:
            text = f"{text}[{step!r}]"
    return text


def taken_over(paths: tuple[Path, ...]) -> str:
    """What a feature of several coordinates is taken over, in words; where there may be more, that it is a part."""
    return "output" if len(paths) < FEW else f"{len(paths)} entries of output"


def rounded(column: Column) -> Column:
    """The column with its numbers as float32."""
    return column if column.values.dtype == np.float32 else Column(single(column.values), column.codes)


def single(values: npt.NDArray[np.generic]) -> Singles:
    """The numbers as float32; beyond its range they are infinities."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32)


def _written(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if isinstance(value, OfFields):
        return value.to_dict()
    return stored(value) if isinstance(value, float) else value


def stored(number: float) -> float | str:
    """A number as JSON can hold it: "inf", "-inf" and "nan" are strings."""
    return number if math.isfinite(number) else str(float(number))


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
            if not (path and path[-1] == LENGTH or derived(path) or is_metadata(path)):
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
