"""The engine: the answer depends on spec and seed alone, every run is counted once, and memory stays flat."""

from __future__ import annotations

import inspect
import json
import os
import sys
import tracemalloc
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, PureDP, UnsoundAudit, batched
from dpaudit.auditing import plan, probing, run_audit
from dpaudit.auditing.question import Plan
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine, Session
from dpaudit.mechanisms import wrap
from dpaudit.mechanisms.protocol import ADAPTED
from dpaudit.outputs.canonical import token
from dpaudit.processes.frames import Done
from dpaudit.running.streams import Stage, shards
from tests.cases import NIGHTLY, for_each

OWN = np.random.default_rng(3)


def noisy(data: float, rng: np.random.Generator) -> float:
    return data + rng.laplace()


def many(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=(runs, 2))


def few_values(data: float, rng: np.random.Generator) -> Any:
    """Near the number of different outputs at which counting them first begins to pay."""
    return (int(rng.integers(45)) + int(data), "abc"[int(rng.integers(3))])


def mixed(data: float, rng: np.random.Generator) -> Any:
    draw = rng.random()
    if draw < 0.2:
        raise ValueError(data)
    if draw < 0.4:
        return {"a": rng.laplace() + data, draw > 0.3: [1] * int(4 * draw)}
    return None if draw < 0.5 else (draw > 0.7, np.array([data, draw]))


def echo(data: Any, rng: np.random.Generator) -> Any:
    return data


WAYS: list[dict[str, Any]] = [
    {"n_jobs": 2, "backend": "threading", "task_runs": 300},
    {"n_jobs": 2, "backend": "loky", "task_runs": 300},
    {"n_jobs": 1, "supervised": True},
    {"n_jobs": 1, "task_runs": 1},
    {"n_jobs": 1, "backend": "sequential", "task_runs": 700},
    {"n_jobs": 2, "supervised": True, "backend": "threading", "task_runs": 500},
    {"n_jobs": 16, "backend": "loky", "task_runs": 50},
]
CASES = {  # mechanism, steps of the pairs that are screened, and runs; and the ways that are tried by day
    "several pairs": ((noisy, (1, 2, 3), 1_200), WAYS[1:2]),
    "batched": ((batched(many), (1,), 2_000), WAYS[:1]),
    "outputs of many kinds": ((mixed, (1,), 1_000), WAYS[2:4]),
}


def answer(mechanism: Any, steps: tuple[int, ...], runs: int, seed: int = 11, **way: Any) -> dict[str, Any]:
    pairs = tuple(AdjacentPair(0, step, f"step {step}") for step in steps)
    claim, wrapped = PureDP(0.5), wrap(mechanism)
    spec = AuditSpec(claim=claim, mechanism=wrapped, pairs=pairs, runs=runs, seed=seed, shard_runs=256)
    with Engine(**way) as engine:
        found = run_audit(spec, engine).to_dict()
    found.pop("provenance")
    return found


@pytest.mark.long
@for_each("case", CASES)
def test_equal_specs_have_equal_answers_and_other_seeds_have_others(case: str) -> None:
    """Byte by byte, for every number of workers, backend and grouping.

    The counts of two seeds agree by chance with probability about 1e-3; all of four with 1e-9.
    """
    asked, ways = CASES[case]
    expected = answer(*asked, n_jobs=1)
    for way in WAYS if NIGHTLY else ways:
        assert json.dumps(answer(*asked, **way)) == json.dumps(expected), way
    if case == "several pairs":
        assert len({str(answer(noisy, (1,), 400, seed, n_jobs=1)["evidence"]) for seed in range(4)}) > 1


# --- every run once, on the side its coin chose -------------------------------------------------------------------


def counts_of_sides(mechanism: Any, runs: int, shard_runs: int, seed: int) -> list[int]:
    """Of a mechanism that returns its dataset: hits of the first one, and runs of both."""
    event = Event(Coordinate(()), tokens=(token("text", "first"),))
    pair = AdjacentPair("first", "second")
    with Engine(1) as engine, engine.session(wrap(mechanism), (pair,), seed, None) as session:
        return list(session.counts(shards(Stage.CERTIFY, 0, runs, shard_runs), HitCounter(event)).tolist())


@for_each("mechanism", [echo, batched(lambda data, runs, rng: [data] * runs)])
@for_each("runs", [1, 7, 8, 4_095, 4_097, 10_001])
def test_outputs_belong_to_their_side(mechanism: Any, runs: int) -> None:
    hits_first, first, hits_second, second = counts_of_sides(mechanism, runs, 1_000, 5)
    assert (hits_first, hits_second, first + second) == (first, 0, runs)


@for_each(("shard_runs", "both"), [(1 << 18, 1 << 14), (1 << 20, 1 << 16), (1 << 22, 1 << 17)])
def test_calls_are_larger_in_the_largest_shards(shard_runs: int, both: int) -> None:
    """And outputs belong to their side, counted by a host too, which is told how large they are."""
    sizes: list[int] = []

    def sized(data: float, runs: int, rng: np.random.Generator) -> Any:
        sizes.append(runs)
        return np.full(runs, data)

    found = []
    for way in ({}, {"isolation": "process"}):
        with (
            Engine(1, **way) as engine,
            engine.session(wrap(batched(sized)), (AdjacentPair(0.0, 1.0),), 5, None) as each,
        ):
            event = Event(Coordinate(()), intervals=((0.5, np.inf),))
            found.append(each.counts(shards(Stage.CERTIFY, 0, shard_runs, shard_runs), HitCounter(event)).tolist())
    hits_first, first, hits_second, second = found[0]
    assert (hits_first, hits_second, first + second) == (0, second, shard_runs)
    assert {sum(pair) for pair in zip(sizes[::2], sizes[1::2], strict=True)} == {both}
    assert found[1] == found[0]


@for_each("mechanism", [echo, batched(lambda data, runs, rng: np.full(runs, data))])
def test_sides_are_fair(mechanism: Any) -> None:
    """100,000 coins, five standard deviations: chance 6e-7."""
    assert abs(counts_of_sides(mechanism, 100_000, 4_000, 6)[1] - 50_000) < 5 * 158.2


@pytest.mark.long
def test_a_pilot_keeps_the_order_of_the_grid() -> None:
    """Rows stand in the order of the runs, whatever worker made them and whatever it had seen before."""
    found = []
    for way in ({"n_jobs": 1}, {"n_jobs": 2, "backend": "loky", "task_runs": 256}):
        with Engine(**way) as engine, engine.session(wrap(few_values), (AdjacentPair(0, 1),), 5, None) as session:
            session.probe(64)
            pilot = session.pilot(shards(Stage.SEARCH, 0, 2_000, 256))
            found.append((pilot.first.column((0,)).values.tolist(), pilot.second.column((0,)).values.tolist()))
    assert found[0] == found[1]


# --- memory ----------------------------------------------------------------------------------------------------


@pytest.mark.long
@for_each("mechanism, scale", [(noisy, 1), (few_values, 1), (batched(many), 10)])
def test_memory_is_flat(mechanism: Any, scale: int) -> None:
    """Four times the runs of a certification hold at most a few kilobytes more."""
    event = Event(Coordinate((0,)), intervals=((0.5, np.inf),))
    peaks = []
    with Engine(1) as engine, engine.session(wrap(mechanism), (AdjacentPair(0, 1),), 5, None) as session:
        session.counts(shards(Stage.CERTIFY, 0, 2_000 * scale, 1_024), HitCounter(event))  # what is loaded once
        for runs in (4_000 * scale, 16_000 * scale):
            tracemalloc.start()
            session.counts(shards(Stage.CERTIFY, 0, runs, 1_024), HitCounter(event))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 75_000, peaks  # outputs that are held would be megabytes


# --- what the engine refuses ------------------------------------------------------------------------------------


def test_a_number_of_workers_is_a_whole_number_and_a_backend_is_registered() -> None:
    for n_jobs in (0, 1.5, True, "2"):
        with pytest.raises(InvalidSpec, match="n_jobs"):
            Engine(n_jobs)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match=r"registered joblib backend.*loky.*'nope'"):
        Engine(1, "nope")


def test_a_lost_shard_is_no_verdict() -> None:
    """Were runs lost on the way, the counts would say so."""

    class Losing(Session):
        def _run(self, work: Any, reducer: Any) -> Any:
            results = list(super()._run(work, reducer))
            yield from results[: -(work[0].stage is Stage.CERTIFY) or None]

    spec = AuditSpec(claim=PureDP(0.5), mechanism=wrap(noisy), pairs=(AdjacentPair(0, 1),), runs=5_000)
    with Engine(1) as engine:
        engine.session = lambda *arguments: Losing(engine, *arguments)  # type: ignore[method-assign]
        with pytest.raises(UnsoundAudit, match="came back"):
            run_audit(spec, engine)


def test_large_datasets_are_looked_at_after_longer_tasks() -> None:
    with Engine(n_jobs=1) as engine, engine.session(wrap(noisy), (AdjacentPair(1.0, 0.0),), 0, None) as session:
        found = {}
        for check_s in (0.0, 0.001, 0.1, 60.0):
            shard = shards(Stage.SEARCH, 0, 1_000, 1_000)[0]
            session.learn(Done(((shard, None),), 0.001, check_s=check_s), shard.runs, outside=False)
            found[check_s] = engine.workers.task_runs(10**9, session.run_s, session.check_s, shared=False)
        assert engine.workers.task_runs(400, session.run_s, 0.0, shared=True) == 100
    assert found == {0.0: 150_000, 0.001: 150_000, 0.1: 2_000_000, 60.0: 10_000_000}


def seeded_by_itself(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + OWN.laplace(size=runs)


def of_jax(data: float, runs: int, rng: np.random.Generator) -> Any:
    sys.modules.setdefault("jax", ModuleType("jax"))  # in the process of the mechanism
    return data + rng.laplace(size=runs)


class OnlyHere:
    """It can be sent to another process, and not be opened there."""

    def __init__(self, function: Any, process: int = 0) -> None:
        if process not in (0, os.getpid()):
            raise OSError("not here")
        self.function, self.__signature__ = function, inspect.signature(function)

    def __call__(self, *given: Any) -> Any:
        return self.function(*given)

    def __reduce__(self) -> Any:
        return OnlyHere, (self.function, os.getpid())


def telling_where(data: float, runs: int, rng: np.random.Generator) -> Any:
    return np.stack([np.full(runs, os.getpid()), data + rng.laplace(size=runs)], axis=1)


def where_it_runs(mechanism: Any, **way: Any) -> tuple[list[str], set[float]]:
    """The pools of work of some seconds, and the processes that outputs tell."""
    with Engine(2, **way) as engine, engine.session(wrap(mechanism), (AdjacentPair(0, 1),), 5, None) as session:
        probing.probe(plan_of(mechanism), session)
        session.run_s = 1.0
        pilot = session.pilot(shards(Stage.SEARCH, 0, 40, 10))
        return list(session.pool_names), set(pilot.both.columns[min(pilot.both.columns, key=len)].values.tolist())


def plan_of(mechanism: Any) -> Plan:
    return AuditSpec(claim=PureDP(0.5), mechanism=wrap(mechanism), pairs=(AdjacentPair(0, 1),), runs=2_000).resolved()


@pytest.mark.long
def test_batched_runs_are_shared_by_processes_where_these_have_noise_of_their_own() -> None:
    """A generator of the mechanism's own would be the same in each of them; what opens here alone stays here."""
    assert where_it_runs(batched(many))[0] == ["processes"]
    assert where_it_runs(batched(seeded_by_itself))[0] == ["threading"]
    assert where_it_runs(batched(many), backend="threading")[0] == ["threading"]
    assert where_it_runs(batched(of_jax), supervised=True, isolation="none")[0] == ["threading"]
    names, processes = where_it_runs(batched(OnlyHere(telling_where)))
    assert (names, processes) == (["threading"], {float(os.getpid())})


GRIDS = {  # runs: the size of shards of a mechanism that is called run by run, and of a batched one
    1_000: (256, 256),
    20_000: (256, 256),
    10**6: (1 << 13, 1 << 13),
    10**7: (1 << 17, 1 << 17),
    10**7 + 1: (1 << 15, 1 << 17),
    10**8: (1 << 15, 1 << 18),
    10**9: (61_440, 1 << 18),
    2**31 - 1: (1 << 17, 1 << 18),
    5 * 10**9: (307_200, 10 << 15),
    10**10: (614_400, 19 << 15),
    10**12: (61_038_592, 1_863 << 15),
}


def test_10_000_workers_have_shards_and_a_driver_holds_them_with_ease() -> None:
    """Up to ten million runs the sizes are those that stored results and their repetitions have."""
    spec = AuditSpec(claim=PureDP(0.5), mechanism=wrap(noisy), pairs=(AdjacentPair(1.0, 0.0),))
    both = [spec, replace(spec, mechanism=batched(many))]
    sizes = {runs: tuple(replace(each, runs=runs).resolved().shard_runs for each in both) for runs in GRIDS}
    assert sizes == GRIDS
    for runs, (run_by_run, in_batches) in sizes.items():
        assert max(runs / run_by_run, runs / in_batches) <= 1 << 14
        for size, some in ((run_by_run, 45 * 10**7), (in_batches, 5 * 10**9)):
            assert runs < some or 0.75 * runs / size > 10_000  # that certify
    assert {size % 8 for each in sizes.values() for size in each} == {0}
    for kind, size in ((f"{ADAPTED}opendp", 1 << 15), ("command", 1 << 18), ("built in the worker", 1 << 18)):
        assert plan(replace(spec, runs=10**8), replace(wrap(noisy).describe(), kind=kind)).shard_runs == size


def records(data: float, rng: np.random.Generator) -> Any:
    drawn = float(rng.laplace())
    return {
        "a": drawn,
        "b": [data, None, "no" if drawn > 0.0 else b"yes"],
        "c": (int(drawn), drawn > 0.0, float("nan")),
    }


def narrow(data: float, runs: int, rng: np.random.Generator) -> Any:
    return rng.laplace(size=(runs, 3)).astype(np.float32), rng.integers(9, size=runs) > 4


def test_the_likeness_of_first_runs_is_the_same_wherever_they_are_made() -> None:
    """Else a worker of others, who counts in its own process, would be told as one with other outputs."""
    for mechanism in (
        wrap(noisy),
        wrap(few_values),
        wrap(mixed),
        wrap(records),
        wrap(batched(many)),
        wrap(batched(narrow)),
    ):
        found = set()
        for way in ({}, {"supervised": True}, {"supervised": True, "isolation": "none"}, {"isolation": "process"}):
            with Engine(1, **way) as engine, engine.session(mechanism, (AdjacentPair(10.0, 9.0),), 3, None) as session:
                session.probe(256)
                found.add(session.sentinel)
        ((_, likeness),) = found
        assert likeness, mechanism
