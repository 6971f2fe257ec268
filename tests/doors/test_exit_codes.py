"""Every exit code of `dpaudit run`, and that no audit takes another one's result with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpaudit.base import quoting
from dpaudit.ledger.results import Ledger
from tests.doors.conftest import Outcome, process, spec

UNTOLD = quoting.untold  # the tests put another in its place
Run = Callable[..., Outcome]
Write = Callable[..., str]

LEAK = spec(name='"leak"', mechanism='"mechs:leak"', expect='"refuted"')
CONSTANT = spec(name='"constant"', tags='["quick"]')
FEWER = ("--confidence", "0.9")  # a sure event takes a third of the processes then
DIES = spec(name='"dies"', mechanism='"mechs:dies"')


def test_all_as_expected_is_0_and_everything_is_written(dpaudit: Run, write: Write, folder: Path) -> None:
    ended = dpaudit("run", write(LEAK, CONSTANT), "--report", "out", "--format", "json,md", "--seed", "5")
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "dpaudit 0.1.0: 2 audits, suite confidence 0.999, seed 5"
    assert lines[1].startswith("as expected  REFUTED")
    assert lines[2].startswith("as expected  not refuted")
    assert "exit code 0" in ended.out
    told = [line.split("]")[0] for line in ended.err.splitlines()]  # a line an audit, and more on a busy machine
    assert list(dict.fromkeys(told)) == ["[1/2", "[2/2"]
    files = sorted(os.listdir(folder / "out"))
    assert [name.rpartition("-")[0] or name for name in files] == ["constant", "leak", "report.md", "suite.json"]
    stored = json.loads((folder / "out" / files[1]).read_text())
    assert stored["verdict"] == "REFUTED"
    assert stored["spec"]["confidence"] == 0.9995  # 1 - (1 - 0.999) / 2
    assert stored["provenance"]["command"] == "dpaudit run spec.toml --seed 5 --confidence 0.999"
    assert stored["provenance"]["source"] == "spec.toml"


@pytest.mark.parametrize(
    "audit",
    [spec(mechanism='"mechs:leak"'), spec(expect='"refuted"')],
    ids=["refuted-unexpectedly", "known-violation-missed"],
)
def test_a_verdict_not_as_expected_is_1(dpaudit: Run, write: Write, audit: str) -> None:
    ended = dpaudit("run", write(audit), *FEWER)
    assert ended.code == 1
    assert "1 verdict not as expected" in ended.out
    assert "repeat" in ended.out  # the whole account, not only a line


def test_no_verdict_is_3_and_the_others_keep_their_results(dpaudit: Run, write: Write, folder: Path) -> None:
    spoils = spec(name='"spoils"', mechanism='"mechs:spoils"', pair="{ first = [1], second = [2] }")
    needs = spec(name='"needs"', requires='["no_such_module_here"]')
    ended = dpaudit("run", write(LEAK, DIES, spoils, needs, CONSTANT), *FEWER, "--report", "out", "--format", "json,md")
    assert ended.code == 3
    assert "2 of" not in ended.out
    assert "1 refuted, 1 not refuted, 3 without verdict; every verdict as expected; exit code 3" in ended.out
    assert "spec.toml: audit 'dies': " in ended.err
    assert "process died" in ended.err
    assert "changed its dataset" in ended.err
    assert "requires the module 'no_such_module_here', which is not installed here" in ended.err
    assert sorted(name.rpartition("-")[0] for name in os.listdir(folder / "out")) == ["", "", "constant", "leak"]


def test_the_worst_code_wins(dpaudit: Run, write: Write) -> None:
    unknown = spec(name='"unknown"', mechanism='"mechs:no_such_function"')
    ended = dpaudit("run", write(spec(mechanism='"mechs:leak"'), DIES, unknown), *FEWER, "--quiet")
    assert ended.code == 2  # before 1 (refuted) and 3 (dies)
    assert len(ended.out.splitlines()) == 1
    assert "'mechs' has no 'no_such_function'" in ended.err


def test_nothing_to_audit_is_5(dpaudit: Run, write: Write) -> None:
    name = write(CONSTANT)
    ended = dpaudit("run", name, "--tag", "core", "--report", "out", "--format", "json,md")
    assert (ended.code, ended.err) == (5, "nothing to audit: none of the 1 audits in spec.toml has the tag 'core'\n")
    assert dpaudit("run", write(name="empty.toml")).code == 5
    assert not os.path.exists("out")


def test_an_internal_error_is_70_in_one_line_and_loses_nothing(
    dpaudit: Run, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpaudit.auditing import audit, runner

    def breaks(spec: object, engine: object, **options: object) -> object:
        if getattr(spec, "name", "") == "leak":
            raise RuntimeError("the sky\nfell")
        return audit.run_audit(spec, engine, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "run_audit", breaks)
    ended = dpaudit("run", write(LEAK, CONSTANT), "--report", "out", "--format", "json,md", "--no-progress")
    assert ended.code == 70
    assert "internal error: RuntimeError: the sky fell; `dpaudit --debug ...` shows where\n" in ended.err
    assert "not refuted  constant" in ended.out
    assert sorted(name.rpartition("-")[0] for name in os.listdir(folder / "out")) == ["", "", "constant"]


def test_a_part_of_a_report_that_cannot_be_told_changes_no_verdict_and_no_exit_code(
    dpaudit: Run, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> str:
        raise OverflowError("cannot convert float infinity to integer")

    monkeypatch.setattr(quoting, "untold", UNTOLD)
    monkeypatch.setattr("dpaudit.account.first.answers", fail)
    formats = "json,md,html,junit,sarif,csv,txt,summary,badge"
    ended = dpaudit("run", write(spec(mechanism='"mechs:leak"')), *FEWER, "--report", "out", "--format", formats)
    assert (ended.code, ended.err.count("internal error")) == (1, 0)
    assert "1 refuted, 0 not refuted, 0 without verdict; 1 verdict not as expected; exit code 1" in ended.out
    assert "(OverflowError: cannot convert float infinity to integer); verdict and counts stand" in ended.out
    assert len(os.listdir(folder / "out")) == 11
    stored = json.loads((folder / "out" / "suite.json").read_text())
    assert (stored["exit_code"], stored["entries"][0]["result"]["verdict"]) == (1, "REFUTED")


def test_an_interrupt_is_130_at_once_and_finished_audits_stay(write: Write, folder: Path) -> None:
    (folder / "slow.py").write_text("import time\ndef slow(data):\n    time.sleep(0.01)\n    return 0\n")
    slow = spec(name='"slow"', mechanism='"slow:slow"', runs="1_000_000")
    began = time.monotonic()
    running = process("run", write(CONSTANT, slow), "--report", "out", "--format", "json,md")
    deadline = began + 60
    while not list(folder.glob("out/constant-*.json")):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    started_s = time.monotonic() - began  # tells how busy the machine is
    time.sleep(1.0)  # into the second audit
    running.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, err = running.communicate(timeout=120)  # the audit itself would take hours
    assert running.returncode == 130
    assert time.monotonic() - sent < max(10.0, 5.0 * started_s)
    said = "interrupted: 1 of 2 audits finished; their results are in out; go on with: dpaudit run spec.toml "
    assert err.splitlines()[-1] == said + "--report out --format json,md --resume"
    assert "Traceback" not in err
    assert [name for name in os.listdir(folder / "out") if name.startswith(".")] == []  # nothing half written


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_where_nobody_can_be_told_the_code_is_no_verdict() -> None:
    with open("/dev/full", "w") as full:
        assert subprocess.run([sys.executable, "-m", "dpaudit", "--version"], stdout=full, stderr=full).returncode == 2


@pytest.mark.parametrize(
    ("given", "source", "said"),
    [
        ("calls exit(1)", "import ctypes; ctypes.CDLL(None).exit(1)", ""),
        ("no memory", "raise MemoryError", "error: MemoryError: "),
        ("broken", "raise ImportError('no segment')", "error: ImportError: no segment"),
        ("leaves", "raise SystemExit(1)", ""),
    ],
)
def test_a_library_that_ends_or_fails_where_it_is_loaded_is_no_verdict(
    tmp_path: Path, given: str, source: str, said: str
) -> None:
    """As on a machine with too little memory: OpenBLAS calls exit(1), which reads as refuted."""
    (tmp_path / "numpy.py").write_text(source)
    command = [sys.executable, "-m", "dpaudit", "catalogue"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr.startswith(said)) == (3, "", True), ended.stderr
    assert ended.stderr.count("\n") == bool(said)


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("streams", ["2>&-", "0<&- 1>&- 2>&-", "2>&1 | true"])
def test_the_code_is_the_verdicts_where_streams_are_closed_or_nobody_reads(
    write: Write, folder: Path, streams: str
) -> None:
    """And no file of ours gets the number of such a stream: the ledger is whole."""
    asked = " ".join(["run", write(spec(expect='"refuted"')), *FEWER])  # missed: as quick as a run can be
    line = f'{sys.executable} -m dpaudit {asked} --ledger kept.sqlite {streams}; exit "${{PIPESTATUS[0]}}"'
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    with Ledger(folder / "kept.sqlite", read_only=True) as ledger:
        assert ledger.chain().wrong is None
        assert ledger.chain().rows == 1
