"""A summary for the page of a CI job (`$GITHUB_STEP_SUMMARY`), of at most 60 lines: what needs somebody first."""

from collections import Counter
from collections.abc import Sequence

from dpaudit.account.diagnosis import diagnosis
from dpaudit.account.sections import evidence_lines, sections
from dpaudit.account.statements import bound_lines, certified, claimed, headline, not_private, supposed
from dpaudit.account.suites import NOTE, flat, reported, reviewed_lines, suite_headline
from dpaudit.base.numerals import counted, p_text
from dpaudit.base.quoting import LONGEST_REASON, clean
from dpaudit.report.markdown import escape, listed, page, table
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult

HEADER = ("audit", "what", "claimed", "certified", "p-value")
MOST_ROWS, MOST_WITNESSES, MOST_ACCEPTED = 20, 3, 3
LONGEST_COMMAND = 2_000

# what an entry is, in the order in which somebody should look
REFUTED, MISSED, MISSED_BITS, NO_VERDICT, POWERLESS, BESIDE, BITS, ACCEPTED, KNOWN, KNOWN_BITS, KEPT = ORDER = (
    "REFUTED, not expected",
    "not refuted, though a violation is known",
    "known finding on bits missed",
    "no verdict",
    "without the power demanded",
    "something went wrong beside it",
    "REFUTED by bits",
    "REFUTED, accepted",
    "REFUTED, as expected",
    "REFUTED by bits, as expected",
    "not refuted, as expected",
)


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite in at most 60 lines, whatever its size."""
    ranked = sorted(suite.entries, key=lambda entry: ORDER.index(kind_of(entry)))
    blocks = [[f"## {escape(suite_headline(suite))}"]]
    witnesses = [entry.result for entry in ranked if kind_of(entry) == REFUTED and entry.result is not None]
    if witnesses:
        blocks.append([line for result in witnesses[:MOST_WITNESSES] for line in _witness(result)])
    if ranked:
        blocks.append(table(HEADER, map(_row, ranked[:MOST_ROWS])))
    if len(ranked) > MOST_ROWS:
        more = Counter(map(kind_of, ranked[MOST_ROWS:]))
        told = "; ".join(f"{count:,} {what}" for what, count in more.items())
        blocks.append([escape(f"and {counted(len(ranked) - MOST_ROWS, 'more audit')}: {told}")])
    advice = {each.rule: None for each in reported(suite) if each.accepted is None and each.rule.level != NOTE}
    if advice:
        cures = [f"- **{escape(rule.short)}** {escape(rule.help)}" for rule in sorted(advice, key=lambda rule: rule.id)]
        blocks.append(["What to do:", "", *cures])
    if suite.reviewed:
        head, *lines = reviewed_lines(suite.reviewed)
        shown = listed(map(flat, lines[:MOST_ACCEPTED]))
        rest = [f"- and {len(lines) - MOST_ACCEPTED:,} more"] if len(lines) > MOST_ACCEPTED else []
        blocks.append([escape(head), "", *shown, *rest])
    blocks += [[escape(line)] for line in not_private(*suite.results)]
    return page(*blocks)


def kind_of(entry: SuiteEntry) -> str:
    """What an entry is, of `ORDER`."""
    result = entry.result
    if result is None:
        return NO_VERDICT
    if not entry.as_expected:
        return REFUTED if result.refuted else MISSED_BITS if entry.bits else MISSED
    if result.power_reached is False:
        return POWERLESS
    if entry.error or entry.exit_code:
        return BESIDE
    if entry.covered:
        return ACCEPTED
    if result.refuted:
        return KNOWN
    return KNOWN_BITS if entry.bits else BITS if result.representation_refuted else KEPT


def _row(entry: SuiteEntry) -> tuple[str, ...]:
    what = kind_of(entry)
    if entry.result is not None and entry.result.representation_refuted:
        what += f": {bound_lines(entry.result)[0]}" if what in (BITS, KNOWN_BITS) else "; by bits too"
    if entry.result is not None and entry.result.refuted:
        what += supposed(entry.result)
    if entry.covered and entry.accepted is not None:
        what += f" until {entry.accepted.until.isoformat()}"
    if entry.error:
        what += f": {clean(entry.error, LONGEST_REASON)}"
    if entry.result is None:
        return clean(entry.name), what, "", "", ""
    result = entry.result
    return clean(entry.name), what, claimed(result), certified(result), p_text(result.certificate.p_value)


def _witness(result: AuditResult) -> list[str]:
    """A refutation that nobody expected: what tells the datasets apart, the counts, and how to repeat it."""
    parts = {part.title: part for part in sections(result)}
    event, *_ = parts["witness"].lines
    lines = [
        event,
        *evidence_lines(result)[:2],
        *([] if (kind := diagnosis(result)) is None else ["; ".join(kind.lines)]),
    ]
    command = result.provenance.get("command")
    if command:
        lines.append(f"repeat: {clean(command, LONGEST_COMMAND)}")
    return [f"- **{escape(flat(headline(result)))}**", *listed(lines, "  - ")]
