"""How shards are run: an executor, and layers around it of one concern each, whose order `layered` gives.

The innermost runs tasks on workers (`engine.ShardTasks`, `engine.FreshProcesses`); the layers run lost work once more,
end what is late, keep what came back, and report how far it is.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from dpaudit.errors import OutOfTime, UnsoundAudit
from dpaudit.execution.journal import Recorder, ShardCall
from dpaudit.processes.frames import KeptShard
from dpaudit.processes.pools import LostWorker
from dpaudit.running.guard import ended_at
from dpaudit.running.pieces import Piece, Pieces
from dpaudit.running.progress import Progress
from dpaudit.running.streams import Shard
from dpaudit.running.watch import Reducer

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Limit:
    """`left` tells how many seconds are left; `outside`: work is to be made where it can be ended at any moment.

    What is under way when none is left is ended `grace_s` later: where a process ends another has to begin.
    """

    left: Callable[[], float]
    outside: bool = True
    grace_s: float = 0.0

    @property
    def until(self) -> float:
        """The end by `time.monotonic()`; never where another clock tells the time."""
        return time.monotonic() + self.left() + self.grace_s if self.outside else math.inf


def thought(recorder: Recorder, until: float, think: Callable[[], Result]) -> Result:
    """What `think` gives; raises `OutOfTime` where it is later than `until` before, or was when it was first made.

    It may be ended anywhere, so it must leave nothing half done; on the main thread alone, as alarms are.
    """
    results: list[Result] = []

    def cut() -> int:
        with suppress(OutOfTime), ended_at(until, imports=False):
            results.append(think())
        return not results

    if recorder.decide("thinking took too long", cut):
        raise OutOfTime
    return results[0] if results else think()


@dataclass(frozen=True, slots=True)
class Work:
    """Shards to run, what reduces their outputs (None: they are looked at), and how far those in parts are."""

    shards: list[Shard]
    reducer: Reducer | None = None
    parts: Pieces = field(default_factory=Pieces)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one task came to: a result for each shard, a `Piece` where it is not whole yet, and how it was made.

    `runs` and `seconds` are those of the task, `pool` where it ran; `stored` results are of an earlier process.
    """

    results: tuple[tuple[Shard, Any], ...]
    runs: int
    seconds: float = 0.0
    pool: str = ""
    driver: int = 0
    lost: int = 0
    stored: bool = False

    @property
    def whole(self) -> list[Shard]:
        """The shards that are done."""
        return [shard for shard, result in self.results if not isinstance(result, Piece)]

    def kept(self) -> list[tuple[Shard, KeptShard]]:
        """The shards as a journal keeps them."""
        how = self.seconds, self.runs, self.pool, self.driver, self.lost
        return [(shard, KeptShard(result, *how)) for shard, result in self.results]


class Executor(Protocol):
    """Runs shards."""

    def run(self, work: Work) -> Iterator[TaskResult]:
        """What came of each task, in any order; each shard is whole in one result.

        Raises `LostWorker` where a worker died, and `OutOfTime` where there is no more time, after what has come back.
        """


@dataclass(frozen=True, slots=True)
class Retry:
    """Runs what a lost worker left undone once more. Raises `UnsoundAudit` where one is lost again."""

    inner: Executor
    ended: str  # what is said then, before the place of the first shard that is missing

    def run(self, work: Work) -> Iterator[TaskResult]:
        left = dict.fromkeys(work.shards)
        for _ in range(2):
            try:
                for result in self.inner.run(Work(list(left), work.reducer, work.parts)):
                    for shard in result.whole:
                        del left[shard]
                    yield result
                return
            except LostWorker:
                continue
        shard = next(iter(left))
        raise UnsoundAudit(self.ended.format(f"{shard.stage.name.lower()}, shard {shard.index}"))


@dataclass(frozen=True, slots=True)
class Deadline:
    """Ends a call when its time is over, by `OutOfTime`: a driver that takes the audit up ends the same call."""

    inner: Executor
    limit: Limit | None
    call: ShardCall

    def run(self, work: Work) -> Iterator[TaskResult]:
        if self.limit is None:
            yield from self.inner.run(work)
            return
        recorder, left = self.call.recorder, len(work.shards)
        if left and recorder.decided(self.call.late):
            raise OutOfTime
        try:
            self._check(self.limit, left)
            for result in self.inner.run(work):
                left -= len(result.whole)
                yield result
                self._check(self.limit, left)
        except OutOfTime:
            recorder.note(self.call.late, 1)
            raise

    def _check(self, limit: Limit, left: int) -> None:
        if left and limit.left() <= 0.0:
            raise OutOfTime


@dataclass(frozen=True, slots=True)
class Journal:
    """Takes up what is stored of a call, and stores what comes back before anybody looks at it."""

    inner: Executor
    call: ShardCall

    def run(self, work: Work) -> Iterator[TaskResult]:
        stored = self.call.stored(work.shards)
        for shard, entry in stored.items():
            if isinstance(entry.result, Piece):
                work.parts[shard] = entry.result
            runs = work.parts.end(shard, entry.result)
            seconds = entry.seconds / max(1, entry.runs) * runs
            yield TaskResult(((shard, entry.result),), runs, seconds, entry.pool, entry.driver, entry.lost, stored=True)
        left = [shard for shard in work.shards if shard not in stored or shard in work.parts]
        if left:
            for result in self.inner.run(Work(left, work.reducer, work.parts)):
                self.call.keep(result.kept())
                yield result


@dataclass(frozen=True, slots=True)
class Report:
    """Tells how many runs are done."""

    inner: Executor
    progress: Progress

    def run(self, work: Work) -> Iterator[TaskResult]:
        for result in self.inner.run(work):
            self.progress.advance(result.runs, result.seconds, stored=result.stored)
            yield result


def layered(body: Executor, call: ShardCall, limit: Limit | None, progress: Progress, ended: str) -> Executor:
    """A body in its layers: what is reported is stored, what is late is not, and time runs for a second try too."""
    return Report(Journal(Deadline(Retry(body, ended), limit, call), call), progress)
