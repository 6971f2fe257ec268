"""What a host starts is marked in its environment: so it is found where its host was killed and can end it no more.

As continuous integration does it (Jenkins' ProcessTreeKiller, the runner of GitHub's actions). Only a mechanism that
cleans its environment, leaves its session and kills its host escapes. Where there is no /proc, nothing is found.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dpaudit.sampling.pipes import stat

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


def end_marked(which: Callable[[str], bool], how: int = signal.SIGKILL) -> int:
    """Sends a signal to every process with such a mark, and says to how many."""
    found = 0
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            marks = [each for each in file.read_bytes().split(b"\0") if each.startswith(MARK.encode() + b"=")]
            words = marks[0].decode(errors="replace").partition("=")[2].split() if marks else []
            if any(map(which, words)) and int(file.parent.name) != os.getpid():
                os.kill(int(file.parent.name), how)
                found += 1
    return found


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
    told = stat(process)
    return "" if told[0] == "Z" else told[19]
