"""Outputs as objects: grouped by what they have in common, and single ones as they are read."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpaudit.arrays import Places
from dpaudit.sampling.exact import gaps
from dpaudit.sampling.matrix import WIDEST

MOST_BEHIND = 1 << 16  # bytes of memory behind a view that are compared
Rows = Places | None  # rows of a batch; None for all


class Absent:
    """Stands where an entry is masked."""


ABSENT_ENTRY = Absent()


def groups(
    objects: list[Any], rows: Rows, runs: int, key: Callable[[Any], Any]
) -> Iterable[tuple[Any, list[Any], Places | None]]:
    """The objects by key, in order of first appearance, each group with its rows (None: all rows)."""
    keys = list(map(key, objects))
    if keys.count(keys[0]) == len(keys):
        return [(keys[0], objects, rows)]
    positions: dict[Any, list[int]] = {}
    for position, each in enumerate(keys):
        positions.setdefault(each, []).append(position)
    whole = np.arange(runs, dtype=np.intp) if rows is None else rows
    return [(each, [objects[j] for j in there], whole[there]) for each, there in positions.items()]


def hexed(found: Any) -> str:
    """The content of bytes, a bytearray or a memoryview, in hexadecimal digits."""
    holder: Any = next(each for each in (bytes, bytearray, memoryview) if isinstance(found, each))
    return str(holder.hex(found))


def size_of(found: Any) -> int:
    """The number of entries of a container of Python's or numpy's; 0 of anything else."""
    if isinstance(found, np.ndarray):
        return int(np.ndarray.size.__get__(found))
    held: Any = next((each for each in (list, tuple, dict, set, frozenset) if isinstance(found, each)), None)
    return 0 if held is None else int(held.__len__(found))


def item(found: Any) -> Any:
    """A scalar of an array as Python writes it; fields and dates stay as they are."""
    return (
        found.item()
        if isinstance(found, np.generic) and not isinstance(found, np.void | np.datetime64 | np.timedelta64)
        else found
    )


def kind_of_array(found: Any) -> str:
    """The type of the entries of an array, with its byte order and the order in memory; empty for plain doubles."""
    kind = found.dtype
    named = str(kind) if kind.names or kind.hasobject else kind.str
    named = "" if kind == np.float64 and kind.isnative else named
    named += f" with {dict(kind.metadata)!r}" if kind.metadata else ""
    named += f" {found.shape}" if found.size == 0 and found.ndim > 1 else ""
    return named if found.flags.c_contiguous or found.ndim < 2 else f"{named} by columns".strip()


def around(found: Any) -> tuple[Any, ...] | None:
    """What an array or a record keeps beyond its entries: how they lie, what lies between and behind them; None for
    more than is compared."""
    flags, base, octets = found.flags, found.base, np.frombuffer(found.tobytes(), np.uint8)
    between = octets.reshape(-1, found.dtype.itemsize)[:, gaps(found.dtype)].tobytes() if octets.size else b""
    memory = None if base is None else base if isinstance(base, np.ndarray | np.void) else memoryview(base)
    if memory is not None and memory.nbytes > MOST_BEHIND:
        return None
    behind = b"" if memory is None or memory.nbytes == found.nbytes else memory.tobytes()
    contiguous = flags.c_contiguous or flags.f_contiguous
    return () if contiguous else found.strides, flags.writeable, flags.aligned, between, behind


def array_kind(found: Any) -> tuple[tuple[int, ...], str, bool]:
    """What arrays that are read together have in common: shape, kind of entries, whether some may be masked."""
    return found.shape, kind_of_array(found), isinstance(found, np.ma.MaskedArray)


def cells_of(found: Any) -> list[Any]:
    """The first entries of an array, flattened, a masked one as absent."""
    flat = np.ma.getdata(found).reshape(-1)[:WIDEST]
    hidden = np.ma.getmaskarray(found).reshape(-1)[:WIDEST] if isinstance(found, np.ma.MaskedArray) else None
    if hidden is not None and hidden.dtype.names:
        hidden = np.array([all(mask) for mask in hidden])
    return [ABSENT_ENTRY if hidden is not None and hidden[j] else item(entry) for j, entry in enumerate(flat)]
