"""What an output is does not depend on what stands beside it, nor on who looked before."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.events.joint import Ordered
from dpaudit.outputs.canonical import Column, Outputs, derived
from dpaudit.outputs.encode import encode_objects
from dpaudit.outputs.spelled import step


def nested(entries: int, levels: int) -> object:
    made: object = [float(each) for each in range(entries)]
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize("levels", [4, 5, 6])
def test_a_deep_list_is_one_cell_alone_and_beside_others(levels: int) -> None:
    path = (*[0] * levels, 7)
    wanted = frozenset({path})
    alone = encode_objects([nested(100, levels)], wanted).column(path)
    beside = encode_objects([nested(100, levels), nested(99, levels), None], wanted).column(path)
    assert alone.tokens[0] == beside.tokens[0]
    np.testing.assert_array_equal(alone.values[0], beside.values[0])


def test_a_feature_leaves_the_outputs_as_they_are() -> None:
    rows = np.arange(200.0) ** 2
    outputs = encode_objects([rows])
    steps = Ordered(tuple((j,) for j in range(200)), 0, steps=True)
    first, again = (steps.column(outputs).values[0] for _ in range(2))
    assert first == again == 0.0
    np.testing.assert_array_equal(outputs.column((199,)).values, rows[-1:])


def test_an_entry_that_is_asked_for_is_seen_among_lists_of_many_lengths() -> None:
    lists = [[float(j) for j in range(1_000 + each)] for each in range(300)]
    seen = encode_objects(lists, frozenset({(999,)})).column((999,))
    np.testing.assert_array_equal(seen.values, np.full(300, 999.0))
    all_of_them = encode_objects(lists)
    assert len(all_of_them.columns) < 500
    assert all_of_them.unseen > 800, "and what search does not look at is counted"


def test_no_key_is_taken_for_what_a_text_says() -> None:
    keys = ["as " + "x" * 80, "@as float", "as float", ("as ", 1), b"as "]
    assert not any(derived((step(key),)) for key in keys)


def test_a_column_of_one_run_is_a_copy_where_it_is_changed() -> None:
    outputs = Outputs(1, {(0,): Column(np.array([1.0])), (1,): Column(np.array([5.0]))})
    assert Ordered(((0,), (1,)), -1, steps=True).column(outputs).values[0] == 4.0
