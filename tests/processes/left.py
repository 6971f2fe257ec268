"""Mechanisms that leave something behind, or answer in the place of the process that runs them."""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
import pickle
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

FOREVER_S = 600.0


class Mark:
    """Unpickled, it makes a folder: something of it has run."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.makedirs, (self.folder, 0o777, True)


def forge(folder: str) -> None:
    """Writes pickles into every pipe of this process, as they are and with the heads that readers of pickles expect."""
    bomb = pickle.dumps(Mark(os.path.join(folder, "ran")))
    for name in os.listdir("/proc/self/fd"):
        pipe = int(name)
        with suppress(OSError):
            if pipe > 2 and stat.S_ISFIFO(os.fstat(pipe).st_mode):
                os.set_blocking(pipe, False)
                for head in (b"", len(bomb).to_bytes(8, "little"), struct.pack("!i", len(bomb))):
                    os.write(pipe, head + bomb)


def forges(data: Any, rng: Any) -> int:
    forge(data[0])
    return 0


def forges_in_a_fork(data: Any, rng: Any) -> int:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            forge(data[0])
        os._exit(0)
    os.waitpid(child, 0)
    return 0


def holds(data: Any, rng: Any) -> int:
    """Once in a process: a thread that goes on, a fork that goes on, and a daemon that no group holds."""
    if threading.active_count() > 1:
        return 0
    threading.Thread(target=time.sleep, args=(FOREVER_S,), daemon=False).start()
    heard, told = os.pipe()
    for away in (False, True):
        if os.fork() == 0:
            if away:
                os.setsid()
                Path(data[0], str(os.getpid())).touch()
            os.write(told, b".")
            time.sleep(FOREVER_S)
            os._exit(0)
        os.read(heard, 1)  # it is where it wants to be before anything of this process ends
    return 0


def end_driver(data: Any, rng: Any) -> int:
    """Kills the driver, which has told its number; the process of the mechanism tells its own."""
    folder, driver = data[0], int(Path(data[0], "driver").read_text())
    Path(folder, "process").write_text(f"{os.getpid()} {os.getppid()}")
    os.kill(driver, signal.SIGKILL)
    time.sleep(FOREVER_S)
    return 0


def another_shard(data: Any, rng: Any) -> int:
    """Changes, from within its run, which shard its worker says it ran."""
    frame = sys._getframe()
    while frame.f_code.co_name not in ("run_task", "feed_task"):
        assert frame.f_back is not None
        frame = frame.f_back
    object.__setattr__(frame.f_locals["task"][0], "index", 99)
    return 0


def another_kind(data: Any, rng: Any) -> int:
    from dpaudit.running.worker import Worker

    Worker.run = lambda *_: np.zeros(3, np.int64)  # type: ignore[assignment,method-assign]
    return 0


def no_clock(data: Any, rng: Any) -> int:
    time.perf_counter = time.thread_time = lambda: float("nan")
    return 0


def draws(data: Any, runs: int, rng: Any, **parameters: Any) -> Any:
    return data + rng.laplace(size=runs)


def gone(*ids: int) -> bool:
    """Waits until none of them is there; false where one stays."""
    until = time.monotonic() + 30.0
    while any(processes([each]).get(each, "Z")[0] != "Z" for each in ids):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def processes(ids: Iterable[int] = ()) -> dict[int, tuple[str, int, str]]:
    """State, parent and command line of these processes, or of every one that is there."""
    there = {}
    for each in ids or (int(folder.name) for folder in Path("/proc").glob("[0-9]*")):
        with suppress(OSError):
            folder = Path(f"/proc/{each}")
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            there[each] = state, int(parent), line
    return there


def said(code: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and output of a script, which must end by itself."""
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )
    return ended.returncode, ended.stdout


def hangs_deaf(data: Any, rng: Any) -> int:
    """Never ends, and has turned off all that would end it from within; a short patience is its own doing."""
    from dpaudit.running import guard

    if guard.HARD_GRACE_S > 0.1:
        guard.HARD_GRACE_S = 0.1
        return 0
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    time.sleep(FOREVER_S)
    return 0


def stops(data: Any, rng: Any) -> int:
    """Once in a process stops its host and itself."""
    if not _STOPPED:
        _STOPPED.append(True)
        for each in (os.getppid(), os.getpid()):
            os.kill(each, signal.SIGSTOP)
    return 0


_STOPPED: list[bool] = []


def answers_nobody(data: Any, rng: Any) -> int:
    """Puts a file in the place of the pipe that answers go to."""
    away = os.open(os.devnull, os.O_WRONLY)
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            pipe = int(name)
            if pipe > 2 and stat.S_ISFIFO(os.fstat(pipe).st_mode) and fcntl.fcntl(pipe, fcntl.F_GETFL) & os.O_WRONLY:
                os.dup2(away, pipe)
    return 0


def ends_host(data: Any, rng: Any) -> int:
    """Goes on when its host has ended, which it kills; so does a daemon of it."""
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    heard, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        Path(data[0], str(os.getpid())).touch()
        os.write(told, b".")
        time.sleep(FOREVER_S)
    os.read(heard, 1)
    Path(data[0], str(os.getpid())).touch()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(FOREVER_S)
    return 0
