"""Watching: the counts of a plain counter exactly, and integers of the order that a loop would count."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, batched
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.outputs.canonical import Outputs, token
from dpaudit.outputs.encode import encode_objects
from dpaudit.running.order import CALLS, OF_CALL, printed, summary, words
from dpaudit.running.streams import Shard, Stage, shards
from dpaudit.running.watch import ShardCounter, Watch, begun
from tests.cases import for_each

PAIR = (AdjacentPair(0.0, 1.0),)


def number(data: float, rng: np.random.Generator) -> float:
    return data + rng.laplace()


def recurring(data: float, rng: np.random.Generator) -> Any:
    return ("ab"[int(rng.integers(2))], int(data))


def sometimes_recurring(data: float, rng: np.random.Generator) -> Any:
    """Tuples that are counted first, and lists between them that are not."""
    draw = int(rng.integers(400))
    return [draw] if draw < 2 else (draw % 7, int(data))


def mixed(data: float, rng: np.random.Generator) -> Any:
    draw = rng.random()
    if draw < 0.3:
        raise ValueError
    return None if draw < 0.5 else (draw, data)


def many(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=runs)


def above(path: tuple[int, ...], low: float) -> Event:
    return Event(Coordinate(path), intervals=((low, np.inf),))


CASES = [
    (number, above((), 0.5)),
    (recurring, Event(Coordinate((0,)), tokens=(token("text", "a"),))),
    (sometimes_recurring, above((0,), 3.5)),
    (mixed, Event(Coordinate(()), tokens=(token("raised", "ValueError"),))),
    (batched(many), above((), 0.5)),
]


@dataclass(frozen=True)
class Thirds:
    """A partition: numbers below 0, from 0 to 1, above 1."""

    sets: int = 3
    wanted: Any = None

    def state(self, outputs: Outputs) -> Any:
        values = outputs.column(()).values
        return np.where(values < 0.0, 1, np.where(values < 1.0, 2, 3)).astype(np.uint8)


@pytest.mark.long
@for_each("mechanism, event", CASES, ids=lambda each: getattr(each, "__name__", str(each)))
@for_each("runs, shard_runs", [(3_000, 700), (3, 2), (9_001, 1 << 18)])
def test_counts_are_those_of_a_plain_counter(mechanism: Any, event: Event, runs: int, shard_runs: int) -> None:
    """Of both events, in all and by shard; and another reducer sees the same outputs."""
    runs *= 4 if mechanism is CASES[-1][0] else 1  # so that a shard of batches has several calls
    work = shards(Stage.CERTIFY, 0, runs, shard_runs)
    other = above((), 1.5)
    watch = Watch(event, (other,), also=HitCounter(event))
    with Engine(1) as engine, engine.session(wrap(mechanism), PAIR, 5, None) as session:
        table = session.shard_counts(work, watch)
        plain = [session.counts(work, HitCounter(each)).tolist() for each in (event, other)]
        by_shard = {shard: session.counts([shard], HitCounter(event)).tolist() for shard in work}
    assert list(table) == work
    total = sum(table.values())
    assert [watch.plain(total, part).tolist() for part in (0, 1)] == plain
    assert {shard: watch.plain(counts).tolist() for shard, counts in table.items()} == by_shard
    assert watch.rest(total).tolist() == plain[0]
    assert watch.read(table).runs.sum() == runs


@for_each("mechanism", [number, batched(many)])
def test_bins_of_a_partition_are_counted(mechanism: Any) -> None:
    work = shards(Stage.CERTIFY, 0, 6_000, 1_000)
    events = [above((), -np.inf), above((), 0.0), above((), 1.0)]
    watch = Watch(Thirds(), (Thirds(),))
    with Engine(1) as engine, engine.session(wrap(mechanism), PAIR, 5, None) as session:
        total = session.counts(work, watch)
        plain = np.array([session.counts(work, HitCounter(event)) for event in events])
    nested = plain[:, [0, 2]].T
    expected = nested - np.concatenate([nested[:, 1:], np.zeros((2, 1), np.int64)], axis=1)
    assert watch.hits(total).tolist() == watch.hits(total, 1).tolist() == expected.tolist()
    assert total[:2].tolist() == plain[0, [1, 3]].tolist()


@pytest.mark.long
def test_the_same_for_any_number_of_workers() -> None:
    """Everything that is counted, order and first outputs included, for every way to run."""
    work = shards(Stage.CERTIFY, 0, 4_000, 300)
    for mechanism, event in CASES[1:4:2]:
        found = []
        for way in (
            {"n_jobs": 1},
            {"n_jobs": 2, "backend": "threading", "task_runs": 600},
            {"n_jobs": 1, "supervised": True},
        ):
            with Engine(**way) as engine, engine.session(wrap(mechanism), PAIR, 5, None) as session:
                found.append(session.shard_counts(work, Watch(event)))
        assert all(list(other) == work for other in found)
        assert all((other[shard] == found[0][shard]).all() for other in found[1:] for shard in work)


# --- the integers of the order ------------------------------------------------------------------------------------


@for_each("runs", [0, 1, 5, 257, 4_096])
def test_patterns_and_quarters_are_those_of_a_loop(runs: int) -> None:
    rng = np.random.default_rng(runs)
    hits, sides = rng.random(runs) < 0.3, rng.random(runs) < 0.5
    in_quarters, of_quarters, quads, calls = summary(hits.view(np.uint8), sides)
    codes = (hits + 2 * sides).tolist()
    naive = [0] * 256
    for start in range(0, runs - 3, 4):
        naive[sum(code << 2 * k for k, code in enumerate(codes[start : start + 4]))] += 1
    assert quads.tolist() == naive
    cuts = [runs * quarter // 4 for quarter in range(5)]
    for quarter, (low, high) in enumerate(itertools.pairwise(cuts)):
        for side in (False, True):
            here = [hit for hit, other in zip(hits[low:high], sides[low:high], strict=True) if other == side]
            assert (in_quarters[quarter][int(side)], of_quarters[quarter][int(side)]) == (sum(here), len(here))
    assert not calls.any()


def test_calls_are_held_against_each_other_run_by_run() -> None:
    rng = np.random.default_rng(3)
    sizes = [900, 3_000, 2_500, 700, 800]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    hits, sides = rng.random(sum(sizes)) < 0.4, np.repeat([True, False, False, True, True], sizes)
    codes = hits + 2 * sides
    naive = np.zeros((2, 16), np.int64)
    for place, one in enumerate(range(CALLS - 1)):
        for k in range(min(sizes[one], sizes[one + 1], OF_CALL)):
            naive[place % 2, codes[starts[one] + k] + 4 * codes[starts[one + 1] + k]] += 1
    found = summary(hits.view(np.uint8), sides, list(zip(starts, sizes, strict=True))[:CALLS])[3]
    assert (found == naive).all()


class Ordered:
    """Counts its calls and remembers sides, so that a test knows the order."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float]] = []

    def __call__(self, data: float, rng: np.random.Generator) -> Any:
        self.calls.append((data, float(rng.integers(3))))
        return (self.calls[-1][1], "x") if self.calls[-1][1] else [0]


def test_states_stand_in_the_order_of_the_runs() -> None:
    """Whatever mix of ways the outputs take, those that are counted first included."""
    mechanism = Ordered()
    watch = Watch(above((0,), 1.5))
    with Engine(1) as engine, engine.session(wrap(mechanism), PAIR, 5, None) as session:
        table = session.shard_counts(shards(Stage.CERTIFY, 0, 5_000, 5_000), watch)
    looked = watch.read(table)
    calls = np.array(mechanism.calls)
    hits, sides = calls[:, 1] == 2.0, calls[:, 0] == 1.0
    in_quarters, of_quarters, quads, _ = summary(hits.view(np.uint8), sides)
    assert (looked.hits[0] == in_quarters).all()
    assert (looked.runs[0] == of_quarters).all()
    assert (looked.quads == quads).all()
    assert (looked.prints[0] & np.uint64(1) == sides[:256]).all()
    for value in (0.0, 1.0, 2.0):
        assert len(set((looked.prints[0][calls[:256, 1] == value] >> np.uint64(2)).tolist())) == 1


def test_a_batched_shard_knows_its_calls() -> None:
    watch = Watch(above((), 0.5))
    with Engine(1) as engine, engine.session(wrap(batched(many)), PAIR, 5, None) as session:
        looked = watch.read(session.shard_counts(shards(Stage.CERTIFY, 0, 60_000, 30_000), watch))
    assert looked.calls.sum(axis=1).tolist() == [2 * 2 * OF_CALL, 2 * OF_CALL]  # of two shards: two pairs, and one
    assert looked.runs.sum() == 60_000


# --- the first outputs ----------------------------------------------------------------------------------------------


def test_words_are_equal_where_outputs_are_whatever_stands_beside_them() -> None:
    one = encode_objects([(1, "a"), (2.5, None), (-0.0, "b")])
    other = encode_objects([{"key": 1}, (1, "a"), (2.5, None), (0.0, "b"), [3]])
    assert words(one, 3).tolist() == words(other, 5)[1:4].tolist()
    assert len(set(words(other, 5).tolist())) == 5
    some = words(encode_objects([(1, "a"), (1, "b"), (2, "a")]), 3, frozenset({(0,)}))
    assert some[0] == some[1] != some[2]  # those of some columns do not know the others
    values = words(encode_objects([float("nan"), 0.0, None, "0", 0, True, 1]), 7)
    assert (values[1], values[5]) == (values[4], values[6])
    assert len(set(values.tolist())) == 5  # numbers and tokens differ


def test_marks_hold_the_side_and_are_never_zero() -> None:
    marked = printed(np.zeros(3, np.uint64), np.array([True, False, True]))
    assert (marked[:3] & np.uint64(1)).tolist() == [1, 0, 1]
    assert marked[:3].all()
    assert not marked[3:].any()


def test_only_the_first_shards_are_printed() -> None:
    watch = Watch(above((), 0.5))
    space = np.empty(20, np.uint8)
    looks = [begun(Shard(Stage.CERTIFY, 0, index, 10), watch, space) for index in (0, 255, 256)]
    assert [len(look.words) for look in looks if isinstance(look, ShardCounter)] == [10, 10, 0]


# --- pilots ------------------------------------------------------------------------------------------------------


@for_each("mechanism", [number, batched(many)])
def test_a_pilot_knows_the_sides_of_its_runs(mechanism: Any) -> None:
    """Put back into the order of the runs, a pilot's outputs are those that a watch saw."""
    event = above((), 0.5)
    watch = Watch(event)
    work = shards(Stage.SEARCH, 0, 2_500, 1_000)
    with Engine(1) as engine, engine.session(wrap(mechanism), PAIR, 5, None) as session:
        pilot = session.pilot(work)
        table = session.shard_counts(work, watch)
    assert pilot.sizes == (1_000, 1_000, 500)
    assert (len(pilot.sides), int(pilot.sides.sum())) == (2_500, pilot.second.runs)
    hits = np.empty(2_500, np.bool_)
    hits[pilot.sides], hits[~pilot.sides] = event.contains(pilot.second), event.contains(pilot.first)
    start = 0
    for row, size in zip(watch.read(table).hits, pilot.sizes, strict=True):
        here = slice(start, start + size)
        assert (row == summary(hits[here].view(np.uint8), pilot.sides[here])[0]).all()
        start += size


def test_a_probe_keeps_its_first_look() -> None:
    with Engine(1) as engine, engine.session(wrap(number), (*PAIR, AdjacentPair(2.0, 3.0)), 5, None) as session:
        probe = session.probe(64)
    assert [pilot.sizes for pilot in probe.pilots] == [(16,), (16,)]
    assert sum(pilot.runs for pilot in probe.pilots) * 2 == probe.runs
