"""Markdown: every part is there, and no text of a user becomes markup. Read by an independent parser."""

from __future__ import annotations

from functools import cache

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from dpaudit.account.officer import page_one
from dpaudit.account.review import CHECKLIST, review
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
    first, second = ((*page_one(each), *review(each)) for each in (example.result(), example.kept()))
    alike = [part.title for part in first if part in second]
    assert len(alike) >= 8
    assert headings == [
        "Audit report",
        "What was asked",
        "Verdicts",
        "1. noisy count",
        "The account",
        "For the reviewer",
        "2. noisy count, whole noise",
        "The account",
        "For the reviewer",
        "3. sparse",
        "Of every audit here",
        *alike,
        "What this report does not show",
        "How to repeat it",
        "1. noisy count",
        "2. noisy count, whole noise",
    ]


def test_the_table_says_claimed_certified_and_expected() -> None:
    page = markdown.render_suite(example.suite(), record_names(example.suite()))
    rows = [line for line in page.split("\n") if line.startswith("|")]
    assert rows == [
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
    (*_, code) = [token.content for token in PARSER.parse(page) if token.type == "fence"]
    assert code.startswith("import dpaudit\n")


def test_nothing_of_page_one_or_of_the_review_is_lost() -> None:
    suite, kept = example.suite(), example.kept()
    asked = [(each.result, each) for each in suite.entries if each.result is not None]
    for page, told in (
        (markdown.render_suite(suite), asked),
        (markdown.render_result(kept), [(kept, None)]),
    ):
        for result, entry in told:
            for part in (*page_one(result, entry), *review(result)):
                assert all(markdown.escape(line) in page for line in part.lines), part.title


def test_what_is_so_for_every_audit_stands_once() -> None:
    same = review(example.result())[-1]
    assert same.title == CHECKLIST
    page = markdown.render_suite(example.suite())
    assert [page.count(markdown.escape(line)) for line in same.lines] == [1] * len(same.lines)
    assert page.count("\n- [ ] ") == len(same.lines)


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
