"""The driver's end of hosts: interpreters of ours, which run nothing of the user's and fork the processes that do.

Only the host holds pipes to the driver (`serving`): whatever a mechanism leaves behind (threads, forks, daemons that
hold every pipe open) the driver waits for an answer or for the end of a process, never for the end of a pipe.
"""

import atexit
import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.processes.pipes import FORKS, MOST_STOPS, NONCE, Request, framed, pipe, roused, stat, write

MARK = "DPAUDIT_STARTED_BY"  # words: a driver's namespace, number and start, and the number of its host
LATER_S = 2.0  # a host whose driver was killed is given this long to end what it has started by itself

_NUMBERS = itertools.count()
_SWEPT: list[int] = []  # drivers that have looked for what others left: this one, and those that it was forked from


def new_mark() -> str:
    """The mark of a new host, behind those of this process itself.

    What an earlier driver has left behind that was killed together with its host ends now.
    """
    me = os.getpid()
    if me not in _SWEPT:
        _SWEPT.append(me)
        if end_marked(_left, signal.SIGTERM):
            later = threading.Timer(LATER_S, end_marked, (_left,))
            later.daemon = True
            later.start()
    mine = f"{_namespace()}-{me}-{_started(me)}-{next(_NUMBERS)}"
    return f"{os.environ.get(MARK, '')} {mine}".strip()


def end_marked(which: Callable[[str], bool], how: int = getattr(signal, "SIGKILL", 9)) -> int:
    """Sends a signal to every process with such a mark, and says to how many."""
    number = 0
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            marks = [each for each in file.read_bytes().split(b"\0") if each.startswith(MARK.encode() + b"=")]
            words = marks[0].decode(errors="replace").partition("=")[2].split() if marks else []
            if any(map(which, words)) and int(file.parent.name) != os.getpid():
                os.kill(int(file.parent.name), how)
                number += 1
    return number


def _left(mark: str) -> bool:
    """Whether the driver that has made this mark is no more, as far as this process can tell."""
    namespace, driver, started, _ = mark.split("-") if mark.count("-") == 3 else [""] * 4
    return namespace == _namespace() != "" and _started(driver) != started


def _namespace() -> str:
    """Of the numbers of processes: in a container the same number is another process."""
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return ""


def _started(process: int | str) -> str:
    """When a process began, in ticks since the boot; empty where it has ended."""
    fields = stat(process)
    return "" if fields[0] == "Z" else fields[19]


NO_FORKS = "processes of mechanisms need fork: Linux, macOS or WSL; dpaudit.audit(..., n_jobs=1) runs without any"
PATIENCE_S = 5.0  # for a host that was asked to end
START = "import sys; sys.path[:] = {path!r}; from dpaudit.processes.serving import serve; serve{pipes!r}"
CHANGING = "PYTEST_CURRENT_TEST"  # the one variable that no library reads at its start, and that is new for every test
MOST_RESTING = max(4, 2 + (os.cpu_count() or 1))

_RESTING: "list[Host]" = []  # of a driver: hosts without a process, for its next audit; they hold nothing of the last
_LOCK = threading.Lock()


class Lost(Exception):
    """A process, or its host, ended without an answer."""


def ready(*, silent: bool, environment: Mapping[str, str]) -> "Host":
    """A host that rests, or a new one: what a mechanism does must not depend on which.

    Raises `InvalidSpec` where processes cannot fork.
    """
    if not FORKS:
        raise InvalidSpec(NO_FORKS)
    made_for = _made_for(silent, environment)
    with _LOCK:
        for host in [each for each in reversed(_RESTING) if each.made_for == made_for]:
            _RESTING.remove(host)
            if host.begins({**os.environ, **environment}):
                return host
            host.close()
    return Host(silent=silent, environment=environment)


def rest(host: "Host") -> None:
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
    user = os.geteuid(), os.getuid(), os.getegid(), os.getgid(), os.getgroups()
    return os.getpid(), user, [] if silent else [_stream(1), _stream(2)], given


def _stream(number: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(number)
    except OSError:  # closed
        return None
    return status.st_dev, status.st_ino


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
        self.holds: set[str] = set()  # keys of jobs whose payload its process has,
        self.opened: set[str] = set()  # and of those of which it has answered a task
        self.made_for = _made_for(silent, environment)
        self._mark, self._stops = new_mark(), 0
        theirs_in, self._to = pipe()
        self._from, theirs_out = pipe()
        stream = subprocess.DEVNULL if silent else None
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START.format(path=_path(), pipes=(theirs_in, theirs_out, os.getpid()))],
                stdin=subprocess.DEVNULL,  # a mechanism may ask, or print
                stdout=stream,
                stderr=stream,
                pass_fds=(theirs_in, theirs_out),
                start_new_session=True,
                env={**os.environ, **environment, MARK: self._mark},
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

    def send(self, kind: Request, content: bytes) -> None:
        """A request; raises `Lost` where nobody is there to read it."""
        self._nonce = os.urandom(NONCE)
        try:
            write(self._to, self._nonce, kind.value + content, self.gone)
        except OSError:
            raise Lost("a host ended") from None

    def receive(self, until: float = math.inf) -> bytes:
        """The answer to the request; raises `Lost` where there will be none, or none by `time.monotonic()` `until`."""
        answer = framed(self._from, self._nonce, lambda: self.gone() or time.monotonic() > until)
        if not answer:
            raise Lost("a process ended, or answered out of turn")
        self._nonce, self._stops = b"", 0
        return answer

    def gone(self) -> bool:
        """Whether it has ended, or is stopped again and again; where it was stopped, it goes on."""
        self._stops += roused(self._process.pid)
        return self._process.poll() is not None or self._stops > MOST_STOPS

    def rests(self) -> bool:
        """Whether its process has ended, with all that it has started, and the host is there; it holds no job then."""
        self.holds.clear()
        self.opened.clear()
        if self._nonce:  # it is at work for an audit that broke off: nobody waits for that
            return False
        with suppress(Lost):
            self.send(Request.REST, b"")
            until = time.monotonic() + PATIENCE_S
            return bool(framed(self._from, self._nonce, lambda: time.monotonic() > until))
        return False

    def begins(self, environment: Mapping[str, str]) -> bool:
        """Takes over where this process is now; False where the host has ended."""
        with suppress(Lost, OSError):  # of a folder that is gone
            self.send(Request.BEGIN, pickle.dumps((os.getcwd(), _path(), {**environment, MARK: self._mark})))
            self._nonce = b""
            return self._process.poll() is None
        return False

    def end(self) -> None:
        """Asks it to end, with all that its process has started; `close` waits until it has."""
        self._process.terminate()
        with suppress(OSError):
            os.kill(self._process.pid, signal.SIGCONT)  # a mechanism may have stopped it

    def close(self) -> None:
        """Ends it, and what it could not end because it was killed itself."""
        self.end()
        mine = self._mark.split()[-1]
        for _ in range(2):
            with suppress(subprocess.TimeoutExpired):
                if self._process.wait(PATIENCE_S) == 0:
                    break
            self._process.kill()
            end_marked(lambda mark: mark == mine)  # before it is waited for: it is told of after its tracer has ended
        for end in (self._to, self._from):
            with suppress(OSError):
                os.close(end)
        self._to = self._from = -1
