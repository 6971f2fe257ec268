"""A run that is killed goes on: the same results, nothing twice; and is refused where it would be another run."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpaudit.execution.journal import StoredShard
from dpaudit.ledger.baseline import DEFAULT, SCHEMA
from dpaudit.ledger.database import Database, LedgerError
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import LedgerJournal, Run
from dpaudit.results.result import fingerprint
from dpaudit.results.stored import load
from tests.doors.conftest import Outcome, Write, document, process, spec
from tests.doors.conftest import Run as Command

LEDGER = Path(".dpaudit/ledger.sqlite")
NOISE = """
import time, pathlib
READ = [each.read_text() for each in [pathlib.Path("data.txt")] if each.exists()]
from helpers import scale

def noisy(data, rng):
    return data + rng.laplace(scale=scale()) + 0 * len(READ)

def slow(data, rng):
    from later import SHIFT

    time.sleep(0.0004)
    return SHIFT + data + rng.laplace(scale=scale())
"""
LAPLACE = spec(mechanism='"dpaudit.catalogue.additive:laplace"', claim=None, pair=None)
NOISY = spec(mechanism='"mechs:noisy"')
SHORT = ("--report", "out", "--format", "json", "--no-progress", "--jobs", "1")


def results(folder: str) -> dict[str, str]:
    """The records of a report byte for byte, but for their provenance."""
    found = {}
    for file in sorted(Path(folder).glob("*-*.json")):
        stored = json.loads(file.read_text())
        found[file.name] = json.dumps({key: value for key, value in stored.items() if key != "provenance"})
    return found


def provenance(folder: str, name: str) -> dict[str, Any]:
    (file,) = Path(folder).glob(f"{name}-*.json")
    return dict(json.loads(file.read_text())["provenance"])


def asked(query: str) -> list[Any]:
    with closing(sqlite3.connect(LEDGER, timeout=30)) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def suite(folder: Path, write: Write) -> str:
    """Two audits of a module that imports another one."""
    (folder / "noise.py").write_text(NOISE)
    (folder / "helpers.py").write_text("def scale():\n    return 1.5\n")
    (folder / "later.py").write_text("SHIFT = 0.0\n")
    names = {"quick": '"noise:noisy"', "slow": '"noise:slow"'}
    return write(*(spec(name=f'"{name}"', mechanism=found, runs="3_000") for name, found in names.items()))


@pytest.fixture
def interrupted(dpaudit: Command, suite: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Outcome]:
    """Runs the suite until so many tasks of an audit are stored; then it is interrupted."""
    keep = LedgerJournal.keep

    def run(tasks: int, *options: str, audit: int = 1) -> Outcome:
        left = [tasks]

        def counted(store: LedgerJournal, shards: Sequence[StoredShard]) -> None:
            keep(store, shards)
            left[0] -= store.number == audit
            if left[0] == 0:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(LedgerJournal, "keep", counted)
            return dpaudit("run", suite, *SHORT, *options)

    return run


def test_a_killed_run_goes_on_and_ends_as_if_nothing_had_been(dpaudit: Command, interrupted: Any, suite: str) -> None:
    assert dpaudit("run", suite, *SHORT[2:], "--report", "whole", "--no-ledger", "--seed", "3").code == 0
    assert not LEDGER.exists()
    ended = interrupted(4, "--seed", "3")
    assert ended.code == 130
    command = "dpaudit run spec.toml --report out --format json --jobs 1 --no-progress --seed 3 --resume"
    assert ended.err.lstrip() == f"interrupted: 0 of 2 audits finished; go on with: {command}\n"
    started = dpaudit("run", suite, "--tag", "none")
    assert (started.code, "note:" in started.err) == (5, False)
    running = process(*command.split()[1:])
    enough, deadline = "SELECT count(*) FROM shards WHERE audit = 2 AND stage = 2", time.monotonic() + 60
    while asked(enough)[0][0] <= 3:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.kill()
    running.communicate()
    held = asked('SELECT "call", look, stage, pair, shard FROM shards WHERE audit = 2')
    ended = dpaudit(*command.split()[1:])
    assert ended.code == 0, ended.err
    assert results("out") == results("whole")
    assert [provenance("out", name)["interruptions"] for name in ("quick", "slow")] == [1, 1]
    assert len(held) > 10
    assert asked("SELECT count(*) FROM shards") == [(0,)]  # their audits are recorded
    assert asked("SELECT number, name FROM results ORDER BY number") == [(1, "quick"), (2, "slow")]
    assert sorted(os.listdir(".dpaudit")) == [".gitignore", "ledger.sqlite"]
    again = dpaudit(*command.split()[1:])
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "there is no unfinished run of these specs" in again.err


def test_another_run_is_not_gone_on_with(
    dpaudit: Command, interrupted: Any, suite: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor with a finished audit of it that would have another answer now: one suite, one version of everything."""
    interrupted(2)
    ended = interrupted(1, audit=2)
    first, *_, second = filter(None, ended.err.splitlines())
    assert first.startswith("note: an unfinished run of the same audits (")
    assert first.endswith(") is in the ledger; --resume goes on with it")
    assert second.startswith("interrupted: 1 of 2 audits finished; their results are in out; go on with: dpaudit run")
    finished = results("out")

    def refused(said: str, *options: str) -> None:
        ended = dpaudit("run", suite, *SHORT, *options, "--resume")
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
        assert said in ended.err
        assert results("out") == finished

    def changed(file: str, text: str, said: str) -> None:
        before = (folder / file).read_text()
        (folder / file).write_text(text)
        refused(said)
        (folder / file).write_text(before)

    whole = (folder / suite).read_text()
    head, quick, slow = whole.split("[[audit]]")
    changed(suite, whole.replace("3_000", "4_000"), "audits, spec.toml: audit 'quick', runs was 3000 and is 4000")
    changed(suite, "[[audit]]".join((head, slow, quick)), "order, 1 was spec.toml: audit 'quick' and is spec.toml: aud")
    refused("seed was 0 and is 9", "--seed", "9")
    said = "function noise.noisy is not what it was; module noise is not what it was; the content of mechanism is not"
    changed("noise.py", NOISE.replace("return data", "return 0 + data"), said)
    said = "function helpers.scale is not what it was; module helpers is not what it was; leave out --resume to"
    changed("helpers.py", "def scale():\n    return 1.4\n", said)
    said = "module later is not what it was; leave out --resume to begin anew"
    changed("later.py", "SHIFT = 1.0\n", said)  # imported by the runs alone
    (folder / "data.txt").write_text("a")
    refused("noise.READ is not what it was")  # at import
    (folder / "data.txt").unlink()
    with monkeypatch.context() as patch:
        patch.setenv("DP_SCALE", "2")
        refused("environment variable DP_SCALE is new")
    with monkeypatch.context() as patch:
        patch.setattr("dpaudit.cli.suite.versions", lambda: {"version": "9.9.9", "platform": "x"})
        refused("dpaudit was 0.1.0 and is 9.9.9")
    (folder / "helpers.py").unlink()
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    refused("audit 'quick' had begun and can no longer be asked: 'noise:noisy' needs the module 'helpers'")


def test_what_a_generator_of_its_own_drew_before_the_kill_does_not_certify_after_it(
    dpaudit: Command, interrupted: Any, suite: str, folder: Path
) -> None:
    """It starts again with its seed: the draws that chose the witness would come once more."""
    (folder / suite).write_text(document(spec(mechanism='"noise:noisy"', runs="3_000")))
    own = "import numpy\nRNG = {made}\ndef noisy(data):\n    return data + {drawn}.laplace(scale=1.5)\n"
    (folder / "noise.py").write_text(own.format(made="numpy.random.default_rng(4)", drawn="RNG"))
    assert interrupted(2).code == 130
    ended = dpaudit("run", suite, *SHORT, "--resume")
    said = "begins anew: noise.RNG cannot be shown to be what it was (a random generator with a state of its own)"
    assert f"note: audit 'it' {said}" in ended.err
    assert provenance("out", "it")["interruptions"] == 0
    (folder / "noise.py").write_text(own.format(made="numpy.random.seed(4)", drawn="numpy.random"))
    assert interrupted(2).code == 130
    ended = dpaudit("run", suite, *SHORT, "--resume")
    assert ended.code == 3
    assert "no verdict   spec.toml: audit 'it': repeated streams: fresh process 1 and fresh process 2" in ended.err
    assert "it was interrupted, so its runs are those of 2 processes" in ended.err


def test_a_ledger_that_is_deleted_ends_the_run(dpaudit: Command, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Ledger.record

    def lost(ledger: Ledger, *given: Any, **keys: Any) -> int:
        LEDGER.unlink()
        return keep(ledger, *given, **keys)

    monkeypatch.setattr(Ledger, "record", lost)
    ended = dpaudit("run", write(LAPLACE), *SHORT)
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert "deleted, moved or replaced during the run" in ended.err
    assert ended.err.endswith("; 1 of 1 audits finished; their results are in out\n")  # and nothing to go on with
    assert len(results("out")) == 1


def test_a_report_that_could_not_be_written_is_written_by_resuming(
    dpaudit: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("dpaudit.cli.suite.report.write_suite", full)
        ended = dpaudit("run", write(LAPLACE), *SHORT)
    assert ended.code == 2
    assert "the report could not be written: No space left on device; once it can be, dpaudit run spec" in ended.err
    assert "report: out" not in ended.out
    monkeypatch.setattr("dpaudit.auditing.runner.run_audit", lambda *_, **__: pytest.fail("it ran again"))
    ended = dpaudit("run", "spec.toml", *SHORT, "--resume")
    assert (ended.code, ended.err) == (0, "")
    (entry,) = json.loads(Path("out/suite.json").read_text())["entries"]
    assert entry["source"] == "spec.toml"


def test_a_failed_audit_is_not_run_again(dpaudit: Command, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = write(
        spec(name='"spoils"', mechanism='"mechs:spoils"', pair='"mechs:pair"'),
        spec(name='"absent"', mechanism='"mechs:absent"'),
    )
    with monkeypatch.context() as patch:
        patch.setattr(Run, "finish", lambda run: (_ for _ in ()).throw(KeyboardInterrupt))
        dpaudit("run", broken, *SHORT)
    (before,) = asked("SELECT count(*) FROM failures")
    with monkeypatch.context() as patch:
        patch.setattr("dpaudit.auditing.runner.run_audit", lambda *_, **__: pytest.fail("it ran again"))
        ended = dpaudit("run", broken, "--jobs", "1", "--resume")
    assert before == (2,)
    assert ended.code == 2
    assert "no verdict spoils: " in ended.out
    assert "no verdict absent: " in ended.out


@pytest.mark.parametrize("nth", [5, 9, None], ids=["fault at a commit", "at a later one", "full disk"])
def test_a_disk_that_fails_ends_the_run_and_costs_nothing_but_a_resume(
    dpaudit: Command, write: Write, monkeypatch: pytest.MonkeyPatch, nth: int | None
) -> None:
    path, transaction, connect, seen = write(NOISY), Database.transaction, Database._connect, 0
    assert dpaudit("run", path, "--report", "peace", *SHORT[2:], "--no-ledger").code == 0
    Database(LEDGER).close()
    ((pages,),) = asked("PRAGMA page_count")

    @contextmanager
    def faulty(database: Database) -> Iterator[sqlite3.Connection]:
        nonlocal seen
        with transaction(database) as connection:
            yield connection
            seen += 1
            if seen == nth:
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
                raise error

    def small(database: Database, mode: str) -> sqlite3.Connection:
        connection = connect(database, mode)
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(Database, "transaction", faulty) if nth else patch.setattr(Database, "_connect", small)
        ended = dpaudit("run", path, *SHORT)
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    said = (
        "or its quota is used up"
        if nth
        else "the disk is full; what was recorded before is whole: free space and go on"
    )
    assert said in ended.err
    assert ended.err.rstrip().endswith("--resume")
    assert asked("PRAGMA integrity_check") == [("ok",)]
    ended = dpaudit("run", path, *SHORT, "--resume")
    assert (ended.code, ended.err) == (0, "")
    assert results("out") == results("peace")
    assert provenance("out", "it")["interruptions"] == (nth != 9)  # by then the audit was recorded


def test_without_a_usable_default_the_run_goes_on_without(
    dpaudit: Command, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".dpaudit").write_text("a file")
    ended = dpaudit("run", write(LAPLACE), *SHORT)
    note, *_ = ended.err.splitlines()
    assert (ended.code, note.startswith("note: ledger .dpaudit/ledger.sqlite: ")) == (0, True)
    assert note.endswith("; this run is not recorded, and cannot be resumed")
    for options in (("--resume",), ("--ledger", ".dpaudit/ledger.sqlite")):
        ended = dpaudit("run", "spec.toml", *options)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
    (folder / ".dpaudit").unlink()
    Database(LEDGER).close()
    monkeypatch.setattr(Database, "transaction", lambda _: (_ for _ in ()).throw(LedgerError("it is read-only")))
    ended = dpaudit("run", "spec.toml", *SHORT)
    assert (ended.code, ended.err) == (0, "note: it is read-only; this run is not recorded, and cannot be resumed\n")


def test_the_ledger_of_the_project_holds_the_result(dpaudit: Command, write: Write, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.dpaudit]\nledger = "kept/all.sqlite"\n')
    git = folder / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\ncase "$*" in *rev-parse*) echo {"ab" * 20};; *) echo " M mechs.py";; esac\n')
    git.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(git.parent), prepend=os.pathsep)
        assert dpaudit("run", write(LAPLACE), *SHORT).code == 0
    with Ledger("kept/all.sqlite") as ledger:
        (record,) = [each for each in ledger.results() if each.name == "it"]
        result = ledger.load(record)
    assert record.commit == f"{'ab' * 20}-dirty"
    assert result.to_json() == next(Path("out").glob("it-*.json")).read_text()
    assert not LEDGER.exists()


def test_a_reviewed_finding_is_held_against_the_suite(
    dpaudit: Command, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(spec(mechanism='"mechs:leak"'))
    monkeypatch.setattr(Run, "finish", lambda run: None)  # so that the same run may be taken up again
    assert dpaudit("run", path, *SHORT).code == 1
    (record,) = folder.glob("out/it-*.json")
    for until, code, said in (
        ("2999-01-01", 0, "every verdict as expected or accepted"),
        ("2001-01-01", 1, "1 acceptance expired"),
    ):
        finding = f'fingerprint = "{fingerprint(load(record))}"\nfinding = "it"\nreason = "old"\n'
        days = f"accepted = 2000-01-01\nuntil = {until}\n"
        Path(DEFAULT).write_text(f'schema = "{SCHEMA}"\n[[finding]]\n{finding}{days}')
        ended = dpaudit("run", path, "--jobs", "1", "--resume")
        assert ended.code == code, ended.out
        assert said in ended.out
