"""Every sentence a user reads about a result: pure functions of `AuditResult` and `SuiteResult`.

Contract: numbers are rounded towards safety (lower bounds down, p-values and detectable losses up), text
that came from a user is made harmless, and all formats print these same sentences.
"""

from dpaudit.results.result import POWER
from dpaudit.results.wording.acceptances import reviewed_lines
from dpaudit.results.wording.power import could_see
from dpaudit.results.wording.repeating import python_form, repeat
from dpaudit.results.wording.sections import Section, columns, evidence_lines, full_text, sections
from dpaudit.results.wording.statements import (
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
from dpaudit.results.wording.suites import joint_confidence, suite_headline, suite_line, suite_question

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
