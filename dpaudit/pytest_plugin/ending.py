"""The end of a test session: the report of all its audits, and the lines of the terminal summary."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from dpaudit import report
from dpaudit.account import templates
from dpaudit.account.suites import reviewed_line, tally
from dpaudit.base.numerals import counted, p_text
from dpaudit.errors import DpAuditError
from dpaudit.ledger.baseline import read_baseline, review
from dpaudit.pytest_plugin.records import AuditOfTest, Defaults, Records
from dpaudit.results.display import Verdict
from dpaudit.results.stored import load
from dpaudit.results.suite import Reviewed, SuiteEntry, SuiteResult

LED, TOO_LITTLE_POWER = 1, 4  # exit codes of an audit with a verdict
MOST_NAMED = 10  # accepted or expired findings, and problems, that a summary names one by one


def write_report(records: Records, folder: Path, baseline: Path | None) -> tuple[str, ...]:
    """Writes the report of a session from the results that its tests have stored; the reason where that fails."""
    try:
        with warnings.catch_warnings():  # warnings of a drawing library do not concern the filters of the session
            warnings.simplefilter("ignore")
            report.write_suite(suite_of(records, folder, baseline), folder)
    except Exception as error:  # the tests have their outcomes, with or without the report
        why = getattr(error, "strerror", None) or str(error)
        return (templates.UNWRITTEN_REPORT.format(why=f"{type(error).__name__}: {why}"),)
    return ()


def suite_of(records: Records, folder: Path, baseline: Path | None) -> SuiteResult:
    """The session's audits as a suite: their results from the folder, compared with the accepted findings."""
    acceptances = () if baseline is None else read_baseline(baseline)
    entries, reviewed = review([_entry(record, folder) for record in records.all], acceptances, date.today())
    return SuiteResult(tuple(entries), max(0.0, 1.0 - records.spent), reviewed)


def _entry(record: AuditOfTest, folder: Path) -> SuiteEntry:
    expect = Verdict.REFUTED if record.expect == "refuted" else Verdict.NOT_REFUTED
    entry = SuiteEntry(
        record.name,
        expect,
        error=record.error or record.problem,
        exit_code=record.exit_code or 3,
        source=record.test.partition("::")[0],
        bits=record.expect == "bits",
    )
    if record.file is None:
        return entry
    try:
        result = load(folder / record.file)
    except (DpAuditError, OSError) as error:
        return replace(entry, error=templates.UNREAD_RESULT.format(why=error), exit_code=3)
    if result.verdict.value != record.verdict:
        again = templates.WRITTEN_OVER.format(verdict=record.verdict)
        return replace(entry, error=again, exit_code=3)
    return replace(entry, result=result, error=None, exit_code=record.exit_code)


def expired(baseline: Path | None) -> tuple[str, ...]:
    """The accepted findings whose last day is over, a line each; the reason where the file cannot be read."""
    if baseline is None:
        return ()
    try:
        acceptances = read_baseline(baseline)
    except DpAuditError as error:
        return (str(error),)
    today = date.today()
    return tuple(reviewed_line(Reviewed(each, True, False)) for each in acceptances if each.expired(today))


def summary_lines(records: Records, plan: Defaults, folder: Path | None, problems: Sequence[str]) -> list[str]:
    """The lines of the terminal summary about the audits of a session."""
    audits = records.all
    done = [record for record in audits if record.verdict is not None]
    lines = [
        tally(
            len(audits),
            refuted=sum(record.verdict == "REFUTED" for record in done),
            unrefuted=sum(record.verdict == "NOT_REFUTED" for record in done),
            odd=sum(not record.as_expected for record in done),
            covered=sum(record.accepted is not None for record in done),
            bits=sum(record.bits_refuted for record in done),
            weak=sum(record.exit_code == TOO_LITTLE_POWER for record in done),
            leads=sum(record.exit_code == LED for record in done),
        ),
        templates.FALSE_ALARM.format(chance=p_text(records.alarming), plan=plan.line),
    ]
    in_part = sum(record.in_part for record in audits)
    if in_part:
        lines.append(templates.IN_PART.format(audits=counted(in_part, "audit")))
    lost = {each.key for each in (*records.swallowed, *records.retried)}
    unmet = [each for each in audits if each.unmet and each.key not in lost]
    failed = [
        f"{'  '.join(filter(None, (_word(each), each.bound)))}: {each.name}" for each in unmet
    ]  # the name is long
    accepted = [f"accepted finding: {record.name} ({record.accepted})" for record in audits if record.accepted]
    notes = [f"{record.name}: {record.problem}" for record in audits if record.problem]
    again = records.retried
    notes += [templates.AGAIN.format(test=each.name, what=_word(each)) for each in again]
    silent = [templates.SILENT.format(test=each.name, what=_word(each)) for each in records.swallowed]
    for named in (failed, accepted, silent, [*problems, *notes]):
        lines += named[:MOST_NAMED]
        if len(named) > MOST_NAMED:
            lines.append(f"... and {len(named) - MOST_NAMED} more")
    if folder is not None:
        lines.append(f"report: {folder}")
    return lines


def _word(record: AuditOfTest) -> str:
    if record.verdict is None:
        return "NO VERDICT"
    if record.as_expected:
        return "LEAD" if record.exit_code == LED else "TOO LITTLE POWER"
    return "REFUTED" if record.verdict == "REFUTED" else "NOT FOUND"
