"""Markdown: what was asked, a table, the account of each audit, its limits, and how to repeat it.

Every text passes through `escape` or stands in a code block, so that no name can open a tag, a link, a cell
or a heading.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from dpaudit.auditing.result import AuditResult, SuiteEntry, SuiteResult
from dpaudit.auditing.wording import (
    NOT_PRIVATE,
    Section,
    certified,
    claimed,
    headline,
    limits,
    sections,
    suite_headline,
    suite_line,
    suite_question,
    verdict_text,
)
from dpaudit.auditing.wording.numerals import p_text
from dpaudit.auditing.wording.quoting import clean

HEADER = ("audit", "claimed", "certified", "p-value", "Holm", "verdict", "expected")
REPEAT = "How to repeat it"
NOT_SHOWN = "What this report does not show"


def render_result(result: AuditResult) -> str:
    """One result as a page."""
    parts = sections(result)
    return _page(
        [f"# {escape(headline(result))}"],
        _account(parts),
        [f"## {NOT_SHOWN}"],
        _list(limits(result)),
        [f"## {REPEAT}"],
        *_repeat(parts),
    )


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite as a page; each audit names the file that holds its record where `records` gives one."""
    accounts: list[list[str]] = []
    repeats: list[list[str]] = []
    for number, (entry, record) in enumerate(itertools.zip_longest(suite.entries, records), start=1):
        title = f"{number}. {escape(clean(entry.name))}"
        if entry.result is None:
            accounts += [[f"## {title}"], [escape(suite_line(entry))]]
            continue
        parts = sections(entry.result)
        accounts += [[f"## {title}"], [f"**{escape(headline(entry.result))}**"], _account(parts)]
        repeats += [[f"### {title}"], *_repeat(parts)]
        if record:
            repeats.append([f"`dpaudit recheck {record}` repeats the arithmetic of the record beside this page."])
    return _page(
        ["# Audit report"],
        [escape(suite_headline(suite))],
        ["## What was asked"],
        _list(suite_question(suite)),
        ["## Verdicts"],
        _table(suite),
        *accounts,
        [f"## {NOT_SHOWN}"],
        _list((NOT_PRIVATE, *limits(*suite.results))),
        [f"## {REPEAT}"],
        *repeats,
    )


def escape(text: str) -> str:
    r"""Text that Markdown prints as it is, on one line: hidden characters, tags and markup made harmless.

    >>> print(escape("a|b <b>`x`</b>"))
    a\|b &lt;b>\`x\`&lt;/b>
    """
    flat = clean(text, len(text)).strip().replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|~$#!]|:(?=//)|^[-+=>]|^\d+(?=[.)](?:\s|$)))", _escaped, flat)


def _escaped(match: re.Match[str]) -> str:
    """A backslash before the character; a number is parted from the point that would make it a list."""
    found = match.group()
    return f"{found}\\" if found.isdigit() else f"\\{found}"


def fenced(lines: Sequence[str]) -> list[str]:
    """Lines as a code block, its fence longer than any run of backticks inside.

    >>> fenced(["a ``` b"])[0]
    '````'
    """
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *(clean(line, len(line)) for line in lines), fence]


def _table(suite: SuiteResult) -> list[str]:
    rows = [_row(entry, adjusted) for entry, adjusted in zip(suite.entries, suite.holm(), strict=True)]
    head = ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    return head + ["| " + " | ".join(map(escape, row)) + " |" for row in rows]


def _row(entry: SuiteEntry, adjusted: float | None) -> tuple[str, ...]:
    holm = "" if adjusted is None else p_text(adjusted)
    expected = verdict_text(entry.expect)
    if entry.result is None:
        return clean(entry.name), "", "", "", holm, "no verdict", expected
    result, p_value = entry.result, p_text(entry.result.certificate.p_value)
    return clean(entry.name), claimed(result), certified(result), p_value, holm, verdict_text(result.verdict), expected


def _account(parts: Sequence[Section]) -> list[str]:
    """A list with an item for each part, and a list inside it where there is more than one sentence."""
    lines = []
    for title, sentences in ((part.title, part.lines) for part in parts if part.lines):
        if len(sentences) == 1:
            lines.append(f"- **{title}**: {escape(sentences[0])}")
        else:
            lines += [f"- **{title}**", *(f"  - {escape(sentence)}" for sentence in sentences)]
    return lines


def _list(sentences: Sequence[str]) -> list[str]:
    return [f"- {escape(sentence)}" for sentence in sentences]


def _repeat(parts: Sequence[Section]) -> list[list[str]]:
    return [fenced(part.code) for part in parts if part.code]


def _page(*blocks: Sequence[str]) -> str:
    """Blocks of lines with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
