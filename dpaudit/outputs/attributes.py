"""What an output shows beside its values as doubles and tokens: exact numbers, signs of zeros, orders, labels.

Each of these is a function of one output, and absent where its value tells it already; so plain outputs have none.
"""

import dataclasses
import datetime
import enum
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools
from dpaudit.outputs.canonical import ABSENT, BEYOND, EXPONENT, REST, SIGN, Numbers, Path, Token, token
from dpaudit.outputs.exact import FIXED, Rows, base, module_of
from dpaudit.outputs.matrix import EXACT
from dpaudit.outputs.sheet import Sheet
from dpaudit.outputs.spelled import PRINTED, reduces, type_name

IMPLIED = frozenset({float, str, bytes, list, type(None)})  # types that a value of an entry tells by itself
SMALLEST = -400  # of the exponents of decimals whose digits are compared with those of a double
SINGLES = np.finfo(np.float32)
PLAIN_NAN = struct.unpack("<Q", struct.pack("<d", float("nan")))[0]


def beside_entries(into: Sheet, flat: Numbers, rows: Rows, places: Mapping[Path, int]) -> None:
    """Beside numbers, [runs, entries]: signs of zeros, sizes beyond float32, what doubles lack of integers, odd NaN."""
    if flat.dtype.kind == "f":
        beyond = beyond_singles(flat)
        if beyond.any():  # features round to float32, which would make them all 0 or infinite
            size = np.abs(np.where(beyond, flat, 1.0)).astype(np.float64)
            into.mark(beyond, np.log10(size), rows, places, EXPONENT)
            into.mark(beyond & np.signbit(flat), -1.0, rows, places, SIGN)
        if np.count_nonzero(flat) < flat.size and (minus := (flat == 0.0) & np.signbit(flat)).any():
            into.mark(minus, -1.0, rows, places, SIGN)
        with np.errstate(invalid="ignore", over="ignore"):
            odd = flat != flat if np.isnan(flat.sum()) else np.zeros(1, np.bool_)
        if odd.any():
            bits = np.asarray(flat, np.float64).view(np.uint64)
            into.mark(odd & (bits != PLAIN_NAN), bits.view(np.float64), rows, places, REST)
        if flat.dtype.itemsize > 8 and (lacking := (flat != flat.astype(np.float64)) & ~odd).any():
            low = flat - flat.astype(np.float64)
            into.mark(lacking, low.astype(np.float64), rows, places, REST)
    elif flat.dtype == np.bool_:
        octets = np.ascontiguousarray(flat).view(np.uint8)
        if octets.size and octets.max() > 1:
            into.mark(octets > 1, octets.astype(np.float64), rows, places, REST)
    elif flat.dtype.itemsize == 8 and flat.size and max(float(flat.max()), -float(flat.min())) >= EXACT:
        flat = flat.astype(flat.dtype.newbyteorder("="), copy=False)
        near = flat.astype(np.float64)
        top = 2.0**63 if flat.dtype.kind == "i" else 2.0**64
        inside = np.where(near >= top, 0.0, near)
        whole = np.where(near >= top, np.uint64(int(top) % 2**64), inside.astype(flat.dtype).view(np.uint64))
        lacks = (flat.view(np.uint64) - whole).view(np.int64)  # modulo 2^64
        into.mark(lacks != 0, lacks.astype(np.float64), rows, places, BEYOND)


def beyond_singles(numbers: Numbers) -> Bools:
    """Which doubles are finite and not 0, and smaller or larger than any normal float32."""
    if numbers.dtype.itemsize <= 4 or not numbers.size:
        return np.zeros(numbers.shape, np.bool_)
    with np.errstate(invalid="ignore"):
        size = np.abs(np.asarray(numbers, np.float64))
        found: Bools = ((size < SINGLES.tiny) & (size > 0.0)) | ((size > SINGLES.max) & (size < np.inf))
    return found


def beside_numbers(into: Sheet, objects: Sequence[Any], values: Numbers, rows: Rows, path: Path) -> None:
    """Beside numbers of one path that were objects: the same, and the exponents of decimals."""
    beside_entries(into, values[:, None], rows, {path: 0})
    kinds = set(map(type, objects))
    if kinds <= {float, bool, np.bool_, np.float64, np.float32, np.float16} or not any(
        into.tells(path, step) for step in (BEYOND, EXPONENT, REST)
    ):
        return
    if kinds <= {int, bool} and not (np.abs(values) >= EXACT).any():
        return
    whole = np.arange(len(objects)) if rows is None else rows
    for place, (number, value) in enumerate(zip(objects, values.tolist(), strict=True)):
        row = whole[place : place + 1]
        if isinstance(number, Decimal):
            exponent = Decimal.as_tuple(number).exponent
            if isinstance(exponent, int):
                into.mark(np.ones((1, 1), np.bool_), float(exponent), row, {path: 0}, EXPONENT)
            else:
                into.say(path, EXPONENT, row, token("number", Decimal.__str__(number)))
        if isinstance(number, np.longdouble) and number != value and np.isfinite(value):
            into.left_out(path, row, [float(number - np.longdouble(value))], "bits")
        lacks = _lacking(number, value)
        if isinstance(lacks, Token):
            into.say(path, BEYOND, row, lacks)
        elif lacks:
            into.mark(np.ones((1, 1), np.bool_), float(lacks), row, {path: 0}, BEYOND)
            if Fraction(float(lacks)) != lacks:
                into.left_out(path, row, [lacks], "digits")


def _lacking(number: Any, value: float) -> Fraction | Token:
    """What a double lacks of a number; a token of all its digits where it is beyond the range of doubles."""
    kind: Any = type(number)
    if isinstance(number, int):
        exact: Any = int.__int__(number)
    elif isinstance(number, np.integer):
        exact = base(kind, "__int__").__int__(number)
    elif isinstance(number, Decimal) and Decimal.is_finite(number):
        exact = Decimal(number)
    elif isinstance(number, Fraction):
        exact = Fraction(int(number.numerator), int(number.denominator))
    else:
        return Fraction(0)
    tiny = isinstance(exact, Decimal) and exact != 0 and exact.adjusted() < SMALLEST
    if not np.isfinite(value) or tiny:
        return token("number", hex(exact) if isinstance(exact, int) else str(exact))
    return Fraction(exact) - Fraction(value)


def order_of(keys: tuple[int | str, ...]) -> Token:
    """The order of the keys of a mapping; absent where they are sorted."""
    return (
        ABSENT
        if list(keys) == sorted(keys, key=lambda key: (isinstance(key, str), key))
        else token("order", ", ".join(map(str, keys)))
    )


def types_in(key: Any) -> str:
    """The type of a key or an element, and the types in it where it is a tuple.

    >>> types_in((1, True))
    'tuple[int, bool]'
    """
    if isinstance(key, tuple | frozenset):
        holder: Any = tuple if isinstance(key, tuple) else frozenset
        inner = map(types_in, holder.__iter__(key))
        return f"{type_name(type(key))}[{', '.join(inner if holder is tuple else sorted(inner))}]"
    if isinstance(key, float) and (key == 0.0 or key != key):  # all zeros have one step, and all NaN
        return f"{type_name(type(key))} {float.hex(key) if key == 0.0 else struct.pack('>d', key).hex()}"
    kind: Any = type(key)
    return type_name(kind) + (f" {key!r}" if kind in (Decimal, np.longdouble) else "")


@lru_cache(maxsize=1 << 10)
def told_whole(kind: Any) -> bool:
    """Whether objects of a type have nothing attached to them that their value would not show."""
    if issubclass(kind, datetime.datetime | datetime.time | defaultdict):
        return False
    held = kind.__dictoffset__ != 0 or any(vars(each).get("__slots__") for each in kind.__mro__)
    ours = kind in FIXED or module_of(kind) in PRINTED or module_of(kind).startswith("numpy")
    return ours or issubclass(kind, enum.Enum) or not (held or reduces(kind))


@lru_cache(maxsize=1 << 10)
def read_names(kind: Any) -> frozenset[str]:
    """The attributes that are read as the fields of a dataclass."""
    return frozenset(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else frozenset()
