"""What a text says: columns beside its token that equal Python's own reading, and add nothing to what it is."""

from __future__ import annotations

import itertools
import json
import math
import struct
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.events.features import Shape, Whole
from dpaudit.outputs.canonical import Outputs, Path, Pilot, derived, is_metadata
from dpaudit.outputs.encode import encode_batch, encode_objects
from dpaudit.outputs.text import FLOAT, JSON, LONGEST_NUMBER, NUMBERS, WORDS
from dpaudit.running.order import words
from dpaudit.search.entries import coordinates_of, looked_at
from tests.cases import for_each
from tests.outputs import kinds


def read(output: Any) -> dict[Path, Any]:
    """What is read out of an output: numbers, and the labels of tokens."""
    outputs = encode_objects([output])
    found = {path: kinds.cell(outputs, path, 0) for path in outputs.columns if derived(path)}
    return {path: outputs.labels.get(code, "nan") if code else number for path, (number, code) in found.items()}


def test_nothing_is_said_twice() -> None:
    """A number has no fields, and JSON of several parts no numbers beside its own."""
    for text, there in (("1.5", FLOAT), ('{"a": 1.5}', JSON), ("a 1.5", NUMBERS)):
        assert {path[0] for path in read(text)} & {FLOAT, JSON, NUMBERS} == {there}


@settings(deadline=None)
@given(st.text(max_size=30) | st.floats().map(repr) | st.integers().map(str) | st.floats().map("{:.3f}".format))
def test_the_number_is_that_of_python(text: str) -> None:
    try:
        expected: float | None = float(text)
    except ValueError:
        expected = None
    found = read(text).get((FLOAT,))
    if expected is None or math.isnan(expected):
        assert found == (None if expected is None else "nan")
    else:
        assert found == expected


leaves = st.floats(allow_nan=False) | st.booleans() | st.integers(-(2**53), 2**53)


@settings(deadline=None)
@given(st.lists(leaves, max_size=5) | st.dictionaries(st.text(max_size=5), st.lists(leaves, max_size=3), max_size=4))
def test_json_is_read_as_the_object_it_holds(held: Any) -> None:
    """Numbers and lengths as those of the object itself, by the same code."""
    inside = {path[1:]: each for path, each in read(json.dumps(held)).items() if path[0] == JSON}
    outputs = encode_objects([held])
    expected = {path: kinds.cell(outputs, path, 0)[0] for path in outputs.columns if not is_metadata(path)}
    assert inside == expected


@settings(deadline=None)
@given(
    st.lists(st.integers(-999, 999) | st.sampled_from(["ok", "no"]), min_size=2, max_size=8), st.sampled_from(",; \t")
)
def test_fields_are_those_of_split(fields: list[Any], between: str) -> None:
    text = between.join(map(str, fields))
    found = read(text)
    numbers = [float(each) for each in fields if not isinstance(each, str)]
    assert [found.get((NUMBERS, place)) for place in range(len(numbers))] == numbers
    for place, each in enumerate(text.split(between)):
        assert found.get((WORDS, place)) == (repr(each) if each in ("ok", "no") else None)


def said(outputs: Outputs, row: int) -> dict[Path, kinds.Cell]:
    return {path: cell for path, cell in kinds.cells(outputs, row).items() if derived(path)}


def test_batched_and_per_run_texts_are_read_alike() -> None:
    texts = ["1.5", "a 2", '{"a": 1}', "x"]
    for made in (texts, [each.encode() for each in texts]):
        together = encode_batch(np.array(made), 4)
        for row, output in enumerate(made):
            assert said(together, row) == said(encode_objects([output]), 0)


def test_bytes_of_machine_numbers_are_these_numbers_in_any_batch() -> None:
    made = [struct.pack("<d", number) for number in (0.0, -1.5, 1e300, math.inf)]
    alone = {each: said(encode_objects([each]), 0) for each in (*made, b"ab", b"12345678", b"\xff\x00\x01", b"\xff")}
    for batch in itertools.permutations(alone, 3):
        together = encode_objects(list(batch))
        assert [said(together, row) for row in range(3)] == [alone[each] for each in batch]


def test_what_is_said_adds_nothing_to_what_an_output_is() -> None:
    texts = [f"{number % 7}: {number}" for number in range(200)]
    whole, bare = encode_objects(texts), encode_objects(texts)
    bare = Outputs(bare.runs, {path: each for path, each in bare.columns.items() if not derived(path)}, bare.labels)
    np.testing.assert_array_equal(Whole().column(whole).codes, Whole().column(bare).codes)  # type: ignore[arg-type]
    np.testing.assert_array_equal(words(whole, 200), words(bare, 200))
    assert whole.complete
    assert Shape(((0,),)).column(whole) is not None
    assert any(derived(path) for path in coordinates_of(whole))


def test_texts_that_recur_say_all_themselves() -> None:
    """They are tokens, of which any set is an event; many numbers have an order besides, whether they recur or not."""
    for texts, there in (
        ([f"answer {number % 80}" for number in range(300)], False),
        ([f"answer {number}" for number in range(300)], True),
        ([f"{number % 50}" for number in range(300)], False),
        ([f"{number % 80}" for number in range(300)], True),
    ):
        pilot = Pilot(encode_objects(texts[:150]), encode_objects(texts[150:]))
        assert any(map(derived, looked_at(pilot, encode_objects(texts)))) == there


HOSTILE = {
    "a long number": "9" * 10**6,
    "a number beyond floats": "1e999999",
    "long numbers in JSON": "[" + "9" * 60_000 + ", 1e99999]",
    "deep lists": "[" * 60_000,
    "deep and closed": "[" * 5_000 + "]" * 5_000,
    "deep objects": '{"a":' * 10_000,
    "a great text": "x" * 10**6,
    "signs alone": "-+.eE" * 10_000,
    "digits and dots": "1.1." * 20_000,
    "blanks": " " * 10**6,
    "many fields": "a," * 10**5,
    "many keys": json.dumps(dict.fromkeys(map(str, range(10_000)), 0)),
    "half a character": "\ud800 1",
    "a null": "\0",
    "numbers of other scripts": "٣ ³",
    "odd JSON": '{"a": NaN, "a": -Infinity, "": [1e400]}',
}


@for_each("name", HOSTILE)
def test_hostile_texts_are_read_in_bounds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is raised or printed, reading is quick, and columns are few; bytes alike."""
    text = HOSTILE[name]
    before = time.process_time()
    for output in (text, text.encode("utf-8", "surrogatepass")):
        outputs = encode_objects([output])
        assert len(outputs.columns) < 200 or name == "many keys"
        assert outputs.complete
    assert time.process_time() - before < 5.0
    assert capsys.readouterr() == ("", "")
    assert len(text) <= LONGEST_NUMBER or (FLOAT,) not in read(text)


def test_only_what_is_wanted_is_read() -> None:
    wanted = frozenset({(JSON, "a")})
    outputs = encode_objects(['{"a": 1, "b": 2}', "3", "a 4"], wanted)
    assert set(outputs.columns) == wanted
    assert outputs.column((JSON, "a")).tokens[1:].all()
