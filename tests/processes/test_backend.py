"""Our processes as `joblib.Parallel` drives them: what a call promises that ends early, loses a worker, or grows."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from dpaudit.errors import OutOfTime
from dpaudit.execution.engine import Engine
from dpaudit.processes.pools import LostWorker, Processes
from tests.processes import left

CONTEXTS = """
import joblib
from dpaudit.execution.engine import Engine

def shown(*given):
    with Engine(*given) as engine:
        return engine.n_jobs, engine.backend

with joblib.parallel_config(n_jobs=3):
    print(shown(), shown(1))
with joblib.parallel_config(backend="threading", n_jobs=2):
    print(shown(), shown(1, "sequential"))
with joblib.parallel_config(backend="loky", n_jobs=2):
    print(shown())
import dpaudit.processes.backend
with joblib.parallel_config(backend="dpaudit", n_jobs=4):
    print(shown())
"""


def sleeps(seconds: float, who: str) -> dict[str, str]:
    time.sleep(seconds)
    return {"who": who, "process": str(os.getpid())}


def dies(who: str) -> dict[str, str]:
    if who == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    return {"who": who}


@pytest.fixture
def pool() -> Any:
    made = Processes(2)
    yield made
    made.close()


@pytest.mark.long
def test_a_deadline_ends_processes_in_the_midst_of_a_task(pool: Processes) -> None:
    """The one that is done comes back; the others would take a minute."""
    began = time.monotonic()
    came: list[Any] = []
    with pytest.raises(OutOfTime):
        came.extend(pool.run(sleeps, [(0.0, "first"), (60.0, "a"), (60.0, "b")], began + 3.0))
    assert time.monotonic() - began < 30.0


@pytest.mark.long
def test_a_call_that_nobody_reads_to_its_end_ends_what_is_under_way(
    pool: Processes, recwarn: pytest.WarningsRecorder
) -> None:
    list(pool.run(sleeps, [(0.0, "starts"), (0.0, "both")]))
    stream = pool.run(sleeps, [(0.0, "first"), (60.0, "second"), (60.0, "third")])
    began = time.monotonic()
    assert next(stream)["who"] == "first"
    stream.close()
    assert time.monotonic() - began < 30.0
    assert [str(each.message) for each in recwarn] == []  # joblib would warn of what was not read
    assert sorted(each["who"] for each in pool.run(sleeps, [(0.0, "a"), (0.0, "b")])) == ["a", "b"]


@pytest.mark.long
def test_a_lost_worker_takes_none_of_the_others_along(pool: Processes) -> None:
    came: list[Any] = []
    with pytest.raises(LostWorker):
        came.extend(pool.run(dies, [("a",), ("dies",)]))
    assert [each["who"] for each in came] == ["a"]
    assert [each["who"] for each in pool.run(dies, [("again",)])] == ["again"]


@pytest.mark.long
def test_after_a_loss_no_other_task_is_begun_and_none_fails_otherwise(pool: Processes) -> None:
    """Joblib has taken some ahead by then, and there is a host less than threads."""
    came: list[Any] = []
    names = ["a", "b", "dies", *map(str, range(20))]
    with pytest.raises(LostWorker):
        came.extend(pool.run(dies, [(each,) for each in names]))
    assert len(came) < 12  # of 22 others, on a machine however busy


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_that_a_result_adds_are_run_before_a_worker_rests(workers: int) -> None:
    made = Processes(workers)
    tasks: list[Any] = [(0.0, "3"), (0.0, "1")]

    def then(result: Any) -> Any:
        if result["who"] != "0":
            tasks.insert(0, (0.0, str(int(result["who"]) - 1)))
        return result["who"]

    try:
        assert sorted(made.run(sleeps, tasks, then=then)) == ["0", "0", "1", "1", "2", "3"]
    finally:
        made.close()


@pytest.mark.long
def test_nothing_that_a_process_sends_is_unpickled_here(pool: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    list(pool.run(sleeps, [(0.0, "starts"), (0.0, "both")]))

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("unpickled in the driver")

    monkeypatch.setattr(pickle, "loads", refused)
    monkeypatch.setattr(pickle, "load", refused)
    assert len(list(pool.run(sleeps, [(0.0, str(number)) for number in range(6)]))) == 6


@pytest.mark.long
def test_what_is_not_said_is_as_joblib_is_configured() -> None:
    ended = subprocess.run([sys.executable, "-c", CONTEXTS], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == [
        "(3, None) (1, None)",
        "(2, 'threading') (1, 'sequential')",
        "(2, None)",
        "(4, None)",
    ]


def test_without_a_configuration_all_processors_work() -> None:
    with Engine() as engine:
        assert (engine.n_jobs, engine.backend) == (os.cpu_count(), None)


@pytest.mark.long
def test_no_process_is_left_when_a_pool_closes() -> None:
    made = Processes(2)
    ids = {int(each["process"]) for each in made.run(sleeps, [(0.3, "a"), (0.3, "b")])}
    made.close()
    assert len(ids) == 2
    assert all(left.gone(each) for each in ids)
