"""Markdown: what was asked, a table, the account of each audit, its limits, and how to repeat it.

Every text passes through `escape` or stands in a code block, so that no name can open a tag, a link, a cell
or a heading.
"""

import itertools
import re
from collections.abc import Iterable, Sequence

from dpaudit.account.officer import account, excerpt, page_one
from dpaudit.account.review import CHECKLIST, review
from dpaudit.account.sections import Section, sections
from dpaudit.account.statements import headline, limits, not_private
from dpaudit.account.suites import reviewed_lines, suite_headline, suite_line, suite_question
from dpaudit.account.tables import audits_table
from dpaudit.base.quoting import clean
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult

ACCOUNT, REVIEW, EVERY = "The account", "For the reviewer", "Of every audit here"
ACCEPTED = "Accepted findings"
REPEAT = "How to repeat it"
NOT_SHOWN = "What this report does not show"

MARKS = re.compile(r"[\\`*_\[\]|~$#!]|:(?=//)|www(?=\.)|^[-+=>]|^\d+(?=[.)](?:\s|$))", re.IGNORECASE)
GITHUB = re.compile(r"@(?=[^\W_])|#(?=\d)|\bGH(?=-\d)|:(?=[\w+\\-]+:)", re.IGNORECASE)
NO_WIDTH = "&#8203;"


def render_result(result: AuditResult) -> str:
    """One result as a page: page one in plain sentences, the account, what a reviewer asks, how to repeat it."""
    source = excerpt(result)
    return page(
        [f"# {escape(headline(result))}"],
        *_chapters(page_one(result)),
        [f"## {ACCOUNT}"],
        _account(account(result)),
        *([[f"## {source.title}"], listed(source.lines), fenced(source.code)] if source.code else []),
        [f"## {REVIEW}"],
        *_chapters(review(result), level=3),
        [f"## {REPEAT}"],
        *_repeat(result),
    )


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite as a page; each audit names the file that holds its record where `records` gives one.

    What page one and the review say of all audits alike stands once, at the end.
    """
    every, audits = _alike(suite.results), audits_table(suite)
    accounts: list[list[str]] = []
    repeats: list[list[str]] = []
    for number, (entry, record) in enumerate(itertools.zip_longest(suite.entries, records), start=1):
        title = f"{number}. {escape(clean(entry.name))}"
        if entry.result is None:
            accounts += [[f"## {title}"], [escape(suite_line(entry))]]
            continue
        plain = [part for part in page_one(entry.result, entry) if part not in every]
        asked = [part for part in review(entry.result) if part not in every]
        accounts += [
            [f"## {title}"],
            [f"**{escape(headline(entry.result))}**"],
            _account(plain),
            [f"### {ACCOUNT}"],
            _account(account(entry.result)),
            *([[f"### {REVIEW}"], _account(asked)] if asked else []),
        ]
        repeats += [[f"### {title}"], *_repeat(entry.result)]
        if record:
            repeats.append([f"`dpaudit recheck {record}` repeats the arithmetic of the record beside this page."])
    return page(
        ["# Audit report"],
        [escape(suite_headline(suite))],
        ["## What was asked"],
        listed(suite_question(suite)),
        ["## Verdicts"],
        table(audits.head, audits.rows),
        *([[f"## {ACCEPTED}"], listed(reviewed_lines(suite.reviewed))] if suite.reviewed else []),
        *accounts,
        *([[f"## {EVERY}"], *_chapters(every, level=3)] if every else []),
        [f"## {NOT_SHOWN}"],
        listed((*not_private(*suite.results), *limits(*suite.results))),
        [f"## {REPEAT}"],
        *repeats,
    )


def _alike(results: Sequence[AuditResult]) -> tuple[Section, ...]:
    """The parts of page one and of the review that are the same for all of several results."""
    if len(results) < 2:
        return ()
    every = list[Section]()
    for number, result in enumerate(results):
        parts = (*page_one(result), *review(result))
        every = [part for part in parts if not number or part in every]
    return tuple(every)


def _chapters(parts: Sequence[Section], *, level: int = 2) -> list[list[str]]:
    """A heading and a list for each part; questions to a reviewer get boxes."""
    blocks = []
    for part in parts:
        mark = "- [ ] " if part.title == CHECKLIST else "- "
        blocks += [[f"{'#' * level} {escape(part.title)}"], listed(part.lines, mark)]
    return blocks


def escape(text: str) -> str:
    r"""Text that Markdown prints as it is, on one line: hidden characters, tags and markup made harmless.

    What GitHub would make a link, a mention or a picture of, behind any backslash (`@somebody`, `#1`, `GH-1`, `:x:`),
    is parted by a space of no width.

    >>> print(escape("a|b <b>`x`</b>"))
    a\|b &lt;b>\`x\`&lt;/b>
    >>> print(escape("@all see #1"))
    @&#8203;all see \#&#8203;1
    """
    flat = clean(text, len(text)).strip().replace("&", "&amp;").replace("<", "&lt;")
    # what makes a list or a link with the point after it is separated from that point
    plain = MARKS.sub(lambda mark: f"{mark[0]}\\" if mark[0].isalnum() else f"\\{mark[0]}", flat)
    return GITHUB.sub(rf"\g<0>{NO_WIDTH}", plain)


def fenced(lines: Sequence[str]) -> list[str]:
    """Lines as a code block, its fence longer than any run of backticks inside.

    >>> fenced(["a ``` b"])[0]
    '````'
    """
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *(clean(line, len(line)) for line in lines), fence]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table with any text in its cells.

    >>> table(("audit", "p"), [("a|b", "0.01")])
    ['| audit | p |', '| --- | --- |', '| a\\\\|b | 0.01 |']
    """
    top = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return top + ["| " + " | ".join(map(escape, row)) + " |" for row in rows]


def listed(sentences: Iterable[str], mark: str = "- ") -> list[str]:
    """A list with an item for each sentence."""
    return [f"{mark}{escape(sentence)}" for sentence in sentences]


def _account(parts: Sequence[Section]) -> list[str]:
    """A list with an item for each part, and a list inside it where there is more than one sentence."""
    lines = []
    for part in parts:
        if len(part.lines) == 1:
            lines.append(f"- **{part.title}**: {escape(part.lines[0])}")
        elif part.lines:
            lines += [f"- **{part.title}**", *listed(part.lines, "  - ")]
    return lines


def _repeat(result: AuditResult) -> list[list[str]]:
    return [fenced(part.code) for part in sections(result) if part.code]


def page(*blocks: Sequence[str]) -> str:
    """Blocks of lines with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
