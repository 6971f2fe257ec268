"""Each layer alone, around an executor that is made up, and their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import OutOfTime, UnsoundAudit
from dpaudit.execution.executor import Deadline, Journal, Limit, Report, Retry, TaskResult, Work, layered
from dpaudit.execution.journal import Recorder
from dpaudit.processes.pools import LostWorker
from dpaudit.running.pieces import Piece
from dpaudit.running.progress import Progress
from dpaudit.running.streams import Shard, Stage, shards
from tests.cases import for_each
from tests.execution.test_store import Memory

WORK = shards(Stage.CERTIFY, 0, 400, 100)
ENDED = "lost twice: {}"


class Steps:
    """Runs a shard a step, and loses a worker, or is late, before some of them."""

    def __init__(self, *before: tuple[int, Exception]) -> None:
        self.ran: list[Shard] = []
        self.before = list(before)

    def run(self, work: Work) -> Iterator[TaskResult]:
        for shard in work.shards:
            if self.before and len(self.ran) == self.before[0][0]:
                raise self.before.pop(0)[1]
            self.ran.append(shard)
            yield TaskResult(((shard, np.array([shard.index])),), shard.runs, 1.0, "made up")


class Heard(Progress):
    """What is told of runs, and how many shards were stored by then."""

    def __init__(self, store: Memory) -> None:
        self.store = store
        self.advanced: list[tuple[int, bool, int]] = []

    def advance(self, runs: int, seconds: float = 0.0, *, stored: bool = False) -> None:
        self.advanced.append((runs, stored, len(self.store.shards)))


def told(executor: Any, work: list[Shard] = WORK) -> list[Shard]:
    return [shard for result in executor.run(Work(list(work))) for shard in result.whole]


def test_a_lost_worker_costs_the_shards_that_had_not_come_back_and_twice_is_no_verdict_that_says_where() -> None:
    steps = Steps((2, LostWorker()))
    assert told(Retry(steps, ENDED)) == WORK
    assert steps.ran == WORK  # none was run twice
    steps = Steps((1, LostWorker()), (3, LostWorker()))
    with pytest.raises(UnsoundAudit, match="lost twice: certify, shard 3"):
        told(Retry(steps, ENDED))
    assert steps.ran == WORK[:3]


def limit_of(*left: float) -> Limit:
    seconds = iter(left)
    return Limit(lambda: next(seconds), outside=False)


def test_a_deadline_ends_a_call_between_two_results_and_is_remembered() -> None:
    """What is late inside, too; and one after the last result, or none, ends nothing."""
    store, steps = Memory(), Steps()
    came: list[Shard] = []
    late = Deadline(steps, limit_of(2.0, 1.0, 0.0), Recorder(store).call("question"))
    with pytest.raises(OutOfTime):
        came.extend(result.whole[0] for result in late.run(Work(list(WORK))))
    assert came == WORK[:2]
    store.next_driver()
    again = Steps()
    with pytest.raises(OutOfTime):
        told(Deadline(again, limit_of(), Recorder(store).call("question")))
    assert again.ran == []  # and no clock is asked
    other = Memory()
    with pytest.raises(OutOfTime):
        told(Deadline(Steps((1, OutOfTime())), limit_of(9.0, 9.0), Recorder(other).call("question")))
    assert other.noted == {"time was over in call 0": 1}
    for limit in (limit_of(4.0, 3.0, 2.0, 1.0), None):
        assert told(Deadline(Steps(), limit, Recorder().call("question"))) == WORK


def test_a_journal_stores_each_result_before_it_hands_it_on_and_takes_it_up() -> None:
    store, steps = Memory(), Steps()
    call = Recorder(store).call("question")
    for number, result in enumerate(Journal(steps, call).run(Work(list(WORK))), start=1):
        assert len(store.shards) == number
        if result.whole == [WORK[1]]:
            break
    store.next_driver()
    later = Steps()
    results = list(Journal(later, Recorder(store).call("question")).run(Work(list(WORK))))
    assert [(result.whole, result.stored, result.pool) for result in results] == [
        ([shard], shard in WORK[:2], "made up") for shard in WORK
    ]
    assert later.ran == WORK[2:]


def test_a_stored_part_goes_on_where_it_ended() -> None:
    store = Memory()
    call = Recorder(store).call("question")
    piece = Piece(40, 0, (1, 2), np.array([3]), "[]")
    call.keep(TaskResult(((WORK[0], piece),), 40).kept())
    store.next_driver()
    seen: list[Work] = []

    class Looking(Steps):
        def run(self, work: Work) -> Iterator[TaskResult]:
            seen.append(work)
            return super().run(work)

    results = list(Journal(Looking(), Recorder(store).call("question")).run(Work(list(WORK))))
    assert (results[0].runs, results[0].stored, results[0].whole) == (40, True, [])
    assert seen[0].shards == WORK
    assert seen[0].parts[WORK[0]].done == 40


def test_a_report_tells_runs_and_whether_they_were_there() -> None:
    store = Memory()
    heard = Heard(store)
    list(Journal(Steps(), Recorder(store).call("question")).run(Work(WORK[:1])))
    store.next_driver()
    told(Report(Journal(Steps(), Recorder(store).call("question")), heard), WORK[:2])
    assert heard.advanced == [(100, True, 1), (100, False, 2)]


@for_each("error", [LostWorker(), OutOfTime(), ValueError()])
def test_in_all_layers_what_was_reported_is_stored(error: Exception) -> None:
    store = Memory()
    heard = Heard(store)
    executor = layered(Steps((2, error)), Recorder(store).call("question"), limit_of(*[9.0] * 9), heard, ENDED)
    if isinstance(error, LostWorker):
        assert told(executor) == WORK
    else:
        with pytest.raises(type(error)):
            told(executor)
    ended = 4 if isinstance(error, LostWorker) else 2
    assert heard.advanced == [(100, False, number) for number in range(1, ended + 1)]  # stored before it is told
    assert len(store.shards) == ended


def test_decisions_have_names_and_a_driver_that_takes_up_an_audit_decides_alike() -> None:
    store = Memory()
    recorder = Recorder(store)
    assert [recorder.decide(name, lambda n=n: n) for n, name in enumerate(["a", "b", "a"])] == [0, 1, 2]
    store.next_driver()
    later = Recorder(store)
    assert [later.decide(name, lambda: 9) for name in ("a", "a", "b", "a")] == [0, 2, 1, 9]
