"""The workers of an engine, and which of them a piece of work goes to; what it counts is the same on all of them."""

import importlib
import logging
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from dpaudit.base.installed import lacking
from dpaudit.errors import InvalidSpec, OutOfTime
from dpaudit.processes.pools import IN_ONE_PROCESS, OURS, InProcess, Joblib, LostWorker, Pool, Processes, Task, Then
from dpaudit.processes.tasks import FreshTask
from dpaudit.running.pieces import CHECK_PART, LONGEST_TASK_S
from dpaudit.running.worker import Job

PARALLEL_FROM_S = 1.0  # below this much work, starting workers costs more than it saves,
SHARED_FROM_S = 0.02  # and below this much sharing it among those that have opened the mechanism
TASKS = 4  # for each worker, at least, of work that is shared
INTERPRETERS = 2  # that fresh processes come from, each with a hash seed of its own
PER_INTERPRETER = 8  # fresh processes for which one more is started, where so many may run at once
QUICK_S = 0.01  # up to which it costs little to see after every shard that the datasets are as they were
LOCAL_SETTINGS = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.daemon": False}
TASK_S = 0.15  # a task lasts about this long: scheduling stays under half a percent of it


class Workers:
    """One process, `n_jobs` of them, a cluster: each starts when it is first wanted, and all end together."""

    def __init__(self, n_jobs: int, backend: str | None, *, silent: bool) -> None:
        self.n_jobs, self.backend = n_jobs, backend
        self.child = Processes(silent=silent).with_threads(1)
        self._processes, self._fresh = Processes(n_jobs, silent=silent), Processes(n_jobs, silent=silent, anew=True)
        self.cluster = Dask(n_jobs) if backend == "dask" else None

    def close(self) -> None:
        """Ends them at once."""
        for each in (self.child, self._processes, self._fresh):
            each.close()
        if self.cluster is not None:
            self.cluster.close()

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
        if self.backend is not None and self.backend not in IN_ONE_PROCESS:
            return self.cluster or Joblib(self.backend, self.n_jobs)
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
        fair = max(1, runs // (TASKS * self.n_jobs)) if shared else runs
        return max(1, min(fair, int(max(TASK_S, min(LONGEST_TASK_S, CHECK_PART * check_s)) / run_s)))

    def home(self, threads: int, *, outside: bool, limited: bool) -> Pool:
        """Threads of the one process of the mechanism, if it is to run `outside`; else of this one."""
        if outside:
            return self.child.with_threads(threads)
        if limited and threading.current_thread() is not threading.main_thread():
            return self._processes  # an alarm needs the main thread of a process
        return InProcess(threads)


class Dask:
    """The workers of a dask cluster: the one that the program is connected to, or that dask's own settings name.

    Where there is neither, a cluster of this machine's processes is made, and ended with the engine. Connected when it
    first runs something.
    """

    name = "dask"

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self._client: Any = None
        self._cluster: Any = None

    def run(
        self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf, then: Then = lambda done: done
    ) -> Iterator[Any]:
        if self._client is None:
            self._client = self._connect()
        client = self._client
        distributed: Any = importlib.import_module("distributed")
        lost = (distributed.KilledWorker, distributed.client.FutureCancelledError, distributed.comm.CommClosedError)

        futures: list[Any] = []

        def submitted() -> list[Any]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a mechanism may be large, and goes with each task
                fresh = [client.submit(function, *task, pure=False) for task in tasks]
            tasks.clear()
            futures.extend(fresh)
            return fresh

        try:
            left_s = None if until == math.inf else max(0.0, until - time.monotonic())
            done = distributed.as_completed(submitted(), loop=client.loop, timeout=left_s)
            for future in done:
                yield then(future.result())
                future.release()
                done.update(submitted())
        except TimeoutError:
            raise OutOfTime from None
        except lost as error:
            raise LostWorker(str(error)) from None
        finally:
            with suppress(Exception):  # a lost scheduler cancels nothing
                client.cancel(futures)

    def close(self) -> None:
        """Ends the cluster that was made here; one that was there stays."""
        for each in (self._client, self._cluster):
            if each is not None and self._cluster is not None:
                with suppress(Exception):
                    each.close()
        self._client = self._cluster = None

    def _connect(self) -> Any:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise lacking('backend "dask" needs dask.distributed, which is not installed here', "dask") from None
        with suppress(ValueError):  # the program has none
            return distributed.default_client()
        settings: Any = importlib.import_module("dask.config")
        address = settings.get("scheduler-address", None)
        if address is not None:
            try:
                return distributed.Client(address, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InvalidSpec(f"the dask scheduler at {address} cannot be reached ({error})") from None
        with settings.set(LOCAL_SETTINGS):
            self._cluster = distributed.LocalCluster(
                n_workers=self.n_jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                memory_limit=0,
            )
            return distributed.Client(self._cluster, set_as_default=False)
