"""Where tasks run: in this process, in processes of ours, or on any joblib backend.

A pool runs a list of tasks and yields what is done in any order. It raises `LostWorker` when a worker died,
after yielding all that had come back, so that the engine can run the rest once more.
"""

import itertools
import math
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any, Protocol, cast

from dpaudit.base import validate
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.processes import answers
from dpaudit.processes.duct import ANEW, COUNT, HOLD, KEPT, TICK_S, watch
from dpaudit.processes.host import Host, Lost, ready, rest
from dpaudit.running import guard
from dpaudit.running.worker import Job

IN_ONE_PROCESS = ("sequential", "threading")  # pools that run a session in one process
ISOLATION = ("process", "none")
ISOLATING = (None, "loky", "sequential")  # backends whose workers are forked by hosts of ours, one thread each

Task = tuple[Any, ...]

_WATCHED: list[int] = []  # of a worker: its driver


class LostWorker(Exception):
    """A worker process died: killed, out of memory, or ended by the mechanism."""


class Pool(Protocol):
    """Runs `function(*task)` for each task."""

    name: str

    def run(self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf) -> Iterator[Any]:
        """What each task returned, in any order; raises `OutOfTime` when `time.monotonic()` is past `until`.

        Takes the tasks out of the list, to which more may be added until the last result has come.
        Processes of ours are ended at that time, in the midst of a run; elsewhere the task that is at work is finished.
        """


def tried(pool: Pool, function: Callable[..., Any], task: Any, until: float, ended: str, tries: int) -> Any:
    """What one task returns; a worker that was lost is tried again in another. Raises `UnsoundAudit`: `ended`."""
    for _ in range(tries):
        with suppress(LostWorker):
            return next(pool.run(function, [task], until))
    raise UnsoundAudit(ended)


class InProcess(Pool):
    """Tasks one after the other, or on threads, in this very process: for library calls only."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.name = "sequential" if threads == 1 else "threading"

    def run(self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf) -> Iterator[Any]:
        if self.threads > 1 and len(tasks) > 1:
            yield from _parallel("threading", self.threads, function, tasks, until)
        while tasks:
            task = tasks.pop(0)
            in_time(until)
            with guard.telling_interrupts(), guard.ended_at(until):
                done = function(*task)
            yield done


class Processes:
    """Processes of this machine, and ours alone; each runs tasks in turn, or on threads of its own.

    `anew`: every task in a process of its own. `spread` hosts share the tasks: more than run at a time, where it
    matters that processes come from several interpreters.
    """

    def __init__(self, workers: int = 1, *, silent: bool = True, anew: bool = False, spread: int = 0) -> None:
        self.name = "processes"
        self.threads = 1
        self.workers = workers
        self._hosts: list[Host] = []  # the one that has waited longest first
        self._silent, self._kind, self._spread = silent, ANEW if anew else KEPT, max(spread, workers)

    def with_threads(self, threads: int) -> "Processes":
        """The same process, running so many tasks at a time."""
        self.threads = threads
        self.name = "sequential" if threads == 1 else "threading"
        return self

    def run(self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf) -> Iterator[Any]:
        for _, results in self.numbered(function, tasks, until):
            yield from results

    def numbered(
        self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf
    ) -> Iterator[tuple[int, list[Any]]]:
        """The number of every group of tasks, with what they returned: groups of as many as there are threads."""
        limits, begun = _limits(self.workers), 0
        in_time(until)
        while len(self._hosts) < min(self._spread, -(-len(tasks) // self.threads)):
            self._hosts.append(ready(silent=self._silent, environment=limits))
        busy: dict[Host, tuple[int, list[Task]]] = {}
        looked = 0.0
        try:
            while tasks or busy:
                in_time(until)
                while tasks and len(busy) < min(self.workers, len(self._hosts)):
                    group, tasks[: self.threads] = tasks[: self.threads], []
                    host = next(each for each in self._hosts if each not in busy)
                    busy[host], begun = (begun, group), begun + 1
                    self._send(host, function, group)
                if time.monotonic() > looked + TICK_S:
                    looked = time.monotonic()
                    if sum(host.gone() for host in busy):  # asked of all: each that was stopped goes on
                        raise Lost("a host ended")
                flying: list[Any] = list(busy)
                for host in cast("list[Host]", wait(flying, max(0.0, min(TICK_S, until - time.monotonic())))):
                    results = answers.read(host.receive())
                    number, group = busy[host]
                    if len(results) != len(group) or not all(map(answers.fits, results, group)):
                        raise answers.Unreadable
                    del busy[host]
                    self._hosts.append(self._hosts.pop(self._hosts.index(host)))
                    yield number, results
        except (Lost, answers.Unreadable) as error:
            raise LostWorker(str(error)) from None
        finally:
            self._hosts = [host for host in self._hosts if host not in busy]
            for host in busy:
                host.end()
            for host in busy:
                host.close()

    def close(self) -> None:
        for host in self._hosts:
            rest(host)
        self._hosts = []

    def _send(self, host: Host, function: Callable[..., Any], group: list[Task]) -> None:
        """A request; the mechanism goes with the first of a job only."""
        import cloudpickle

        jobs = [task[0] for task in group if task and isinstance(task[0], Job)]
        new = {job.key: job.payload for job in jobs if job.payload is not None and job.key not in host.holds}
        host.holds.update(new)
        if new and self._kind == ANEW:
            host.send(HOLD, pickle.dumps(new))
            new = {}
        bare = [(replace(task[0], payload=None), *task[1:]) if jobs else task for task in group]
        kind = COUNT if self._kind == KEPT and any(job.isolated for job in jobs) else self._kind
        host.send(kind, cloudpickle.dumps((function, bare, self.threads, new)))


def _limits(workers: int) -> dict[str, str]:
    """Threads of numerical libraries, so that all workers together have one for each processor; as joblib does it."""
    names = [f"{each}_NUM_THREADS" for each in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")]
    most = str(max(1, (os.cpu_count() or 1) // workers))
    return {} if workers == 1 else {name: most for name in (*names, "VECLIB_MAXIMUM_THREADS") if name not in os.environ}


class Joblib(Pool):
    """Any registered joblib backend, by name; what its workers send is read as that backend reads it."""

    def __init__(self, backend: str, n_jobs: int) -> None:
        self.name = backend
        self.n_jobs = n_jobs

    def run(self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf) -> Iterator[Any]:
        return _parallel(self.name, self.n_jobs, function, tasks, until)


def check_backend(name: str) -> str:
    """The name of a registered joblib backend; raises `InvalidSpec` listing the known ones."""
    from joblib.parallel import BACKENDS, EXTERNAL_BACKENDS

    if name not in BACKENDS and name not in EXTERNAL_BACKENDS:
        known = ", ".join(sorted({*BACKENDS, *EXTERNAL_BACKENDS}))
        raise InvalidSpec(f"backend must be a registered joblib backend ({known}), got {name!r}")
    return name


def isolates(isolation: str | None, backend: str | None, *, usual: bool) -> bool:
    """Whether hosts count what the processes of mechanisms send; None is what is usual, where the backend can.

    Raises `InvalidSpec` where it is asked of a backend that cannot.
    """
    if isolation is not None:
        validate.one_of("isolation", isolation, ISOLATION)
    if isolation == "process" and backend not in ISOLATING:
        raise InvalidSpec(
            f'isolation = "process" needs workers of ours, and the backend {backend} has its own; '
            'leave the backend out, or say isolation = "none"'
        )
    return isolation == "process" or (isolation is None and usual and backend in ISOLATING)


def in_time(until: float) -> None:
    """Raises `OutOfTime` where it is later than that."""
    if time.monotonic() > until:
        raise OutOfTime


def _parallel(
    backend: str, n_jobs: int, function: Callable[..., Any], tasks: list[Task], until: float
) -> Iterator[Any]:
    from joblib import Parallel, delayed

    try:
        while tasks:
            calls = [delayed(_beside)(os.getpid(), function, *task) for task in tasks]
            tasks.clear()
            try:
                stream: Iterable[Any] = Parallel(
                    n_jobs, backend=backend, return_as="generator_unordered", batch_size=1, max_nbytes=None
                )(calls)
            except ValueError:  # a backend that cannot stream: waves of lists, so that a lost worker loses one wave
                waves = (calls[start : start + 4 * n_jobs] for start in range(0, len(calls), 4 * n_jobs))
                stream = itertools.chain.from_iterable(
                    Parallel(n_jobs, backend=backend, batch_size=1, max_nbytes=None)(wave) for wave in waves
                )
            for done in stream:
                yield done
                in_time(until)
    except BrokenProcessPool as error:
        raise LostWorker(str(error)) from None


def _beside(driver: int, function: Callable[..., Any], *task: Any) -> Any:
    """What a task returns; a worker that this driver has forked ends with it, even if it is killed."""
    if os.getppid() == driver and driver not in _WATCHED:
        _WATCHED.append(driver)
        watch(driver, lambda: os._exit(1))
    return function(*task)
