"""Plain text: what `print(result)` shows, and one line for each audit of a suite."""

from collections.abc import Sequence

from dpaudit.account.sections import Section, columns, full_text
from dpaudit.account.statements import limits
from dpaudit.account.suites import reviewed_lines, suite_headline, suite_line, suite_question
from dpaudit.base.numerals import p_text
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult


def render_result(result: AuditResult) -> str:
    """The whole account of one result."""
    return full_text(result) + "\n"


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """What was asked, a line for each audit, and what the suite does not show."""
    lines = [suite_headline(suite), "", *suite_question(suite), ""]
    for entry, adjusted in zip(suite.entries, suite.holm(), strict=True):
        holm = "" if adjusted is None else f"; Holm-adjusted p-value {p_text(adjusted)}"
        lines.append(suite_line(entry) + holm)
    if suite.reviewed:
        lines += ["", *reviewed_lines(suite.reviewed)]
    return "\n".join([*lines, "", *columns([Section("not shown", limits(*suite.results))])]) + "\n"
