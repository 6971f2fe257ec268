"""Sentences about several audits at one suite confidence."""

from __future__ import annotations

from dpaudit.auditing.result import SuiteEntry, SuiteResult
from dpaudit.auditing.verdict import Verdict
from dpaudit.auditing.wording.numerals import confidence_text, counted, p_text
from dpaudit.auditing.wording.quoting import LONGEST_DATA, clean
from dpaudit.auditing.wording.statements import statement, verdict_text
from dpaudit.certify.certificate import error_probability


def suite_line(entry: SuiteEntry) -> str:
    """One audit of a suite on one line: whether it went as its author expects, and what came out."""
    if entry.result is None:
        return f"no verdict   {clean(entry.name)}: {clean(entry.error or 'no reason was recorded', LONGEST_DATA)}"
    expected = "as expected  " if entry.as_expected else "UNEXPECTED   "
    line = f"{expected}{verdict_text(entry.result.verdict):<11}  {clean(entry.name)}: {statement(entry.result)}"
    if entry.result.representation_refuted:
        line += "; and a representation finding"
    if not entry.as_expected:
        line += f", expected {verdict_text(entry.expect)}"
    if entry.result.power_reached is False:
        line += "; without the power that the spec demands"
    return f"{line}; {clean(entry.error, LONGEST_DATA)}" if entry.error else line


def suite_headline(suite: SuiteResult) -> str:
    """The one line of a suite: how many audits, what they say, and the exit code."""
    done = [entry.result.verdict for entry in suite.entries if entry.result is not None]
    refuted = sum(verdict is Verdict.REFUTED for verdict in done)
    odd = sum(not entry.as_expected for entry in suite.entries if entry.result is not None)
    counts = f"{refuted} refuted, {len(done) - refuted} not refuted, {len(suite.entries) - len(done)} without verdict"
    surprise = "every verdict as expected" if not odd else f"{counted(odd, 'verdict')} not as expected"
    weak = sum(entry.result.power_reached is False for entry in suite.entries if entry.result is not None)
    surprise += f", {weak} without the power demanded" if weak else ""
    said = f"{counts}; {surprise}" if done else counts
    return f"{counted(len(suite.entries), 'audit')}: {said}; exit code {suite.exit_code}"


def suite_question(suite: SuiteResult) -> tuple[str, ...]:
    """What a suite asks, and what its confidence means."""
    error = p_text(error_probability(suite.confidence))
    return (
        f"{counted(len(suite.entries), 'audit')} at suite confidence {confidence_text(suite.confidence)}: "
        f"each gets an equal part of the error probability {error}.",
        f"Where every claim holds, the whole suite refutes one of them with probability at most {error}.",
        "Each audit's verdict and bound follow from its own part; the Holm-adjusted p-value stands beside them.",
    )
