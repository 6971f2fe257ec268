"""Between a driver, its hosts and their processes: pipes, and memory that a host and its process see.

Through pipes go a nonce of the request, a length, and so many bytes. Outputs go through memory: the process fills it
and says how much; the host copies that out, says so, and then reads its copy: whatever changes the memory afterwards
changes nothing. What crosses there is JSON and arrays of numbers, never a pickle.
"""

import json
import mmap
import os
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Places
from dpaudit.outputs.canonical import Column, Columns, Outputs, Wanted
from dpaudit.processes.codec import arrays_at, layout, none_left, outputs_again, outputs_apart, step_of

SIZE = 1 << 23  # bytes of the memory; only what is used is ever there
CROSSES = 1 << 22  # bytes of batched outputs that cross at a time; those of a per-run mechanism cross cell by cell
WORD = 8  # bytes of a length, and what everything is aligned to
SIZES = struct.Struct("<QQ")  # bytes of a head, and of what stands behind it
LARGEST = 1 << 32  # bytes of one part, or of an answer; more is no pilot
NONCE, LENGTH = 16, 8  # bytes: a secret of the request, then how long the answer is
AT_ONCE = 1 << 9  # bytes of an answer that go with its head
FORKS = hasattr(os, "fork")  # not on Windows: no processes of ours there
TICK_S = 0.1  # how soon it is noticed that a process has ended without a word
MOST_STOPS = 20  # of a child at one request: it goes on after each, and is given up after that
KEPT, COUNT = b"k", b"c"  # run it in the process that is there; and count here what that sends
ANEW, HOLD = b"n", b"h"  # run it in a new process; or keep it for new ones
BEGIN, REST = b"b", b"r"  # an audit begins, here; or is over: its process ends

Array = npt.NDArray[Any]
HERE: "list[Mouth]" = []  # of a process whose outputs are counted elsewhere


def watch(parent: int, end: Callable[[], Any], look: Callable[[], Any] = lambda: None) -> None:
    """Ends this process when its parent is gone without a word: a pipe may be held open by others. Else it looks."""

    def until_gone() -> None:
        while os.getppid() == parent:
            time.sleep(TICK_S)
            look()
        end()

    threading.Thread(target=until_gone, name="dpaudit-parent", daemon=True).start()


def roused(child: int) -> bool:
    """Whether a child was stopped, or is held by a tracer; it goes on where it can. Where that is not told: False."""
    with suppress(OSError):
        told = sys.platform == "linux"
        stopped = told and (os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG) is not None or stat(child)[0] == "t")
        if stopped or not told:
            os.kill(child, signal.SIGCONT)
        return stopped
    return False


def stat(process: int | str) -> list[str]:
    """State ("T": stopped, "t": held by a tracer), parent, group, session, terminal and more; Linux alone tells them.

    Empty letters where there is no such process.
    """
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return [""] * 20


def pipe() -> tuple[int, int]:
    """A pipe away from the standard streams: where these are closed, a new one would stand in their place."""
    import fcntl

    ends = os.pipe()
    source, target = (end if end > 2 else fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    for end in {*ends} - {source, target}:
        os.close(end)
    os.set_blocking(target, False)
    return source, target


def framed(source: int, nonce: bytes, ended: Callable[[], bool]) -> bytes:
    """What stands behind the nonce; nothing where something else does, or whoever writes has ended."""
    head = read(source, NONCE + LENGTH, ended)
    size = 0 if head is None or head[:NONCE] != nonce else int.from_bytes(head[NONCE:], "little")
    return b"" if size > LARGEST else read(source, size, ended) or b""


def read(source: int, size: int, ended: Callable[[], bool] = lambda: False) -> bytes | None:
    """So many bytes; None where they will not come: at the end of the pipe, or once its writer has ended."""
    found, gone, there = bytearray(), False, select.poll()
    there.register(source, select.POLLIN)
    while len(found) < size:
        if there.poll(0 if gone else 1000.0 * TICK_S):
            part = os.read(source, min(size - len(found), 1 << 20))
            if not part:
                return None
            found += part
        elif gone:
            return None
        else:
            gone = ended()
    return bytes(found)


def write(target: int, nonce: bytes, content: bytes, ended: Callable[[], bool] = lambda: False) -> None:
    """All of it; raises `OSError` where nobody reads any more."""
    room = select.poll()
    room.register(target, select.POLLOUT)
    head = nonce + len(content).to_bytes(LENGTH, "little")
    for left in (memoryview(head + content[:AT_ONCE]), memoryview(content)[AT_ONCE:]):
        while left:
            if room.poll(1000.0 * TICK_S):
                left = left[os.write(target, left) :]
            elif ended():
                raise BrokenPipeError


class Garbled(ValueError):
    """What came out of the memory was not put there by code of ours."""


class Over(Exception):
    """The process has answered, and no outputs are to come."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer


class Mouth:
    """The end of the process: `crossing` says how many bytes are there, and returns once they have been copied."""

    def __init__(self, memory: mmap.mmap, crossing: Callable[[int], None]) -> None:
        self._space = memoryview(memory)
        self._crossing = crossing
        self._used = 0
        self._begun: int | None = None  # where the part begins that holds numbers, and may hold more

    def numbers(self, values: Array) -> None:
        """Doubles, which are all that the outputs are: a part without a head, which also holds those that follow."""
        self.flush(SIZE - SIZES.size - values.nbytes + 1)
        if self._begun is None:
            self._begun, self._used = self._used, self._used + SIZES.size
        self._add(np.ascontiguousarray(values).view(np.uint8).data)
        SIZES.pack_into(self._space, self._begun, 0, self._used - self._begun - SIZES.size)

    def put(self, head: Any, arrays: list[Array]) -> None:
        """One part: a head, and arrays behind it."""
        self._begun = None
        held = [np.ascontiguousarray(array) for array in arrays]
        text = json.dumps([head, layout(arrays)]).encode("ascii")
        text += b" " * (-len(text) % WORD)
        size = sum(array.nbytes + -array.nbytes % WORD for array in held)
        self._add(SIZES.pack(len(text), size) + text)
        for array in held:
            self._add(array.reshape(-1).view(np.uint8).data)
            self._add(bytes(-array.nbytes % WORD))

    def flush(self, least: int = 1) -> None:
        """Lets cross what is there, if it is so much."""
        if self._used >= least:
            self._crossing(self._used)
            self._used, self._begun = 0, None

    def _add(self, content: bytes | memoryview) -> None:
        while (end := self._used + len(content)) > SIZE:
            room = SIZE - self._used
            self._space[self._used :] = content[:room]
            content, self._used = content[room:], SIZE
            self.flush()
        self._space[self._used : end] = content
        self._used = end


class Ear:
    """The end of the host: `crossed` waits for what the process says, a number of bytes or its answer.

    What has crossed lies in `own`, memory of the host alone, until the next part is asked for; longer where it `keeps`.
    """

    def __init__(
        self, memory: mmap.mmap, own: mmap.mmap, crossed: Callable[[], bytes], copied: Callable[[], None]
    ) -> None:
        self._memory, self._own, self._crossed, self._copied = memoryview(memory), memoryview(own), crossed, copied
        self._held, self.keeps = self._own[:0], False

    def part(self) -> tuple[Any, list[Array]]:
        """The next part; the head of doubles alone is None.

        Raises `Over` where the process has answered, `Garbled` or an error of values where it sent something else.
        """
        length, size = SIZES.unpack(self._take(SIZES.size))
        text = str(self._take(length), "ascii")
        whole = self._take(size)
        body = memoryview(bytes(whole)) if self.keeps else whole
        if not text:
            return None, [np.frombuffer(body, np.float64)]
        head, told = json.loads(text)
        arrays = arrays_at(0, body, told, WORD)
        if any(array.dtype.itemsize > WORD or not array.dtype.isnative for array in arrays):
            raise Garbled
        return head, arrays

    def answer(self) -> bytes:
        """What the process says once all its outputs have crossed."""
        try:
            while not self._held:
                self._more()
        except Over as over:
            return over.answer
        raise Garbled

    def _take(self, size: int) -> memoryview:
        if size > LARGEST:
            raise Garbled
        if size and not self._held:
            self._more()
        whole, self._held = self._held[:size], self._held[size:]
        if len(whole) == size:
            return whole
        parts = bytearray(whole)
        while missing := size - len(parts):
            self._more()
            parts += self._held[:missing]
            self._held = self._held[missing:]
        return memoryview(parts)

    def _more(self) -> None:
        said = self._crossed()
        if len(said) != WORD:
            raise Over(said)
        size = int.from_bytes(said, "little")
        if not 0 < size <= SIZE:
            raise Garbled
        self._held = self._own[:size]
        self._held[:] = self._memory[:size]
        self._copied()


class Sending:
    """A sink of the process's end: outputs go as they come."""

    def __init__(self, runs: int, wanted: Wanted, *, tallies: bool, mouth: Mouth) -> None:
        self.sides: Bools = np.empty(runs, np.bool_)
        self.wanted, self.tallies, self._mouth = wanted, tallies, mouth

    def fill(self, start: int, outputs: Outputs, numbers: Places | None = None) -> None:
        """Outputs of a per-run mechanism."""
        self._send(outputs, [] if numbers is None else [numbers])
        self._mouth.flush()

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        """Outputs of one call of a batched mechanism."""
        self._send(outputs, [])
        self._mouth.flush(CROSSES)

    def _send(self, outputs: Outputs, arrays: list[Array]) -> None:
        tallied, held, matrix = len(arrays), outputs.columns, None
        plain = held.get(()) if len(held) == 1 and type(held) is dict and outputs.complete and not arrays else None
        odd = outputs.labels or outputs.notes or outputs.unseen or plain is None or plain.codes is not None
        if plain is not None and not odd and plain.values.dtype == np.float64 and plain.values.nbytes < CROSSES:
            return self._mouth.numbers(plain.values)
        if isinstance(held, Columns):
            matrix = [[list(path), place] for path, place in held.places.items()]
            outputs = replace(outputs, columns=held.loose)
            arrays.append(held.matrix)
        self._mouth.put([tallied, matrix, outputs_apart(outputs, arrays)], arrays)


def received(head: Any, arrays: list[Array]) -> tuple[Outputs, Places | None]:
    """What `Sending` sent, checked: raises `Garbled`, or any error of values, where it is something else."""
    if head is None:
        return Outputs(len(arrays[0]), {(): Column(arrays[0])}), None
    tallied, matrix, value = head
    left = iter(arrays)
    numbers = next(left) if tallied else None
    wide = None if matrix is None else next(left)
    outputs = outputs_again(value, left)
    none_left(left)
    if outputs.runs < 0 or any(
        each.values.ndim != 1 or (each.codes is not None and each.codes.dtype != np.uint64)
        for each in outputs.columns.values()
    ):
        raise Garbled
    if numbers is not None and (
        numbers.ndim != 1
        or numbers.dtype != np.intp
        or not outputs.runs
        or not 0 <= numbers.min() <= numbers.max() < outputs.runs
    ):
        raise Garbled
    if wide is not None:
        places = {tuple(map(step_of, path)): int(place) for path, place in matrix}
        if wide.shape != (len(places), outputs.runs) or sorted(places.values()) != list(range(len(places))):
            raise Garbled
        outputs = replace(outputs, columns=Columns(places, wide, outputs.columns))
    return outputs, numbers
