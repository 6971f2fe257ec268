"""The workers of an engine, and which of them a piece of work goes to; what it counts is the same on all of them."""

import threading
from collections.abc import Callable

from dpaudit.sampling.dask_pool import Dask
from dpaudit.sampling.pieces import CHECK_PART, LONGEST_TASK_S
from dpaudit.sampling.pools import IN_ONE_PROCESS, InProcess, Joblib, Pool, Processes

PARALLEL_FROM_S = 1.0  # below this much work, starting workers costs more than it saves
QUICK_S = 0.01  # up to which it costs little to see after every shard that the datasets are as they were
TASK_S = 0.15  # a task lasts about this long: scheduling stays under half a percent of it


class Workers:
    """One process, `n_jobs` of them, a cluster: each starts when it is first asked for, and all end together."""

    def __init__(self, n_jobs: int, backend: str | None, *, silent: bool) -> None:
        self.n_jobs, self.backend = n_jobs, backend
        self.child = Processes(silent=silent).with_threads(1)
        self._processes = Processes(n_jobs, silent=silent)
        self.cluster: Dask | None = None

    def close(self) -> None:
        """Ends them at once."""
        self.child.close()
        self._processes.close()
        if self.cluster is not None:
            self.cluster.close()

    def pool(self, work_s: float, home: Callable[[int], Pool], *, alone: bool, limited: bool) -> Pool:
        """Where so many seconds of work run.

        `home` gives a pool of so many threads where the mechanism lives when nothing is parallel. `alone`: one run at a
        time in each process; `limited`: each run has a time limit.
        """
        if self.backend == "loky":
            return self._processes
        if self.backend is not None and self.backend not in IN_ONE_PROCESS:
            return self._named(self.backend)
        if self.n_jobs == 1 or self.backend == "sequential":
            return home(1)
        if self.backend == "threading":
            return home(1 if limited else self.n_jobs)  # a process has one alarm, so limited runs take turns
        if work_s < PARALLEL_FROM_S:
            return home(1)
        return self._processes if alone or limited else home(self.n_jobs)

    def task_runs(self, runs: int, run_s: float, check_s: float, limited: object = None) -> int:
        """Runs of a task: about `TASK_S` of work, more where datasets are large, and some tasks for each worker.

        Where time is `limited`, one shard, if it is seen quickly after it that the datasets are as they were.
        """
        if limited and check_s <= QUICK_S:
            return 1
        if run_s <= 0.0:
            return runs
        fair = max(1, runs // (4 * self.n_jobs)) if runs * run_s > PARALLEL_FROM_S else runs
        return max(1, min(fair, int(max(TASK_S, min(LONGEST_TASK_S, CHECK_PART * check_s)) / run_s)))

    def home(self, threads: int, *, outside: bool, limited: bool) -> Pool:
        """Threads of the one process of the mechanism, if it is to run `outside`; else of this one."""
        if outside:
            return self.child.with_threads(threads)
        if limited and threading.current_thread() is not threading.main_thread():
            return self._processes  # an alarm needs the main thread of a process
        return InProcess(threads)

    def _named(self, backend: str) -> Pool:
        if backend != "dask":
            return Joblib(backend, self.n_jobs)
        if self.cluster is None:
            self.cluster = Dask(self.n_jobs)
        return self.cluster
