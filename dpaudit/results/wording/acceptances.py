"""Sentences about accepted findings: refutations that somebody reviewed and answers for."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.results.acceptance import Acceptance, Reviewed
from dpaudit.results.wording.numerals import counted
from dpaudit.results.wording.quoting import LONGEST_DATA, clean

STILL_REFUTED = "An accepted finding stays refuted: somebody answers for it until the day that is named."


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
