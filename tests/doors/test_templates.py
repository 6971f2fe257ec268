"""What others include: a job for GitLab, hooks for pre-commit, a Dockerfile; each as far as a shell can try it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from dpaudit.cli.group import group
from tests.cases import for_each

ROOT = Path(__file__).parents[2]
JOB = yaml.safe_load((ROOT / "templates" / "dpaudit.gitlab-ci.yml").read_text(encoding="utf-8"))[".dpaudit"]
PYTHON = """#!/bin/sh
if [ "$2" = pip ]; then shift 2; printf '%s\\n' "$@" > installed; exit; fi
printf '%s\\n' "$@" > arguments
if [ -z "$BREAKS" ]; then mkdir -p report && echo '<testsuites/>' > report/junit.xml; fi
exit "${CODE:-0}"
"""


def ran(folder: Path, **variables: str) -> tuple[int, list[str]]:
    """Exit code of the job, and what it asks of dpaudit."""
    (folder / "python").write_text(PYTHON)
    (folder / "python").chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    given = {**os.environ, **JOB["variables"], "DPAUDIT_REPORT": "report", **variables, "PATH": path}
    shell = shutil.which("dash") or "sh"
    ended = subprocess.run([shell, "-e", "-c", *JOB["script"]], cwd=folder, env=given, capture_output=True, text=True)
    return ended.returncode, (folder / "arguments").read_text().splitlines()


def understood(words: list[str]) -> None:
    """Raises where `dpaudit` would not take this command line."""
    command = group.get_command(click.Context(group), words[0])
    assert command is not None, words[0]
    command.make_context("dpaudit", words[1:])


@for_each(
    ("variables", "code"),
    [({}, 0), ({"CODE": "1"}, 1), ({"BREAKS": "yes"}, 3), ({"BREAKS": "yes", "CODE": "2"}, 2)],
)
def test_the_job_ends_as_dpaudit_does_and_never_well_without_a_report(
    tmp_path: Path, variables: dict[str, str], code: int
) -> None:
    shutil.rmtree(tmp_path / "report", ignore_errors=True)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "junit.xml").write_text("of yesterday")
    found, arguments = ran(tmp_path, **variables)
    assert (found, arguments[:4]) == (code, ["-P", "-m", "dpaudit", "run"])
    understood(arguments[3:])


@pytest.mark.parametrize("name", ["$(touch escaped)", "'; touch escaped; '", "* -rf"])
def test_variables_of_the_job_are_options_and_never_a_part_of_its_script(tmp_path: Path, name: str) -> None:
    _, arguments = ran(tmp_path, DPAUDIT_PATHS=name, DPAUDIT_TAG=name, DPAUDIT_INSTALL="one two")
    assert not (tmp_path / "escaped").exists()
    assert arguments[arguments.index("--tag") + 1] == name
    assert arguments[arguments.index("--") + 1 :] == name.split()
    assert (tmp_path / "installed").read_text().split() == ["install", "--quiet", "one", "two"]
    _, arguments = ran(tmp_path, DPAUDIT_CONFIDENCE="0.99", DPAUDIT_SEED="7")
    understood(arguments[3:])
    assert {"0.99", "7", "json,md,html,junit,badge"} <= set(arguments)


def test_the_page_names_every_variable_of_the_job() -> None:
    page = (ROOT / "docs" / "ci" / "servers.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(DPAUDIT_\w+)`", page)) == set(JOB["variables"])


def test_the_hooks_are_commands_that_take_files() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == ["dpaudit-validate", "dpaudit-run"]
    for hook in hooks:
        first, *words = shlex.split(hook["entry"])
        assert first == "dpaudit"
        understood([*words, "audits/a.toml", "audits/b.toml"])
        assert re.search(hook["files"], "audits/deep/a.toml")
        assert not re.search(hook["files"], "pyproject.toml")


def test_the_image_is_made_of_files_that_are_there_and_runs_without_rights() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [word for line in lines if re.match("COPY (?!--)", line) for word in line.split()[1:-1]]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert set(copied) == {line[1:] for line in ignored if line.startswith("!")}
    assert all((ROOT / each).exists() for each in copied)
    installs = [line for line in lines if "pip install" in line]
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["10001:10001"]
    assert lines.index("USER 10001:10001") < lines.index('ENTRYPOINT ["dpaudit"]')
