"""Processes that run mechanisms, each forked by an interpreter of ours that runs nothing of the user's: its host.

Only the host holds pipes to the driver. It hands requests to its process and takes answers back, so that whatever a
mechanism leaves behind (threads, forks, daemons that hold every pipe open) the driver waits for an answer or for the
end of a process, never for the end of a pipe; and so that a process ends with its host, and a host with its driver,
in every phase. What comes back is bytes that `answers` reads: a mechanism can spoil its answer, and nothing else.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, NoReturn

NONCE, LENGTH = 16, 8  # bytes: a secret of the request, then how long the answer is
LARGEST = 1 << 32  # bytes of an answer; more is no pilot
TICK_S = 0.1  # how soon it is noticed that a process has ended without a word
PATIENCE_S = 5.0  # for a host that was asked to end
PDEATHSIG = 1  # of prctl
KEPT, ANEW, HOLD = b"k", b"n", b"h"  # run it in the process that is there, or in a new one; or keep it for new ones
BEGIN, REST = b"b", b"r"  # an audit begins, here; or is over: its process ends
START = "import sys; sys.path[:] = {path!r}; from dpaudit.sampling.host import serve; serve{pipes!r}"
CHANGING = "PYTEST_CURRENT_TEST"  # the one variable that no library reads at its start, and that is new for every test
MOST_RESTING = 4

_LINE: list[Any] = []  # of a process, while it answers: where to, and the nonce
_HELD: list[bytes] = []
_HERE: list[Any] = []  # of a host: folder, import path and environment of the driver when the audit began
_RESTING: list[Host] = []  # of a driver: hosts without a process, for its next audit; they hold nothing of the last
_LOCK = threading.Lock()


class Lost(Exception):
    """A process, or its host, ended without an answer."""


def ready(*, silent: bool, environment: Mapping[str, str]) -> Host:
    """A host that rests, or a new one: what a mechanism does must not depend on which."""
    made_for = _made_for(silent, environment)
    with _LOCK:
        for host in [each for each in reversed(_RESTING) if each.made_for == made_for]:
            _RESTING.remove(host)
            if host.begins({**os.environ, **environment}):
                return host
            host.close()
    return Host(silent=silent, environment=environment)


def rest(host: Host) -> None:
    """Keeps a host for the next audit of this driver, in place of the one that has rested longest."""
    if not host.rests():
        host.close()
        return
    with _LOCK:
        _RESTING.append(host)
        late = [_RESTING.pop(0) for _ in range(len(_RESTING) - MOST_RESTING)]
    for each in late:
        each.close()


def _made_for(silent: bool, environment: Mapping[str, str]) -> tuple[Any, ...]:
    """What cannot be changed in an interpreter: its driver, where it prints, and what it may have read at its start."""
    given = {**os.environ, **environment}
    given.pop(CHANGING, None)
    return os.getpid(), _user(), [] if silent else [_stream(1), _stream(2)], given


def _user() -> tuple[Any, ...]:
    return os.geteuid(), os.getuid(), os.getegid(), os.getgid(), os.getgroups()


def _stream(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:  # closed
        return None
    return found.st_dev, found.st_ino


def _path() -> list[str]:
    """Imports look at no other entry."""
    return [each for each in sys.path if isinstance(each, str)]


@atexit.register
def _end_resting() -> None:
    ours = [host for host in _RESTING if host.made_for[0] == os.getpid()]  # a fork of the driver leaves them alone
    for host in ours:
        host.end()
    with suppress(KeyboardInterrupt):  # they end without being waited for
        for host in ours:
            host.close()


class Host:
    """The driver's end: one request, one answer, in turn."""

    def __init__(self, *, silent: bool, environment: Mapping[str, str]) -> None:
        self.holds: set[str] = set()  # keys of jobs whose payload its process has
        self.made_for = _made_for(silent, environment)
        theirs_in, self._to = _pipe()
        self._from, theirs_out = _pipe()
        stream = subprocess.DEVNULL if silent else None
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START.format(path=_path(), pipes=(theirs_in, theirs_out, os.getpid()))],
                stdin=subprocess.DEVNULL,  # a mechanism may ask, or print
                stdout=stream,
                stderr=stream,
                pass_fds=(theirs_in, theirs_out),
                start_new_session=True,
                env={**os.environ, **environment},
            )
        except BaseException:  # no descriptor is left, and a host whose start was interrupted finds its pipe closed
            os.close(self._to)
            os.close(self._from)
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._nonce = b""  # of the request that is under way

    def fileno(self) -> int:
        """What is ready when the answer is there, or the host gone."""
        return self._from

    def send(self, kind: bytes, content: bytes) -> None:
        """A request; raises `Lost` where nobody is there to read it."""
        self._nonce = os.urandom(NONCE)
        try:
            _write(self._to, self._nonce, kind + content)
        except OSError:
            raise Lost("a host ended") from None

    def receive(self) -> bytes:
        """The answer to the request; raises `Lost` where there will be none."""
        answer = _answer(self._from, self._nonce, lambda: self._process.poll() is not None)
        if not answer:
            raise Lost("a process ended, or answered out of turn")
        self._nonce = b""
        return answer

    def rests(self) -> bool:
        """Whether its process has ended, with all that it has started, and the host is there; it holds no job then."""
        self.holds.clear()
        if self._nonce:  # it is at work for an audit that broke off: nobody waits for that
            return False
        with suppress(Lost):
            self.send(REST, b"")
            until = time.monotonic() + PATIENCE_S
            return bool(_answer(self._from, self._nonce, lambda: time.monotonic() > until))
        return False

    def begins(self, environment: Mapping[str, str]) -> bool:
        """Takes over where this process is now; False where the host has ended."""
        with suppress(Lost, OSError):  # of a folder that is gone
            self.send(BEGIN, pickle.dumps((os.getcwd(), _path(), dict(environment))))
            self._nonce = b""
            return self._process.poll() is None
        return False

    def end(self) -> None:
        """Asks it to end, with all that its process has started; `close` waits until it has."""
        self._process.terminate()

    def close(self) -> None:
        """Ends it."""
        self.end()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._to, self._from):
            with suppress(OSError):
                os.close(pipe)
        self._to = self._from = -1


# --- the host ---------------------------------------------------------------------------------------------------


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
    _watch(driver, lambda: os.kill(os.getpid(), signal.SIGTERM))  # so that no other thread is in the midst of it
    import cloudpickle  # noqa: F401  what every process needs is loaded once
    import joblib  # noqa: F401
    import numpy.ma  # noqa: F401

    import dpaudit.sampling.answers  # noqa: F401

    gc.freeze()  # so that a fork's collector touches, and copies, none of this
    while (head := _read(asked, NONCE + LENGTH)) is not None:
        request = _read(asked, int.from_bytes(head[NONCE:], "little")) or b""
        kind, content = request[:1], request[1:]
        if kind in (HOLD, BEGIN):
            (_HELD if kind == HOLD else _HERE)[:] = [content]
            continue
        if kind == REST:
            for each in process:
                each.end()
            for left in (process, _HELD, _HERE):
                left.clear()
            _write(told, head[:NONCE], REST)
            continue
        if not process:
            _Process(asked, told, process)
        answer = process[0].ask(content)
        if kind == ANEW or not answer:
            process[0].end()
            process.clear()
        _write(told, head[:NONCE], answer)
    end()


class _Process:
    """A fork of the host, where a mechanism runs."""

    def __init__(self, asked: int, told: int, known: list[_Process]) -> None:
        theirs_in, self._to = _pipe()
        self._from, theirs_out = _pipe()
        host = os.getpid()
        self.id = os.fork()
        if self.id == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()  # so that what a mechanism starts can be ended with it
            if sys.platform != "linux" or ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL):
                _watch(host, lambda: os._exit(1))
            if os.getppid() != host:  # it had ended before anybody watched
                os._exit(1)
            for pipe in (asked, told, self._to, self._from):
                os.close(pipe)
            _work(theirs_in, theirs_out)
        self._over = False
        known.append(self)
        os.close(theirs_in)
        os.close(theirs_out)

    def ask(self, content: bytes) -> bytes:
        """The answer; nothing where the process ended, or answered out of turn."""
        nonce = os.urandom(NONCE)
        try:
            _write(self._to, nonce, content)
        except OSError:
            return b""
        return _answer(self._from, nonce, self._ended)

    def _ended(self) -> bool:
        self._over = self._over or os.waitpid(self.id, os.WNOHANG)[0] != 0
        return self._over

    def end(self) -> None:
        """Ends the process, what it has started in its group, and the programs of commands, which have groups."""
        from dpaudit.mechanisms.command import end_groups

        for pipe in (self._to, self._from):
            with suppress(OSError):
                os.close(pipe)
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
        while (head := _read(asked, NONCE + LENGTH)) is not None:
            request = _read(asked, int.from_bytes(head[NONCE:], "little")) or b""
            _LINE[:] = [(asked, told), head[:NONCE]]
            del head  # nobody but `_LINE` holds the nonce
            answer = answers.made(*pickle.loads(request))
            if os.getpid() != me:
                break  # a mechanism forked and came back twice: only the original may answer
            _write(told, _LINE[1], answer)
            _LINE.clear()
        code = 0
    finally:
        if os.getpid() == me:
            with suppress(OSError):
                os.killpg(0, signal.SIGKILL)
        os._exit(code)


def _hang_up() -> None:
    """A fork that a mechanism makes has neither the line nor the nonce."""
    for pipe in _LINE[0] if _LINE else ():
        with suppress(OSError):
            os.close(pipe)
    _LINE.clear()


os.register_at_fork(after_in_child=_hang_up)


# --- both ends --------------------------------------------------------------------------------------------------


def _watch(parent: int, end: Callable[[], Any]) -> None:
    """Ends this process when its parent is gone without a word: a pipe may be held open by others."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(TICK_S)
        end()

    threading.Thread(target=watch, name="dpaudit-parent", daemon=True).start()


def _pipe() -> tuple[int, int]:
    """A pipe away from the standard streams: where these are closed, a new one would stand in their place."""
    ends = os.pipe()
    source, target = (end if end > 2 else fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    for end in {*ends} - {source, target}:
        os.close(end)
    return source, target


def _answer(source: int, nonce: bytes, ended: Callable[[], bool]) -> bytes:
    """What stands behind the nonce; nothing where something else does, or whoever writes has ended."""
    head = _read(source, NONCE + LENGTH, ended)
    size = 0 if head is None or head[:NONCE] != nonce else int.from_bytes(head[NONCE:], "little")
    return b"" if size > LARGEST else _read(source, size, ended) or b""


def _read(source: int, size: int, ended: Callable[[], bool] = lambda: False) -> bytes | None:
    """So many bytes; None where they will not come: at the end of the pipe, or once its writer has ended."""
    found, gone = bytearray(), False
    while len(found) < size:
        if wait([source], 0 if gone else TICK_S):
            part = os.read(source, min(size - len(found), 1 << 20))
            if not part:
                return None
            found += part
        elif gone:
            return None
        else:
            gone = ended()
    return bytes(found)


def _write(target: int, nonce: bytes, content: bytes) -> None:
    for part in (nonce + len(content).to_bytes(LENGTH, "little"), content):
        left = memoryview(part)
        while left:
            left = left[os.write(target, left) :]
