"""The composite action: what its script asks of dpaudit, what it leaves for the next step; no input escapes."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from dpaudit.cli.commands import RunCommand

ACTION = Path(__file__).parents[2] / "action.yml"
INPUTS = ("PATHS", "CONFIDENCE", "SEED", "TAG", "REPORT", "FORMATS", "LEDGER", "ACCEPTED")
DEFAULTS = {"PATHS": "audits", "REPORT": "out", "FORMATS": "json,md"}

# stands for Python with dpaudit: keeps its arguments, writes what dpaudit would, ends as it was told
PYTHON = """#!/bin/bash
env > environment
for argument in "$@"; do printf '%s\\n' "$argument"; done > arguments
if [ -z "$BREAKS" ]; then mkdir -p out; echo '# summary' > out/summary.md; echo '{}' > out/dpaudit.sarif; fi
exit "${CODE:-0}"
"""


def script() -> str:
    """The shell script of the step that audits."""
    text = ACTION.read_text(encoding="utf-8")
    return textwrap.dedent(text.rpartition("      run: |\n")[2])


def ran(folder: Path, **inputs: str) -> tuple[int, list[str], dict[str, str], str]:
    """Exit code, arguments of dpaudit, outputs and the summary of the job."""
    (folder / "bin").mkdir(exist_ok=True)
    python = folder / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    given = {**dict.fromkeys(INPUTS, ""), **DEFAULTS, **inputs}
    files = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # GitHub runs a step with these options
    called = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script()]
    ended = subprocess.run(called, cwd=folder, env={**given, **files, "PATH": path}, capture_output=True, text=True)
    outputs = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
    arguments = (folder / "arguments").read_text().splitlines()
    return ended.returncode, arguments, outputs, (folder / "summary").read_text()


@pytest.mark.parametrize("code", [0, 1, 70])
def test_the_exit_code_is_that_of_dpaudit_and_the_outputs_are_there_all_the_same(tmp_path: Path, code: int) -> None:
    found, arguments, outputs, summary = ran(tmp_path, CODE=str(code))
    assert found == code
    usual = ["--report", "out", "--format", "json,md,sarif,summary", "--no-progress", "--no-ledger"]
    assert arguments == ["-P", "-m", "dpaudit", "run", *usual, "--", "audits"]
    assert outputs == {"report": "out", "sarif": "out/dpaudit.sarif", "exit-code": str(code)}
    assert summary == "# summary\n"


def test_every_input_becomes_an_option_that_the_command_has(tmp_path: Path) -> None:
    more = {"CONFIDENCE": "0.99", "SEED": "7", "TAG": "core", "LEDGER": "l.sqlite", "ACCEPTED": "a.toml"}
    _, arguments, _, _ = ran(tmp_path, PATHS="one  two\nthree", **more)
    options = arguments[arguments.index("run") + 1 : arguments.index("--")]
    for name in more:
        assert options[options.index(f"--{name.lower()}") + 1] == more[name]
    assert arguments[arguments.index("--") + 1 :] == ["one", "two", "three"]
    known = {option for parameter in RunCommand.of_click(lambda call: 0).params for option in parameter.opts}
    assert {each for each in options if each.startswith("--")} | {"--no-ledger"} <= known


@pytest.mark.parametrize("name", ["$(touch escaped)", "`touch escaped`", "'; touch escaped; '", "* -rf"])
def test_no_input_is_read_as_a_part_of_the_script(tmp_path: Path, name: str) -> None:
    _, arguments, _, _ = ran(tmp_path, PATHS=name, TAG=name, SEED=name)
    assert not (tmp_path / "escaped").exists()
    assert arguments.count(name) == 2
    assert arguments[arguments.index("--") + 1 :] == name.split()


def test_a_run_that_wrote_nothing_leaves_no_old_file_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "dpaudit.sarif").write_text("of yesterday")
    code, _, outputs, summary = ran(tmp_path, BREAKS="yes", CODE="2")
    assert (code, outputs["sarif"]) == (2, "")
    assert "exit code 2 and wrote no summary" in summary


@pytest.mark.parametrize(("code", "found"), [("0", 3), ("3", 3), ("70", 70)])
def test_without_a_summary_nothing_is_a_success(tmp_path: Path, code: str, found: int) -> None:
    """As a process ends that something in it has ended: with 0, and without a verdict."""
    ended, _, outputs, summary = ran(tmp_path, BREAKS="yes", CODE=code)
    assert (ended, outputs["exit-code"]) == (found, str(found))
    assert f"exit code {found} and wrote no summary" in summary


def test_files_of_later_steps_are_not_handed_to_what_is_audited(tmp_path: Path) -> None:
    ran(tmp_path)
    assert "GITHUB_" not in (tmp_path / "environment").read_text()


def test_the_script_uses_inputs_by_its_environment_only() -> None:
    assert "${{" not in script()
    text = ACTION.read_text(encoding="utf-8")
    declared = re.findall(r"^  ([a-z-]+):$", text.partition("\ninputs:\n")[2].partition("\noutputs:\n")[0], re.M)
    used = re.findall(r"inputs\.([a-z-]+)", text)
    assert sorted(declared) == sorted(set(used))
    assert sorted(name.upper() for name in declared if name != "install") == sorted(INPUTS)
    named = re.findall(r"\$GITHUB_ACTION_PATH/([\w./]+)", text)
    assert named == ["requirements/action.txt"]
    assert (ACTION.parent / named[0]).is_file()
