"""Short reports: plain text, a summary for the page of a CI job, and a badge.

Plain text is all that was done in detail, of a suite first its own account and then that of each audit. The summary
(`$GITHUB_STEP_SUMMARY`) has at most 60 lines, what needs somebody first. The badge is an SVG in the words of the
summary; nothing of it is green, as not refuted is not proved.
"""

from collections import Counter
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dpaudit.account import Account, Level, account
from dpaudit.account.suites import (
    ACCEPTED,
    BITS_ODD,
    KINDS,
    NO_RESULT,
    REFUTED_ODD,
    SHORT,
    cures,
    ended_row,
    flat,
    kind_of,
)
from dpaudit.base.numerals import counted
from dpaudit.base.quoting import clean
from dpaudit.report.markdown import escape, listed, page, table
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult
from dpaudit.version import __version__

HEADER = ("audit", "what", "claimed", "certified", "p-value")
MOST_ROWS, MOST_WITNESSES, MOST_ACCEPTED = 20, 3, 3
LONGEST_COMMAND = 2_000

RED, AMBER, GREY, BLUE, LABEL = "#b3261e", "#8a5a00", "#57606a", "#1f5fa8", "#24292f"  # white on each is readable
HEIGHT, PAD, LETTER = 20, 8, 6.2  # pixels
MOST = 3  # kinds of ends that a badge names


def summary_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite of any size in at most 60 lines."""
    told = account(suite, Level.DETAIL)
    ranked = sorted(suite.entries, key=lambda entry: KINDS.index(kind_of(entry)))
    blocks = [[f"## {escape(told.headline)}"]]
    unexpected = [entry for entry in ranked if kind_of(entry) == KINDS[0]][:MOST_WITNESSES]
    if unexpected:
        blocks.append([line for entry in unexpected for line in _witness(account(entry, Level.PAGE_ONE))])
    if ranked:
        blocks.append(table(HEADER, (ended_row(entry) for entry in ranked[:MOST_ROWS])))
    if len(ranked) > MOST_ROWS:
        more = Counter(map(kind_of, ranked[MOST_ROWS:]))
        tally = "; ".join(f"{count:,} {what}" for what, count in more.items())
        blocks.append([escape(f"and {counted(len(ranked) - MOST_ROWS, 'more audit')}: {tally}")])
    if advice := cures(suite):
        blocks.append(["What to do:", "", *(f"- **{escape(short)}** {escape(cure)}" for short, cure in advice)])
    if suite.reviewed:
        (head,), lines = told["accepted"].lines, told["accepted findings"].lines
        shown = listed(map(flat, lines[:MOST_ACCEPTED]))
        rest = [f"- and {len(lines) - MOST_ACCEPTED:,} more"] if len(lines) > MOST_ACCEPTED else []
        blocks.append([escape(head), "", *shown, *rest])
    blocks += [[escape(line)] for line in told["not private"].lines]
    return page(*blocks)


def _witness(told: Account) -> list[str]:
    """An unexpected refutation: what separates the datasets, what to do, and how to repeat it."""
    found, cure = told["what was found"].lines[1:], told["what to do"].lines[1:]
    again = [f"repeat {each}" for each in told["repeat"].text if len(each) <= LONGEST_COMMAND]
    return [
        f"- **{escape(flat(told.headline))}**",
        *listed((*found[:1], " ".join((*found[1:], *cure)), *again), "  - "),
    ]


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
    SubElement(whole, "title").text = f"{label}: {words}; {account(suite, Level.HEADLINE).headline}"
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
    shown = [each for each in KINDS if each in kinds][:MOST]
    several = len(suite.entries) > 1
    words = [f"{kinds[each]:,} {SHORT.get(each, each)}" if several else SHORT.get(each, each) for each in shown]
    left = len(suite.entries) - sum(kinds[each] for each in shown)
    over = sum(each.expired for each in suite.reviewed)
    words = [f"{counted(over, 'acceptance')} expired"] * bool(over) + words + [f"{left:,} more"] * bool(left)
    return "; ".join(words) or "nothing audited"


def _colour(suite: SuiteResult) -> str:
    kinds = set(map(kind_of, suite.entries))
    if kinds & {REFUTED_ODD, BITS_ODD}:
        return RED
    if not kinds or NO_RESULT in kinds:
        return GREY
    return AMBER if suite.exit_code or ACCEPTED in kinds else BLUE


def text_result(result: AuditResult) -> str:
    """The account of one result, all that was done."""
    return f"{account(result, Level.DETAIL)}\n"


def text_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """The account of the suite, and below it that of each audit, all that was done."""
    return "\n".join(f"{account(each, Level.DETAIL)}\n" for each in (suite, *suite.entries))
