"""README, read top to bottom: every example and command in it runs, in one folder, in its order."""

from __future__ import annotations

import doctest
import glob
import linecache
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit.cli.group import exit_code

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BY_SHELL = ["check", "run", "recheck"]  # with a process of workers, and a name that the shell completes
MATCHES = doctest.OutputChecker().check_output


def blocks(*languages: str) -> list[tuple[str, str]]:
    """The fenced blocks of README in some languages, in order."""
    return [(language, text) for language, text in BLOCK.findall(README.read_text()) if language in languages]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that README shows."""
    made = tmp_path_factory.mktemp("readme")
    for _, text in blocks("toml"):
        name = text.splitlines()[0].removeprefix("# ")
        (made / name).write_text(text)
    return made


def test_the_python_examples_run_and_the_first_line_is_the_one_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"__name__": "readme"}
    for place, (_, text) in enumerate(blocks("python")):
        file = f"README.md, example {place}"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # as an interpreter does it
        exec(compile(text, file, "exec"), names)
    shown = blocks("text")[0][1].strip()
    assert capsys.readouterr().out.startswith(shown)
    assert (folder / "noisy_count.json").is_file()


def commands() -> list[tuple[str, str]]:
    """Each `$ command` with what README shows of its output."""
    found = []
    for _, text in blocks("console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def test_the_commands_run_and_say_what_is_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Those of `BY_SHELL` as they stand; the others in this process, which has imported what a second goes into."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    by_shell = []
    for command, shown in commands():
        name, *words = shlex.split(command)
        assert name == "dpaudit"
        if words[0] in BY_SHELL and "--fresh" not in words:
            ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
            code, out, err = ended.returncode, ended.stdout, ended.stderr
            by_shell.append(words[0])
        else:
            capfd.readouterr()
            code = exit_code([each for word in words for each in (sorted(glob.glob(word)) or [word])])
            out, err = capfd.readouterr()
        assert code == 0, f"{command}: {err}"
        assert MATCHES(shown, out, doctest.ELLIPSIS), f"{command} printed:\n{out}"
    assert by_shell == BY_SHELL


def test_every_make_goal_that_is_named_is_there() -> None:
    makefile = (README.parent / "Makefile").read_text()
    for goal in set(re.findall(r"`make ([\w-]+)`", README.read_text())):
        assert re.search(rf"^{goal}:", makefile, re.MULTILINE), (
            f"README names `make {goal}`; the Makefile has no such goal"
        )


def test_ci_runs_nothing_that_readme_does_not_say() -> None:
    lines = (README.parent / ".ci" / "run").read_text().splitlines()
    ran = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert ran == ["make test"]
