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

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
SPECIAL, LOCAL = Relation.REPLACE_SPECIAL, Relation.LOCAL


@dataclass(frozen=True)
class Visit:
    """A record as people write them."""

    age: int
    ward: str


RECORD = [1]
PLAIN: list[Any] = [0, [], "a", None, [1, 2], {"a": [1]}, {1, 2}, math.nan, [math.nan]]
EQUAL: list[tuple[Any, Any]] = [
    *((value, private_copy(value)) for value in (*PLAIN, np.arange(4.0), (1, (2, {"b": np.zeros(2)})))),
    ([RECORD, RECORD], [[1], [1]]),  # one object twice in a list, and two equal objects
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({1, 2}, {2, 1}),
    (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    (np.arange(4.0)[::2], np.array([0.0, 2.0])),
]
DIFFERENT: list[tuple[Any, Any]] = [
    *((0, 1), ([], [1]), ("a", "b"), ([1], [2]), (None, 0), ([0], [[0]]), (np.zeros(2), np.ones(2))),
    *(([math.nan, 1], [math.nan, 2]), ([1], [1.0]), ([0.0], [-0.0]), ([True], [1])),
]


def test_datasets_of_equal_contents_are_refused_however_they_are_held_and_others_are_not() -> None:
    for first, second in EQUAL:
        with pytest.raises(InvalidSpec, match="the datasets of 'pair' must differ"):
            AdjacentPair(first, second)
    for first, second in DIFFERENT:
        assert repr(AdjacentPair(first, second).open()) == repr((first, second))


def test_a_pair_is_two_datasets_that_can_be_pickled_at_a_distance_of_at_least_one() -> None:
    for distance in (0, -1, 1.5, True, "1", None, math.nan):
        with pytest.raises(InvalidSpec, match="distance"):
            AdjacentPair(0, 1, distance=distance)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="must be picklable, got lock"):
        AdjacentPair(threading.Lock(), 1)
    for value in (3, None, "ab", {1, 2}, [1], (1, 2, 3), {"first": 1}, np.zeros(2)):
        with pytest.raises(InvalidSpec, match="must be two datasets"):
            AdjacentPair.of(value)
    pair = AdjacentPair(0, 1, "mine")
    assert AdjacentPair.of(pair, "other") is pair
    assert (AdjacentPair.of([0, 1], "other").name, AdjacentPair.of((0, 1)).open()) == ("other", (0, 1))


# --- relations ------------------------------------------------------------------------------------------------------

STRUCTURES = np.array([(1, 2.0), (2, math.nan), (3, 4.0)], dtype=np.dtype([("a", "i1"), ("b", "f8")], align=True))
APART = InvalidSpec
NEIGHBOURS: list[tuple[Any, ...]] = [  # datasets, relation, what shows that they are neighbours; a distance where not 1
    ([1], [1, 1], ADD, "records"),
    ([1, 2], [3], ADD, APART),
    ([1, 2], [1, 3], ADD, APART),
    ([1, 2], [1, 3], ADD, "records", 2),
    ([1, 2, 3], [3], ADD, "records", 2),
    ([1, 2, 3], [3], ADD, APART),
    ([2, 1], [1, 3], REPLACE, "records"),
    ([1, 2], [3, 4], REPLACE, APART),
    ([1, 2], [3, 4], REPLACE, "records", 2),
    ([1, 2], [1], REPLACE, APART),
    ({1, 2}, {1}, ADD, "records"),
    (frozenset({1, 2}), frozenset({1, 3}), REPLACE, "records"),
    (np.zeros((3, 2)), np.zeros((2, 2)), ADD, "records"),
    (np.zeros((3, 2)), np.ones((3, 2)), REPLACE, APART),
    ([[1, "a"], [2, "b"]], [[1, "a"]], ADD, "records"),
    ([math.nan, 1.0], [-math.nan], ADD, "records"),
    (np.array([np.nan, 1.0]), -np.array([np.nan]), ADD, "records"),
    (np.array(["a", "b"]), np.array(["b"]), ADD, "records"),
    (STRUCTURES, STRUCTURES[1:].copy(), ADD, "records"),
    (STRUCTURES, STRUCTURES[2:], ADD, APART),
    ([1, 2], [1.0], ADD, APART),
    ([10**5000, 1], [10**5000], ADD, "records"),
    ({"a": [1, 2], "b": np.array([3, 4])}, {"b": np.array([4]), "a": [2]}, ADD, "rows"),
    ({"a": [1, 2], "b": [3, 4]}, {"a": [1], "b": [4]}, ADD, APART),
    ({"ann": 5, "bob": 3}, {"ann": 5}, ADD, "entries"),
    ({"ann": 5, "bob": 3}, {"ann": 5, "cy": 4, "dee": 4}, ADD, APART),
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
    (range(4), range(2), ADD, APART),
    (array("d", [1.0, 2.0]), array("d", [1.0]), ADD, "records"),
    ([Visit(1, "a"), Visit(2, "b")], [Visit(2, "b")], ADD, "records"),
    ([Visit(1, "a"), Visit(2, "b")], [Visit(1, "b")], ADD, APART),
    (10, 9, ADD, None),
    (10, 9, None, None),
    (0, "b", LOCAL, "any two"),
    ([1], [2], LOCAL, "records"),
    (np.zeros((1, 9)), np.ones((1, 9)), LOCAL, "records"),
    (object, len, LOCAL, "one value"),
    ([1.0, 0.0], [-1.0, 0.0], LOCAL, "one value"),  # of one person: a list is a value
    ([1, 0], [0, 1], LOCAL, "one value"),  # the same records in another order: of two persons, both change
    ([1, 0, 0], [0, 1], LOCAL, "one value"),
    (np.eye(3)[0], np.eye(3)[1], LOCAL, "one value"),
    ({"age": 5, "sex": "f"}, {"age": 6, "sex": "f"}, LOCAL, "one value"),
    ({"a": [1, 2]}, {"a": [1, 3]}, LOCAL, APART),
    ({"a": [1]}, {"a": [3]}, LOCAL, "rows"),
    ([1, 2], [1, None], SPECIAL, "neutral"),
    ([1, 2], [1], SPECIAL, APART),
    ([1], [1, 2], SPECIAL, APART),
    ("abc", "ab", ADD, None),
    ([1, 2], 3, ADD, None),
]


def check(first: Any, second: Any, relation: Relation | None, shown: Any, distance: int = 1) -> None:
    pair = AdjacentPair(first, second, "these", distance)
    if shown is APART:
        come = (
            r"'these' are not at distance 1 .* leave and \d come|have 2 and 2 rows, and under local .* give a row each"
        )
        with pytest.raises(InvalidSpec, match=come) as caught:
            pair.check(relation)
        assert "\n" not in str(caught.value)
        shown = None
    else:
        pair.check(relation)
    assert pair.adjacency()[relation] == SealedPair.seal(pair).adjacency()[relation] == shown


@for_each("case", NEIGHBOURS, ids=lambda case: repr(case)[:60])
def test_what_shows_that_datasets_are_neighbours(case: Any) -> None:
    check(*case)


ROWS = [(1, "x"), (2, "y"), (2, "y"), (3, None), (math.nan, "z")]


class _Polars:
    """As much of a frame as is asked of one of polars."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows, self.columns = rows, ["a", "b"]

    def rows(self) -> list[tuple[Any, ...]]:
        return self._rows


def frame(rows: Any, *columns: str) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows, columns=columns or ("a", "b"))


@for_each("make", [frame, _Polars])
def test_frames_are_compared_row_by_row(make: Any) -> None:
    for rows, relation, shown in (
        (ROWS[1:], ADD, "rows"),
        (ROWS[::-1][1:], ADD, "rows"),
        ([*ROWS, (7, "n")], ADD, "rows"),
        (ROWS[:3], ADD, APART),
        (ROWS[:3], REPLACE, APART),
        ([ROWS[0], (2, "n"), *ROWS[2:]], REPLACE, "rows"),
        ([ROWS[0], (2, "n"), *ROWS[2:]], ADD, APART),
        ([(1.0, "x"), (2.0, "y"), (2.0, "y"), (math.nan, None), (math.nan, "z")], REPLACE, "rows"),
    ):
        with pytest.MonkeyPatch.context() as patched:
            if make is _Polars:
                patched.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=_Polars, Series=()))  # type: ignore[misc]
            check(make(ROWS), make(rows), relation, shown)


def test_columns_and_labels_of_a_frame_are_part_of_its_rows() -> None:
    with pytest.raises(InvalidSpec, match="5 rows leave and 4 come"):
        AdjacentPair(frame(ROWS), frame(ROWS[1:], "a", "c")).check(ADD)
    for left, shown in ((1, "rows"), (2, APART)):
        check(frame(ROWS)["b"], frame(ROWS[left:])["b"], ADD, shown)
    labelled, fewer = frame(ROWS).set_axis(list("abcde")), frame(ROWS[1:])
    check(labelled, fewer.set_axis(list("bcde")), ADD, "rows")
    check(labelled, fewer.set_axis(list("vwxy")), ADD, APART)
    check(frame(ROWS), fewer.set_axis(list("bcde")), ADD, "rows")


@for_each("relation", [None, *Relation])
def test_a_sensitivity_stands_for_the_records_where_they_do_not_show_it(relation: Any) -> None:
    """Answers are neighbours if the data are answers: where the records are near too, nothing is to be believed."""
    moved = AdjacentPair([0, 0, 0], [1, 1, 1], sensitivity=1)
    moved.check(relation)
    assert moved.adjacency()[relation] == "answers"
    near = AdjacentPair([0, 0, 0], [1, 0, 0], sensitivity=1)
    shown = {None: "records", REPLACE: "records", SPECIAL: "neutral"}
    assert near.adjacency()[relation] == shown.get(relation, "answers")
    if relation is ADD:
        assert AdjacentPair([0, 0], [1, 2], sensitivity=1).adjacency()[ADD] is None
    assert AdjacentPair([0, 0], [1, 1], sensitivity=1.5).record()["sensitivity"] == 1.5
    assert "sensitivity" not in AdjacentPair([0, 0], [1, 1]).record()


def test_relation_words() -> None:
    assert (Relation.of("replace_one"), Relation.of(None)) == (REPLACE, None)


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
    for size in (0, 1, 999, 1000, 1001, 2001):
        for flat in ([rng.random() for _ in range(size)], [rng.choice(odd) for _ in range(size)]):
            for data in (tuple(flat), [flat, "e", list(flat)], {"b": flat, "a": (np.zeros(2), list(flat))}):
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
