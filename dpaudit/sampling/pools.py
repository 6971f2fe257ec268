"""Where tasks run: in this process, in one supervised child, or on any joblib backend.

A pool runs a list of tasks and yields what is done in any order. It raises `LostWorker` when a worker died,
after yielding all that had come back, so that the engine can run the rest once more.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, Protocol

from dpaudit.errors import InvalidSpec
from dpaudit.sampling import guard

Task = tuple[Any, ...]


class LostWorker(Exception):
    """A worker process died: killed, out of memory, or ended by the mechanism."""


class Pool(Protocol):
    """Runs `function(*task)` for each task."""

    name: str

    def run(self, function: Callable[..., Any], tasks: list[Task]) -> Iterator[Any]:
        """What each task returned, in any order."""

    def close(self) -> None:
        """Ends the workers at once."""


class InProcess:
    """Tasks one after the other, or on threads, in this very process: for library calls only."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.name = "sequential" if threads == 1 else "threading"

    def run(self, function: Callable[..., Any], tasks: list[Task]) -> Iterator[Any]:
        if self.threads == 1 or len(tasks) == 1:
            for task in tasks:
                with guard.telling_interrupts():
                    done = function(*task)
                yield done
            return
        yield from _parallel("threading", self.threads, function, tasks)

    def close(self) -> None:
        return None


class Child:
    """One process of ours that runs tasks in turn or on threads of its own, so that nothing runs in the caller's."""

    def __init__(self) -> None:
        self.name = "sequential"
        self.threads = 1
        self._executor: Any = None
        self._groups: set[int] = set()

    def with_threads(self, threads: int) -> Child:
        """The same child, running so many tasks at a time."""
        self.threads = threads
        self.name = "sequential" if threads == 1 else "threading"
        return self

    def run(self, function: Callable[..., Any], tasks: list[Task]) -> Iterator[Any]:
        from joblib.externals.loky import ProcessPoolExecutor

        if self._executor is None:
            # from its first moment: a child that no task reaches would wait for a killed parent for ever
            self._executor = ProcessPoolExecutor(max_workers=1, initializer=guard.end_with, initargs=(os.getpid(),))
        waiting = [tasks[start : start + self.threads] for start in range(0, len(tasks), self.threads)]
        waiting.reverse()
        flying: set[Future[list[Any]]] = set()
        try:
            while waiting or flying:
                while waiting and len(flying) < 2:  # one runs, one waits: the child never idles
                    flying.add(self._executor.submit(_several, function, waiting.pop(), self.threads))
                    self._groups.update(self._executor._processes)
                done, flying = wait(flying, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from future.result()
        except BrokenProcessPool as error:
            self.close()
            raise LostWorker(str(error)) from None

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, kill_workers=True)
            self._executor = None
        for group in self._groups:  # what a mechanism started lives in its worker's group
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self._groups.clear()


class Joblib:
    """Any registered joblib backend, by name."""

    def __init__(self, backend: str, n_jobs: int) -> None:
        self.name = backend
        self.n_jobs = n_jobs

    def run(self, function: Callable[..., Any], tasks: list[Task]) -> Iterator[Any]:
        return _parallel(self.name, self.n_jobs, function, tasks)

    def close(self) -> None:
        if self.name == "loky":
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=False, kill_workers=True)


def check_backend(name: str) -> str:
    """The name of a registered joblib backend; raises `InvalidSpec` listing the known ones."""
    from joblib.parallel import BACKENDS, EXTERNAL_BACKENDS

    if name not in BACKENDS and name not in EXTERNAL_BACKENDS:
        known = ", ".join(sorted({*BACKENDS, *EXTERNAL_BACKENDS}))
        raise InvalidSpec(f"backend must be a registered joblib backend ({known}), got {name!r}")
    return name


def cluster(name: str, n_jobs: int) -> Pool | None:
    """The pool of a cluster that is not driven through joblib; None for the other backends."""
    if name != "dask":
        return None
    from dpaudit.sampling.dask_pool import Dask

    return Dask(n_jobs)


def _parallel(backend: str, n_jobs: int, function: Callable[..., Any], tasks: list[Task]) -> Iterator[Any]:
    from joblib import Parallel, delayed

    calls = [delayed(function)(*task) for task in tasks]
    try:
        try:
            stream: Iterable[Any] = Parallel(n_jobs, backend=backend, return_as="generator_unordered", batch_size=1)(
                calls
            )
        except ValueError:  # a backend that cannot stream: waves of lists, so that a lost worker loses one wave
            waves = _waves(calls, 4 * n_jobs)
            stream = itertools.chain.from_iterable(
                Parallel(n_jobs, backend=backend, batch_size=1)(wave) for wave in waves
            )
        yield from stream
    except BrokenProcessPool as error:
        raise LostWorker(str(error)) from None


def _waves(calls: list[Any], size: int) -> Iterator[list[Any]]:
    step = max(1, size)
    return (calls[start : start + step] for start in range(0, len(calls), step))


def _several(function: Callable[..., Any], tasks: list[Task], threads: int) -> list[Any]:
    if threads == 1 or len(tasks) == 1:
        return [function(*task) for task in tasks]
    return list(_parallel("threading", threads, function, tasks))
