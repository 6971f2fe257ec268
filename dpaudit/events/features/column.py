"""What every feature is: a frozen function from outputs to one column, rounded to float32.

Rounding comes before any threshold: unrounded doubles of f(x) + noise part two datasets by their last bits,
which is a finding about floating point and not about the calibration of the noise.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Singles
from dpaudit.outputs.canonical import (
    BESIDE,
    BEYOND,
    CLASS,
    LENGTH,
    PRINTED_AS,
    READ_AS,
    STATE,
    Column,
    Outputs,
    Path,
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
UNWRITTEN = {"steps": False, "centre": 0.0, "of": "values"}  # fields that are left out where they have this value


@dataclass(frozen=True, slots=True)
class OfFields:
    """What results store of a feature: its kind and its fields, in their order."""

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str = "") -> None:
        if kind:  # the class that has slots is made of this one, and told no kind
            cls.kind = kind

    def to_dict(self) -> dict[str, Any]:
        """The feature as results store it."""
        held = {each.name: getattr(self, each.name) for each in fields(self)}
        kept = {name: value for name, value in held.items() if name not in UNWRITTEN or value != UNWRITTEN[name]}
        return {"kind": self.kind, **{name: _written(value) for name, value in kept.items()}}

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> Self:
        """The feature of a stored result."""
        return cls(**{name: AGAIN.get(name, lambda it: it)(it) for name, it in written.items() if name != "kind"})


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


@dataclass(frozen=True, slots=True)
class OfTwo(OfFields):
    """A feature of what stands at two paths."""

    left: Path
    right: Path

    @property
    def wanted(self) -> frozenset[Path]:
        return frozenset({self.left, self.right})


def spell(path: Path) -> str:
    """A path as Python would write it: `output[0]`, `output["total"]`, `len(output)`.

    >>> spell((0, "total")), spell((LENGTH,))
    ("output[0]['total']", 'len(output)')
    >>> spell((READ_AS + "json", "total")), spell((1, READ_AS + "numbers", 0))
    ("json.loads(output)['total']", '(numbers in output[1])[0]')
    """
    text = "output"
    for step in path:
        if step in (LENGTH, PRINTED_AS) or step in BESIDE:
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
    return stored(value) if isinstance(value, float) else value


def stored(number: float) -> float | str:
    """A number as JSON can hold it: "inf", "-inf" and "nan" are strings."""
    return number if math.isfinite(number) else str(float(number))
