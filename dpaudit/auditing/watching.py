"""How far audits are: one bar and one time for all stages of an audit, a line now and then in a log, or nothing."""

import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TextIO

from dpaudit.base.numerals import counted, duration, percent
from dpaudit.base.quoting import clean
from dpaudit.running.progress import Progress

LINE_EVERY_S, PAINT_EVERY_S = 5.0, 0.25
LONG_S = 60.0  # from which on an audit says before how long it takes
SEEN_S = 0.05  # of work, which tell how long a run takes
WINDOW_S, SHORTEST_S = 60.0, 2.0  # of the last runs, whose speed tells when the others are done
NOTEBOOK_S = 1.5  # before which nothing is shown there: what is shown leaves a line
BAR, NAMED = 20, 24  # characters: of the bar, and of a name that is cut
STAGES = {"probe": "first look", "screen": "choosing a pair", "search": "looking for an event", "certify": "certifying"}
SHORTER = "shorter: max_time_s (seconds), fewer runs, or dpaudit.batched, which makes many runs a call"


class AuditInterrupted(KeyboardInterrupt):
    """An audit was stopped by hand: what of it is kept and how it goes on, shown in a line and without a traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        before = sys.excepthook

        def show(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            if error is self:
                print(*self._render_traceback_(), file=sys.stderr)
                if not hasattr(sys, "ps1") and not sys.flags.interactive:
                    raise SystemExit(130)  # as an interrupted command ends
            else:
                before(kind, error, trace)

        sys.excepthook = show

    def _render_traceback_(self) -> list[str]:
        """What IPython shows."""
        return [f"KeyboardInterrupt: {self}"]


def say(line: str) -> None:
    """A line for people, on standard error."""
    print(line, file=sys.stderr, flush=True)


class Watcher(Progress):
    """Follows one audit after the other; this one says what went wrong, and how long a long audit takes."""

    def __init__(
        self, audits: int = 1, *, write: Callable[[str], None] = say, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.audits, self.write, self.clock = audits, write, clock
        self.audit(1, "")

    def audit(self, number: int, name: str) -> None:
        """The audit of this number, counted from 1, begins."""
        self.number, self.name, self.stage = number, name, "starting"
        self.planned = self.done = self.made = 0
        self.run_s, self.workers, self.until = 0.0, 1, math.inf
        self._seen_s, self._told, self._whole = 0.0, False, False
        self._past: list[tuple[float, int]] = []  # of the last runs: when they came, how many were made by then

    def plan(self, runs: int, workers: int, left_s: float = math.inf) -> None:
        self._whole, self.planned, self.workers, self.until = True, runs, workers, self.clock() + left_s

    def speed(self, run_s: float, runs: int) -> None:
        self.run_s, self._seen_s = run_s, self._seen_s + run_s * runs
        if self._told or not self.planned or self._seen_s < SEEN_S:
            return
        self._told, left = True, max(0, self.planned - self.done)
        seconds = left * run_s / self.workers
        if LONG_S < seconds <= self.until - self.clock():
            each = f"{counted(left, 'run')} of {run_s:.2g} s, on {counted(self.workers, 'worker')}"
            self.tell(f"{clean(self.name)}: about {duration(seconds)} ({each}); {SHORTER}")

    def begin(self, stage: str, runs: int) -> None:
        self.stage = STAGES.get(stage, stage)
        if not self._whole:  # a stage alone, such as a proof's
            self.planned, self.done = runs, 0

    def advance(self, runs: int, *, stored: bool = False) -> None:
        self.done += runs
        if not stored:
            self.made += runs
            self._past.append((self.clock(), self.made))

    def left_s(self) -> float | None:
        """Seconds until all runs are done, at the speed of the last of them; None where it is not known yet."""
        now, left = self.clock(), max(0, self.planned - self.done)
        while len(self._past) > 2 and self._past[1][0] < now - WINDOW_S:
            self._past.pop(0)
        span = now - self._past[0][0] if self._past else 0.0
        runs = self.made - self._past[0][1] if self._past else 0
        seconds = None
        if self.run_s:  # the first runs of an audit are made one after the other
            before = max(0.0, WINDOW_S - span)
            seconds = left * (span + before) / (runs + before * self.workers / self.run_s)
        elif span >= SHORTEST_S and runs:
            seconds = left * span / runs
        most = max(0.0, self.until - now)
        return seconds if most == math.inf else most if seconds is None else min(seconds, most)

    def words(self, *, stage: bool = True, runs: bool = True) -> str:
        """How much is done, and when the rest will be; with the name of the stage, and how many runs there are."""
        left = self.left_s()
        share = percent(min(self.done, self.planned), self.planned) if self.planned else ""
        share += f" of {counted(self.planned, 'run')}" if share and runs else ""
        parts = self.stage if stage or not share else "", share, "" if left is None else f"{duration(left)} left"
        return ", ".join(filter(None, parts))

    def place(self) -> str:
        """Which audit it is."""
        return f"[{self.number}/{self.audits}] " * (self.audits > 1) + clean(self.name)

    def tell(self, line: str) -> None:
        """A line that stays."""
        self.write(line)

    def finished(self, line: str) -> None:
        """The audit is over; `line` says how it went."""

    def failed(self, line: str) -> None:
        """The audit is over and has no verdict; `line` says why, and is never held back."""
        self.tell(line)

    def close(self) -> None:
        """Nothing more is shown."""


class Silent(Watcher):
    """Says nothing but what went wrong."""

    def speed(self, run_s: float, runs: int) -> None:
        self.run_s = run_s


class PlainLines(Watcher):
    """A line for each finished audit, and one every few seconds."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._spoke = self.clock()

    def tell(self, line: str) -> None:
        self.write(line)
        self._spoke = self.clock()

    def finished(self, line: str) -> None:
        self.tell(f"[{self.number}/{self.audits}] {line}")

    failed = finished

    def advance(self, runs: int, *, stored: bool = False) -> None:
        super().advance(runs, stored=stored)
        if self.clock() - self._spoke >= LINE_EVERY_S:
            self.tell(f"[{self.number}/{self.audits}] {clean(self.name)}: {self.words()}")


class Live(Watcher):
    """One bar, painted anew by a thread of its own, and gone when all is over; lines that stay go above it.

    `below`: on the line below the cursor, where another program is writing.
    """

    def __init__(self, audits: int, out: TextIO, *, below: bool = False) -> None:
        super().__init__(audits)
        self.out, self.below, self.notebook = out, below, not out.isatty()
        self._over, self._lock, self._shown, self._displayed = threading.Event(), threading.Lock(), 0, False
        self._thread = threading.Thread(target=self._paint_on, name="dpaudit-bar", daemon=True)
        self._thread.start()

    def tell(self, line: str) -> None:
        with self._lock:
            self._put("")
            if self.below:
                self.out.write(f"\r\n{line}\r\n")
            else:
                self.write(line)

    finished = tell

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        with self._lock:
            self._put("")

    def bar(self) -> str:
        """The line that is shown, as wide as the terminal at the most."""
        part = min(1.0, self.done / self.planned) if self.planned else 0.0
        room = max(20, shutil.get_terminal_size().columns - 1)
        # what gives way first, before the name and the time are cut
        forms = [(BAR, self.words()), (BAR // 2, self.words()), (BAR // 2, self.words(runs=False))]
        forms.append((0, self.words(runs=False, stage=False)))
        name, least = self.place(), min(len(self.place()), NAMED)
        across, words = next((each for each in forms if each[0] + len(each[1]) + least + 2 <= room), forms[-1])
        left, full = max(8, room - across - len(words) - 2), int(across * part)
        name = name if len(name) <= left else f"{name[: left - 3]}..."
        line = " ".join(filter(None, (name, f"{'━' * full}{'─' * (across - full)}", words)))[:room]
        if self.notebook or os.environ.get("NO_COLOR"):
            return line
        return line.replace("━", "\x1b[36m━", 1).replace("─", "\x1b[0m\x1b[90m─", 1) + "\x1b[0m"

    def _paint_on(self) -> None:
        over = self._over.wait(NOTEBOOK_S if self.notebook else 0.0)
        while not over:
            with self._lock, suppress(Exception):  # a terminal that is gone stops no audit
                self._put(self.bar())
            over = self._over.wait(PAINT_EVERY_S)

    def _put(self, line: str) -> None:
        """The line in place of the one before."""
        if not line and not self._shown:
            return
        self._shown = len(line)
        if self.notebook:
            return self._display(line)
        if self.below:
            text = f"\x1bD\x1bM\x1b7\x1bD\r\x1b[K{line}\x1b8"
        else:
            text = f"\r\x1b[K{line}\x1b[?25{'l' if line else 'h'}"
        self.out.write(text)
        self.out.flush()

    def _display(self, line: str) -> None:
        """The same in the output of a cell, of which it is one output that changes."""
        display, self._displayed = "update_display" if self._displayed else "display", True
        show = getattr(import_module("IPython.display"), display)
        show({"text/plain": line}, display_id=f"dpaudit-{id(self)}", raw=True)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "ipykernel" in sys.modules and hasattr(shell, "kernel")


def on_terminal(out: TextIO | None) -> bool:
    """Whether somebody sees a bar there."""
    interactive = os.environ.get("CI", "").lower() in ("", "0", "false") and os.environ.get("TERM") != "dumb"
    return interactive and out is not None and out.isatty()


@contextmanager
def watching(
    audits: int, name: str = "", *, shown: bool | None = None, bar: bool = True, below: TextIO | None = None
) -> Iterator[Watcher]:
    """The watcher that fits: a bar on a terminal and in a notebook, and else lines where it is `shown`.

    `shown` None: elsewhere how long a long audit takes, and no more, which is all without `bar`; False: what went
    wrong alone. `below`: a terminal where another program is writing.
    """
    notebook = below is None and in_notebook()
    out = below or (sys.stdout if notebook else sys.stderr)
    watcher: Watcher
    if bar and shown is not False and (on_terminal(out) or notebook):
        watcher = Live(audits, out, below=below is not None)
    else:
        watcher = (Watcher if shown is None else PlainLines if shown else Silent)(audits)
    watcher.audit(1, name)
    try:
        yield watcher
    finally:
        watcher.close()


@contextmanager
def uninterrupted(watcher: Watcher, ledger: object) -> Iterator[None]:
    """In place of Ctrl-C, `AuditInterrupted`: how far the audit was, and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        lost = 'are lost; audit(..., ledger="FILE") keeps them'
        rest = lost if ledger is None else f"are kept in {ledger}; the same call goes on from there"
        far = f"{watcher.done:,} of {watcher.planned:,} runs are done, and {rest}"
        raise AuditInterrupted(far if watcher.planned else "no run was made yet") from None
