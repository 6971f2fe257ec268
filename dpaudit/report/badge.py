"""A badge for a page: an SVG in the words of the summary, of which nothing is green: not refuted is not proved."""

from collections import Counter
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dpaudit.account.suites import suite_headline
from dpaudit.base.numerals import counted
from dpaudit.base.quoting import clean
from dpaudit.report.summary import ACCEPTED, BITS, KEPT, NO_VERDICT, ORDER, REFUTED, kind_of
from dpaudit.results.suite import SuiteResult
from dpaudit.version import __version__

RED, AMBER, GREY, BLUE, LABEL = "#b3261e", "#8a5a00", "#57606a", "#1f5fa8", "#24292f"  # white on each is readable
HEIGHT, PAD, LETTER = 20, 8, 6.2  # pixels
SHORT = {KEPT: "not refuted", REFUTED: "REFUTED"}
MOST = 3  # kinds of ends that are told apart


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
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
    told = [f"{kinds[each]:,} {SHORT.get(each, each)}" if several else SHORT.get(each, each) for each in shown]
    left = len(suite.entries) - sum(kinds[each] for each in shown)
    over = sum(each.expired for each in suite.reviewed)
    told = [f"{counted(over, 'acceptance')} expired"] * bool(over) + told + [f"{left:,} more"] * bool(left)
    return "; ".join(told) or "nothing audited"


def _colour(suite: SuiteResult) -> str:
    kinds = set(map(kind_of, suite.entries))
    if kinds & {REFUTED, BITS}:
        return RED
    if not kinds or NO_VERDICT in kinds:
        return GREY
    return AMBER if suite.exit_code or ACCEPTED in kinds else BLUE
