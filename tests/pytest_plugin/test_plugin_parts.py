"""The parts of the plugin: profiles and whose word goes first, records that travel, modules that travel by value."""

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
from dpaudit.errors import ClaimRefuted, InvalidSpec, UnsoundAudit
from dpaudit.ledger import baseline
from dpaudit.mechanisms import wrap
from dpaudit.options import OPTIONS
from dpaudit.pytest_plugin.auditor import _arguments, _described, _expected, _merged, by_value, check_patches
from dpaudit.pytest_plugin.ending import expired, suite_of, summary_lines, write_report
from dpaudit.pytest_plugin.records import PROFILES, AuditOfTest, Defaults, Records, plan, settings_of
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
    assert {name for name in modules if name.startswith("dpaudit")} == {
        "dpaudit",
        "dpaudit.base",
        "dpaudit.base.presenter",
        "dpaudit.base.validate",
        "dpaudit.errors",
        "dpaudit.options",
        "dpaudit.version",
        "dpaudit.pytest_plugin",
        "dpaudit.pytest_plugin.records",
    }


@for_each("text", ["1e999", "nan", "many", "-1", "199", "2.5e0", "2.5", ""])
def test_an_option_that_is_no_number_says_what_it_must_be(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number from 200 on, got "):
        RUNS(text)


def test_runs_as_people_write_them() -> None:
    assert [RUNS(text) for text in ("200", "200_000", "2e5")] == [200, 200_000, 200_000]


# --- profiles and whose word goes first ----------------------------------------------------------------------------


def settled(said: dict[str, Any], **given: Any) -> tuple[int, int]:
    command = {key: given.pop(key) for key in ("runs", "seed") if key in given}
    found = plan(**{"profile": None, "settings": {}, **given}, command=command).settle(said)
    return found["runs"], found["seed"]


@pytest.mark.parametrize(
    ("said", "given", "expected"),
    [
        ({}, {}, (20_000, 0)),
        ({}, {"settings": {"runs": 7_000, "seed": 2}}, (7_000, 2)),
        ({}, {"settings": {"runs": 7_000, "seed": 2}, "profile": "ci"}, (200_000, 0)),
        ({"runs": 300}, {"settings": {"runs": 7_000}, "profile": "ci"}, (300, 0)),
        ({"runs": 300, "seed": 1}, {"runs": 400, "seed": 9, "settings": {"runs": 7_000}}, (400, 9)),
        ({}, {"profile": "nightly", "fresh": 77, "settings": {"seed": 2}}, (5_000_000, 77)),
    ],
)
def test_the_command_line_then_the_test_then_the_project(
    said: dict[str, Any], given: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert settled(said, **given) == expected


def test_a_new_seed_each_night_and_the_same_confidence_always() -> None:
    seeds = {settled({}, profile="nightly")[1] for _ in range(4)}
    assert len(seeds) == 4  # by chance fewer: 1.4e-9
    usual = [plan(profile=each, command={}, settings={}).usual for each in PROFILES]
    assert {each["confidence"] for each in usual} == {1 - 1e-6}


def test_runs_of_the_command_line_go_before_a_time_limit_of_the_test() -> None:
    found = plan(profile=None, command={"runs": 500}, settings={}).settle({"max_time_s": 9.0})
    assert "max_time_s" not in found


def test_a_time_limit_of_the_test_goes_before_the_usual_runs_and_beside_its_own() -> None:
    usual = plan(profile=None, command={}, settings={})
    assert "runs" not in usual.settle({"max_time_s": 9.0})
    assert usual.settle({"max_time_s": 9.0, "runs": 700})["runs"] == 700


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


def test_the_file_of_accepted_findings_is_that_of_the_command_line() -> None:
    assert pytest_plugin.ACCEPTED == baseline.DEFAULT


# --- what a test and its markers say -------------------------------------------------------------------------------


@pytest.mark.parametrize(
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


def test_what_is_expected() -> None:
    assert _expected([], None) == "not-refuted"
    assert _expected([{"expect": "refuted"}], None) == "refuted"
    assert _expected([{"expect": "refuted"}], "not-refuted") == "not-refuted"
    with pytest.raises(InvalidSpec, match="expect must be 'not-refuted', 'refuted' or 'bits', got 'broken'"):
        _expected([], "broken")


def test_keywords_are_those_of_the_library() -> None:
    found = _arguments("m", {"epsilon": 1.0})
    assert (found["epsilon"], found["stopping"], found["backend"]) == (1.0, "fixed", None)
    with pytest.raises(InvalidSpec, match="audit has no keyword 'epsillon'; it has: expect, pair, pairs, data, claim"):
        _arguments("m", {"epsillon": 1.0})
    with pytest.raises(InvalidSpec, match="audit has no keyword 'mechanism'"):
        _arguments("m", {"mechanism": 1.0})


def top(data: Any, rng: Any) -> Any:
    return data


class Caller:
    def __call__(self, data: Any, rng: Any) -> Any:
        return data

    def method(self, data: Any, rng: Any) -> Any:
        return data


def held() -> list[Callable[..., Any]]:
    from functools import partial

    return [lambda data, rng: data, partial(top), Caller(), Caller().method]


def test_a_function_that_a_module_holds_keeps_its_name() -> None:
    found = _described(wrap(top), "the audit")
    assert found is not None
    assert (found.name, found.reference is None) == ("top", False)


@pytest.mark.parametrize("number", range(4))
def test_others_belong_to_their_audit_alone(number: int) -> None:
    """So that an accepted finding on one never covers another that happens to have its name."""
    found = _described(wrap(held()[number]), "the audit")
    assert found is not None
    assert found.reference is None
    assert found.name.startswith("the audit: ")


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
        *[
            "REFUTED  epsilon >= 1.8 > 1: fails",
            "REFUTED  epsilon >= 1.8 > 1: told",
            "REFUTED  epsilon >= 1.8 > 1: untold",
        ],
        "caught: REFUTED, but its test did not fail",
        "marked: REFUTED, but its test did not fail",
        "weak: TOO LITTLE POWER, but its test did not fail",
        "lost: NO VERDICT, but its test did not fail",
        "told: REFUTED, and its test was run again: what was found stands",
        "untold: REFUTED, and its test was run again: what was found stands",
    ]


def test_the_bound_is_the_last_to_go_where_a_line_is_short() -> None:
    near = "epsilon >= 1.81 > 0.5 on trust"
    forms = pytest_plugin.short_forms(ClaimRefuted("...", f"{near} at delta 1e-06"))
    assert forms == [f"REFUTED {near} at delta 1e-06", f"REFUTED {near}", near]
    assert pytest_plugin.short_forms(UnsoundAudit("drift")) == ["NO VERDICT drift"]
    assert pytest_plugin.short_forms(AssertionError("NOT FOUND  m: gone\nmore")) == ["NOT FOUND  m: gone"]
    assert pytest_plugin.short_forms(AssertionError("assert 1 == 2")) == []


def test_a_summary_tells_what_is_wrong() -> None:
    records = Records()
    records.add(
        [
            record(verdict="REFUTED", as_expected=False, bound="epsilon >= 1.8 > 1").to_dict(),
            record(number=2, verdict="REFUTED", as_expected=True, accepted="f0f0", in_part=True).to_dict(),
            record(number=3, verdict="NOT_REFUTED", as_expected=True, bits_refuted=True, problem="disk full").to_dict(),
            record(number=4, verdict=None, as_expected=False, error="it died", confidence=0.5).to_dict(),
        ],
        "failed",
    )
    lines = summary_lines(records, Defaults("ci", {"runs": 200_000, "seed": 0}, {}), None, ["expired: x"])
    assert lines == [
        "4 audits: 2 refuted, 1 not refuted, 1 without verdict; 1 verdict not as expected, 1 finding on bits, "
        "1 accepted finding",
        "chance of a false alarm: at most 0.51 for all of them together; profile ci, 200,000 runs an audit, seed 0",
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
    records.add(
        [
            record(verdict="REFUTED", file="a.json").to_dict(),
            record(number=2, verdict="REFUTED", file="b.json").to_dict(),
            record(number=3, verdict=None, error="the worker died", exit_code=3).to_dict(),
            record(number=4, file="a.json").to_dict(),
        ],
        "failed",
    )
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
    assert kept().verdict.value == "NOT_REFUTED"


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


def test_functions_of_test_modules_travel_whole(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cloudpickle.list_registry_pickle_by_value()
    with by_value([module], module.f):
        sent = cloudpickle.dumps(module.f)
    assert cloudpickle.list_registry_pickle_by_value() == before
    monkeypatch.delitem(sys.modules, "test_of_somebody")
    assert pickle.loads(sent)(2) == 6


def test_what_cannot_travel_is_left_to_be_imported(module: ModuleType) -> None:
    with by_value([module], module.locked):
        assert pickle.loads(cloudpickle.dumps(module.locked)) is module.locked
    assert "test_of_somebody" not in cloudpickle.list_registry_pickle_by_value()


def test_a_change_that_no_worker_sees_is_told(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_of_somebody.scale", 4)
    monkeypatch.setattr("builtins.copyright", None)  # nobody's
    for sent, carried in ((module.f, [module]), (len, [])):  # the change goes along; nothing of it is used
        with by_value(carried, sent):
            check_patches(monkeypatch, carried, sent)
    with pytest.raises(InvalidSpec, match=r"monkeypatch has changed test_of_somebody\.scale in this process"):
        check_patches(monkeypatch, [], module.f)
    check_patches(None, [], module.f)
