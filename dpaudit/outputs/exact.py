"""Outputs as they are: copied before the next run can change them, read past methods that say something else.

Content is read by the methods of the type that holds it (`float.__float__`), never by those of a subclass. Outputs are
grouped by what they have in common.
"""

import dataclasses
import datetime
import enum
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.base.arrays import Places
from dpaudit.outputs.canonical import WIDEST, Failure, Outputs

IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: of classes written in C, never of one that Python code makes
HOLDERS = ("builtins", "numpy", "decimal", "fractions")
DEEPEST = 6  # levels of nesting that are looked at
MOST_BEHIND = 1 << 16  # bytes of memory behind a view that are compared
Rows = Places | None  # rows of a batch; None for all
LIBRARIES = {"numpy", "pandas", "polars", "torch", "jax", "jaxlib", "tensorflow", "xarray", "pyarrow", "cupy", "scipy"}
SCALARS = frozenset(np.sctypeDict.values()) - {np.void, np.object_}
NUMBERS = frozenset({float, int, bool} | {each for each in SCALARS if np.dtype(each).kind in "fiub"})
FIXED = NUMBERS | SCALARS | {complex, str, bytes, type(None), Failure, type(np.ma.masked), Decimal, Fraction, uuid.UUID}
FIXED |= {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}  # nothing can change one of these types


@dataclass(frozen=True, slots=True)
class Encoded:
    """Stands where an output would that cannot be copied: its canonical form, found before the next run."""

    outputs: Outputs


def snapshot(output: Any, encode: Callable[[list[Any]], Outputs], *, whole: bool = True) -> Any:
    """The output as it is now, whatever later runs do to what it is made of; `whole` with what arrays keep beside it.

    >>> buffer = [1.0]
    >>> now = snapshot(buffer, encode=list)
    >>> buffer[0] = 2.0
    >>> now
    [1.0]
    """
    if type(output) is tuple and FIXED.issuperset(map(type, output)):  # the most common of all, and nothing to copy
        return output
    try:
        return _copied(output, DEEPEST, whole)
    except Exception:  # of a type that cannot be copied without its own help, or that fails to give it
        return Encoded(encode([output]))


def is_plain(array: Any) -> bool:
    """Whether an array holds nothing but its entries, side by side: no gaps, no more memory than it shows.

    >>> is_plain(np.zeros((2, 3)).T), is_plain(np.zeros(6)[:3])
    (True, False)
    """
    flags, kind = array.flags, array.dtype
    whole = array.base is None or getattr(array.base, "nbytes", -1) == array.nbytes
    return (flags.carray or flags.farray) and whole and (kind.names is None or gaps(kind).size == 0)


@lru_cache(maxsize=1 << 10)
def gaps(kind: Any) -> Places:
    """The bytes of a record that are in none of its fields."""
    filled = np.full(kind.itemsize, kind.names is None)
    for field, start, *_ in (kind.fields or {}).values():
        filled[start : start + field.itemsize] = True
        if field.names is not None:
            filled[start + gaps(field)] = False
    return np.flatnonzero(~filled)


def arrays_of(output: Any) -> list[Any]:
    """The arrays that a batched result consists of."""
    parts = list(output.values()) if type(output) is dict else output if type(output) is tuple else [output]
    return [part for part in parts if isinstance(part, np.ndarray)]


def _copied(output: Any, depth: int, whole: bool) -> Any:
    kind: Any = type(output)
    if kind in FIXED or depth == 0:
        return output
    if kind is np.ndarray or kind is np.ma.MaskedArray:
        if not (output.dtype.hasobject or (whole and not is_plain(output))):
            return output.copy(order="K")
    elif kind is list or kind is tuple:
        if FIXED.issuperset(map(type, output)):
            return kind(output)
        return kind([_copied(part, depth - 1, whole) for part in output])
    elif kind is dict:
        if FIXED.issuperset(map(type, output.values())):
            return output.copy()
        return {key: _copied(part, depth - 1, whole) for key, part in output.items()}
    elif kind in (set, frozenset, bytearray):
        return output.copy()
    elif not own_words(kind):
        if issubclass(kind, tuple) and not kind.__dictoffset__ and FIXED.issuperset(map(type, tuple.__iter__(output))):
            return output
        if issubclass(kind, enum.Enum):
            return output
        fields = dataclasses.fields(kind) if kind.__base__ is object and dataclasses.is_dataclass(kind) else ()
        if fields and len(getattr(output, "__dict__", fields)) == len(fields):  # and nothing else is attached
            copy: Any = object.__new__(type(output))
            for each in fields:
                object.__setattr__(copy, each.name, _copied(getattr(output, each.name, None), depth - 1, whole))
            return copy
    raise TypeError(kind)


@lru_cache(maxsize=1 << 10)
def module_of(kind: Any) -> str:
    """The module of a class; empty where that has no such class: it only says so."""
    name = str(kind.__module__)
    owner: Any = sys.modules.get(name)
    for part in str(kind.__qualname__).split("."):
        owner = getattr(owner, part, None)
    return name if kind.__flags__ & IMMUTABLE or owner is kind else ""


@lru_cache(maxsize=1 << 10)
def base(kind: Any, method: str) -> Any:
    """The class of Python's or numpy's that holds the content of a type and reads it by this method; None for none.

    >>> base(type("Rate", (float,), {"__float__": lambda self: 0.0}), "__float__")
    <class 'float'>
    """
    ours = (each for each in kind.__mro__ if module_of(each) in HOLDERS)
    return next((each for each in ours if hasattr(each, method)), None)


def real(number: Any) -> float:
    """The number that an object of a numeric type is, as a double."""
    kind: Any = type(number)
    holder = base(kind, "__float__")
    if holder is None:
        return float(number)
    try:
        return float(holder.__float__(number))
    except OverflowError:  # beyond the range of floats
        return float("inf") if holder.__gt__(number, 0) else float("-inf")
    except ValueError:  # a signalling NaN
        return float("nan")


@lru_cache(maxsize=1 << 10)
def own_words(kind: Any) -> bool:
    """Whether a class has a way of its own to print itself.

    >>> own_words(type("Point", (tuple,), {})), own_words(type("Shy", (float,), {"__repr__": lambda self: "?"}))
    (False, True)
    """
    for name in ("__repr__", "__str__"):
        holder = next(each for each in kind.__mro__ if name in vars(each))
        module = getattr(vars(holder)[name], "__globals__", {}).get("__name__") or holder.__module__
        top = str(module).partition(".")[0]
        if top not in sys.stdlib_module_names and top not in LIBRARIES:
            return True
    return False


def words_of(output: Any) -> str:
    """What an object prints, and what it is written as."""
    words, written = (str.__str__(way(output)) for way in (str, repr))
    return words if words == written else f"{words} {written}"


class Absent:
    """Stands where an entry is masked."""


ABSENT_ENTRY = Absent()


def at(rows: Rows, places: Sequence[int] | Places) -> Places:
    """The rows of some of the objects that stand in these rows, by their places among them."""
    found = np.asarray(places, np.intp)
    return found if rows is None else rows[found]


def groups(objects: list[Any], rows: Rows, key: Callable[[Any], Any]) -> Iterable[tuple[Any, list[Any], Places | None]]:
    """The objects by key, in order of first appearance, each group with its rows (None: all rows)."""
    keys = list(map(key, objects))
    if keys.count(keys[0]) == len(keys):
        return [(keys[0], objects, rows)]
    positions: dict[Any, list[int]] = {}
    for position, each in enumerate(keys):
        positions.setdefault(each, []).append(position)
    return [(each, [objects[j] for j in there], at(rows, there)) for each, there in positions.items()]


def size_of(container: Any) -> int:
    """The number of entries of a container of Python's or numpy's; 0 of anything else."""
    if isinstance(container, np.ndarray):
        return int(np.ndarray.size.__get__(container))
    holder: Any = next((each for each in (list, tuple, dict, set, frozenset) if isinstance(container, each)), None)
    return 0 if holder is None else int(holder.__len__(container))


def item(scalar: Any) -> Any:
    """A scalar of an array as Python writes it; fields and dates stay as they are."""
    plain = isinstance(scalar, np.generic) and not isinstance(scalar, np.void | np.datetime64 | np.timedelta64)
    return scalar.item() if plain else scalar


def kind_of_array(array: Any) -> str:
    """The type of the entries of an array, with its byte order and the order in memory; empty for plain doubles."""
    kind = array.dtype
    named = str(kind) if kind.names or kind.hasobject else kind.str
    named = "" if kind == np.float64 and kind.isnative else named
    named += f" with {dict(kind.metadata)!r}" if kind.metadata else ""
    named += f" {array.shape}" if array.size == 0 and array.ndim > 1 else ""
    return named if array.flags.c_contiguous or array.ndim < 2 else f"{named} by columns".strip()


def around(array: Any) -> tuple[Any, ...] | None:
    """What an array or a record keeps beyond its entries: how they lie, what lies between and behind them; None for
    more than is compared."""
    flags, base, octets = array.flags, array.base, np.frombuffer(array.tobytes(), np.uint8)
    between = octets.reshape(-1, array.dtype.itemsize)[:, gaps(array.dtype)].tobytes() if octets.size else b""
    memory = None if base is None else base if isinstance(base, np.ndarray | np.void) else memoryview(base)
    if memory is not None and memory.nbytes > MOST_BEHIND:
        return None
    behind = b"" if memory is None or memory.nbytes == array.nbytes else memory.tobytes()
    contiguous = flags.c_contiguous or flags.f_contiguous
    return () if contiguous else array.strides, flags.writeable, flags.aligned, between, behind


def array_kind(array: Any) -> tuple[tuple[int, ...], str, bool]:
    """What arrays that are read together have in common: shape, kind of entries, whether some may be masked."""
    return array.shape, kind_of_array(array), isinstance(array, np.ma.MaskedArray)


def cells_of(array: Any) -> list[Any]:
    """The first entries of an array, flattened, a masked one as absent."""
    flat = np.ma.getdata(array).reshape(-1)[:WIDEST]
    hidden = np.ma.getmaskarray(array).reshape(-1)[:WIDEST] if isinstance(array, np.ma.MaskedArray) else None
    if hidden is not None and hidden.dtype.names:
        hidden = np.array([all(mask) for mask in hidden])
    return [ABSENT_ENTRY if hidden is not None and hidden[j] else item(entry) for j, entry in enumerate(flat)]
