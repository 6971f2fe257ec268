"""The canonical form of each kind of output, and what batched mechanisms may return."""

from __future__ import annotations

import gc
import math
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import UnsoundAudit
from dpaudit.events.features import spell
from dpaudit.outputs import columns
from dpaudit.outputs.canonical import (
    LENGTH,
    NOT_A_NUMBER,
    REST,
    WIDEST,
    Failure,
    concatenate,
    derived,
    is_metadata,
    token,
)
from dpaudit.outputs.encode import encode_batch, encode_objects
from dpaudit.outputs.spelled import step
from tests.cases import for_each
from tests.outputs import kinds

NAMES: dict[str, Any] = {"np": np, "math": math, "struct": struct, "kinds": kinds, "Failure": Failure, "token": token}


def spelled(line: str) -> list[str]:
    """What is read of the output that a line spells: numbers, and the labels of tokens."""
    if not line or line.startswith("#"):
        return []
    outputs = encode_objects([eval(line, NAMES)])
    labels = {NOT_A_NUMBER.code: "nan", **outputs.labels}
    lines = []
    for path, (number, code) in kinds.cells(outputs, 0).items():
        held = labels[code].replace("numpy.ma.core.", "numpy.ma.") if code else number
        lines.append(f"    {spell(path)}: {'...' if path[-1:] == (REST,) else held}")
    return sorted(lines)


def test_what_is_read_of_outputs_is_what_is_written_down() -> None:
    """Values and lengths, types, what texts and bytes say besides, and of errors their type alone."""
    written = Path(__file__).with_name("forms.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in written if not line.startswith("    ")]
    assert [each for line in lines for each in (line, *spelled(line))] == written


def form(output: Any) -> dict[Any, kinds.Cell]:
    """The coordinates of one output: its canonical form without length and type, and without what a text says."""
    return parts_of(kinds.cells(encode_objects([output]), 0))


def parts_of(found: dict[Any, kinds.Cell]) -> dict[Any, kinds.Cell]:
    """Of all cells those that hold values."""
    return {
        path: each
        for path, each in found.items()
        if not (path and path[-1] == LENGTH or derived(path) or is_metadata(path))
    }


# --- what cannot be looked at is no verdict, or a token; it never escapes ---------------------------------------


def raising(error: BaseException) -> Any:
    def method(*_: Any, **__: Any) -> Any:
        raise error

    return method


def failing(method: str, base: type = object, error: BaseException = RuntimeError("x"), *given: Any) -> Any:  # noqa: B008
    """An object of which one method raises."""
    return type("Failing", (base,), {method: raising(error)})(*given)


UNREADABLE: list[Any] = [
    *(failing("__float__", error=error) for error in (RuntimeError("x"), SystemExit(0), KeyboardInterrupt())),
    failing("__array__"),
    failing("__str__", str, RuntimeError("x"), "x"),
    failing("__len__", list, RuntimeError("x"), [1]),
    failing("__getitem__", dict, RuntimeError("x"), {"a": 1}),
    {failing("__repr__"): 1},
    {failing("__repr__")},
]


@for_each("output", UNREADABLE, ids=kinds.label)
def test_an_object_that_fails_to_be_read_is_a_token_or_no_verdict(output: Any) -> None:
    for batch in ([output], [1.0, output], ["a", output]):
        try:
            encode_objects(batch)
        except UnsoundAudit as error:
            assert "\n" not in str(error)  # noqa: PT017
        except BaseException as error:  # SystemExit and KeyboardInterrupt included: they would end the audit
            pytest.fail(f"{error!r} escaped")


def nested(width: int) -> list[Any]:
    inside: list[Any] = []
    inside.extend([inside] * width)
    return inside


def test_one_output_has_a_bounded_number_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are held for thousands of runs at a time, so their number must be bounded whatever the output is."""
    widest = kinds.cut_earlier(monkeypatch)
    for output in (nested(6), np.zeros((120, 120)), [[0.0] * 200] * 200):
        assert len(encode_objects([output]).columns) <= 8 * widest


def test_only_so_many_keys_have_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds.cut_earlier(monkeypatch)
    outputs = encode_objects([dict.fromkeys(range(start, start + 64), 1) for start in range(0, 364, 64)])
    assert sum(not is_metadata(path) for path in outputs.columns) <= 301
    assert not outputs.complete


def test_tokens_of_long_texts_are_not_kept() -> None:
    """Outputs of 200 kB each: 40 of them may not leave 8 MB behind."""
    tracemalloc.start()
    try:
        for index in range(40):
            encode_objects([f"{index}" + "x" * 200_000])
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()


def lists_around(entries: int, levels: int) -> object:
    made: object = [float(each) for each in range(entries)]
    for _ in range(levels):
        made = [made]
    return made


@for_each("levels", [4, 5, 6])
def test_a_deep_list_is_one_cell_alone_and_beside_others(levels: int) -> None:
    path = (*[0] * levels, 7)
    wanted = frozenset({path})
    alone = encode_objects([lists_around(100, levels)], wanted).column(path)
    beside = encode_objects([lists_around(100, levels), lists_around(99, levels), None], wanted).column(path)
    assert alone.tokens[0] == beside.tokens[0]
    np.testing.assert_array_equal(alone.values[0], beside.values[0])


def test_an_entry_that_is_asked_for_is_seen_among_lists_of_many_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_RAGGED", 1 << 13)
    lists = [[float(j) for j in range(500 + each)] for each in range(40)]
    seen = encode_objects(lists, frozenset({(499,)})).column((499,))
    np.testing.assert_array_equal(seen.values, np.full(40, 499.0))
    all_of_them = encode_objects(lists)
    assert len(all_of_them.columns) < 300
    assert all_of_them.unseen > 200, "and what search does not look at is counted"


def test_no_key_is_taken_for_what_a_text_says() -> None:
    keys = ["as " + "x" * 80, "@as float", "as float", ("as ", 1), b"as "]
    assert not any(derived((step(key),)) for key in keys)


# --- batched results -------------------------------------------------------------------------------------------


def batch_form(raw: Any, runs: int, row: int) -> dict[Any, kinds.Cell]:
    return parts_of(kinds.cells(encode_batch(raw, runs), row))


@for_each(
    "raw, objects",
    [
        (np.array([1.0, math.nan]), [1.0, math.nan]),
        (np.array([1, 2**60 + 2**36 + 1]), [1, 2**60 + 2**36 + 1]),
        (np.array([True, False]), [True, False]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([b"a", b"b"]), [b"a", b"b"]),
        (np.array([None, "x"], object), [None, "x"]),
        (np.array([1j, 2]), [1j, 2]),
        (np.array([[1, 2], [3, 4]]), [(1, 2), (3, 4)]),
        (np.zeros((2, 2, 2)), [np.zeros((2, 2)), np.zeros((2, 2))]),
        (np.ma.array([1.0, 2.0], mask=[True, False]), [np.ma.masked, 2.0]),
        (np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]), [np.ma.array([1, 2], mask=[0, 1]), np.array([3, 4])]),
        (kinds.structured(), [kinds.structured()[0], kinds.structured()[1]]),
        ((np.array([1, 2]), ["a", None]), [(1, "a"), (2, None)]),
        ({"n": np.array([1, 2]), "t": np.array(["a", "b"])}, [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}]),
        ([1.0, "a"], [1.0, "a"]),
        ([[1], (2, 3)], [[1], (2, 3)]),
    ],
    ids=kinds.label,
)
def test_batched_and_per_run_agree(raw: Any, objects: list[Any]) -> None:
    for row, output in enumerate(objects):
        assert batch_form(raw, 2, row) == form(output)


NO_BATCHES: list[Any] = [3.0, np.float64(3.0), np.zeros(3), np.zeros((3, 2)), [1.0], {"a": 1.0}, None, "ab", b"ab"]


@for_each("raw", [*NO_BATCHES, (np.zeros(2), np.zeros(3))], ids=kinds.label)
def test_a_result_without_the_run_as_first_axis_is_refused(raw: Any) -> None:
    with pytest.raises(UnsoundAudit, match="batched mechanism"):
        encode_batch(raw, 2)


@pytest.mark.long
def test_entries_without_a_column_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most of one output: beyond the widest array or list, the deepest level, and the keys of a batch."""
    assert encode_batch(np.zeros((2, WIDEST)), 2).unseen == 0
    assert encode_batch(np.zeros((2, WIDEST + 1)), 2).unseen == 1
    widest = kinds.cut_earlier(monkeypatch)
    wide, deep = np.zeros(widest + 7), [[[[[[[1.0], 2.0]]]]]]
    for outputs, unseen in (
        (encode_batch(np.zeros((2, 3, widest)), 2), 2 * widest),
        (encode_batch({"a": np.zeros((2, widest + 1)), "b": np.zeros((2, widest + 2))}, 2), 3),
        (encode_objects([[0.0] * (widest + 1)]), 1),
        (encode_objects([np.zeros(widest + 1), np.zeros(widest)]), 1),
        (encode_objects([wide, 1.0]), 7),
        (encode_objects([wide.tolist(), wide[:3].tolist()]), 7),
        (encode_objects([{"a": wide, "b": tuple(wide)}]), 14),
        (encode_objects([np.ma.masked_array(wide, wide > 0)]), 7),
        (encode_objects([[[0.0] * 10] * 30]), sum(max(0, 10 - widest // (j + 1)) for j in range(30))),
        (encode_objects([deep, 1.0]), 2),
        (encode_objects([{str(j): 0 for j in range(300)}, {"another": 0, "1": 0}]), 1),
        (encode_objects([frozenset(range(305))]), 5),
        (encode_objects([wide], frozenset({(0,)})), 0),  # what is not asked for is not counted
    ):
        assert outputs.unseen == unseen
        if len(outputs.columns) < 100:  # of many columns it is no other, and slow
            assert outputs.take(np.array([0])).unseen == unseen
            assert concatenate([encode_objects([1.0]), outputs]).unseen == unseen


def test_zero_runs_are_fine() -> None:
    assert encode_objects([]).runs == 0
