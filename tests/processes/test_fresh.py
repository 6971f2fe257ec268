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
from tests.cases import for_each

pytestmark = pytest.mark.long

CALLS: list[int] = []
LOADED = "joblib" in sys.modules  # which hashes datasets, as this module was imported
PAIR = (AdjacentPair(10.0, 20.0),)


def counting(data: float, rng: np.random.Generator) -> Any:
    """How often this module's function was called in this process, and which process it is."""
    CALLS.append(1)
    return (len(CALLS), os.getpid(), data, rng.random())


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
def test_each_task_has_a_process_of_its_own_and_the_rng_of_its_shard(supervised: bool) -> None:
    CALLS.extend([1] * 7)
    work = [task(k, k % 2, 1) for k in range(2)]
    found = made(counting, work, supervised=supervised)
    columns = (each.numbers([(place,) for place in range(4)]).tolist() for each in found)
    calls, processes, data, draws = zip(*columns, strict=True)
    assert list(calls) == [[1.0, 2.0]] * 2
    assert len({float(os.getpid()), *(each for both in processes for each in both)}) == 3
    assert list(data) == [[10.0, 20.0], [20.0, 20.0]]
    assert [each[0] for each in draws] == [float(each.shard.streams(5)[1].random()) for each in work]


class Heard(Progress):
    runs = 0

    def advance(self, runs: int, seconds: float = 0.0, *, stored: bool = False) -> None:
        self.runs += runs


def parent(data: float) -> Any:
    """And a number of numpy's global state, which forks of one interpreter do not share: it is as after an import."""
    return float(os.getppid()), float(np.random.random())


def test_many_processes_have_an_interpreter_for_each_worker_and_are_told_as_they_end() -> None:
    heard = Heard()
    found = made(parent, [task(k, 0) for k in range(5)], progress=heard)
    hosts, draws = ({float(outputs.column((j,)).values[0]) for outputs in found} for j in (0, 1))
    assert (len(hosts), len(draws)) == (2, 5)
    assert heard.runs == 5


def code(kind: str, *content: str) -> int:
    return token(kind, *content).code


@for_each(
    "mechanism, path, numbers, tokens",
    [
        (hashing_was_loaded, (), [1.0], None),  # what every process needs is loaded before the fork
        (raises, (), None, [code("raised", "ValueError")]),  # and what is printed is as anywhere
        (of_type, (TYPE,), None, [code("type", "numpy.float64")]),  # whatever the quick ways leave out
        (hangs, (), None, [code("timed out")]),
    ],
)
def test_outputs_are_as_anywhere(mechanism: Any, path: Any, numbers: Any, tokens: Any) -> None:
    (found,) = made(mechanism, [task(0, 0)], run_timeout_s=0.05 if mechanism is hangs else None)
    column = found.column(path)
    assert (column.values.tolist() == numbers) if numbers else (column.tokens.tolist() == tokens)


def test_a_batched_mechanism_is_called_for_each_stretch_of_a_side() -> None:
    (found,) = made(batched(many), [task(0, 0, 0, 1, 1, 1, 0)])
    assert found.column((0,)).values.tolist() == [10.0, 10.0, 20.0, 20.0, 20.0, 10.0]
    assert found.column((1,)).values.tolist() == [2.0, 2.0, 3.0, 3.0, 3.0, 1.0]


def test_a_lost_process_is_run_once_more_and_then_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "first").touch()
    (found,) = made(lambda data: ends_first(str(tmp_path / "first")), [task(0, 0)])
    assert found.column(()).values.tolist() == [1.0]
    with pytest.raises(UnsoundAudit, match="fresh process ended twice"):
        made(ends, [task(0, 0), task(1, 1)])


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
