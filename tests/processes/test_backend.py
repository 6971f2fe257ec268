"""Our processes as `joblib.Parallel` drives them: what a call promises that ends early, loses a worker, or grows."""

from __future__ import annotations

import os
import pickle
import signal
import time
from typing import Any

import joblib
import pytest

from dpaudit.errors import OutOfTime
from dpaudit.execution.engine import Engine
from dpaudit.processes.pools import LostWorker, Processes
from tests.processes import left

pytestmark = pytest.mark.long


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


def test_work_is_ended_at_a_time_and_the_pool_goes_on() -> None:
    """What was done before is told; what was at work, which would take minutes, has ended."""
    pool = Processes(1)
    ((first),) = pool.run(sleeps, [(0.0, "starts")])
    work = pool.run(sleeps, [(0.0, "done"), (600.0, "late")], time.monotonic() + 2.0)
    assert next(work)["who"] == "done"
    with pytest.raises(OutOfTime):
        next(work)
    assert left.gone(int(first["process"]))
    assert [each["who"] for each in pool.run(sleeps, [(0.0, "again")])] == ["again"]
    pool.close()


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


def test_a_lost_worker_takes_none_of_the_others_along_and_no_other_task_is_begun(pool: Processes) -> None:
    """Joblib has taken some ahead by then, and there is a host less than threads; the pool goes on."""
    came: list[Any] = []
    with pytest.raises(LostWorker):
        came.extend(pool.run(dies, [(each,) for each in ("a", "dies", *map(str, range(20)))]))
    assert "a" in [each["who"] for each in came]
    assert len(came) < 12  # of 21 others, on a machine however busy
    assert [each["who"] for each in pool.run(dies, [("again",)])] == ["again"]


def test_tasks_that_a_result_adds_are_run_before_a_worker_rests(pool: Processes) -> None:
    for made in (pool, Processes(1)):
        tasks: list[Any] = [(0.0, "3"), (0.0, "1")]

        def then(result: Any, tasks: list[Any] = tasks) -> Any:
            if result["who"] != "0":
                tasks.insert(0, (0.0, str(int(result["who"]) - 1)))
            return result["who"]

        assert sorted(made.run(sleeps, tasks, then=then)) == ["0", "0", "1", "1", "2", "3"]
        made.close()


def test_nothing_that_a_process_sends_is_unpickled_here(pool: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    list(pool.run(sleeps, [(0.0, "starts"), (0.0, "both")]))

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("unpickled in the driver")

    monkeypatch.setattr(pickle, "loads", refused)
    monkeypatch.setattr(pickle, "load", refused)
    assert len(list(pool.run(sleeps, [(0.0, str(number)) for number in range(6)]))) == 6


def workers(*given: Any) -> tuple[int, str | None]:
    with Engine(*given) as engine:
        return engine.n_jobs, engine.backend


def test_what_is_not_said_is_as_joblib_is_configured() -> None:
    assert workers() == (os.cpu_count(), None)
    with joblib.parallel_config(n_jobs=3):
        assert (workers(), workers(1)) == ((3, None), (1, None))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert (workers(), workers(1, "sequential")) == ((2, "threading"), (1, "sequential"))
    for backend in ("loky", "dpaudit"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert workers() == (2, None)
