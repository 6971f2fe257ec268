"""The page of the lecture notes: what it says, what it refuses, and that the same input gives the same bytes."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

import dpaudit
from audits.lectures.claims import __main__ as command
from audits.lectures.claims import collect, figures, page
from audits.lectures.claims.items import Item
from audits.lectures.claims.statement import CAUSES, Figure, Statement, Truth
from dpaudit.catalogue import entries, find
from tests.cases import for_each


def a_line(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1])


def loose() -> Truth:
    return Truth("right and loose", "the true value is <b>1</b>", {"value": 1.0, "endless": float("inf")})


def statement(**changes: object) -> Statement:
    given = {
        "name": "a-statement",
        "place": "notes <000>",
        "says": "x < y & z",
        "verdict": "right and loose",
        "how": ("computed",),
        "check": loose,
        **changes,
    }
    return Statement(**given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def result() -> dpaudit.AuditResult:
    entry = find("laplace.half_noise")
    return dpaudit.audit(
        entry, pair=entry.default_pair, claim=entry.claim(), runs=20_000, seed=1, n_jobs=1, confidence=0.9
    )


class Text(HTMLParser):
    """The text of a page, and its tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.open = "", [""], 0
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


def test_the_page_says_what_was_found_and_escapes_it(result: dpaudit.AuditResult) -> None:
    asked = statement(audits=(result.name, "never run"), figure=Figure("a caption", a_line))
    checked = collect.checked(asked, {result.name: result})
    given = {"A topic": [checked]}, collect.audited({result.name: result}), []
    html = page.render(*given, {})
    read = Text(html)
    for text in ("x < y & z", "notes <000>", "the true value is <b>1</b>", "never run", "a caption", result.name):
        assert text in read.text
    assert read.tags.count("svg") == 1
    assert read.tags.count("img") == read.tags.count("script") == 0
    assert "Laplace noise of half the scale" in read.text
    assert "exact loss" in read.text
    assert html == page.render(*given, {})
    assert "Unexpected" not in html
    marked = Text(page.render(*given, {result.name: "expected <this>, found that"})).text
    assert marked.count("Unexpected: expected <this>, found that") == 2, "beside the statement and beside the mechanism"
    assert "expected <this>, found that" in marked.partition("How to read it")[0] + marked.partition("To look at")[2]
    (stored,) = json.loads(page.record({"A topic": [checked]}, [], {}))["statements"]["A topic"]
    assert stored["numbers"] == {"value": 1.0, "endless": "inf"}
    assert stored["file"] == "tests/audits/lectures/test_page.py"
    assert stored["audits"] == [{"name": result.name, "verdict": "REFUTED", "lower": result.certificate.lower}]
    assert not stored["as_known"], "an audit was not run"


def test_a_statement_is_shown_in_the_words_of_the_notes_with_what_limits_them() -> None:
    asked = statement(
        place="Bassi 2019, notes 001, 'Slide'; CS 208, notes 002",
        says=r"$\varepsilon$ is <small>",
        quote=r"the words, with $\frac{1}{n}$ & more",
        context="for <i.i.d.> data sets",
        reading="kindly: sqrt(n) is meant",
        cause="second-term",
    )
    html = page.render({"A topic": [collect.checked(asked, {})]}, {}, [], {}, root="../../")
    read = Text(html)
    assert "“the words, with 1n & more”" in read.text
    assert "Beside it: “for <i.i.d.> data sets”" in read.text
    assert "How it is read: kindly: √n is meant" in read.text
    assert html.count("<mfrac>") == 1
    assert 'href="#cause-second-term"' in html
    assert html.count('id="cause-second-term"') == 1
    assert "It is behind 1 verdict:" in read.text
    assert 'class="of-notes of-verdict right-and-loose notes-001 notes-002"' in html
    assert "body:has(#notes-002:checked)" in html
    assert 'href="../../tests/audits/lectures/test_page.py#L' in html
    stored = json.loads(page.record({"A topic": [collect.checked(asked, {})]}, [], {}))["statements"]["A topic"][0]
    assert stored["quote"] == asked.quote
    assert (stored["context"], stored["reading"]) == (asked.context, asked.reading)
    assert stored["cause"] == CAUSES["second-term"]


def test_a_page_without_causes_and_items_has_no_chapters_of_them(result: dpaudit.AuditResult) -> None:
    checked = collect.checked(statement(), {})
    assert "What several verdicts share" not in page.render({"A topic": [checked]}, {}, [], {})
    item = Item("001", "'Slide'", "example", "an $x$", ("a-statement",), ("laplace",), (), ("dpaudit:audit",))
    gap = Item("001", "'Slide'", "example", "nowhere")
    html = page.render({"A topic": [checked]}, {}, [], {}, items=[item, gap])
    for link in ('href="#a-statement"', 'href="#entry-laplace"', 'href="dpaudit/__init__.py"'):
        assert link in html
    assert Text(html).text.count("missing") == 1
    odd = Text(page.render({"A topic": [collect.checked(statement(verdict="wrong"), {})]}, {}, [], {})).text
    assert "a-statement: known as “wrong”, found “right and loose”" in odd


def test_a_figure_has_the_colours_and_letters_of_the_reports() -> None:
    svg = figures.picture(Figure('a "caption"', a_line), "one")
    assert svg == figures.picture(Figure('a "caption"', a_line), "one")
    assert not re.findall(r"#(?!one-|34;)", svg), "a colour that no page can change"
    assert "<style" not in svg
    assert "var(--dp-first)" in svg
    assert "DejaVu Sans'," in svg
    assert 'aria-label="a &#34;caption&#34;"' in svg
    names = re.findall(r'\bid="([^"]+)"', svg)
    assert len(set(names)) == len(names) > 3
    assert all(name.startswith("one-") for name in names)


def test_the_exact_loss_of_the_audited_pair_stands_beside_the_bound(result: dpaudit.AuditResult) -> None:
    found = collect.audited({result.name: result})
    (audited,) = [each for room in found.values() for each in room if each.results]
    assert audited.entry.name == "laplace.half_noise"
    assert audited.exact(result) == 2.0
    (pair,) = result.spec["pairs"]
    for kept in ({"value": None}, {}):  # as records of large data are
        large = {**result.spec, "pairs": [{**pair, "second": kept}]}
        assert audited.exact(dataclasses.replace(result, spec=large)) is None
    assert sum(len(room) for room in found.values()) == sum(1 + len(entry.twins) for entry in entries())


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command on a folder of results and specs, with these statements and no attacks: its code and its words."""
    monkeypatch.setattr(command, "attacks", list)
    monkeypatch.setattr(collect, "SPECS", tmp_path)

    def call(*statements: Statement, page: str = "claims.html") -> tuple[int, str]:
        monkeypatch.setattr(command, "topics", lambda: {"A topic": statements} if statements else {})
        given = ["--results", str(tmp_path), "--page", str(tmp_path / page), "--records"]
        monkeypatch.setattr("sys.argv", ["claims", *given])
        code, told = command.main(), capsys.readouterr()
        return code, told.out + told.err

    return call


def expected(folder: Path, name: str, expect: str = "refuted") -> None:
    """A spec of one audit."""
    (folder / "some.toml").write_text(f'[[audit]]\nname = "{name}"\nexpect = "{expect}"\n', "utf-8")


@for_each(
    ("changes", "message"),
    [
        ({"verdict": "wrong"}, "known as 'wrong'; found 'right and loose'"),
        ({"audits": ("never run",)}, "audits not run: never run"),
    ],
)
def test_a_statement_that_is_not_as_known_fails_the_page(
    changes: dict[str, object], message: str, called: Any, tmp_path: Path
) -> None:
    code, words = called(statement(**changes), page="made/page.html")
    assert (code, message in words) == (1, True)
    assert (tmp_path / "made" / "page.html").exists()
    assert (tmp_path / "made" / "page.json").exists()


def test_a_verdict_that_is_not_as_expected_fails_the_page_and_a_second_call_reads_what_the_first_one_read(
    result: dpaudit.AuditResult, tmp_path: Path, called: Any
) -> None:
    path = result.save(tmp_path / "a.json")
    for expect, name, code, words in (
        ("refuted", result.name, 0, "1 audits, 0 verdicts not as expected"),
        ("not-refuted", result.name, 1, "expected not-refuted, found refuted"),
        ("refuted", "another", 1, "audit 'another': expected refuted, was not run"),
    ):
        expected(tmp_path, name, expect)
        found = called()
        assert found[0] == code
        assert words in found[1]
        assert json.loads((tmp_path / "claims.json").read_text())["unexpected"].keys() == ({name} if code else set())
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"verdict": "NOT_REFUTED"}))
    code, words = called(page="page.html")
    assert (code, "error: " in words) == (2, True), "a result that was changed is refused"


def test_pages_results_of_other_names_and_partial_ones_may_lie_beside(
    result: dpaudit.AuditResult, tmp_path: Path, called: Any
) -> None:
    asked = statement(audits=(result.name,))
    expected(tmp_path, result.name)
    dpaudit.write_report(result, result.save(tmp_path / "a b.json").with_suffix(".html"))
    older = tmp_path / "0.json"  # the same audit, from a run before: the newer one counts
    result.save(older)
    os.utime(older, (1, 1))
    assert called(asked)[0] == 0
    first = (tmp_path / "claims.html").read_text("utf-8")
    assert "digest of the code (dpaudit/, audits/lectures/): " in first
    assert 'href="a%20b.html"' in first, "the page of the result, where there is one"
    (tmp_path / "suite.json").write_text("{}")
    assert called(asked)[0] == 0
    assert (tmp_path / "claims.html").read_text("utf-8") == first


def test_numbers_on_the_page_are_rounded_the_safe_way() -> None:
    assert page.number(None) == "\N{EN DASH}"
    assert page.number(float("inf")) == "∞"
    assert page.number(1.23456789) == "1.2346"
    assert page.slug("A topic: of notes") == "a-topic--of-notes"
