"""Workers of a cluster, of dask, ray or Spark: connected once for a process, and told apart from what they run.

Each engine is a `Link` of a few methods; what is waited for, how long, and what is said where it fails is the same for
all of them. Nothing that a mechanism does comes as an exception: `run_task` sends words, so one is of the machines.
"""

import asyncio
import atexit
import importlib
import logging
import math
import os
import re
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Protocol

from dpaudit.base.installed import lacking
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.processes.pools import LostWorker, Pool, Task, Then
from dpaudit.version import __version__

NO_WORKER_S = 60.0  # after which a cluster without a worker is given up
REACH_S = 10.0  # in which a scheduler answers, if it is one
FROM_S = 0.2  # seconds of work below which handing it out costs more than it saves
LOOK_S = 2.0  # between two looks at a cluster that brings nothing home
AHEAD = 2  # tasks for each worker that are handed out before the first of them is back
LOCAL_SETTINGS = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.daemon": False}
ENDED = (
    "workers of the {name} cluster were lost twice on the same runs ({{}}): killed, out of memory, cut off by the "
    "network, or ended by what they ran; no verdict"
)


class ClusterLost(UnsoundAudit):
    """The scheduler of a cluster is gone, or all its workers. Cure: start it again, and go on with --resume."""


class Link(Protocol):
    """What an engine is asked for; raises whatever that raises. To hand a task out is a small part of `task_s`."""

    task_s: float
    close: Callable[[], object]  # ends what was started for us

    def __init__(self, address: str | None, n_jobs: int) -> None: ...

    @staticmethod
    def theirs() -> Any:
        """What the program has open; nothing that is true where it has nothing."""

    def submit(self, function: Callable[..., Any], task: Task) -> "Future[Any]":
        """What the function returns of a task, on some worker."""

    def workers(self) -> int:
        """How many tasks run at a time."""

    def cancel(self, futures: Iterable["Future[Any]"]) -> None:
        """Ends what nobody waits for any more."""

    def leave(self) -> None:
        """Nobody answers: this process waits for nothing when it ends."""


class Cluster(Pool):
    """The workers of an engine, as a pool.

    Raises `InvalidSpec` for an address that is none, and where nobody answers there, or no worker comes.
    """

    def __init__(self, name: str, address: str | None, n_jobs: int) -> None:
        self.name, self.kind = name, KINDS[name]
        self.where = f"the {self.kind.title}" + (f" at {address[:100]}" if address else "")
        self.gone: ClusterLost | None = None  # since when there is no use in asking
        self._at = None if address is None else parsed(name, address)
        try:
            if self._at is not None:
                socket.create_connection(self._at, REACH_S).close()
            with warnings.catch_warnings(), _hushed():
                warnings.simplefilter("ignore")  # of versions that differ, which each worker compares
                self.link = self.kind.link(address, n_jobs)
        except InvalidSpec:
            raise
        except ImportError:
            lack = f'backend "{name}" needs {self.kind.package}, which is not installed here'
            raise lacking(lack, name) from None
        except Exception as error:
            raise InvalidSpec(f"{self.where} cannot be reached ({_line(error)})") from None
        end = time.monotonic() + NO_WORKER_S
        while (seen := self.look())[0] < 1 and time.monotonic() < end:
            time.sleep(LOOK_S / 4)
        self.width, why = seen
        if self.width < 1:
            self.close()
            raise InvalidSpec(f"{self.where} has no worker after {NO_WORKER_S:g} s ({why}); start one, and begin again")

    @property
    def told(self) -> str:
        """The cluster, its workers, and that these isolate nothing."""
        return f"{self.where}: {self.width} worker{'' if self.width == 1 else 's'}, isolation none"

    def run(
        self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf, then: Then = lambda done: done
    ) -> Iterator[Any]:
        if self.gone is not None:
            raise self.gone
        waiting: set[Future[Any]] = set()
        served = looked = time.monotonic()
        try:
            while tasks or waiting:
                while tasks and len(waiting) < AHEAD * self.width:
                    waiting.add(self._asked(self.link.submit, function, tasks.pop(0)))
                done, waiting = wait(waiting, max(0.0, min(LOOK_S, until - time.monotonic())), FIRST_COMPLETED)
                now = time.monotonic()
                if now > until:
                    raise OutOfTime
                if now - looked > LOOK_S:
                    looked, (workers, why) = now, self.look()
                    self.width, served = max(self.width, workers), now if workers > 0 else served
                    if workers < 0 or now - served > NO_WORKER_S:
                        self._give_up(f"has had no worker for {NO_WORKER_S:g} s" if workers == 0 else "went away", why)
                for each in done:
                    yield then(self._asked(each.result))
        finally:
            if self.gone is None:
                with suppress(Exception):
                    self.link.cancel(waiting)

    def close(self) -> None:
        """Ends what was started here; a cluster that was there stays, and one that is gone is not waited for."""
        if self.gone is None:
            with suppress(Exception):
                self.link.close()

    def _asked(self, ask: Callable[..., Any], *given: Any) -> Any:
        """What the engine answers. Raises `LostWorker`, and `ClusterLost` where nobody is there who could answer."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a mechanism may be large
                return ask(*given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also what was cancelled, which is no Exception
            if "No module named 'dpaudit'" in str(error):
                cure = f"install dpaudit {__version__} for every worker"
                raise InvalidSpec(f"a worker of {self.where} has no dpaudit; {cure}") from None
            workers, why = self.look()
            if workers < 0:
                self._give_up("went away", why)
            raise LostWorker(_line(error)) from None

    def look(self) -> tuple[int, str]:
        """How many workers there are, -1 where nobody can tell, and why."""
        try:
            if self._at is not None:
                socket.create_connection(self._at, REACH_S).close()
            return self.link.workers(), "none has come"
        except Exception as error:
            return -1, _line(error)

    def _give_up(self, what: str, why: str) -> NoReturn:
        self.gone = ClusterLost(f"{self.where} {what} ({why}), which is not for the mechanism; start it again")
        with suppress(Exception):
            self.link.leave()
        raise self.gone


_CONNECTED: dict[tuple[str, str | int], Cluster] = {}


def connected(name: str, address: str | None, n_jobs: int) -> Cluster:
    """The cluster at an address, connected when this process first wants it; None: the one that the program has open.

    Where it has none, that of the engine's own settings; else one of `n_jobs` workers is started here, for as long as
    this process lives.
    """
    address = address or os.environ.get("DPAUDIT_SCHEDULER") or None
    with suppress(ImportError):
        if address is None and KINDS[name].link.theirs():  # which may be another each time
            return Cluster(name, None, n_jobs)
    key = name, address or n_jobs
    known = _CONNECTED.get(key)
    if known is None:
        known = _CONNECTED[key] = Cluster(name, address, n_jobs)
    elif known.gone is not None and known.look()[0] > 0:  # it is there again
        known.gone = None
    return known


@atexit.register
def close() -> None:
    """Ends what was started for this process."""
    while _CONNECTED:
        _CONNECTED.popitem()[1].close()


def parsed(name: str, address: str) -> tuple[str, int] | None:
    """Host and port of an address, if it has them. Raises `InvalidSpec`: a half-made client waits for ever.

    >>> parsed("dask", "tcp://10.0.0.1:8786"), parsed("spark", "local[3]")
    (('10.0.0.1', 8786), None)
    """
    kind = KINDS[name]
    met = re.fullmatch(kind.address, address)
    if met is None or int(met["port"] or 1) > 65535:
        raise InvalidSpec(f"scheduler must be that of a {kind.title}, {kind.example}, got {address[:100]!r}")
    if met["host"] is None or "," in address:  # of several masters one may be away
        return None
    return met["host"].strip("[]"), int(met["port"])


def _line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:160]


@contextmanager
def _hushed() -> Iterator[None]:
    """What engines write on standard error goes nowhere, from programs that they start also later."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def check_alone(address: str | None, what: str) -> None:
    """Raises `InvalidSpec` for an address beside what the program has open: a process has one of these."""
    if address is not None:
        raise InvalidSpec(f"the program has a {what} open already: close it, or leave out scheduler {address[:100]!r}")


def nothing() -> None:
    """For what the program has opened: it stays."""


class Dask:
    """The client that the program is connected with, or dask's own settings name, or one of a cluster made here."""

    task_s, leave = 0.5, staticmethod(nothing)

    def __init__(self, address: str | None, n_jobs: int) -> None:
        distributed: Any = importlib.import_module("distributed")
        settings: Any = importlib.import_module("dask.config")
        self._asked: dict[Future[Any], Any] = {}
        self._client: Any = None if address else self.theirs()
        self.close: Callable[[], object] = nothing
        if self._client is not None:
            return
        for name in logging.root.manager.loggerDict:
            if name.startswith(("distributed", "tornado")):
                logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is told by us
        if address := address or settings.get("scheduler-address", None):
            parsed("dask", address)
            with ThreadPoolExecutor(1) as apart:  # this thread may have a loop; a client of something else never ends
                apart.submit(asyncio.run, _identity(distributed, address)).result()
            self._client = distributed.Client(address, timeout=REACH_S, set_as_default=False)
            self.close = partial(self._client.close, timeout=REACH_S)
            return
        with settings.set(LOCAL_SETTINGS):
            local = {"n_workers": n_jobs, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
            quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
            cluster = distributed.LocalCluster(**local, **quiet)
            self._client = distributed.Client(cluster, set_as_default=False)
        self.close = lambda: (self._client.close(timeout=REACH_S), cluster.close(timeout=REACH_S))

    @staticmethod
    def theirs() -> Any:
        with suppress(ValueError):
            return importlib.import_module("distributed").default_client()

    def submit(self, function: Callable[..., Any], task: Task) -> "Future[Any]":
        future: Future[Any] = Future()
        self._asked[future] = self._client.submit(function, *task, pure=False)
        self._asked[future].add_done_callback(partial(self._done, future))
        return future

    def _done(self, future: "Future[Any]", asked: Any) -> None:
        self._asked.pop(future, None)
        try:
            future.set_result(asked.result())
        except BaseException as error:
            future.set_exception(error)

    def workers(self) -> int:
        return sum(self._client.sync(self._client.scheduler.ncores, callback_timeout=REACH_S).values())

    def cancel(self, futures: Iterable["Future[Any]"]) -> None:
        self._client.cancel([self._asked[each] for each in futures if each in self._asked])


async def _identity(distributed: Any, address: str) -> None:
    async with distributed.rpc(address) as scheduler:
        await asyncio.wait_for(scheduler.identity(), REACH_S)


class Ray:
    """The ray that the program has started, or that RAY_ADDRESS names, or one that is started here."""

    task_s = 0.5

    def __init__(self, address: str | None, n_jobs: int) -> None:
        for name, value in {"RAY_NUM_REDIS_GET_RETRIES": "1", "RAY_py_gcs_connect_timeout_s": "15"}.items():
            os.environ.setdefault(name, value)  # else it asks something that is no ray for minutes
        self._ray: Any = importlib.import_module("ray")
        self.close: Callable[[], object] = nothing
        if self.theirs():
            check_alone(address, "ray")
        else:
            self.close = self._ray.shutdown
            address = address or os.environ.get("RAY_ADDRESS") or "local"
            local = {"num_cpus": n_jobs, "include_dashboard": False} if address == "local" else {}
            self._ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL, **local)
        self._held: tuple[Any, Any] = None, None  # the job of the last tasks, and where it is
        self._known: dict[Callable[..., Any], Any] = {}  # functions
        self._asked: dict[Future[Any], Any] = {}

    @staticmethod
    def theirs() -> Any:
        return importlib.import_module("ray").is_initialized()

    def submit(self, function: Callable[..., Any], task: Task) -> "Future[Any]":
        job, *rest = task
        if self._held[0] != job:
            self._held = job, self._ray.put(job)
        if function not in self._known:  # it is brought to the scheduler once
            self._known[function] = self._ray.remote(max_retries=1, num_cpus=1)(function)
        asked = self._known[function].remote(self._held[1], *rest)
        future: Future[Any] = asked.future()
        self._asked[future] = asked
        future.add_done_callback(lambda done: self._asked.pop(done, None))
        return future

    def workers(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    def leave(self) -> None:
        atexit.unregister(self._ray._private.worker.shutdown)  # which waits for a minute, and ends with code 1

    def cancel(self, futures: Iterable["Future[Any]"]) -> None:
        for asked in [self._asked[each] for each in futures if each in self._asked]:
            self._ray.cancel(asked, force=True)


class Spark:
    """The session that the program has open, or one at a master, or of this machine."""

    task_s = 2.0

    def __init__(self, address: str | None, n_jobs: int) -> None:
        sql: Any = importlib.import_module("pyspark.sql")
        known = self.theirs()
        self.close: Callable[[], object] = nothing
        if known is not None:
            check_alone(address, "Spark session")
        else:
            master = address or f"local[{n_jobs}]"
            if master.startswith("local"):
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
            builder = sql.SparkSession.builder.appName("dpaudit").master(master)
            for name, value in settings.items():
                builder = builder.config(name, value)
            known = builder.getOrCreate()
            self.close = known.stop
        self._context: Any = known.sparkContext
        self._held: tuple[Any, Any] = None, None  # the job of the last tasks, and where it is
        self._threads = ThreadPoolExecutor(256, "spark")
        self._group = f"dpaudit {os.getpid()}"

    @staticmethod
    def theirs() -> Any:
        return importlib.import_module("pyspark.sql").SparkSession.getActiveSession()

    def submit(self, function: Callable[..., Any], task: Task) -> "Future[Any]":
        job, *rest = task
        if self._held[0] != job:
            self._held = job, self._context.broadcast(job)
        return self._threads.submit(self._run, partial(_on_spark, function, self._held[1], tuple(rest)))

    def _run(self, work: Callable[..., Any]) -> Any:
        self._context.setJobGroup(self._group, "dpaudit", interruptOnCancel=True)
        (done,) = self._context.parallelize([0], 1).mapPartitions(work).collect()
        return done

    def workers(self) -> int:
        executors = len(self._context._jsc.sc().statusTracker().getExecutorInfos())
        local = self._context.master.startswith("local")
        return int(self._context.defaultParallelism) if local or executors > 1 else 0

    def cancel(self, futures: Iterable["Future[Any]"]) -> None:
        for each in futures:
            each.cancel()
        if any(not each.done() for each in futures):
            self.leave()

    def leave(self) -> None:
        self._context.cancelJobGroup(self._group)  # else its threads wait for jobs that nobody does


def _on_spark(function: Callable[..., Any], job: Any, rest: tuple[Any, ...], rows: Iterator[int]) -> list[Any]:
    return [function(job.value, *rest) for _ in rows]


@dataclass(frozen=True, slots=True)
class ClusterKind:
    """What an engine is called, the package that it needs, and what its addresses look like, with an example."""

    link: type[Link]
    title: str
    package: str
    address: str
    example: str


HOST = r"(?P<host>[^\s:/,\[\]]+|\[[0-9a-f:]+\]):(?P<port>\d{1,5})"
SPARK = rf"local(?:\[(?:\d+|\*)\])?|yarn|k8s://\S+|spark://{HOST}(?:,\S+)?"
KINDS = {
    "dask": ClusterKind(
        Dask, "dask scheduler", "distributed", rf"(?:(?:tcp|tls|ws|wss)://)?{HOST}/?", "tcp://HOST:8786"
    ),
    "ray": ClusterKind(Ray, "ray cluster", "ray", rf"auto|(?:ray://)?{HOST}/?", "HOST:6379, ray://HOST:10001 or auto"),
    "spark": ClusterKind(Spark, "Spark master", "pyspark", SPARK, "spark://HOST:7077, yarn, k8s://URL or local[N]"),
}
