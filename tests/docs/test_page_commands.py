"""Every command that the documentation shows exists, with the options it is shown with; those of README run."""

from __future__ import annotations

import doctest
import glob
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from dpaudit.cli.group import exit_code, group
from dpaudit.pytest_plugin import pytest_addoption
from tests.cases import for_each
from tests.docs.pages import PAGES, README, ROOT, blocks, commands

SHOWN = [(place, words) for page in PAGES for place, words, _ in commands(page)]
INLINE = re.compile(r"`(?:python -m )?(dpaudit [a-z-]+[^`]*)`")
PLUGIN = re.compile(r"--dpaudit-[a-z]+")


def _check(place: str, words: list[str]) -> None:
    context = click.Context(group)
    command = group.get_command(context, words[1])
    assert command is not None, f"{place}: there is no command `dpaudit {words[1]}`"
    known = {name for option in command.params for name in option.opts}
    for word in words[2:]:
        if word.startswith("--"):
            assert word.partition("=")[0] in {*known, "--help"}, f"{place}: `dpaudit {words[1]}` has no option {word}"


@for_each(("place", "words"), [each for each in SHOWN if each[1][0] == "dpaudit"])
def test_the_command_would_be_understood(place: str, words: list[str]) -> None:
    _check(place, words)
    command = group.get_command(click.Context(group), words[1])
    assert command is not None
    command.make_context("dpaudit", words[2:])  # parses, and runs nothing


def test_commands_inside_sentences_exist() -> None:
    found = 0
    for page in PAGES:
        for text in INLINE.findall(page.read_text(encoding="utf-8")):
            words = [word for word in text.split() if word != "..."]
            if words[1] != "COMMAND":
                _check(str(page.relative_to(ROOT)), words)
                found += 1
    assert found > 10


def test_options_of_the_plugin_exist() -> None:
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    known = {name for option in parser.getgroup("dpaudit").options for name in option.names()}
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = set(PLUGIN.findall(text))
    assert shown <= known
    assert known <= shown  # each of them is told of


def test_goals_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    pages = [*PAGES, README]
    goals = {goal for page in pages for goal in re.findall(r"`make ([\w-]+)`", page.read_text(encoding="utf-8"))}
    for goal in goals:
        assert re.search(rf"^{goal}:", makefile, re.MULTILINE), f"the pages name `make {goal}`; there is no such goal"


def test_other_programs_are_those_that_a_reader_has() -> None:
    assert {words[0] for _, words in SHOWN} <= {"dpaudit", "pytest", "python3", "python"}


def test_the_commands_of_readme_run_and_say_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In its order and in one folder; all but one in this process, which has imported what a second goes into."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(README):
        if block.language == "toml":
            (tmp_path / block.text.splitlines()[0].removeprefix("# ")).write_text(block.text)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for place, (program, *words), shown in commands(README):
        assert program == "dpaudit"
        capfd.readouterr()
        if words[0] == "run":
            code = subprocess.run(["sh", "-c", shlex.join([program, *words])]).returncode
        else:
            code = exit_code([each for word in words for each in (sorted(glob.glob(word)) or [word])])
        out, err = capfd.readouterr()
        assert code == 0, f"{place}: {words}: {err}"
        assert doctest.OutputChecker().check_output(shown, out, doctest.ELLIPSIS), f"{place}: {words} printed:\n{out}"
