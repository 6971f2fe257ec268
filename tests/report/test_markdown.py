"""Markdown: every part is there, and no text of a user becomes markup. Read by an independent parser."""

from __future__ import annotations

import re
from functools import cache

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from dpaudit.auditing.wording import LIMITS
from dpaudit.auditing.wording.quoting import clean
from dpaudit.report import json_, markdown, record_names, text
from tests.golden import example
from tests.report import hostile

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
NUMBERS = range(len(hostile.NAMES))


@cache
def _page(name: str) -> str:
    return markdown.render_suite(hostile.suite(name))


@cache
def _parsed(page: str) -> tuple[Token, ...]:
    return tuple(PARSER.parse(page))


def _flat(page: str) -> list[Token]:
    tokens: list[Token] = []
    for token in _parsed(page):
        tokens += [token, *(token.children or ())]
    return tokens


def _shape(page: str) -> list[str]:
    """What the page consists of, without its words."""
    return [token.type + token.tag for token in _flat(page) if token.type not in ("text", "text_special")]


def _words(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _headings(page: str) -> list[str]:
    tokens = _parsed(page)
    return [_words(tokens[i + 1]) for i, token in enumerate(tokens) if token.type == "heading_open"]


@cache
def _alone(name: str) -> str:
    return markdown.render_result(hostile.result(name))


def _squeezed(name: str) -> str:
    return " ".join(name.split())


@pytest.mark.parametrize("name", hostile.NAMES, ids=NUMBERS)
def test_no_name_becomes_markup(name: str) -> None:
    found = {token.type for token in _flat(_page(name))}
    assert not found & MARKUP


@pytest.mark.parametrize("name", hostile.NAMES, ids=NUMBERS)
def test_no_name_changes_the_shape_of_a_page(name: str) -> None:
    plain = "plain" if name.strip() else name  # an empty heading has no words, and nothing else differs
    assert _shape(_page(name)) == _shape(_page(plain))
    assert _shape(_alone(name)) == _shape(_alone(plain))


@pytest.mark.parametrize("name", hostile.NAMES, ids=NUMBERS)
def test_a_name_is_read_as_it_was_cleaned(name: str) -> None:
    headings = _headings(_page(name))
    assert headings.count(_squeezed(f"1. {clean(name)}")) == 2  # its account, and how to repeat it
    assert headings.count(_squeezed(f"2. {clean(name)}")) == 1


@pytest.mark.parametrize("name", hostile.NAMES, ids=NUMBERS)
def test_no_tag_stands_in_the_source(name: str) -> None:
    page = _page(name)
    outside = re.sub(r"^(`{3,})\n.*?\n\1$", "", page, flags=re.MULTILINE | re.DOTALL)  # code blocks print as they are
    assert "<" not in outside
    assert all(line.isprintable() for line in page.split("\n"))


@pytest.mark.parametrize("name", hostile.NAMES, ids=NUMBERS)
def test_the_table_keeps_its_rows_and_columns(name: str) -> None:
    tokens = _parsed(_page(name))
    kinds = [token.type for token in tokens]
    assert kinds.count("th_open") == 7
    assert kinds.count("tr_open") == 3
    assert kinds.count("td_open") == 14


@pytest.mark.parametrize("name", hostile.NAMES, ids=NUMBERS)
def test_the_other_formats_take_every_name(name: str) -> None:
    lines = text.render_suite(hostile.suite(name)).split("\n")
    assert len(lines) == 15
    assert all(line.isprintable() for line in lines)
    assert json_.render_result(hostile.result(name)).isascii()


def test_there_are_enough_hostile_names() -> None:
    assert len(set(hostile.NAMES)) >= 30


def test_a_suite_answers_in_the_order_of_the_questions() -> None:
    headings = _headings(markdown.render_suite(example.suite()))
    assert headings == [
        "Audit report",
        "What was asked",
        "Verdicts",
        "1. noisy count",
        "2. noisy count, whole noise",
        "3. sparse",
        "What this report does not show",
        "How to repeat it",
        "1. noisy count",
        "2. noisy count, whole noise",
    ]


def test_the_table_says_claimed_certified_and_expected() -> None:
    page = markdown.render_suite(example.suite(), record_names(example.suite()))
    rows = [line for line in page.split("\n") if line.startswith("|")]
    assert rows == [
        "| audit | claimed | certified | p-value | Holm | verdict | expected |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| noisy count | 1 | epsilon >= 1.96 | 1e-300 | 3e-300 | REFUTED | REFUTED |",
        "| noisy count, whole noise | 1 | epsilon >= 0.982 | 0.6 | 1 | not refuted | not refuted |",
        "| sparse |  |  |  |  | no verdict | REFUTED |",
    ]


@pytest.mark.parametrize("page", [markdown.render_suite(example.suite()), markdown.render_result(example.kept())])
def test_a_page_says_what_it_does_not_show_and_how_to_repeat_it(page: str) -> None:
    assert "Not refuted is not private" in page
    assert all(limit in page for limit in LIMITS)
    (*_, code) = [token.content for token in PARSER.parse(page) if token.type == "fence"]
    assert code.startswith("import dpaudit\n")


def test_a_fence_outlasts_the_backticks_inside() -> None:
    fence, line, close = markdown.fenced(["echo '``````'"])
    assert fence == close == "`" * 7
    assert line == "echo '``````'"


@pytest.mark.parametrize(
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
    ],
)
def test_escaping(raw: str, escaped: str) -> None:
    assert markdown.escape(raw) == escaped
