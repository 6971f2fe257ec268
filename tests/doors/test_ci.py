"""What other people's servers run: the composite action, a job for GitLab, hooks, a Dockerfile; no input escapes.

Each as far as a shell can try it: a program stands for Python with dpaudit, which keeps its arguments, writes what
dpaudit would, and ends as it was told.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import textwrap
from pathlib import Path

import click
import yaml

from dpaudit.cli.group import group
from tests.cases import for_each

ROOT = Path(__file__).parents[2]
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
STEP = textwrap.dedent(ACTION.rpartition("      run: |\n")[2])
INPUTS = ("PATHS", "CONFIDENCE", "SEED", "RUNS", "TAG", "ONLY", "REPORT", "FORMATS", "LEDGER", "ACCEPTED")
DEFAULTS = {"PATHS": "audits", "REPORT": "out", "FORMATS": "json,md"}
JOB = yaml.safe_load((ROOT / "templates" / "dpaudit.gitlab-ci.yml").read_text(encoding="utf-8"))[".dpaudit"]
PYTHON = """#!/bin/sh
if [ "$2" = pip ]; then shift 2; printf '%s\\n' "$@" > installed; exit; fi
env > environment
printf '%s\n' "$SAYS" >&2
printf '%s\\n' "$@" > arguments
if [ -z "$BREAKS" ]; then
    mkdir -p out; echo '# summary' > out/report.md; echo '{}' > out/dpaudit.sarif; echo '<testsuites/>' > out/junit.xml
fi
exit "${CODE:-0}"
"""
HOSTILE = ["$(touch escaped)", "'; touch escaped; '", "* -rf", "`touch escaped`"]


def ended(folder: Path, command: list[str], given: dict[str, str]) -> tuple[int, list[str]]:
    """Exit code of a script, and the arguments that dpaudit got."""
    python = folder / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    given = {**given, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True)
    (folder / "log").write_bytes(done.stdout)
    return done.returncode, (folder / "arguments").read_text().splitlines()


def action(folder: Path, **inputs: str) -> tuple[int, list[str], dict[str, str], str]:
    """Exit code of the action, arguments of dpaudit, outputs and the summary of the job."""
    output, summary = folder / "output", folder / "summary"
    for file in (output, summary):
        file.write_text("")
    given = {**dict.fromkeys(INPUTS, ""), **DEFAULTS, **inputs}
    given |= {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    # GitHub runs a step with these options
    code, arguments = ended(folder, ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP], given)
    return code, arguments, dict(line.split("=", 1) for line in output.read_text().splitlines()), summary.read_text()


def job(folder: Path, **variables: str) -> tuple[int, list[str]]:
    """Exit code of the job, and what it asks of dpaudit."""
    given = {**os.environ, **JOB["variables"], "DPAUDIT_REPORT": "out", **variables}
    return ended(folder, [shutil.which("dash") or "sh", "-e", "-c", *JOB["script"]], given)


def understood(words: list[str]) -> None:
    """Raises where `dpaudit` would not take this command line."""
    command = group.get_command(click.Context(group), words[0])
    assert command is not None, words[0]
    command.make_context("dpaudit", words[1:])


@for_each("code", [0, 1, 70])
def test_the_exit_code_is_that_of_dpaudit_and_the_outputs_are_there_all_the_same(tmp_path: Path, code: int) -> None:
    found, arguments, outputs, summary = action(tmp_path, CODE=str(code))
    assert found == code
    usual = ["--report", "out", "--format", "json,md,md,sarif", "--no-progress", "--no-ledger"]
    assert arguments == ["-P", "-m", "dpaudit", "run", *usual, "--", "audits"]
    assert outputs == {"report": "out", "sarif": "out/dpaudit.sarif", "exit-code": str(code)}
    assert summary == "# summary\n"
    assert "GITHUB_" not in (tmp_path / "environment").read_text()  # files of later steps


def test_every_input_becomes_an_option_that_the_command_has(tmp_path: Path) -> None:
    more = {"CONFIDENCE": "0.99", "SEED": "7", "TAG": "core", "LEDGER": "l.sqlite", "ACCEPTED": "a.toml"}
    more |= {"RUNS": "5e4", "ONLY": "noisy count"}
    (tmp_path / "a.toml").write_text("")
    _, arguments, _, _ = action(tmp_path, PATHS="one  two\nthree", **more)
    understood(arguments[3:])
    assert all(arguments[arguments.index(f"--{name.lower()}") + 1] == value for name, value in more.items())
    assert arguments[arguments.index("--") + 1 :] == ["one", "two", "three"]
    _, arguments = job(tmp_path, DPAUDIT_CONFIDENCE="0.99", DPAUDIT_SEED="7")
    understood(arguments[3:])
    assert {"0.99", "7", "json,md,html,junit,badge"} <= set(arguments)


@for_each("name", HOSTILE)
def test_no_input_is_read_as_a_part_of_a_script(tmp_path: Path, name: str) -> None:
    asked = {
        "action": action(tmp_path, PATHS=name, TAG=name, SEED=name, ONLY=name, SAYS=f"error: a.toml: {name}")[1],
        "job": job(tmp_path, DPAUDIT_PATHS=name, DPAUDIT_TAG=name, DPAUDIT_INSTALL="one two")[1],
    }
    assert not (tmp_path / "escaped").exists()
    assert asked["action"].count(name) == 3
    for arguments in asked.values():
        assert arguments[arguments.index("--tag") + 1] == name
        assert arguments[arguments.index("--") + 1 :] == name.split()
    assert (tmp_path / "installed").read_text().split() == ["install", "--quiet", "one", "two"]


@for_each(("code", "found"), [("0", 3), ("2", 2), ("70", 70)])
def test_without_a_summary_nothing_is_a_success_and_no_old_file_is_left(tmp_path: Path, code: str, found: int) -> None:
    """As a process ends that something in it has ended: with 0, and without a verdict."""
    (tmp_path / "out").mkdir(exist_ok=True)
    for name in ("dpaudit.sarif", "junit.xml"):
        (tmp_path / "out" / name).write_text("of yesterday")
    status, _, outputs, summary = action(tmp_path, BREAKS="yes", CODE=code)
    assert (status, outputs["exit-code"], outputs["sarif"]) == (found, str(found), "")
    assert f"exit code {found} and wrote no summary" in summary
    assert job(tmp_path, BREAKS="yes", CODE=code)[0] == found
    for ends in ("0", "1"):
        assert job(tmp_path, CODE=ends)[0] == int(ends)


def test_what_is_wrong_with_a_spec_is_an_annotation_at_its_line(tmp_path: Path) -> None:
    wrong = [
        "error: a/b.toml: line 5: audit 'x': 100 % wrong",
        "no verdict   a/c.toml: audit 'y': there is no module 'm'",
    ]
    assert action(tmp_path, SAYS="\n".join([*wrong, "note: d.toml: line 1: fine"]), CODE="2")[0] == 2
    found = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("::")]
    first, second = "::error file=a/b.toml,line=5::audit 'x': 100 %25 wrong", "::error file=a/c.toml::audit 'y': "
    assert [found[0], found[1].partition("there")[0], len(found)] == [first, second, 2]


def test_scripts_use_inputs_by_their_environment_only_and_name_what_is_there() -> None:
    assert "${{" not in STEP
    declared = re.findall(r"^  ([a-z-]+):$", ACTION.partition("\ninputs:\n")[2].partition("\noutputs:\n")[0], re.M)
    assert sorted(declared) == sorted(set(re.findall(r"inputs\.([a-z-]+)", ACTION)))
    assert sorted(name.upper() for name in declared if name != "install") == sorted(INPUTS)
    assert re.findall(r"\$GITHUB_ACTION_PATH/([\w./]+)", ACTION) == ["requirements/action.txt"]
    assert (ROOT / "requirements" / "action.txt").is_file()
    page = (ROOT / "docs" / "ci" / "servers.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(DPAUDIT_\w+)`", page)) == set(JOB["variables"])


def test_actions_of_others_are_named_by_the_hash_of_a_commit() -> None:
    pages = [ROOT / "action.yml", *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.yml")]
    used = [each for page in pages for each in re.findall(r"uses: ([\w-]+/\S+)", page.read_text(encoding="utf-8"))]
    assert len(used) > 8
    assert not [each for each in used if not re.search(r"@([0-9a-f]{40}|COMMIT)$", each)]


def test_the_hooks_are_commands_that_take_files() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == ["dpaudit-validate", "dpaudit-run"]
    for hook in hooks:
        *environment, first, second = re.split(r"(dpaudit) ", hook["entry"])
        assert (environment, first) in [([""], "dpaudit"), (["env PYTHONPATH=src:. "], "dpaudit")]
        words = shlex.split(second)
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
