"""Counting in a host: the process of a mechanism runs it and sends outputs; coins, events and counts are here.

Nothing of a user's ever runs in a host. What a process sends is read as numbers and text, checked, and counted by the
sides that the host has drawn itself; anything else is a lost process, and no verdict.
"""

import io
import pickle
import time
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from dpaudit.base.arrays import Bytes
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.processes import tasks
from dpaudit.processes.frames import (
    Done,
    EndOfStream,
    FrameReader,
    ProtocolError,
    TaskFailed,
    answer,
    answered,
    received,
)
from dpaudit.running.pieces import Piece
from dpaudit.running.streams import Shard, calls, flips, sides_of
from dpaudit.running.watch import Reducer, added, begun

MOST_IN_A_BATCH = 1 << 40  # runs; what a mechanism says of itself
_SPACE: list[Bytes] = [np.empty(0, np.uint8)]


class Forked(Protocol):
    """A process that a host has forked."""

    def send(self, content: bytes) -> bool:
        """A request to it; False where nobody takes it."""

    def reader(self) -> FrameReader:
        """What its outputs come out of."""


def counted(process: Forked, content: bytes) -> bytes:
    """The answer to a request for counts; nothing where the process ended, or sent what no code of ours sends."""
    import cloudpickle

    try:
        _, work, threads, payloads = _OurOwn(io.BytesIO(content)).load()
    except pickle.UnpicklingError as error:
        return answer([Done(error=(InvalidSpec.__name__, str(error)))])
    asked = [
        (job, task, getattr(reducer, "wanted", None), reducer is not None, *(replace(p, counts=None) for p in part))
        for job, task, reducer, *part in work
    ]
    if not process.send(cloudpickle.dumps((tasks.feed_task, asked, threads, payloads))):
        return b""
    reader, cpu, results = process.reader(), time.thread_time(), []
    try:
        try:
            for job, task, reducer, *part in work:
                results.append(tuple((shard, _shard(reader, job.seed, shard, reducer, *part)) for shard in task))
            content = reader.answer()
        except EndOfStream as end:  # before all outputs: only an error may
            content = end.answer
        replies = answered(content)
        if failed := [each for each in replies if isinstance(each, TaskFailed)]:
            return answer(failed)
        if broken := [Done(error=done.error) for done in replies if done.error is not None]:
            return answer(broken)
        partly = [each for results in results for _, each in results if isinstance(each, Piece)]
        if len(replies) == 1 and replies[0].results:
            results = [_so_far(*work[0], *replies[0].results[0], *results)]
        elif partly or not len(replies) == len(results) == len(work) or any(done.results for done in replies):
            return b""
    except DpAuditError as error:
        return answer([Done(error=(type(error).__name__, str(error)))])
    except Exception:  # a lie of any kind; to read it must never end the host
        return b""
    spent = (time.thread_time() - cpu) / len(replies)
    return answer(
        [replace(done, results=each, cpu_s=done.cpu_s + spent) for each, done in zip(results, replies, strict=True)]
    )


def _so_far(
    job: Any, task: tuple[Shard, ...], reducer: Any, part: Piece, shard: Shard, so_far: Piece, counts: Any = None
) -> Any:
    """The shard after a part: counts are those of this host, stream and outputs to go on with those of the process."""
    whole = part.stop == shard.runs or task != (shard,) or not isinstance(so_far, Piece)
    if whole or so_far.done != part.stop or so_far.counts is not None or (counts is None) != (reducer is None):
        raise ProtocolError
    if reducer is None:
        return ((shard, so_far),)
    ((_, mine),) = counts
    if not isinstance(mine, Piece):
        raise ProtocolError
    return ((shard, replace(mine, stream=so_far.stream)),)


class _OurOwn(pickle.Unpickler):
    """Loads nothing but what is the project's or numpy's: a class of a user's own would run here."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in ("dpaudit", "numpy", "builtins", "functools", "_codecs"):
            raise pickle.UnpicklingError(
                f'what is counted is a {module}.{name}, which is not of dpaudit\'s own; it needs isolation = "none"'
            )
        return super().find_class(module, name)


def _shard(reader: FrameReader, seed: int, shard: Shard, reducer: Reducer | None, part: Piece | None = None) -> Any:
    """The counts of a shard, or its outputs where there is no reducer, by sides that are drawn here; or it so far."""
    coins, _ = shard.streams(seed)
    if len(_SPACE[0]) < 2 * shard.runs:
        _SPACE[0] = np.empty(2 * shard.runs, np.uint8)
    sink = begun(shard, reducer, _SPACE[0])
    reader.keeps = reducer is None
    (per_run, batch, size), _ = reader.part()
    if per_run is True:
        sink.sides[:] = sides_of(flips(coins, shard.runs), shard.runs)
        done, stop = (part.done, part.stop) if part and reducer else (0, shard.runs)
        while done < stop:
            outputs, numbers = received(*reader.part())
            runs = outputs.runs if numbers is None else len(numbers)
            if not 0 < runs <= stop - done or (numbers is not None and not sink.tallies):
                raise ProtocolError
            sink.fill(done, outputs, numbers)
            done += runs
        return added(sink, reducer, part, Piece(stop) if stop < shard.runs else None)
    if not all(type(each) is int and least <= each <= MOST_IN_A_BATCH for each, least in ((batch, 1), (size, 0))):
        raise ProtocolError
    planned = calls(coins, shard.runs, batch, size)
    for start, runs, side in planned:
        head, arrays = reader.part()
        outputs, numbers = received(head, arrays)
        if head is not None and outputs.runs == runs and numbers is None:
            sink.call(start, outputs, side)
            continue
        sink.called(start, runs, side)
        while head is None and runs < outputs.runs:  # numbers of several calls, which are looked at together
            sink.called(*(each := next(planned)))
            runs += each[1]
        if outputs.runs != runs or numbers is not None:
            raise ProtocolError
        sink.fill(start, outputs)
    return sink.result()
