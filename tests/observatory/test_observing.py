"""Rows, what was seen of them, and the page; the whole of it on a library that stands in for a real one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from scipy.stats import binom

from dpaudit.claims import ApproximateDP, PureDP
from dpaudit.cli.group import exit_code
from dpaudit.errors import InvalidSpec, MissingRequirement
from dpaudit.observatory.environments import Ended, Environment
from dpaudit.observatory.page import Observation, line
from dpaudit.observatory.rows import CONFIDENCE, Observed, Observer, Plain, choose, least, most, read_rows
from dpaudit.results.display import Verdict
from dpaudit.results.suite import SuiteEntry
from dpaudit.spec.tables import EnvironmentTable
from tests.cases import for_each
from tests.observatory.conftest import Shelf, audit

PLAIN = '[audit.record]\nplain = "mechanisms:{}"\nplain_runs = 50\n'


def rows_of(shelf: Shelf) -> dict[str, Any]:
    return {row.question.name: row for row in read_rows([str(shelf.folder)], shelf.environments)[0]}


# --- plain counts -----------------------------------------------------------------------------------------------------


def test_the_bounds_of_a_count_are_those_of_the_binomial_tails() -> None:
    for runs, level in ((7, 0.05), (40, 0.00025)):
        for hits in range(runs + 1):
            low, high = least(hits, runs, level), most(hits, runs, level)
            assert binom.sf(hits - 1, runs, low) == pytest.approx(level if hits else 1.0)
            assert binom.cdf(hits, runs, high) == pytest.approx(level if hits < runs else 1.0)


def test_counts_of_equal_sides_break_no_claim_more_often_than_said() -> None:
    """Exact: all counts of 30 runs a side, at three probabilities."""
    for p in (0.02, 0.3, 0.5):
        law = binom.pmf(range(31), 30, p)
        broken = sum(
            law[one] * law[other]
            for one in range(31)
            for other in range(31)
            if Plain("", (one, 30), (other, 30)).breaks(PureDP(0.0))
        )
        assert broken <= 1.0 - CONFIDENCE


def test_counts_say_the_epsilon_at_the_claims_delta() -> None:
    counts = Plain("", (60, 1_000), (0, 1_000))
    assert counts.breaks(PureDP(1.0))
    assert not counts.breaks(ApproximateDP(1.0, 0.1))
    assert counts.text(ApproximateDP(1.0, 0.1)).endswith("shows nothing")
    mirrored = Plain("", (0, 1_000), (60, 1_000))
    assert mirrored.epsilon(0.01) == counts.epsilon(0.01) > 1.0


# --- rows -------------------------------------------------------------------------------------------------------------


def test_what_a_row_asks_changes_with_all_that_decides_its_answer(shelf: Shelf) -> None:
    shelf.spec("1.0", audit("fake 1.0, a"))
    before = rows_of(shelf)["fake 1.0, a"]
    assert (before.mechanism, before.environment.name) == ("a", "fake 1.0")
    assert rows_of(shelf)["fake 1.0, a"].asked == before.asked
    seen = {before.asked}
    for change in (
        lambda: (shelf.folder / "rates.csv").write_text("1"),
        lambda: (shelf.folder / "rates.csv").write_text("2"),
        lambda: (shelf.folder / "mechanisms.py").write_text("leaks = len"),
        lambda: shelf.spec("1.0", audit("fake 1.0, a", runs=2_000)),
        lambda: shelf.spec("1.0", audit("fake 1.0, a", runs=2_000), requirements="numpy"),
        lambda: shelf.spec("1.0", audit("fake 1.0, a", runs=2_000, more=PLAIN.format("never")), requirements="numpy"),
    ):
        change()
        seen.add(rows_of(shelf)["fake 1.0, a"].asked)
    assert len(seen) == 7
    told = 'finding = "words alone ask nothing anew"\n'
    shelf.spec("1.0", audit("fake 1.0, a", runs=2_000, more=PLAIN.format("never") + told), requirements="numpy")
    assert rows_of(shelf)["fake 1.0, a"].asked in seen


def test_rows_are_chosen_and_what_cannot_be_a_row_is_said(shelf: Shelf) -> None:
    shelf.spec("1.0", audit("a", more='tags = ["slow"]'), audit("b"))
    (shelf.folder / "plain.toml").write_text('schema = "dpaudit.audit/1"\n' + audit("c"))
    rows, left_out = read_rows([str(shelf.folder)], shelf.environments)
    assert [path.name for path in left_out] == ["plain.toml"]
    assert [row.question.name for row in choose(rows, skipped=["slow"])] == ["b"]
    with pytest.raises(InvalidSpec, match=r"--only: no audit has the name 'z'; there are 'a', 'b'$"):
        choose(rows, only=["z"])
    with pytest.raises(InvalidSpec, match="--audit: no audit has the name 'late1'; did you mean 'late2'"):
        choose([replace(rows[0], question=replace(rows[0].question, name="late2"))], only=["late1"], option="--audit")
    shelf.spec("1.0", audit("d"), requirements="numpy", file="other")
    with pytest.raises(InvalidSpec, match="keep to one list"):
        read_rows([str(shelf.folder)], shelf.environments)
    shelf.spec("2.0", audit("b"), file="other")
    with pytest.raises(InvalidSpec, match="the name stands in"):
        read_rows([str(shelf.folder)], shelf.environments)


# --- environments -----------------------------------------------------------------------------------------------------

BUILD = """  error: subprocess-exited-with-error
  Getting requirements to build wheel did not run successfully.
  ╰─> [3 lines of output]
      Traceback (most recent call last):
      ModuleNotFoundError: No module named 'numpy'
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
ERROR: Failed to build 'fake' when getting requirements to build wheel
"""
NOTHING = """ERROR: Ignored the following versions that require a different python version: 1.1 Requires-Python >=3.99
ERROR: Could not find a version that satisfies the requirement fake==1.0 (from versions: 0.1)
ERROR: No matching distribution found for fake==1.0
"""
CONFLICT = """ERROR: Cannot install fake==1.0 and numpy<1 because these package versions have conflicting dependencies.
ERROR: ResolutionImpossible: for help visit https://pip.pypa.io
"""


class Pip:
    """In place of children: every interpreter is there, and what pip does ends so."""

    def __init__(self, ended: Ended) -> None:
        self.ended, self.asked = ended, list[str]()

    def run(self, argv: list[str], variables: object = None) -> Ended:
        self.asked.append(" ".join(argv[1:3]))
        return self.ended if "pip" in argv else Ended(0, "", "")


@for_each(
    ("said", "reason"),
    [
        (BUILD, "ModuleNotFoundError: No module named 'numpy'"),
        (NOTHING, "No matching distribution found for fake==1.0"),
        (
            CONFLICT,
            "Cannot install fake==1.0 and numpy<1 because these package versions have conflicting dependencies.",
        ),
        ("no space left\n", "no space left"),
    ],
)
def test_what_pip_could_not_do_is_told_and_not_its_advice(said: str, reason: str) -> None:
    with TemporaryDirectory() as folder:
        environment = Environment.of(EnvironmentTable(["fake==1.0"]), Path(folder), "")
        with pytest.raises(MissingRequirement) as told:
            environment.make(Pip(Ended(1, "", said)), lambda line: None)  # type: ignore[arg-type]
    assert str(told.value) == f"the environment of fake 1.0 could not be made: {reason}"


def test_nothing_is_removed_that_was_not_made_here(tmp_path: Path) -> None:
    environment = Environment.of(EnvironmentTable(["fake==1.0"]), tmp_path, "")
    pip, folder = Pip(Ended(0, "", "")), environment.folder
    (folder / "of theirs").mkdir(parents=True)
    for mark in (None, "done", "{}"):
        if mark is not None:
            (folder / ".ready").write_text(mark)
        with pytest.raises(
            InvalidSpec, match=r"fake-1\.0 has files and is no environment that dpaudit made: remove it"
        ):
            environment.make(pip, lambda line: None)  # type: ignore[arg-type]
        assert (folder / "of theirs").is_dir()
    assert pip.asked == []
    (folder / ".ready").write_text("")  # made by hand: what is missing is installed, and nothing removed
    environment.make(pip, lambda line: None)  # type: ignore[arg-type]
    assert (folder / "of theirs").is_dir()
    assert (folder / ".ready").read_text() == json.dumps(environment.asked())


def test_an_environment_that_is_asked_otherwise_or_was_left_half_made_is_made_again(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    other = Environment.of(EnvironmentTable(["fake==1.0", "numpy"]), tmp_path, "")
    with pytest.raises(MissingRequirement):
        other.make(Pip(Ended(1, "", "no space left")), lambda line: None)  # type: ignore[arg-type]
    for environment in (other, Environment.of(EnvironmentTable(["fake==1.0"]), tmp_path, "")):
        (environment.folder / "old").mkdir()
        (environment.folder / "link").symlink_to(elsewhere)
        environment.make(Pip(Ended(0, "", "")), lambda line: None)  # type: ignore[arg-type]
        assert [each.name for each in environment.folder.iterdir()] == [".ready"]
        assert (elsewhere / "kept").is_dir()


# --- the page ---------------------------------------------------------------------------------------------------------


def test_a_page_says_what_was_found_what_is_odd_and_what_was_not_run(shelf: Shelf, refuted_entry: SuiteEntry) -> None:
    shelf.spec("1.0", audit(refuted_entry.name), audit("fake 1.0, failed", more='expect = "refuted"'), audit("late"))
    row, failed, late = rows_of(shelf).values()
    row = replace(row, record=replace_record(row.record, finding="<b>tells</b>", cause=["a key is missing"]))
    error = SuiteEntry(failed.question.name, Verdict.REFUTED, error="pip says no", exit_code=3)
    never = Plain("nothing", (0, 50), (0, 50))
    seen = (Observed(row, refuted_entry, never), Observed(failed, error))
    assert "the cause does not say 'a key is missing'" in line(seen[0])
    assert "the plain count did not show what the audit found: 0 of 50 against 0 of 50" in line(seen[0])
    found = Observation(seen, left_out=(late,))
    assert found.exit_code == 1  # known to be refuted, with another cause: worse than no verdict
    page = found.write(shelf.folder / "report").read_text()
    for words in ("pip says no", "REFUTED", "late", "&lt;b&gt;tells&lt;/b&gt;", "1 plain count did not show"):
        assert words in page
    assert "<script>leaks" not in page
    record = json.loads((shelf.folder / "report" / "observatory.json").read_text())
    assert [(each["verdict"], each["as_expected"]) for each in record["rows"]] == [
        ("REFUTED", False),
        ("no verdict", False),
    ]
    assert (record["not_run"], record["unfinished"]) == (["late"], [])
    broken_off = Observation((), unfinished=(row, failed))
    assert broken_off.exit_code == 130
    assert "interrupted before 2 rows" in broken_off.write(shelf.folder / "report").read_text()


def test_no_verdict_says_all_of_its_error_and_asks_no_cause(shelf: Shelf) -> None:
    shelf.spec("1.0", audit("fake 1.0, <i>", more='expect = "refuted"\n[audit.record]\ncause = ["a key"]\n'))
    (row,) = rows_of(shelf).values()
    error = "pip says " + "no " * 99
    none = Observed(row, SuiteEntry(row.question.name, Verdict.REFUTED, error=error, exit_code=3))
    found = Observation((none,), given=("--confidence", "0.9"))
    assert (none.missing, found.exit_code) == ((), 3)
    assert "as expected" not in found.headline
    assert "as expected" not in Observation((), unfinished=(row,)).headline
    page = found.write(shelf.folder / "report").read_text()
    assert page.count(error.strip()) == 2
    assert "no verdict, expected REFUTED" in page
    repeat = json.loads((shelf.folder / "report" / "observatory.json").read_text())["rows"][0]["repeat"]
    assert repeat.endswith(".toml' --confidence 0.9 --only 'fake 1.0, <i>' --report reports/repeat")


def test_a_plain_count_that_is_at_odds_or_failed_ends_with_1(shelf: Shelf, refuted_entry: SuiteEntry) -> None:
    shelf.spec("1.0", audit(refuted_entry.name, more='expect = "refuted"\n' + PLAIN.format("never")))
    (row,) = rows_of(shelf).values()
    assert refuted_entry.result is not None
    certificate = replace(refuted_entry.result.certificate, p_value=1.0)
    quiet = replace(refuted_entry.result, certificate=certificate, representation=None)
    sound = replace(refuted_entry, expect=Verdict.NOT_REFUTED, result=quiet)
    for entry, plain, said in (
        (refuted_entry, Plain("", (50, 50), (0, 50)), ""),
        (refuted_entry, Plain("", (0, 50), (0, 50)), "did not show what the audit found"),
        (sound, Plain("", (50, 50), (0, 50)), "showed more than the audit found"),
        (sound, Plain("", (0, 50), (0, 50)), ""),
        (sound, Plain(error="KeyError"), "could not be made"),
    ):
        seen = Observed(row, entry, plain)
        assert (seen.disagreement, seen.as_expected) == (said, True)
        assert Observation((seen,)).exit_code == (1 if said else 0)
        told = Observation((seen,))
        assert (f"; 1 plain count {said}" in told.headline and told.exit_code == 1) == bool(said)


@pytest.mark.parametrize("out", ["", "hello", "7", '{"event": 1}', 'hello{"event": "", "first": [1, 2]}'])
def test_what_a_library_prints_is_no_plain_count(shelf: Shelf, refuted_entry: SuiteEntry, out: str) -> None:
    shelf.spec("1.0", audit(refuted_entry.name, more=PLAIN.format("never")))
    (row,) = rows_of(shelf).values()
    children: Any = SimpleNamespace(run=lambda argv, variables: Ended(0, out, ""))
    kept = shelf.folder / "kept"
    plain = Observer(shelf.folder, None, True, children)._plain(row, refuted_entry, kept)
    assert plain is not None
    assert plain.error
    assert not kept.exists()


def replace_record(record: Any, **given: Any) -> Any:
    return type(record)(**{name: getattr(record, name) for name in record.__struct_fields__} | given)


# --- the whole --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_library_is_observed_side_by_side_and_again(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rows of one version and one whose environment cannot be made; then again, from what is kept.

    The noisy row has two outputs, of 0.6 and 0.4: refuted by chance eight deviations away, below 1e-12.
    """
    known = PLAIN.format("one_is_there") + 'cause = ["1"]\nfinding = "no noise"\n'
    shelf.spec(
        "1.0",
        audit("fake 1.0, leaks", more='expect = "refuted"\n' + known),
        audit("fake 1.0, noisy", "noisy"),
    )
    other = shelf.spec("2.0", audit("fake 2.0, leaks"))
    other.write_text(other.read_text().replace("[environment]", '[environment]\npython = "3.1"'))
    report = shelf.folder.parent / "report"  # what stands beside a spec is a part of what its rows ask
    argv = ["observe", str(shelf.folder), "--environments", str(shelf.environments), "--report", str(report)]
    argv += ["--ledger", str(shelf.folder.parent / "ledger.sqlite"), "--jobs", "2", "--skip-tag", "slow"]
    argv += ["--confidence", "0.9"]  # a sure event takes a third of the processes then
    assert exit_code(argv) == 3
    first = capsys.readouterr()
    assert "there is no Python 3.1 here" in first.out
    rows = {each["name"]: each for each in json.loads((report / "observatory.json").read_text())["rows"]}
    leaks, noisy = rows["fake 1.0, leaks"], rows["fake 1.0, noisy"]
    assert (leaks["verdict"], leaks["as_expected"], leaks["plain_agrees"]) == ("REFUTED", True, True)
    assert leaks["plain"]["counts"].startswith("50 of 50 against 0 of 50")
    assert (noisy["verdict"], noisy["plain"]) == ("not refuted", None)
    kept = {path: path.stat().st_mtime_ns for path in Path(report).glob(".rows/*/*")}
    assert exit_code([*argv, "--resume"]) == 3
    assert {path: path.stat().st_mtime_ns for path in Path(report).glob(".rows/*/*")} == kept
    assert exit_code([*argv, "--resume", "--only", "fake 1.0, leaks"]) == 0
    wrong = known.replace('"1"', '"a key"')
    shelf.spec("1.0", audit("fake 1.0, leaks", more='expect = "refuted"\n' + wrong))
    assert exit_code([*argv, "--resume", "--only", "fake 1.0, leaks"]) == 1
    assert "the cause does not say 'a key'" in capsys.readouterr().out
