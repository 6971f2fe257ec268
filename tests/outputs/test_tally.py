"""Outputs counted before they are looked at give the counts of looking at each: for every event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.data import AdjacentPair
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate, Whole
from dpaudit.events.joint import Equal
from dpaudit.mechanisms import Opened
from dpaudit.outputs.canonical import Sample, Token, token
from dpaudit.outputs.encode import encode_objects
from dpaudit.running import watch
from dpaudit.running.streams import Shard, Stage
from dpaudit.running.worker import Job, Worker
from tests.cases import NIGHTLY, for_each
from tests.outputs import kinds

pytestmark = pytest.mark.filterwarnings("ignore")  # numpy warns where a strange object is read as a number


class Recorded:
    """A mechanism that returns a list of outputs, one after the other."""

    def __init__(self, outputs: list[Any]) -> None:
        self.outputs = outputs
        self.name = "recorded"

    def open(self) -> Any:
        left = iter(self.outputs)
        return Opened(lambda data, rng: next(left), per_run=True, takes_rng=False)

    def describe(self) -> Any:
        raise AssertionError("never called")


def counted(outputs: list[Any], reducer: HitCounter) -> list[int]:
    """Hits and runs of both sides as a worker counts them, in two shards."""
    worker = Worker.start(Job("test", 1, None), Recorded(outputs), (AdjacentPair("first", "second"),))
    half = len(outputs) // 2
    parts = [Shard(Stage.CERTIFY, 0, 0, half), Shard(Stage.CERTIFY, 0, 1, len(outputs) - half)]
    return sum(np.asarray(worker.run(shard, reducer)) for shard in parts if shard.runs).tolist()


def looked_at(outputs: list[Any], reducer: HitCounter) -> list[int]:
    """The same, each output encoded alone."""
    sides: list[bool] = []
    half = len(outputs) // 2
    for index, runs in enumerate((half, len(outputs) - half)):
        coins, _ = Shard(Stage.CERTIFY, 0, index, runs).streams(1)
        sides.extend(np.unpackbits(np.frombuffer(coins.bytes(-(-runs // 8)), np.uint8), count=runs).tolist())
    inside = [bool(reducer.event.contains(encode_objects([output]))[0]) for output in outputs]
    hits = [
        sum(hit and bool(side) is wanted for hit, side in zip(inside, sides, strict=True)) for wanted in (False, True)
    ]
    runs = [sides.count(False), sides.count(True)]
    return [hits[0], runs[0], hits[1], runs[1]]


EVENTS = [
    Event(Coordinate(()), tokens=(token("text", "red"),)),
    Event(Coordinate((0,)), tokens=(token("text", "red"),)),
    Event(Coordinate((0,)), intervals=((0.5, 1.5),)),
    Event(Coordinate((1,)), intervals=((-np.inf, 1.5),)),
    Event(Coordinate((0, "real")), intervals=((0.5, 1.5),)),
    Event(Coordinate(("@type",)), tokens=(token("type", "tuple"),)),
    Event(Equal((0,), (1,)), intervals=((0.5, np.inf),)),
    Event(Whole(), tokens=(token("nothing"),)),
]
LOOKALIKES: list[Any] = [
    *("red", kinds.Shade.RED, kinds.Text("red"), np.str_("red"), b"red"),
    *(("red", 1), (kinds.Shade.RED, 1), (kinds.Text("red"), True)),
    *((1, 1.0), (True, 2), (1 + 0j, 1), (np.complex128(1), 1), kinds.Point(1, 1), (np.float64(1.0), -0.0), (1, 0.0)),
    *((frozenset({1}), 1), (frozenset({True}), 1)),
    *((1, (2, "red")), (1, [2]), [1, 1]),
    *(1, True, None),
]
WHOLE = [Event(Whole(), tokens=(Token("x", int(code)),)) for code in Whole().column(encode_objects(LOOKALIKES)).tokens]


@pytest.mark.long
@settings(max_examples=500 if NIGHTLY else 120, deadline=None, derandomize=True)
@given(outputs=st.lists(st.sampled_from(LOOKALIKES), min_size=2, max_size=12), event=st.sampled_from([*EVENTS, *WHOLE]))
def test_counting_first_changes_no_event(outputs: list[Any], event: Event) -> None:
    reducer = HitCounter(event)
    assert counted(outputs, reducer) == looked_at(outputs, reducer)


@for_each("event", EVENTS, ids=str)
def test_equal_objects_of_different_kinds(event: Event) -> None:
    reducer = HitCounter(event)
    for one, other in ((("red", 1), (kinds.Shade.RED, 1)), ("red", kinds.Shade.RED), ((1,), (1 + 0j,))):
        for outputs in ([one, other] * 6, [other, one] * 6):
            assert counted(outputs, reducer) == looked_at(outputs, reducer)


def test_many_cells_with_more_and_more_different_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the most that are counted first, and with unhashable ones in between, no run is lost or counted twice."""
    monkeypatch.setattr(watch, "MOST_RECURRING", 200)
    rng = np.random.default_rng(5)
    outputs: list[Any] = [(int(n), "red") for n in rng.integers(0, 300, 1_200)]
    outputs[700:700] = [([1], 2)] * 10
    reducer = HitCounter(Event(Coordinate((0,)), intervals=((9.5, 199.5),)))
    assert counted(outputs, reducer) == looked_at(outputs, reducer)


def test_what_was_counted_is_forgotten_between_shards_and_pairs() -> None:
    outputs = [("red", 1)] * 40
    reducer = HitCounter(EVENTS[1])
    worker = Worker.start(Job("test", 1, None), Recorded(outputs), (AdjacentPair("first", "second"),))
    runs = [np.asarray(worker.run(Shard(Stage.CERTIFY, 0, index, 20), reducer)) for index in range(2)]
    assert [int(counts[1] + counts[3]) for counts in runs] == [20, 20]


def test_samples_count_what_they_hold() -> None:
    sample = Sample(encode_objects(["a", "b"]), np.array([3, 4]))
    assert sample.runs == 7
    assert sample.hits(np.array([True, False])) == 3
