"""Pairs that found something in a library: each is of a kind that tests with usual data pass over."""

from typing import Any

from dpaudit import validate
from dpaudit.errors import InvalidSpec
from dpaudit.pairs.data import digest
from dpaudit.pairs.data_records import ENDS, DataRecords, Pairs, like, short
from dpaudit.pairs.pair import AdjacentPair


def change_label(data: Any, *, label: Any = -1) -> Pairs:
    """The dataset against itself with another label, of those it has, in the first, last, least or greatest row.

    `label` is its place in a row, or its key. For `replace_one`. Raises `InvalidSpec` where there is but one label.

    >>> [pair.second for pair in change_label([(7.0, "a"), (9.0, "b")])]
    [[(7.0, 'b'), (9.0, 'b')], [(7.0, 'a'), (9.0, 'a')]]
    """
    records = DataRecords(data, 1)
    labels = [_cell(row, label) for row in records.records]
    changes = []
    for word, (place,) in records.ends(ENDS):
        others = [each for each in labels if each != labels[place]]
        if not others:
            raise InvalidSpec(f"change_label: each of {len(labels)} rows has the label {short(labels[0])}; give two")
        row = records.records[place]
        changed = row.copy() if hasattr(row, "copy") else list(row)
        changed[label] = others[0]
        changes.append((f"label of the {word}", [place], changed if hasattr(row, "copy") else like(row, changed)))
    return records.replaced(changes)


def far_from_zero(lower: float, upper: float, *, records: int = 10) -> Pairs:
    """As many records at one of the bounds that a mechanism is told, against one less. For `add_or_remove_one`.

    >>> far_from_zero(10, 11, records=2)[1].second
    [11]
    """
    validate.whole("records", records, least=1)
    if not lower < upper:
        raise InvalidSpec(f"far_from_zero: lower must be below upper, got {lower!r} and {upper!r}")
    ends = (("lower", lower), ("upper", upper))
    return tuple(AdjacentPair([end] * records, [end] * (records - 1), f"drop one: all at {word}") for word, end in ends)


def last_of_category(data: Any, *, column: Any = None) -> Pairs:
    """The dataset with one member of its rarest category, against itself without it. For `add_or_remove_one`.

    `column` is the place or key of the category in a row; None: the columns of a table that hold texts, one after the
    other, and where there are none the record itself.

    >>> [(pair.first, pair.second) for pair in last_of_category(["a", "b", "a", "b", "a"])]
    [(['a', 'a', 'b', 'a'], ['a', 'a', 'a'])]
    """
    records = DataRecords(data, 1)
    records.need(1)
    first = records.records[0]
    texts = [key for key, value in first.items() if isinstance(value, str)] if isinstance(first, dict) else []
    made = []
    for place in [column] if column is not None else texts or [None]:
        held = [digest(row if place is None else _cell(row, place)) for row in records.records]
        *more, last = [number for number, each in enumerate(held) if each == min(held, key=held.count)]
        where = "" if column is not None or place is None else f" {short(place)}"
        before, after = records.without(more), records.without([*more, last])
        made.append(AdjacentPair(before, after, f"drop one: last of its category{where}"))
    return tuple(made)


def add_in_front(data: Any) -> Pairs:
    """The dataset against itself with a copy of its last record in front. For `add_or_remove_one`.

    >>> add_in_front(["a", "b"])[0].second
    ['b', 'a', 'b']
    """
    records, size = _turned(data)
    return (AdjacentPair(data, records.take([size - 1, *range(size)]), "add one: the last in front"),)


def replace_in_front(data: Any) -> Pairs:
    """The dataset and its first record again, against the same with the last in front: as a set they are equal.

    >>> [(pair.first, pair.second) for pair in replace_in_front(["a", "b"])]
    [(['a', 'b', 'a'], ['b', 'b', 'a'])]
    """
    records, size = _turned(data)
    rest = [*range(1, size), 0]
    return (AdjacentPair(records.take([0, *rest]), records.take([size - 1, *rest]), "replace one: first by last"),)


def _cell(row: Any, place: Any) -> Any:
    try:
        return row[place]
    except (TypeError, LookupError):
        raise InvalidSpec(f"a record holds nothing at {place!r}, got {short(row)}") from None


def _turned(data: Any) -> tuple[DataRecords, int]:
    """The records, of which the first and the last differ, and how many they are."""
    records = DataRecords(data, 1)
    records.need(2)
    first, *_, last = records.records
    if digest(first) == digest(last):
        raise InvalidSpec(f"the first and the last record must differ, got {short(first)} twice")
    return records, len(records.records)
