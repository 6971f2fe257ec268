"""Stock pairs: of query vectors, and of datasets as `DataRecords` takes them. Search looks at both orders of a pair.

Query vectors are the answers of several queries on two neighbours, each at most `sensitivity` apart: the shapes of
StatDP (Ding et al. 2018, table 1), at both ends of the vector, and those that mechanisms with a threshold need. In
datasets records are dropped, added or replaced; or users, each with all of their records, where the data are `Users`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.base import validate
from dpaudit.data.data import digest
from dpaudit.data.data_records import ENDS, OF_VALUES, DataRecords, Pairs, cell, counted, like, short, word_of
from dpaudit.data.data_users import UserRecords, opened
from dpaudit.data.pair import AdjacentPair
from dpaudit.errors import InvalidSpec

Number = int | float


def one_differs(queries: int, *, sensitivity: Number = 1, base: Number = 0, distance: int = 1) -> Pairs:
    """Vectors of `queries` answers, all `base`; one answer, the first or the last, moves up or down.

    It moves by `distance * sensitivity`, in units of the answers. Raises `InvalidSpec` for values out of range.

    >>> one_differs(3)[0]
    AdjacentPair(first=[0, 0, 0], second=[1, 0, 0], name='one differs: first up', distance=1, sensitivity=1, user=None)
    """
    shape = _Shape(queries, sensitivity, distance, base)
    one = {"first up": "+00", "last up": "00+", "first down": "-00", "last down": "00-"}
    return shape.pairs("one differs", {word: ("000", moved) for word, moved in one.items()})


def all_differ(queries: int, *, sensitivity: Number = 1, base: Number = 0, distance: int = 1) -> Pairs:
    """Vectors of `queries` answers, all `base`, that all move: together, one against the rest, or exchanging places.

    Each moves by `distance * sensitivity`, in units of the answers. Raises `InvalidSpec` for values out of range.

    >>> [pair.second for pair in all_differ(3)][:3]
    [[1, 1, 1], [-1, -1, -1], [1, -1, -1]]
    """
    shape = _Shape(queries, sensitivity, distance, base)
    moved = {"all up": "+++", "all down": "---", "first up, rest down": "+--", "first down, rest up": "-++"}
    moved |= {"last up, rest down": "--+", "last down, rest up": "++-"}
    changes = {word: ("000", second) for word, second in moved.items()}
    return shape.pairs("all differ", {**changes, "last and rest exchanged": ("00+", "++0")})


def half_up_half_down(queries: int, *, sensitivity: Number = 1, base: Number = 0, distance: int = 1) -> Pairs:
    """Vectors of at least two answers, all `base`: one half moves up and the other down, or the halves exchange.

    Each answer moves by `distance * sensitivity`. Raises `InvalidSpec` for values out of range.

    >>> [pair.second for pair in half_up_half_down(4)]
    [[1, 1, -1, -1], [-1, -1, 1, 1], [0, 0, 1, 1]]
    """
    shape = _Shape(queries, sensitivity, distance, base, least=2)
    moved = {"first half up": ("00", "+-"), "first half down": ("00", "-+"), "halves exchanged": ("+0", "0+")}
    return shape.pairs("half up, half down", moved)


def far_from_threshold(
    queries: int, *, threshold: Number = 0, far: Number = 10, sensitivity: Number = 1, distance: int = 1
) -> Pairs:
    """Vectors for mechanisms that compare answers with a `threshold`: all `far` below it, all above, or one above.

    `far`, above 0, is in units of the answers; choose it well beyond the noise. Each answer moves by
    `distance * sensitivity` or not at all. Raises `InvalidSpec` for values out of range.

    >>> far_from_threshold(3, threshold=5, far=10)[2].first, far_from_threshold(3, threshold=5, far=10)[2].second
    ([-5, -5, 15], [-4, -4, 14])
    """
    shape = _Shape(queries, sensitivity, distance)
    validate.positive("far", far)
    validate.real("threshold", threshold)
    low, high = threshold - far, threshold + far
    changes = {
        "all below, all up": ("lll", "LLL"),
        "all above, all down": ("hhh", "HHH"),
        "last above, all towards it": ("llh", "LLH"),
        "last above and down": ("llh", "llH"),
    }
    return shape.pairs("far from the threshold", changes, l=low, L=low + shape.step, h=high, H=high - shape.step)


def statdp_one_differs(queries: int) -> Pairs:
    """The inputs of StatDP (Ding et al. 2018, table 1) where one answer differs, as it and DP-Sniper try them.

    All answers are 1, and the first moves down or up. For other numbers and places there is `one_differs`. Raises
    `InvalidSpec` for fewer than one query.

    >>> [pair.second for pair in statdp_one_differs(3)]
    [[0, 1, 1], [2, 1, 1]]
    """
    return _Shape(queries, 1, 1, base=1).pairs("StatDP", {"one below": ("000", "-00"), "one above": ("000", "+00")})


def statdp_all_differ(queries: int) -> Pairs:
    """The inputs of StatDP (Ding et al. 2018, table 1) where all answers may differ, as it and DP-Sniper try them.

    At least two answers, all 1 but in the last pair: those where one differs; one against the rest; all together;
    half against half, of four answers and more; and two halves that change places. Raises `InvalidSpec` for fewer
    than two queries.

    >>> [pair.second for pair in statdp_all_differ(4)][2:]
    [[2, 0, 0, 0], [0, 2, 2, 2], [2, 2, 2, 2], [0, 0, 0, 0], [2, 2, 0, 0], [0, 0, 1, 1]]
    """
    shape = _Shape(queries, 1, 1, base=1, least=2)
    moved = {"one above, rest below": "+--", "one below, rest above": "-++", "all above": "+++", "all below": "---"}
    moved["half above, half below"] = "+-"
    changes = {word: ("0" * len(second), second) for word, second in moved.items()}
    return *statdp_one_differs(queries), *shape.pairs("StatDP", {**changes, "halves exchanged": ("0-", "-0")})


class _Shape:
    """The checked parameters that all patterns share, and the pairs made with them."""

    def __init__(self, queries: int, sensitivity: Number, distance: int, base: Number = 0, *, least: int = 1) -> None:
        self.queries = validate.whole("queries", queries, least=least)
        self.distance = validate.whole("distance", distance, least=1)
        validate.positive("sensitivity", sensitivity)
        self.sensitivity = sensitivity
        self.step = self.distance * sensitivity  # of whole numbers, a whole number
        validate.real("base", base)
        self.base = base  # as it was given: mechanisms may want whole ones

    def pairs(self, name: str, changes: Mapping[str, tuple[str, str]], **answers: Number) -> Pairs:
        """Pairs of vectors, a letter for each answer: 0 the base, + up, - down, or one that is given; none twice."""
        answers = {"0": self.base, "+": self.base + self.step, "-": self.base - self.step, **answers}
        words: dict[tuple[str, str], str] = {}
        for word, sides in changes.items():
            words.setdefault((self._letters(sides[0]), self._letters(sides[1])), word)
        pairs = []
        for letters, word in words.items():
            first, second = ([answers[letter] for letter in side] for side in letters)
            if letters[0] != letters[1]:
                pairs.append(AdjacentPair(first, second, f"{name}: {word}", self.distance, self.sensitivity))
        return tuple(pairs)

    def _letters(self, shape: str) -> str:
        """The letters of all answers: of three, the first, all between and the last; of two, those of the halves."""
        half = self.queries // 2
        if len(shape) == 2:
            return shape[0] * half + shape[1] * (self.queries - half)
        return (shape[0] + shape[1] * (self.queries - 2) + shape[2])[: self.queries]


MISSING: Any = object()


def drop_one(data: Any, *, distance: int = 1) -> Pairs:
    """The dataset against itself without `distance` records: the first, the last, the least or the greatest ones.

    Records without numbers have no order. For `add_or_remove_one`. Raises `InvalidSpec` where there are too few.

    >>> [pair.second for pair in drop_one([3, 1, 2])]
    [[1, 2], [3, 1], [3, 2]]
    """
    records = opened(data, distance, least=distance)
    name = counted("drop", distance)
    return tuple(
        records.pair(records.data, records.without(places), f"{name}: {word}") for word, places in records.ends(ENDS)
    )


def add_one(data: Any, *, value: Any = MISSING, distance: int = 1) -> Pairs:
    """The dataset against itself and `distance` records more: `value`, or copies of its first, least or greatest.

    For `add_or_remove_one`. Raises `InvalidSpec` for an empty dataset without a `value`.

    >>> [pair.second for pair in add_one([1, 2], value=7)]
    [[1, 2, 7]]
    """
    records = opened(data, distance)
    if value is not MISSING:
        return records.added([(short(value), value)])
    if not records.records:
        raise InvalidSpec("add_one: an empty dataset has no record to copy; give value=...")
    return records.added(
        (f"a copy of the {word}", records.records[place]) for word, (place,) in records.ends(OF_VALUES, 1)
    )


def replace_one(data: Any, *, value: Any = MISSING, distance: int = 1) -> Pairs:
    """The dataset against itself with `distance` records replaced: by `value`, or the least by the greatest and back.

    Without numbers it is the first by the last and back. With the special record as `value`, for `replace_special`
    too. Raises `InvalidSpec` where no record would change.

    >>> [pair.second for pair in replace_one([3, 1, 2])]
    [[3, 3, 2], [1, 1, 2]]
    >>> [pair.second for pair in replace_one([3, 1], value=0)]
    [[0, 1], [3, 0]]
    """
    records = opened(data, distance, least=distance)
    if value is not MISSING:
        return records.replaced((f"{word} by {short(value)}", places, value) for word, places in records.ends(ENDS))
    ends = dict(records.ends(ENDS[2:]) or records.ends(ENDS[:2]))
    if len(ends) < 2:
        raise InvalidSpec(
            f"replace_one: {len(records.records)} records do not hold {distance} for others; give value=..."
        )
    swaps = (tuple(ends), tuple(ends)[::-1])
    return records.replaced(
        (f"{one} by the {other}", ends[one], records.records[ends[other][0]]) for one, other in swaps
    )


def add_outlier(data: Any, *, size: float | None = None, distance: int = 1) -> Pairs:
    """The dataset against itself and `distance` records more whose numbers are all `size`, or all -`size`.

    Left out, `size` is a thousand times the largest in the data (at least 1); where the type of an array ends
    before that, its end. For `add_or_remove_one`. Raises `InvalidSpec` where records hold no numbers.

    >>> [pair.second for pair in add_outlier([1, 2])]
    [[1, 2, 2000], [1, 2, -2000]]
    """
    records = opened(data, distance)
    return records.added((f"outlier {number:g}", record) for number, record in records.outlying(size))


def valued(how: str, *values: float | None) -> Callable[..., Pairs]:
    """The pattern of `distance` records like the first whose numbers are all one of these values.

    They are "added", or "first_replaced". It raises `InvalidSpec` where no number of a record can be the value.

    >>> import math
    >>> valued("added", math.nan)([1.0])[0].second
    [1.0, nan]
    >>> [pair.second for pair in valued("first_replaced", math.inf, None)([1.0, 2.0])]
    [[inf, 2.0], [None, 2.0]]
    """

    def make(data: Any, *, distance: int = 1) -> Pairs:
        records = opened(data, distance)
        pairs: Pairs = getattr(records, how)((word_of(value), records.like(value)) for value in values)
        return pairs

    return make


def replace_by_outlier(data: Any, *, size: float | None = None, distance: int = 1) -> Pairs:
    """As `add_outlier`, in the place of the first `distance` records. For `replace_one`.

    >>> [pair.second for pair in replace_by_outlier([1, 2], size=50)]
    [[50, 2], [-50, 2]]
    """
    records = opened(data, distance)
    return records.first_replaced((f"outlier {number:g}", record) for number, record in records.outlying(size))


def empty(data: Any, *, distance: int = 1) -> Pairs:
    """The first, least or greatest `distance` records of the dataset alone, against the empty dataset.

    For `add_or_remove_one`. Raises `InvalidSpec` where there are too few records.

    >>> [(pair.first, pair.second) for pair in empty([3, 1, 2])]
    [([3], []), ([1], [])]
    """
    records = opened(data, distance, least=distance)
    nothing = records.take([])
    return tuple(
        records.pair(records.take(places), nothing, f"empty: against the {word}")
        for word, places in records.ends(OF_VALUES)
    )


def alike(data: Any, *, distance: int = 1) -> Pairs:
    """As many records, all of them the least or the greatest one, against `distance` less. For `add_or_remove_one`.

    >>> [(pair.first, pair.second) for pair in alike([3, 1])]
    [([1, 1], [1]), ([3, 3], [3])]
    """
    records = opened(data, distance, least=distance)
    size = len(records.records)
    return tuple(
        records.pair(records.take(place * size), records.take(place * (size - distance)), f"all alike: the {word}")
        for word, place in records.ends(ENDS[2:], 1) or records.ends(ENDS[:2], 1)
    )


def alike_but_one(data: Any, *, distance: int = 1) -> Pairs:
    """As many records, all the least or all the greatest one, against `distance` of the other. For `replace_one`.

    >>> [(pair.first, pair.second) for pair in alike_but_one([3, 1])]
    [([1, 1], [3, 1]), ([3, 3], [1, 3])]
    """
    records = opened(data, distance, least=distance)
    size, ends = len(records.records), records.ends(ENDS[2:], 1) or records.ends(ENDS[:2], 1)
    if len(ends) < 2:
        raise InvalidSpec("all records are alike already")
    return tuple(
        records.pair(
            records.take(place * size),
            records.take(other * distance + place * (size - distance)),
            f"all alike: the {word}",
        )
        for (word, place), (_, other) in (ends, ends[::-1])
    )


def change_label(data: Any, *, label: Any = -1) -> Pairs:
    """The dataset against itself with another label, of those it has, in the first, last, least or greatest row.

    `label` is its place in a row, or its key. For `replace_one`. Raises `InvalidSpec` where there is but one label.

    >>> [pair.second for pair in change_label([(7.0, "a"), (9.0, "b")])]
    [[(7.0, 'b'), (9.0, 'b')], [(7.0, 'a'), (9.0, 'a')]]
    """
    records = opened(data, 1)
    labels = [cell(row, label) for row in records.records]
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
    records = opened(data, 1, least=1)
    pairs = []
    for place in [column] if column is not None else records.texts() or [None]:
        holders: dict[str, list[int]] = {}
        for number, record in enumerate(records.records):
            for each in dict.fromkeys(map(digest, records.cells(record, place))):
                holders.setdefault(each, []).append(number)
        *more, last = min(holders.values(), key=len)
        where = "" if column is not None or place is None else f" {short(place)}"
        before, after = records.without(more), records.without([*more, last])
        pairs.append(records.pair(before, after, f"drop one: last of its category{where}"))
    return tuple(pairs)


def many_records(data: Any, *, distance: int = 1) -> Pairs:
    """The dataset against itself and `distance` users more, each with as many records as all others have together.

    They are a copy of every record, or copies of the one with the largest number. For `add_or_remove_user`.

    >>> from dpaudit.data.data_users import Users
    >>> many_records(Users([(1, 5), (2, 9)], user=0))[1].second
    [(1, 5), (2, 9), (3, 9), (3, 9)]
    """
    records = opened(data, distance, least=1)
    if not isinstance(records, UserRecords):
        raise InvalidSpec("many_records is about users and all that they have: give user = 'id' and add_or_remove_user")
    every = [row for block in records.records for row in block]
    largest = max(every, key=lambda row: max(map(abs, records.numbers([row])), default=0.0))
    blocks = [
        ("with a copy of every record", every),
        (f"with {len(every)} copies of one record", [largest] * len(every)),
    ]
    return records.added(blocks[: len(every)])


def add_in_front(data: Any) -> Pairs:
    """The dataset against itself with a copy of its last record in front. For `add_or_remove_one`.

    >>> add_in_front(["a", "b"])[0].second
    ['b', 'a', 'b']
    """
    records, size = _turned(data)
    return (records.pair(records.data, records.take([size - 1, *range(size)]), "add one: the last in front"),)


def replace_in_front(data: Any) -> Pairs:
    """The dataset and its first record again, against the same with the last in front: as a set they are equal.

    >>> [(pair.first, pair.second) for pair in replace_in_front(["a", "b"])]
    [(['a', 'b', 'a'], ['b', 'b', 'a'])]
    """
    records, size = _turned(data)
    rest = [*range(1, size), 0]
    return (records.pair(records.take([0, *rest]), records.take([size - 1, *rest]), "replace one: first by last"),)


def _turned(data: Any) -> tuple[DataRecords, int]:
    """The records, of which the first and the last differ, and how many they are."""
    records = opened(data, 1, least=2)
    first, *_, last = records.records
    if digest(first) == digest(last):
        raise InvalidSpec(f"the first and the last record must differ, got {short(first)} twice")
    return records, len(records.records)
