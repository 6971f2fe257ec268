"""What a shell gives and a terminal shows: completion, lines in its width, colours; bars, and lines in a log."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit import audit
from dpaudit.auditing import watching as watchers
from dpaudit.auditing.watching import SHORTER, Live, PlainLines
from dpaudit.cli import options
from dpaudit.cli.group import COMMANDS, OLD
from dpaudit.cli.options import laid_out
from tests.cases import for_each
from tests.doors.conftest import Run, Write, read_until, spec

GOLDEN = Path(__file__).parents[1] / "golden"
ESCAPE = re.compile(r"\x1b\[\d+m")
COMPLETE = """
eval "$(_DPAUDIT_COMPLETE=bash_source dpaudit)" || exit 1
compopt() { echo files "$@"; }
complete_words() {
    COMPREPLY=(); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dpaudit_completion dpaudit; echo "${COMPREPLY[@]}"
}
complete_words dpaudit ca
complete_words dpaudit run --is
complete_words dpaudit run sp
complete_words dpaudit run --ledger l
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_and_files(tmp_path: Path) -> None:
    (tmp_path / "dpaudit").write_text(f'#!/bin/sh\nexec {sys.executable} -m dpaudit "$@"\n')
    (tmp_path / "dpaudit").chmod(0o755)
    paths = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    environment = {**os.environ, **paths}
    ended = subprocess.run(["bash", "-c", COMPLETE], env=environment, cwd=tmp_path, capture_output=True, text=True)
    files = "files -o default\n\n"
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"catalogue calibrate\n--isolation\n{files}{files}"


def test_help_fits_80_columns_with_every_sentence_whole(dpaudit: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = dpaudit("--help").out
    for name, line in COMMANDS.items():
        assert f"\n{line.group}:\n" in listed
        assert re.search(rf"^  {name} +[A-Z].*\.$", listed, re.MULTILINE), name
        told = dpaudit(name, "--help").out
        (_, *lines), options = (listed + told).splitlines(), told.partition("\nOptions:\n")[2]
        assert max(map(len, lines)) <= 80
        assert not [each for each in lines if each.endswith("...") and not each.startswith("Usage:")]
        assert all(re.search(r"[.?\]]$", each) for each in re.split(r"\n(?=  -)", options.rstrip())), name
    assert not [old for old in OLD if f"  {old} " in listed]


def test_lines_hang_within_the_width_and_commands_are_left_alone() -> None:
    indent = " " * 16
    text = f"could see       {'word ' * 40}\n{indent}{'more ' * 30}\nrepeat          as typed\n{indent}{'typed ' * 30}"
    lines = laid_out(text, 60, colours=False).split("\n")
    *wrapped, typed = lines
    assert max(map(len, wrapped)) <= 60
    assert all(line.startswith(" " * 16) for line in wrapped[1:-1])
    assert typed.count("typed") == 30
    assert " ".join(laid_out(text, 60, colours=True).split()) == " ".join(text.split())
    assert laid_out(text, 1_000, colours=True) == text


def test_a_terminal_gets_verdicts_in_colour_and_nobody_colours_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plain = "".join((GOLDEN / name).read_text() for name in ("accounts/refuted.txt", "suite.md"))
    options.show(plain, nl=False)
    assert capfd.readouterr().out == plain
    assert max(map(len, plain.splitlines())) > 100

    class Terminal:
        """Standard output, which says that it is one."""

        def __getattr__(self, name: str) -> object:
            return getattr(sys.__stdout__, name)

        def isatty(self) -> bool:
            return True

    shown: list[tuple[str, object]] = []
    monkeypatch.setattr(options.sys, "stdout", Terminal())
    monkeypatch.setattr(options.click, "echo", lambda text="", **how: shown.append((text, how.get("color"))))
    monkeypatch.setenv("COLUMNS", "70")
    for name, value in (("TERM", "xterm"), ("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
        options.show(plain)
    (coloured, yes), (bare, no), (dumb, unsaid) = shown
    assert (yes, no, unsaid, dumb) == (True, False, None, plain)
    assert ESCAPE.sub("", coloured) == bare
    assert "\x1b[31m\x1b[1mREFUTED\x1b[0m" in coloured
    assert "\x1b[34m\x1b[1mnot refuted\x1b[0m" in coloured
    told = bare.partition("\nrepeat  ")[0].splitlines()
    assert max(map(len, told)) <= 70 < max(map(len, plain.partition("\nrepeat  ")[0].splitlines()))


def test_lines_come_at_most_every_few_seconds() -> None:
    now, said = [100.0], []
    lines = PlainLines(2, write=said.append, clock=lambda: now[0])
    lines.audit(1, "first")
    lines.plan(2_000, 1)
    for stage in ("search", "certify"):
        lines.begin(stage, 1_000)
        for _ in range(10):
            now[0] += 1.0
            lines.advance(100, 1.0)
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


def test_without_progress_a_long_audit_is_told_of_once_and_has_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a script and on a terminal; a short one says nothing. One place for both streams is no notebook."""
    with monkeypatch.context() as patch:
        both = io.StringIO()
        patch.setattr("sys.stdout", both)
        patch.setattr("sys.stderr", both)
        with watchers.watching(1) as watcher:
            assert not isinstance(watcher, Live)
    monkeypatch.setattr(watchers, "on_terminal", lambda out: True)
    for name in ("SEEN_S", "SHORTEST_S"):
        monkeypatch.setattr(watchers, name, 0.0)
    for long_s, told in ((0.0, True), (1e9, False)):
        monkeypatch.setattr(watchers, "LONG_S", long_s)
        audit(lambda data, rng: rng.random(), pair=(0, 1), epsilon=3.0, runs=2_000, n_jobs=1, progress=False)
        said = capsys.readouterr()
        lines = said.err.splitlines()  # once more where a busy machine made the first one wrong
        assert (said.out, bool(lines)) == ("", told)
        assert all(line.endswith(f"; {SHORTER}") for line in lines)


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


@for_each("columns", [40, 60, 80, 200])
def test_a_bar_cuts_neither_the_name_to_a_letter_nor_the_time(columns: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        bar = Live(12, io.StringIO())
        bar.audit(4, "noisy count on doubles, calibrated and yet not private")
        bar.plan(40_000, 1)
        bar.begin("search", 40_000)
        bar.began -= 2.0
        for _ in range(2):
            bar.advance(5_000, 1.35)
        line = bar.bar()
        bar.close()
    assert len(line) < columns
    assert line.startswith("[4/12] noisy count")
    assert line.endswith(" 8.1 s left")
    assert "25 %" in line


@for_each(
    ("setting", "live", "coloured"),
    [({}, True, True), ({"CI": "true"}, False, False)],
    nightly=[({"NO_COLOR": "1"}, True, False), ({"TERM": "dumb"}, False, False)],
)
def test_a_terminal_gets_bars(write: Write, setting: dict[str, str], live: bool, coloured: bool) -> None:
    name = write(spec(name='"[red]one[/red]"'))
    here, there = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", **setting}
    command = [sys.executable, "-m", "dpaudit", "run", name]
    with subprocess.Popen(command, stdin=there, stdout=subprocess.PIPE, stderr=there, env=environment) as running:
        os.close(there)
        seen = read_until(here, lambda _: False)
        out = running.communicate(timeout=60)[0].decode()
    os.close(here)
    assert running.returncode == 0
    assert out.startswith("dpaudit 0.1.0: 1 audit")
    assert "\x1b" not in out
    assert ("\x1b[?25l" in seen) == live  # the cursor is hidden while bars are drawn
    assert ("\x1b[3" in seen or "\x1b[9" in seen) == coloured
    assert "[red]one[/red]: not refuted, as expected" in seen  # a name is text, not markup
