"""Audits of libraries: rows, environments, what is known of a row, versions; all of it on one that stands in."""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

import dpaudit
from audits.libraries import environment as environments
from audits.libraries import observe
from audits.libraries.environment import Environment
from audits.libraries.observe import Seen, bisect, main, read_rows, write_page
from audits.libraries.plain import CONFIDENCE, Plain, least, most
from dpaudit import ApproximateDP, InvalidSpec, MissingRequirement, PureDP
from dpaudit.cli.group import exit_code
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Ending
from dpaudit.results.suite import SuiteEntry
from tests.golden import example

MECHANISMS = '''
def leaks(data, rng):
    return len(data) ^ int(rng.random() < 0.01)  # its loss is 4.6

def one_is_there(output):
    """The count is one."""
    return output == 1

def never(output):
    """Nothing."""
    return False
'''
AUDIT = """
[[audit]]
name = "{name}"
mechanism = "mechanisms:{mechanism}"
claim = {{ epsilon = 1.0 }}
pair = {{ first = [7], second = [] }}
runs = {runs}
{more}
"""
PLAIN = '[audit.record]\nplain = "mechanisms:{}"\nplain_runs = 50\n'


def audit(name: str, mechanism: str = "leaks", runs: int = 1_000, more: str = "") -> str:
    return AUDIT.format(name=name, mechanism=mechanism, runs=runs, more=more)


class Shelf:
    """A folder of spec files, and a folder of environments whose interpreter is that of the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.environments = folder / "lib räry", folder / "environments"
        self.folder.mkdir()
        (self.folder / "mechanisms.py").write_text(MECHANISMS)

    def spec(self, version: str, *audits: str, more: tuple[str, ...] = (), head: str = "") -> None:
        """A spec file of one version; its environment is ready."""
        wanted = [f"fake=={version}", *more]
        text = f'schema = "dpaudit.audit/1"\n[environment]\nrequirements = {json.dumps(wanted)}\n{head}'
        (self.folder / f"{version}.toml").write_text(text + "".join(audits))
        made = Environment.of({"requirements": wanted}, self.environments, "")
        Path(made.own).parent.mkdir(parents=True, exist_ok=True)
        Path(made.own).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        Path(made.own).chmod(0o755)
        made.folder.with_name(f".{made.folder.name}.json").write_text(json.dumps([None, *made.wanted()]))

    @property
    def rows(self) -> dict[str, observe.Row]:
        return {row.question.name: row for row in read_rows([str(self.folder)], self.environments)}


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.fixture(scope="module")
def refuted() -> SuiteEntry:
    """An entry of what tells all it knows: no chance of another verdict."""
    result = dpaudit.audit(len, pair=([7], []), epsilon=1.0, runs=400, n_jobs=1, confidence=0.9)
    return SuiteEntry("fake 1.0, <script>leaks", Verdict.REFUTED, result)


# --- plain counts -----------------------------------------------------------------------------------------------------


def test_the_bounds_of_a_count_are_those_of_the_binomial_tails() -> None:
    for runs, level in ((7, 0.05), (40, 0.00025)):
        for hits in range(runs + 1):
            low, high = least(hits, runs, level), most(hits, runs, level)
            assert binom.sf(hits - 1, runs, low) == pytest.approx(level if hits else 1.0)
            assert binom.cdf(hits, runs, high) == pytest.approx(level if hits < runs else 1.0)


def test_counts_say_the_epsilon_at_the_claims_delta_and_break_no_claim_more_often_than_said() -> None:
    """Exact: all counts of 20 runs on equal sides, at three probabilities."""
    counts = [(one, other) for one in range(21) for other in range(21)]
    breaking = [(p, q) for p, q in counts if Plain("", (p, 20), (q, 20)).breaks(PureDP(0.0))]
    for p in (0.02, 0.3, 0.5):
        law = binom.pmf(range(21), 20, p)
        assert sum(law[one] * law[other] for one, other in breaking) <= 1.0 - CONFIDENCE
    shown, mirrored = Plain("", (60, 1_000), (0, 1_000)), Plain("", (0, 1_000), (60, 1_000))
    assert shown.breaks(PureDP(1.0))
    assert not shown.breaks(ApproximateDP(1.0, 0.1))
    assert shown.text(ApproximateDP(1.0, 0.1)).endswith("shows nothing")
    assert mirrored.epsilon(0.01) == shown.epsilon(0.01) > 1.0


# --- rows and environments --------------------------------------------------------------------------------------------


def test_what_a_row_asks_changes_with_all_that_decides_its_answer(shelf: Shelf) -> None:
    asked = []
    counted = PLAIN.format("never")
    for change in (
        lambda: shelf.spec("1.0", audit("a")),
        lambda: (shelf.folder / "rates.csv").write_text("1"),
        lambda: (shelf.folder / "rates.csv").write_text("2"),
        lambda: (shelf.folder / "mechanisms.py").write_text("leaks = len"),
        lambda: shelf.spec("1.0", audit("a", runs=2_000)),
        lambda: shelf.spec("1.0", audit("a", runs=2_000), more=("numpy",)),
        lambda: shelf.spec("1.0", audit("a", runs=2_000, more=counted), more=("numpy",)),
        lambda: shelf.spec("1.0", audit("a", runs=2_000, more=counted + 'finding = "words"\n'), more=("numpy",)),
    ):
        change()
        asked.append(shelf.rows["a"].asked)
    assert len(set(asked)) == 7
    assert asked[-1] == asked[-2]  # words alone ask nothing anew


def test_what_cannot_be_asked_is_said(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    shelf.spec("1.0", audit("a"), audit("b"))
    (shelf.folder / "plain.toml").write_text('schema = "dpaudit.audit/1"\n' + audit("c"))
    where = [str(shelf.folder), "--environments", str(shelf.environments), "--report", str(shelf.folder / "report")]
    for arguments, code, said in (
        (["--only", "z"], 2, "error: --only: no audit has the name 'z'; there are 'a', 'b'\n"),
        (["--versions", "1..2"], 2, "error: --versions asks one row, and there are 2; choose it by --only\n"),
        (["--tag", "none"], 5, "0 audits: "),
    ):
        assert main([*where, *arguments]) == code
        out, err = capsys.readouterr()
        assert said in out + err
        assert "plain.toml names no [environment] and is left out" in err
    shelf.spec("2.0", audit("b"))
    assert main(where) == 2
    assert "the name stands in" in capsys.readouterr().err
    for command in ("observe", "bisect"):
        assert exit_code([command, "audits/libraries"]) == 2
        assert "python -m audits.libraries.observe" in capsys.readouterr().err


BUILD = """      ModuleNotFoundError: No module named 'numpy'
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
ERROR: Failed to build 'fake' when getting requirements to build wheel
"""
NOTHING = """ERROR: Ignored the following versions that require a different python version: 1.1 Requires-Python >=3.99
ERROR: No matching distribution found for fake==1.0
"""
CONFLICT = "Cannot install fake==1.0 and numpy<1 because these package versions have conflicting dependencies."


@pytest.mark.parametrize(
    ("pip", "reason"),
    [
        (BUILD, "ModuleNotFoundError: No module named 'numpy'"),
        (NOTHING, "No matching distribution found for fake==1.0"),
        (f"ERROR: {CONFLICT}\nERROR: ResolutionImpossible: for help visit https://pip.pypa.io\n", CONFLICT),
        ("no space left\n", "no space left"),
    ],
)
def test_an_environment_is_made_once_and_what_pip_could_not_do_is_said(
    pip: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is asked for otherwise, or was left half made, is made again; nothing else is touched."""
    made: list[str] = []
    codes = {"venv": 0, "pip": 1}

    def child(argv: list[str], log: Path, variables: object) -> int:
        log.write_text(pip)
        made.append(argv[2])
        Path(argv[-1] if argv[2] == "venv" else tmp_path).mkdir(exist_ok=True)
        return codes[argv[2]]

    monkeypatch.setattr(environments, "child", child)
    environment = Environment.of({"requirements": ["fake==1.0"]}, tmp_path, "")
    with pytest.raises(MissingRequirement) as told:
        environment.make()
    assert str(told.value) == f"fake-1.0: no environment could be made: {reason}"
    codes["pip"] = 0
    for _ in range(2):
        environment.make()
    Environment.of({"requirements": ["fake==1.0", "numpy"]}, tmp_path, "").make()
    assert made == ["venv", "pip"] * 3
    (tmp_path / "fake-2.0" / "of theirs").mkdir(parents=True)
    with pytest.raises(InvalidSpec, match=r"fake-2\.0 was not made here: remove it, or name other --environments"):
        Environment.of({"requirements": ["fake==2.0"]}, tmp_path, "").make()
    assert len(made) == 6


# --- what is known of a row, and the page -----------------------------------------------------------------------------


def test_a_row_that_is_not_as_known_ends_with_1_and_is_listed_first(shelf: Shelf, refuted: SuiteEntry) -> None:
    shelf.spec("1.0", audit(refuted.name, more='expect = "refuted"\n[audit.record]\nfinding = "<b>tells</b>"\n'))
    (row,) = shelf.rows.values()
    missing = replace(row, record={"cause": ["a key is missing"]})
    result = refuted.result
    assert result is not None
    quiet = replace(result, certificate=replace(result.certificate, p_value=1.0), representation=None)
    sound = replace(refuted, expect=Verdict.NOT_REFUTED, result=quiet)
    none = replace(refuted, result=None, error="pip says no", exit_code=3)
    shown, hidden = Plain("", (50, 50), (0, 50)), Plain("", (0, 50), (0, 50))
    rows = (
        (row, refuted, shown, 0, ""),
        (row, refuted, hidden, 1, "the plain count did not show what the audit found: 0 of 50 against 0 of 50"),
        (row, sound, shown, 1, "the plain count showed more than the audit found"),
        (row, sound, hidden, 0, ""),
        (row, sound, Plain(error="KeyError"), 1, "the plain count could not be made: KeyError"),
        (missing, refuted, None, 1, "the cause does not say 'a key is missing'"),
        (missing, none, None, 3, "pip says no"),
    )
    for asked, entry, counted, code, said in rows:
        seen = Seen(asked, entry, counted, shelf.folder)
        suite = write_page([seen], {"left out": ["late <i>"]}, shelf.folder / "report")
        assert suite.exit_code == code
        page = (shelf.folder / "report" / "index.html").read_text()
        assert said in unescape(page)
        assert ("Needs action (1)" in page) == bool(code)
        assert ("&lt;b&gt;tells&lt;/b&gt;" in page) == (asked is row)
        assert "<script>leaks" not in page
        assert "late &lt;i&gt;" in page
        assert json.loads((shelf.folder / "report" / "suite.json").read_text())["exit_code"] == code


# --- versions ---------------------------------------------------------------------------------------------------------


def test_the_change_is_where_a_walk_finds_it() -> None:
    """Every place of the change among up to nine versions, versions without outcome at random, 200 cases."""
    draw = random.Random(0)
    for _ in range(200):
        number = draw.randint(2, 9)
        change = draw.randint(1, number - 1)
        known = [f"1.{place}" for place in range(number)]
        outcomes = {v: "" if draw.random() < 0.3 else "old" if p < change else "new" for p, v in enumerate(known)}
        asked: list[str] = []

        def ask(version: str, asked: list[str] = asked, outcomes: dict[str, str] = outcomes) -> str:
            asked.append(version)
            return outcomes[version]

        able = [version for version in known if outcomes[version]]
        if not able or outcomes[able[0]] == outcomes[able[-1]]:
            with pytest.raises(InvalidSpec):
                bisect(known, ask)
            continue
        before, after, between = bisect(known, ask)
        assert after == next(version for version in able if outcomes[version] == "new")
        assert before == able[able.index(after) - 1]
        assert between == known[known.index(before) + 1 : known.index(after)]
        assert len(asked) == len(set(asked))


def test_versions_are_those_that_the_index_has(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.spec("1.0", audit("a"))
    (row,) = shelf.rows.values()
    said = "Available versions: 1.10.0, 1.9, 1.2.0, 1.0\n"
    monkeypatch.setattr(observe, "child", lambda argv, log: log.write_text(said) * ("no such" in said))
    log = shelf.folder / "log"
    assert observe.releases(row, "1.2.0..1.10.0", log) == ["1.2.0", "1.9", "1.10.0"]
    for span in ("1.0-1.2", "2..3", "1.9..1.0"):
        with pytest.raises(InvalidSpec, match=r"two of 1\.0, 1\.2\.0, 1\.9, 1\.10\.0, got"):
            observe.releases(row, span, log)
    said = "ERROR: no such package\n"
    with pytest.raises(MissingRequirement, match="no such package"):
        observe.releases(row, "1.0..1.9", log)
    other = row.at("1.2.0")
    assert (other.environment.folder.name, other.asked == row.asked) == ("fake-1.2.0", False)


def test_where_every_run_raised_there_is_no_outcome(refuted: SuiteEntry) -> None:
    """A call of an API that a version does not have, yet."""
    raised = Ending("raised TypeError", (5, 5), (5, 5))
    for endings, found in (
        ((raised,), ("", "every run raised TypeError")),
        ((raised, Ending("a value", (1, 0), (1, 0))), ("REFUTED", "")),
    ):
        result: Any = example.changed(refuted.result, endings=endings)  # type: ignore[type-var]
        assert observe.outcome(replace(refuted, result=result)) == found
    assert observe.outcome(replace(refuted, result=None, error="pip")) == ("", "pip")


# --- the whole --------------------------------------------------------------------------------------------------------


def test_a_count_that_ended_wrongly_says_so(shelf: Shelf, refuted: SuiteEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.spec("1.0", audit("a", more=PLAIN.format("never")))
    monkeypatch.setattr(Environment, "run", lambda self, argv, log: log.write_text("first\nKeyError: 7\n"))
    plain = observe.Observer(shelf.folder, True)._plain(shelf.rows["a"], refuted, shelf.folder)
    assert plain == Plain(error="KeyError: 7")


@pytest.mark.long
def test_a_library_is_audited_once_and_one_without_environment_is_not(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row whose claim is refuted but for eight deviations, and one whose environment cannot be made; then again."""
    counted = PLAIN.format("one_is_there") + 'cause = ["1"]\nfinding = "no noise"\n'
    shelf.spec("1.0", audit("fake 1.0, leaks", more='expect = "refuted"\n' + counted))
    shelf.spec("2.0", audit("fake 2.0, leaks"), head='python = "3.1"\n')
    report = shelf.folder.parent / "report"  # what stands beside a spec is a part of what its rows ask
    where = [str(shelf.folder), "--environments", str(shelf.environments), "--report", str(report)]
    assert main(where) == 3
    assert "there is no Python 3.1 here" in capsys.readouterr().err
    page = (report / "index.html").read_text()
    assert re.search(r"The count is one: \d\d of 50 against \d of 50, which shows epsilon &gt;= ", page)
    written = {path: path.stat().st_mtime_ns for path in report.glob("rows/*/*.json")}
    assert {path.name for path in written} > {"suite.json", "plain.json"}
    assert main([*where, "--resume", "--only", "fake 1.0, leaks"]) == 0
    assert {path: path.stat().st_mtime_ns for path in report.glob("rows/*/*.json")} == written
    links = [link for link in re.findall('href="([^"]*)"', page) if link.startswith("rows/")]
    assert links
    assert all((report / link).exists() for link in links)
