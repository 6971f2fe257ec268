"""Pipes between a driver, its hosts and their processes, and how each notices that the other is gone.

What goes through a pipe is a nonce of the request, a length, and so many bytes.
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

LARGEST = 1 << 32  # bytes of one part, or of an answer; more is no pilot
NONCE, LENGTH = 16, 8  # bytes: a secret of the request, then how long the answer is
AT_ONCE = 1 << 9  # bytes of an answer that go with its head
FORKS = hasattr(os, "fork")  # not on Windows: no processes of ours there
TICK_S = 0.1  # how soon it is noticed that a process has ended without a word
MOST_STOPS = 20  # of a child at one request: it goes on after each, and is given up after that


class Request(bytes, Enum):
    """What a driver asks of a host, by the first byte."""

    RUN = b"r"  # tasks, in the process that is there
    COUNT = b"c"  # the same, and what the process sends is counted in the host
    RUN_FRESH = b"f"  # tasks, in a new process
    HOLD = b"h"  # keep what new processes run
    BEGIN = b"b"  # an audit begins: folder, import path and environment of the driver
    REST = b"e"  # it is over: the process ends


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
        linux = sys.platform == "linux"
        stopped = linux and (os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG) is not None or stat(child)[0] == "t")
        if stopped or not linux:
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
    content, gone, there = bytearray(), False, select.poll()
    there.register(source, select.POLLIN)
    while len(content) < size:
        if there.poll(0 if gone else 1000.0 * TICK_S):
            part = os.read(source, min(size - len(content), 1 << 20))
            if not part:
                return None
            content += part
        elif gone:
            return None
        else:
            gone = ended()
    return bytes(content)


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
