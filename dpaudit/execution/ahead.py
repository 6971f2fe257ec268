"""Runs of fresh processes that begin beside other work, and are taken up when they are asked for.

What they come to is what they would come to later: their streams are theirs, and each has a process of its own.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from dpaudit.processes.frames import Done
from dpaudit.processes.tasks import FreshTask, run_alone
from dpaudit.processes.workers import Workers
from dpaudit.running.streams import Shard
from dpaudit.running.worker import Job


class Ahead:
    """Begins at once: the first `probed` tasks, and then as many as `fitting` says of the CPU seconds of one of them.

    Where something goes wrong the rest is left to whoever asks for it, and meets with it again.
    """

    def __init__(
        self,
        workers: Workers,
        job: Job,
        work: Sequence[FreshTask],
        until: float,
        probed: int,
        fitting: Callable[[float], int],
    ) -> None:
        self._workers, self._job, self._until, self._fitting = workers, job, until, fitting
        self.shards = frozenset(task.shard for task in work)
        self._made: dict[Shard, Done] = {}
        self.over = False
        self._thread = threading.Thread(target=self._make, args=(list(work), probed), name="dpaudit-fresh", daemon=True)
        self._thread.start()

    def made(self) -> dict[Shard, Done]:
        """What has come of each task, once all are over."""
        self._thread.join()
        return self._made

    def leave(self) -> None:
        """Begins no more of them."""
        self.over = True

    def end(self) -> None:
        """Ends what is at work too: whoever asks the workers next does not wait for it, however long it takes."""
        self.leave()
        while self._thread.is_alive():
            self._workers.end()
            self._thread.join(0.1)

    def _make(self, work: list[FreshTask], probed: int) -> None:
        with suppress(Exception):
            self._ask(work[: self._workers.unused], stay=True)
            self._ask(work[:probed])
            self._ask(work[: self._fitting(min(done.cpu_s for done in self._made.values()))])

    def _ask(self, work: Sequence[FreshTask], *, stay: bool = False) -> None:
        """Makes those that are not made yet."""
        left = [task for task in work if task.shard not in self._made and not self.over]
        for task, done in self._workers.fresh(self._job, left, self._until, run_alone, stay=stay):
            self._made[task.shard] = done
            if self.over:
                return
