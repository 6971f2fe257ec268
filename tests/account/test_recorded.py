"""Records of noise in words: a lead with its assumption, never a refutation, and what counts would take."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from msgspec import ValidationError

from dpaudit.account import Level, account
from dpaudit.account.recorded import SIZES, _audit, found, needed, takes
from dpaudit.account.suites import assertion, kind_of, needs_action, reported
from dpaudit.base.strict import text_of
from dpaudit.certify import smallest_caught
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PrivacyProfile, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.report import display
from dpaudit.report.exchange import junit_suite
from dpaudit.results.display import Verdict
from dpaudit.results.recorded import Lead, NoiseRecord
from dpaudit.results.stored import loads
from dpaudit.results.stored.reading import record_of
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.account.results import KINDS, MOVES, made, recorded, with_record
from tests.cases import for_each
from tests.golden import example

RECORDS = [kind for kind in KINDS if kind.startswith("recorded-")]


@for_each("kind", RECORDS)
def test_a_lead_is_told_with_its_assumption_and_is_no_verdict(kind: str) -> None:
    record: NoiseRecord = made(kind)
    whole = account(record)
    assert whole.headline.startswith("recorded  noisy count (one leaves): ")
    assert not re.search(r"refuted|proved|private|safe", "\n".join(map(str, whole.sections[:-2])), re.IGNORECASE)
    assert ("if these draws are its only randomness" in whole.headline) is bool(record.leads or record.loss is not None)
    assert whole.headline.count("LEAD") == bool(record.leads)
    assert str(record) == "\n".join(
        account(record, Level.PAGE_ONE).lines("print(result.explain()) shows the whole account")
    )
    assert [row["kind"] for row in display.frame_rows(record).rows] == [each.kind for each in record.leads]


@for_each("lead, words", [
    (replace(MOVES, at_most=True), "moves output by at most 2 scales of Laplace noise: epsilon at most 2.00"),
    (replace(MOVES, loss=1.0000004), "moves output by 2 scales of Laplace noise: epsilon 1.0000004, claimed 1"),
    (replace(MOVES, law="-gumbel", loss=math.inf), "2 scales of Gumbel noise: epsilon infinite, claimed 1"),
    (replace(MOVES, kind="law", loss=None), "the pair changes the law of the noise of output"),
    (replace(MOVES, kind="reused"), "one draw is in output, and what they have in common differs: epsilon 2"),
    (Lead("untouched", ("a",), "1", "2"), "no draw touches a, and it differs"),
    (Lead("untouched", tuple("abcdefghij"), "1", "2"), "no draw touches a, b, c, d, e, f, g, h and 2 more, and they"),
    (Lead("raised", (), "a value", "raised ValueError"), "one dataset alone ends in an exception"),
])  # fmt: skip
def test_every_kind_of_lead_has_its_words(lead: Lead, words: str) -> None:
    assert words in found(recorded(lead))


def test_what_a_stranger_wrote_is_made_harmless() -> None:
    hostile = replace(MOVES, parts=("a\x1b[31m\nREFUTED",), place="b\u202e", call="c\nd", first="e\rf")
    for line in account(recorded(hostile, unseen=("x\ny",), differs=("g\nh",))).lines():
        assert line.isprintable()


@for_each("claim, lead, most", [
    (PureDP(1.0), MOVES, 5_000),
    (PureDP(1.0), replace(MOVES, loss=1.01), 20_000_000),
    (PureDP(1.0), Lead("untouched", ("a",), "1", "2"), 1_000),
    (GaussianDP(1.0), replace(MOVES, shift=1.1, loss=1.13), 500_000),
    (PureDP(1.0), replace(MOVES, law="normal", shift=1.0, loss=math.inf), 20_000),
    (GaussianDP(1.0), replace(MOVES, law="normal", shift=1.05, loss=1.05), 2_000_000),
    (ApproximateDP(1.0, 1e-5), replace(MOVES, law="normal", shift=0.5, loss=1.99), 2_000_000),
])  # fmt: skip
def test_what_counts_would_take_is_what_their_power_says(claim: Claim, lead: Lead, most: int) -> None:
    record = recorded(lead, claim=claim.to_dict(), parameter=claim.parameter)
    runs = needed(record, 0.999)
    assert runs is not None
    assert runs <= most
    assert f"it takes about {runs:,} runs" in takes(record)
    assert takes(record, made=runs).startswith("So many runs mostly show such a loss, and did not")
    if claim == PureDP(1.0) and lead.loss is not None and lead.loss < math.inf and runs > SIZES[0]:
        least, fewer = (
            smallest_caught(claim, 3 * n // 4, 0.5, confidence=0.999) for n in (runs, SIZES[SIZES.index(runs) - 1])
        )
        assert least is not None
        assert least <= lead.loss < (math.inf if fewer is None else fewer)


def test_nobody_says_what_counts_take_without_a_number() -> None:
    curve = PrivacyProfile([(0.0, 0.3), (1.0, 0.01)])
    for record in (recorded(), recorded(MOVES, claim=None), recorded(MOVES, claim=curve.to_dict(), allowed=None)):
        assert needed(record, 0.999) is None
        assert takes(record) == ""


def test_the_audit_of_the_pair_can_be_typed_where_all_of_it_can() -> None:
    spec = example.result().spec
    mechanism = {**spec["mechanism"], "reference": "counts:noisy", "parameters": {"scale": 0.5}}
    command, *python = _audit(recorded(MOVES, description=mechanism))
    assert command.startswith("dpaudit audit counts:noisy --pair '[[")
    assert "--param scale=0.5" in command
    assert python[-1] == ")"
    assert any("claim=dpaudit.PureDP(epsilon=1.0, relation=" in line for line in python)
    large = {**spec["pairs"][0], "first": {"digest": "5d1f", "value": None}}
    assert not _audit(replace(recorded(MOVES, description=mechanism), pair=large))[0].startswith("dpaudit")
    assert _audit(recorded(MOVES, description={})) == ()


def test_a_record_is_stored_whole_and_read_back_strictly() -> None:
    for record in (*map(made, RECORDS), recorded(replace(MOVES, loss=math.inf, shift=math.inf))):
        stored = json.loads(text_of(record.to_dict()))
        assert record_of(stored) == record
        for wrong in ({"more": 1}, {"loss": -1.0}, {"leads": [{}]}, {"schema": "dpaudit.recorded/2"}):
            with pytest.raises(ValidationError):
                record_of({**stored, **wrong})


# --- beside an audit ---


@for_each("leads, code", [("tell", 0), ("fail", 1)])
def test_a_lead_never_enters_verdict_bound_or_bracket(leads: str, code: int) -> None:
    plain = example.kept()
    led = with_record(plain, recorded(MOVES), leads=leads)
    for key in ("verdict", "certificate", "evidence", "witness", "upper", "ceiling", "cross_check", "health"):
        assert led.to_dict()[key] == plain.to_dict()[key]
    assert str(led.bracket) == str(plain.bracket)
    assert led.lower_bound == plain.lower_bound
    assert led.led
    assert led.exit_code == code
    assert "recorded" not in plain.to_dict()
    assert "leads" not in plain.to_dict()["spec"]
    assert loads(led.to_json()) == led


def test_a_lead_that_counts_bear_out_is_no_failure_of_its_own() -> None:
    refuted = with_record(example.result(), recorded(MOVES), leads="fail")
    assert not refuted.led
    assert refuted.exit_code == 0
    assert not with_record(example.kept(), recorded(loss=1.0), leads="fail").led


def entry(leads: str, **changes: Any) -> SuiteEntry:
    result = with_record(example.kept(), recorded(MOVES), leads=leads)
    return SuiteEntry(result.name, Verdict.NOT_REFUTED, result, **{"exit_code": result.exit_code, **changes})


def test_a_suite_fails_for_a_lead_where_it_is_asked_to_and_marks_it_else() -> None:
    told, failed = entry("tell"), entry("fail")
    assert kind_of(failed) == "a lead by recorded noise"
    assert needs_action(failed)
    assert not needs_action(told)
    suite = SuiteResult((told, failed), 0.99)
    assert SuiteResult((told,), 0.99).exit_code == 0
    assert suite.exit_code == 1
    assert "2 leads by recorded noise" in account(suite, Level.HEADLINE).headline
    assert [each.rule.id for each in reported(suite)] == ["DPA009"]
    assert "DPA009 RecordedLead" in junit_suite(suite)
    assert assertion(failed).startswith("LEAD  noisy count, whole noise: ")
    first, second = account(suite)["every audit"].lines
    assert "recorded noise: LEAD, the pair moves output by 2 scales" in first
    assert "LEAD" in second


def test_a_stored_suite_that_hides_a_lead_is_refused() -> None:
    from dpaudit.results.stored.reading import either_of

    spent = example.kept().spec["confidence"]
    whole = SuiteResult((entry("fail"),), spent).to_dict()
    assert either_of(whole) is not None
    hidden = {**whole, "exit_code": 0, "entries": [{**whole["entries"][0], "exit_code": 0}]}
    with pytest.raises(InvalidSpec, match="exit_code is 0, but there is a lead"):
        either_of(hidden)
