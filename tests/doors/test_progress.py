"""What is said while audits run: bars on a terminal, a line now and then in a log, and never on standard output."""

from __future__ import annotations

import io
import math
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpaudit import audit
from dpaudit.auditing import watching as watchers
from dpaudit.auditing.watching import SHORTER, Live, PlainLines, Watcher
from tests.doors.conftest import Outcome, spec

Run = Callable[..., Outcome]
Write = Callable[..., str]


def test_lines_come_at_most_every_few_seconds() -> None:
    now, said = [100.0], []
    lines = PlainLines(2, write=said.append, clock=lambda: now[0])
    lines.audit(1, "first")
    lines.plan(2_000, 1)
    for stage in ("search", "certify"):
        lines.begin(stage, 1_000)
        for _ in range(10):
            now[0] += 1.0
            lines.advance(100)
        lines.end()
    lines.finished("done")
    lines.audit(2, "second")
    lines.begin("certify", 0)
    now[0] += 4.0
    lines.advance(1)
    lines.failed("broken")
    assert said == [
        "[1/2] first: looking for an event, 25 % of 2,000 runs, 15.0 s left",
        "[1/2] first: looking for an event, 50 % of 2,000 runs, 10.0 s left",
        "[1/2] first: certifying, 75 % of 2,000 runs, 5.0 s left",
        "[1/2] first: certifying, 100 % of 2,000 runs, 0.0 s left",
        "[1/2] done",
        "[2/2] broken",
    ]


def test_a_long_audit_says_before_how_long_it_takes() -> None:
    """Once the first runs tell, and where no shorter time was asked for."""
    said: list[str] = []
    watcher = Watcher(write=said.append, clock=lambda: 0.0)
    for runs, left_s, told in ((1_000_000, math.inf, 1), (2_400, math.inf, 0), (1_000_000, 20.0, 0)):
        watcher.audit(1, "slow")
        watcher.plan(runs, 2, left_s)
        for _ in range(20):
            watcher.speed(0.05, 1)
        assert len(said) == told
        assert said[:1] == [f"slow: about 6 h 56 min (1,000,000 runs of 0.05 s, on 2 workers); {SHORTER}"] * told
        said.clear()


def test_without_progress_a_long_audit_is_told_of_once_and_has_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a script and on a terminal; a short one says nothing."""
    monkeypatch.setattr(watchers, "on_terminal", lambda out: True)
    for long_s, told in ((0.0, 1), (1e9, 0)):
        monkeypatch.setattr(watchers, "LONG_S", long_s)
        monkeypatch.setattr(watchers, "SEEN_S", 0.0)
        audit(lambda data, rng: rng.random(), pair=(0, 1), epsilon=3.0, runs=2_000, n_jobs=1, progress=False)
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n"), said.err.count(f"; {SHORTER}\n")) == ("", told, told)


def test_first_runs_that_are_made_one_after_the_other_make_no_time_longer() -> None:
    now = [0.0]
    watcher = Watcher(clock=lambda: now[0])
    watcher.plan(100_000, 4)
    watcher.speed(0.01, 8)
    for _ in range(10):
        now[0] += 1.0
        watcher.advance(100)
    assert 250 < (watcher.left_s() or 0.0) < 300  # by their speed alone: 990


def test_a_bar_stands_below_what_another_program_writes() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    bar = Live(1, Terminal(), below=True)
    bar.audit(1, "name")
    bar.plan(100, 1)
    bar.advance(50)
    bar.tell("a line")
    bar._put(bar.bar())
    bar.close()
    text = bar.out.getvalue()  # type: ignore[attr-defined]
    assert "50 % of 100 runs" in text
    assert "\r\na line\r\n" in text
    assert text.count("\x1b7") == text.count("\x1b8")
    assert text.endswith("\r\x1b[K\x1b8")


def test_quiet_and_no_progress_say_only_what_went_wrong(dpaudit: Run, write: Write) -> None:
    name = write(spec(), spec(name='"dies"', mechanism='"mechs:dies"'))
    for option in ("--no-progress", "--quiet"):
        ended = dpaudit("run", name, option)
        assert [line.partition(": the")[0] for line in ended.err.splitlines()] == [
            "no verdict   spec.toml: audit 'dies'"
        ]
    assert len(ended.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("setting", "live", "coloured"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"CI": "true"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
    ids=["terminal", "no-color", "ci", "dumb"],
)
def test_a_terminal_gets_bars(write: Write, folder: Path, setting: dict[str, str], live: bool, coloured: bool) -> None:
    name = write(spec(name='"[red]one[/red]"'))
    here, there = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "run", name],
        stdin=there,
        stdout=subprocess.PIPE,
        stderr=there,
        env={**os.environ, "TERM": "xterm-256color", **setting},
        text=True,
    )
    os.close(there)
    seen = _everything(here)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    assert out.startswith("dpaudit 0.1.0: 1 audit")
    assert "\x1b" not in out
    assert ("\x1b[?25l" in seen) == live  # the cursor is hidden while bars are drawn
    assert ("\x1b[3" in seen or "\x1b[9" in seen) == coloured
    assert "[red]one[/red]: not refuted, as expected" in seen  # a name is text, not markup


def _everything(terminal: int) -> str:
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    return seen.decode(errors="replace")


def test_one_place_for_both_streams_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    both = io.StringIO()
    monkeypatch.setattr("sys.stdout", both)
    monkeypatch.setattr("sys.stderr", both)
    with watchers.watching(1) as watcher:
        assert not isinstance(watcher, Live)
