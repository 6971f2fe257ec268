"""Ways in which an output may tell its dataset: each channel carries one bit and nothing else does.

For each a mechanism that leaks through it, alone and beside Laplace noise, and its sound twin. A leak is to be refuted,
or there is no verdict, or the first part of the report names what was not looked at; else it is silent, and no sound
twin is to be refuted.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import itertools
import math
import os
import random
import re
import struct
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dpaudit
from benchmarks.tables import print_table

RUNS, CONFIDENCE, KEEPS = 4_000, 0.999, 0.95  # the bit is the dataset's so often, so that no output is constant
Make = Callable[[int], Any]


class Plain:
    def __init__(self, held: Any) -> None:
        self.held = held


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


class Shy(Plain):
    def __repr__(self) -> str:
        return "Shy()"


class Words(str):
    pass


class Rate(float):
    pass


class Rows(list[Any]):
    pass


class Table(np.ndarray[Any, Any]):
    pass


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Flags(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass
class Row:
    value: float


Pair = collections.namedtuple("Pair", "x y")
PAIRS = [collections.namedtuple("Point", "x y"), collections.namedtuple("Point", "y x")]  # type: ignore[misc]


def attached(held: Any, bit: int) -> Any:
    """The object, with an attribute that nothing prints."""
    held.extra = bit
    return held


def locked(array: Any, bit: int) -> Any:
    array.setflags(write=not bit)
    return array


def padded(bit: int) -> Any:
    """A record with a byte between its fields that belongs to none."""
    octets = np.zeros(16, np.uint8)
    octets[1] = bit
    return octets.view(np.dtype([("a", "i1"), ("b", "f8")], align=True))


class Zone(datetime.tzinfo):
    """A zone that prints alike whatever it holds."""

    def __init__(self, held: int) -> None:
        self.held = held

    def __repr__(self) -> str:
        return "Zone()"

    def utcoffset(self, moment: Any) -> datetime.timedelta:
        return datetime.timedelta(0)


def nested(held: Any, levels: int = 8) -> Any:
    """The object in so many lists."""
    return functools.reduce(lambda inner, _: [inner], range(levels), held)


def nan(bits: int) -> float:
    """A NaN of these bits."""
    return float(struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 + bits))[0])


def closure(bit: int) -> Any:
    return lambda: bit


def with_default(bit: int) -> Any:
    def made(value: int = bit) -> int:
        return value

    return made


def stream(bit: int) -> Any:
    found = io.BytesIO(b"ab")
    found.seek(bit)
    return found


def generator(bit: int) -> Iterator[int]:
    yield bit


def noted(bit: int) -> Any:
    error = ValueError("failed")
    error.add_note(f"side {bit}")
    return error


def holding(bit: int) -> Any:
    error = ValueError("failed")
    error.held = [bit]  # type: ignore[attr-defined]
    return error


def caused(bit: int) -> Any:
    error = ValueError("failed")
    error.__cause__ = KeyError(bit)
    return error


def at(place: int, held: Any, length: int = 100) -> list[Any]:
    return [*[0.0] * place, held, *[0.0] * (length - place - 1)]


def masked(hidden: float, fill: float) -> Any:
    return np.ma.array([1.0, hidden], mask=[False, True], fill_value=fill)


def fields(name: str = "a", kind: str = "<f8") -> Any:
    return np.zeros(1, [(name, kind)])


NUMBERS: dict[str, Make] = {
    "int beyond 2^53": lambda b: 2**60 + b,
    "int beyond doubles": lambda b: 10**400 + b,
    "int beyond 2^53 in a tuple": lambda b: (2**60 + b, "a"),
    "int beyond 2^53 in a dict": lambda b: {"n": 2**60 + b},
    "int beyond 2^53 far in a list": lambda b: at(90, 2**60 + b),
    "np.int64 beyond 2^53": lambda b: np.int64(2**60 + b),
    "np.uint64 beyond 2^53": lambda b: np.uint64(2**63 + b),
    "int64 array beyond 2^53": lambda b: np.array([1, 2**60 + b]),
    "int64 array of 2 dimensions": lambda b: np.array([[1, 2**60 + b]]),
    "digits of a Fraction": lambda b: fractions.Fraction(1, 3) + fractions.Fraction(b, 10**30),
    "digits of a Decimal": lambda b: decimal.Decimal("0.1") + decimal.Decimal(b).scaleb(-25),
    "exponent of a Decimal": lambda b: decimal.Decimal(("1.0", "1.00")[b]),
    "payload of a Decimal NaN": lambda b: decimal.Decimal(("NaN", "NaN7")[b]),
    "sign of a Decimal zero": lambda b: decimal.Decimal(("0", "-0")[b]),
    "sign of zero": lambda b: (0.0, -0.0)[b],
    "sign of zero in a tuple": lambda b: ((0.0, -0.0)[b], 1.0),
    "sign of zero in an array": lambda b: np.array([1.0, (0.0, -0.0)[b]]),
    "sign of zero far in an array": lambda b: np.array(at(90, (0.0, -0.0)[b])),
    "sign of zero far in a list": lambda b: at(90, (0.0, -0.0)[b]),
    "sign of an imaginary zero": lambda b: complex(1.0, (0.0, -0.0)[b]),
    "sign of a NaN": lambda b: math.copysign(math.nan, (1, -1)[b]),
    "payload of a NaN": lambda b: nan(b),
    "payload of a NaN in an array": lambda b: np.array([1.0, nan(b)]),
    "np.float16 sign of zero": lambda b: np.float16((0.0, -0.0)[b]),
    "longdouble": lambda b: np.longdouble(1) + np.longdouble(2) ** -60 * b,
    "longdouble array": lambda b: np.array([np.longdouble(1) + np.longdouble(2) ** -60 * b]),
}
TYPES: dict[str, Make] = {
    "int or float": lambda b: (1, 1.0)[b],
    "bool or int": lambda b: (1, True)[b],
    "np.float64 or float": lambda b: (1.0, np.float64(1))[b],
    "np.float32 or float": lambda b: (1.0, np.float32(1))[b],
    "np.int8 or np.int64": lambda b: (np.int8(1), np.int64(1))[b],
    "np.bool_ or bool": lambda b: (True, np.bool_(True))[b],
    "Decimal or float": lambda b: (1.5, decimal.Decimal("1.5"))[b],
    "complex or float": lambda b: (1.0, 1 + 0j)[b],
    "np.complex64 or complex": lambda b: (1 + 1j, np.complex64(1 + 1j))[b],
    "list or tuple": lambda b: ([1.0], (1.0,))[b],
    "list or array": lambda b: ([1.0], np.array([1.0]))[b],
    "array of none or number": lambda b: (1.0, np.array(1.0))[b],
    "bytes or bytearray": lambda b: (b"a", bytearray(b"a"))[b],
    "bytes or memoryview": lambda b: (b"a", memoryview(b"a"))[b],
    "set or frozenset": lambda b: ({1}, frozenset({1}))[b],
    "str or np.str_": lambda b: ("a", np.str_("a"))[b],
    "str or a subclass": lambda b: ("a", Words("a"))[b],
    "float or a subclass": lambda b: (1.0, Rate(1.0))[b],
    "dict or OrderedDict": lambda b: ({"a": 1.0}, collections.OrderedDict(a=1.0))[b],
    "tuple or namedtuple": lambda b: ((1.0, 2.0), Pair(1.0, 2.0))[b],
    "int or float in a tuple": lambda b: ("a", (1, 1.0)[b]),
    "int or float in a dict": lambda b: {"a": (1, 1.0)[b]},
    "int or float far in a list": lambda b: at(90, (1, 1.0)[b]),
    "bool or int in a list of lists": lambda b: [[1, (1, True)[b]]],
    "list or tuple in a list": lambda b: [([1.0], (1.0,))[b]],
    "list or dict, empty": lambda b: ([], {})[b],
    "float64 or float32 array": lambda b: np.zeros(2, ("f8", "f4")[b]),
    "int8 or int64 array": lambda b: np.zeros(2, ("i8", "i1")[b]),
    "bool or int array": lambda b: np.zeros(2, ("i8", "?")[b]),
    "byte order of an array": lambda b: np.zeros(2, ("<f8", ">f8")[b]),
    "order of an array in memory": lambda b: np.zeros((2, 2), order=("C", "F")[b]),  # type: ignore[call-overload]
    "int or float in an array of objects": lambda b: np.array([(1, 1.0)[b], "a"], object),
    "unit of a time": lambda b: np.timedelta64((1, 1000)[b], ("s", "ms")[b]),  # type: ignore[call-overload]
    "width of texts in an array": lambda b: np.array(["a"], ("U1", "U2")[b]),
    "trailing NUL in an array": lambda b: np.array([(b"a", b"a\0")[b]]),
    "type of a field": lambda b: fields(kind=("<f8", "<f4")[b]),
    "name of a field": lambda b: fields(("a", "b")[b]),
    "names of a namedtuple": lambda b: PAIRS[b](1.0, 1.0),
}
CONTAINERS: dict[str, Make] = {
    "entry 65,600 of a list": lambda b: at(65_600, float(b), 65_700),
    "entry 65,600 of an array": lambda b: np.array(at(65_600, float(b), 65_700)),
    "level 9 of lists": lambda b: nested(float(b)),
    "type at level 9 of lists": lambda b: nested((1, 1.0)[b]),
    "key 9,000": lambda b: {k: float(b) if k == 8_999 else 0.0 for k in range(9_000)},
    "element 9,000 of a set": lambda b: frozenset([*range(9_000), 10_000 + b]),
    "order of keys": lambda b: {"a": 1.0, "b": 2.0} if b else {"b": 2.0, "a": 1.0},
    "order of keys inside": lambda b: ["x", {"a": 1.0, "b": 2.0} if b else {"b": 2.0, "a": 1.0}],
    "key 1 or True": lambda b: {(1, True)[b]: 0.0},
    "key 1 or 1.0": lambda b: {(1, 1.0)[b]: 0.0},
    "key 1 or np.int64(1)": lambda b: {(1, np.int64(1))[b]: 0.0},
    "key (1,) or (True,)": lambda b: {((1,), (True,))[b]: 0.0},
    "element 1 or 1.0": lambda b: {(1, 1.0)[b]},
    "objects as keys": lambda b: {Slotted(0): 0.0, Slotted(b): 1.0},
    "factory of a defaultdict": lambda b: collections.defaultdict((int, list)[b], a=1.0),
    "zero entry of a Counter": lambda b: collections.Counter({"a": 1, **({"b": 0} if b else {})}),
    "length of a deque": lambda b: collections.deque([1.0], maxlen=(3, 4)[b]),
    "content of a deque": lambda b: collections.deque([float(b)]),
    "filling of a mask": lambda b: masked(0.0, float(b)),
    "entry under a mask": lambda b: masked(float(b), 0.0),
    "bytes of a void": lambda b: np.void(bytes([b])),
    "format of a memoryview": lambda b: memoryview(b"abcd").cast(("B", "b")[b]),
    "step of a range": lambda b: range(0, 3, (2, 3)[b]),
    "slice": lambda b: slice(b),
    "array.array": lambda b: array.array("d", [b]),
    "type of array.array": lambda b: array.array(("d", "f")[b], [0]),
}
OBJECTS: dict[str, Make] = {
    "attribute": Plain,
    "attribute of an attribute": lambda b: Plain(Plain(b)),
    "attribute in a list": lambda b: [Plain(b)],
    "attribute of what prints itself": Shy,
    "slot": Slotted,
    "attribute of a dataclass": lambda b: attached(Row(1.0), b),
    "attribute of a str": lambda b: attached(Words("a"), b),
    "attribute of a float": lambda b: attached(Rate(1.0), b),
    "attribute of a list": lambda b: attached(Rows([1.0]), b),
    "attribute of an array": lambda b: attached(np.zeros(2).view(Table), b),
    "attribute of a function": lambda b: attached(closure(0), b),
    "closure": closure,
    "default of a function": with_default,
    "constant of a function": lambda b: (lambda: 0.0, lambda: 1.0)[b],
    "partial": lambda b: functools.partial(int, b),
    "owner of a method": lambda b: Plain(b).__init__,  # type: ignore[misc]
    "function": lambda b: (math.sin, math.cos)[b],
    "class": lambda b: (Plain, Slotted)[b],
    "generator": generator,
    "iterator": lambda b: iter([b]),
    "chain": lambda b: itertools.chain([b]),
    "StringIO": lambda b: io.StringIO(str(b)),
    "place in a BytesIO": stream,
    "arguments of an exception that is returned": lambda b: ValueError(b),
    "attribute of an exception that is returned": lambda b: attached(ValueError(), b),
    "fold of a datetime": lambda b: datetime.datetime(2020, 1, 1, fold=b),
    "fold of a time": lambda b: datetime.time(1, fold=b),
    "zone of a datetime": lambda b: datetime.datetime(
        2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(0), ("a", "b")[b])
    ),
    "member of an Enum": lambda b: list(Colour)[b],
    "member of a Flag": lambda b: (Flags.A, Flags.A | Flags.B)[b],
    "SimpleNamespace": lambda b: types.SimpleNamespace(a=b),
    "mappingproxy": lambda b: types.MappingProxyType({"a": b}),
    "state of a generator of numbers": lambda b: random.Random(b),
    "pattern": lambda b: re.compile(("a", "b")[b]),
    "flags of a pattern": lambda b: re.compile("a", (0, re.I)[b]),
    "polynomial": lambda b: np.poly1d([1.0, float(b)]),
    "dtype": lambda b: np.dtype(("f4", "f8")[b]),
}
KEPT: dict[str, Make] = {  # what a type keeps beyond the parts that are read
    "number below all floats of 32 bits": lambda b: 5e-324 * (1 + b),
    "number below them or zero": lambda b: 5e-324 * b,
    "number beyond all floats of 32 bits": lambda b: 1e300 * (1 + b),
    "small number in an array": lambda b: np.array([1.0, 5e-324 * b]),
    "trailing NUL": lambda b: np.str_(("a", "a\0")[b]),
    "shape of an empty array": lambda b: np.zeros((0, 3 + b)),
    "memory behind a view": lambda b: np.array([0.0, 0.0, float(b)])[:2],
    "view or array": lambda b: np.zeros(3 - b)[:2],
    "steps of an array": lambda b: np.zeros(4)[::2] if b else np.zeros(2),
    "array that cannot be written": lambda b: locked(np.zeros(2), b),
    "byte of a bool": lambda b: np.array([1 + b, 0], np.uint8).view(np.bool_),
    "bytes between fields": padded,
    "hard mask": lambda b: np.ma.array([1.0, 2.0], mask=[True, False], hard_mask=bool(b)),
    "metadata of a dtype": lambda b: np.zeros(2, np.dtype("f8", metadata={"b": b})),
    "low bits of a complex longdouble": lambda b: np.clongdouble(1) + np.longdouble(2) ** -60 * b,
    "unit of a NaT": lambda b: np.datetime64("NaT", ("s", "ms")[b]),  # type: ignore[call-overload]
    "multiple of a unit": lambda b: np.datetime64("1970-01-01", ("D", "7D")[b]),  # type: ignore[call-overload]
    "zone of a struct_time": lambda b: time.struct_time((*[1] * 9, "ab"[b], 0)),
    "hidden field of a stat_result": lambda b: os.stat_result((0,) * 10, {"st_atime_ns": b}),  # type: ignore[arg-type]
    "attribute of a tzinfo": lambda b: datetime.datetime(2020, 1, 1, tzinfo=Zone(b)),
    "sign of a zero that is a key": lambda b: {(0.0, -0.0)[b]: 1.0},
    "sign of a zero in a key": lambda b: {((0.0,), (-0.0,))[b]: 1.0},
    "sign of a zero in a set": lambda b: {(0.0, -0.0)[b]},
    "payload of a NaN that is a key": lambda b: {nan(b): 1.0},
    "digits of a Decimal that is a key": lambda b: {decimal.Decimal(("1", "1.0")[b]): 1.0},
    "order of a set": lambda b: set((0, 8)[:: (1, -1)[b]]),
    "what is printed": lambda b: print("x" * b),
    "what is printed of errors": lambda b: print("x" * b, file=sys.stderr),
    "lines that are printed": lambda b: sys.stdout.writelines(["x", "y" * b]),
    "bytes that are printed": lambda b: sys.stdout.buffer.write(b"x" * b),
    "numpy's text that is printed": lambda b: sys.stdout.write(np.str_("x" * b)),
    "the end of much that is printed": lambda b: print("x" * 5_000 + "y" * b),
    "what is warned of": lambda b: warnings.warn(f"side {b}", stacklevel=1),
}
RUNNING = {name for name in KEPT if "printed" in name or "warned" in name}  # while it runs, and no output
RAISED: dict[str, Make] = {
    "message of an exception": lambda b: ValueError(f"side {b}"),
    "number in a message": lambda b: KeyError(b),
    "note of an exception": noted,
    "attribute of an exception": holding,
    "cause of an exception": caused,
    "type of an exception": lambda b: (ValueError, TypeError)[b](),
}
BATCHES: dict[str, Callable[[int, int], Any]] = {  # of a bit and the number of runs
    "batch: type of entries": lambda b, n: np.zeros(n, ("f8", "f4")[b]),
    "batch: int or float": lambda b, n: np.zeros(n, ("f8", "i8")[b]),
    "batch: sign of zero": lambda b, n: np.full(n, (0.0, -0.0)[b]),
    "batch: beyond 2^53": lambda b, n: np.full(n, 2**60 + b),
    "batch: list or array": lambda b, n: ([1] * n, np.ones(n, np.int64))[b],
    "batch: order of keys": lambda b, n: dict.fromkeys(("ab", "ba")[b], np.zeros(n)),
    "batch: filling of a mask": lambda b, n: np.ma.array(np.zeros(n), mask=np.ones(n), fill_value=b),
    "batch: under a mask": lambda b, n: np.ma.array(np.full(n, float(b)), mask=np.ones(n)),
    "batch: byte order": lambda b, n: np.zeros((n, 2), ("<f8", ">f8")[b]),
}


def _tables() -> dict[str, Make]:
    """Channels of libraries that are there."""
    found: dict[str, Make] = {}
    try:
        import pandas

        def frame(**given: Any) -> Any:
            return pandas.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}, **given)

        found |= {
            "pandas: index": lambda b: frame(index=[0, 5 + b]),
            "pandas: type of index": lambda b: frame(index=[0, (1, 1.0)[b]]),
            "pandas: name of index": lambda b: frame().rename_axis(("x", "y")[b]),
            "pandas: order of columns": lambda b: frame()[[*("ab", "ba")[b]]],
            "pandas: name of a column": lambda b: frame().rename(columns={"a": ("x", "y")[b]}),
            "pandas: type of a column": lambda b: frame().astype({"a": ("f8", "i8")[b]}),
            "pandas: attrs": lambda b: attrs(frame(), b),
            "pandas: name of a Series": lambda b: pandas.Series([1.0], name=("x", "y")[b]),
            "pandas: type of a Series": lambda b: pandas.Series([1.0], dtype=("f8", "f4")[b]),
            "pandas: categories": lambda b: pandas.Categorical(["a"], categories=["a", ("b", "c")[b]]),
            "pandas: unused category": lambda b: pandas.Series(
                pandas.Categorical(["a"], categories=["a", *"bc"[: 1 + b]])
            ),
            "pandas: order of categories": lambda b: frame().assign(
                c=pandas.Categorical(["a", "b"], categories=["a", "b"], ordered=bool(b))
            ),
            "pandas: frequency of an index": lambda b: pandas.Series(
                [1.0, 2.0], index=pandas.DatetimeIndex(["2020-01-01", "2020-01-02"], freq=("D", None)[b])
            ),
            "pandas: flags": lambda b: frame().set_flags(allows_duplicate_labels=bool(b)),
            "pandas: width of an index": lambda b: frame(index=pandas.Index([5, 6], dtype=("i8", "i4")[b])),
            "pandas: unused level": lambda b: pandas.Series(
                [1.0], index=pandas.MultiIndex.from_tuples([("a", 1)]).set_levels([["a", *"z" * b]], level=[0])
            ),
            "pandas: zone of a Timestamp": lambda b: pandas.Timestamp("2020-01-01", tz=("UTC", "Europe/Rome")[b]),
        }
    except ImportError:
        pass
    try:
        import polars

        found |= {
            "polars: name of a column": lambda b: polars.DataFrame({("x", "y")[b]: [1.0]}),
            "polars: type of a column": lambda b: polars.DataFrame({"x": [1]}, {"x": (polars.Int64, polars.Int32)[b]}),
        }
    except ImportError:
        pass
    from scipy import sparse

    found |= {
        "scipy: entry of a sparse array": lambda b: sparse.csr_array([[float(b), 1.0]]),
        "scipy: format of a sparse array": lambda b: (sparse.csr_array, sparse.csc_array)[b]([[1.0]]),
    }
    return found


def attrs(frame: Any, bit: int) -> Any:
    frame.attrs["held"] = bit
    return frame


CHANNELS: dict[str, Make] = {**NUMBERS, **TYPES, **CONTAINERS, **OBJECTS, **KEPT, **_tables()}


def _raises(error: BaseException) -> Any:
    raise error


def mechanisms(name: str) -> dict[str, Any]:
    """The leak, the leak beside noise where there can be some, and the sound twin of a channel."""

    def kept(data: int, rng: Any) -> int:
        return data if rng.random() < KEEPS else 1 - data

    if name in BATCHES:
        batch = BATCHES[name]
        return {
            "leak": dpaudit.batched(lambda data, runs, rng: batch(data, runs)),
            "sound": dpaudit.batched(lambda data, runs, rng: batch(0, runs)),
        }
    if name in RAISED:
        error = RAISED[name]
        return {
            "leak": lambda data, rng: _raises(error(kept(data, rng))),
            "sound": lambda data, rng: _raises(error(int(rng.integers(2)))),
        }
    make = CHANNELS[name]
    return {
        "leak": lambda data, rng: make(kept(data, rng)),
        "noise": lambda data, rng: (rng.laplace(), make(kept(data, rng))),
        "sound": lambda data, rng: make(int(rng.integers(2))),
    }


def told(mechanism: Any, seed: int = 1) -> tuple[str, str]:
    """The verdict of an audit in a word, and the event or place that it names; "silent" where it says nothing."""
    try:
        found = dpaudit.audit(
            mechanism, pair=(0, 1), epsilon=1.0, runs=RUNS, confidence=CONFIDENCE, seed=seed, n_jobs=1
        )
    except dpaudit.UnsoundAudit as error:
        return "no verdict", str(error).partition(":")[0][-70:]
    if found.verdict is dpaudit.Verdict.REFUTED:
        return "refuted", str(found.witness.event)
    return ("said", found.unread) if found.unread else ("said", "entries") if found.unseen else ("silent", "")


def run(quick: bool = False) -> None:
    """Prints a line for each channel."""
    names = [*CHANNELS, *RAISED, *BATCHES]
    rows, silent, accused = [], 0, 0
    for name in names[:: 10 if quick else 1]:
        found = {kind: told(mechanism) for kind, mechanism in mechanisms(name).items()}
        silent += sum(word == "silent" for kind, (word, _) in found.items() if kind != "sound")
        accused += found["sound"][0] == "refuted"
        sound = {"silent": "not refuted"}.get(*found["sound"][:1] * 2)
        rows.append([name, *found["leak"], found.get("noise", ("",))[0], sound])
    title = f"Output channels: {len(rows)}, silent {silent}, sound twins refuted {accused}"
    print_table(title, ["channel", "leak", "event or place", "beside noise", "sound twin"], rows)
