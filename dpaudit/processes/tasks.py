"""Tasks as a pool of workers runs them: a job opened once in each worker, shards in, integers or words out."""

import builtins
import functools
import gc
import json
import os
import pickle
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress
from types import FunctionType
from typing import Any, cast

import numpy as np

from dpaudit import errors
from dpaudit.data.pair import AdjacentPair, SealedPair
from dpaudit.errors import DpAuditError, InvalidSpec, UnsoundAudit
from dpaudit.mechanisms.protocol import Description, Mechanism
from dpaudit.outputs.canonical import Pilot, Wanted
from dpaudit.processes.frames import WRITERS, Done, Sending, TaskFailed, answer
from dpaudit.running import alike, guard
from dpaudit.running.contents import digest_of_file, is_library
from dpaudit.running.pieces import Piece
from dpaudit.running.program import made_of
from dpaudit.running.streams import Shard
from dpaudit.running.watch import Reducer
from dpaudit.running.worker import BatchFailed, Job, Worker, likeness, named

_WORKERS = threading.local()
_KNOWN: set[str] = set()  # modules that were there when a mechanism was last looked at
_HELD: dict[str, bytes] = {}  # contents of jobs, of a process that has had them with their first task
_AS_MADE: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = []  # names, what holds them, what they meant
_CODES: list[tuple[str, FunctionType, Any]] = []
OFTEN_CHANGED = {"print", "input", "open", "help", "exit", "quit", "_"}  # of Python itself, by libraries and shells


@dataclass(frozen=True, slots=True)
class FreshTask:
    """Runs of one process: on these sides (True: second), in this order, with the rng of this shard."""

    shard: Shard
    sides: tuple[bool, ...]


def as_error(kind: str, message: str) -> DpAuditError:
    """The error that a task reported in words."""
    if kind == "BatchFailed":
        return BatchFailed(message)
    error: Any = getattr(errors, kind, None)
    ours = isinstance(error, type) and issubclass(error, (InvalidSpec, UnsoundAudit))  # no other code
    return (error if ours else UnsoundAudit)(message)


def checked(done: Done, job: Job) -> Done:
    """What a task sent; raises the error that it reported, or that a worker not ours says nothing of what it runs."""
    if done.error is not None:
        raise as_error(*done.error)
    if job.shown and getattr(done, "place", None) is None:  # of an older one
        raise InvalidSpec(f"a worker has another dpaudit than here, as it does not say which; {alike.CURE}")
    return done


def respond(function: Callable[..., Any], tasks: list[Any], threads: int, contents: dict[str, bytes]) -> bytes:
    """The answer of this process to a request: what each task returned, or what one of them raised."""
    try:
        hold(contents)
        return answer(several(function, tasks, threads))
    except BaseException as error:  # a SystemExit of a mechanism too: nothing that it raises is raised by the driver
        what = str(error) if isinstance(error, DpAuditError) else f"a worker failed ({named(error)}); no verdict"
        return answer([TaskFailed(type(error).__name__, what)])


def several(function: Callable[..., Any], tasks: list[tuple[Any, ...]], threads: int) -> list[Any]:
    """What each task returned, on so many threads."""
    if threads == 1 or len(tasks) == 1:
        return [function(*task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda task: function(*task), tasks))


def hold(payloads: dict[str, bytes]) -> None:
    """Keeps the pickled mechanisms of jobs, instead of those before: their tasks come without."""
    if payloads:
        _HELD.clear()
        _HELD.update(payloads)


def run_task(job: Job, task: tuple[Shard, ...], reducer: Reducer | None, part: Piece | None = None) -> Done:
    """Runs the shards of a task in this worker, of one a part; errors come back as words, never as objects."""
    return _done(job, lambda worker: tuple((shard, worker.run(shard, reducer, part)) for shard in task))


def feed_task(job: Job, task: tuple[Shard, ...], wanted: Wanted, tallies: bool, part: Piece | None = None) -> Done:
    """The same where the counting is done elsewhere: outputs go out as they come, and only a part is left to tell."""

    def feed(worker: Worker) -> tuple[tuple[Shard, Any], ...]:
        (writer,) = WRITERS
        parts = []
        for shard in task:
            writer.put([worker.opened.per_run, worker.batch(shard), worker.opened.size], [])
            parts.append(worker.feed(shard, Sending(shard.runs, wanted, tallies=tallies, writer=writer), part))
        writer.flush()
        return tuple((shard, so_far) for shard, so_far in zip(task, parts, strict=True) if so_far is not None)

    return _done(job, feed)


def _done(job: Job, run: Callable[[Worker], tuple[tuple[Shard, Any], ...]]) -> Done:
    process = os.getpid()
    try:
        worker = worker_for(job)
        start, cpu = time.perf_counter(), time.thread_time()
        with guard.alarms(job.run_timeout_s is not None):
            results = run(worker)
        ran, cpu_ran = time.perf_counter(), time.thread_time()  # a busy machine makes no look at datasets long
        worker.check_datasets()
        check_code()
        guard.disarm()
        if os.getpid() != process:
            os._exit(1)  # a mechanism forked and came back twice: only the original may answer
        spent = time.thread_time()
        times = ran - start, spent - cpu, None, spent - cpu_ran
        return Done(results, *times, accelerated=on_accelerator(), place=worker.place)
    except DpAuditError as error:
        if os.getpid() != process:
            os._exit(1)
        return Done(error=(type(error).__name__, str(error)))


def on_accelerator() -> bool:
    """Whether this process may have an accelerator at work: others would each set it up, and then share it."""
    torch: Any = sys.modules.get("torch")
    with suppress(Exception):  # these may be modules of anybody
        return not {"jax", "cupy", "tensorflow"}.isdisjoint(sys.modules) or bool(torch and torch.cuda.is_initialized())
    return True


def run_alone(job: Job, task: FreshTask) -> Done:
    """The outputs of a process that has run nothing before, and the CPU seconds of its whole life."""
    sides = np.array(task.sides, np.bool_)
    with guard.alarms(job.run_timeout_s is not None):
        worker = worker_for(job)
        outputs = worker.one_by_one(task.shard.pair, sides, task.shard.streams(job.seed)[1])
    guard.disarm()
    check_code()
    return Done(((task.shard, outputs),), cpu_s=time.process_time())


def left_alone(job: Job, task: FreshTask) -> dict[str, str]:
    """What a mechanism is made of where nothing has run before, as it is opened and once it has made these runs."""
    call = worker_for(job).opened.call
    opened = _state(call)
    run_alone(job, task)
    return {"opened": opened, "left": _state(call)}


def _state(call: Callable[..., Any]) -> str:
    memos = compress(alive := gc.get_objects(), map({functools._lru_cache_wrapper}.__contains__, map(type, alive)))
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    users = [each for each in memos if not is_library(str(each.__module__), files.get(str(each.__module__)))]
    users.sort(key=lambda each: (str(each.__module__), str(each.__qualname__)))  # collections change their order
    results = [value for each in users for value in gc.get_referents(each) if not callable(value)]  # results, or a dict
    return repr(made_of(functools.partial(call, results), strict=False))  # type: ignore[arg-type]


def worker_for(job: Job) -> Worker:
    """The worker of this thread for a job, opened on first use."""
    known: Worker | None = getattr(_WORKERS, "worker", None)
    fresh = known is None or known.job.key != job.key or known.job.alone != job.alone
    if fresh or (job.shown and known is not None and known.place is None):  # forked from the driver, or new
        try:
            if fresh or known is None:
                alike.check(job.shown, opened=False)
                contents = _HELD[job.key] if job.contents is None else job.contents
                known = Worker.start(job, *(pickle.loads(contents) if isinstance(contents, bytes) else contents))
            if job.shown:
                alike.check(job.shown, opened=True)
                alike_runs = "" if job.sentinel is None else likeness(cast(Pilot, known.run(job.sentinel, None)))
                known.place = (socket.gethostname(), alike.whereabouts(), alike_runs)
        except errors.Interrupted:
            raise
        except BaseException as error:
            why = f"the mechanism or its datasets could not be opened in a worker ({named(error)})"
            told = error if isinstance(error, DpAuditError) else InvalidSpec(why)
            if job.shown:
                told = type(told)(f"the worker {alike.whereabouts()}: {told}; {alike.CURE}")
            raise told from None
        _WORKERS.worker = known
    assert known is not None
    return known


def describe(
    mechanism: Mechanism, pairs: tuple[Any, ...], settle: Callable[..., Any] | None = None, *, seal: bool
) -> tuple[Description, tuple[AdjacentPair | SealedPair, ...]]:
    """The description of a mechanism and its pairs, with every reference resolved, and the claim settled, here."""
    resolved = tuple(each for pair in pairs for each in (pair.resolve() if hasattr(pair, "resolve") else (pair,)))
    claim, resolved = (None, resolved) if settle is None else settle(mechanism, resolved)
    description = replace(mechanism.describe(), claim=None if claim is None else claim.to_dict())
    return description, tuple(SealedPair.seal(pair) if seal else pair for pair in resolved)


def parts_of(mechanism: Mechanism | bytes) -> dict[str, str]:
    """What a mechanism is made of here; `late_sources` tells what its runs import later."""
    parts = made_of(pickle.loads(mechanism) if isinstance(mechanism, bytes) else mechanism)
    _KNOWN.clear()
    _KNOWN.update(sys.modules)
    return parts


def late_sources() -> dict[str, str]:
    """Digests of the files of users that were imported since `parts_of` was called here, by their paths."""
    late = [(name, module) for name, module in list(sys.modules.items()) if name not in {"__main__", *_KNOWN}]
    files = [(name, getattr(module, "__file__", None)) for name, module in late]
    users = [file for name, file in files if isinstance(file, str) and not is_library(name, file)]
    return {os.path.abspath(file): digest_of_file(file) for file in users}


def describe_pickled(payload: bytes) -> Any:
    """`describe` in another process."""
    try:
        return describe(*pickle.loads(payload), seal=True)
    except DpAuditError:
        raise
    except BaseException as error:
        why = f"the mechanism or its pair could not be made: {type(error).__name__}: {error}"
        raise InvalidSpec(why) from None


def remember_code() -> None:
    """Takes down what functions and classes are now, in this project's modules and in those that read outputs."""
    ours = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "dpaudit"]
    spaces: list[Any] = [(module.__name__, vars(module)) for module in (*ours, builtins, np, json)]
    spaces += [
        (f"{name}.{key}", vars(value))
        for name, space in spaces[: len(ours)]
        for key, value in space.items()
        if isinstance(value, type) and value.__module__ == name
    ]
    for name, space in spaces:
        meant = {
            key: value
            for key, value in space.items()
            if (callable(value) or isinstance(value, property)) and key not in OFTEN_CHANGED
        }
        _AS_MADE.append((name, space, meant))
        for key, value in meant.items():
            if isinstance(value, FunctionType):
                _CODES.append((f"{name}.{key}", value, value.__code__))


def check_code() -> None:
    """Raises `UnsoundAudit` where one of them is another, as after `dpaudit.outputs.encode.encode_objects = ...`.

    A mechanism that knows of it can hide: what decides is that its outputs are counted in another process.
    """
    changed = [f"{name}.{key}" for name, space, meant in _AS_MADE for key in meant if space.get(key) is not meant[key]]
    changed += [name for name, function, code in _CODES if function.__code__ is not code]
    if changed:
        raise UnsoundAudit(f"the mechanism changed the code that runs it ({changed[0]}); there is no verdict")
