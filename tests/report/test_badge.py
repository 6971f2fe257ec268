"""The badge: an SVG with the worst first, the day of the oldest audit and the version; never green, and readable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from dpaudit.cli.group import exit_code
from dpaudit.report import summary
from dpaudit.results.display import Verdict
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.cases import for_each
from tests.golden import example
from tests.report import hostile

SVG = "{http://www.w3.org/2000/svg}"
LOST = SuiteEntry("lost", Verdict.NOT_REFUTED, error="the process ended", exit_code=3)
KEPT = SuiteEntry("kept", Verdict.NOT_REFUTED, example.kept())
WEAK = replace(KEPT, exit_code=4)


def shown(suite: SuiteResult) -> tuple[str, str, str]:
    """Label, words and colour of a badge."""
    root = ElementTree.fromstring(summary.badge_suite(suite))
    label, words = (str(each.text) for each in root.iter(f"{SVG}text"))
    colour = [str(each.get("fill")) for each in root.iter(f"{SVG}rect")][1]
    assert float(root.get("width", "0")) == sum(float(each.get("width", "0")) for each in root.iter(f"{SVG}rect"))
    return label, words, colour


@for_each(
    ("suite", "words", "colour"),
    [
        (SuiteResult.of([example.result()]), "REFUTED, 2025-01-31", summary.RED),
        (SuiteResult.of([example.kept()]), "not refuted, 2025-01-31", summary.BLUE),
        (SuiteResult((), 0.99), "nothing audited", summary.GREY),
        (SuiteResult((LOST,), 0.99), "no verdict", summary.GREY),
        (SuiteResult((LOST, KEPT), 0.99), "1 no verdict; 1 not refuted, 2025-01-31", summary.GREY),
        (SuiteResult((WEAK,), 0.99), "something went wrong beside it, 2025-01-31", summary.AMBER),
    ],
)
def test_words_and_colour_are_those_of_the_worst(suite: SuiteResult, words: str, colour: str) -> None:
    assert shown(suite) == ("dpaudit 0.1.0", words, colour)


def test_accepted_findings_and_those_that_expired_are_said() -> None:
    _, words, colour = shown(example.reviewed_suite())
    assert words.startswith("1 acceptance expired; 1 REFUTED; ")
    assert colour == summary.RED


def test_white_is_readable_on_every_colour_and_none_is_green() -> None:
    for colour in (summary.RED, summary.AMBER, summary.GREY, summary.BLUE, summary.LABEL):
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        assert green < max(red, blue)
        light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
        luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
        assert 1.05 / (luminance + 0.05) >= 4.5


def test_what_a_file_says_of_its_version_stays_text() -> None:
    plain = summary.badge_suite(SuiteResult.of([example.result()])).count("<")
    for name in hostile.NAMES:
        named = {"version": name, "started": name}
        result = replace(example.result(), provenance={**example.result().provenance, **named})
        text = summary.badge_suite(SuiteResult.of([result]))
        assert text.count("<") == plain
        assert len(ElementTree.fromstring(text)) == 5


def test_the_command_writes_it(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "result.json"
    target = tmp_path / "badge.svg"
    assert exit_code(["report", str(golden), "--format", "badge", "--output", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == summary.badge_suite(SuiteResult.of([example.result()]))
