"""Fresh processes: each has run nothing before, and what it cannot answer is no verdict."""

from __future__ import annotations

import os
import pickle
import random
import sys
import time
from pathlib import Path
from types import CodeType
from typing import Any

import cloudpickle
import numpy as np
import pytest

from dpaudit import AdjacentPair, InvalidSpec, UnsoundAudit, audit, batched
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.outputs.canonical import TYPE, token
from dpaudit.processes.pools import pickled
from dpaudit.processes.tasks import FreshTask
from dpaudit.running.progress import Progress
from dpaudit.running.streams import Shard, Stage

pytestmark = pytest.mark.long

CALLS: list[int] = []
LOADED = "joblib" in sys.modules  # which hashes datasets, as this module was imported
PAIR = (AdjacentPair(10.0, 20.0),)


def counting(data: float, rng: np.random.Generator) -> Any:
    """How often this module's function was called in this process, and which process it is."""
    CALLS.append(1)
    return (len(CALLS), os.getpid(), data, rng.random())


def of_numpy(data: float) -> Any:
    return float(np.random.random())


def many(data: float, runs: int, rng: np.random.Generator) -> Any:
    return np.full((runs, 2), [data, runs])


def ends(data: float, rng: Any) -> Any:
    os._exit(3)


def hangs(data: float, rng: Any) -> Any:
    time.sleep(60.0)


def raises(data: float, rng: Any) -> Any:
    print("noise on standard output")
    raise ValueError


def ends_first(marker: str) -> float:
    if os.path.exists(marker):
        os.unlink(marker)
        os._exit(3)
    return 1.0


def of_type(data: float) -> Any:
    return np.float64(data)


def hashing_was_loaded(data: Any) -> bool:
    return LOADED


def task(index: int, *sides: int) -> FreshTask:
    return FreshTask(Shard(Stage.FRESH, 0, index, len(sides)), tuple(bool(side) for side in sides))


def made(mechanism: Any, work: list[FreshTask], *, run_timeout_s: float | None = None, **way: Any) -> list[Any]:
    with Engine(**{"n_jobs": 2, **way}) as engine:
        _, pairs = engine.describe(wrap(mechanism), PAIR)
        with engine.session(wrap(mechanism), pairs, 5, run_timeout_s) as session:
            return session.fresh(work)


@pytest.mark.parametrize("supervised", [False, True])
def test_each_task_has_a_process_of_its_own(supervised: bool) -> None:
    CALLS.extend([1] * 7)
    found = made(counting, [task(k, k % 2, 1) for k in range(5)], supervised=supervised)
    assert [outputs.column((0,)).values.tolist() for outputs in found] == [[1.0, 2.0]] * 5
    processes = {outputs.column((1,)).values[0] for outputs in found}
    assert len(processes) == 5
    assert os.getpid() not in processes
    assert [outputs.column((2,)).values.tolist() for outputs in found] == [
        [20.0 if k % 2 else 10.0, 20.0] for k in range(5)
    ]


class Heard(Progress):
    runs = 0

    def advance(self, runs: int, *, stored: bool = False) -> None:
        self.runs += runs


def parent(data: float) -> Any:
    return float(os.getppid())


def test_many_processes_have_an_interpreter_for_each_worker_and_are_told_as_they_end() -> None:
    heard = Heard()
    found = made(parent, [task(k, 0) for k in range(24)], n_jobs=3, progress=heard)
    assert len({float(outputs.column(()).values[0]) for outputs in found}) == 3
    assert heard.runs == 24


def test_what_every_process_needs_is_loaded_before_the_fork() -> None:
    (found,) = made(hashing_was_loaded, [task(0, 0)])
    assert found.column(()).values.tolist() == [1.0]


def test_the_rng_is_that_of_the_shard() -> None:
    work = [task(0, 0), task(0, 1), task(1, 0)]
    draws = [float(outputs.column((3,)).values[0]) for outputs in made(counting, work, n_jobs=1)]
    assert draws[0] == draws[1] != draws[2]
    assert draws[0] == float(work[0].shard.streams(5)[1].random())


def test_numpy_is_as_after_an_import() -> None:
    """Forks of one interpreter do not share numpy's global state."""
    found = [float(outputs.column(()).values[0]) for outputs in made(of_numpy, [task(k, 0) for k in range(6)])]
    assert len(set(found)) == 6


def test_a_batched_mechanism_is_called_for_each_stretch_of_a_side() -> None:
    (found,) = made(batched(many), [task(0, 0, 0, 1, 1, 1, 0)])
    assert found.column((0,)).values.tolist() == [10.0, 10.0, 20.0, 20.0, 20.0, 10.0]
    assert found.column((1,)).values.tolist() == [2.0, 2.0, 3.0, 3.0, 3.0, 1.0]


def test_what_a_run_raises_or_prints_is_as_anywhere() -> None:
    (found,) = made(raises, [task(0, 0)])
    assert found.column(()).tokens.tolist() == [token("raised", "ValueError").code]


def test_a_lost_process_is_no_verdict() -> None:
    with pytest.raises(UnsoundAudit, match="fresh process ended twice"):
        made(ends, [task(0, 0), task(1, 1)])


def test_a_hang_is_an_output_like_any_other() -> None:
    (found,) = made(hangs, [task(0, 0)], run_timeout_s=0.05)
    assert found.column(()).tokens.tolist() == [token("timed out").code]


def test_a_lost_process_is_run_once_more(tmp_path: Path) -> None:
    (tmp_path / "first").touch()
    (found,) = made(lambda data: ends_first(str(tmp_path / "first")), [task(0, 0)])
    assert found.column(()).values.tolist() == [1.0]


def test_types_of_outputs_are_there() -> None:
    """As an event on types finds them, whatever the quick ways leave out."""
    (found,) = made(of_type, [task(0, 0)])
    assert found.column((TYPE,)).tokens.tolist() == [token("type", "numpy.float64").code]


class _SystemNoise:
    """A mechanism of a library that draws from the system, whose source of randomness has no state to send."""

    def __init__(self) -> None:
        self._rng = random.SystemRandom()

    def randomise(self, value: int) -> float:
        return self._rng.random()


class _Unsendable:
    def __call__(self, value: int) -> int:
        return value

    def __reduce__(self) -> Any:
        raise NotImplementedError("no state")


def test_whatever_cannot_be_sent_is_told_in_a_line_and_the_systems_randomness_is_sent() -> None:
    """Its outputs say nothing of the data: a false alarm at epsilon 3, or of a check, has a chance below 1.1e-6."""
    result = audit(_SystemNoise().randomise, pair=(0, 1), epsilon=3.0, runs=1_600, confidence=1 - 1e-7, n_jobs=1)
    assert (result.verdict.value, result.reproducible) == ("NOT_REFUTED", False)
    with pytest.raises(InvalidSpec, match=r"cannot be sent to workers \(no state\); build it there"):
        pickled(_Unsendable())
    with pytest.raises(InvalidSpec, match=r"a dataset must be picklable, got _Unsendable \(no state\)"):
        AdjacentPair(_Unsendable(), 1)


@pytest.mark.parametrize("newer", [False, True])
def test_code_that_travels_keeps_the_name_of_its_file(monkeypatch: pytest.MonkeyPatch, newer: bool) -> None:
    """Functions within functions too, by a cloudpickle that leaves it out, as 3.1.3 does: errors are told by it."""
    known = cloudpickle.Pickler.dispatch_table
    reduced = known[CodeType]
    if newer:
        nameless = lambda code: reduced(code.replace(co_filename="<dynamic-code>"))  # noqa: E731
        monkeypatch.setitem(known, CodeType, nameless)
        assert pickle.loads(cloudpickle.dumps(lambda: None)).__code__.co_filename == "<dynamic-code>"

    def outer() -> Any:
        return lambda: None

    sent = pickle.loads(pickled(outer))
    assert sent.__code__ is not outer.__code__
    assert {sent.__code__.co_filename, sent().__code__.co_filename} == {outer.__code__.co_filename}
