"""Exceptions and missing values in plain words: how often, what they said and where; and no other event is chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from dpaudit import report
from dpaudit.account.suites import assertion
from dpaudit.events import event_from_dict
from dpaudit.outputs.canonical import ABSENT, Outputs, concatenate
from dpaudit.outputs.encode import encode_objects
from dpaudit.processes.frames import KeptShard, decoded, encoded
from dpaudit.results.stored import load
from dpaudit.results.suite import SuiteEntry
from dpaudit.running.worker import run_each
from tests.cases import for_each
from tests.golden import example

PAIR = ([1] * 5, [1] * 4)
LINE = "(test_endings.py, line "


def _few(data: Any, rng: Any) -> float:
    if len(data) < 5:
        raise RuntimeError("too few rows \x1b[31m\u202e at 0x7f00deadbeef")
    return float(rng.laplace())


def _pairs(data: Any, rng: Any) -> tuple[float, int]:
    return _few(data, rng), 1


def _half_none(data: Any, rng: Any) -> float | None:
    return None if len(data) < 5 and rng.random() < 0.5 else float(rng.laplace())


def _import(data: Any, rng: Any) -> None:
    import no_such_module_here  # type: ignore[import-not-found]  # noqa: F401


def _audited(mechanism: Any, **more: Any) -> Any:
    return dpaudit.audit(mechanism, pair=PAIR, epsilon=1.0, relation="add_or_remove_one", runs=2_000, n_jobs=1, **more)


@pytest.mark.long
@for_each("mechanism", [_pairs], nightly=[_few])
def test_an_exception_is_named_with_its_message_and_line_in_every_format(mechanism: Any, tmp_path: Path) -> None:
    """An event on the type, on numbers or on a score that was about raising says so."""
    result = _audited(mechanism)
    written = (
        report.write_report(result, tmp_path / f"it{suffix}") for suffix in (".txt", ".md", ".html", ".xml", ".sarif")
    )
    shown = [each.read_text(encoding="utf-8").replace("&#39;", "'").replace("&#x27;", "'") for each in written]
    shown.append(str(result.explain()))
    assert all("\x1b" not in text and "\u202e" not in text for text in shown)
    for text in (each.replace("\\", "") for each in (*shown[:3], shown[-1])):
        assert "he mechanism raises RuntimeError in 0 of " in text
        assert f"too few rows x1b[31mu202e at 0x...' {LINE}{_few.__code__.co_firstlineno + 2})" in text
        assert "that was: the run " in text
    assert load(result.save(tmp_path / "result.json")) == result
    stored = json.loads(result.to_json())
    assert [each["what"] for each in stored["endings"]] == ["a value", "raised RuntimeError"]
    assert list(stored["provenance"]["exceptions"]) == ["raised RuntimeError"]


@pytest.mark.long
def test_none_is_told_with_how_often_and_values_are_not() -> None:
    text = str(_audited(_half_none).explain())
    assert "(in search runs that was: the run gives None)" in text
    assert "the mechanism gives None in 0 of " in text
    plain = _audited(lambda data, rng: len(data) + float(rng.laplace()))
    assert plain.illustration.endings == ()
    assert "exceptions" not in plain.provenance


def test_exceptions_of_one_type_are_not_told_as_one_output() -> None:
    def failing(data: Any, rng: Any) -> float:
        if len(data) < 5:
            raise ValueError(f"drew {rng.random()}")
        return 5.0

    assert _audited(failing).health.notes == ("every search run on the first dataset gave one and the same output",)


@pytest.mark.long
def test_an_event_on_numbers_is_about_a_value_only_where_there_being_one_tells() -> None:
    """That it says so is in tests/golden/accounts/raising.txt."""
    result = _audited(_few)
    ends = result.illustration.endings
    some = replace(ends[0], hits=(ends[0].runs[0] - 9, 0))
    said = (some, replace(ends[1], runs=(9, 4), hits=(9, 0)))  # by what the exception says, not that there is one
    assert "gives a value at all" not in str(example.changed(result, endings=said).explain())
    event = {"feature": {"kind": "coordinate", "path": []}, "intervals": [[-1.03, "inf"]], "tokens": []}
    numbers = replace(result.witness, event=event_from_dict(event))
    other = example.changed(result, witness=numbers, endings=(some, replace(ends[1], hits=(0, 0))))
    message = assertion(SuiteEntry("it", dpaudit.Verdict.NOT_REFUTED, other))
    assert "let both datasets end alike" in message
    assert "noise is too small" not in message


def test_a_mechanism_that_always_raises_has_no_verdict_and_says_why() -> None:
    line = _import.__code__.co_firstlineno + 1
    with pytest.raises(dpaudit.UnsoundAudit) as caught:
        _audited(_import)
    said = f"raised ModuleNotFoundError, the first time \"No module named 'no_such_module_here'\" {LINE}{line})"
    assert said in str(caught.value)


def test_notes_are_of_the_first_exception_of_each_type_and_survive_every_way() -> None:
    def raising(data: int, rng: Any) -> int:
        if data % 3:
            raise (KeyError if data % 3 == 1 else ValueError)(f"at {data}")
        return data

    one, other = (encode_objects(run_each(raising, iter(range(*ends)), None)) for ends in ((0, 6), (6, 12)))  # type: ignore[arg-type]
    joined = concatenate([one, other])
    for found in (one, joined, joined.take(joined.column(()).tokens != 0), decoded(*encoded(KeptShard(joined))).result):
        assert isinstance(found, Outputs)
        assert {label: note.split(" (")[0] for label, note in found.notes.items()} == {
            "raised KeyError": "\"'at 1'\"",
            "raised ValueError": "'at 2'",
        }


def test_what_is_missing_is_told_in_words() -> None:
    for path, told in (
        ([], "there is no output"),
        ([1], "there is no output[1]"),
        (["@type"], "output is a plain number"),
    ):
        stored = {"label": ABSENT.label, "code": ABSENT.code}
        event = event_from_dict({"feature": {"kind": "coordinate", "path": path}, "intervals": [], "tokens": [stored]})
        assert str(event).startswith(told)


async def later(data: Any, rng: Any) -> float:
    return float(rng.laplace())


def one_by_one(data: Any, rng: Any) -> Any:
    yield rng.laplace()


@pytest.mark.filterwarnings("ignore:coroutine")
@for_each(("mechanism", "cure"), [(later, r"asyncio\.run"), (one_by_one, r"list\(f\(data, rng\)\)")])
def test_an_output_that_holds_no_answer_yet_is_named_with_its_cure(mechanism: Any, cure: str) -> None:
    with pytest.raises(dpaudit.UnsoundAudit, match=f"holds no answer yet.*no verdict; .*{cure}"):
        dpaudit.audit(mechanism, pair=(0.0, 1.0), epsilon=1.0, runs=400, n_jobs=1)
