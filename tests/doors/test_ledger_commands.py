"""`dpaudit history`, `compare` and `accept`: what is read, what is said, and the exit codes."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dpaudit.ledger import history
from dpaudit.ledger.baseline import read_baseline
from dpaudit.ledger.results import Ledger
from dpaudit.report import exchange
from dpaudit.results import provenance
from dpaudit.results.result import fingerprint
from tests.cases import for_each
from tests.doors.conftest import Run as Command
from tests.golden import example
from tests.ledger import made

Run = Callable[..., tuple[int, str, str]]
SOUND, LOUD = made.counted(100_000, 50_000), made.counted(200_000, 50_000)
NAME = "noisy count, whole noise"
LATER = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()
USUAL = ".dpaudit/ledger.sqlite"


@pytest.fixture(autouse=True)
def here(folder: Path) -> Path:
    """A project folder of its own, with a ledger of two commits, and files of the same results."""
    with Ledger(USUAL) as ledger, ledger.transaction():
        ledger.record(made.at(SOUND, "a" * 40), run="1", number=1)
        ledger.record(made.at(LOUD, "b" * 40), run="2", number=1)
        ledger.record(made.at(SOUND, "c" * 40 + "-dirty"), run="3", number=1)
    SOUND.save("sound.json")
    LOUD.save("loud.json")
    return folder


@pytest.fixture
def run(dpaudit: Command) -> Run:
    """Exit code, output and error output of a command line."""
    return lambda *words: astuple(dpaudit(*words))


def refused(run: Run, *words: str) -> str:
    """The one line that a command is refused in."""
    code, _, err = run(*words)
    assert (code, err.count("\n")) == (2, 1), words
    return err


def test_history_prints_every_result_in_each_form(run: Run) -> None:
    code, out, _ = run("history", NAME)
    assert code == 0
    assert len(out.splitlines()) == 5
    assert "REFUTED" in out.splitlines()[3]
    assert len(run("history", NAME, "--format", "csv")[1].splitlines()) == 4
    assert len(json.loads(run("history", NAME, "--format", "json")[1])) == 3
    said = "nobody: the ledger .dpaudit/ledger.sqlite has no such audit, function or fingerprint; there is"
    assert said in refused(run, "history", "nobody")


def test_recheck_says_whether_the_chain_of_a_ledger_holds(run: Run) -> None:
    code, out, _ = run("recheck", "--ledger", USUAL)
    assert (code, out.count("\n")) == (0, 1)
    head = out.split()[-1]
    with Ledger(USUAL) as ledger:
        ledger.load(2).save("second.json")
        ledger.record(SOUND)
    code, out, _ = run("recheck", "second.json", "--ledger", USUAL, "--head", head)
    assert (code, out.count("holds"), "the stored counts give" in out) == (0, 1, True)
    wrong = {
        ("sound.json", "--ledger", "none.sqlite"): "no such file",
        ("--ledger", USUAL, "--head", "3:" + "0" * 64): "does not lead to the given head",
        ("--ledger", USUAL, "--head", "3"): "ROWS:HASH",
        ("--ledger", USUAL, "--fresh"): "give one",
        ("--head", head): "--ledger",
        (): "give a RESULT.json",
    }
    for arguments, told in wrong.items():
        assert told in refused(run, "recheck", *arguments)
    with Ledger(USUAL) as ledger, ledger.transaction() as connection:
        connection.execute("UPDATE results SET seed = '8' WHERE id = 1")
    assert "result 1, or one before it, is not what was recorded" in refused(run, "recheck", "--ledger", USUAL)
    code, out, err = run("history", NAME)
    assert (code, len(out.splitlines()), "does not hold" in err) == (0, 6, True)


def test_the_ledger_is_that_of_the_option_then_of_the_project(run: Run, here: Path) -> None:
    shutil.move(USUAL, "mine.sqlite")
    assert "ledger .dpaudit/ledger.sqlite: there is no such file" in refused(run, "history", NAME)
    assert run("history", NAME, "--ledger", "mine.sqlite")[0] == 0
    (here / "pyproject.toml").write_text('[tool.dpaudit]\nledger = "mine.sqlite"\n')
    assert run("history", NAME)[0] == 0
    assert run("compare", "a" * 40, "b" * 40)[0] == 1


def test_the_figure_is_of_one_audit(run: Run, here: Path) -> None:
    code, _, err = run("history", NAME, "--figure", "bound.svg")
    assert (code, err) == (0, "figure: bound.svg\n")
    assert "<svg" in (here / "bound.svg").read_text(encoding="utf-8")
    for wrong in ("bound.gif", "none/bound.svg"):
        assert run("history", NAME, "--figure", wrong)[0] == 2
    with Ledger(USUAL) as ledger:
        ledger.record(made.counted(9, 3, name="other"))
    said = "draws one audit, and counts:noisy_count names 2"
    assert said in refused(run, "history", "counts:noisy_count", "--figure", "both.svg")
    assert not (here / "both.svg").exists()


def test_compare_reads_files_folders_suites_ledgers_and_commits(run: Run, here: Path) -> None:
    folder, suite = here / "reports", here / "suite"
    folder.mkdir()
    suite.mkdir()
    shutil.copy("sound.json", folder / "a.json")
    (suite / "suite.json").write_text(exchange.json_suite(example.suite()))
    shutil.copy("loud.json", suite / "ignored.json")  # the suite says what belongs to it
    for old in ("sound.json", "reports", "a" * 40, "aaaa"):
        for new in ("loud.json", "b" * 40):
            code, out, _ = run("compare", old, new)
            assert (code, "1 audit compared: 1 regression; 1 became refuted" in out) == (1, True)
    assert run("compare", USUAL, "loud.json")[0] == 1  # the newest of the ledger is sound
    assert run("compare", "loud.json", USUAL, "--fail-on", "any")[0] == 1
    assert run("compare", "sound.json", "loud.json", "--fail-on", "never")[0] == 0
    assert run("compare", "sound.json", "c" * 40 + "-dirty", "--fail-on", "any")[0] == 0
    code, out, _ = run("compare", "suite", "suite/suite.json")
    first = "2 audits compared: 0 regressions; 2 same counts, 1 without verdict in both; exit code 0"
    assert (code, out.splitlines()[0]) == (0, first)


def test_a_commit_is_named_as_git_names_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[-2:] == ["--end-of-options", "main^{commit}"]
        return subprocess.CompletedProcess(command, 0, "b" * 40 + "\n", "")

    monkeypatch.setattr(provenance.subprocess, "run", answered)
    assert history.full_commit("main") == "b" * 40
    assert history.full_commit("main-dirty") == "b" * 40 + "-dirty"
    code, out, _ = run("compare", "sound.json", "main")
    assert (code, f"commit {'b' * 40} in ledger" in out) == (1, True)

    def missing(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        raise FileNotFoundError("git")

    monkeypatch.setattr(provenance.subprocess, "run", missing)
    assert history.full_commit("main") == "main"


@for_each(
    ("old", "said"),
    [
        ("", "give a path, got ''"),
        ("nowhere", "neither a file nor a commit with results in .dpaudit/ledger.sqlite; the last commits there: aaaa"),
        ("c" * 40, 'has results of it only with changes in the tree; name "' + "c" * 40 + '-dirty"'),
        ("empty", "no result (*.json) is in this folder"),
        ("odd.json", "not JSON"),
        ("odd.sqlite", "it is a database of something else"),
        ("aaaa", "aaaa: the first digits of 2 commits"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_line(run: Run, here: Path, old: str, said: str) -> None:
    (here / "empty").mkdir(exist_ok=True)
    (here / "odd.json").write_text("{")
    with closing(sqlite3.connect(here / "odd.sqlite")) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS mine (a)")
    if old == "aaaa":
        with Ledger(USUAL) as ledger:
            ledger.record(made.at(LOUD, "aaaab" + "0" * 35), run="4", number=1)
        assert run("compare", "sound.json", "aaaab")[0] == 1
    assert said in refused(run, "compare", old, "sound.json")


def _in_run(ledger: Ledger, key: str, files: str, started: str) -> None:
    with ledger.transaction() as connection:
        connection.execute("INSERT INTO runs VALUES (?, ?, '{}', ?, NULL)", (key, files, started))


def test_audits_of_other_spec_files_never_hide_one_another(run: Run) -> None:
    quiet = made.counted(100_000, 50_000, runs=2_000_000)
    with Ledger("two.sqlite") as ledger:
        runs = zip("1234", ("quick", "nightly") * 2, (SOUND, quiet, LOUD, quiet), "aabb", strict=True)
        for key, files, result, commit in runs:
            _in_run(ledger, key, files, f"2026-01-0{key}")
            ledger.record(made.at(result, commit * 40), run=key, number=1)
    code, out, _ = run("compare", "a" * 40, "b" * 40, "--ledger", "two.sqlite")
    first = "2 audits compared: 1 regression; 1 became refuted, 1 same counts; exit code 1"
    assert (code, out.splitlines()[0]) == (1, first)
    with Ledger("two.sqlite") as ledger:  # the newest run of one of the files: neither audit of that name has a verdict
        _in_run(ledger, "5", "quick", "2026-01-05")
        ledger.fail(NAME, "the worker was lost", 3, run="5", number=1)
        ledger.fail(NAME, "the worker was lost twice", 3, run="5", number=2)
        read = history.read_side("two.sqlite", ledger.path)[1]
    assert [(half.error, half.result and half.result.spec["runs"]) for half in read] == [
        (None, 2_000_000),
        ("the worker was lost", None),
        ("the worker was lost twice", None),
    ]


@for_each("zone", ["Etc/GMT+12", "Etc/GMT-14"])  # in one of them it is another day than in UTC
def test_a_day_is_that_of_the_clock_here(run: Run, zone: str) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("TZ", zone)
    time.tzset()
    try:
        today = datetime.now().astimezone().date()
        assert run("accept", "loud.json", "--reason", "x", "--until", today.isoformat())[0] == 0
        assert read_baseline("dpaudit-accepted.toml")[0].accepted == today
        yesterday = (today - timedelta(days=1)).isoformat()
        assert run("accept", "loud.json", "--reason", "x", "--until", yesterday)[0] == 2
    finally:
        patch.undo()
        time.tzset()


def test_the_newest_run_of_an_audit_speaks_for_it_also_where_it_has_no_verdict(run: Run) -> None:
    with Ledger(USUAL) as ledger:
        ledger.record(made.counted(100_000, 50_000, epsilon=0.5), run="4", number=1)  # the claim changed
    code, out, _ = run("compare", "sound.json", USUAL)
    assert (code, out.splitlines()[0]) == (1, "1 audit compared: 1 regression; 1 became refuted; exit code 1")
    assert "asked otherwise (claim)" in out
    with Ledger(USUAL) as ledger:
        ledger.fail(NAME, "the worker was lost twice", 3, run="5", number=1)
        ledger.fail("another", "not installed", 3, run="5", number=2)
    code, out, _ = run("compare", "sound.json", USUAL)
    assert code == 1
    assert "1 audit compared: 1 regression; 1 verdict lost, 1 new; exit code 1" in out
    assert "now no verdict (the worker was lost twice)" in out


def test_accept_writes_a_file_that_a_run_can_use(run: Run, here: Path) -> None:
    code, out, _ = run("accept", "loud.json", "--reason", "old API", "--until", LATER)
    assert code == 0
    assert f"accepted until {LATER}" in out
    (written,) = read_baseline("dpaudit-accepted.toml")
    assert (written.fingerprint, written.reason, written.until.isoformat()) == (fingerprint(LOUD), "old API", LATER)
    again = ("loud.json", "--reason", "still", "--until", LATER, "--accepted", "dpaudit-accepted.toml")
    code, out, _ = run("accept", *again)
    assert (code, "before, it was accepted until" in out) == (0, True)
    assert [each.reason for each in read_baseline("dpaudit-accepted.toml")] == ["still"]
    (here / "pyproject.toml").write_text('[tool.dpaudit]\naccepted = "mine.toml"\n')
    assert run("accept", "loud.json", "--reason", "x", "--until", LATER)[0] == 0
    assert len(read_baseline("mine.toml")) == 1


def test_accept_takes_a_fingerprint_from_the_ledger(run: Run) -> None:
    with Ledger(USUAL) as ledger:
        ledger.record(LOUD, run="4", number=1)
        ledger.record(made.with_bits(made.counted(9, 3, name="bits")), run="4", number=2)
    bits = fingerprint(made.with_bits(SOUND), representation=True)
    assert run("accept", bits, "--reason", "x", "--until", LATER)[0] == 0
    assert [each.finding for each in read_baseline("dpaudit-accepted.toml")] == ["bits; representation"]


@for_each(
    ("arguments", "said"),
    [
        (("sound.json", "--reason", "x", "--until", LATER), "not refuted, so there is no finding to accept"),
        (("loud.json", "--reason", " ", "--until", LATER), "--reason must say why"),
        (("loud.json", "--reason", "x", "--until", "2020-01-01"), "--until 2020-01-01 is in the past"),
        (("loud.json", "--reason", "x", "--until", "tomorrow"), "--until must be a day, as 2026-03-01"),
        (("none.json", "--reason", "x", "--until", LATER), "there is no such file"),
        (("0" * 16, "--reason", "x", "--until", LATER), "no finding of this fingerprint is in .dpaudit/ledger.sqlite"),
        (("loud.json", "--until", LATER), "--reason"),
        (("loud.json", "--reason", "x", "--until", LATER, "--accepted", "sound.json/a.toml"), "cannot be written"),
        (("loud.json", "--reason", "x", "--until", LATER, "--accepted", "mine.toml"), "mine.toml: not valid TOML"),
    ],
)
def test_accept_refuses_in_a_line_and_writes_nothing(
    run: Run, here: Path, arguments: tuple[str, ...], said: str
) -> None:
    (here / "mine.toml").write_text("mine")
    assert said in refused(run, "accept", *arguments)
    assert not (here / "dpaudit-accepted.toml").exists()
    assert (here / "mine.toml").read_text() == "mine"
