"""How far audits are: one bar and one time for all stages of an audit, a line now and then in a log, or nothing."""

import math
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TextIO

from dpaudit.base.numerals import counted, duration, percent
from dpaudit.base.quoting import clean
from dpaudit.running.progress import Progress

LINE_EVERY_S, PAINT_EVERY_S = 5.0, 0.25
LONG_S = 60.0  # from which on an audit says before how long it takes
SEEN_S = 0.05  # of work of a stage, which tell how long a run takes
LARGER = 4  # times as many runs as the quickest task has, which show how much of it is the start
SEARCHING, STARTS = 0.25, 3.0  # of all runs search; processes that start one after the other before certification
LEARNING = ("probe", "screen", "search", "bet")  # stages with pauses, of which the first tasks have one worker
WINDOW_S, SHORTEST_S = 60.0, 2.0  # of the last runs, whose speed tells when the others are done
NOTEBOOK_S = 1.5  # before which nothing is shown there: what is shown leaves a line
BAR, NAMED = 20, 24  # characters: of the bar, and of a name that is cut
STAGES = {"probe": "first look", "screen": "choosing a pair", "search": "looking for an event", "certify": "certifying"}
Now = Callable[[], float]
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
    """Follows one audit after the other; this one says what went wrong and, unless `silent`, how long it takes."""

    def __init__(
        self, audits: int = 1, *, write: Callable[[str], None] = say, clock: Now = time.monotonic, silent: bool = False
    ) -> None:
        self.audits, self.write, self.clock, self.long_s = audits, write, clock, math.inf if silent else LONG_S
        self.audit(1, "")

    def audit(self, number: int, name: str) -> None:
        """The audit of this number, counted from 1, begins."""
        self.number, self.name = number, name
        self.planned = self.done = 0
        self.workers, self.began, self.until = 1, self.clock(), math.inf
        self._whole, self._told_s, self._first_s = False, 0.0, 0.0
        self._quickest = math.inf, 1  # task after the first one: its seconds and runs
        self._here_s = self._later_s = math.inf  # work of a run of this stage, and of those that certify
        self.begin("starting", 0)

    def plan(self, runs: int, workers: int, left_s: float = math.inf) -> None:
        self._whole, self.planned, self.workers, self.until = True, runs, workers, self.clock() + left_s

    def begin(self, stage: str, runs: int) -> None:
        self.stage, self._learning = STAGES.get(stage, stage), stage in LEARNING
        if not self._whole:  # a stage alone, such as a proof's
            self.planned, self.done = runs, 0
        if stage == "fresh processes":  # in place of all other runs
            self.planned = self.done + runs
        self._here = max(runs, int(SEARCHING * self.planned)) if stage in ("probe", "screen") else runs
        self._here_s, self._least_s = self._here_s if self._learning else self._later_s, math.inf
        self._past = deque([(self.clock(), 0, 0.0)])  # of its last tasks: when they came, runs and work by then

    def advance(self, runs: int, seconds: float = 0.0, *, stored: bool = False) -> None:
        self.done, self._here = self.done + runs, self._here - runs
        if stored or (seconds and not self._first_s):  # of the first task nobody knows how much was a start
            self._first_s = self._first_s if stored else seconds
            return
        now, past = self.clock(), self._past
        past.append((now, past[-1][1] + max(1, runs), past[-1][2] + seconds))
        while len(past) > 2 and (past[1][1] < past[-1][1] / 2 or past[1][0] < now - WINDOW_S):
            past.popleft()  # what came first is slow
        work, span, made = past[-1][2] - past[0][2], now - past[0][0], past[-1][1] - past[0][1]
        if self._learning and seconds:
            self._quickest = least_s, few = min(self._quickest, (seconds, runs))
            run_s = seconds / runs
            beside_s = (seconds - least_s) / (runs - few) if runs >= LARGER * few else run_s  # the start of the task
            if beside_s >= run_s / LARGER:
                self._least_s = min(self._least_s, beside_s)
            if past[-1][2] >= SEEN_S and self._least_s < math.inf:
                self._here_s, self._later_s = work / made, math.sqrt(self._least_s * work / made)
        elif not self._learning and span >= max(SHORTEST_S, 4.0 * work / (len(past) - 1)):
            self._here_s = self.workers * span / made  # four tasks after the other: those under way are few
        self.tell_time()

    def tell_time(self) -> None:
        """Says how long the audit takes where that is long, and again where that was off by more than two."""
        left, now, told = self.left_s() or 0.0, self.clock(), self._told_s
        total, runs = now - self.began + left, max(1, self.planned - self.done)
        if (SHORTEST_S if told else self.long_s) < left < self.until - now and not 0.5 * total <= told <= 2.0 * total:
            self._told_s = total
            each = f"{counted(runs, 'run')} of {left * self.workers / runs:.2g} s, on {counted(self.workers, 'worker')}"
            self.tell(f"{clean(self.name)}: about {duration(left)} ({each}); {SHORTER}")

    def left_s(self) -> float | None:
        """Seconds until all runs are done, by those that are done; None where that may be off by more than two."""
        now, left = self.clock(), max(0, self.planned - self.done)
        here, most = min(left, max(0, self._here)), max(0.0, self.until - now)
        if self._here_s == math.inf or now - self.began < SHORTEST_S:
            return None if most == math.inf else most
        starts_s = STARTS * max(0.0, self._first_s - self._quickest[0]) if self._learning else 0.0
        work_s = here * self._here_s + (left - here) * min(self._here_s, self._later_s)
        return min(most, work_s / self.workers + starts_s)

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

    def advance(self, runs: int, seconds: float = 0.0, *, stored: bool = False) -> None:
        super().advance(runs, seconds, stored=stored)
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
        watcher = PlainLines(audits) if shown else Watcher(audits, silent=shown is False)
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
