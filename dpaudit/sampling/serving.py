"""What a host does: an interpreter of ours that runs nothing of the user's, and forks the processes that do.

A process ends with its host, and a host with its driver, in every phase; what a process has started ends with it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import random
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

from dpaudit.sampling.pipes import ANEW, BEGIN, HOLD, LENGTH, NONCE, REST, framed, pipe, read, watch, write

PDEATHSIG = 1  # of prctl

_LINE: list[Any] = []  # of a process, while it answers: where to, and the nonce
_HELD: list[bytes] = []
_HERE: list[Any] = []  # of a host: folder, import path and environment of the driver when the audit began


def serve(asked: int, told: int, driver: int) -> None:
    """What a host does: reads requests, has its process answer them, and hands the answers on."""
    process: list[_Process] = []

    def end(*_: Any) -> NoReturn:
        for each in process:
            each.end()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # both go from a driver to what it starts
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    watch(driver, lambda: os.kill(os.getpid(), signal.SIGTERM))  # so that no other thread is in the midst of it
    import cloudpickle  # noqa: F401  what every process needs is loaded once
    import joblib  # noqa: F401
    import numpy.ma  # noqa: F401

    import dpaudit.sampling.answers  # noqa: F401

    gc.freeze()  # so that a fork's collector touches, and copies, none of this
    while (head := read(asked, NONCE + LENGTH)) is not None:
        request = read(asked, int.from_bytes(head[NONCE:], "little")) or b""
        kind, content = request[:1], request[1:]
        if kind in (HOLD, BEGIN):
            (_HELD if kind == HOLD else _HERE)[:] = [content]
            continue
        if kind == REST:
            for each in process:
                each.end()
            for left in (process, _HELD, _HERE):
                left.clear()
            write(told, head[:NONCE], REST)
            continue
        if not process:
            _Process(asked, told, process)
        answer = process[0].ask(content)
        if kind == ANEW or not answer:
            process[0].end()
            process.clear()
        write(told, head[:NONCE], answer)
    end()


class _Process:
    """A fork of the host, where a mechanism runs."""

    def __init__(self, asked: int, told: int, known: list[_Process]) -> None:
        theirs_in, self._to = pipe()
        self._from, theirs_out = pipe()
        host = os.getpid()
        self.id = os.fork()
        if self.id == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()  # so that what a mechanism starts can be ended with it
            if sys.platform != "linux" or ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL):
                watch(host, lambda: os._exit(1))
            if os.getppid() != host:  # it had ended before anybody watched
                os._exit(1)
            for end in (asked, told, self._to, self._from):
                os.close(end)
            _work(theirs_in, theirs_out)
        self._over = False
        known.append(self)
        os.close(theirs_in)
        os.close(theirs_out)

    def ask(self, content: bytes) -> bytes:
        """The answer; nothing where the process ended, or answered out of turn."""
        nonce = os.urandom(NONCE)
        try:
            write(self._to, nonce, content)
        except OSError:
            return b""
        return framed(self._from, nonce, self._ended)

    def _ended(self) -> bool:
        self._over = self._over or os.waitpid(self.id, os.WNOHANG)[0] != 0
        return self._over

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
        end_groups()


# --- the process ------------------------------------------------------------------------------------------------


def _work(asked: int, told: int) -> NoReturn:
    """What a process does: one request after the other; it ends at once, whatever threads a mechanism has left."""
    import numpy as np

    from dpaudit.sampling import answers, tasks

    me = os.getpid()
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
        while (head := read(asked, NONCE + LENGTH)) is not None:
            request = read(asked, int.from_bytes(head[NONCE:], "little")) or b""
            _LINE[:] = [(asked, told), head[:NONCE]]
            del head  # nobody but `_LINE` holds the nonce
            answer = answers.made(*pickle.loads(request))
            if os.getpid() != me:
                break  # a mechanism forked and came back twice: only the original may answer
            write(told, _LINE[1], answer)
            _LINE.clear()
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


os.register_at_fork(after_in_child=_hang_up)
