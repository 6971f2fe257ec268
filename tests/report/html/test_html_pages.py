"""The pages are valid, whole by themselves, readable without eyes or script, and no name changes what they are."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import Element

import html5lib
import pytest

from dpaudit import report
from dpaudit.report import html
from dpaudit.report.figures.overview import sparkline
from dpaudit.report.html import POLICY, SCRIPT
from dpaudit.results.display import Verdict
from dpaudit.results.suite import Acceptance, Reviewed, SuiteEntry, SuiteResult
from tests.golden import example

SVG = "{http://www.w3.org/2000/svg}"


def parse(page: str) -> Element:
    """The page as a tree. The parser raises for anything that is not valid HTML."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


tree_of = cache(parse)


def text_of(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def links(tree: Element) -> list[str]:
    return [value for each in tree.iter() for key, value in each.attrib.items() if key.split("}")[-1] == "href"]


ACCEPTED = Acceptance("cf51a7d0b0ad5991", "noisy count", "the old API, until 2.0", date(2025, 1, 1), date(2025, 9, 1))


def suite() -> SuiteResult:
    """One audit of every kind: as expected, accepted, unexpected, without a verdict; and an acceptance that expired."""
    made = example.suite()
    accepted = SuiteEntry("old count", Verdict.NOT_REFUTED, example.result(), accepted=ACCEPTED)
    surprise = SuiteEntry("kept against expectation", Verdict.REFUTED, example.kept())
    reviewed = (Reviewed(ACCEPTED, False, True), Reviewed(replace(ACCEPTED, finding="gone"), True, False))
    return replace(made, entries=(*made.entries, accepted, surprise), reviewed=reviewed)


@cache
def page_of(kind: str) -> str:
    """The page of a refuted and of a kept result, and the overview of a suite."""
    if kind == "overview":
        return html.render_suite(suite(), ("a.html", "b.html", None, "c.html", "d.html"), ("a.json", *4 * (None,)))
    if kind != "refuted":
        from tests.account.results import made  # which takes `parse` from here

        return html.render_result(example.kept() if kind == "kept" else made(kind))
    return html.render_result(example.result(), entry=suite().entries[3], overview="index.html", record="a.json")


@pytest.fixture(params=["refuted", "kept", "overview", "bracket", "scores", "training", "sweep"])
def page(request: pytest.FixtureRequest) -> str:
    return page_of(request.param)


def test_the_strict_parser_would_notice() -> None:
    with pytest.raises(html5lib.html5parser.ParseError):
        parse("<!DOCTYPE html><html><head><title>x</title></head><body><p></b></p></body></html>")


def test_pages_ask_for_nothing_and_run_nothing(page: str) -> None:
    tree = tree_of(page)
    tags = {str(each.tag).removeprefix(SVG) for each in tree.iter()}
    scripts = ["".join(each.itertext()) for each in tree.iter("script")]
    assert scripts == ([SCRIPT] if text_of(next(tree.iter("h1"))).startswith("Audits of") else [])
    assert not tags & {"link", "iframe", "object", "embed", "img", "image", "base", "foreignObject"}
    for each in tree.iter():
        for key, value in each.attrib.items():
            assert not key.startswith("on"), f"{each.tag} {key}"
            assert key not in ("src", "srcset", "action", "formaction", "ping", "data")
            assert "url(" not in value.replace("url(#", ""), value
    assert not re.findall(r"@import|url\(|expression\(", next(tree.iter("style")).text or "")
    policy = [each.get("content") for each in tree.iter("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert policy == [f"{POLICY}; script-src 'sha256-{digest}'" if scripts else POLICY]
    assert "default-src 'none'" in POLICY
    assert "script-src" not in POLICY
    assert not re.findall("fetch|XMLHttp|innerHTML|eval|import|document.write|Function", SCRIPT)


def test_links_are_relative_or_lead_to_a_place_on_the_page(page: str) -> None:
    tree = tree_of(page)
    ids = Counter(each.get("id") for each in tree.iter() if each.get("id"))
    assert max(ids.values()) == 1, ids.most_common(3)
    for link in links(tree):
        assert re.fullmatch(r"#[a-z0-9-]+|[a-z0-9-]+\.(html|json)", link), link
        assert not link.startswith("#") or link[1:] in ids, link
    for each in tree.iter():
        named = f"{each.get('aria-labelledby', '')} {each.get('aria-describedby', '')}".split()
        assert set(named) <= set(ids), named


def test_landmarks_headings_and_the_way_to_the_content(page: str) -> None:
    tree = tree_of(page)
    body = next(tree.iter("body"))
    assert tree.get("lang") == "en"
    assert [str(each.tag) for each in body if each.tag != "script"] == ["a", "header", "main", "footer"]
    assert (body[0].get("class"), body[0].get("href")) == ("skip", "#main")
    assert body[2].get("id") == "main"
    assert all(each.get("aria-label") for each in tree.iter("nav"))
    levels = [int(str(each.tag)[1]) for each in tree.iter() if re.fullmatch("h[1-6]", str(each.tag))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels)), levels
    assert text_of(next(tree.iter("title")))


def test_tables_have_captions_and_scopes(page: str) -> None:
    tables = list(tree_of(page).iter("table"))
    assert tables
    for table in tables:
        assert str(table[0].tag) == "caption"
        assert text_of(table[0])
        heads = list(table.iter("th"))
        assert heads
        assert all(each.get("scope") in ("col", "row", "rowgroup") for each in heads)
        columns = len(next(table.iter("tr")))
        assert all(len(row) == columns or row.get("class") == "group" for row in table.iter("tr"))


def test_figures_can_be_read_without_eyes(page: str) -> None:
    figures = list(tree_of(page).iter("figure"))
    assert figures
    for figure in figures:
        drawn = next(figure.iter(f"{SVG}svg"))
        assert drawn.get("role") == ("group" if list(drawn.iter(f"{SVG}a")) else "img")  # links must be reached
        assert text_of(next(drawn.iter(f"{SVG}title")))
        assert text_of(next(drawn.iter(f"{SVG}desc")))
        assert list(figure.iter("table")), "no numbers behind the figure"
        assert not any(each.get("class") == "drawing" and each.get("tabindex") for each in figure.iter("div"))


def test_page_one_says_the_verdict_first_and_the_limits_whatever_it_is() -> None:
    """What the sentences are is held by the accounts."""
    for kind, verdict in (("refuted", "REFUTED, accepted"), ("kept", "not refuted")):
        tree = tree_of(page_of(kind))
        stamp = next(each for each in tree.iter("p") if each.get("class") == "stamp")
        assert text_of(stamp) == verdict
        whole = text_of(next(tree.iter("main")))
        assert ("Not refuted is not private" in whole) == (verdict == "not refuted")
        assert whole.index("Not looked at") < whole.index("The account") < whole.index("For the reviewer")


def test_counts_are_complete_enough_to_do_the_arithmetic_again() -> None:
    tree = tree_of(page_of("refuted"))
    cells = [[text_of(cell) for cell in row] for row in tree.iter("tr")]
    assert ["1", "one leaves", "first", "82,289", "449,701", "0.182986"] in cells
    assert ["1", "one leaves", "second", "11,206", "450,267", "0.0248875"] in cells
    words = {text_of(each) for each in tree.iter(f"{SVG}text")}  # a key names what differs
    assert {"9 records", "8 records"} <= words
    assert "first dataset" not in words


def test_the_overview_puts_first_what_wants_to_be_read() -> None:
    tree = tree_of(page_of("overview"))
    heads = [text_of(each) for each in next(each for each in tree.iter("table") if each.get("class")).iter("th")]
    assert heads[:6] == ["audit", "verdict", "why", "certified", "claimed", "p-value (Holm)"]
    rows = [[text_of(cell) for cell in row] for row in next(tree.iter("table")).iter("tr")][1:]
    broken = "Known to be broken: do not rely on these (1)"
    groups = [row[0] for row in rows if len(row) == 1]
    assert groups == ["Needs action (2)", "Accepted (1)", broken, "As expected (1)"]
    assert rows[1][:2] == ["kept against expectation", "not refuted, though a violation is known"]
    assert rows[2][:3] == ["sparse", "no verdict", "the worker of shard 3 was lost twice"]
    parts = {each.get("aria-labelledby"): each for each in tree.iter("section")}
    classes = [each.get("class") for each in parts["audits"].iter("tr") if each.get("class") != "group"]
    assert classes[1:] == ["kept action", "none action", "accepted quiet", "refuted quiet", "kept quiet"]
    drawn = [next(each.iter("svg"), next(each.iter(f"{SVG}svg"), None)) for each in tree.iter("td")]
    shapes = [str(each[0].tag).removeprefix(SVG) for each in drawn if each is not None]
    assert shapes == ["circle", "path", "path", "path", "circle"]  # a mark for who sees no colour
    assert [each.get("href") for each in parts["audits"].iter("a")] == ["d.html", "c.html", "a.html", "b.html"]
    assert text_of(parts["account-accepted-findings"]).count("EXPIRED gone") == 1
    assert "exit code" not in page_of("overview")


def test_the_trend_of_each_bound_is_a_line_that_says_its_numbers() -> None:
    points = [
        {"lower": 0.9, "claimed": 1.0, "verdict": "NOT_REFUTED", "runs": 10, "started": "2025-01-01"},
        {"lower": 1.96, "claimed": 1.0, "verdict": "REFUTED", "runs": 10, "started": "2025-01-02"},
    ]
    tree = parse(html.render_suite(suite(), trends=[points, points[:1], (), (), ()]))
    drawn = [list(each) for each in tree.iter("td") if each.get("class") == "trend"]
    assert list(map(len, drawn)) == [0, 0, 0, 1, 0]
    assert drawn[3][0].get("aria-label") == "2 audits: 0.900, 1.96, the last of them REFUTED"
    assert "trend" not in html.render_suite(suite(), trends=[points[:1], (), (), (), ()]).partition("<body>")[2]
    assert "The certified bound over time" in html.render_result(example.result(), trend=points)
    assert sparkline([{**points[0], "lower": "inf"}, points[1]]) == ""


def test_sizes() -> None:
    assert len(page_of("refuted").encode()) <= 300_000
    names = (f"audit {number} of a mechanism with a name of usual length" for number in range(100))
    made = SuiteResult(tuple(SuiteEntry(name, Verdict.NOT_REFUTED, example.kept()) for name in names), 0.99)
    records = report.record_names(made)
    page = html.render_suite(made, html.page_names(records), records)
    assert len(page.encode()) <= 400_000
    assert len(list(next(tree_of(page).iter("tbody")).iter("tr"))) == 101


def test_a_folder_of_pages_can_be_moved(tmp_path: Path) -> None:
    made = suite()
    records = report.record_names(made)
    paths = report.write_suite(made, tmp_path, ["html", "json"])[:5]
    assert [path.name for path in paths] == ["index.html", *(name for name in html.page_names(records) if name)]
    for path in paths:
        local = {link for link in links(parse(path.read_text(encoding="utf-8"))) if not link.startswith("#")}
        assert local <= {each.name for each in paths} | {name for name in records if name}
        assert path == paths[0] or "index.html" in local
    alone = report.write_suite(replace(made, entries=made.entries[:1]), tmp_path / "alone", ["html"])
    assert len(alone) == 2
    assert not any(".json" in path.read_text(encoding="utf-8") for path in alone)


def test_an_audit_without_a_verdict_is_told_of_and_has_no_page(tmp_path: Path) -> None:
    made = SuiteResult((SuiteEntry("sparse", Verdict.REFUTED, None, "lost twice", 3),), 0.99)
    (path,) = report.write_suite(made, tmp_path, ["html"])
    page = path.read_text(encoding="utf-8")
    assert "lost twice" in page
    assert "no verdict" in page
    assert not list(tree_of(page).iter("figure"))
    empty = html.render_suite(SuiteResult((), 0.99))
    assert "0 audits" in text_of(parse(empty))
