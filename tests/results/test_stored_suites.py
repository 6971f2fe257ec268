"""Suites read back: exactly, or refused where the file contradicts its own results; and what all stored files share."""

from __future__ import annotations

import copy
import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dpaudit.base import validate
from dpaudit.base.files import write_text
from dpaudit.base.strict import keys_of, models, stored, value_of
from dpaudit.certify import CoinFlip
from dpaudit.certify.sequential import Block, Milestones
from dpaudit.claims import Claim, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, Partition, event_from_dict
from dpaudit.report import exchange
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult, Finding
from dpaudit.results.stored import load_either, load_suite, loads
from dpaudit.results.stored.models import model_of
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.cases import NIGHTLY, for_each
from tests.golden import example
from tests.results.test_stored import Change, _audited

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


@for_each(
    "suite",
    [example.suite(), example.reviewed_suite(), SuiteResult((), 0.99), SuiteResult((), 1.0)],
    ids=lambda suite: f"{len(suite.entries)} audits",
)
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


@for_each(
    ("change", "message"),
    [
        (_set("exit_code", to=0), "exit_code is 0, but the results give 1"),
        (_set("entries", 1, "result", "verdict", to="NOT_REFUTED"), "entries[1].result: verdict is"),
        (_set("entries", 1, "result", "certificate", "lower", to=0.5), "entries[1].result: certificate.lower is"),
        (_set("entries", 1, "expect", to="REFUTED"), "entries[1].as_expected is False"),
        (_set("entries", 1, "as_expected", to=True), "entries[1].as_expected is True"),
        (_set("entries", 2, "p_value_holm", to=0.01), "entries[2].p_value_holm is 0.01"),
        (_set("entries", 3, "p_value_holm", to=0.5), "entries[3].p_value_holm is 0.5"),
        (_set("entries", 3, "exit_code", to=0), "entries[3].exit_code is 0, but there is no result"),
        (_set("entries", 3, "exit_code", to=4), "entries[3].exit_code is 4, but there is no result"),
        (_set("confidence", to=0.9999), "spend an error probability of 0.003 together"),
        (_set("entries", 1, "accepted", to=WHOLE["entries"][0]["accepted"]), "entries[1].a"),
        (_set("entries", 0, "accepted", "until", to="2035-05-01"), "entries[0].accepted is not among the accepted"),
        (_set("reviewed", 0, "expired", to=True), "entries[0].accepted is listed in 'reviewed' as"),
        (_set("entries", 0, "accepted", to=None), "entries[0].as_expected is True"),
        (_set("entries", 1, "name", to="noisy count"), "entries[1].name is 'noisy count', but its result is"),
        (_set("reviewed", 0, "acceptance", "until", to="soon"), "not a result of this version"),
        (_set("entries", 1, "result", "spec", "certifier", to="bins"), "at `$.entries[1].result.spec.certifier`"),
        (_set("entries", 1, "result", "spec", "claim", "epsilon", to="1"), "`$.entries[1].result.spec.claim.epsilon`"),
        (_set("entries", 1, "expect", to="\ud800"), "surrogates not allowed; restore"),
        (_set("entries", 0, "note", to=1), "not a result of this version"),
        (lambda whole: whole.pop("confidence"), "not a result of this version"),
        (_set("schema", to="dpaudit.suite/2"), "schema must be 'dpaudit.suite/1', got 'dpaudit.suite/2'"),
    ],
    ids=range(22),
)
def test_a_suite_that_was_changed_is_refused(tmp_path: Path, change: Change, message: str) -> None:
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


def test_a_suite_that_spent_its_whole_error_probability_is_read(tmp_path: Path) -> None:
    weak = _audited(PureDP(1.0), CoinFlip(900, 250, 1000, 1000), confidence=0.4)
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
    for _ in range(8 if NIGHTLY else 1):
        ended = subprocess.run([sys.executable, "-c", FIRST, str(file)], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr


# stored files are written again byte for byte, and their parts are read by the types of their fields alone


ROOT = Path(__file__).resolve().parents[2]
FORMATS = ("dpaudit.result/1", "dpaudit.suite/1")
FILES = [path for folder in ("reports", "tests") for path in sorted((ROOT / folder).rglob("*.json"))]
STORED = [path for path in FILES if json.loads(path.read_text(encoding="utf-8")).get("schema") in FORMATS]


@for_each("path", STORED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stored_file_is_written_again_byte_for_byte(path: Path) -> None:
    held = load_either(path)
    written = held.to_json() if isinstance(held, AuditResult) else exchange.json_suite(held)
    assert written == path.read_text(encoding="utf-8")
    assert {each.name for each in STORED} >= {"result.json", "suite.json"}


def _parts(value: Any) -> Iterator[Any]:
    """Every dataclass in a value that is stored by its keys, the inner ones first."""
    inner = value if isinstance(value, tuple) else ()
    if is_dataclass(value) and not isinstance(value, Claim | Event):
        inner = tuple(getattr(value, each.name) for each in fields(value))
    for each in inner:
        yield from _parts(each)
    if is_dataclass(value) and not isinstance(value, Claim | Event | AuditResult | SuiteResult | SuiteEntry | Finding):
        yield value


OWN = {Event: lambda event, _: event_from_dict(event), Event | Partition: lambda event, _: event_from_dict(event)}
BLOCK = Block(example.result().witness.event, "first", 0.5, 0.25, 0.0, CoinFlip(3, 1, 10, 10))  # type: ignore[arg-type]
PARTS = {
    type(each): each
    for whole in (example.result(milestones=Milestones((10, 20))), example.kept(), example.reviewed_suite(), BLOCK)
    for each in _parts(whole)
}


@for_each("kind", PARTS, ids=lambda kind: kind.__name__)
def test_a_part_is_read_back_by_its_own_types(kind: type) -> None:
    written = json.loads(json.dumps(stored(PARTS[kind])))
    assert value_of(kind, written, OWN) == PARTS[kind]
    needed = set(written) - {*getattr(kind, "_LATER", ()), "place", "kind"}  # a kind may be missing where it is alone
    without = [{name: each for name, each in written.items() if name != key} for key in needed]
    msgspec.convert(written, model_of(kind))
    for each in (*without, {**written, "further": 1}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(each, model_of(kind))
    for whole in (AuditResult, SuiteResult, SuiteEntry, Finding, kind):  # what may be missing is a key
        later = getattr(whole, "_LATER", ())
        assert set(getattr(whole, "_SPARSE", ())) <= set(later) <= set(keys_of(whole))


def test_limits_of_types_are_those_of_files() -> None:
    model = models({})
    for kind, right, wrong in (
        (validate.Count, (0, 2**63 - 1), (-1, 2**63, 0.5, True)),
        (validate.AtLeastOne, (1,), (0,)),
        (validate.Probability, (0.0, 1.0), (-0.1, 1.1, "inf")),
        (validate.OpenProbability, (0.5,), (0.0, 1.0)),
        (validate.Bound, (0.0, "inf"), (-1.0, "-inf", "nan", None)),
        (validate.Edge, (-1.0, "inf", "-inf"), ("nan", None)),
    ):
        for value in right:
            assert stored(value_of(kind, msgspec.convert(value, model(kind)), {})) == value
        for other in wrong:
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert(other, model(kind))


# a file is written whole or not at all, whichever operation of the disk fails, and nothing is left beside it


OPERATIONS = ((tempfile, "mkstemp"), (os, "fdopen"), (os, "fsync"), (os, "chmod"), (os, "replace"))


class Faulty:
    """Operations of which the n-th fails; 0: none."""

    def __init__(self, nth: int) -> None:
        self.nth, self.seen = nth, 0

    def of(self, whole: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **named: Any) -> Any:
            self.seen += 1
            if self.seen == self.nth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return whole(*arguments, **named)

        return operation


def test_a_fault_at_any_operation_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.json"
    write_text(target, "old")
    for nth in range(1, len(OPERATIONS) + 2):
        faulty = Faulty(nth)
        with monkeypatch.context() as patched:
            for module, name in OPERATIONS:
                patched.setattr(module, name, faulty.of(getattr(module, name)))
            if nth <= len(OPERATIONS):
                with pytest.raises(OSError, match="No space left"):
                    write_text(target, "new")
            else:
                write_text(target, "new")
                assert faulty.seen == len(OPERATIONS)
        assert target.read_text() == ("old" if nth <= len(OPERATIONS) else "new")
        assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
