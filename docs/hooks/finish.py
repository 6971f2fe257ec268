"""What is done to the HTML of every page: names lead to the reference, and tables can be read on a narrow screen."""

from __future__ import annotations

import html
import inspect
import re
from functools import cache

from mkdocs.structure.files import Files
from mkdocs.utils import get_relative_url
from reference.commands import commands
from reference.python import anchor, names

import dpaudit
from dpaudit.options import OPTIONS, Working, options

CODE = re.compile(r"<(?P<other>pre|a|h[1-6])\b.*?</(?P=other)>|<code>(?P<text>[^<]*)</code>", re.DOTALL)
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
CELL = re.compile(r"<td[^>]*>(?=(?P<number>\d)?)|<tr>")
NARROW = 36  # characters of a row that any screen has room for
BREAKS = re.compile(r"(?<=[\w.])(?=[_.:/])|(?<=[(,])")  # where a name may go on in the next line
AUDIT = "reference/audit.md"


@cache
def targets() -> dict[str, tuple[str, str]]:
    """Every name of the reference as prose writes it, with its page and its anchor there."""
    found = {f"dpaudit {name}": ("reference/commands.md", name) for name in commands()}
    keywords = [each.name for each in (*options(Working), *OPTIONS.values()) if each.keyword]
    found |= {f"{name}=": (AUDIT, name) for name in keywords} | {
        name: (AUDIT, name) for name in keywords if "_" in name
    }
    for group, held in names().items():
        for name, each in held.items():
            place = f"reference/{group}.md", anchor(name)
            found[name] = place
            if anchor(name)[0].isupper() or "_" in anchor(name):
                found[anchor(name)] = place
            if inspect.isclass(each) and issubclass(each, dpaudit.AuditResult | dpaudit.Sweep):
                word = "result" if each is dpaudit.AuditResult else "sweep"
                members = [member for member in dir(each) if member[0] != "_" and callable(getattr(each, member))]
                for member in (*members, *(name for name, _ in inspect.getmembers(each, inspect.isdatadescriptor))):
                    target = place[0], f"{each.__name__}.{member}"
                    found |= {f"{each.__name__}.{member}": target, f"{word}.{member}": target}
    return found


def linked(page: str, path: str, url: str, files: Files) -> str:
    """Each name of the reference, where it stands first outside of headings and code blocks, as a link to it."""
    seen: set[str] = set()

    def link(found: re.Match[str]) -> str:
        told = html.unescape(found["text"] or "")
        name = re.match(r"dpaudit [a-z-]+|\w+=|[\w.]+", told)
        place = targets().get(name[0]) if name else None
        if name is None or place is None or name[0] in seen or place[0] == path:
            return found[0]
        seen.add(name[0])
        file = files.get_file_from_path(place[0])
        assert file is not None, place[0]
        return f'<a class="name" href="{get_relative_url(file.url, url)}#{place[1]}">{found[0]}</a>'

    return CODE.sub(link, page)


def stacked(page: str) -> str:
    """Wide tables with cells that know their columns: on a narrow screen a row of them becomes a list."""

    def table(found: re.Match[str]) -> str:
        head, _, body = found[0].partition("</thead>")
        columns = [_plain(each) for each in re.findall(r"<th\b[^>]*>(.*?)</th>", head, re.DOTALL)]
        rows = [re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]
        widths = [max(len(_plain(cell)) for cell in each) for each in zip(*rows, strict=False)]
        if len(columns) < 3 or sum(widths) < NARROW:
            return found[0]
        place = -1

        def cell(each: re.Match[str]) -> str:
            nonlocal place
            place = -1 if each[0] == "<tr>" else place + 1
            named = place > 0 or (place == 0 and each["number"])  # a name says itself what it is
            return f'{each[0][:-1]} data-column="{html.escape(columns[place])}">' if named else each[0]

        return f"{head.replace('<table', '<table data-columns', 1)}</thead>{CELL.sub(cell, body)}"

    return TABLE.sub(table, page)


def _plain(cell: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", cell))


def breakable(page: str) -> str:
    """Names in tables, which may be broken at their dots and underscores and nowhere else."""

    def broken(found: re.Match[str]) -> str:
        return re.sub(r"(<code[^>]*>)([^<]+)", lambda code: code[1] + "<wbr>".join(BREAKS.split(code[2])), found[0])

    return TABLE.sub(broken, page)


def anchored(page: str) -> str:
    """The table of keywords, each of them an anchor."""
    return re.sub(r"<tr>\s*<td[^>]*><code(?=>(\w+)<)", r'\g<0> id="\1"', page)
