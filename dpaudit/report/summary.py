"""Short reports: plain text, a summary for the page of a CI job, and a badge.

Plain text is what `print(result)` shows, and one line for each audit of a suite. The summary (`$GITHUB_STEP_SUMMARY`)
has at most 60 lines, what needs somebody first. The badge is an SVG in the words of the summary; nothing of it is
green, as not refuted is not proved.
"""

from collections import Counter
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dpaudit.account.diagnosis import diagnosis
from dpaudit.account.sections import Section, columns, evidence_lines, full_text, sections
from dpaudit.account.statements import bound_lines, certified, claimed, headline, limits, not_private, supposed
from dpaudit.account.suites import NOTE, flat, reported, reviewed_lines, suite_headline, suite_line, suite_question
from dpaudit.base.numerals import counted, p_text
from dpaudit.base.quoting import LONGEST_REASON, clean
from dpaudit.report.markdown import escape, listed, page, table
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.version import __version__

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
RED, AMBER, GREY, BLUE, LABEL = "#b3261e", "#8a5a00", "#57606a", "#1f5fa8", "#24292f"  # white on each is readable
HEIGHT, PAD, LETTER = 20, 8, 6.2  # pixels
SHORT = {KEPT: "not refuted", REFUTED: "REFUTED"}
MOST = 3  # kinds of ends that a badge names


def summary_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite of any size in at most 60 lines."""
    ranked = sorted(suite.entries, key=lambda entry: ORDER.index(kind_of(entry)))
    blocks = [[f"## {escape(suite_headline(suite))}"]]
    witnesses = [entry.result for entry in ranked if kind_of(entry) == REFUTED and entry.result is not None]
    if witnesses:
        blocks.append([line for result in witnesses[:MOST_WITNESSES] for line in _witness(result)])
    if ranked:
        blocks.append(table(HEADER, map(_row, ranked[:MOST_ROWS])))
    if len(ranked) > MOST_ROWS:
        more = Counter(map(kind_of, ranked[MOST_ROWS:]))
        tally = "; ".join(f"{count:,} {what}" for what, count in more.items())
        blocks.append([escape(f"and {counted(len(ranked) - MOST_ROWS, 'more audit')}: {tally}")])
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
    """An unexpected refutation: the event that separates the datasets, the counts, and how to repeat it."""
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


def badge_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """The badge of a suite."""
    known = [result.provenance for result in suite.results]
    days = [clean(each["started"])[:10] for each in known if each.get("started")]
    versions = sorted({clean(each["version"], 20) for each in known if each.get("version")}) or [__version__]
    label = f"dpaudit {' and '.join(versions[:2])}{' and others' * (len(versions) > 2)}"
    words = f"{_verdicts(suite)}{f', {min(days)}' if days else ''}"
    widths = [2 * PAD + LETTER * len(text) for text in (label, words)]
    size = {"width": f"{sum(widths):g}", "height": str(HEIGHT)}
    whole = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", "aria-label": words})
    SubElement(whole, "title").text = f"{label}: {words}; {suite_headline(suite)}"
    style = {"fill": "#fff", "font-family": "Verdana,DejaVu Sans,sans-serif", "font-size": "11"}
    at = 0.0
    for text, width, colour in zip((label, words), widths, (LABEL, _colour(suite)), strict=True):
        SubElement(whole, "rect", {"x": f"{at:g}", "width": f"{width:g}", "height": str(HEIGHT), "fill": colour})
        place = {"x": f"{at + PAD:g}", "y": "14", "textLength": f"{width - 2 * PAD:g}"}  # in any font
        SubElement(whole, "text", {**place, "lengthAdjust": "spacingAndGlyphs", **style}).text = text
        at += width
    indent(whole, " ")
    return tostring(whole, encoding="unicode") + "\n"


def _verdicts(suite: SuiteResult) -> str:
    """What became of the audits, the worst first."""
    kinds = Counter(map(kind_of, suite.entries))
    shown = [each for each in ORDER if each in kinds][:MOST]
    several = len(suite.entries) > 1
    words = [f"{kinds[each]:,} {SHORT.get(each, each)}" if several else SHORT.get(each, each) for each in shown]
    left = len(suite.entries) - sum(kinds[each] for each in shown)
    over = sum(each.expired for each in suite.reviewed)
    words = [f"{counted(over, 'acceptance')} expired"] * bool(over) + words + [f"{left:,} more"] * bool(left)
    return "; ".join(words) or "nothing audited"


def _colour(suite: SuiteResult) -> str:
    kinds = set(map(kind_of, suite.entries))
    if kinds & {REFUTED, BITS}:
        return RED
    if not kinds or NO_VERDICT in kinds:
        return GREY
    return AMBER if suite.exit_code or ACCEPTED in kinds else BLUE


def text_result(result: AuditResult) -> str:
    """The whole account of one result."""
    return full_text(result) + "\n"


def text_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """What was asked, a line for each audit, and what the suite does not show."""
    lines = [suite_headline(suite), "", *suite_question(suite), ""]
    for entry, adjusted in zip(suite.entries, suite.holm(), strict=True):
        holm = "" if adjusted is None else f"; Holm-adjusted p-value {p_text(adjusted)}"
        lines.append(suite_line(entry) + holm)
    if suite.reviewed:
        lines += ["", *reviewed_lines(suite.reviewed)]
    return "\n".join([*lines, "", *columns([Section("not shown", limits(*suite.results))])]) + "\n"
