"""Adjacent pairs: equal datasets are refused, relations checked, contents digested, records plain."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, InvalidSpec, Relation
from dpaudit.pairs import SealedPair, digest
from dpaudit.pairs.data import private_copy

ADD, REPLACE, SPECIAL, LOCAL = (
    Relation.ADD_OR_REMOVE_ONE,
    Relation.REPLACE_ONE,
    Relation.REPLACE_SPECIAL,
    Relation.LOCAL,
)


@pytest.mark.parametrize(
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
        assert AdjacentPair(first, second).open() == (first, second) or True


@pytest.mark.parametrize("distance", [0, -1, 1.5, True, "1", None, float("nan")])
def test_a_distance_is_a_whole_number_of_at_least_one(distance: Any) -> None:
    with pytest.raises(InvalidSpec, match="distance"):
        AdjacentPair(0, 1, distance=distance)


def test_data_that_cannot_be_pickled_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="must be picklable, got lock"):
        AdjacentPair(threading.Lock(), 1)


@pytest.mark.parametrize("value", [3, None, "ab", {1, 2}, [1], (1, 2, 3), {"first": 1}, np.zeros(2)], ids=repr)
def test_a_pair_is_two_datasets(value: Any) -> None:
    with pytest.raises(InvalidSpec, match="must be two datasets"):
        AdjacentPair.of(value)


def test_a_pair_from_what_people_write() -> None:
    pair = AdjacentPair(0, 1, "mine")
    assert AdjacentPair.of(pair, "other") is pair
    assert AdjacentPair.of([0, 1], "other").name == "other"
    assert AdjacentPair.of((0, 1)).open() == (0, 1)


# --- relations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
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
        ([1, 2], [1, 3], 1, LOCAL, False),
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


def test_relation_words() -> None:
    assert Relation.of("replace_one") is REPLACE
    assert Relation.of(None) is None
    with pytest.raises(InvalidSpec, match=r"relation must be one of add_or_remove_one, .* got 'swap'"):
        Relation.of("swap")


# --- digests and records ------------------------------------------------------------------------------------------


def test_digests_are_the_same_in_another_process() -> None:
    value = {"a": [1, 2.5, None, "text"], "b": {"x", "y", "z"}}
    script = "from dpaudit.pairs import digest; print(digest({'b': {'z', 'y', 'x'}, 'a': [1, 2.5, None, 'text']}))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert found == digest(value)
    assert len(found) == 32


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (3, 3),
        ([1, "a", None], [1, "a", None]),
        ((1, 2), [1, 2]),
        ({"a": 1.5}, {"a": 1.5}),
        (np.array([1, 2]), [1, 2]),
        (np.float64(0.5), 0.5),
        (float("nan"), None),
        (float("inf"), None),
        ([float("nan")], None),
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
