"""Every sentence a user reads about a result: pure functions of `AuditResult` and `SuiteResult`.

Contract: numbers are rounded towards safety (lower bounds down, p-values and detectable losses up), text
that came from a user is made harmless, and all formats print these same sentences.
"""

from dpaudit.auditing.result import POWER
from dpaudit.auditing.wording.acceptances import reviewed_lines
from dpaudit.auditing.wording.power import could_see, planned_power
from dpaudit.auditing.wording.repeating import python_form, repeat
from dpaudit.auditing.wording.sections import Section, columns, evidence_lines, full_text, sections
from dpaudit.auditing.wording.statements import (
    LIMITS,
    NO_BITS,
    NOT_PRIVATE,
    certified,
    claimed,
    headline,
    limits,
    statement,
    verdict_text,
)
from dpaudit.auditing.wording.suites import joint_confidence, suite_headline, suite_line, suite_question

__all__ = [
    "LIMITS",
    "NOT_PRIVATE",
    "NO_BITS",
    "POWER",
    "Section",
    "certified",
    "claimed",
    "columns",
    "could_see",
    "evidence_lines",
    "full_text",
    "headline",
    "joint_confidence",
    "limits",
    "planned_power",
    "python_form",
    "repeat",
    "reviewed_lines",
    "sections",
    "statement",
    "suite_headline",
    "suite_line",
    "suite_question",
    "verdict_text",
]
