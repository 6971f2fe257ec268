"""What every feature is: a frozen function from outputs to one column, rounded to float32.

Rounding comes before any threshold: unrounded doubles of f(x) + noise part two datasets by their last bits,
which is a finding about floating point and not about the calibration of the noise.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpaudit.arrays import Singles
from dpaudit.outputs import BESIDE, BEYOND, CLASS, LENGTH, PRINTED_AS, READ_AS, STATE, Column, Outputs, Path

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


def stored(number: float) -> float | str:
    """A number as JSON can hold it: infinities are the strings "inf" and "-inf"."""
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number
