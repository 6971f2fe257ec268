"""A dataset as its records, whatever holds them: taken out, added, replaced, and put together again in its own kind."""

import copy
import math
import numbers
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from dpaudit.base import validate
from dpaudit.data.data import digest, home_of, records_of
from dpaudit.data.owners import User
from dpaudit.data.pair import AdjacentPair
from dpaudit.errors import InvalidSpec

OUTLIER = 1000.0  # times the largest number in the data, at least 1
ENDS = ("first", "last", "least", "greatest")
OF_VALUES = ("first", "least", "greatest")  # where only the content of a record counts, not its place
Pairs = tuple[AdjacentPair, ...]
LONGEST_VALUE = 40  # characters of a record in the name of a pair


class DataRecords:
    """A list, tuple, array, frame or series of pandas or polars, or dictionary of columns, with its `records`.

    A record is a number, a row (a list, tuple, dictionary, array or dataclass with numbers in it) or anything else;
    those of tables are dictionaries, those of structured arrays tuples. Raises `InvalidSpec` for other data, or fewer.
    `rows` are what the dataset holds: here its records. A pair has the `user` of these, or none.
    """

    words: Mapping[str, str] = {}  # what the ends are called, where not by their own words
    unit = "records"
    user: User | None = None

    def __init__(self, data: Any, distance: int, *, least: int = 0) -> None:
        if (records := records_of(data)) is None:
            known = "a list, tuple, numpy array, frame or dictionary of columns"
            raise InvalidSpec(f"a pattern needs the records of {known}, got {type(data).__name__}")
        self.data, self.records = data, records
        self.rows = records
        self.distance = validate.whole("distance", distance, least=1)
        self.need(least)

    def need(self, least: int) -> None:
        """Raises `InvalidSpec` where the dataset has fewer records."""
        if len(self.records) < least:
            raise InvalidSpec(f"the pattern needs a dataset of at least {least} {self.unit}, got {len(self.records)}")

    def take(self, places: list[int]) -> Any:
        """The records at these places."""
        return taken(self.data, places)

    def pair(self, first: Any, second: Any, name: str) -> AdjacentPair:
        """A pair of two datasets as far apart as stated."""
        return AdjacentPair(first, second, name, self.distance, user=self.user)

    def more(self, records: list[Any]) -> Any:
        """The dataset with these records after its own."""
        return joined(self.data, records)

    def numbers(self, record: Any) -> Iterator[float]:
        """The numbers in a record."""
        return _numbers(record)

    def size(self, record: Any) -> float:
        """By what records are ordered; NaN where they are not."""
        return max(self.numbers(record), key=abs, default=math.nan)

    def texts(self) -> list[Any]:
        """The columns of a table that hold texts."""
        first = self.rows[0]
        return [key for key, value in first.items() if isinstance(value, str)] if isinstance(first, dict) else []

    def cells(self, record: Any, place: Any) -> list[Any]:
        """What a record has at a place; for None, the record itself."""
        return [record if place is None else cell(record, place)]

    def without(self, places: list[int]) -> Any:
        """All other records."""
        return self.take([place for place in range(len(self.records)) if place not in places])

    def ends(self, words: Iterable[str], count: int | None = None) -> list[tuple[str, list[int]]]:
        """The places of the first, last, least or greatest `count` records; of equal ends, only the one named first.

        Records without numbers, or with NaN, have no least and no greatest.
        """
        count = self.distance if count is None else count
        every = list(range(len(self.records)))
        places = {"first": every[:count], "last": every[len(every) - count :]}
        sizes = list(map(self.size, self.records))
        if not any(map(math.isnan, sizes)):
            ordered = sorted(every, key=lambda place: sizes[place])
            places |= {"least": ordered[:count], "greatest": ordered[len(ordered) - count :]}
        chosen: dict[frozenset[int], str] = {}
        for word in words:
            if word in places:
                chosen.setdefault(frozenset(places[word]), word)
        return [(self.words.get(word, word), places[word]) for word in chosen.values()]

    def like(self, number: float | None) -> Any:
        """A record like the first, with this value in place of each of its numbers; of no records, the value."""
        if not self.records:
            return number
        first, columns = self.records[0], self.data.values() if isinstance(self.data, dict) else [self.data]
        if not list(self.numbers(first)):
            raise InvalidSpec(
                f"the records hold no number that could be {word_of(number)}, got {short(first)}; name other patterns"
            )
        typed = isinstance(self.rows[0], dict | tuple) and any(map(home_of, columns))
        filled = self.filled(first, number, typed)
        if typed and not (number is not None and math.isfinite(number)) and digest(filled) == digest(first):
            raise InvalidSpec(f"columns of whole numbers cannot hold {word_of(number)}")
        return filled

    def filled(self, record: Any, number: float | None, typed: bool) -> Any:
        """The record with the number in place of each of its numbers; see `filled`."""
        return filled(record, number, typed)

    def outlying(self, size: float | None) -> Iterator[tuple[float, Any]]:
        """The records of a number of this size, of both signs, within what an array can hold."""
        if size is None:
            finite = [
                abs(number) for record in self.records for number in self.numbers(record) if math.isfinite(number)
            ]
            size = OUTLIER * max([1.0, *finite])
        validate.positive("size", size)
        for number in (size, -size):
            within = _within(self.data.dtype, number) if home_of(self.data) == "numpy" else number
            yield within, self.like(within)

    def added(self, records: Iterable[tuple[str, Any]]) -> Pairs:
        """The dataset against itself and `distance` copies of each record."""
        name = counted("add", self.distance)
        return tuple(
            self.pair(self.data, self.more([record] * self.distance), f"{name}: {word}") for word, record in records
        )

    def first_replaced(self, records: Iterable[tuple[str, Any]]) -> Pairs:
        """The dataset against itself with each record in place of the first `distance` ones."""
        self.need(self.distance)
        places = list(range(self.distance))
        return self.replaced((f"first by {word}", places, record) for word, record in records)

    def replaced(self, changes: Iterable[tuple[str, list[int], Any]]) -> Pairs:
        """The dataset against itself with a record at these places; where all of them are really changed."""
        name, pairs, size = counted("replace", self.distance), [], len(self.records)
        for word, places, record in changes:
            wide = joined(self.data, [record])
            changed = taken(wide, [size if place in places else place for place in range(size)])
            if home_of(self.data) == "pandas":
                changed.index = self.data.index
            after = records_of(changed) or []
            if all(digest(self.records[place]) != digest(after[place]) for place in places):
                pairs.append(self.pair(self.data, changed, f"{name}: {word}"))
        if not pairs:
            raise InvalidSpec("replacing records by their equals makes no pair; give another value=...")
        return tuple(pairs)


def taken(data: Any, places: list[int]) -> Any:
    """The records at these places, as a dataset of the same kind."""
    home = home_of(data)
    if home == "pandas":
        return data.iloc[places]
    if home is not None:
        return data[places] if places else data[:0]
    if isinstance(data, dict):
        return {key: taken(column, places) for key, column in data.items()}
    return like(data, [data[place] for place in places])


def joined(data: Any, records: list[Any]) -> Any:
    """The dataset with these records after its own. Raises `InvalidSpec` where it cannot hold one as it is."""
    home = home_of(data)
    if home == "numpy":
        import numpy as np

        more = np.empty((len(records), *data.shape[1:]), data.dtype)
        for number, record in enumerate(records):
            _put(more, slice(number, number + 1), record)
        return np.concatenate([data, more]).view(type(data))
    if home in ("pandas", "polars"):
        try:
            return (_with_rows if home == "pandas" else _with_polars)(data, records)
        except Exception as error:
            cause = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidSpec(f"a {type(data).__name__} cannot hold the record {short(records[0])} ({cause})") from None
    if isinstance(data, dict):
        return {key: joined(column, [record[key] for record in records]) for key, column in data.items()}
    return like(data, [*data, *records])


def _with_rows(data: Any, records: list[Any]) -> Any:
    """Columns keep their types, as all other rows would change with them; labels go on where they are numbers."""
    pd: Any = sys.modules["pandas"]
    if not hasattr(data, "columns"):
        return _with_rows(data.to_frame("value"), [{"value": record} for record in records])["value"].rename(data.name)
    more = pd.DataFrame(records, columns=data.columns)
    for name, kind in data.dtypes.items():
        given, more[name] = more[name].tolist(), more[name].astype(kind)
        if kind.kind in "iub" and more[name].tolist() != given:
            raise ValueError(f"{name!r} is a column of {kind}")
    if isinstance(data.index, pd.RangeIndex):
        return pd.concat([data, more], ignore_index=True)
    numbered = len(data) > 0 and pd.api.types.is_integer_dtype(data.index)
    labels = [data.index.max() + 1 + j if numbered else f"added {j + 1}" for j in range(len(records))]
    return pd.concat([data, more.set_index(pd.Index(labels, name=data.index.name))])


def _with_polars(data: Any, records: list[Any]) -> Any:
    pl: Any = sys.modules["polars"]
    if hasattr(data, "columns"):
        return pl.concat([data, pl.DataFrame(records, schema=data.schema)])
    return pl.concat([data, pl.Series(data.name, records, dtype=data.dtype)])


def _put(array: Any, places: Any, record: Any) -> None:
    try:
        array[places] = record
        whole = [repr(each) == repr(record) for each in array[places].tolist()] if array.dtype.names else []
        fits = all(whole) and (array.dtype.kind in "fcOV" or bool((array[places] == record).all()))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidSpec(f"an array of {array.dtype} cannot hold the record {short(record)} ({error})") from None
    if not fits:
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


def like(model: Any, items: list[Any]) -> Any:
    """The items as a list or tuple of the same kind; a named tuple is made by its own function."""
    kind = type(model)
    return kind._make(items) if hasattr(kind, "_make") else kind(items)


def vars_of(record: Any) -> dict[str, Any]:
    """The fields of a dataclass."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _is_array(record: Any) -> bool:
    return type(record).__name__ == "ndarray" and record.ndim > 0


def _numbers(record: Any) -> Iterator[float]:
    if isinstance(record, bool):
        return
    if isinstance(record, numbers.Real):
        yield float(record)
    elif isinstance(record, dict | list | tuple) or is_dataclass(record) or _is_array(record):
        parts = vars_of(record) if is_dataclass(record) else record
        for value in parts.values() if isinstance(parts, dict) else parts:
            yield from _numbers(value)


def filled(record: Any, number: float | None, typed: bool) -> Any:
    """The record with the number in place of each of its numbers, whole where those are and it is.

    Whole numbers of a `typed` column stay where the number is none that it can hold.
    """
    if isinstance(record, bool):
        return record
    if isinstance(record, numbers.Real):
        whole, finite = isinstance(record, numbers.Integral), number is not None and math.isfinite(number)
        if whole and finite and (typed or float(number).is_integer()):  # type: ignore[arg-type]
            return int(number)  # type: ignore[arg-type]
        return record if whole and typed else None if number is None else float(number)
    if isinstance(record, dict):
        return {key: filled(value, number, typed) for key, value in record.items()}
    if is_dataclass(record):
        changed = copy.copy(record)
        for name, value in vars_of(record).items():
            object.__setattr__(changed, name, filled(value, number, typed))  # frozen ones too
        return changed
    if isinstance(record, list | tuple):
        return like(record, [filled(value, number, typed) for value in record])
    if _is_array(record):
        changed = record.copy()
        _put(changed, slice(None), number)
        return changed
    return record


def cell(row: Any, place: Any) -> Any:
    try:
        return row[place]
    except (TypeError, LookupError):
        raise InvalidSpec(f"a record holds nothing at {place!r}, got {short(row)}") from None


def cells_of(row: Any) -> Iterable[tuple[Any, Any]]:
    """The places of a row and what it has there; of a value that is no row, itself at None."""
    if is_dataclass(row):
        row = vars_of(row)
    if isinstance(row, dict):
        return row.items()
    return enumerate(row) if isinstance(row, list | tuple) or _is_array(row) else [(None, row)]


def put(row: Any, place: Any, value: Any) -> Any:
    """The row with this value at a place: a position, a key, a field or an attribute; for None, the value itself."""
    if place is None:
        return value
    if isinstance(row, list | tuple) and isinstance(place, int):
        cells = list(row)
        cells[place] = value
        return like(row, cells)
    if isinstance(row, tuple):
        return row._replace(**{str(place): value})  # type: ignore[attr-defined]
    changed = copy.copy(row)
    if isinstance(row, dict) or hasattr(row, "dtype"):
        changed[place] = value
    else:
        object.__setattr__(changed, str(place), value)  # of frozen dataclasses too
    return changed


def word_of(value: float | None) -> str:
    return "None" if value is None else "NaN" if value != value else f"{value:g}"


def counted(verb: str, distance: int) -> str:
    return f"{verb} {'one' if distance == 1 else distance}"


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
