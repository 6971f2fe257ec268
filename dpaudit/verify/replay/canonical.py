"""When two outputs are one: a hashable form that is equal for equal outputs, and different for different ones.

Numbers are equal by value, whatever their type: 1, 1.0, True and numpy's are one output, 0.0 and -0.0 too, and NaN
is one. Texts are equal by content, containers by type and content, exceptions by type. An object that only equals
itself is refused, for then every run would have an output of its own.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from dpaudit.errors import UnsoundAudit
from dpaudit.verify.replay.uniform import Uniform

PLAIN = frozenset({int, bool, str, bytes, type(None)})
DEEPEST = 100  # levels of nesting
LONGEST = 1_000_000  # entries of an iterator


@dataclass(frozen=True, slots=True)
class Shaped:
    """An output that is neither a number nor a text nor a tuple: its type by name, and its content."""

    kind: str
    content: Hashable

    def __repr__(self) -> str:
        return f"{self.kind}({self.content!r})"


@dataclass(frozen=True, slots=True)
class Raised:
    """Stands where an output would: the run raised this type of exception."""

    kind: str

    def __repr__(self) -> str:
        return f"raised {self.kind}"


NOT_A_NUMBER = Shaped("nan", ())


def canonical(output: Any) -> Hashable:
    """The hashable form of an output. Raises `UnsoundAudit` where there is none.

    >>> canonical((1, [2.0, "a"]))
    (1, list((2.0, 'a')))
    >>> canonical(float("nan")) == canonical(np.float64("nan")), canonical([1]) == canonical((1,))
    (True, False)
    """
    kind = type(output)
    if kind in PLAIN:
        return output  # type: ignore[no-any-return]
    if kind is tuple and PLAIN.issuperset(map(type, output)):
        return output  # type: ignore[no-any-return]
    return _form(output, 0)


def raised(error: BaseException) -> Raised:
    """The output that an exception is: its type, never its text, which may hold an address.

    >>> raised(ValueError("at 0x7f"))
    raised ValueError
    """
    return Raised(_name(type(error)))


def _form(value: Any, depth: int) -> Hashable:
    kind = type(value)
    if kind in PLAIN:
        return value  # type: ignore[no-any-return]
    if depth > DEEPEST:
        raise UnsoundAudit(f"an output is nested more than {DEEPEST} levels deep; return a flat one")
    if isinstance(value, np.generic) and not isinstance(value, np.void | np.datetime64 | np.timedelta64):
        value = value.item()
        kind = type(value)
    if isinstance(value, Uniform):
        raise value.refuse("as an output")
    if isinstance(value, numbers.Number):
        return _number(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return _container(value, kind, depth + 1)


def _number(value: Any) -> Hashable:
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        whole = complex(value)
        return whole if whole == whole else Shaped("complex", repr(whole))
    if value != value:
        return NOT_A_NUMBER
    if isinstance(value, float) or math.isinf(value):
        return float(value)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal) or hasattr(value, "as_integer_ratio"):
        return Fraction(*value.as_integer_ratio())
    raise _unknown(value)


def _container(value: Any, kind: type, depth: int) -> Hashable:
    def forms(entries: Any) -> tuple[Hashable, ...]:
        return tuple(_form(entry, depth) for entry in entries)

    if kind is tuple:
        return forms(value)
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray) or value.dtype.names or value.dtype.kind in "mMV":
            raise UnsoundAudit("an output is an array with a mask, fields or dates; return plain numbers")
        return Shaped("numpy.ndarray", (value.shape, forms(value.ravel().tolist())))
    if isinstance(value, dict):
        return Shaped(_name(kind), frozenset((_form(key, depth), _form(entry, depth)) for key, entry in value.items()))
    if isinstance(value, set | frozenset):
        return Shaped(_name(kind), frozenset(forms(value)))
    if isinstance(value, enum.Enum):
        return Shaped(_name(kind), value.name)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        return Shaped(_name(kind), tuple((name, _form(getattr(value, name, None), depth)) for name in names))
    if isinstance(value, list | tuple | deque | range):
        return Shaped(_name(kind), forms(value))
    if isinstance(value, Iterator):
        entries = list(islice(value, LONGEST + 1))
        if len(entries) > LONGEST:
            raise UnsoundAudit(f"an output is an iterator of more than {LONGEST:,} entries; return a list")
        return Shaped("iterator", forms(entries))
    try:
        by_content = hash(value) is not None and getattr(kind, "__hash__", None) is not object.__hash__
    except TypeError:
        by_content = False
    if not by_content or callable(value):
        raise _unknown(value)
    return Shaped(_name(kind), value)


def _unknown(value: object) -> UnsoundAudit:
    return UnsoundAudit(
        f"an output of type {_name(type(value))} cannot be told apart by its content; return plain values: numbers, "
        "texts, tuples, lists, dicts, sets or arrays of them"
    )


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
