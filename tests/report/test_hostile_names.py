"""Three hundred names that try to be more than names, through every format, each read back by a parser of its own."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from dpaudit.account.suites import reviewed_lines
from dpaudit.base.quoting import FORMULA, clean
from dpaudit.report import FORMATS, csv_, exchange, html, markdown
from dpaudit.results.stored.reading import either_of
from dpaudit.results.suite import SuiteResult
from tests.cases import NIGHTLY, for_each
from tests.golden import example
from tests.report import hostile
from tests.report.html.test_html_pages import parse
from tests.report.test_exchange import SARIF, XSD

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
TRIED = hostile.ALL if NIGHTLY else hostile.BY_DAY
SEEN = [name for name in TRIED if name.strip()]  # a name of spaces alone leaves nothing to look for


EVERY = for_each("name", hostile.BY_DAY, ids=ascii, nightly=hostile.BY_NIGHT)


def test_there_are_three_hundred_different_names() -> None:
    assert len(set(hostile.ALL)) == len(hostile.ALL) >= 300
    assert set(hostile.NAMES) | set(hostile.SINGLE) <= set(hostile.ALL)


def test_every_format_is_tried_here() -> None:
    tried = {csv_.render_suite, html.render_suite, markdown.render_suite, markdown.text_suite}
    tried |= {exchange.json_suite, exchange.junit_suite, exchange.sarif_suite}
    tried.add(exchange.badge_suite)  # in test_exchange.py
    untried = [each.name for each in FORMATS.values() if each.function("suite") not in tried]
    assert not untried, f"read hostile names back from {', '.join(untried)} here, by a parser of the format's own"


@cache
def _usual(render: Callable[[SuiteResult], str]) -> str:
    """What a format makes of a plain name."""
    return render(hostile.suite("plain"))


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


@for_each("name", TRIED[::3], ids=ascii)  # `escape` is tried with every name
def test_markdown_keeps_its_shape_whatever_the_name(name: str) -> None:
    plain = _outside(_usual(markdown.long_suite))
    page = markdown.long_suite(hostile.suite(name))
    assert all(line.isprintable() for line in page.split("\n"))
    outside = _outside(page)
    assert "<" not in outside
    if name.strip():
        assert _marks(outside) == _marks(plain)
        _shape(_reduced(outside, plain.split("\n")))


@EVERY
def test_code_stays_code(name: str) -> None:
    tokens = PARSER.parse("\n".join([*markdown.fenced([clean(name), "end"]), "", "after"]))
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content == f"{clean(name)}\nend\n"


@for_each("name", [name for name in SEEN if name in hostile.NAMES][::4], ids=ascii)
def test_whole_pages_of_markdown_are_read_as_the_same_page(name: str) -> None:
    for render in (markdown.render_suite, markdown.long_suite):
        assert _shape(render(hostile.suite(name))) == _shape(_usual(render))
    assert _shape(markdown.render_result(hostile.result(name))) == _shape(
        markdown.render_result(hostile.result("plain"))
    )


@EVERY
def test_a_heading_of_markdown_reads_as_the_name_was_cleaned(name: str) -> None:
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


@EVERY
def test_the_comment_keeps_its_rows_whatever_the_name(name: str) -> None:
    page = markdown.render_suite(hostile.suite(name))
    assert all(line.isprintable() for line in page.split("\n"))
    assert "<" not in page
    assert not re.search(r"^(::|##\[)", page, flags=re.MULTILINE)
    assert _shape(page) == _shape(_usual(markdown.render_suite)) or not name.strip()


# plain text, JSON


@for_each("name", TRIED[1::3], ids=ascii)  # accounts, of which it is made, are tried in tests/account
def test_plain_text_keeps_its_lines(name: str) -> None:
    lines = markdown.text_suite(hostile.suite(name)).split("\n")
    assert len(lines) == len(_usual(markdown.text_suite).split("\n"))
    assert all(line.isprintable() for line in lines)


@EVERY
def test_json_is_ascii_and_comes_back_exactly(name: str) -> None:
    written = exchange.json_suite(hostile.suite(name))
    assert written.isascii()
    assert either_of(json.loads(written)) == hostile.suite(name)


# JUnit, SARIF, CSV


@EVERY
def test_junit_fits_its_schema_and_says_the_cleaned_name(name: str) -> None:
    root = ElementTree.fromstring(exchange.junit_suite(hostile.suite(name)))
    if NIGHTLY or name in hostile.NAMES:
        XSD.validate(root)
    first, second = (case.get("name") for case in root.iter("testcase"))
    assert first == (clean(name) or "audit")
    assert second in (first, f"{first} #2")
    assert [len(case) for case in root.iter("testcase")] == [2, 1]
    assert all((each.text or "").replace("\n", " ").isprintable() for each in root.iter())
    assert all(value.isprintable() for each in root.iter() for value in each.attrib.values())


@EVERY
def test_sarif_fits_its_schema_and_links_nowhere(name: str) -> None:
    written = exchange.sarif_suite(hostile.suite(name))
    assert written.isascii()
    stored = json.loads(written)
    if NIGHTLY or name in hostile.NAMES:
        SARIF.validate(stored)
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


@EVERY
def test_csv_keeps_its_cells_and_computes_nothing(name: str) -> None:
    header, *rows = csv.reader(io.StringIO(csv_.render_suite(hostile.suite(name), ["a.json", None])))
    assert header == list(csv_.COLUMNS)
    assert [len(row) for row in rows] == [len(header)] * 2
    for cell in (cell for row in rows for cell in row):
        assert cell.isprintable()
        assert not cell.lstrip().startswith(FORMULA)
        assert not re.search(f";\\s*[{re.escape(''.join(FORMULA))}]", cell)
    assert rows[0][0].replace("'", "") == clean(name, 200).replace("'", "")


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


LINKS = (("a.html", None), ("a.json", None))


def _drawn(name: str) -> str:
    return html.render_result(hostile.result(name), entry=hostile.suite(name).entries[0])


def _undrawn(name: str) -> str:
    """A page without figures, which are most of it and tried by themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaudit.report.figures.drawings", lambda *_: ())
        return _drawn(name)


def _overview(name: str) -> str:
    return html.render_suite(hostile.suite(name), *LINKS)


@for_each(
    ("make", "names"),
    [(_drawn, SEEN[::20]), (_overview, SEEN[::6]), (_undrawn, SEEN if NIGHTLY else SEEN[::3])],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_html_keeps_its_outline_whatever_the_name(make: Callable[[str], str], names: list[str]) -> None:
    plain = Outline(make("plain"))
    for name in names:
        page = make(name)
        assert all(line.isprintable() for line in page.split("\n")), name
        found = Outline(page)
        assert found.tags == plain.tags, name
        assert [_numberless(link) for link in found.links] == [_numberless(link) for link in plain.links], name


@for_each("name", [max(hostile.NAMES, key=len), '"><img src=x onerror=alert(1)>', "</style></title><!--"])
def test_pages_of_names_are_valid_and_small(name: str) -> None:
    for make, most in ((_drawn, 300_000), (_overview, 100_000)):
        assert parse(make(name)).tag == "html"
        assert len(make(name).encode()) <= most


# markdown, read by an independent parser: no text of a user becomes markup. Its pages are golden files


def _headings(page: str) -> list[str]:
    tokens = PARSER.parse(page)
    return [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]


@for_each("page", [markdown.long_suite(example.suite()), markdown.render_result(example.kept())], ids=range(2))
def test_a_page_says_how_to_repeat_it_in_blocks_of_code(page: str) -> None:
    code = [token.content for token in PARSER.parse(page) if token.type == "fence"]
    assert any(each.startswith("import dpaudit\n") for each in code)
    assert any(each.startswith("import dpaudit; ") for each in code)


def test_accepted_findings_are_listed_and_marked() -> None:
    page = markdown.long_suite(example.reviewed_suite())
    assert "| noisy count | REFUTED, accepted until 2025-05-01 | outputs above 9.5 came in 18 %" in page
    assert "Accepted findings" in _headings(page)
    assert all(markdown.escape(line) in page for line in reviewed_lines(example.reviewed_suite().reviewed))
    assert "Accepted findings" not in _headings(markdown.long_suite(example.suite()))


def test_a_fence_outlasts_the_backticks_inside() -> None:
    fence, line, close = markdown.fenced(["echo '``````'"])
    assert fence == close == "`" * 7
    assert line == "echo '``````'"


@for_each(
    ("raw", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("`x`", r"\`x\`"),
        ("<b>", "&lt;b>"),
        ("&amp;", "&amp;amp;"),
        ("1. x", r"1\. x"),
        ("1.02 at 0.5", "1.02 at 0.5"),
        ("- x", r"\- x"),
        ("epsilon >= 1", "epsilon >= 1"),
        ("\u202ex", r"\\u202ex"),
        ("two\nlines", r"two\\nlines"),
        ("@all #1 GH-2 a@b.org", r"@&#8203;all \#&#8203;1 GH&#8203;-2 a@&#8203;b.org"),
        ("www.x.org https://x.org", r"www\.x.org https\://x.org"),
        (":x_y: counts:f", r":&#8203;x\_y: counts:f"),
    ],
)
def test_escaping(raw: str, escaped: str) -> None:
    assert markdown.escape(raw) == escaped
