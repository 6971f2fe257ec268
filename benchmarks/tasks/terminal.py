"""A command on a pseudo-terminal of 80 columns, with the times at which it said something."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import termios
import time
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")
PATIENCE_S = 600.0  # one task; a hang is no answer


@dataclass(frozen=True, slots=True)
class Step:
    """A command, what its answer looks like (a pattern of one line), the status it ends with, and when Ctrl-C comes."""

    command: tuple[str, ...]
    answer: str
    status: int = 0
    interrupt_s: float | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a user saw: the line that answers and the processor time until it stood there."""

    line: str | None
    last: str
    status: int
    cpu_s: float
    silent_s: float


def on_a_terminal(step: Step, folder: Path, environment: dict[str, str]) -> Seen:
    """Runs the step and watches its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(step.command[0], step.command, environment)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    begun = spoke = time.monotonic()
    written, silent, cpu, interrupted = b"", 0.0, None, False
    while time.monotonic() - begun < PATIENCE_S:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        now = time.monotonic()
        if step.interrupt_s is not None and not interrupted and now - begun >= step.interrupt_s:
            os.kill(pid, signal.SIGINT)
            interrupted = True
        if not ready:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not piece:
            break
        silent, spoke, written = max(silent, now - spoke), now, written + piece
        if cpu is None and answer(written, step.answer):
            cpu = spent_s(pid)
    else:
        os.kill(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    os.close(terminal)
    lines = plain(written)
    return Seen(
        answer(written, step.answer),
        lines[-1] if lines else "nothing",
        os.waitstatus_to_exitcode(status),
        used.ru_utime + used.ru_stime if cpu is None else cpu,
        max(silent, time.monotonic() - spoke),
    )


def plain(written: bytes) -> list[str]:
    """The lines of a terminal's bytes, without colours; what was overwritten stands as lines, too."""
    text = CONTROL.sub("", written.decode("utf-8", "replace"))
    return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]


def answer(written: bytes, pattern: str) -> str | None:
    """The first line that fits."""
    return next((line for line in plain(written) if re.search(pattern, line)), None)


def spent_s(pid: int) -> float:
    """The processor time of a process and of its children, those that run and those that ended, in seconds."""
    ticks = 0
    for process in [pid, *children(pid)]:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """All processes below one."""
    found: list[int] = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, tasks.read_text().split())
        except OSError:
            continue
    return found + [below for child in found for below in children(child)]
