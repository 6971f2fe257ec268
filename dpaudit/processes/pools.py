"""Where tasks run: in this process, in processes of ours, or on any joblib backend, driven by `joblib.Parallel`.

A pool runs a list of tasks and yields what is done in any order. It raises `LostWorker` when a worker died,
after yielding all that had come back, so that the engine can run the rest once more.
"""

import io
import itertools
import math
import os
import pickle
import random
import sys
import threading
import time
from collections import ChainMap, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from types import CodeType
from typing import Any, ClassVar, Protocol

from dpaudit.base import validate
from dpaudit.errors import DpAuditError, InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.mechanisms.protocol import Mechanism
from dpaudit.outputs.canonical import Outputs, Pilot
from dpaudit.processes.frames import Done, ProtocolError, TaskFailed, answered
from dpaudit.processes.host import Host, Lost, ready, rest
from dpaudit.processes.pipes import Request, watch
from dpaudit.processes.tasks import as_error, run_alone, run_task
from dpaudit.running import guard
from dpaudit.running.pieces import Piece
from dpaudit.running.worker import Job

CLUSTERS = ("dask", "ray", "spark")  # engines of which we ask no joblib
IN_ONE_PROCESS = ("sequential", "threading")  # pools that run a session in one process
ISOLATION = ("process", "none")
OURS = ("dpaudit", "loky")  # backends whose workers are processes of ours
ISOLATING = (None, *OURS, "sequential")  # backends whose workers are forked by hosts of ours, one thread each

Task = tuple[Any, ...]
Then = Callable[[Any], Any]  # what is made of a result, where it arrives: it may add tasks

_WATCHED: list[int] = []  # of a worker: its driver


class LostWorker(Exception):
    """A worker process died: killed, out of memory, or ended by the mechanism."""


class Pool(Protocol):
    """Runs `function(*task)` for each task."""

    name: str

    def run(
        self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf, then: Then = lambda done: done
    ) -> Iterator[Any]:
        """What `then` makes of what each task returned, in any order; raises `OutOfTime` past `until` (monotonic).

        Takes the tasks out of the list, to which `then` may add others. Processes of ours are ended at that time, in
        the midst of a run; elsewhere the task that is at work is finished.
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

    def run(
        self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf, then: Then = lambda done: done
    ) -> Iterator[Any]:
        if self.threads > 1 and len(tasks) > 1:
            yield from _parallel("threading", self.threads, function, tasks, until, then)
        while tasks:
            task = tasks.pop(0)
            in_time(until)
            with guard.telling_interrupts(), guard.ended_at(until):
                done = function(*task)
            yield then(done)


class Processes:
    """Processes of this machine, and ours alone; each runs tasks in turn, or on threads of its own.

    `anew`: every task in a process of its own. Threads of this process, `HostBackend`'s, each ask a host and wait for
    its answer: of what a mechanism makes nothing but checked bytes comes here. Calls of `run` that are made at the same
    time share the hosts.
    """

    def __init__(self, workers: int = 1, *, silent: bool = True, anew: bool = False) -> None:
        self.name = "processes"
        self.threads = 1
        self.workers = workers
        self._hosts: deque[Host] = deque()  # those that rest, the one that has waited longest first
        self._busy: set[Host] = set()
        self._turn = threading.Condition()
        self._closed = False
        self._silent = silent
        self._kind = Request.RUN_FRESH if anew else Request.RUN

    def with_threads(self, threads: int) -> "Processes":
        """The same process, running so many tasks at a time."""
        self.threads = threads
        self.name = "sequential" if threads == 1 else "threading"
        return self

    def start(self, hosts: int) -> None:
        """Starts hosts until there are so many; they take a moment to be there, and nobody waits for them yet."""
        with self._turn:
            self._closed = False
            while len(self._hosts) + len(self._busy) < hosts:
                self._hosts.append(ready(silent=self._silent, environment=_limits(self.workers)))

    def unused(self) -> int:
        """How many of the hosts have no process yet."""
        with self._turn:
            return sum(not host.holds for host in self._hosts)

    def opened(self, job: Job) -> bool:
        """Whether each worker has answered a task of this job."""
        with self._turn:
            return sum(job.key in host.opened for host in (*self._hosts, *self._busy)) >= self.workers

    def run(
        self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf, then: Then = lambda done: done
    ) -> Iterator[Any]:
        for _, results in self.numbered(function, tasks, until, then):
            yield from results

    def numbered(
        self,
        function: Callable[..., Any],
        tasks: list[Task],
        until: float = math.inf,
        then: Then = lambda done: done,
        *,
        hosts: int | None = None,
        unused: bool = False,
    ) -> Iterator[tuple[int, list[Any]]]:
        """The number of every group of tasks, with what they returned: groups of as many as there are threads.

        So many `hosts` share them, more than run at a time where it matters that processes come from several
        interpreters. `unused`: each task goes to a host that has no process yet, and keeps the new one; what no such
        host is left for is not done.
        """
        from dpaudit.processes.backend import HostBackend

        numbers = itertools.count()
        while tasks:
            in_time(until)
            groups = -(-len(tasks) // self.threads)
            self.start(min(hosts or self.workers, groups))
            failed: list[Exception] = []
            mine: set[Host] = set()  # at work for this call
            ask = partial(self._ask, function, until, then, failed, mine, unused)
            calls = self._calls(tasks, ask, numbers, failed)
            at_once = min(self.workers, hosts or self.workers, groups)
            with closing(_driven(at_once, HostBackend(partial(self.end, mine)), calls, "n_jobs")) as outcomes:
                for number, outcome in outcomes:
                    if isinstance(outcome, list):
                        yield number, outcome
                    elif not isinstance(outcome, LostWorker):
                        raise outcome
            if failed:  # what the others had under way has come back
                raise failed[0]

    def end(self, hosts: "set[Host] | None" = None) -> None:
        """Ends hosts that are at work, all of them or these; who waits for them is told so."""
        with self._turn:  # or one is at work for another call by now
            for host in self._busy if hosts is None else hosts:
                host.end()

    def close(self) -> None:
        """Ends what is at work, and has the hosts rest."""
        with self._turn:
            self._closed = True
            self.end()
            self._turn.notify_all()
        while self._hosts:
            rest(self._hosts.pop())

    def _calls(
        self, tasks: list[Task], ask: Callable[..., Any], numbers: Iterator[int], failed: list[Exception]
    ) -> Iterator[Any]:
        """Calls of `_ask`, as long as there are tasks and none has failed."""
        from joblib import delayed

        while tasks and not failed:
            group, tasks[: self.threads] = tasks[: self.threads], []
            yield delayed(ask)(next(numbers), group)

    def _ask(
        self,
        function: Callable[..., Any],
        until: float,
        then: Then,
        failed: list[Exception],
        mine: set[Host],
        unused: bool,
        number: int,
        group: list[Task],
    ) -> tuple[int, list[Any] | Exception]:
        """What a host answers: results, or why there are none; its process is ended where it is at work still.

        Once one has failed no other is asked: joblib takes tasks ahead, and there is a host less.
        """
        host = None if failed else self._taken(until, mine, unused)
        if host is None:
            late = time.monotonic() > until
            return number, failed[0] if failed else OutOfTime() if late else LostWorker("there was no host to ask")
        heard = False
        try:
            self._send(host, function, group)
            answer = host.receive(until)
            heard = True
            results = answered(answer)
            if results and isinstance(results[0], TaskFailed):
                return number, as_error(results[0].kind, results[0].message)
            if len(results) != len(group) or not all(map(partial(_fits, function), results, group)):
                raise ProtocolError("an answer to another question")
            host.opened.update(host.holds)
            return number, [then(each) for each in results]
        except (Lost, ProtocolError) as error:
            heard = False
            failed.append(OutOfTime() if time.monotonic() > until else LostWorker(str(error)))
            return number, failed[0]
        except DpAuditError as error:
            return number, error
        finally:
            with self._turn:
                self._busy.remove(host)
                mine.remove(host)
                heard = heard and not self._closed
                if heard:
                    self._hosts.append(host)
                self._turn.notify_all()  # who waits for an unused host leaves this one to others
            if not heard:
                host.close()

    def _taken(self, until: float, mine: set[Host], unused: bool) -> Host | None:
        """A host that is free, or becomes so, or a new one; None where it is late, none `unused`, or all closed."""
        with self._turn:
            while not self._hosts and len(self._busy) >= self.workers and not self._closed and time.monotonic() < until:
                self._turn.wait(min(1.0, until - time.monotonic()))
            if self._closed or time.monotonic() > until:
                return None
            if not self._hosts:
                self._hosts.append(ready(silent=self._silent, environment=_limits(self.workers)))
            if (host := next((each for each in self._hosts if not (unused and each.holds)), None)) is None:
                return None
            self._hosts.remove(host)
            self._busy.add(host)
            mine.add(host)
            return host

    def _send(self, host: Host, function: Callable[..., Any], group: list[Task]) -> None:
        """A request; the mechanism goes with the first of a job only."""
        import cloudpickle

        jobs = [task[0] for task in group if task and isinstance(task[0], Job)]
        new = {job.key: job.contents for job in jobs if job.contents is not None and job.key not in host.holds}
        host.holds.update(new)
        if new and self._kind == Request.RUN_FRESH:
            host.send(Request.HOLD, pickle.dumps(new))
            new = {}
        bare = [(replace(task[0], contents=None), *task[1:]) if jobs else task for task in group]
        counts = self._kind == Request.RUN and function is run_task and any(job.isolated for job in jobs)
        host.send(Request.COUNT if counts else self._kind, cloudpickle.dumps((function, bare, self.threads, new)))


def _fits(function: Callable[..., Any], result: Any, task: Task) -> bool:
    """Whether it may be what this task returned: its shards, and of the kind that was asked for."""
    if function is run_alone:
        made = result.results if isinstance(result, Done) and result.error is None else ()
        (_, asked), outputs = task, [each for _, each in made if isinstance(each, Outputs)]
        return [shard for shard, _ in made] == [asked.shard] and [each.runs for each in outputs] == [len(asked.sides)]
    if not isinstance(result, Done) or result.error is not None:
        return True
    _, asked, reducer, *part = task
    whole = [each for _, each in result.results if not isinstance(each, Piece)]
    right = all(isinstance(each, Pilot) is (reducer is None) for each in whole)
    right = right and (bool(part) or len(whole) == len(asked))
    return right and tuple(shard for shard, _ in result.results) == asked


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

    def run(
        self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf, then: Then = lambda done: done
    ) -> Iterator[Any]:
        return _parallel(self.name, self.n_jobs, function, tasks, until, then)


def check_backend(name: str) -> str:
    """The name of a registered joblib backend; raises `InvalidSpec` listing the known ones."""
    from joblib.parallel import BACKENDS, EXTERNAL_BACKENDS

    from dpaudit.processes import backend  # noqa: F401  which registers ours

    known = {*CLUSTERS, *BACKENDS, *EXTERNAL_BACKENDS}
    if not isinstance(name, str) or name not in known:
        raise InvalidSpec(f"backend must be a registered joblib backend ({', '.join(sorted(known))}), got {name!r}")
    return name


def in_context(n_jobs: int | None, backend: str | None) -> tuple[int, str | None]:
    """What was not said as `joblib.parallel_config` says it, where the caller is in one, or the environment does.

    Else there are all processors. An empty backend is none, whatever they say.
    """
    if "joblib" in sys.modules and (n_jobs is None or backend is None):  # or nobody has said anything there
        from joblib.parallel import BACKENDS, get_active_backend

        active, workers = get_active_backend()
        if n_jobs is None:
            n_jobs = workers
        if backend is None:
            name = next((name for name, each in BACKENDS.items() if each is type(active)), None)
            backend = None if name in OURS else name  # loky is what joblib has where nobody says anything
    backend = os.environ.get("DPAUDIT_BACKEND") if backend is None else backend
    return -1 if n_jobs is None else n_jobs, backend or None


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
    backend: str, n_jobs: int, function: Callable[..., Any], tasks: list[Task], until: float, then: Then
) -> Iterator[Any]:
    from joblib import Parallel, delayed

    try:
        with ExitStack() as opened:
            while tasks:
                calls = [delayed(_beside)(os.getpid(), function, *task) for task in tasks]
                tasks.clear()
                try:
                    stream: Iterable[Any] = _driven(n_jobs, backend, calls)
                except ValueError:  # a backend that cannot stream: waves of lists, so that a lost worker loses one wave
                    waves = (calls[start : start + 4 * n_jobs] for start in range(0, len(calls), 4 * n_jobs))
                    parallel = opened.enter_context(Parallel(n_jobs, backend=backend, batch_size=1, max_nbytes=None))
                    stream = itertools.chain.from_iterable(map(parallel, waves))
                for done in stream:
                    yield then(done)
                    in_time(until)
    except BrokenProcessPool as error:
        raise LostWorker(str(error)) from None


class _NoMore(Exception):
    """Ends a stream of results that nobody reads to its end."""


def _driven(n_jobs: int, backend: Any, calls: Iterable[Any], ahead: str = "2 * n_jobs") -> Generator[Any, None, None]:
    """What the calls return, as it comes, with so many dispatched `ahead`.

    Raises `ValueError` where the backend cannot stream.
    """
    from joblib import Parallel

    parallel = Parallel(
        n_jobs, backend=backend, return_as="generator_unordered", batch_size=1, pre_dispatch=ahead, max_nbytes=None
    )

    def results() -> Generator[Any, None, None]:
        stream: Any = parallel(calls)
        try:
            for each in stream:  # noqa: UP028  `yield from` would close it, and closed it warns
                yield each
        except GeneratorExit:
            with suppress(_NoMore):
                stream.throw(_NoMore())
            raise

    return results()


def _beside(driver: int, function: Callable[..., Any], *task: Any) -> Any:
    """What a task returns; a worker that this driver has forked ends with it, even if it is killed."""
    if os.getppid() == driver and driver not in _WATCHED:
        _WATCHED.append(driver)
        watch(driver, lambda: os._exit(1))
    return function(*task)


class AsMade:
    """A pickled mechanism that unpickles to the mechanism."""

    def __init__(self, content: bytes) -> None:
        self.made = content

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return pickle.loads, (self.made,)

    @classmethod
    def of(cls, mechanism: Mechanism) -> Any:
        """The mechanism itself where it cannot be pickled: that is told when it has to be sent."""
        try:
            return cls(_bytes_of(mechanism))
        except Exception:
            return mechanism


def pickled(contents: Any) -> bytes:
    """The bytes of a mechanism and its pairs; raises `InvalidSpec` where they cannot be sent."""
    try:
        return _bytes_of(contents)
    except Exception as error:  # whatever an object's own way to be pickled raises
        raise InvalidSpec(
            f"the mechanism cannot be sent to workers ({error}); build it there with dpaudit.built_by(make), "
            "or use n_jobs=1"
        ) from None


def _bytes_of(contents: Any) -> bytes:
    """The bytes of cloudpickle; the randomness of the system has no state, so another source of it is the same.

    Code keeps the name of its file, which cloudpickle leaves out from 3.1.3 on: errors and coverage are told by it.
    """
    import cloudpickle

    known = cloudpickle.Pickler.dispatch_table

    def code(each: CodeType) -> tuple[Any, ...]:
        return _code, (each.co_filename, *known[CodeType](each))

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table: ClassVar[Any] = ChainMap(
            {random.SystemRandom: lambda source: (random.SystemRandom, ()), CodeType: code}, known
        )

    buffer = io.BytesIO()
    Pickler(buffer).dump(contents)
    return buffer.getvalue()


def _code(file: str, make: Callable[..., CodeType], values: tuple[Any, ...]) -> CodeType:
    return make(*values).replace(co_filename=file)
