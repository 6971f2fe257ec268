"""Sentences about suites: acceptances are told apart from expectations, and no sentence says more than is so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpaudit.account.suites import EXIT_CODES, reported, suite_headline, suite_line, suite_question
from dpaudit.base.quoting import cell
from dpaudit.results.display import Verdict
from dpaudit.results.suite import Reviewed, SuiteEntry, SuiteResult, joint_confidence
from tests.cases import for_each
from tests.golden import example

HELD = example.accepted()
ACCEPTED = SuiteEntry("noisy count", Verdict.NOT_REFUTED, example.result(), accepted=HELD)


def test_an_accepted_finding_says_until_when_and_stays_refuted() -> None:
    line = suite_line(ACCEPTED)
    assert line.startswith("accepted     REFUTED      noisy count: epsilon >= 1.96 ")
    assert ", expected not refuted; output above 9.5" in line
    assert line.endswith(", accepted until 2025-05-01: the old release, gone in May")
    assert "UNEXPECTED" in suite_line(replace(ACCEPTED, accepted=None))
    assert "accepted" not in suite_line(replace(ACCEPTED, accepted=None))


def test_an_acceptance_covers_no_missed_violation_and_is_not_needed_for_a_known_one() -> None:
    missed = SuiteEntry("x", Verdict.REFUTED, example.kept(), accepted=HELD)
    assert suite_line(missed).startswith("UNEXPECTED   not refuted")
    known = SuiteEntry("x", Verdict.REFUTED, example.result(), accepted=HELD)
    assert suite_line(known).startswith("as expected  REFUTED")
    assert "accepted" not in suite_line(known)


def test_the_headline_counts_what_is_accepted_and_what_has_expired() -> None:
    over = Reviewed(replace(HELD, until=HELD.accepted), expired=True, matched=True)
    kept = SuiteEntry("kept", Verdict.NOT_REFUTED, example.kept())
    assert suite_headline(SuiteResult((ACCEPTED, kept), 0.99)) == (
        "2 audits: 1 refuted, 1 not refuted, 0 without verdict; every verdict as expected or accepted, 1 accepted "
        "finding"
    )
    assert suite_headline(SuiteResult((replace(ACCEPTED, accepted=None), kept), 0.99, (over,))) == (
        "2 audits: 1 refuted, 1 not refuted, 0 without verdict; 1 verdict not as expected; 1 acceptance expired"
    )
    assert suite_headline(SuiteResult((kept,), 0.99, (over,))).endswith("as expected; 1 acceptance expired")


def test_the_question_says_equal_only_of_equal_parts() -> None:
    stricter = replace(example.kept(), spec={**example.kept().spec, "confidence": 0.9999})
    entries = (ACCEPTED, SuiteEntry("stricter", Verdict.NOT_REFUTED, stricter))
    assert "each gets an equal part of" in suite_question(example.suite())[0]
    assert "each gets a part of its own of" in suite_question(SuiteResult(entries, 0.9989))[0]


@pytest.mark.parametrize(
    ("confidences", "together"),
    [
        ((0.999,), 0.999),
        ((0.999, 0.999, 0.999), 0.997),
        ((0.99, 0.9999), 0.9899),
        ((1 - 1e-6,) * 7, 1 - 7e-6),
        ((), 1.0),
    ],
)
def test_error_probabilities_add_up_without_binary_noise(confidences: tuple[float, ...], together: float) -> None:
    made = [replace(example.kept(), spec={**example.kept().spec, "confidence": each}) for each in confidences]
    assert joint_confidence(made) == together


def test_nothing_is_left_of_a_confidence_that_was_spent() -> None:
    made = [replace(example.kept(), spec={**example.kept().spec, "confidence": 0.5})] * 3
    assert joint_confidence(made) == 0.0
    assert "at suite confidence 0:" in suite_question(SuiteResult((ACCEPTED,) * 3, joint_confidence(made)))[0]


@for_each("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "  =1", "\uff1d1", "\n=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert str(cell(text)).startswith("'")
    assert cell(f"x{text}") == str(cell(f"x{text}"))
    assert not str(cell(f"x{text}")).startswith("'")


def test_every_exit_code_of_the_command_line_has_a_meaning() -> None:
    assert set(EXIT_CODES) == {0, 1, 2, 3, 4, 5, 70, 130}


def test_sentences_of_findings_are_one_line_without_columns() -> None:
    for found in reported(example.reviewed_suite()):
        assert found.sentence.isprintable()
        assert "  " not in found.sentence
