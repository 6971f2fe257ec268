"""Markdown: the account of a finding level by level, and of a suite what is so for every audit once.

Every text passes through `escape` or stands in a code block, so that no name can open a tag, a link, a cell
or a heading.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dpaudit.account import Account, Level, Section, account, templates
from dpaudit.base.quoting import clean
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult

if TYPE_CHECKING:
    from dpaudit.report.figures import Drawing

EVERY = "Of every audit here"

MARKS = re.compile(r"[\\`*_\[\]|~$#!]|:(?=//)|www(?=\.)|^[-+=>]|^\d+(?=[.)](?:\s|$))", re.IGNORECASE)
GITHUB = re.compile(r"@(?=[^\W_])|#(?=\d)|\bGH(?=-\d)|:(?=[\w+\\-]+:)", re.IGNORECASE)
NO_WIDTH = "&#8203;"


def render_result(result: AuditResult) -> str:
    """One result as a page: what was found and what to do, all that was done, what a reviewer asks."""
    return account_page(account(result))


def account_page(told: Account, drawn: "Sequence[Drawing]" = (), prefix: str = "", record: str = "") -> str:
    """The account of any finding as a page; its figures are SVG files beside it, a `prefix` to their names.

    `record` is the file beside it that has all numbers.
    """
    figures = [
        block
        for each in drawn
        for block in (
            [f"### {escape(each.title)}"],
            [escape(each.description)],
            [f"![{escape(each.title)}]({prefix}{each.name}.svg)"],
        )
    ]
    return page(
        [f"# {escape(told.headline)}"],
        *_chapters(told.at(Level.PAGE_ONE)),
        *([[f"The record beside this page: [{record}]({record})"]] if record else []),
        *([["## Figures"], *figures] if figures else []),
        *_by_level(told),
    )


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite as a page; each audit names the file that holds its record where `records` gives one.

    What the accounts say of all audits alike stands once, at the end.
    """
    told = account(suite)
    accounts = [account(entry) for entry in suite.entries]
    every = _alike([each for each, entry in zip(accounts, suite.entries, strict=True) if entry.result is not None])
    blocks: list[list[str]] = []
    pairs = itertools.zip_longest(suite.entries, accounts, records)
    for number, (entry, each, record) in enumerate(pairs, start=1):
        own = replace(each, sections=tuple(part for part in each.sections if part not in every))
        blocks += [[f"## {number}. {escape(clean(entry.name))}"], [f"**{escape(each.headline)}**"]]
        blocks += [*_chapters(own.at(Level.PAGE_ONE), level=3), *_by_level(own, level=3)]
        if record:
            blocks.append([templates.RECHECK.format(record=record)])
    return page(
        ["# Audit report"],
        [escape(told.headline)],
        *_chapters((*told.at(Level.PAGE_ONE), *told.at(Level.DETAIL))),
        *blocks,
        *([[f"## {EVERY}"], *_chapters(every, level=3)] if every else []),
    )


def _alike(accounts: Sequence[Account]) -> tuple[Section, ...]:
    """The sections below page one that several accounts all have."""
    if len(accounts) < 2:
        return ()
    first, *others = ([part for part in each.sections if part.level > Level.PAGE_ONE] for each in accounts)
    return tuple(part for part in first if all(part in other for other in others))


def _by_level(told: Account, *, level: int = 2) -> list[list[str]]:
    """What was done as one list, what a reviewer asks below it part by part."""
    blocks = []
    for heading, each in (("The account", Level.DETAIL), ("For the reviewer", Level.REVIEWER)):
        if parts := told.at(each):
            blocks += [[f"{'#' * level} {heading}"], *_chapters(parts, level=level + 1)]
    return blocks


def _chapters(parts: Sequence[Section], *, level: int = 2) -> list[list[str]]:
    """A heading for each part, with its table or its sentences, and its code."""
    blocks = []
    for part in parts:
        blocks.append([f"{'#' * level} {escape(part.title)}"])
        blocks += [listed(part.sentences)] if part.sentences else []
        if part.table is not None:
            blocks.append(table(part.table.head, part.table.rows))
            blocks += [[escape(part.table.note)]] if part.table.note else []
        blocks += [fenced(part.code)] if part.code else []
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


def page(*blocks: Sequence[str]) -> str:
    """Blocks of lines with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
