"""Plain text, and a badge.

Plain text is all that was done in detail, of a suite first its own account and then that of each audit. The badge is an
SVG; nothing of it is green, as not refuted is not proved.
"""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dpaudit.account import Level, account
from dpaudit.account.suites import ACCEPTED, BITS_ODD, NO_RESULT, REFUTED_ODD, kind_of, of_all
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult
from dpaudit.version import __version__

RED, AMBER, GREY, BLUE, LABEL = "#b3261e", "#8a5a00", "#57606a", "#1f5fa8", "#24292f"  # white on each is readable
HEIGHT, PAD, LETTER = 20, 8, 6.2  # pixels


def badge_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """The badge of a suite."""
    days, versions = of_all(suite, "started"), of_all(suite, "version") or [f"dpaudit {__version__}"]
    label = f"{' and '.join(versions[:2])}{' and others' * (len(versions) > 2)}"
    told = account(suite, Level.HEADLINE).headline
    words = kind_of(suite.entries[0]).partition(",")[0] if len(suite.entries) == 1 else told.partition(";")[0]
    words += f", {days[0]}" if days else ""
    widths = [2 * PAD + LETTER * len(text) for text in (label, words)]
    size = {"width": f"{sum(widths):g}", "height": str(HEIGHT)}
    whole = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", "aria-label": words})
    SubElement(whole, "title").text = f"{label}: {words}; {told}"
    style = {"fill": "#fff", "font-family": "Verdana,DejaVu Sans,sans-serif", "font-size": "11"}
    at = 0.0
    for text, width, colour in zip((label, words), widths, (LABEL, _colour(suite)), strict=True):
        SubElement(whole, "rect", {"x": f"{at:g}", "width": f"{width:g}", "height": str(HEIGHT), "fill": colour})
        place = {"x": f"{at + PAD:g}", "y": "14", "textLength": f"{width - 2 * PAD:g}"}  # in any font
        SubElement(whole, "text", {**place, "lengthAdjust": "spacingAndGlyphs", **style}).text = text
        at += width
    indent(whole, " ")
    return tostring(whole, encoding="unicode") + "\n"


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
