"""The parts of the plugin: profiles, records and modules that travel; what a test is told for each kind of answer."""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

from dpaudit import pytest_plugin, report
from dpaudit.auditing.health.checks import check_compared
from dpaudit.certify.evidence import Binned
from dpaudit.errors import ClaimRefuted, InvalidSpec, UnsoundAudit
from dpaudit.events import Event, Partition
from dpaudit.events.features import Whole
from dpaudit.ledger import baseline
from dpaudit.ledger.results import Ledger
from dpaudit.mechanisms import wrap
from dpaudit.options import OPTIONS
from dpaudit.outputs.canonical import Pilot, Token
from dpaudit.outputs.encode import encode_objects
from dpaudit.pytest_plugin.auditor import Auditor, _arguments, _described, _expected, _merged, by_value, check_patches
from dpaudit.pytest_plugin.ending import expired, suite_of, summary_lines, write_report
from dpaudit.pytest_plugin.records import PROFILES, AuditOfTest, Defaults, Records, SessionState, plan, settings_of
from dpaudit.results.result import AuditResult
from tests.cases import for_each
from tests.golden.example import kept, result

RUNS = partial(pytest_plugin._whole, OPTIONS["runs"])
LIGHT = """
import sys, time, pytest
before = set(sys.modules)
start = time.process_time()
import dpaudit.pytest_plugin
print(time.process_time() - start, *(set(sys.modules) - before))
"""


def test_loading_the_plugin_costs_a_session_next_to_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    seconds, *modules = ended.stdout.split()
    assert float(seconds) < 0.1  # 0.01 on a machine with nothing else to do
    assert {name.partition(".")[0] for name in modules} <= {"dpaudit", *sys.stdlib_module_names}
    ours = {"dpaudit", "base", "base.presenter", "base.validate", "errors", "options", "version"}
    found = {name.removeprefix("dpaudit.") for name in modules if name.startswith("dpaudit")}
    assert found == ours | {"pytest_plugin", "pytest_plugin.records"}


@for_each("text", ["1e999", "nan", "many", "-1", "199", "2.5", ""])
def test_an_option_that_is_no_number_says_what_it_must_be(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number from 200 on, got "):
        RUNS(text)
    assert [RUNS(right) for right in ("200", "200_000", "2e5")] == [200, 200_000, 200_000]


# --- profiles and whose word goes first ----------------------------------------------------------------------------


@for_each(
    ("said", "given", "expected"),
    [
        ({}, {}, {"runs": 20_000, "seed": 0}),
        ({}, {"settings": {"runs": 7_000, "seed": 2}}, {"runs": 7_000, "seed": 2}),
        ({}, {"settings": {"runs": 7_000, "seed": 2}, "profile": "ci"}, {"runs": 200_000, "seed": 0}),
        ({"runs": 300}, {"settings": {"runs": 7_000}, "profile": "ci"}, {"runs": 300, "seed": 0}),
        ({"runs": 300, "seed": 1}, {"command": {"runs": 400, "seed": 9}, "settings": {"runs": 7}}, {"runs": 400}),
        ({}, {"profile": "nightly", "fresh": 77, "settings": {"seed": 2}}, {"runs": 5_000_000, "seed": 77}),
        # a time limit of the test goes before the usual runs, beside its own, and behind those of the command line
        ({"max_time_s": 9.0}, {}, {"max_time_s": 9.0, "runs": None}),
        ({"max_time_s": 9.0, "runs": 700}, {}, {"max_time_s": 9.0, "runs": 700}),
        ({"max_time_s": 9.0}, {"command": {"runs": 500}}, {"max_time_s": None, "runs": 500}),
    ],
)
def test_the_command_line_then_the_test_then_the_project(
    said: dict[str, Any], given: dict[str, Any], expected: dict[str, Any]
) -> None:
    settled = plan(**{"profile": None, "command": {}, "settings": {}, **given}).settle(said)
    assert {key: settled.get(key) for key in expected} == expected


def test_a_new_seed_each_night_and_the_same_confidence_always() -> None:
    plans = [plan(profile=each, command={}, settings={}) for each in (*PROFILES, *["nightly"] * 3)]
    assert len({each.settle({})["seed"] for each in plans}) == 5  # 0 and four; by chance fewer: 1.4e-9
    assert {each.usual["confidence"] for each in plans} == {1 - 1e-6}


@for_each(
    ("text", "expected"),
    [
        ("[tool.dpaudit]\nruns = 2e5\nseed = 4\nconfidence = 0.99\n", {"runs": 200_000, "seed": 4}),
        ("[tool.dpaudit]\nruns = 'many'\nseed = true\naccepted = 'a.toml'\n", {}),
        ("[tool.dpaudit]\nseed = 4\naccepted = 'a.toml'\n", {"seed": 4, "accepted": "a.toml"}),
        ("[tool.dpaudit]\nruns = inf\n", {}),
        ("[tool.dpaudit]\nruns = 2.5\n", {}),
        (f"[tool.dpaudit]\nruns = 1{'0' * 400}\n", {}),
        ("[tool]\ndpaudit = 3\n", {}),
        ("dpaudit, and this is no TOML", {}),
        ("[project]\nname = 'other'\n", {}),
    ],
)
def test_a_header_needs_little_of_the_settings(text: str, expected: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert settings_of(tmp_path) == expected
    assert pytest_plugin.ACCEPTED == baseline.DEFAULT  # the file of accepted findings is that of the command line


# --- what a test and its markers say -------------------------------------------------------------------------------


@for_each(
    ("marked", "said", "expected"),
    [
        ([{"epsilon": 1.0, "delta": 1e-6}], {"epsilon": 2.0}, {"epsilon": 2.0, "delta": 1e-6}),
        ([{"epsilon": 1.0, "delta": 1e-6}], {"claim": "c"}, {"claim": "c"}),
        ([{"claim": "c"}], {"epsilon": 1.0}, {"epsilon": 1.0}),
        ([{"pairs": [1]}, {"runs": 5}], {"pair": 2}, {"runs": 5, "pair": 2}),
        ([{"runs": 5, "expect": "refuted"}, {"runs": 6}], {}, {"runs": 6}),
    ],
)
def test_the_innermost_word_is_the_last(
    marked: list[dict[str, Any]], said: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert _merged(marked, said) == expected


def test_keywords_and_what_is_expected() -> None:
    asked = [_expected([], None), _expected([{"expect": "refuted"}], None)]
    assert [*asked, _expected([{"expect": "refuted"}], "not-refuted")] == ["not-refuted", "refuted", "not-refuted"]
    with pytest.raises(InvalidSpec, match="expect must be 'not-refuted', 'refuted' or 'bits', got 'broken'"):
        _expected([], "broken")
    found = _arguments("m", {"epsilon": 1.0})
    assert (found["epsilon"], found["stopping"], found["backend"]) == (1.0, "fixed", None)
    for key, told in (
        ("eps", "'eps'; did you mean 'epsilon'"),
        ("zzz", "'zzz'; it has: expect, pair, pairs, data, claim"),
        ("mechanism", "'mechanism'"),
    ):
        with pytest.raises(InvalidSpec, match=f"audit has no keyword {told}"):
            _arguments("m", {key: 1.0})


def top(data: Any, rng: Any) -> Any:
    return data


class Caller:
    def __call__(self, data: Any, rng: Any) -> Any:
        return data

    def method(self, data: Any, rng: Any) -> Any:
        return data


@for_each("given", [lambda data, rng: data, partial(top), Caller(), Caller().method])
def test_only_a_function_that_a_module_holds_keeps_its_name(given: Callable[..., Any]) -> None:
    """So that an accepted finding on another never covers one that happens to have its name."""
    named, own = _described(wrap(top), "the audit"), _described(wrap(given), "the audit")
    assert named is not None is not own
    assert (named.name, named.reference is None) == ("top", False)
    assert (own.name.startswith("the audit: "), own.reference is None) == (True, True)


# --- records -------------------------------------------------------------------------------------------------------


def record(**changes: Any) -> AuditOfTest:
    usual = AuditOfTest("", "t.py::test_it", 1, 1, "t.py::test_it", "not-refuted", 1 - 1e-6, "NOT_REFUTED", True)
    made = replace(usual, **changes)
    return made if made.key else replace(made, key=f"{made.test} {made.attempt} {made.number}")


def test_records_travel_and_add_up() -> None:
    records = Records()
    first = [record(number=number).to_dict() for number in (2, 1)]
    records.add(first, "passed")
    records.add([*first, record(attempt=2).to_dict()], "passed")  # a report carries all of its test so far
    records.sort()
    assert [(each.attempt, each.number) for each in records.all] == [(1, 1), (1, 2), (2, 1)]
    assert records.spent == 3e-6


def test_what_did_not_fail_its_test_is_told() -> None:
    """A violation whose error was caught, or that was tried again until it went away, is never out of sight."""
    records = Records()
    found = {"verdict": "REFUTED", "as_expected": False, "bound": "epsilon >= 1.8 > 1"}
    for test, outcome in {"fails": "failed", "caught": "passed", "marked": "skipped"}.items():
        records.add([record(test=test, name=test, **found).to_dict()], outcome)
    records.add([record(test="weak", name="weak", exit_code=4).to_dict()], "passed")
    records.add([record(test="lost", name="lost", verdict=None, as_expected=False).to_dict()], "passed")
    told, untold = record(test="told", name="told", **found), record(test="untold", name="untold", **found)
    records.add([told.to_dict()], "rerun")
    records.add([replace(each, key=f"{each.key} 2", attempt=2).to_dict() for each in (told, untold)], "failed")
    records.add([untold.to_dict()], "passed")  # the report of its first try was thrown away
    assert [each.test for each in records.swallowed] == ["caught", "marked", "weak", "lost"]
    assert [(each.test, each.attempt) for each in records.retried] == [("told", 1), ("untold", 1)]
    lines = summary_lines(records, Defaults("ci", {"runs": 200_000, "seed": 0}, {}), None, [])
    assert lines[2:] == [
        *[f"REFUTED  epsilon >= 1.8 > 1: {test}" for test in ("fails", "told", "untold")],
        "caught: REFUTED, but its test did not fail",
        "marked: REFUTED, but its test did not fail",
        "weak: TOO LITTLE POWER, but its test did not fail",
        "lost: NO VERDICT, but its test did not fail",
        "told: REFUTED, and its test was run again: what was found stands",
        "untold: REFUTED, and its test was run again: what was found stands",
    ]


def test_the_bound_is_the_last_to_go_where_a_line_is_short() -> None:
    near = "epsilon >= 1.81 > 0.5 if neighbours"
    forms = pytest_plugin.short_forms(ClaimRefuted("...", f"{near} at delta 1e-06"))
    assert forms == [f"REFUTED {near} at delta 1e-06", f"REFUTED {near}", near]
    assert pytest_plugin.short_forms(UnsoundAudit("drift")) == ["NO VERDICT drift"]
    assert pytest_plugin.short_forms(AssertionError("NOT FOUND  m: gone\nmore")) == ["NOT FOUND  m: gone"]
    assert pytest_plugin.short_forms(AssertionError("assert 1 == 2")) == []


def test_a_summary_tells_what_is_wrong() -> None:
    records = Records()
    told: list[dict[str, Any]] = [
        {"verdict": "REFUTED", "as_expected": False, "bound": "epsilon >= 1.8 > 1"},
        {"verdict": "REFUTED", "accepted": "f0f0", "in_part": True},
        {"verdict": "NOT_REFUTED", "bits_refuted": True, "problem": "disk full"},
        {"verdict": None, "as_expected": False, "error": "it died", "confidence": 0.5},
    ]
    records.add([record(number=number, **each).to_dict() for number, each in enumerate(told, 1)], "failed")
    lines = summary_lines(records, Defaults("ci", {"runs": 200_000, "seed": 0}, {}), None, ["expired: x"])
    assert lines == [
        "4 audits: 2 refuted, 1 not refuted, 1 without verdict; 1 verdict not as expected, 1 finding on bits, "
        "1 accepted finding",
        "chance of a false alarm: at most 0.51 for all of them together; profile ci, 200,000 runs an audit "
        "whose test sets none, seed 0",
        "1 audit did not look at outputs whole; --dpaudit-report DIR says how far",
        "REFUTED  epsilon >= 1.8 > 1: t.py::test_it",
        "NO VERDICT: t.py::test_it",
        "accepted finding: t.py::test_it (f0f0)",
        "expired: x",
        "t.py::test_it: disk full",
    ]


def test_a_suite_is_made_of_what_was_stored_and_of_what_was_lost(tmp_path: Path) -> None:
    whole = result()
    whole.save(tmp_path / "a.json")
    (tmp_path / "b.json").write_text("{}")
    accepted = tmp_path / "accepted.toml"
    today = date.today()
    fresh = baseline.accept(whole, reason="old", until=today + timedelta(days=9), today=today)
    past = {"accepted": today - timedelta(days=9), "until": today - timedelta(days=1)}
    baseline.write_baseline(accepted, [fresh, replace(fresh, fingerprint="0" * 16, **past)])
    records = Records()
    told: list[dict[str, Any]] = [
        {"verdict": "REFUTED", "file": "a.json"},
        {"verdict": "REFUTED", "file": "b.json"},
        {"verdict": None, "error": "the worker died", "exit_code": 3},
        {"file": "a.json"},
    ]
    records.add([record(number=number, **each).to_dict() for number, each in enumerate(told, 1)], "failed")
    suite = suite_of(records, tmp_path, accepted)
    assert suite.entries[0].result == whole
    assert suite.entries[0].covered
    assert "cannot be read back" in str(suite.entries[1].error)
    assert (suite.entries[2].error, suite.entries[2].exit_code) == ("the worker died", 3)
    assert "written over" in str(suite.entries[3].error)
    assert suite.confidence == 1 - 4e-6
    assert suite.exit_code == 1
    (line,) = expired(accepted)
    assert line.startswith("EXPIRED ")
    assert "0" * 16 in line
    assert expired(None) == ()
    assert "there is no such file" in expired(tmp_path / "none.toml")[0]


def test_the_report_has_its_usual_formats_and_fails_no_session_with_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(report, "write_suite", lambda *given: asked.append(given))
    assert write_report(Records(), tmp_path, None) == ()
    assert [given[1:] for given in asked] == [(tmp_path,)]
    monkeypatch.setattr(report, "write_suite", lambda *given: 1 / 0)
    (line,) = write_report(Records(), tmp_path, None)
    assert line == "the report could not be written: ZeroDivisionError: division by zero"


# --- modules that travel by value ------------------------------------------------------------------------------------


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("test_of_somebody")
    code = "scale = 3\nlock = None\ndef f(data): return data * scale\ndef locked(data): return lock, data\n"
    exec(code, made.__dict__)
    made.__dict__["lock"] = threading.Lock()
    monkeypatch.setitem(sys.modules, "test_of_somebody", made)
    return made


def test_functions_of_test_modules_travel_whole_and_what_cannot_is_imported(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cloudpickle.list_registry_pickle_by_value()
    with by_value([module], module.locked):
        assert pickle.loads(cloudpickle.dumps(module.locked)) is module.locked
    with by_value([module], module.f):
        sent = cloudpickle.dumps(module.f)
    assert cloudpickle.list_registry_pickle_by_value() == before
    monkeypatch.delitem(sys.modules, "test_of_somebody")
    assert pickle.loads(sent)(2) == 6


def test_a_change_that_no_worker_sees_is_told(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_of_somebody.scale", 4)
    monkeypatch.setattr("builtins.copyright", None)  # nobody's
    for sent, carried in ((module.f, [module]), (len, [])):  # the change goes along; nothing of it is used
        with by_value(carried, sent):
            check_patches(monkeypatch, carried, sent)
    with pytest.raises(InvalidSpec, match=r"monkeypatch has changed test_of_somebody\.scale here"):
        check_patches(monkeypatch, [], module.f)
    check_patches(None, [], module.f)


Answering = Callable[..., Auditor]
PLAN: Defaults = plan(profile=None, command={}, settings={})


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Answering:
    """An auditor whose audits have this answer."""

    def made(answer: AuditResult | Exception, folder: Path | None = None, accepted: Path | None = None) -> Auditor:
        def answered(*_: Any) -> AuditResult:
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(Auditor, "_result", answered)
        session = SessionState(PLAN, tmp_path, folder, "rep", accepted)
        return Auditor(session, "t.py::test_it", "pytest t.py::test_it", ())

    return made


def accepting(path: Path, until: int) -> Path:
    """A file with the finding of the example, accepted until so many days from now."""
    today = date.today()
    acceptance = baseline.accept(result(), reason="known", until=today, today=today)
    days = {"accepted": today - timedelta(days=90), "until": today + timedelta(days=until)}
    return baseline.write_baseline(path, [replace(acceptance, **days)])


def test_a_result_is_given_and_a_refutation_is_an_assertion_error(answering: Answering, tmp_path: Path) -> None:
    audit = answering(kept())
    assert audit("f") == kept()
    (record,) = audit.audited
    assert (record["verdict"], record["as_expected"], record["confidence"]) == ("NOT_REFUTED", True, 1 - 1e-6)
    audit = answering(result(), folder=tmp_path)
    with pytest.raises(ClaimRefuted, match=r"\AREFUTED  noisy count: epsilon >= 1.96") as caught:
        audit("f")
    assert isinstance(caught.value, AssertionError)
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)
    (record,) = audit.audited
    assert (record["verdict"], record["as_expected"]) == ("REFUTED", False)
    assert (tmp_path / record["file"]).is_file()
    assert f"dpaudit accept rep/{record['file']} " in str(caught.value)


def test_a_known_violation_or_known_bits_are_found_or_the_test_fails(answering: Answering) -> None:
    plain, refuted = kept(), result()
    bits = replace(plain, representation=refuted.main)
    looked: dict[str, Any] = {"expect": "bits", "representation": True}
    for answer, asked in ((refuted, {"expect": "refuted"}), (bits, looked)):
        audit = answering(answer)
        assert audit("f", **asked) == answer
        assert (audit.audited[0]["expect"], audit.audited[0]["as_expected"]) == (asked["expect"], True)
        audit = answering(plain)
        with pytest.raises(AssertionError, match=r"\ANOT FOUND  noisy count, whole noise: "):
            audit("f", **asked)
        assert not audit.audited[0]["as_expected"]
    with pytest.raises(ClaimRefuted):
        answering(refuted)("f", **looked)
    with pytest.raises(InvalidSpec, match="needs representation=True"):
        answering(bits)("f", expect="bits")


def test_power_that_is_not_there_is_no_success(answering: Answering) -> None:
    made = kept()
    weak = replace(made, spec={**made.spec, "detect": {"epsilon": 1.001, "mass": 0.001}})
    audit = answering(weak)
    with pytest.raises(AssertionError, match=r"\ATOO LITTLE POWER  noisy count, whole noise: "):
        audit("f")
    assert (audit.audited[0]["exit_code"], audit.audited[0]["as_expected"]) == (4, True)


@for_each(
    ("error", "told", "code"),
    [(UnsoundAudit("it died"), "it died", 3), (RuntimeError("a bug"), "internal error: RuntimeError: a bug", 70)],
)
def test_no_verdict_is_never_a_success_and_a_fault_of_ours_keeps_its_traceback(
    answering: Answering, error: Exception, told: str, code: int
) -> None:
    audit = answering(error)
    for _ in range(2):
        with pytest.raises(type(error), match=str(error)):
            audit("f", expect="refuted")
    keys = ("number", "verdict", "exit_code", "error")
    assert [[each[key] for key in keys] for each in audit.audited] == [[1, None, code, told], [2, None, code, told]]


def test_a_test_that_is_run_again_keeps_the_result_of_its_first_try(answering: Answering, tmp_path: Path) -> None:
    first = answering(kept(), folder=tmp_path)
    first("f")
    again = answering(kept(), folder=tmp_path)
    again.audited, again.attempt = first.audited, 2
    again("f")
    files = [each["file"] for each in first.audited]
    assert files[1] == files[0].replace(".json", "-2.json")
    assert all((tmp_path / file).is_file() for file in files)
    assert [(each["attempt"], each["number"]) for each in first.audited] == [(1, 1), (2, 1)]


@for_each(
    ("label", "told"),
    [
        ("raised NameError", "raised NameError"),
        ("object coroutine", "gave an object of the type coroutine"),
        ("timed out", "took longer than run_timeout_s"),
        ("None", "gave None"),
        ("nan", "gave no number"),
        ("'raised'", None),  # a text that an output is
        ("7", None),
    ],
)
def test_runs_that_give_no_answer_are_no_verdict(label: str, told: str | None) -> None:
    made = kept()
    witness = replace(made.witness, event=Event(Whole(), (), (Token(label, 7),)))
    always = replace(made.evidence, hits_p=made.evidence.runs_p, hits_q=made.evidence.runs_q)
    check_compared(witness, made.evidence, "one leaves")  # on one side more often than on the other
    if told is None:
        check_compared(witness, always, "one leaves")
        return
    with pytest.raises(UnsoundAudit, match=f"every run on the pair 'one leaves' {told}.*so there is no verdict"):
        check_compared(witness, always, "one leaves")
    one, other = (encode_objects([kind] * 3) for kind in (None, 1.0))
    check_compared(witness, always, "one leaves", Pilot(one, other))  # search saw another output: this one is frequent
    with pytest.raises(UnsoundAudit, match="so there is no verdict"):
        check_compared(witness, always, "one leaves", Pilot(one, one))
    one_bin = replace(witness, event=Partition(Whole(), (witness.event,)))
    with pytest.raises(UnsoundAudit, match="so there is no verdict"):
        check_compared(one_bin, Binned((7,), (8,), 7, 8), "one leaves")


def test_an_accepted_finding_fails_no_test_until_it_expires(answering: Answering, tmp_path: Path) -> None:
    audit = answering(result(), accepted=accepting(tmp_path / "accepted.toml", 1))
    assert audit("f") == result()
    assert audit.audited[0]["accepted"] is not None
    with pytest.raises(ClaimRefuted):
        answering(result(), accepted=accepting(tmp_path / "accepted.toml", -1))("f")
    other = replace(result(), spec={**result().spec, "claim": {**result().spec["claim"], "epsilon": 1.1}})
    with pytest.raises(ClaimRefuted):
        answering(other, accepted=accepting(tmp_path / "accepted.toml", 1))("f")
    with pytest.raises(AssertionError, match="NOT FOUND"):  # what is accepted is no known violation
        answering(kept(), accepted=accepting(tmp_path / "accepted.toml", 1))("f", expect="refuted")


@for_each(
    ("file", "text", "words"),
    [
        ("accepted.toml", "schema = 7\n", "schema must be"),
        ("pyproject.toml", "[tool.dpaudit]\nrusn = 3\n", "rusn"),
    ],
)
def test_acceptances_or_settings_that_are_none_are_told_before_anything_runs(
    answering: Answering, tmp_path: Path, file: str, text: str, words: str
) -> None:
    (tmp_path / file).write_text(text)
    accepted = tmp_path / "accepted.toml" if file == "accepted.toml" else None
    with pytest.raises(InvalidSpec, match=words):
        answering(AssertionError("it ran"), accepted=accepted)("f")


def test_a_result_that_cannot_be_written_keeps_its_verdict_and_the_ledger_of_the_project_records_all(
    answering: Answering, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nledger = 'kept.sqlite'\n")
    (tmp_path / "file").write_text("no folder")
    audit = answering(result(), folder=tmp_path / "file")
    audit("f", expect="refuted")
    with pytest.raises(ClaimRefuted):
        audit("f")
    told = [(each["verdict"], "could not be written" in each["problem"]) for each in audit.audited]
    assert told == [("REFUTED", True)] * 2
    with Ledger(tmp_path / "kept.sqlite", read_only=True) as ledger:
        assert [record.name for record in ledger.results()] == ["noisy count"] * 2
    (tmp_path / "kept.sqlite").write_text("no database")
    audit = answering(result())
    with pytest.raises(ClaimRefuted):
        audit("f")
    assert "kept.sqlite" in audit.audited[-1]["problem"]
