"""Markdown: every part is there, and no text of a user becomes markup. Read by an independent parser."""

from __future__ import annotations

import re
from functools import cache

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from dpaudit.account import Level, account
from dpaudit.account.statements import LIMITS
from dpaudit.account.suites import reviewed_lines
from dpaudit.report import markdown, record_names
from tests.cases import for_each
from tests.golden import example

PARSER = MarkdownIt("commonmark").enable("table").enable("strikethrough")


@cache
def _parsed(page: str) -> tuple[Token, ...]:
    return tuple(PARSER.parse(page))


def _words(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _headings(page: str) -> list[str]:
    tokens = _parsed(page)
    return [_words(tokens[i + 1]) for i, token in enumerate(tokens) if token.type == "heading_open"]


def test_a_suite_answers_in_the_order_of_the_questions() -> None:
    headings = _headings(markdown.render_suite(example.suite()))
    first, second = account(example.result()), account(example.kept())
    below = [part for part in first.sections if part.level > Level.PAGE_ONE]
    alike = [part.title for part in below if part in second.sections]
    assert len(alike) >= 8
    suite = account(example.suite())
    asked = [part.title for part in suite.sections if part.level > Level.HEADLINE]
    assert headings[: len(asked) + 1] == ["Audit report", *asked]
    assert headings[-len(alike) - 1 :] == ["Of every audit here", *alike]
    numbered = [each for each in headings if re.match(r"\d\. ", each)]
    assert numbered == ["1. noisy count", "2. noisy count, whole noise", "3. sparse"]
    assert headings.count("The account") == headings.count("For the reviewer") == 2


def test_the_table_says_claimed_certified_and_expected() -> None:
    page = markdown.render_suite(example.suite(), record_names(example.suite()))
    rows = [line for line in page.split("\n") if line.startswith("|")]
    assert rows[:5] == [
        "| audit | verdict | expected | claimed | certified | p-value | Holm |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| noisy count | REFUTED | REFUTED | 1 | epsilon >= 1.96 | 1e-300 | 3e-300 |",
        "| noisy count, whole noise | not refuted | not refuted | 1 | epsilon >= 0.982 | 0.6 | 1 |",
        "| sparse | no verdict | REFUTED |  |  |  |  |",
    ]


@pytest.mark.parametrize("page", [markdown.render_suite(example.suite()), markdown.render_result(example.kept())])
def test_a_page_says_what_it_does_not_show_and_how_to_repeat_it(page: str) -> None:
    assert "Not refuted is not private" in page
    assert all(limit in page for limit in LIMITS)
    code = [token.content for token in PARSER.parse(page) if token.type == "fence"]
    assert any(each.startswith("import dpaudit\n") for each in code)
    assert any(each.startswith("import dpaudit; ") for each in code)


def test_accepted_findings_are_listed_and_marked() -> None:
    page = markdown.render_suite(example.reviewed_suite())
    assert "| REFUTED, accepted until 2025-05-01 | not refuted |" in page
    assert "Accepted findings" in _headings(page)
    assert all(markdown.escape(line) in page for line in reviewed_lines(example.reviewed_suite().reviewed))
    assert "Accepted findings" not in _headings(markdown.render_suite(example.suite()))


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
