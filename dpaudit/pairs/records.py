"""The records of two datasets compared, whatever holds them: exactly, type and all, in any order; NaN equals NaN.

In a frame a number is what it counts as, for one missing entry makes floats of a whole column of integers.
"""

import math
from array import array
from collections import Counter, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import islice
from operator import eq
from typing import Any

from dpaudit.claims.relation import Relation
from dpaudit.pairs.data import LONGEST_NUMBER, digest
from dpaudit.pairs.tables import home_of, records_of

PLAIN = (bool, float, str, bytes, type(None))
Keys = list[Hashable]


@dataclass(frozen=True, slots=True)
class ComparedRecords:
    """How the records of two datasets differ: `how` they were told apart, how many leave and come, and the sizes."""

    how: str
    gone: int
    come: int
    sizes: tuple[int, int]

    def connects(self, relation: Relation, distance: int) -> bool:
        """Whether the relation connects the datasets within so many steps."""
        return {
            Relation.ADD_OR_REMOVE_ONE: self.gone + self.come <= distance,
            Relation.REPLACE_ONE: self.gone == self.come <= distance,
            Relation.REPLACE_SPECIAL: self.gone == self.come <= distance,
            Relation.LOCAL: self.sizes == (1, 1),
        }[relation]


def compared(first: Any, second: Any) -> ComparedRecords | None:
    """The comparison of two datasets by their records; None where they are not known to hold any.

    A dictionary is a table of columns where all its values are columns of one length. One whose keys stay the same
    may be records by name, counts, or settings beside data, so that nothing is known of it.

    >>> compared([1, 2, 3], [3, 2])
    ComparedRecords(how='records', gone=1, come=0, sizes=(3, 2))
    """
    found = _keys_of(first, second)
    if found is None:
        return None
    how, before, after = found
    there = list(map(eq, before, after))  # most records stand where they stood, counted from one end or the other
    start = there.index(False) if False in there else len(there)
    there = list(map(eq, reversed(before), islice(reversed(after), len(there) - start)))
    end = there.index(False) if False in there else len(there)
    left, right = (Counter(keys[start : len(keys) - end]) for keys in (before, after))
    return ComparedRecords(how, (left - right).total(), (right - left).total(), (len(before), len(after)))


def _keys_of(first: Any, second: Any) -> tuple[str, Keys, Keys] | None:
    if isinstance(first, dict) and isinstance(second, dict):
        if first.keys() == second.keys():
            tables = [records_of(data) for data in (first, second)]
            found = [_keys([row[key] for key in first] for row in rows or ()) for rows in tables]
            return None if None in tables else ("rows", found[0], found[1])
        return "entries", _keys(first.items()), _keys(second.items())
    if all(home_of(data) in ("pandas", "polars") for data in (first, second)):
        indexed = not any(type(getattr(data, "index", None)).__name__ == "RangeIndex" for data in (first, second))
        return "rows", _rows(first, indexed), _rows(second, indexed)
    if _is_collection(first) and _is_collection(second):
        return "records", _records(first), _records(second)
    return None


def _is_collection(data: Any) -> bool:
    kinds: Any = (list, tuple, set, frozenset, deque, range, array)
    return isinstance(data, kinds) or home_of(data) == "numpy" and data.ndim > 0


def _keys(records: Iterable[Any]) -> Keys:
    return [repr(record) if _is_plain(record) else digest(record) for record in records]


def _is_plain(record: Any) -> bool:
    """Whether `repr` tells the record whole, with its type."""
    if type(record) is int:
        return record.bit_length() < LONGEST_NUMBER
    return type(record) in PLAIN or (type(record) in (tuple, list) and all(map(_is_plain, record)))


def _records(data: Any) -> Keys:
    if home_of(data) != "numpy":
        return _keys(data)
    if data.dtype.kind not in "fiub" or data.dtype.itemsize > 8 or hasattr(data, "mask"):
        return _keys(data.tolist())  # of objects, texts and structures: padding is no content, nor what a mask hides
    import numpy as np

    flat = np.array(data, order="C").reshape(len(data), math.prod(data.shape[1:]))
    if data.dtype.kind == "f":
        flat[np.isnan(flat)] = np.nan  # there are many NaNs
    return [(data.dtype.str, data.shape[1:], row.tobytes()) for row in flat]


def _rows(frame: Any, indexed: bool) -> Keys:
    """The rows with the names of their columns, so that frames of other columns have no row in common."""
    names = [str(name) for name in getattr(frame, "columns", ())]
    if hasattr(frame, "itertuples"):
        rows = frame.itertuples(index=indexed, name=None)
    elif hasattr(frame, "rows"):
        rows = frame.rows()
    else:
        rows = frame.items() if indexed and hasattr(frame, "items") else ((value,) for value in frame.to_list())
    return _keys((names, [_number(value) for value in row]) for row in rows)


def _number(value: Any) -> Any:
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = value.item()
    return int(value) if type(value) is float and value.is_integer() else value
