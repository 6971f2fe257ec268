"""One of everything that a mechanism may return, and a way to read its canonical form cell by cell."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import uuid
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest

from dpaudit.outputs import canonical, columns, encode, exact, sheet
from dpaudit.outputs.canonical import Failure, Outputs, token

Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Shade(str, enum.Enum):  # noqa: UP042  such mixtures are common, and equal to plain text
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Row:
    name: str
    value: Any


@dataclasses.dataclass(frozen=True)
class Measured:
    """A dataclass that is also a number."""

    value: float

    def __float__(self) -> float:
        return self.value


class Text(str):
    """A subclass of text."""


class Weird:
    """An object with nothing to look at."""


def structured() -> np.ndarray[Any, Any]:
    return np.array([(1, 2.0), (3, 4.0)], dtype=[("a", np.int64), ("b", np.float64)])


KINDS: dict[str, list[Any]] = {
    "whole numbers": [0, 1, -3, 2**53 + 1, 2**60 + 2**36 + 1],
    "beyond all floats": [10**400, -(10**400), fractions.Fraction(10**400)],
    "truth": [True, np.bool_(True)],
    "floats": [1.0, -0.0, 0.0, 2.5],
    "no numbers": [math.nan, math.inf, -math.inf, decimal.Decimal("NaN"), decimal.Decimal("sNaN")],
    "floats of numpy": [np.float64(1.0), np.float32(2.5), np.float16(0.5), np.longdouble(1.5)],
    "integers of numpy": [np.uint64(2**63 + 1), np.int64(1), np.uint8(255)],
    "other numbers": [fractions.Fraction(1, 2), decimal.Decimal("1"), Level.LOW],
    "complex numbers": [1j, 1 + 0j, complex(math.nan, 1.0), np.complex128(1 + 2j), np.complex64(2j)],
    "text": ["red", "", "1", "1.0", "\ud800", "None"],
    "text of another type": [Shade.RED, Text("red"), np.str_("red"), Colour.RED, Colour.BLUE],
    "bytes": [b"red", b"", np.bytes_(b"red"), bytearray(b"red"), memoryview(b"red")],
    "nothing": [None, np.ma.masked, ...],
    "failures": [Failure(token("raised", "ValueError")), Failure(token("timed out"))],
    "dates": [datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2), np.datetime64("2020-01-02")],
    "spans": [np.timedelta64(5, "s")],
    "told by their text": [pathlib.PurePosixPath("a/b"), uuid.UUID(int=7), math.sin, Weird],
    "nothing to look at": [Weird()],
    "empty": [(), [], {}, set()],
    "sequences": [(1,), [1], (1, 2), Point(1, 2), (1j, 2)],
    "long and deep": [[1, [2, [3, ["deep", [[[[4]]]]]]]], list(range(300))],
    "of several types": [(1.0, "a"), (True, "a"), (None, math.nan, b"x"), (10**400, 2**60 + 2**36 + 1)],
    "text in a tuple": [("red",), (Shade.RED,), (Text("red"),)],
    "numbers that are held": [(Measured(2.0), 1.0), (np.array([2.0]),), (np.array(2.0),), (np.ma.masked, 1)],
    "dictionaries": [{"a": 1}, {"a": 1, "b": None}, OrderedDict(a=2), defaultdict(int, a=3)],
    "keys that are equal": [{1: 2}, {1.0: 3}, {True: 4}, {"1": 5}, {np.int64(1): 6}, {Shade.RED: 7}, {"red": 8}],
    "keys that read alike": [{(1, 2): 9}, {"(1, 2)": 10}, {"(1, 2)": 11, (1, 2): 12}, {(1, 2): 12, "(1, 2)": 11}],
    "keys with names of ours": [{"@len": 13}, {"real": 14}],
    "long keys": [{"x" * 90 + "1": 15, "x" * 90 + "2": 16}, {tuple(range(40)): 17}, {(*range(39), -1): 18}],
    "keys that are sets": [{frozenset([0, 8]): 19}, {frozenset([8, 0]): 20}],
    "sets": [{1}, {1.0}, {True}, {"1"}, {np.int64(1)}, {"a", None, 2.5}, frozenset({1})],
    "sets of texts and tuples": [{Shade.RED}, frozenset({"red"}), {(1, 2)}, {"(1, 2)"}],
    "sets of sets": [{frozenset([0, 8])}, {frozenset([8, 0])}],
    "rows": [Row("a", 1), Row("a", [1, 2])],
    "numbers of a class": [Measured(2.0)],
    "arrays of no axis": [np.array(1.0), np.array(1), np.array("ab"), np.array(None), np.ma.array(5.0)],
    "arrays": [np.array([1.0, 2.0]), np.array([2.0]), np.array([1.0, math.nan]), np.zeros(80)],
    "arrays of integers": [np.array([2**60 + 2**36 + 1, 2**53 + 1, 2**53]), np.array([1, 2])],
    "arrays of other numbers": [np.array([2**63 + 1], np.uint64), np.array([1 + 2j]), np.array([True, False])],
    "floats of other sizes": [np.array([1.5], kind) for kind in (np.float16, np.longdouble, ">f8")],
    "empty arrays": [np.array([]), np.zeros((0, 3))],
    "matrices": [np.array([[1, 2], [3, 4]]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((9, 9))],
    "arrays of texts and dates": [np.array([["a", "b"]]), np.array(["2020-01-02"], "datetime64[D]")],
    "arrays of objects": [np.array([1, None, "x"], object)],
    "structures": [structured(), structured()[0]],
    "masked": [np.ma.array([1.0, 2.0], mask=[False, True]), np.ma.array([1, 2], mask=[True, True])],
    "unmasked": [np.ma.array([1.0, 2.0])],
}
EVERYTHING = [output for kind in KINDS.values() for output in kind]

Cell = tuple[float, int]


def label(output: Any) -> str:
    """A name for a case that is the same in every process: no addresses, no order of sets."""
    return output if isinstance(output, str) and output.isascii() and output else type(output).__name__


def cut_earlier(monkeypatch: pytest.MonkeyPatch) -> int:
    """Fewer entries of an output that are looked at than there are: the rules are the same, and quick to see."""
    for module in (columns, encode, exact, canonical):
        monkeypatch.setattr(module, "WIDEST", 1 << 9)
    for module in (columns, sheet):
        monkeypatch.setattr(module, "MOST_KEYS", 300)
    return 1 << 9


def cell(outputs: Outputs, path: Any, row: int) -> Cell:
    """The number (NaN where there is none) and the token of one cell, exactly as features will read them."""
    column = outputs.column(path)
    code = int(column.tokens[row])
    number = float("nan") if code else float(column.values[row])
    return (0.0 if code else number, code)


def cells(outputs: Outputs, row: int) -> dict[Any, Cell]:
    """The canonical form of one run: all its cells that are not absent."""
    absent = token("absent").code
    found = {path: cell(outputs, path, row) for path in outputs.columns}
    return {path: each for path, each in found.items() if each[1] != absent}
