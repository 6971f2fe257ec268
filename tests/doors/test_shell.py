"""What a shell gives and a terminal shows: completion, what may be meant, searches, lines in its width, colours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpaudit.cli import options
from dpaudit.cli.options import laid_out
from tests.doors.conftest import Outcome, spec

Run = Callable[..., Outcome]
Write = Callable[..., str]
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


def test_the_catalogue_is_searched_by_words(dpaudit: Run) -> None:
    found = dpaudit("catalogue", "Gaussian", "zcdp").out
    assert "gaussian_zcdp.variance_as_sigma  breaks its claim" in found
    assert len(found.splitlines()) == 6
    assert "gaussian_zcdp" not in dpaudit("catalogue", "laplace noise").out
    assert dpaudit("catalogue", "laplace").out.startswith("laplace: Laplace noise on a number\n")
    missed = dpaudit("catalogue", "laplase")
    assert (missed.code, missed.err) == (2, "error: the catalogue has no entry 'laplase'; did you mean 'laplace'?\n")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_and_files(tmp_path: Path) -> None:
    (tmp_path / "dpaudit").write_text(f'#!/bin/sh\nexec {sys.executable} -m dpaudit "$@"\n')
    (tmp_path / "dpaudit").chmod(0o755)
    paths = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    ended = subprocess.run(
        ["bash", "-c", COMPLETE], env={**os.environ, **paths}, cwd=tmp_path, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split("\n") == [
        "catalogue calibrate",
        "--isolation",
        "files -o default",
        "",
        "files -o default",
        "",
        "",
    ]


def test_lines_hang_within_the_width_and_commands_are_left_alone() -> None:
    text = (
        "could see       "
        + "word " * 40
        + "\n                "
        + "more " * 30
        + "\nrepeat          as typed\n"
        + " " * 16
        + "typed " * 30
    )
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
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    options.show(plain)
    monkeypatch.setenv("NO_COLOR", "1")
    options.show(plain)
    monkeypatch.setenv("TERM", "dumb")
    options.show(plain)
    (coloured, yes), (bare, no), (dumb, unsaid) = shown
    assert (yes, no, unsaid, dumb) == (True, False, None, plain)
    assert ESCAPE.sub("", coloured) == bare
    assert "\x1b[31m\x1b[1mREFUTED\x1b[0m" in coloured
    assert "\x1b[34m\x1b[1mnot refuted\x1b[0m" in coloured
    told = bare.partition("\nrepeat  ")[0].splitlines()
    assert max(map(len, told)) <= 70 < max(map(len, plain.partition("\nrepeat  ")[0].splitlines()))


def test_printed_paths_lead_to_the_page(dpaudit: Run, write: Write) -> None:
    ended = dpaudit("run", write(spec()), "--no-ledger", "--report", "out")
    assert "\nreport: out/index.html\n" in ended.out
    assert (
        "\nreport: o/report.md\n" in dpaudit("run", "spec.toml", "--no-ledger", "--report", "o", "--format", "md").out
    )
