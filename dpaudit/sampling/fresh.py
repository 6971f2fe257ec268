"""Runs in fresh processes: each imports the mechanism anew and makes its first runs, whatever others have kept.

A few fresh interpreters load this package and nothing of the user's; each forks a process for every task, which
opens the mechanism, runs it, and ends. So many processes cost little more than the import of the mechanism.
"""

from __future__ import annotations

import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dpaudit.errors import DpAuditError, UnsoundAudit
from dpaudit.sampling import guard, tasks
from dpaudit.sampling.outputs import Outputs
from dpaudit.sampling.streams import Shard
from dpaudit.sampling.worker import Job

INTERPRETERS = 2  # fresh ones, each with a hash seed of its own; the processes are shared among them
START = "import sys; sys.path[:] = {path!r}; from dpaudit.sampling.fresh import serve; serve()"
HEADER = 8  # bytes that tell how long an answer is


@dataclass(frozen=True, slots=True)
class FreshTask:
    """Runs of one process: on these sides (True: second), in this order, with the rng of this shard."""

    shard: Shard
    sides: tuple[bool, ...]


def run_fresh(job: Job, work: Sequence[FreshTask], *, at_once: int = 1) -> list[Outputs]:
    """The outputs of each task, made in a process of its own; the job carries its mechanism as a payload.

    Raises the error that a mechanism's process reported, and `UnsoundAudit` where a process was lost twice.
    """
    found: dict[int, Outputs] = {}
    for _ in range(2):  # a lost process is run once more, with the same seed, as any worker is
        missing = [place for place in range(len(work)) if place not in found]
        shares = [missing[start::INTERPRETERS] for start in range(min(INTERPRETERS, len(missing)))]
        servers = [_Server() for _ in shares]
        with ThreadPoolExecutor(max(1, min(at_once, INTERPRETERS))) as pool:
            try:
                answers = pool.map(lambda server, share: server.ask(job, [work[k] for k in share]), servers, shares)
                for share, answer in zip(shares, answers, strict=True):
                    found.update(zip(share, answer, strict=False))
            finally:
                for server in servers:
                    server.close()
    if len(found) < len(work):
        raise UnsoundAudit(
            "a fresh process ended twice before its runs were done: the mechanism ended it, hung past "
            "run_timeout_s or ran out of memory; no verdict"
        )
    return [found[place] for place in range(len(work))]


class _Server:
    """A fresh interpreter that forks a process for each task."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, job: Job, work: list[FreshTask]) -> list[Outputs]:
        """The outputs of the tasks up to the first process that was lost."""
        with self._lock:
            if self._closed:
                return []
            self._process = subprocess.Popen(
                [sys.executable, "-c", START.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that what a mechanism starts can be ended with it
            )
        out, _ = self._process.communicate(pickle.dumps((job, work)))
        answers = []
        while len(out) > HEADER:
            size = int.from_bytes(out[:HEADER], "little")
            answers.append(pickle.loads(out[HEADER : HEADER + size]))
            out = out[HEADER + size :]
        for answer in answers:
            if isinstance(answer, tasks.Done):
                raise tasks.as_error(answer)
        return answers

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._process is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)


def serve() -> None:
    """What a fresh interpreter does: reads the tasks, forks a process for each, and writes down what it answers."""
    import cloudpickle  # noqa: F401  what every process needs is loaded once
    import joblib  # noqa: F401
    import numpy.ma  # noqa: F401

    given, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    job, work = pickle.load(given)  # holds the mechanism as bytes only
    given.close()
    guard.leave_terminal()  # a mechanism may print or ask
    gc.freeze()  # so that a fork's collector touches, and copies, none of this
    for task in work:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _answer(job, task, os.fdopen(writer, "wb"))
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        if not answer:
            break
        out.write(len(answer).to_bytes(HEADER, "little") + answer)
    out.close()


def _answer(job: Job, task: FreshTask, out: BinaryIO) -> None:
    """Runs one task in this process, and ends it."""
    process = os.getpid()
    random.seed()
    np.random.seed()  # what numpy does on import: a fork would share it
    try:
        answer: Any = _outputs(job, task)
    except DpAuditError as error:
        answer = tasks.Done(error=(type(error).__name__, str(error)))
    finally:
        if os.getpid() != process:
            os._exit(1)  # a mechanism forked and came back twice
    with out:
        pickle.dump(answer, out)
    os._exit(0)


def _outputs(job: Job, task: FreshTask) -> Outputs:
    sides: npt.NDArray[np.bool_] = np.array(task.sides, np.bool_)
    with guard.alarms(job.run_timeout_s is not None):
        worker = tasks.worker_for(job)
        found = worker.one_by_one(task.shard.pair, sides, task.shard.streams(job.seed)[1])
    guard.disarm()
    return found
