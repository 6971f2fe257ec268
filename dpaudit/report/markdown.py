"""Markdown: the account of a finding level by level; a suite in 30 lines, and with all its accounts. And plain text.

Every text passes through `escape` or stands in a code block, so that no name can open a tag, a link, a cell
or a heading.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dpaudit.account import Account, Level, Section, account
from dpaudit.account.suites import BROKEN, HEAD, cures, flat, in_order, kind_of, names_in, needs_action, row_of
from dpaudit.base.quoting import clean
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult

if TYPE_CHECKING:
    from dpaudit.report.figures import Drawing

LONG = "report-long.md"
MOST_ROWS, MOST_CURES, MOST_ACCEPTED = 7, 4, 2  # of the short form: it has at most 30 lines

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
    shown = ((escape(each.title), escape(each.description), f"{prefix}{each.name}.svg") for each in drawn)
    figures = [[f"### {title}", "", text, "", f"![{title}]({file})"] for title, text, file in shown]
    levels = {"The account": told.at(Level.DETAIL), "For the reviewer": told.at(Level.REVIEWER)}
    chapters = [[[f"## {heading}"], *_chapters(parts, level=3)] for heading, parts in levels.items() if parts]
    return page(
        [f"# {escape(told.headline)}"],
        *_chapters(told.at(Level.PAGE_ONE)),
        *([["## Figures"], *figures] if figures else []),
        *itertools.chain(*chapters),
        *([[f"The record beside this page: [{record}]({record})"]] if record else []),
    )


def render_suite(suite: SuiteResult, records: Sequence[str | None] = (), links: bool = False) -> str:
    """A suite of any size in at most 30 lines, as a comment: what needs action in a table, and counts of the rest.

    `links` lead to the long form, which stands beside it.
    """
    told, places = account(suite, Level.DETAIL), in_order(suite)
    entries = [suite.entries[place] for place in places]
    odd = [row_of(entry) for entry in entries if needs_action(entry)][:MOST_ROWS]
    cells = [[escape(text) for text in row] for row in odd]
    for row, place in zip(cells, places if links else (), strict=False):
        row[0] = f"[{row[0]}]({LONG}#audit-{place + 1})"
    rest = Counter(map(kind_of, entries[len(odd) :]))
    counts = "; ".join(f"{count:,} {kind}" for kind, count in rest.items())
    broken = f". **{BROKEN.capitalize()} ({escape(names)}).**" if (names := names_in(suite, BROKEN)) else ""
    cured = [f"- **{escape(short)}** {escape(cure)}" for short, cure in cures(suite)]
    accepted = [*told["accepted"].lines, *told["accepted findings"].lines][: 1 + MOST_ACCEPTED]
    return page(
        [f"## {escape(told.kind)}"],
        [f"**{escape(told.headline)}**"],
        *([listed(told["about"].lines)] if told["about"].lines else []),
        *([table(HEAD[:-1], (row[:-1] for row in cells))] if cells else []),
        *([[escape(f"{'The rest' if odd else 'All'}: {counts}") + broken]] if rest else []),
        *([cured[:MOST_CURES]] if cured else []),
        *([listed(map(flat, accepted))] if accepted else []),
        *([[f"The long form: [{LONG}]({LONG})"]] if links else []),
        *([[escape(line)] for line in told["not private"].lines]),
    )


def render_files(
    suite: SuiteResult, names: Sequence[str | None], records: Sequence[str | None], trends: object = ()
) -> Iterator[tuple[str, Callable[[], str]]]:
    """The suite in 30 lines, and the whole of it, to which they lead."""
    yield "report.md", partial(render_suite, suite, records, links=True)
    yield LONG, partial(long_suite, suite, records)


def long_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """The account of a suite, and below it that of each audit, with the file of its record where there is one."""
    parts = (
        f"# Audit {number}\n\n{account_page(account(entry), record=record or '')}"
        for number, (entry, record) in enumerate(itertools.zip_longest(suite.entries, records), start=1)
    )
    told = account(suite)
    return "\n".join((f"# {escape(told.kind)}\n", account_page(told), *parts))


def _chapters(parts: Sequence[Section], *, level: int = 2) -> list[list[str]]:
    """A heading for each part, with its table or its sentences, and its code."""
    blocks = []
    for part in parts:
        blocks.append([f"{'#' * level} {escape(part.title)}"])
        blocks += [listed(part.sentences)] if part.sentences else []
        if part.table is not None:
            blocks.append(table(part.table.head, (map(escape, row) for row in part.table.rows)))
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


def table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A table of cells that are Markdown already.

    >>> table(("audit", "p"), [("a", "0.01")])
    ['| audit | p |', '| --- | --- |', '| a | 0.01 |']
    """
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def listed(sentences: Iterable[str], mark: str = "- ") -> list[str]:
    """A list with an item for each sentence."""
    return [f"{mark}{escape(sentence)}" for sentence in sentences]


def page(*blocks: Sequence[str]) -> str:
    """Blocks of lines with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def text_result(result: AuditResult) -> str:
    """The account of one result, all that was done."""
    return f"{account(result, Level.DETAIL)}\n"


def text_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """The account of the suite, and below it that of each audit, all that was done."""
    return "\n".join(f"{account(each, Level.DETAIL)}\n" for each in (suite, *suite.entries))
