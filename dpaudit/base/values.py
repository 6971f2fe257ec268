"""A value written out to the last bit, as bytes: types, exact values and order, past what subclasses say of themselves.

Values of Python's and numpy's own types are read here. What an object of another type holds is said by whoever asks,
as plain values.
"""

import struct
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np

DEEPEST = 60  # levels
Held = Callable[[Any], Any]  # what an object of another type holds; None where that cannot be read


class Unreadable(Exception):
    """Something holds what cannot be read without using it up: a generator, a lock, an open file."""


def type_name(kind: type) -> str:
    """A type as people write it."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def spelled(value: Any, held: Held, *, most: int | None = None, ordered: bool = True) -> bytes:
    """The bytes of a value: different for values that an observer can tell apart, and of one value always the same.

    Mappings are told apart by the order of their keys where it is `ordered`. Raises `Unreadable`, as where there are
    more than `most` parts; many floats of one list are one part.

    >>> each = lambda value: spelled(value, lambda other: None)
    >>> each([1, 1.0]) == each([1, 1.0]), each([1]) == each([True]), each(0.0) == each(-0.0)
    (True, False, False)
    """
    count = 0

    def inner(part: Any, left: int) -> bytes:
        nonlocal count
        count += 1
        if left == 0 or (most is not None and count > most):
            raise Unreadable("contents beyond all bounds")
        parts = _parts_of(part, lambda each: inner(each, left - 1), held, ordered)
        joined = b"".join(len(each).to_bytes(8, "little") + each for each in parts)
        return f"{type_name(type(part))}(".encode() + joined + b")"

    return inner(value, DEEPEST)


def _parts_of(value: Any, inner: Callable[[Any], bytes], held: Held, ordered: bool) -> Iterable[bytes]:
    if isinstance(value, np.ndarray | np.generic) and not np.asarray(value).dtype.hasobject:
        array = np.asarray(value)
        padded = array.dtype.names is not None or array.dtype.char in "gG"  # bytes between numbers, which say nothing
        content = repr(array.tolist()).encode() if padded else array.tobytes()
        return [str(array.dtype).encode(), repr(array.shape).encode(), content]
    if isinstance(value, np.ndarray):
        return [inner(list(value.shape)), inner(list(value.reshape(-1)))]
    if isinstance(value, str):
        return [str.encode(value, "utf-8", "surrogatepass")]
    if isinstance(value, bytes | bytearray | memoryview):
        return [bytes(value)]
    if isinstance(value, int):
        return [hex(int.__int__(value)).encode()]
    if isinstance(value, float):
        return [struct.pack("<d", float.__float__(value))]
    if isinstance(value, complex):
        whole = complex.__complex__(value)
        return [struct.pack("<2d", whole.real, whole.imag)]
    if isinstance(value, Decimal):
        return [Decimal.__str__(value).encode()]
    if isinstance(value, list | tuple):
        holder: Any = list if isinstance(value, list) else tuple
        entries = list(holder.__iter__(value))
        doubles = len(entries) > 1 and set(map(type, entries)) == {float}
        return [b"doubles", np.array(entries).tobytes()] if doubles else map(inner, entries)
    if isinstance(value, dict):
        items = map(inner, dict.items(value))
        return items if ordered else sorted(items)
    if isinstance(value, set | frozenset):
        keeper: Any = set if isinstance(value, set) else frozenset
        return sorted(map(inner, keeper.__iter__(value)))
    if value is None or value is Ellipsis or value is NotImplemented:
        return []
    state = held(value)
    if state is None:
        raise Unreadable(f"the contents of a {type_name(type(value))}")
    return [inner(state)]
