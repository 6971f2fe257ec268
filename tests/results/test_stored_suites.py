"""Suites read back: exactly, or refused where the file contradicts its own results."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.certify import certifier_named
from dpaudit.errors import InvalidSpec
from dpaudit.report import exchange
from dpaudit.results.certification import ceiling_of
from dpaudit.results.display import Verdict
from dpaudit.results.result import recompute
from dpaudit.results.stored import load_either, load_suite, loads
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.cases import for_each
from tests.golden import example

Change = Callable[[dict[str, Any]], object]
WHOLE = json.loads(exchange.json_suite(example.reviewed_suite()))


def _written(folder: Path, whole: Any) -> Path:
    path = folder / "suite.json"
    path.write_text(whole if isinstance(whole, str) else json.dumps(whole), encoding="utf-8")
    return path


def _refusal(path: Path) -> str:
    with pytest.raises(InvalidSpec) as caught:
        load_suite(path)
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(f"{path}: ")
    return message


@pytest.mark.parametrize("suite", [example.suite(), example.reviewed_suite()])
def test_what_is_written_comes_back_equal(suite: SuiteResult, tmp_path: Path) -> None:
    path = _written(tmp_path, exchange.json_suite(suite))
    assert load_suite(path) == load_either(path) == suite
    assert exchange.json_suite(load_suite(path)) == path.read_text(encoding="utf-8")


def test_a_suite_of_before_acceptances_is_read(tmp_path: Path) -> None:
    whole = json.loads(exchange.json_suite(example.suite()))
    del whole["reviewed"]
    for entry in whole["entries"]:
        del entry["accepted"], entry["source"]
    assert load_suite(_written(tmp_path, whole)) == example.suite()


def test_a_file_says_whether_it_is_a_result_or_a_suite(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    example.result().save(path)
    assert load_either(path) == example.result()
    assert "schema must be 'dpaudit.suite/1', got 'dpaudit.result/1'" in _refusal(path)
    assert loads(example.result().to_json()) == example.result()
    with pytest.raises(InvalidSpec, match=r"^row 7: not JSON"):
        loads("{", "row 7")


def _set(*keys: str | int, to: Any) -> Change:
    def change(whole: dict[str, Any]) -> None:
        place: Any = whole
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


FORGED: dict[str, tuple[Change, str]] = {
    "exit code": (_set("exit_code", to=0), "exit_code is 0, but the results give 1"),
    "verdict": (_set("entries", 1, "result", "verdict", to="NOT_REFUTED"), "entries[1].result: verdict is"),
    "bound": (_set("entries", 1, "result", "certificate", "lower", to=0.5), "entries[1].result: certificate.lower is"),
    "expectation": (_set("entries", 1, "expect", to="REFUTED"), "entries[1].as_expected is False"),
    "as expected": (_set("entries", 1, "as_expected", to=True), "entries[1].as_expected is True"),
    "holm": (_set("entries", 2, "p_value_holm", to=0.01), "entries[2].p_value_holm is 0.01"),
    "holm of none": (_set("entries", 3, "p_value_holm", to=0.5), "entries[3].p_value_holm is 0.5"),
    "no verdict": (_set("entries", 3, "exit_code", to=0), "entries[3].exit_code is 0, but there is no result"),
    "confidence": (_set("confidence", to=0.9999), "spend an error probability of 0.003 together"),
    "acceptance moved": (_set("entries", 1, "accepted", to=WHOLE["entries"][0]["accepted"]), "entries[1].a"),
    "acceptance longer": (
        _set("entries", 0, "accepted", "until", to="2035-05-01"),
        "entries[0].accepted is not among the accepted findings",
    ),
    "acceptance expired": (_set("reviewed", 0, "expired", to=True), "entries[0].accepted is listed in 'reviewed' as"),
    "acceptance renewed": (_set("entries", 0, "accepted", to=None), "entries[0].as_expected is True"),
    "audit renamed": (
        _set("entries", 1, "name", to="noisy count"),
        "entries[1].name is 'noisy count', but its result is",
    ),
    "no verdict but softer": (
        _set("entries", 3, "exit_code", to=4),
        "entries[3].exit_code is 4, but there is no result",
    ),
    "a day": (_set("reviewed", 0, "acceptance", "until", to="soon"), "not a result of this version"),
    "certifier": (
        _set("entries", 1, "result", "spec", "certifier", to="bins"),
        "at `$.entries[1].result.spec.certifier`",
    ),
    "claim": (
        _set("entries", 1, "result", "spec", "claim", "epsilon", to="1"),
        "at `$.entries[1].result.spec.claim.epsilon`",
    ),
    "half a character": (_set("entries", 1, "expect", to="\ud800"), "surrogates not allowed; restore"),
    "further key": (_set("entries", 0, "note", to=1), "not a result of this version"),
    "missing key": (lambda whole: whole.pop("confidence"), "not a result of this version"),
    "schema": (_set("schema", to="dpaudit.suite/2"), "schema must be 'dpaudit.suite/1', got 'dpaudit.suite/2'"),
}


@for_each("name", FORGED)
def test_a_suite_that_was_changed_is_refused(name: str, tmp_path: Path) -> None:
    change, message = FORGED[name]
    whole = copy.deepcopy(WHOLE)
    change(whole)
    assert whole != WHOLE
    assert message in _refusal(_written(tmp_path, whole))


def test_too_little_power_cannot_be_left_out_of_the_exit_code(tmp_path: Path) -> None:
    weak = replace(example.kept(), spec={**example.kept().spec, "detect": {"epsilon": 1.0001, "mass": 0.001}})
    entry = SuiteEntry(weak.name, Verdict.NOT_REFUTED, weak, exit_code=4)
    path = _written(tmp_path, exchange.json_suite(SuiteResult((entry,), 0.999)))
    assert load_suite(path).exit_code == 4
    hidden = exchange.json_suite(SuiteResult((replace(entry, exit_code=0),), 0.999))
    assert "the power that the spec demands was not reached" in _refusal(_written(tmp_path, hidden))


def test_an_audit_that_was_taken_out_or_put_in_twice_or_exchanged_is_missed(tmp_path: Path) -> None:
    refuted = SuiteEntry("noisy count", Verdict.NOT_REFUTED, example.result(), source="a.toml")
    kept = SuiteEntry("noisy count, whole noise", Verdict.NOT_REFUTED, example.kept())
    for entries in ((refuted, kept), (kept, kept)):
        assert load_suite(_written(tmp_path, exchange.json_suite(SuiteResult(entries, 0.998)))).entries == entries
    out = exchange.json_suite(SuiteResult((kept,), 0.998))
    assert "an error probability of 0.001 together: an audit is missing" in _refusal(_written(tmp_path, out))
    twice = exchange.json_suite(SuiteResult((kept, kept, kept), 0.998))
    assert "spend an error probability of 0.003 together" in _refusal(_written(tmp_path, twice))
    exchanged = (replace(refuted, result=kept.result), replace(kept, result=refuted.result))
    forged = exchange.json_suite(SuiteResult(exchanged, 0.998))
    assert "entries[0].name is 'noisy count', but its result is of" in _refusal(_written(tmp_path, forged))


@pytest.mark.parametrize("confidence", [0.99, 1.0])
def test_an_empty_suite_is_read(confidence: float, tmp_path: Path) -> None:
    empty = SuiteResult((), confidence)
    assert load_suite(_written(tmp_path, exchange.json_suite(empty))) == empty


def test_a_suite_that_spent_its_whole_error_probability_is_read(tmp_path: Path) -> None:
    made = example.kept()
    bare = replace(made, spec={**made.spec, "confidence": 0.4})
    weak = replace(
        bare,
        certificate=recompute(bare),
        ceiling=ceiling_of(bare.witness, bare.evidence, bare.claim, 0.4, certifier_named("coin-flip")),
    )
    entry = SuiteEntry(weak.name, weak.verdict, weak)
    spent = SuiteResult((entry, entry), 0.0)
    assert load_suite(_written(tmp_path, exchange.json_suite(spent))) == spent
    assert "spend an error probability of 1.2" in _refusal(
        _written(tmp_path, exchange.json_suite(replace(spent, confidence=0.1)))
    )


FIRST = """
import sys, threading
sys.setswitchinterval(1e-6)
from dpaudit.results.stored import load_either

barrier, read = threading.Barrier(8), []

def first():
    barrier.wait()
    read.append(load_either(sys.argv[1]))

threads = [threading.Thread(target=first) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(read) == 8
"""


@pytest.mark.long
def test_threads_may_all_be_the_first_to_read(tmp_path: Path) -> None:
    """Two of them that made a type known to msgspec at once ended the process, about every second time."""
    file = _written(tmp_path, WHOLE)
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", FIRST, str(file)], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
