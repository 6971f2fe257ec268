"""How far a suite is: live bars on a terminal, a line now and then in a log, or nothing. Always standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dpaudit.cli.options import say
from dpaudit.sampling.progress import Progress

LINE_EVERY_S = 5.0
STAGES = {"probe": "first look", "screen": "choosing a pair", "search": "looking for an event", "certify": "certifying"}


class Watcher(Progress):
    """Follows one audit after the other; what the engine calls is `begin`, `advance` and `end`."""

    def audit(self, number: int, name: str) -> None:
        """The audit of this number, counted from 1, begins."""

    def finished(self, line: str) -> None:
        """The audit is over; `line` says how it went."""

    def failed(self, line: str) -> None:
        """The audit is over and has no verdict; `line` says why, and is never held back."""
        self.finished(line)


@contextmanager
def watching(audits: int, *, silent: bool) -> Iterator[Watcher]:
    """The watcher that fits: none when silent, bars on a terminal, otherwise lines."""
    env = os.environ
    if silent:
        yield Silent()
    elif sys.stderr.isatty() and env.get("CI", "").lower() in ("", "0", "false") and env.get("TERM") != "dumb":
        with _bars() as progress:
            yield Live(audits, progress)
    else:
        yield PlainLines(audits)


class Silent(Watcher):
    """Says nothing but what went wrong."""

    def failed(self, line: str) -> None:
        say(line)


class PlainLines(Watcher):
    """A line for each finished audit, and for a long stage one every few seconds."""

    def __init__(
        self, audits: int, *, write: Callable[[str], None] = say, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._audits, self._write, self._clock = audits, write, clock
        self._number, self._name, self._stage, self._runs, self._done = 0, "", "", 0, 0
        self._spoke = clock()

    def audit(self, number: int, name: str) -> None:
        self._number, self._name = number, name

    def finished(self, line: str) -> None:
        self._write(f"[{self._number}/{self._audits}] {line}")
        self._spoke = self._clock()

    def begin(self, stage: str, runs: int) -> None:
        self._stage, self._runs, self._done = STAGES.get(stage, stage), runs, 0

    def advance(self, runs: int) -> None:
        self._done += runs
        if self._clock() - self._spoke >= LINE_EVERY_S:
            share = f"{min(1.0, self._done / self._runs):.0%} of {self._runs:,} runs" if self._runs else ""
            self._write(f"[{self._number}/{self._audits}] {self._name}: {self._stage} {share}".rstrip())
            self._spoke = self._clock()


class Live(Watcher):
    """Two bars: the audits, and the stage of the one that runs."""

    def __init__(self, audits: int, progress: Any) -> None:
        self._progress = progress
        self._suite = progress.add_task("audits", total=audits, note="") if audits > 1 else None
        self._stage = progress.add_task("", total=None, note="")

    def audit(self, number: int, name: str) -> None:
        from rich.markup import escape

        self._progress.update(self._stage, description=escape(name), total=None, completed=0, note="starting")

    def finished(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
        if self._suite is not None:
            self._progress.advance(self._suite)

    def begin(self, stage: str, runs: int) -> None:
        self._progress.reset(self._stage, total=runs or None, note=STAGES.get(stage, stage))

    def advance(self, runs: int) -> None:
        self._progress.advance(self._stage, runs)


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    return Progress(
        TextColumn("{task.description}", table_column=Column(max_width=44, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", table_column=Column(min_width=20, no_wrap=True)),
        console=Console(stderr=True),
        refresh_per_second=4,
        transient=True,
    )
