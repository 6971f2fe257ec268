"""Stock pairs of datasets: one record, or `distance` of them, dropped, added or replaced.

A dataset is a list, a tuple or a numpy array, whose first axis is the records; a record is a number or a row (a
list, tuple, dictionary or array with numbers in it) or anything else. Both orders of a pair are looked at in search.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dpaudit import validate
from dpaudit.errors import InvalidSpec
from dpaudit.pairs.data import digest
from dpaudit.pairs.pair import AdjacentPair

OUTLIER = 1000.0  # times the largest number in the data, at least 1
ENDS = ("first", "last", "least", "greatest")
OF_VALUES = ("first", "least", "greatest")  # where only what a record holds counts, not where it stands
Pairs = tuple[AdjacentPair, ...]
MISSING: Any = object()
LONGEST_VALUE = 40  # characters of a record in the name of a pair


def drop_one(data: Any, *, distance: int = 1) -> Pairs:
    """The dataset against itself without `distance` records: the first, the last, the least or the greatest ones.

    DataRecords that are no numbers have no order: the first and the last are dropped. For `add_or_remove_one`.
    Raises `InvalidSpec` where there are too few records.

    >>> [pair.second for pair in drop_one([3, 1, 2])]
    [[1, 2], [3, 1], [3, 2]]
    """
    records = DataRecords(data, distance)
    records.need(distance)
    name = _count("drop", distance)
    return tuple(
        AdjacentPair(data, records.without(places), f"{name}: {word}", distance) for word, places in records.ends(ENDS)
    )


def add_one(data: Any, *, value: Any = MISSING, distance: int = 1) -> Pairs:
    """The dataset against itself and `distance` records more: `value`, or copies of its first, least or greatest.

    For `add_or_remove_one`. Raises `InvalidSpec` for an empty dataset without a `value`.

    >>> [pair.second for pair in add_one([1, 2], value=7)]
    [[1, 2, 7]]
    """
    records = DataRecords(data, distance)
    if value is not MISSING:
        return records.added([(short(value), value)])
    if len(data) == 0:
        raise InvalidSpec("add_one: an empty dataset has no record to copy; give value=...")
    return records.added((f"a copy of the {word}", data[place]) for word, (place,) in records.ends(OF_VALUES, 1))


def replace_one(data: Any, *, value: Any = MISSING, distance: int = 1) -> Pairs:
    """The dataset against itself with `distance` records replaced: by `value`, or the least by the greatest and back.

    DataRecords that are no numbers have no order: the first are replaced by the last, and the last by the first. With
    the special record as `value`, for `replace_special` too. Raises `InvalidSpec` where no record would change.

    >>> [pair.second for pair in replace_one([3, 1, 2])]
    [[3, 3, 2], [1, 1, 2]]
    >>> [pair.second for pair in replace_one([3, 1], value=0)]
    [[0, 1], [3, 0]]
    """
    records = DataRecords(data, distance)
    records.need(distance)
    if value is not MISSING:
        return records.replaced((f"{word} by {short(value)}", places, value) for word, places in records.ends(ENDS))
    ends = dict(records.ends(ENDS[2:]) or records.ends(ENDS[:2]))
    if len(ends) < 2:
        raise InvalidSpec(f"replace_one: {len(data)} records do not hold {distance} for others; give value=...")
    swaps = (tuple(ends), tuple(ends)[::-1])
    return records.replaced((f"{one} by the {other}", ends[one], data[ends[other][0]]) for one, other in swaps)


def add_outlier(data: Any, *, size: float | None = None, distance: int = 1) -> Pairs:
    """The dataset against itself and `distance` records more whose numbers are all `size`, or all -`size`.

    Left out, `size` is a thousand times the largest in the data (at least 1); where the type of an array ends
    before that, its end. For `add_or_remove_one`. Raises `InvalidSpec` where records hold no numbers.

    >>> [pair.second for pair in add_outlier([1, 2])]
    [[1, 2, 2000], [1, 2, -2000]]
    """
    records = DataRecords(data, distance)
    return records.added((f"outlier {number:g}", record) for number, record in records.outlying(size))


def valued(how: str, *values: float | None) -> Callable[..., Pairs]:
    """The pattern of `distance` records like the first whose numbers are all one of these values.

    They are "added", or "first_replaced". It raises `InvalidSpec` where records hold no numbers, or an array cannot
    hold the value.

    >>> valued("added", math.nan)([1.0])[0].second
    [1.0, nan]
    >>> [pair.second for pair in valued("first_replaced", math.inf, None)([1.0, 2.0])]
    [[inf, 2.0], [None, 2.0]]
    """

    def make(data: Any, *, distance: int = 1) -> Pairs:
        records = DataRecords(data, distance)
        made: Pairs = getattr(records, how)((_word(value), records.like(value)) for value in values)
        return made

    return make


def replace_by_outlier(data: Any, *, size: float | None = None, distance: int = 1) -> Pairs:
    """As `add_outlier`, in the place of the first `distance` records. For `replace_one`.

    >>> [pair.second for pair in replace_by_outlier([1, 2], size=50)]
    [[50, 2], [-50, 2]]
    """
    records = DataRecords(data, distance)
    return records.first_replaced((f"outlier {number:g}", record) for number, record in records.outlying(size))


def empty(data: Any, *, distance: int = 1) -> Pairs:
    """The first, least or greatest `distance` records of the dataset alone, against the empty dataset.

    For `add_or_remove_one`. Raises `InvalidSpec` where there are too few records.

    >>> [(pair.first, pair.second) for pair in empty([3, 1, 2])]
    [([3], []), ([1], [])]
    """
    records = DataRecords(data, distance)
    records.need(distance)
    nothing = records.take([])
    return tuple(
        AdjacentPair(records.take(places), nothing, f"empty: against the {word}", distance)
        for word, places in records.ends(OF_VALUES)
    )


# --- what all of them do ---------------------------------------------------------------------------------------------


class DataRecords:
    """A dataset as its records, taken out and put together again in its own kind."""

    def __init__(self, data: Any, distance: int) -> None:
        self.array = type(data).__module__ == "numpy" and type(data).__name__ == "ndarray" and data.ndim > 0
        if not (self.array or isinstance(data, list | tuple)):
            raise InvalidSpec(f"a pattern needs a list, a tuple or a numpy array of records, got {type(data).__name__}")
        self.data = data
        self.distance = validate.whole("distance", distance, least=1)

    def need(self, least: int) -> None:
        """Raises `InvalidSpec` where the dataset has fewer records."""
        if len(self.data) < least:
            raise InvalidSpec(f"the pattern needs a dataset of at least {least} records, got {len(self.data)}")

    def take(self, places: list[int]) -> Any:
        """The records at these places."""
        return self.data[places] if self.array else like(self.data, [self.data[place] for place in places])

    def without(self, places: list[int]) -> Any:
        """All other records."""
        return self.take([place for place in range(len(self.data)) if place not in places])

    def ends(self, words: Iterable[str], count: int | None = None) -> list[tuple[str, list[int]]]:
        """The places of the first, last, least or greatest `count` records; of equal ends, only the one named first.

        DataRecords without numbers, or with NaN, have no least and no greatest.
        """
        count = self.distance if count is None else count
        every = list(range(len(self.data)))
        found = {"first": every[:count], "last": every[len(every) - count :]}
        sizes = [max(_numbers(record), key=abs, default=math.nan) for record in self.data]
        if not any(map(math.isnan, sizes)):
            ordered = sorted(every, key=lambda place: sizes[place])
            found |= {"least": ordered[:count], "greatest": ordered[len(ordered) - count :]}
        chosen: dict[frozenset[int], str] = {}
        for word in words:
            if word in found:
                chosen.setdefault(frozenset(found[word]), word)
        return [(word, found[word]) for word in chosen.values()]

    def like(self, number: float | None) -> Any:
        """A record like the first, with this value in place of each of its numbers; of no records, the value."""
        if len(self.data) == 0:
            return number
        if not list(_numbers(self.data[0])):
            raise InvalidSpec(f"the records hold no numbers to put {_word(number)} into, got {short(self.data[0])}")
        return _filled(self.data[0], number)

    def outlying(self, size: float | None) -> Iterator[tuple[float, Any]]:
        """The records of a number of this size, of both signs, within what an array can hold."""
        if size is None:
            finite = [abs(number) for record in self.data for number in _numbers(record) if math.isfinite(number)]
            size = OUTLIER * max([1.0, *finite])
        validate.positive("size", size)
        for number in (size, -size):
            within = _within(self.data.dtype, number) if self.array else number
            yield within, self.like(within)

    def added(self, records: Iterable[tuple[str, Any]]) -> Pairs:
        """The dataset against itself and `distance` copies of each record."""
        name = _count("add", self.distance)
        return tuple(
            AdjacentPair(self.data, self._with(record), f"{name}: {word}", self.distance) for word, record in records
        )

    def _with(self, record: Any) -> Any:
        if not self.array:
            return like(self.data, [*self.data, *[record] * self.distance])
        import numpy as np

        more = np.empty((self.distance, *self.data.shape[1:]), self.data.dtype)
        _put(more, slice(None), record)
        return np.concatenate([self.data, more])

    def first_replaced(self, records: Iterable[tuple[str, Any]]) -> Pairs:
        """The dataset against itself with each record in place of the first `distance` ones."""
        self.need(self.distance)
        places = list(range(self.distance))
        return self.replaced((f"first by {word}", places, record) for word, record in records)

    def replaced(self, changes: Iterable[tuple[str, list[int], Any]]) -> Pairs:
        """The dataset against itself with a record at these places; where all of them are really changed."""
        name, made = _count("replace", self.distance), []
        for word, places, record in changes:
            if self.array:
                changed = self.data.copy()
                _put(changed, places, record)
            else:
                changed = like(self.data, [record if place in places else old for place, old in enumerate(self.data)])
            if all(digest(self.data[place]) != digest(changed[place]) for place in places):
                made.append(AdjacentPair(self.data, changed, f"{name}: {word}", self.distance))
        if not made:
            raise InvalidSpec("replacing records by their equals makes no pair; give another value=...")
        return tuple(made)


def _put(array: Any, places: Any, record: Any) -> None:
    try:
        array[places] = record
        held = array.dtype.kind in "fcO" or bool((array[places] == record).all())
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidSpec(f"an array of {array.dtype} cannot hold the record {short(record)} ({error})") from None
    if not held:
        raise InvalidSpec(f"an array of {array.dtype} cannot hold the record {short(record)} as it is")


def _within(dtype: Any, number: float) -> float:
    """The number, or the end of the type that comes before it."""
    import numpy as np

    if dtype.kind in "iu":
        whole, ends = int(number), np.iinfo(dtype)
        return min(max(whole, int(ends.min)), int(ends.max))
    if dtype.kind == "f":
        return min(max(number, float(np.finfo(dtype).min)), float(np.finfo(dtype).max))
    return number


def like(kept: Any, items: list[Any]) -> Any:
    """The items as a list or tuple of the same kind; a named tuple is made by its own function."""
    kind = type(kept)
    return kind._make(items) if hasattr(kind, "_make") else kind(items)


def _is_array(record: Any) -> bool:
    return type(record).__name__ == "ndarray" and record.ndim > 0


def _numbers(record: Any) -> Iterator[float]:
    """The numbers of a record: itself, or those of a row."""
    if isinstance(record, bool):
        return
    if isinstance(record, numbers.Real):
        yield float(record)
    elif isinstance(record, dict):
        for value in record.values():
            yield from _numbers(value)
    elif isinstance(record, list | tuple) or _is_array(record):
        for value in record:
            yield from _numbers(value)


def _filled(record: Any, number: float | None) -> Any:
    """The record with the number in place of each of its numbers, whole where those are and it is."""
    if isinstance(record, bool):
        return record
    if isinstance(record, numbers.Real):
        whole = number is not None and isinstance(record, numbers.Integral) and float(number).is_integer()
        return int(number) if whole else number  # type: ignore[arg-type]
    if isinstance(record, dict):
        return {key: _filled(value, number) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return like(record, [_filled(value, number) for value in record])
    if _is_array(record):
        filled = record.copy()
        _put(filled, slice(None), number)
        return filled
    return record


def _word(value: float | None) -> str:
    return "None" if value is None else "NaN" if value != value else f"{value:g}"


def _count(verb: str, distance: int) -> str:
    return f"{verb} {'one' if distance == 1 else distance}"


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
