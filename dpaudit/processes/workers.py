"""The workers of an engine, and which of them a piece of work goes to; what it counts is the same on all of them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.processes import clusters
from dpaudit.processes.pools import IN_ONE_PROCESS, OURS, InProcess, Joblib, Pool, Processes, Task
from dpaudit.processes.tasks import FreshTask
from dpaudit.running.pieces import CHECK_PART, LONGEST_TASK_S
from dpaudit.running.worker import Job

PARALLEL_FROM_S = 1.0  # below this much work, starting workers costs more than it saves,
SHARED_FROM_S = 0.02  # and below this much sharing it among those that have opened the mechanism
TASKS = 4  # for each worker, at least, of work that is shared
INTERPRETERS = 2  # that fresh processes come from, each with a hash seed of its own
PER_INTERPRETER = 8  # fresh processes for which one more is started, where so many may run at once
QUICK_S = 0.01  # up to which it costs little to see after every shard that the datasets are as they were
TASK_S = 0.15  # a task lasts about this long: scheduling stays under half a percent of it


class Workers:
    """One process, `n_jobs` of them, a cluster: all but that start when they are first wanted, and end together.

    Raises `InvalidSpec` where a cluster cannot be reached.
    """

    def __init__(self, n_jobs: int, backend: str | None, scheduler: str | None = None, *, silent: bool) -> None:
        self.n_jobs, self.backend = n_jobs, backend
        self.child = Processes(silent=silent).with_threads(1)
        self._processes, self._fresh = Processes(n_jobs, silent=silent), Processes(n_jobs, silent=silent, anew=True)
        self.cluster = None
        if backend in clusters.KINDS:
            self.cluster = clusters.connected(backend, scheduler, n_jobs)
        elif scheduler is not None:
            raise InvalidSpec(f"scheduler is of a cluster: give backend {' or '.join(clusters.KINDS)} with it")

    @property
    def width(self) -> int:
        """How many tasks run at a time."""
        return self.n_jobs if self.cluster is None else self.cluster.width

    @property
    def ended(self) -> str:
        """What is said where workers of a cluster were lost again and again; empty of our own."""
        return "" if self.cluster is None else clusters.ENDED.format(name=self.cluster.name)

    @property
    def told(self) -> str:
        """Who is at work, where that is a cluster."""
        return "" if self.cluster is None else f"on {self.cluster.told}"

    def close(self) -> None:
        """Ends them at once."""
        for each in (self.child, self._processes, self._fresh):
            each.close()

    def end(self) -> None:
        """Ends what is at work in processes of ours; others start when they are asked for."""
        for each in (self._processes, self._fresh):
            each.end()

    def start(self, work_s: float) -> None:
        """Starts the processes that so many seconds of work will want; nobody waits for them here."""
        if self.n_jobs > 1 and work_s >= PARALLEL_FROM_S and (self.backend is None or self.backend in OURS):
            self._processes.start(self.n_jobs)

    @property
    def unused(self) -> int:
        """How many workers that were started have no process yet."""
        return self._processes.unused()

    def fresh(
        self, job: Job, work: Sequence[FreshTask], until: float, run: Callable[..., Any], *, stay: bool = False
    ) -> Iterator[tuple[FreshTask, Any]]:
        """Each task with what `run` gives of it, made in a process of its own; the job carries what it runs, pickled.

        Each imports the mechanism anew and makes its first runs, whatever others have kept: a few hosts load this
        package and nothing of the user's, and each forks a process for every task, which opens the mechanism, runs it,
        and ends. So many processes cost little more than the import of the mechanism. Where they are to `stay`, they
        are those of the `unused` workers, and no more tasks than these are done.

        Raises the error that a mechanism's process reported, `OutOfTime` past `until` (of `time.monotonic()`), and
        `LostWorker` where a process was lost.
        """
        pool, hosts = self._processes if stay else self._fresh, max(INTERPRETERS, len(work) // PER_INTERPRETER)
        tasks: list[Task] = [(job, task) for task in work]
        for number, (result,) in pool.numbered(run, tasks, until, hosts=len(work) if stay else hosts, unused=stay):
            yield work[number], result

    def pool(self, work_s: float, home: Callable[[int], Pool], *, job: Job, apart: Callable[[], bool]) -> Pool:
        """Where so many seconds of work of a job run.

        `home` gives a pool of so many threads where the mechanism lives when nothing is parallel; `apart` asks whether
        there are to be several processes of it.
        """
        if self.backend in OURS:
            return self._processes
        if self.cluster is not None:  # what hardly lasts longer than its way there stays here
            return home(1) if 0.0 < work_s < clusters.FROM_S else self.cluster
        if self.backend is not None and self.backend not in IN_ONE_PROCESS:
            return Joblib(self.backend, self.n_jobs)
        if self.n_jobs == 1 or self.backend == "sequential":
            return home(1)
        if self.backend == "threading":
            return home(self.n_jobs if job.run_timeout_s is None else 1)  # a process has one alarm: runs take turns
        if work_s < (SHARED_FROM_S if self._processes.opened(job) else PARALLEL_FROM_S):
            return home(1)
        return self._processes if apart() else home(self.n_jobs)

    def task_runs(self, runs: int, run_s: float, check_s: float, limited: object = None, *, shared: bool) -> int:
        """Runs of a task: about `TASK_S` of work, more where datasets are large, and `TASKS` for each that shares it.

        Where time is `limited`, one shard, if it is seen quickly after it that the datasets are as they were.
        """
        if limited and check_s <= QUICK_S:
            return 1
        if run_s <= 0.0:
            return runs
        fair = max(1, runs // (TASKS * self.width)) if shared else runs
        task_s = TASK_S if self.cluster is None else self.cluster.link.task_s
        return max(1, min(fair, int(max(task_s, min(LONGEST_TASK_S, CHECK_PART * check_s)) / run_s)))

    def home(self, threads: int, *, outside: bool, limited: bool) -> Pool:
        """Threads of the one process of the mechanism, if it is to run `outside`; else of this one."""
        if outside:
            return self.child.with_threads(threads)
        if limited and threading.current_thread() is not threading.main_thread():
            return self._processes  # an alarm needs the main thread of a process
        return InProcess(threads)
