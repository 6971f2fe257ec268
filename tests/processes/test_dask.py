"""Workers of a dask cluster: the same counts as from one process, though one of them is killed half-way."""

from __future__ import annotations

import os
import signal
import time
import warnings
from typing import Any

import pytest

from dpaudit import AdjacentPair
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.running.progress import Progress
from dpaudit.running.streams import Stage, shards

pytestmark = pytest.mark.long

PAIR = AdjacentPair(10, 9)
COUNTER = HitCounter(Event(Coordinate(), intervals=((9.5, float("inf")),)))
WORK = shards(Stage.CERTIFY, 0, 1_000, 50)


def noisy(data: int, rng: Any) -> Any:
    time.sleep(0.0005)
    return data + rng.laplace()


class Killer(Progress):
    """Kills one worker when the first counts have come."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.killed = 0

    def advance(self, runs: int, seconds: float = 0.0, *, stored: bool = False) -> None:
        if self.engine is not None and not self.killed:
            pool: Any = self.engine.workers.cluster
            self.killed = min(pool.link._client.run(os.getpid).values())
            os.kill(self.killed, signal.SIGKILL)


def test_a_killed_worker_costs_nothing() -> None:
    with Engine(1) as alone, alone.session(wrap(noisy), (PAIR,), 3, None) as session:
        expected = session.shard_counts(WORK, COUNTER)
    killer = Killer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what other people's event loops leave open
        with Engine(2, "dask", task_runs=100, progress=killer) as engine:
            killer.engine = engine
            with engine.session(wrap(noisy), (PAIR,), 3, None) as session:
                found = session.shard_counts(WORK, COUNTER)
                assert list(session.pool_names) == ["dask"]
                assert not session.one_process
    assert killer.killed
    assert killer.killed != os.getpid()
    assert {shard: counts.tolist() for shard, counts in found.items()} == {
        shard: counts.tolist() for shard, counts in expected.items()
    }
