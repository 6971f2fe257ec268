"""Text as Markdown prints it: nothing that a docstring or a description holds may become markup by accident."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

MARKUP = str.maketrans({sign: f"&#{ord(sign)};" for sign in "|*_[]{}~^!#"})


def prose(text: str) -> str:
    """A text on one line; what stands between backticks becomes code.

    >>> prose("a < b, `x|y`")
    'a &lt; b, <code>x&#124;y</code>'
    """
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # a backtick without a partner
        parts = ["'".join(parts)]
    told = [html.escape(part, quote=False).translate(MARKUP) for part in parts]
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(told))


def code(text: str) -> str:
    """A text as code, on one line."""
    return f"<code>{html.escape(text, quote=False).translate(MARKUP)}</code>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are Markdown already."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def fenced(language: str, text: str, *, title: str = "") -> str:
    """A code block."""
    assert "```" not in text
    shown = f' title="{title}"' if title else ""
    return f"```{language}{shown}\n{text.rstrip()}\n```"


def page(title: str, *parts: str) -> str:
    """A page: its title and its parts, an empty line between them."""
    return "\n\n".join([f"# {title}", *(part for part in parts if part)]) + "\n"
