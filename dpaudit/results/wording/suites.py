"""Sentences about several audits at one suite confidence, and about findings that somebody answers for."""

from collections.abc import Sequence

from dpaudit.certify.certificate import error_probability
from dpaudit.results.suite import Acceptance, Reviewed, SuiteEntry, SuiteResult
from dpaudit.results.verdict import Verdict
from dpaudit.results.wording.cause import cause
from dpaudit.results.wording.numerals import confidence_text, counted, p_text
from dpaudit.results.wording.quoting import LONGEST_DATA, LONGEST_REASON, clean
from dpaudit.results.wording.statements import said, stamp, verdict_text

STILL_REFUTED = "An accepted finding stays refuted: somebody answers for it until the day that is named."


def suite_line(entry: SuiteEntry) -> str:
    """One audit of a suite on one line: whether it went as its author expects, and what came out."""
    if entry.result is None:
        return f"no verdict   {clean(entry.name)}: {clean(entry.error or 'no reason was recorded', LONGEST_REASON)}"
    expected = "accepted     " if entry.covered else "as expected  " if entry.as_expected else "UNEXPECTED   "
    line = f"{expected}{stamp(entry.result):<11}  {clean(entry.name)}: {'; '.join(said(entry.result))}"
    if not entry.foreseen:
        line += f", expected {expected_text(entry)}"
    line += f"; {found}" if (found := cause(entry.result)) else ""
    if entry.covered and entry.accepted is not None:
        line += f", {until_text(entry.accepted)}: {clean(entry.accepted.reason, LONGEST_DATA)}"
    if entry.result.power_reached is False:
        line += "; without the power that the spec demands"
    return f"{line}; {clean(entry.error, LONGEST_REASON)}" if entry.error else line


def expected_text(entry: SuiteEntry) -> str:
    """What the author of the spec knows: a verdict, or that only bits refute the claim."""
    return "REFUTED by bits" if entry.bits else verdict_text(entry.expect)


def suite_headline(suite: SuiteResult) -> str:
    """The one line of a suite: how many audits, and what they say."""
    done = [entry.result.verdict for entry in suite.entries if entry.result is not None]
    refuted = sum(verdict is Verdict.REFUTED for verdict in done)
    odd = sum(not entry.as_expected for entry in suite.entries if entry.result is not None)
    counts = f"{refuted} refuted, {len(done) - refuted} not refuted, {len(suite.entries) - len(done)} without verdict"
    covered = sum(entry.covered for entry in suite.entries)
    if odd:
        surprise = f"{counted(odd, 'verdict')} not as expected"
    else:
        surprise = "every verdict as expected" if not covered else "every verdict as expected or accepted"
    bits = sum(entry.result.representation_refuted for entry in suite.entries if entry.result is not None)
    surprise += f", {counted(bits, 'finding')} on bits" if bits else ""
    surprise += f", {counted(covered, 'accepted finding')}" if covered else ""
    weak = sum(entry.result.power_reached is False for entry in suite.entries if entry.result is not None)
    surprise += f", {weak} without the power demanded" if weak else ""
    said = f"{counts}; {surprise}" if done else counts
    over = sum(each.expired for each in suite.reviewed)
    said += f"; {counted(over, 'acceptance')} expired" if over else ""
    return f"{counted(len(suite.entries), 'audit')}: {said}"


def suite_question(suite: SuiteResult) -> tuple[str, ...]:
    """What a suite asks, and what its confidence means."""
    if not suite.entries:
        return ("Nothing was asked: there are no audits.",)
    error = p_text(error_probability(suite.confidence))
    parts = [error_probability(result.spec["confidence"]) for result in suite.results]
    part = "an equal part" if not parts or max(parts) <= min(parts) * (1.0 + 1e-9) else "a part of its own"
    return (
        f"{counted(len(suite.entries), 'audit')} at suite confidence {confidence_text(suite.confidence)}: "
        f"each gets {part} of the error probability {error}.",
        f"Where every claim holds, the whole suite refutes one of them with probability at most {error}.",
        "Each audit's verdict and bound follow from its own part; the Holm-adjusted p-value stands beside them.",
    )


def until_text(acceptance: Acceptance) -> str:
    """How long a finding is accepted.

    >>> from datetime import date
    >>> until_text(Acceptance("a1", "noisy count", "old API", date(2026, 1, 1), date(2026, 3, 1)))
    'accepted until 2026-03-01'
    """
    return f"accepted until {acceptance.until.isoformat()}"


def acceptance_line(acceptance: Acceptance) -> str:
    """An acceptance on one line: the finding, until when, since when, and why."""
    return (
        f"{clean(acceptance.finding)}: {until_text(acceptance)}, since {acceptance.accepted.isoformat()}: "
        f"{clean(acceptance.reason, LONGEST_DATA)} (fingerprint {clean(acceptance.fingerprint)})"
    )


def reviewed_line(reviewed: Reviewed) -> str:
    """What became of an acceptance in a suite: in force, expired, or without a finding."""
    line = acceptance_line(reviewed.acceptance)
    if reviewed.expired:
        return f"EXPIRED      {line}; review it again, or repair what it excuses"
    if not reviewed.matched:
        return f"not found    {line}; no finding of these audits matches: remove it if they are all that it is about"
    return f"accepted     {line}"


def reviewed_lines(reviewed: Sequence[Reviewed]) -> tuple[str, ...]:
    """All accepted findings of a suite, those that expired first; nothing where none are kept."""
    if not reviewed:
        return ()
    over = sum(each.expired for each in reviewed)
    head = f"{counted(len(reviewed), 'accepted finding')}, {over} expired. {STILL_REFUTED}"
    return head, *(reviewed_line(each) for each in sorted(reviewed, key=lambda each: not each.expired))


def accepted_text(acceptance: Acceptance, path: object, before: Acceptance | None) -> str:
    """What `dpaudit accept` has done."""
    was = "" if before is None else f"; before, it was {until_text(before)}"
    return f"{acceptance_line(acceptance)}\nwritten to {clean(path, LONGEST_DATA)}{was}"
