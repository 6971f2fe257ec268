"""Fresh processes that begin beside other work come to what they would come to when they are asked for."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, InvalidSpec, batched
from dpaudit.auditing.other_witnesses import _fitting
from dpaudit.execution.engine import Engine, Session
from dpaudit.mechanisms import wrap
from dpaudit.processes.tasks import FreshTask
from dpaudit.running.streams import Shard, Stage, shards
from tests.execution.test_engine import OnlyHere, noisy

pytestmark = pytest.mark.long

WORK = [FreshTask(Shard(Stage.FRESH, 0, k, 1), (bool(k % 2),)) for k in range(6)]
CALLS: list[int] = []


def counting(data: float, rng: np.random.Generator) -> Any:
    """How often it was called in this process, and which process that is."""
    CALLS.append(1)
    return (data, rng.random(), len(CALLS), os.getpid())


def many(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=runs)


def hangs(data: float, rng: np.random.Generator) -> None:
    time.sleep(600.0)


def session_of(engine: Engine, mechanism: Any) -> Session:
    return engine.session(wrap(mechanism), (AdjacentPair(0.0, 1.0),), 5, None)


def columns(outputs: list[Any]) -> list[list[float]]:
    return [[float(each.column((place,)).values[0]) for each in outputs] for place in range(4)]


def test_what_is_begun_comes_to_the_same_and_workers_keep_the_first_processes() -> None:
    with Engine(1) as engine, session_of(engine, counting) as session:
        expected = columns(session.fresh(WORK))
    with Engine(2) as engine, session_of(engine, counting) as session:
        engine.workers.start(60.0)
        session.begin_fresh(WORK, 2, lambda cpu_s: 4)  # the last two are made when they are asked for
        data, draws, calls, processes = columns(session.fresh(WORK))
        session.run_s = 1.0
        pilot = session.pilot(shards(Stage.SEARCH, 0, 40, 2))
    assert [data, draws, calls] == expected[:3]
    assert calls == [1.0] * 6  # each process had run nothing before
    assert len(set(processes)) == 6
    later = {float(each) for each in pilot.both.column((3,)).values}
    assert later == set(processes[:2])


@pytest.mark.parametrize("mechanism", [counting, batched(many)])
def test_workers_open_the_mechanism_where_no_fresh_process_will_be_asked_for(mechanism: Any) -> None:
    with Engine(2) as engine, session_of(engine, mechanism) as session:
        session.begin_fresh([], 2, lambda cpu_s: 0)  # none was started
        engine.workers.start(60.0)
        session.begin_fresh([], 2, lambda cpu_s: 0)
        session.begun_fresh([Shard(Stage.FRESH, 0, 0, 0)])
        assert (engine.workers.unused, session.pool_names) == (0, {})
        assert engine.workers._processes.opened(session.job)
        session.run_s = 0.01  # less than a second of work is shared now
        session.pilot(shards(Stage.SEARCH, 0, 40, 10))
        assert list(session.pool_names) == ["processes"]


def test_what_cannot_be_made_is_told_to_whoever_asks_and_what_nobody_asks_for_is_let_go() -> None:
    with Engine(2) as engine, session_of(engine, OnlyHere(noisy)) as session:
        session.begin_fresh(WORK, 2, lambda cpu_s: 6)
        with pytest.raises(InvalidSpec, match="not here"):
            session.fresh(WORK)
    began = time.monotonic()
    with Engine(2) as engine:
        with session_of(engine, hangs) as session:
            engine.workers.start(60.0)
            session.begin_fresh(WORK, 2, lambda cpu_s: 6)
        with session_of(engine, counting) as session:  # no other mechanism waits for it
            session.run_s = 1.0
            assert session.pilot(shards(Stage.SEARCH, 0, 40, 10)).runs == 40
            assert len(session.fresh(WORK)) == 6
    assert time.monotonic() - began < 60.0


OWN = np.random.default_rng(3)


def with_own_noise(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + OWN.laplace(size=runs)


def test_processes_to_which_no_work_will_go_are_not_started() -> None:
    """Each of them would open the mechanism, on an accelerator too."""
    for mechanism, started in ((counting, 2), (batched(many), 2), (batched(with_own_noise), 0)):
        with Engine(2) as engine, session_of(engine, mechanism) as session:
            session.per_run = mechanism is counting
            session.probe(40)
            session.start_workers(60.0)
            assert engine.workers.unused == started


def test_fewer_first_calls_where_a_process_is_slow_to_begin_by_its_cpu_alone() -> None:
    counts = {cpu_s: _fitting(32, cpu_s) for cpu_s in (0.0, 0.02, 0.125, 0.2, 0.5, 5.0, 5.1)}
    assert counts == {0.0: 32, 0.02: 32, 0.125: 32, 0.2: 20, 0.5: 8, 5.0: 8, 5.1: 0}
