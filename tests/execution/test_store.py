"""Stored shards: bit for bit, in their place or not at all, and an audit that is killed anywhere comes out the same."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, PureDP, batched
from dpaudit.auditing import run_audit
from dpaudit.auditing.clock import Clock
from dpaudit.auditing.other_witnesses import FEWEST, MANY_FROM
from dpaudit.errors import OutOfTime
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.execution.executor import Limit
from dpaudit.execution.journal import ForeignShard, StoredShard
from dpaudit.mechanisms import wrap
from dpaudit.outputs.canonical import Column, Outputs, Pilot
from dpaudit.outputs.encode import encode_objects
from dpaudit.processes.frames import BatchFailure, KeptShard, UnreadableShard, decoded, encoded
from dpaudit.processes.pools import InProcess, LostWorker
from dpaudit.results.observations import FIRST_CALLS
from dpaudit.running.contents import digest_of
from dpaudit.running.streams import Stage, shards
from dpaudit.running.watch import Watch
from tests.cases import NIGHTLY, for_each
from tests.outputs.kinds import EVERYTHING

pytestmark = pytest.mark.long

PAIR = AdjacentPair(10, 9)
EVENT = Event(Coordinate(), intervals=((9.5, np.inf),))


class Killed(BaseException):
    """What a driver that is killed never catches."""


class Memory:
    """A store that lives as long as the test: killed before or after its k-th transaction, where it is told to be."""

    def __init__(self, *, before: int | None = None, after: int | None = None) -> None:
        self.driver = 0
        self.shards: dict[Any, StoredShard] = {}
        self.noted: dict[str, Any] = {}
        self.transactions = 0
        self.before, self.after = before, after

    def fetch(self, call: int) -> Sequence[StoredShard]:
        return [each for each in self.shards.values() if each.call == call] if self.driver else []

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.transactions += 1
        if self.transactions == self.before:
            raise Killed
        yield
        if self.transactions == self.after:
            raise Killed

    def keep(self, shards: Sequence[StoredShard]) -> None:
        with self._transaction():
            for each in shards:
                place = each.call, each.look, each.shard.stage, each.shard.pair, each.shard.index
                before = self.shards.get(place)
                assert before is None or before.kind == "piece", "a stored shard was run again"
                self.shards[place] = each

    def notes(self) -> dict[str, Any]:
        return dict(self.noted) if self.driver else {}

    def note(self, name: str, value: Any) -> None:
        with self._transaction():
            self.noted[name] = value

    def next_driver(self) -> None:
        self.driver, self.before, self.after = self.driver + 1, None, None


def noisy(data: int, rng: Any) -> Any:
    return data + rng.laplace(scale=1.5), "odd" if rng.random() < 0.1 else None


@batched
def at_once(data: int, runs: int, rng: Any) -> Any:
    return data + rng.laplace(size=runs)


def of_64(data: int, runs: int, rng: Any) -> Any:
    assert runs == 64
    return data + rng.laplace(size=runs)


def spec(mechanism: Any = noisy, **keys: Any) -> AuditSpec:
    given: dict[str, Any] = {"runs": 1_200, "shard_runs": 150, "confidence": 0.99, **keys}
    return AuditSpec(claim=PureDP(1.0), mechanism=wrap(mechanism), pairs=(PAIR,), **given)


def audited(asked: AuditSpec, store: Memory | None = None, clock: Clock | None = None) -> dict[str, Any]:
    """The result but for its provenance, as plain as it is stored; tasks of one shard, so that there is much to end."""
    with Engine(1, task_runs=1) as engine:
        if store is not None:
            engine.keep_in(store)
        found = run_audit(asked, engine, clock=clock).to_dict()
    del found["provenance"]
    assert json.loads(json.dumps(found)) == found
    return found


# --- the codec ------------------------------------------------------------------------------------------------------


def same_outputs(one: Outputs, other: Outputs) -> bool:
    def spelled(outputs: Outputs) -> Any:
        columns = [
            (path, each.values.dtype.str, each.values.tobytes(), None if each.codes is None else each.codes.tobytes())
            for path, each in outputs.columns.items()
        ]
        return outputs.runs, outputs.complete, columns, list(outputs.labels.items())

    return bool(spelled(one) == spelled(other))


@for_each("objects", [EVERYTHING, [1.5, -0.0, np.nan], [(1, "\ud800"), (2, None)], [True, False], []])
def test_outputs_come_back_bit_for_bit(objects: list[Any]) -> None:
    whole = encode_objects(objects)
    half = np.arange(whole.runs) % 2 == 0
    pilot = Pilot(whole.take(half), whole.take(~half), half, (whole.runs,))
    back = decoded(*encoded(KeptShard(pilot, 0.1 + 0.2, 7, "loky", 3)))
    assert (back.seconds, back.runs, back.pool, back.driver) == (0.1 + 0.2, 7, "loky", 3)
    assert same_outputs(back.result.first, pilot.first)
    assert same_outputs(back.result.second, pilot.second)
    assert (back.result.sides.dtype, back.result.sides.tolist()) == (np.bool_, half.tolist())
    assert back.result.sizes == pilot.sizes
    assert same_outputs(decoded(*encoded(KeptShard(whole))).result, whole)


@for_each("dtype", [np.float16, np.float32, ">f8", np.uint8, np.int32])
def test_arrays_of_every_type_keep_it(dtype: Any) -> None:
    values = np.array([1, 2, 3, 4, 5, 6], dtype)[::2]
    column = decoded(*encoded(KeptShard(Outputs(3, {("a", 2): Column(values)})))).result.columns[("a", 2)]
    assert (column.values.dtype, column.values.tolist()) == (values.dtype, values.tolist())


def test_what_was_not_stored_is_not_read() -> None:
    kind, content = encoded(KeptShard(np.arange(6).reshape(2, 3)))
    assert decoded(kind, content).result.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert decoded(*encoded(KeptShard(BatchFailure("no\ud800")))).result.message == "no\ud800"
    for length in range(len(content)):
        with pytest.raises(UnreadableShard):
            decoded(kind, content[:length])
    for wrong in ("pilot", "outputs", "pickle"):
        with pytest.raises(UnreadableShard):
            decoded(wrong, content)
    with pytest.raises(UnreadableShard):
        decoded(kind, content + b"\0")
    _, nothing = encoded(KeptShard(np.zeros(0, np.int64)))
    with pytest.raises(UnreadableShard):  # of the right kind and length, with no array at all
        decoded(kind, nothing.replace(b'[["<i8", [0]]]', b"[]            "))
    for value in ({"a": 1}, np.array(["text"]), object()):
        with pytest.raises(TypeError):
            encoded(KeptShard(value))


def test_a_digest_is_of_the_question_alone() -> None:
    watch = Watch(EVENT, (EVENT,))
    again = Watch(Event(Coordinate(), intervals=((9.5, np.inf),)), (EVENT,))
    assert digest_of(watch) == digest_of(again)
    assert digest_of(frozenset({"a", "b", "c"})) == digest_of(frozenset({"c", "a", "b"}))
    others = [Watch(EVENT), HitCounter(EVENT), Watch(Event(Coordinate(), intervals=((9.6, np.inf),)), (EVENT,))]
    assert len({digest_of(each) for each in (watch, *others, None, (watch,), [watch])}) == 7
    assert digest_of(("ab", "c")) != digest_of(("a", "bc"))
    assert digest_of(np.zeros(2)) != digest_of(np.zeros((2, 1))) != digest_of(np.zeros(4, np.float32))
    with pytest.raises(TypeError):
        digest_of(object())


# --- killed and taken up --------------------------------------------------------------------------------------------

WAYS = {  # the transactions that do not come back, as parts of all
    "per run": (spec(runs=600), (0.5,)),
    "batched": (spec(at_once), (0.0, 0.3, 0.7, 1.0)),
    "calls of a fixed size": (spec(batched(of_64, size=64)), (0.4,)),
    "anytime": (spec(at_once, stopping="anytime", runs=1_000), (0.6,)),
    "controls": (spec(at_once, runs=200, controls=1, confidence=0.9), (0.8,)),
    "refuted": (spec(lambda data, rng: data + rng.random()), (1.0,)),  # the last one is of fresh processes
}


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_audit_comes_out_as_if_nothing_had_been(way: str) -> None:
    (asked, parts), whole = WAYS[way], Memory()
    expected = audited(asked, whole)
    if way == "anytime":
        assert audited(asked) == expected
    last = whole.transactions
    for kill in (1 + round(part * (last - 1)) for part in parts):
        for when in ("before", "after") if NIGHTLY else ("after" if kill % 2 else "before",):
            store = Memory(**{when: kill})
            with pytest.raises(Killed):
                audited(asked, store)
            assert len({look for call, look, *_ in store.shards if call == 0}) in (0, 2)  # both looks, or none
            store.next_driver()
            assert audited(asked, store) == expected
            assert store.shards.keys() == whole.shards.keys()


def test_every_stored_run_is_counted_once() -> None:
    """For a mechanism that never repeats itself: the certified counts are the sum of what was stored."""
    asked = spec(lambda data: data + np.random.default_rng().laplace(scale=3.0))
    store = Memory(after=8)
    with pytest.raises(Killed):
        audited(asked, store)
    held = dict(store.shards)
    store.next_driver()
    found = audited(asked, store)
    assert held.items() <= store.shards.items()
    certified = [each for each in store.shards.values() if each.shard.stage is Stage.CERTIFY]
    assert 0 < sum(place in held for place in store.shards if place[2] is Stage.CERTIFY) < len(certified)
    total = np.sum([decoded(each.kind, each.content).result[:4] for each in certified], axis=0).tolist()
    first = found["witness"]["p_side"] == "first"
    counts = [found["evidence"][key] for key in ("runs_p", "runs_q", "hits_p", "hits_q")]
    assert counts == (total if first else [total[1], total[0], total[3], total[2]])


def test_search_runs_never_stand_in_for_certifying_ones() -> None:
    """Nor any run for one of another seed, pair, event or dataset."""
    store = Memory()
    work = shards(Stage.CERTIFY, 0, 400, 200)

    def asked(seed: int = 0, pair: AdjacentPair = PAIR, event: Event = EVENT, mechanism: Any = noisy) -> Any:
        with Engine(1) as engine, engine.session(wrap(mechanism), (pair,), seed, None) as session:
            engine.keep_in(store)
            return session.counts(work, Watch(event)).tolist()

    counted = asked()
    store.next_driver()
    assert asked() == counted
    other = Event(Coordinate(), intervals=((9.0, np.inf),))
    for question in ({"seed": 1}, {"event": other}, {"pair": AdjacentPair(10, 8)}, {"mechanism": at_once}):
        with pytest.raises(ForeignShard, match="answers another question than is asked now"):
            asked(**question)
    for place, each in list(store.shards.items()):
        shard = dataclasses.replace(each.shard, runs=each.shard.runs + 1)
        store.shards[place] = dataclasses.replace(each, shard=shard)
    with pytest.raises(ForeignShard):
        asked()


def test_a_batched_call_that_failed_once_stays_failed() -> None:
    """Else whether the audit calls for one run at a time would depend on when it was killed."""
    calls: list[int] = []

    @batched
    def moody(data: int, runs: int, rng: Any) -> Any:
        calls.append(runs)
        if len(calls) == 1:
            raise OSError("not now")
        return data + rng.laplace(size=runs)

    asked = spec(moody, runs=600)
    store = Memory(after=2)
    with pytest.raises(Killed):
        audited(asked, store)
    store.next_driver()
    found = audited(asked, store)
    assert set(calls[1:]) == {1}
    assert any("called for one run at a time" in entry["status"] for entry in found["explored"])


def test_work_of_two_drivers_was_not_made_in_one_process() -> None:
    store = Memory()
    found = []
    for part in (200, 400):
        with Engine(1) as engine, engine.session(wrap(noisy), (PAIR,), 0, None) as session:
            engine.keep_in(store)
            session.counts(shards(Stage.CERTIFY, 0, part, 200), HitCounter(EVENT))
            found.append(session.one_process)
        store.next_driver()
    assert found == [True, False]


def test_work_before_and_after_a_lost_worker_was_not_made_in_one_process() -> None:
    """A generator seeded on import starts again in the new one: what certifies would be what was searched on."""

    class Losing(InProcess):
        def run(self, function: Any, tasks: list[Any], until: float = math.inf, then: Any = None) -> Any:
            yield from super().run(function, tasks[:1], until, then)
            if len(tasks) > 1:
                raise LostWorker

    store, found, work = Memory(), [], shards(Stage.CERTIFY, 0, 400, 200)
    pools = [Losing(), InProcess()]  # the second session takes everything from the store
    for _ in range(2):
        with Engine(1, task_runs=1) as engine, engine.session(wrap(noisy), (PAIR,), 0, None) as session:
            engine.keep_in(store)
            session.home_pool = lambda threads: pools.pop(0)  # type: ignore[method-assign]
            session.pool_names["sequential"] = None
            found.append((session.counts(work, HitCounter(EVENT)).tolist(), session.one_process))
        store.next_driver()
    assert found[0] == found[1]
    assert pools == []
    assert not found[0][1]


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_what_the_clock_took_off_is_taken_off_again(stopping: str) -> None:
    """Time goes on with every look at the clock, and faster from some look on; the second driver has all of it."""
    asked, store, looks = spec(at_once, stopping=stopping), Memory(), itertools.count()
    cut = audited(asked, store, Clock(180.0, lambda: float((k := next(looks)) + 5 * max(0, k - 40))))
    assert cut["evidence"]["runs_p"] + cut["evidence"]["runs_q"] in cut["milestones"]["ends"][:-1]
    assert any(entry["what"] == "time" for entry in cut["explored"])
    store.next_driver()
    assert audited(asked, store, Clock(1e9, lambda: 0.0)) == cut


def endless() -> int:
    while True:
        pass


def test_what_time_ended_here_is_ended_again_and_what_it_did_not_is_made_again() -> None:
    """Search computes in the driver: what was cut there decides the witness, so a second driver may not go on."""
    store = Memory()
    for limit_s, slow in ((0.2, endless), (1e6, lambda: 2)):
        end = time.monotonic() + limit_s
        with Engine(1) as engine, engine.session(wrap(noisy), (PAIR,), 1, None) as session:
            engine.keep_in(store)
            engine.limit = Limit(lambda end=end: end - time.monotonic())  # type: ignore[misc]
            assert session.thinking(lambda: 1) == 1
            with pytest.raises(OutOfTime):
                session.thinking(slow)
        store.next_driver()


@batched
def raising(data: int, runs: int, rng: Any) -> Any:
    if runs > 1 and (rng.random(runs) < 0.005).any():
        raise ValueError
    return data + rng.laplace(size=runs)


def test_an_audit_that_began_anew_run_by_run_is_taken_up() -> None:
    """With 6 runs a look of the probe, and a failure in one of 200, the search is the first to see one at this seed."""
    asked, store = spec(raising, runs=2_400, seed=3), Memory(after=12)
    plain = audited(asked)
    assert any("one run at a time" in entry["status"] for entry in plain["explored"])
    with pytest.raises(Killed):
        audited(asked, store)
    store.next_driver()
    assert audited(asked, store) == plain


def test_who_takes_an_audit_up_knows_that_an_accelerator_may_be_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    store, known = Memory(), []
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    for _ in range(2):
        with Engine(1) as engine:
            engine.keep_in(store)
            with engine.session(wrap(at_once), (PAIR,), 0, None) as session:
                session.probe(64)
                session.per_run = False
                known.append((session.accelerated, session.apart()))
        monkeypatch.delitem(sys.modules, "jax", raising=False)
        store.next_driver()
    assert known == [(True, False)] * 2


class Undecided(Memory):
    """Its driver is killed when it has the first calls that tell how many there are, and has not decided that."""

    def note(self, name: str, value: Any) -> None:
        if name == "first calls" and not self.driver:
            raise Killed
        super().note(name, value)


def test_first_calls_are_as_many_where_those_that_tell_it_were_stored() -> None:
    asked, store = spec(at_once, runs=MANY_FROM, shard_runs=1 << 18), Undecided()
    with pytest.raises(Killed):
        audited(asked, store)
    store.next_driver()
    (looked_at,) = [each for each in audited(asked, store)["explored"] if each["name"] == FIRST_CALLS]
    assert looked_at["runs"] >= FEWEST
    assert store.noted["first calls"] >= FEWEST
