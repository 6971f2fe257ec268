"""Adjacent pairs: equal datasets are refused, relations checked, contents digested, records plain."""

from __future__ import annotations

import json
import math
import pickle
import random
import subprocess
import sys
import threading
from array import array
from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pytest

from dpaudit import AdjacentPair, InvalidSpec, Relation
from dpaudit.base.quoting import data_text
from dpaudit.data import SealedPair, digest
from dpaudit.data.data import mark, private_copy, restored
from tests.cases import for_each

ADD, REPLACE, SPECIAL, LOCAL = (
    Relation.ADD_OR_REMOVE_ONE,
    Relation.REPLACE_ONE,
    Relation.REPLACE_SPECIAL,
    Relation.LOCAL,
)


@for_each(
    "value",
    [
        0,
        [],
        "a",
        None,
        [1, 2],
        {"a": [1]},
        {1, 2},
        np.arange(4.0),
        float("nan"),
        [float("nan")],
        (1, (2, {"b": np.zeros(2)})),
    ],
    ids=repr,
)
def test_equal_datasets_are_refused(value: Any) -> None:
    with pytest.raises(InvalidSpec, match="the datasets of 'pair' must differ"):
        AdjacentPair(value, private_copy(value))


def test_equal_contents_are_equal_however_they_are_held() -> None:
    """One object twice in a list, and two equal objects, are the same data; so are dictionaries in any order."""
    record = [1]
    for first, second in (
        ([record, record], [[1], [1]]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        (np.arange(4.0)[::2], np.array([0.0, 2.0])),
    ):
        with pytest.raises(InvalidSpec, match="must differ"):
            AdjacentPair(first, second)


def test_different_datasets_are_not_refused() -> None:
    for first, second in (
        (0, 1),
        ([], [1]),
        ("a", "b"),
        ([1], [2]),
        (np.zeros(2), np.ones(2)),
        (None, 0),
        ([0], [[0]]),
    ):
        assert repr(AdjacentPair(first, second).open()) == repr((first, second))


@for_each("distance", [0, -1, 1.5, True, "1", None, float("nan")])
def test_a_distance_is_a_whole_number_of_at_least_one(distance: Any) -> None:
    with pytest.raises(InvalidSpec, match="distance"):
        AdjacentPair(0, 1, distance=distance)


def test_data_that_cannot_be_pickled_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="must be picklable, got lock"):
        AdjacentPair(threading.Lock(), 1)


@for_each("value", [3, None, "ab", {1, 2}, [1], (1, 2, 3), {"first": 1}, np.zeros(2)], ids=repr)
def test_a_pair_is_two_datasets(value: Any) -> None:
    with pytest.raises(InvalidSpec, match="must be two datasets"):
        AdjacentPair.of(value)


def test_a_pair_from_what_people_write() -> None:
    pair = AdjacentPair(0, 1, "mine")
    assert AdjacentPair.of(pair, "other") is pair
    assert AdjacentPair.of([0, 1], "other").name == "other"
    assert AdjacentPair.of((0, 1)).open() == (0, 1)


# --- relations ------------------------------------------------------------------------------------------------------


@for_each(
    ("first", "second", "distance", "relation", "fits"),
    [
        ([1, 1], [1], 1, ADD, True),
        ([1], [1, 1], 1, ADD, True),
        ([1, 2], [2], 1, ADD, True),
        ([1, 2], [3], 1, ADD, False),
        ([1, 2], [1, 3], 1, ADD, False),
        ([1, 2], [1, 3], 2, ADD, True),
        ([1, 2, 3], [3], 2, ADD, True),
        ([1, 2, 3], [3], 1, ADD, False),
        ([1, 2], [1, 3], 1, REPLACE, True),
        ([2, 1], [1, 3], 1, REPLACE, True),
        ([1, 2], [3, 4], 1, REPLACE, False),
        ([1, 2], [3, 4], 2, REPLACE, True),
        ([1, 2], [1], 1, REPLACE, False),
        ([1, 2], [1, None], 1, SPECIAL, True),
        ([1], [1, 2], 1, SPECIAL, False),
        ([1], [2], 1, LOCAL, True),
        ([1, 2], [1, 3], 1, LOCAL, True),  # of one person: a list is a value
        ([1.0, 0.0], [-1.0, 0.0], 1, LOCAL, True),
        ([1, 0, 0], [0, 1], 1, LOCAL, True),
        ((1, 1), (1,), 1, ADD, True),
        ({1, 2}, {1}, 1, ADD, True),
        (frozenset({1, 2}), frozenset({1, 3}), 1, REPLACE, True),
        (np.array([1, 1]), np.array([1]), 1, ADD, True),
        (np.zeros((3, 2)), np.zeros((2, 2)), 1, ADD, True),
        (np.zeros((3, 2)), np.ones((3, 2)), 1, REPLACE, False),
        ([[1, "a"], [2, "b"]], [[1, "a"]], 1, ADD, True),
        (10, 7, 1, ADD, True),
        ("abc", "a", 1, ADD, True),
        ([1, 2], 3, 1, ADD, True),
        ([1, 2, 3], [9], 1, None, True),
    ],
)
def test_relations(first: Any, second: Any, distance: int, relation: Relation | None, fits: bool) -> None:
    pair = AdjacentPair(first, second, "these", distance)
    if fits:
        pair.check(relation)
    else:
        with pytest.raises(InvalidSpec, match=r"'these' are not at distance .* records leave and .* come") as caught:
            pair.check(relation)
        assert "\n" not in str(caught.value)


class RangeIndex(list[int]):
    """Labels that are only places, by the name of their type."""


class _Frame:
    """As much of a frame as is asked of one: rows, or `itertuples` with an index."""

    def __init__(self, rows: list[tuple[Any, ...]], columns: tuple[str, ...] = ("a", "b"), index: Any = None) -> None:
        self._rows, self.columns, self.index = rows, columns, index or RangeIndex(range(len(rows)))

    def itertuples(self, index: bool, name: None) -> Any:
        return ((label, *row) if index else row for label, row in zip(self.index, self._rows, strict=True))


class _Polars:
    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows, self.columns = rows, ["a", "b"]

    def rows(self) -> list[tuple[Any, ...]]:
        return self._rows


class _Column:
    def __init__(self, values: list[Any]) -> None:
        self._values, self.index = values, RangeIndex()

    def to_list(self) -> list[Any]:
        return self._values

    def __len__(self) -> int:
        return len(self._values)


ROWS = [(1, "x"), (2, "y"), (2, "y"), (3, None), (math.nan, "z")]
STRUCTURES = np.array([(1, 2.0), (2, math.nan), (3, 4.0)], dtype=np.dtype([("a", "i1"), ("b", "f8")], align=True))


@pytest.mark.parametrize("make", [_Frame, _Polars], ids=["pandas", "polars"])
def test_frames_are_compared_row_by_row(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "pandas" if make is _Frame else "polars"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(DataFrame=make, Series=_Column))  # type: ignore[misc]
    for rows, relation, fits in (
        (ROWS[1:], ADD, True),
        (ROWS[::-1][1:], ADD, True),
        ([*ROWS, (7, "n")], ADD, True),
        (ROWS[:3], ADD, False),
        (ROWS[:3], REPLACE, False),
        ([ROWS[0], (2, "n"), *ROWS[2:]], REPLACE, True),
        ([ROWS[0], (2, "n"), *ROWS[2:]], ADD, False),
        ([(1.0, "x"), (2.0, "y"), (2.0, "y"), (math.nan, None), (float("nan"), "z")], REPLACE, True),
    ):
        pair = AdjacentPair(make(ROWS), make(rows), "these")
        if fits:
            pair.check(relation)
        else:
            with pytest.raises(InvalidSpec, match=r"'these' are not at distance 1 .* \d rows leave and \d come"):
                pair.check(relation)
        assert pair.adjacency()[relation] == ("rows" if fits else None)
    AdjacentPair(_Column([1, 1, 2]), _Column([1, 2])).check(ADD)
    with pytest.raises(InvalidSpec, match="2 rows leave"):
        AdjacentPair(_Column([1, 1, 2]), _Column([2])).check(ADD)


def test_columns_and_labels_of_a_frame_are_part_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=_Frame))  # type: ignore[misc]
    with pytest.raises(InvalidSpec, match="5 rows leave and 4 come"):
        AdjacentPair(_Frame(ROWS), _Frame(ROWS[1:], ("a", "c"))).check(ADD)
    AdjacentPair(_Frame(ROWS, index="abcde"), _Frame(ROWS[1:], index="bcde")).check(ADD)
    with pytest.raises(InvalidSpec, match="4 come"):
        AdjacentPair(_Frame(ROWS, index="abcde"), _Frame(ROWS[1:], index="vwxy")).check(ADD)
    AdjacentPair(_Frame(ROWS), _Frame(ROWS[1:], index="bcde")).check(ADD)


@dataclass(frozen=True)
class Visit:
    """A record as people write them."""

    age: int
    ward: str


@for_each(
    ("first", "second", "relation", "shown"),
    [
        ([math.nan, 1.0], [-math.nan], ADD, "records"),
        (np.array([np.nan, 1.0]), -np.array([np.nan]), ADD, "records"),
        (np.array(["a", "b"]), np.array(["b"]), ADD, "records"),
        (np.array([[1, 2], [3, 4]], np.int16), np.array([[1, 2]], np.int16), ADD, "records"),
        (STRUCTURES, STRUCTURES[1:].copy(), ADD, "records"),
        (STRUCTURES, STRUCTURES[2:], ADD, InvalidSpec),
        ([1, 2], [1.0], ADD, InvalidSpec),
        ([10**5000, 1], [10**5000], ADD, "records"),
        ({"a": [1, 2], "b": np.array([3, 4])}, {"b": np.array([4]), "a": [2]}, ADD, "rows"),
        ({"a": [1, 2], "b": [3, 4]}, {"a": [1], "b": [4]}, ADD, InvalidSpec),
        ({"ann": 5, "bob": 3}, {"ann": 5}, ADD, "entries"),
        ({"ann": 5, "bob": 3}, {"ann": 5, "cy": 4, "dee": 4}, ADD, InvalidSpec),
        ({"ann": 5, "bob": 3}, {"ann": 5, "bob": 4}, ADD, None),  # records by name, or counts
        ({"rows": [1, 2], "scale": 1.0}, {"rows": [1], "scale": 1.0}, ADD, None),
        ([1, 2], [2], None, "records"),
        ([1, 2], [1, 3], None, "records"),
        ([1, 2, 3], [1], None, "2 records leave and 0 come"),
        ([1, 2], [3, 4], None, "2 records leave and 2 come"),
        ({"a": [1, 2, 3]}, {"a": [1]}, None, "2 rows leave and 0 come"),
        (STRUCTURES.view(np.recarray), STRUCTURES[1:].view(np.recarray), ADD, "records"),
        (np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), np.ma.masked_array([1.0, 5.0], [0, 1]), ADD, "records"),
        (deque([1, 2]), deque([1]), ADD, "records"),
        (range(3), range(2), ADD, "records"),
        (range(4), range(2), ADD, InvalidSpec),
        (array("d", [1.0, 2.0]), array("d", [1.0]), ADD, "records"),
        ([Visit(1, "a"), Visit(2, "b")], [Visit(2, "b")], ADD, "records"),
        ([Visit(1, "a"), Visit(2, "b")], [Visit(1, "b")], ADD, InvalidSpec),
        (10, 9, ADD, None),
        (10, 9, None, None),
        (0, "b", LOCAL, "any two"),
        (np.zeros((1, 9)), np.ones((1, 9)), LOCAL, "records"),
        (object, len, LOCAL, "one value"),
        ([1.0, 0.0], [-1.0, 0.0], LOCAL, "one value"),
        ([1, 0], [0, 1], LOCAL, "one value"),  # the same records in another order: of two persons, both change
        (np.eye(3)[0], np.eye(3)[1], LOCAL, "one value"),
        ({"age": 5, "sex": "f"}, {"age": 6, "sex": "f"}, LOCAL, "one value"),
        ({"a": [1, 2]}, {"a": [1, 3]}, LOCAL, InvalidSpec),
        ({"a": [1]}, {"a": [3]}, LOCAL, "rows"),
        ([1, 2], [1, None], SPECIAL, "neutral"),
        ([1, 2], [1], SPECIAL, InvalidSpec),
        ("abc", "ab", ADD, None),
        ([1, 2], 3, ADD, None),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, list) else type(value).__name__,
)
def test_what_shows_that_datasets_are_neighbours(first: Any, second: Any, relation: Any, shown: Any) -> None:
    pair = AdjacentPair(first, second)
    if shown is InvalidSpec:
        with pytest.raises(
            InvalidSpec, match=r"not at distance 1|have 2 and 2 rows, and under local .* give a row each"
        ):
            pair.check(relation)
        shown = None
    else:
        pair.check(relation)
    assert pair.adjacency()[relation] == SealedPair.seal(pair).adjacency()[relation] == shown


@for_each("relation", [None, *Relation])
def test_a_sensitivity_stands_for_the_records_where_they_do_not_show_it(relation: Any) -> None:
    """Answers are neighbours if the data are answers: where the records are near too, nothing is to be believed."""
    moved = AdjacentPair([0, 0, 0], [1, 1, 1], sensitivity=1)
    moved.check(relation)
    assert moved.adjacency()[relation] == "answers"
    near = AdjacentPair([0, 0, 0], [1, 0, 0], sensitivity=1)
    assert near.adjacency()[relation] == {None: "records", REPLACE: "records", SPECIAL: "neutral"}.get(
        relation, "answers"
    )


def test_answers_are_held_against_their_sensitivity() -> None:
    assert AdjacentPair([0, 0], [1, 1], sensitivity=1).adjacency()[ADD] == "answers"
    assert AdjacentPair([0, 0], [1, 2], sensitivity=1).adjacency()[ADD] is None
    assert AdjacentPair([0, 0], [1, 1], sensitivity=1.5).record()["sensitivity"] == 1.5
    assert "sensitivity" not in AdjacentPair([0, 0], [1, 1]).record()


def test_relation_words() -> None:
    assert Relation.of("replace_one") is REPLACE
    assert Relation.of(None) is None
    with pytest.raises(InvalidSpec, match=r"relation must be one of add_or_remove_one, .* got 'swap'"):
        Relation.of("swap")


# --- digests and records ------------------------------------------------------------------------------------------


def test_digests_are_the_same_in_another_process() -> None:
    value = {"a": [1, 2.5, None, "text"], "b": {"x", "y", "z"}}
    script = "from dpaudit.data import digest; print(digest({'b': {'z', 'y', 'x'}, 'a': [1, 2.5, None, 'text']}))"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert process == digest(value)
    assert len(process) == 32


@for_each(
    ("value", "stored"),
    [
        (3, 3),
        ([1, "a", None], [1, "a", None]),
        ((1, 2), [1, 2]),
        ({"a": 1.5}, {"a": 1.5}),
        (np.array([1, 2]), [1, 2]),
        (np.float64(0.5), 0.5),
        (float("nan"), {"float": "nan"}),
        (float("-inf"), {"float": "-inf"}),
        ([1.0, {"a": float("nan")}], [1.0, {"a": {"float": "nan"}}]),
        ({1: 2}, None),
        ({1, 2}, None),
        (b"bytes", None),
        (object, None),
        (list(range(5_000)), None),
        ("x" * 5_000, None),
        (np.zeros(5_000), None),
        ([[[[[[[[1]]]]]]]], None),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_records_hold_small_plain_values(value: Any, stored: Any) -> None:
    record = AdjacentPair(value, "the other side", "named", 3).record()
    assert (record["name"], record["distance"]) == ("named", 3)
    assert record["first"]["digest"] == digest(value)
    assert json.loads(json.dumps(record, allow_nan=False))["first"]["value"] == stored


def test_sealed_pairs_show_their_record_and_open_in_workers() -> None:
    pair = AdjacentPair([1, 2], [1], "named", 1)
    sealed = pickle.loads(pickle.dumps(SealedPair.seal(pair)))
    assert sealed.record() == pair.record()
    assert sealed.open() == pair.open()
    assert (sealed.name, sealed.distance) == ("named", 1)


def test_copies_do_not_share_their_contents() -> None:
    data = {"rows": [[1, 2]], "array": np.zeros(2)}
    copied = private_copy(data)
    copied["rows"][0].append(3)
    copied["array"][0] = 1.0
    assert data["rows"] == [[1, 2]]
    assert data["array"].tolist() == [0.0, 0.0]
    lock = threading.Lock()
    assert private_copy(lock) is lock


def test_long_lists_have_the_digest_that_they_always_had() -> None:
    rng = random.Random(18)
    odd = [1, 2.0, None, True, "a", "\ud800", b"x", 2**300, -1, 70_000, (), math.nan, -0.0]
    for size in (0, 1, 2, 999, 1000, 1001, 2001, 2500):
        for flat in ([rng.random() for _ in range(size)], [rng.choice(odd) for _ in range(size)]):
            for data in (flat, tuple(flat), [flat, "e", list(flat)], {"b": flat, "a": (np.zeros(2), list(flat))}):
                assert digest(data) == joblib.hash(data)
            assert digest([flat, flat]) == digest([flat, list(flat)])


def test_a_mark_tells_what_a_digest_tells() -> None:
    inner = [1.0, 2]
    values = [
        [1], [True], [1.0], (1,), {1}, frozenset({1}), {1: 1}, {1: None}, [0.0], [-0.0], [2**70], ["1"], [b"1"], [[1]],
        [np.float64(1.0)], [np.array([1.0])], np.ones(2), np.ones((2, 1)), np.ones(2, np.float32), [bytearray(b"1")],
        [inner, 3], {"a": inner}, {"a": {"b": (inner,)}}, [object], SimpleNamespace(a=1),
    ]  # fmt: skip
    marks = [mark(value) for value in values]
    assert len(set(marks)) == len(values)
    assert None not in marks
    for value in values:
        assert mark(value) == mark(private_copy(value)) == mark(value)
    inner[0] = 1
    assert [mark(value) != before for value, before in zip(values, marks, strict=True)].count(True) == 3
    assert mark(1) is mark("a") is mark(None) is None


def test_pairs_differ_where_their_digests_do() -> None:
    different = [([math.nan, 1], [math.nan, 2]), ([1], [1.0]), ([0.0], [-0.0]), ([True], [1])]
    for first, second in different:
        assert AdjacentPair(first, second)
    for first, second in (([math.nan], [math.nan]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({1, 2}, {2, 1})):
        with pytest.raises(InvalidSpec, match="must differ"):
            AdjacentPair(first, second)


def test_small_tables_are_recorded_by_rows_and_come_back() -> None:
    """As JSON too: what is restored has the digest of the record, types, labels and categories included."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [3, 3, 4], "weight": [1.5, math.nan, 2.0], "ward": list("abc")})
    tables = {
        "pandas.DataFrame([(3, 1.5, 'a'), (3, float('nan'), 'b'), (4, 2.0, 'c')]": frame,
        "index=[0, 2]": frame.drop(index=1),
        "columns=['age', 'weight'], index=['a', 'b', 'c']": frame.set_index("ward"),
        "pandas.Series([3, 3, 4], name='age')": frame["age"],
        "columns=['age', 'weight', 'ward', 'day']": frame.assign(day=pandas.date_range("2020-01-01", periods=3)),
        "(4, 2.0, 'c', None)": frame.assign(count=pandas.array([1, 2, None], dtype="Int64")),
        "columns=['age', 'weight', 'ward', 'kind']": frame.assign(
            kind=pandas.Categorical(list("aab"), categories=list("cba"))
        ),
        "pandas.DataFrame([], columns=['age', 'weight', 'ward'])": frame[:0],
        "numpy.array([(1, 2.0), (2, float('nan')), (3, 4.0)], dtype=[('a', '|i1'), ('b', '<f8')])": np.array(
            STRUCTURES, dtype=[("a", "i1"), ("b", "f8")]
        ),
        "{'a': [1, 2]}": {"a": np.array([1, 2])},
    }
    for words, table in tables.items():
        stored = json.loads(json.dumps(AdjacentPair(table, 1).record()["first"], allow_nan=False))
        assert words in data_text(stored, 400), words
        again = restored(stored["value"], stored["digest"])
        assert type(again) is type(table), words
        assert digest(again) == digest(table) == digest(pickle.loads(pickle.dumps(table))), words
    typed_table = frame.assign(kind=pandas.Categorical(list("aab")))
    more = frame.assign(kind=pandas.Categorical(list("aab"), categories=list("abc")))
    assert digest(typed_table) != digest(more)  # of which a mechanism counts the empty category
    assert digest(frame) != digest(frame.astype({"age": "float64"}))
    for printed, data in (
        ("{'a', 'b'}", {"b", "a"}),
        ("[Visit(age=3, ward='a')]", [Visit(3, "a")]),
        (None, [object()]),
    ):
        stored = AdjacentPair(data, 1).record()["first"]
        assert (stored["value"], stored.get("shown")) == (None, printed)
        assert printed is None or data_text(stored) == printed


def test_a_table_of_a_file_imports_nothing_but_the_libraries_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    stored = {"table": "antigravity.DataFrame", "columns": ["a"], "types": ["int64"], "rows": [[1]]}
    with pytest.raises(InvalidSpec, match="by digest only"):
        restored(stored, "0" * 32)
    assert "antigravity" not in sys.modules
