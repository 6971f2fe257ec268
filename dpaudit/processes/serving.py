"""What a host does: an interpreter of ours that runs nothing of the user's, and forks the processes that do.

A process ends with its host, and a host with its driver, in every phase. What a process has started ends with it: by
its group, and on Linux whatever session it has gone to, as all that it leaves behind becomes a child of its host.
The host also ends a run that is past its time limit, whatever the process has done to its alarms.
"""

import ctypes
import gc
import mmap
import os
import pickle
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from dpaudit.processes import pipes
from dpaudit.processes.frames import SIZE, WORD, WRITERS, FrameReader, FrameWriter
from dpaudit.processes.pipes import Request

PDEATHSIG, DUMPABLE, CHILD_SUBREAPER = 1, 4, 36  # of prctl
ASLEEP_S = 1.0  # a driver is stopped for so long before it is woken: where all of a job is stopped, its host is too
ENDING_S = 5.0  # for what a process has left to end, once it is killed

_LINE: list[Any] = []  # of a process, while it answers: where to, and the nonce
_ASKED: list[bytes] = []  # of a host: secret and content of the request; what it forks is to have neither
_HELD: list[bytes] = []
_HERE: list[Any] = []  # of a host: folder, import path and environment of the driver when the audit began


def serve(asked: int, replies: int, driver: int) -> None:
    """What a host does: reads requests, has its process answer them, and hands the answers on."""
    import resource

    process: list[_Process] = []

    def end(*_: Any) -> NoReturn:
        for each in process:
            each.end()
        _end_left()
        os._exit(0)

    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, end)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # it holds the data
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # both go from a driver to what it starts
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _prctl(CHILD_SUBREAPER, 1)
    _prctl(DUMPABLE, 0)  # no process of the same user reads or writes its memory, or its pipes by /proc
    _prctl(PDEATHSIG, signal.SIGCONT)  # no more: a driver may ask from a thread that ends; but it may have been stopped
    look = _waking(driver, process)
    pipes.watch(driver, lambda: os.kill(os.getpid(), signal.SIGTERM), look)  # no other thread is in the midst of it
    try:
        _serve(asked, replies, process)
    finally:  # with a driver that is gone in the midst of an answer, too
        end()


def _serve(asked: int, replies: int, process: "list[_Process]") -> None:
    import cloudpickle  # noqa: F401  what every process needs is loaded once
    import joblib  # noqa: F401
    import numpy.ma  # noqa: F401

    import dpaudit.events  # noqa: F401
    from dpaudit.processes.counting import counted
    from dpaudit.processes.tasks import remember_code

    remember_code()
    gc.freeze()  # so that a fork's collector touches, and copies, none of this
    while kind := _taken(asked):
        if kind in (Request.HOLD, Request.BEGIN):
            (_HELD if kind == Request.HOLD else _HERE)[:] = _ASKED[1:]
            continue
        if kind == Request.REST:
            for each in process:
                each.end()
            for left in (process, _HELD, _HERE):
                left.clear()
            pipes.write(replies, _ASKED[0], Request.REST)
            continue
        if not process:
            _Process(asked, replies, process)
        answer = (counted if kind == Request.COUNT else _Process.ask)(process[0], _ASKED[1])
        if kind == Request.RUN_FRESH or process[0].under_way:
            process[0].end()
            process.clear()
        pipes.write(replies, _ASKED[0], answer)


def _taken(asked: int) -> bytes:
    """The kind of the next request, which `_ASKED` holds; nothing where there is no more."""
    head = pipes.read(asked, pipes.NONCE + pipes.LENGTH)
    request = b"" if head is None else pipes.read(asked, int.from_bytes(head[pipes.NONCE :], "little")) or b""
    _ASKED[:] = [(head or b"")[: pipes.NONCE], request[1:]]
    return request[:1]


def _waking(driver: int, processes: "list[_Process]") -> Callable[[], None]:
    """A look at the driver: it goes on where a mechanism must have stopped it.

    Ctrl-Z is left alone: what has no terminal was not stopped by one. So is a debugger that no mechanism started.
    """
    ticks = stops = 0

    def look() -> None:
        nonlocal ticks, stops
        state, *_, terminal = pipes.stat(driver)[:5]
        tracer = _tracer(driver) if state == "t" else 0
        ticks = ticks + 1 if tracer or (state == "T" and terminal == "0") else 0
        if ticks * pipes.TICK_S < ASLEEP_S:
            return
        ticks, stops = 0, stops + 1
        ended = [each.id for each in processes if stops > pipes.MOST_STOPS] + [tracer] * (tracer > 0)
        with suppress(OSError):
            for each in ended:
                os.kill(each, signal.SIGKILL)
        with suppress(OSError):
            os.kill(driver, signal.SIGCONT)

    return look


def _tracer(process: int) -> int:
    """Who traces it, where that descends from this host; else 0."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path(f"/proc/{process}/status").read_text(errors="replace").splitlines()
        tracer = last = int(next(each for each in lines if each.startswith("TracerPid:")).split()[1])
        while last > 1 and last != os.getpid():
            last = int(pipes.stat(last)[1])
        return tracer if last == os.getpid() else 0
    return 0


def _prctl(option: int, value: int) -> bool:
    return sys.platform == "linux" and not int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))


def _end_left() -> None:
    """Ends all children of this host, and those that become its children by that."""
    until = time.monotonic() + ENDING_S
    with suppress(ChildProcessError):  # there are none
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
            for file in Path("/proc/self/task").glob("*/children"):
                for child in file.read_text().split():
                    with suppress(OSError):  # it runs as somebody else
                        os.kill(int(child), signal.SIGKILL)
            time.sleep(0.001)


class _Process:
    """A fork of the host, where a mechanism runs."""

    def __init__(self, asked: int, replies: int, known: "list[_Process]") -> None:
        theirs_in, self._to = pipes.pipe()
        self._from, theirs_out = pipes.pipe()
        self._beat = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")  # when it is to be ended; how often it answered
        self._memory = mmap.mmap(-1, SIZE)
        self.nonce, self.under_way = b"", False  # of a request whose answer has not been heard
        host = os.getpid()
        self.id = os.fork()
        if self.id == 0:
            _ASKED.clear()
            for each in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(each, signal.SIG_DFL)
            os.setsid()  # so that what a mechanism starts can be ended with it
            _prctl(DUMPABLE, 1)
            if not _prctl(PDEATHSIG, signal.SIGKILL):
                pipes.watch(host, lambda: os._exit(1))
            if os.getppid() != host:  # it had ended before anybody watched
                os._exit(1)
            for end in (asked, replies, self._to, self._from):
                os.close(end)
            _work(theirs_in, theirs_out, self._beat, self._memory)
        self._over, self._stops, self._asked = False, 0, 0
        self._own = mmap.mmap(-1, SIZE)  # gone with it: no later process finds what it sent
        known.append(self)
        os.close(theirs_in)
        os.close(theirs_out)

    def ask(self, content: bytes) -> bytes:
        """The answer; nothing where the process ended, hung past its time limit, or answered out of turn."""
        return self.receive() if self.send(content) else b""

    def send(self, content: bytes) -> bool:
        """A request; False where nobody takes it."""
        self.nonce, self.under_way = os.urandom(pipes.NONCE), True
        self._beat[0] = self._stops = 0
        self._asked += 1
        try:
            pipes.write(self._to, self.nonce, content, self._gone)
        except OSError:
            return False
        return True

    def receive(self) -> bytes:
        """What it says next to this request; nothing where no more will come."""
        heard = pipes.framed(self._from, self.nonce, self._gone)
        self.under_way = len(heard) <= WORD  # outputs, or nothing
        return heard

    def reader(self) -> FrameReader:
        """What its outputs come out of, before its answer."""
        return FrameReader(
            self._memory, self._own, self.receive, lambda: pipes.write(self._to, self.nonce, b"", self._gone)
        )

    def _gone(self) -> bool:
        """Whether no more is to be expected of it; it goes on where it was stopped."""
        while not self._over and (ended := os.waitpid(-1, os.WNOHANG)[0]):  # others that became children of the host
            self._over = ended == self.id
        if self._over:
            return True
        self._stops += pipes.roused(self.id)
        late = 0.0 < self._beat[0] < time.monotonic()
        return late or self._beat[1] >= self._asked or self._stops > pipes.MOST_STOPS

    def end(self) -> None:
        """Ends the process, what it has started in its group, and the programs of commands, which have groups."""
        from dpaudit.mechanisms.command import end_groups

        for end in (self._to, self._from):
            with suppress(OSError):
                os.close(end)
        with suppress(OSError):
            os.killpg(self.id, signal.SIGKILL)
        if not self._over:
            with suppress(OSError):
                os.kill(self.id, signal.SIGKILL)  # before it had a group
                os.waitpid(self.id, 0)
            self._over = True
        end_groups()
        _end_left()


def _work(asked: int, replies: int, beat: "memoryview[float]", memory: mmap.mmap) -> NoReturn:
    """What a process does: one request after the other; it ends at once, whatever threads a mechanism has left."""
    import numpy as np

    from dpaudit.processes import tasks
    from dpaudit.running import guard

    me = os.getpid()
    guard.BEATS[:] = [beat]

    def crossing(size: int) -> None:
        if os.getpid() != me:
            os._exit(1)
        pipes.write(replies, _LINE[1], size.to_bytes(WORD, "little"))
        if pipes.read(asked, pipes.NONCE + pipes.LENGTH) != _LINE[1] + bytes(pipes.LENGTH):
            os._exit(1)

    WRITERS[:] = [FrameWriter(memory, crossing)]
    for content in _HERE:
        folder, sys.path[:], environment = pickle.loads(content)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
    random.seed()
    np.random.seed()  # what numpy does on import: a fork would share it
    code = 1
    try:
        for content in _HELD:
            tasks.hold(pickle.loads(content))
        while (head := pipes.read(asked, pipes.NONCE + pipes.LENGTH)) is not None:
            request = pipes.read(asked, int.from_bytes(head[pipes.NONCE :], "little")) or b""
            _LINE[:] = [(asked, replies), head[: pipes.NONCE]]
            del head  # nobody but `_LINE` holds the nonce
            answer = tasks.respond(*pickle.loads(request))
            if os.getpid() != me:
                break  # a mechanism forked and came back twice: only the original may answer
            pipes.write(replies, _LINE[1], answer)
            _LINE.clear()
            beat[1] += 1.0  # if the host has none by now, it went elsewhere
        code = 0
    finally:
        if os.getpid() == me:
            with suppress(OSError):
                os.killpg(0, signal.SIGKILL)
        os._exit(code)


def _hang_up() -> None:
    """A fork that a mechanism makes has neither the line nor the nonce."""
    for end in _LINE[0] if _LINE else ():
        with suppress(OSError):
            os.close(end)
    _LINE.clear()


if pipes.FORKS:
    os.register_at_fork(after_in_child=_hang_up)
