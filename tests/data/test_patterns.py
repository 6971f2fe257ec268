"""Stock patterns: every pair is one of its relation, at the distance it says; anything else is refused in one line."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpaudit import AdjacentPair, InvalidSpec, Relation
from dpaudit.data import PATTERNS, SealedPair, stock_pairs
from tests.cases import for_each

QUERIES = ("one_differs", "all_differ", "half_up_half_down", "far_from_threshold")


class Person(NamedTuple):
    age: int
    name: str


DATASETS: dict[str, Any] = {
    "numbers": [3.0, 1.0, 2.0, 5.0],
    "tuple": (3, 1, 2, 5),
    "rows": [(1, 2.0, "a"), (3, 4.0, "b"), (5, 0.0, "c")],
    "dictionaries": [{"age": 3, "name": "x"}, {"age": 4, "name": "y"}, {"age": 1, "name": "z"}],
    "named": [Person(3, "x"), Person(4, "y"), Person(1, "z")],
    "array": np.array([3.0, 1.0, 2.0, 5.0]),
    "matrix": np.arange(8.0).reshape(4, 2),
}
ADDING = ("drop_one", "add_one", "add_outlier", "add_nan", "add_infinity", "empty")
REPLACING = ("replace_one", "replace_by_outlier", "replace_by_nan", "replace_by_infinity")


@for_each("distance", [1, 3])
@for_each("queries", [2, 3, 10])
@for_each("name", QUERIES)
def test_query_answers_move_by_at_most_the_sensitivity(name: str, queries: int, distance: int) -> None:
    for relation in (None, *Relation):
        pairs = stock_pairs(name, relation=relation, queries=queries, sensitivity=0.5, distance=distance)
        for pair in pairs:
            moved = np.abs(np.subtract(pair.first, pair.second))
            assert len(pair.first) == len(pair.second) == queries
            assert 0.0 < moved.max() <= 0.5 * distance
            assert pair.distance == distance
    assert len({pair.name for pair in pairs}) == len(pairs)
    both_ways = {(str(pair.first), str(pair.second)) for pair in pairs}
    assert not any((second, first) in both_ways for first, second in both_ways), "both orders are free in search"
    assert len(both_ways) == len(pairs)


def test_query_patterns_are_what_their_names_say() -> None:
    assert [pair.second for pair in stock_pairs("one_differs", queries=3, base=2)] == [
        [3, 2, 2],
        [2, 2, 3],
        [1, 2, 2],
        [2, 2, 1],
    ]
    assert len(stock_pairs("one_differs", queries=1)) == 2
    together = {pair.name: pair for pair in stock_pairs("all_differ", queries=10)}
    leak = together["all differ: last and rest exchanged"]  # what gives AboveThreshold without threshold noise away
    assert (leak.first, leak.second) == ([0] * 9 + [1], [1] * 9 + [0])
    assert together["all differ: last down, rest up"].second == [1] * 9 + [-1]
    halves = [pair.second for pair in stock_pairs("half_up_half_down", queries=5)]
    assert halves == [[1, 1, -1, -1, -1], [-1, -1, 1, 1, 1], [0, 0, 1, 1, 1]]
    far = stock_pairs("far_from_threshold", queries=2, threshold=1.0, far=100.0)
    assert all(abs(answer - 1.0) >= 99.0 for pair in far for answer in (*pair.first, *pair.second))


def test_the_published_patterns() -> None:
    """Those of StatDP's table, from the base (1, ..., 1): two where one answer differs, eight where all may."""
    one, all_of_them = stock_pairs("statdp_one_differs", queries=5), stock_pairs("statdp_all_differ", queries=5)
    assert [pair.second for pair in one] == [[0, 1, 1, 1, 1], [2, 1, 1, 1, 1]]
    assert all_of_them[:2] == one
    assert sorted((pair.first, pair.second) for pair in all_of_them[2:]) == [
        ([1, 1, 0, 0, 0], [0, 0, 1, 1, 1]),
        ([1] * 5, [0, 0, 0, 0, 0]),
        ([1] * 5, [0, 2, 2, 2, 2]),
        ([1] * 5, [2, 0, 0, 0, 0]),
        ([1] * 5, [2, 2, 0, 0, 0]),
        ([1] * 5, [2, 2, 2, 2, 2]),
    ]
    for queries in (2, 3, 4, 10):
        pairs = stock_pairs("statdp_all_differ", relation="replace_one", queries=queries)
        seen = {(str(pair.first), str(pair.second)) for pair in pairs}
        assert len(seen) == len({pair.name for pair in pairs}) == len(pairs) == (8 if queries > 3 else 7)
        assert not any((second, first) in seen for first, second in seen)
        for pair in pairs:
            assert np.abs(np.subtract(pair.first, pair.second)).max() == 1
            assert {type(answer) for answer in (*pair.first, *pair.second)} == {int}
    with pytest.raises(InvalidSpec, match="queries must be at least 2"):
        stock_pairs("statdp_all_differ", queries=1)


def test_whole_numbers_stay_whole() -> None:
    """Mechanisms on integers get integers."""
    for name in QUERIES:
        for pair in stock_pairs(name, queries=4, distance=2):
            assert {type(answer) for answer in (*pair.first, *pair.second)} == {int}


@for_each("distance", [1, 2])
@for_each("kind", DATASETS)
@for_each("name", [*ADDING, *REPLACING])
def test_datasets_are_neighbours_under_their_relation(name: str, kind: str, distance: int) -> None:
    data = DATASETS[kind]
    relation = Relation.ADD_OR_REMOVE_ONE if name in ADDING else Relation.REPLACE_ONE
    pairs = stock_pairs(name, relation=relation, data=data, distance=distance)
    assert pairs
    for pair in pairs:
        assert pair.distance == distance
        assert type(pair.first) is type(pair.second)
        if distance == 2:  # no pair is nearer than it says
            with pytest.raises(InvalidSpec, match="not at distance 1"):
                AdjacentPair(pair.first, pair.second).check(relation)
    assert len({pair.name for pair in pairs}) == len(pairs)
    if name in REPLACING:
        assert all(len(pair.first) == len(pair.second) for pair in pairs)


@pytest.mark.parametrize(("name", "relation"), [("drop_one", "replace_one"), ("replace_one", "add_or_remove_one")])
def test_a_pattern_of_another_relation_is_refused_by_name(name: str, relation: str) -> None:
    with pytest.raises(
        InvalidSpec, match=f"pattern '{name}' makes no neighbours under {relation}.*these do: one_differs"
    ):
        stock_pairs(name, relation=relation, data=[1, 2])
    for pair in stock_pairs(name, data=[1, 2]):
        with pytest.raises(InvalidSpec, match=r"not at distance 1 under .*records leave"):
            pair.check(Relation(relation))


def test_local_and_special_relations() -> None:
    assert stock_pairs("replace_one", relation="local", data=[1], value=2)[0].second == [2]
    with pytest.raises(InvalidSpec, match=r"under local data is the value of one person: give data=\[value\]"):
        stock_pairs("replace_one", relation="local", data=[1, 2], value=3)
    blank = stock_pairs("replace_one", relation="replace_special", data=["a", "b"], value=None)
    assert [pair.second for pair in blank] == [[None, "b"], ["a", None]]


def test_what_is_dropped_added_and_replaced() -> None:
    assert [pair.second for pair in stock_pairs("drop_one", data=[2, 9, 1, 3])] == [
        [9, 1, 3],
        [2, 9, 1],
        [2, 9, 3],
        [2, 1, 3],
    ]
    assert [pair.second for pair in stock_pairs("drop_one", data=["b", "a"])] == [["a"], ["b"]]
    assert [pair.second for pair in stock_pairs("add_one", data=(2, 9, 1))] == [
        (2, 9, 1, 2),
        (2, 9, 1, 1),
        (2, 9, 1, 9),
    ]
    assert [pair.second for pair in stock_pairs("replace_one", data=["b", "a"])] == [["a", "a"], ["b", "b"]]
    assert [pair.first for pair in stock_pairs("empty", data=[2, 9, 1])] == [[2], [1], [9]]
    outlying = stock_pairs("add_outlier", data=[(1, 7.0, "x")], size=50, distance=2)
    assert outlying[0].second == [(1, 7.0, "x"), (50, 50, "x"), (50, 50, "x")]
    (nan,) = stock_pairs("replace_by_nan", data=np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert np.isnan(nan.second[0]).all()
    assert nan.second[1].tolist() == [3.0, 4.0]
    low, high = sorted(pair.second[-1] for pair in stock_pairs("add_infinity", data=[1]))
    assert (low, high) == (-math.inf, math.inf)


def test_an_array_holds_only_what_its_type_can() -> None:
    small = np.array([1, 2], np.int8)
    assert [pair.second.tolist() for pair in stock_pairs("add_outlier", data=small)] == [[1, 2, 127], [1, 2, -128]]
    with pytest.raises(InvalidSpec, match="an array of int8 cannot hold the record nan"):
        stock_pairs("add_nan", data=small)
    with pytest.raises(InvalidSpec, match=r"an array of int8 cannot hold the record 1\.5 as it is"):
        stock_pairs("replace_one", data=small, value=1.5)
    with pytest.raises(InvalidSpec, match="an array of <U1 cannot hold"):
        stock_pairs("add_one", data=np.array(["a", "b"]), value="long")


def test_the_data_given_stays_as_it_was() -> None:
    data = np.array([3.0, 1.0, 2.0])
    for name in (*ADDING, *REPLACING):
        stock_pairs(name, data=data)
    assert data.tolist() == [3.0, 1.0, 2.0]


@for_each(
    ("name", "keywords", "message"),
    [
        ("one_differ", {}, r"pattern must be one of one_differs, .* got 'one_differ'"),
        ("one_differs", {}, "pattern 'one_differs' needs the parameter 'queries'; give queries = ..."),
        ("one_differs", {"rows": 3}, "pattern 'one_differs' has no parameter 'rows'; it has: queries, sensitivity"),
        ("one_differs", {"queries": 0}, "pattern 'one_differs': queries must be at least 1, got 0"),
        ("half_up_half_down", {"queries": 1}, "queries must be at least 2"),
        ("all_differ", {"queries": 2, "sensitivity": 0}, "sensitivity must be finite and above 0"),
        ("far_from_threshold", {"queries": 2, "far": -1}, "far must be finite and above 0"),
        (
            "drop_one",
            {"data": 3},
            "a pattern needs the records of a list, tuple, numpy array, frame or dictionary of columns, got int",
        ),
        ("drop_one", {"data": []}, "the pattern needs a dataset of at least 1 records, got 0"),
        ("drop_one", {"data": [1], "distance": 2}, "at least 2 records, got 1"),
        ("add_one", {"data": []}, "an empty dataset has no record to copy; give value"),
        ("replace_one", {"data": [1, 1]}, "replacing records by their equals makes no pair"),
        ("replace_one", {"data": ["a"]}, "give value"),
        ("add_outlier", {"data": ["a"]}, "the records hold no numbers to put 1000 into, got 'a'"),
    ],
)
def test_bad_patterns_say_what_to_change(name: str, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message) as caught:
        stock_pairs(name, **keywords)
    assert "\n" not in str(caught.value)


def test_patterns_know_their_parameters() -> None:
    assert PATTERNS["one_differs"].required == ("queries",)
    assert PATTERNS["replace_one"].keywords == ("data", "value", "distance")


def test_query_answers_beyond_their_sensitivity_are_refused() -> None:
    good = AdjacentPair([0.0, 0.0], [0.3, -0.3], distance=3, sensitivity=0.1)
    good.check(Relation.ADD_OR_REMOVE_ONE)
    good.check(None)
    with pytest.raises(InvalidSpec, match=r"a query answer of 'pair' moves by 0\.3, and sensitivity 0\.1 allows 0\.2"):
        AdjacentPair([0.0, 0.0], [0.3, 0.0], distance=2, sensitivity=0.1).check(None)
    with pytest.raises(InvalidSpec, match="of one length"):
        AdjacentPair([0.0], [0.0, 1.0], sensitivity=1.0).check(None)
    with pytest.raises(InvalidSpec, match="must be numbers"):
        AdjacentPair(["a"], ["b"], sensitivity=1.0).check(None)
    with pytest.raises(InvalidSpec, match="moves by nan"):
        AdjacentPair([0.0], [math.nan], sensitivity=1.0).check(None)
    with pytest.raises(InvalidSpec, match="sensitivity must be finite and above 0"):
        AdjacentPair([0.0], [1.0], sensitivity=0.0)
    assert SealedPair.seal(good).open() == (good.first, good.second)
