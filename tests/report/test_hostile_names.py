"""Three hundred names that try to be more than names, through every format, each read back by a parser of its own."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema
from markdown_it import MarkdownIt

from dpaudit.base.quoting import FORMULA, clean
from dpaudit.report import FORMATS, csv_, exchange, html, markdown, summary
from dpaudit.results.stored import load, load_suite
from tests.report import hostile

SCHEMAS = Path(__file__).parent / "schemas"
PARSER = MarkdownIt("commonmark").enable("table").enable("strikethrough")
MARKUP = {
    "html_inline",
    "html_block",
    "link_open",
    "image",
    "em_open",
    "s_open",
    "code_inline",
    "hardbreak",
    "softbreak",
}
LINKED = re.compile(  # what GitHub makes a mention, a reference, an address or a picture of, in a text that was parsed
    r"@[a-z0-9]|#\d|\bGH-\d|:[\w+-]+:", re.IGNORECASE
)
SEEN = [name for name in hostile.ALL if name.strip()]  # a name of spaces alone leaves nothing to look for


def _each(check: Callable[[str], object], names: tuple[str, ...] | list[str] = hostile.ALL) -> None:
    """One check for every name; a failure says for which."""
    for number, name in enumerate(names):
        try:
            check(name)
        except Exception as error:
            error.add_note(f"name {number}: {clean(repr(name), 200)}")
            raise


def test_there_are_three_hundred_different_names() -> None:
    assert len(set(hostile.ALL)) == len(hostile.ALL) >= 300
    assert set(hostile.NAMES) | set(hostile.SINGLE) <= set(hostile.ALL)


def test_every_format_is_tried_here() -> None:
    tried = {csv_.render_suite, html.render_suite, markdown.render_suite, summary.text_suite, summary.summary_suite}
    tried |= {exchange.json_suite, exchange.junit_suite, exchange.sarif_suite}
    tried.add(summary.badge_suite)  # in test_badge.py
    untried = [each.name for each in FORMATS.values() if each.function("suite") not in tried]
    assert not untried, f"read hostile names back from {', '.join(untried)} here, by a parser of the format's own"


# Markdown


@cache
def _shape(page: str) -> tuple[str, ...]:
    """What a page consists of, without its words."""
    tokens = PARSER.parse(page)
    flat = [inner for token in tokens for inner in (token, *(token.children or ()))]
    assert not {token.type for token in flat} & MARKUP
    return tuple(token.type + token.tag for token in flat if token.type not in ("text", "text_special"))


def _outside(page: str) -> str:
    """A page without its blocks of code, which print as they are."""
    return re.sub(r"^(`{3,})\n.*?\n\1$", "", page, flags=re.MULTILINE | re.DOTALL)


def _marks(page: str) -> list[str]:
    """The mark that each line begins with: of a heading, an item, a row."""
    return [re.match(r" *(?:#+ |- (?:\[ \] )?|\| )?(?:\*\*)?", line).group() for line in page.split("\n")]  # type: ignore[union-attr]


def _reduced(page: str, plain: list[str]) -> str:
    """The lines that a name changes, and those that give them their places."""
    lines = zip(page.split("\n"), plain, strict=True)
    return "\n".join(line for line, other in lines if line != other or line.startswith(("#", "|")) or not line)


def test_markdown_keeps_its_shape_whatever_the_name() -> None:
    plain = _outside(markdown.render_suite(hostile.suite("plain")))

    def check(name: str) -> None:
        page = markdown.render_suite(hostile.suite(name))
        assert all(line.isprintable() for line in page.split("\n"))
        outside = _outside(page)
        assert "<" not in outside
        if name.strip():
            assert _marks(outside) == _marks(plain)
            _shape(_reduced(outside, plain.split("\n")))

    _each(check, hostile.ALL[::3])  # `escape` is tried with every name


def test_code_stays_code() -> None:
    def check(name: str) -> None:
        tokens = PARSER.parse("\n".join([*markdown.fenced([clean(name), "end"]), "", "after"]))
        assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
        assert tokens[0].content == f"{clean(name)}\nend\n"

    _each(check)


def test_whole_pages_of_markdown_are_read_as_the_same_page() -> None:
    expected = [_shape(make("plain")) for make in (_page, _alone)]

    def check(name: str) -> None:
        assert [_shape(make(name)) for make in (_page, _alone)] == expected

    _each(check, [name for name in SEEN if name in hostile.NAMES][::4])


def test_a_heading_of_markdown_reads_as_the_name_was_cleaned() -> None:
    def check(name: str) -> None:
        page = f"# 1. {markdown.escape(clean(name))}\n\n| a |\n| --- |\n| {markdown.escape(clean(name))} |\n"
        words = ["".join(child.content for child in token.children or ()) for token in PARSER.parse(page)]
        squeezed = " ".join(clean(name).split())
        assert not any(LINKED.search(each) for each in words)
        assert not re.search(r"(?<![a-z])(?:www\.|\w+://)", page, re.IGNORECASE)
        assert [" ".join(each.replace("\u200b", "").split()) for each in words if each] == [
            f"1. {squeezed}".strip(),
            "a",
            *([squeezed] if squeezed else []),
        ]

    _each(check)


def _page(name: str) -> str:
    return markdown.render_suite(hostile.suite(name))


def _alone(name: str) -> str:
    return markdown.render_result(hostile.result(name))


def test_the_summary_keeps_its_rows_whatever_the_name() -> None:
    expected = _shape(summary.summary_suite(hostile.suite("plain")))

    def check(name: str) -> None:
        page = summary.summary_suite(hostile.suite(name))
        assert all(line.isprintable() for line in page.split("\n"))
        assert "<" not in page
        assert not re.search(r"^(::|##\[)", page, flags=re.MULTILINE)
        assert _shape(page) == expected or not name.strip()

    _each(check)


# plain text, JSON


def test_plain_text_keeps_its_lines() -> None:
    plain = len(summary.text_suite(hostile.suite("plain")).split("\n"))

    def check(name: str) -> None:
        lines = summary.text_suite(hostile.suite(name)).split("\n")
        assert len(lines) == plain
        assert all(line.isprintable() for line in (*lines, *summary.text_result(hostile.result(name)).split("\n")))

    _each(check)


def test_json_is_ascii_and_comes_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "stored.json"

    def check(name: str) -> None:
        written = exchange.json_suite(hostile.suite(name))
        assert written.isascii()
        path.write_text(written, encoding="utf-8")
        assert load_suite(path) == hostile.suite(name)

    _each(check)
    path.write_text(exchange.json_result(hostile.result(hostile.ALL[-1])), encoding="utf-8")
    assert load(path) == hostile.result(hostile.ALL[-1])


# JUnit, SARIF, CSV


def test_junit_fits_its_schema_and_says_the_cleaned_name() -> None:
    schema = xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))

    def check(name: str) -> None:
        root = ElementTree.fromstring(exchange.junit_suite(hostile.suite(name)))
        schema.validate(root)
        first, second = (case.get("name") for case in root.iter("testcase"))
        assert first == (clean(name) or "audit")
        assert second in (first, f"{first} #2")
        assert [len(case) for case in root.iter("testcase")] == [2, 1]
        assert all((each.text or "").replace("\n", " ").isprintable() for each in root.iter())
        assert all(value.isprintable() for each in root.iter() for value in each.attrib.values())

    _each(check)


def test_sarif_fits_its_schema_and_links_nowhere() -> None:
    schema = jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8")))

    def check(name: str) -> None:
        written = exchange.sarif_suite(hostile.suite(name))
        assert written.isascii()
        stored = json.loads(written)
        schema.validate(stored)
        (run,) = stored["runs"]
        assert [result["ruleId"] for result in run["results"]] == ["DPA004", "DPA003"]
        for result in run["results"]:
            (location,) = result["locations"]
            address = location["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"(?:[A-Za-z0-9_.~-]|%[0-9A-F]{2})+(?:/(?:[A-Za-z0-9_.~-]|%[0-9A-F]{2})+)*", address)
            assert ".." not in address.split("/")
            message = result["message"]["text"]
            assert message.isprintable()
            assert not re.search(r"(?<!\\)\](?=\()", message)  # a link
            assert not re.search(r"(?<!{)(?:{{)*{(?!{)", message)  # an argument

    _each(check)


def test_csv_keeps_its_cells_and_computes_nothing() -> None:
    def check(name: str) -> None:
        header, *rows = csv.reader(io.StringIO(csv_.render_suite(hostile.suite(name), ["a.json", None])))
        assert header == list(csv_.COLUMNS)
        assert [len(row) for row in rows] == [len(header)] * 2
        for cell in (cell for row in rows for cell in row):
            assert cell.isprintable()
            assert not cell.lstrip().startswith(FORMULA)
            assert not re.search(f";\\s*[{re.escape(''.join(FORMULA))}]", cell)
        assert rows[0][0].replace("'", "") == clean(name, 200).replace("'", "")

    _each(check)


# HTML


class Outline(HTMLParser):
    """What a page consists of: tags with the names of their attributes, and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.links: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attributes)))
        self.links += [value or "" for name, value in attributes if name in ("href", "src", "action", "data")]

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}",))

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment",))


def _numberless(link: str) -> str:
    """A link without the digest that makes ids of a page its own."""
    return re.sub(r"^(#[a-z-]+-)[0-9a-f]{8}(?=-\d)", r"\1", link)


def _same_outline(make: Callable[[str], str]) -> Callable[[str], None]:
    plain = Outline(make("plain"))

    def check(name: str) -> None:
        page = make(name)
        assert all(line.isprintable() for line in page.split("\n"))
        found = Outline(page)
        assert found.tags == plain.tags
        assert [_numberless(link) for link in found.links] == [_numberless(link) for link in plain.links]

    return check


def test_html_keeps_its_outline_whatever_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    suite, links = hostile.suite, (("a.html", None), ("a.json", None))
    page = _same_outline(lambda name: html.render_result(hostile.result(name), entry=suite(name).entries[0]))
    _each(page, SEEN[::20])
    _each(_same_outline(lambda name: html.render_suite(suite(name), *links)), SEEN[::6])
    monkeypatch.setattr("dpaudit.report.figures.drawings", lambda *_: ())  # most of a page, and tried by themselves
    _each(_same_outline(lambda name: html.render_result(hostile.result(name), entry=suite(name).entries[0])), SEEN)
