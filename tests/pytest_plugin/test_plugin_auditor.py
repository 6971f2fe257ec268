"""What a test is told for each kind of answer; the answers themselves are written out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.health.checks import check_compared
from dpaudit.certify.evidence import Binned
from dpaudit.errors import ClaimRefuted, InvalidSpec, UnsoundAudit
from dpaudit.events import Event, Partition
from dpaudit.events.features import Whole
from dpaudit.ledger import baseline
from dpaudit.ledger.results import Ledger
from dpaudit.outputs.canonical import Pilot, Token
from dpaudit.outputs.encode import encode_objects
from dpaudit.pytest_plugin.auditor import Auditor
from dpaudit.pytest_plugin.records import Defaults, SessionState, plan
from dpaudit.results.result import AuditResult
from tests.cases import for_each
from tests.golden.example import kept, result

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


def test_a_claim_that_is_not_refuted_gives_its_result(answering: Answering) -> None:
    audit = answering(kept())
    assert audit("f") == kept()
    (record,) = audit.audited
    assert (record["verdict"], record["as_expected"], record["confidence"]) == ("NOT_REFUTED", True, 1 - 1e-6)


def test_a_refutation_is_an_assertion_error(answering: Answering, tmp_path: Path) -> None:
    audit = answering(result(), folder=tmp_path)
    with pytest.raises(ClaimRefuted, match=r"\AREFUTED  noisy count: epsilon >= 1.96") as caught:
        audit("f")
    assert isinstance(caught.value, AssertionError)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    (record,) = audit.audited
    assert (record["verdict"], record["as_expected"]) == ("REFUTED", False)
    assert (tmp_path / record["file"]).is_file()
    assert f"dpaudit accept rep/{record['file']} " in str(caught.value)


def test_a_known_violation(answering: Answering) -> None:
    assert answering(result())("f", expect="refuted") == result()
    audit = answering(kept())
    with pytest.raises(AssertionError, match=r"\ANOT FOUND  noisy count, whole noise: "):
        audit("f", expect="refuted")
    assert not audit.audited[0]["as_expected"]


def test_known_bits_are_found_or_the_test_fails(answering: Answering) -> None:
    plain, found = kept(), result()
    bits = replace(plain, representation=found.main)
    asked: dict[str, Any] = {"expect": "bits", "representation": True}
    audit = answering(bits)
    assert audit("f", **asked) == bits
    assert (audit.audited[0]["expect"], audit.audited[0]["as_expected"]) == ("bits", True)
    with pytest.raises(AssertionError, match=r"\ANOT FOUND  noisy count, whole noise: "):
        answering(plain)("f", **asked)
    with pytest.raises(ClaimRefuted):
        answering(found)("f", **asked)
    with pytest.raises(InvalidSpec, match="needs representation=True"):
        answering(bits)("f", expect="bits")


def test_power_that_is_not_there_is_no_success(answering: Answering) -> None:
    made = kept()
    weak = replace(made, spec={**made.spec, "detect": {"epsilon": 1.001, "mass": 0.001}})
    audit = answering(weak)
    with pytest.raises(AssertionError, match=r"\ATOO LITTLE POWER  noisy count, whole noise: "):
        audit("f")
    assert (audit.audited[0]["exit_code"], audit.audited[0]["as_expected"]) == (4, True)


def test_no_verdict_is_never_a_success(answering: Answering) -> None:
    audit = answering(UnsoundAudit("the worker died"))
    for _ in range(2):
        with pytest.raises(UnsoundAudit, match="the worker died"):
            audit("f", expect="refuted")
    assert [(each["number"], each["verdict"], each["exit_code"]) for each in audit.audited] == [
        (1, None, 3),
        (2, None, 3),
    ]


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


LABELS = {
    "raised NameError": "raised NameError",
    "object coroutine": "gave an object of the type coroutine",
    "timed out": "took longer than run_timeout_s",
    "None": "gave None",
    "nan": "gave no number",
    "'raised'": None,  # a text that an output is
    "7": None,
}


@for_each("label", LABELS)
def test_runs_that_give_no_answer_are_no_verdict(label: str) -> None:
    made = kept()
    witness = replace(made.witness, event=Event(Whole(), (), (Token(label, 7),)))
    always = replace(made.evidence, hits_p=made.evidence.runs_p, hits_q=made.evidence.runs_q)
    check_compared(
        witness, made.evidence, "one leaves"
    )  # on one side more often than on the other: something is compared
    if LABELS[label] is None:
        check_compared(witness, always, "one leaves")
        return
    with pytest.raises(UnsoundAudit, match=f"every run on the pair 'one leaves' {LABELS[label]}.*: nothing was comp"):
        check_compared(witness, always, "one leaves")
    one, other = (encode_objects([kind] * 3) for kind in (None, 1.0))
    check_compared(witness, always, "one leaves", Pilot(one, other))  # search saw another output: this one is frequent
    with pytest.raises(UnsoundAudit, match="nothing was compared"):
        check_compared(witness, always, "one leaves", Pilot(one, one))
    one_bin = replace(witness, event=Partition(Whole(), (witness.event,)))
    with pytest.raises(UnsoundAudit, match="nothing was compared"):
        check_compared(one_bin, Binned((7,), (8,), 7, 8), "one leaves")


def test_a_fault_of_ours_keeps_its_traceback(answering: Answering) -> None:
    audit = answering(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        audit("f")
    assert audit.audited[0]["error"] == "internal error: RuntimeError: a bug"


def test_an_accepted_finding_fails_no_test_until_it_expires(answering: Answering, tmp_path: Path) -> None:
    audit = answering(result(), accepted=accepting(tmp_path / "accepted.toml", 1))
    assert audit("f") == result()
    assert audit.audited[0]["accepted"] is not None
    with pytest.raises(ClaimRefuted):
        answering(result(), accepted=accepting(tmp_path / "accepted.toml", -1))("f")
    other = replace(result(), spec={**result().spec, "claim": {**result().spec["claim"], "epsilon": 1.1}})
    with pytest.raises(ClaimRefuted):
        answering(other, accepted=accepting(tmp_path / "accepted.toml", 1))("f")


def test_an_accepted_finding_is_no_known_violation(answering: Answering, tmp_path: Path) -> None:
    audit = answering(kept(), accepted=accepting(tmp_path / "accepted.toml", 1))
    with pytest.raises(AssertionError, match="NOT FOUND"):
        audit("f", expect="refuted")


def test_a_spoiled_file_of_acceptances_is_told_before_anything_runs(answering: Answering, tmp_path: Path) -> None:
    (tmp_path / "accepted.toml").write_text("schema = 7\n")
    audit = answering(AssertionError("it ran"), accepted=tmp_path / "accepted.toml")
    with pytest.raises(InvalidSpec, match="schema must be"):
        audit("f")


def test_settings_that_are_none_are_told_by_every_audit(answering: Answering, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nrusn = 3\n")
    with pytest.raises(InvalidSpec, match="rusn"):
        answering(kept())("f")


def test_a_result_that_cannot_be_written_keeps_its_verdict(answering: Answering, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    audit = answering(result(), folder=tmp_path / "file")
    with pytest.raises(ClaimRefuted):
        audit("f")
    (record,) = audit.audited
    assert record["verdict"] == "REFUTED"
    assert "could not be written" in record["problem"]


def test_a_ledger_that_the_project_names_records_every_result(answering: Answering, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nledger = 'kept.sqlite'\n")
    audit = answering(result())
    audit("f", expect="refuted")
    with pytest.raises(ClaimRefuted):
        audit("f")
    with Ledger(tmp_path / "kept.sqlite", read_only=True) as ledger:
        assert [record.name for record in ledger.results()] == ["noisy count"] * 2
    (tmp_path / "kept.sqlite").write_text("no database")
    with pytest.raises(ClaimRefuted):
        audit("f")
    assert "kept.sqlite" in audit.audited[-1]["problem"]
