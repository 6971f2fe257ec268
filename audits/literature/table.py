"""A table of the page as plain data: what its sections are made of, and what the JSON record holds of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

MARKS = re.compile(r"[\\`*_\[\]|~$#<>]")


@dataclass(frozen=True, slots=True)
class Table:
    """A section: its title, what is said first, a table whose cells are plain text, and what is said under it.

    Notes are plain text too, a paragraph each. `verdict` is what it shows in a sentence or two, said at the head of
    the page as well. Raises ValueError for a row that is not as long as the header.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    before: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    verdict: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"{self.title}: a row has {len(row)} cells, the header {len(self.header)}: {row}")

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON holds it."""
        return {
            "title": self.title,
            "header": list(self.header),
            "rows": [list(row) for row in self.rows],
            "before": list(self.before),
            "notes": list(self.notes),
            "verdict": self.verdict,
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Table:
        """The table that `to_dict` wrote."""
        rows = tuple(tuple(row) for row in stored["rows"])
        before, notes = tuple(stored["before"]), tuple(stored["notes"])
        return cls(stored["title"], tuple(stored["header"]), rows, before, notes, stored["verdict"])

    def markdown(self) -> list[str]:
        """The section as blocks of Markdown, its title a heading of level 2.

        >>> print(Table("Runs", ("name", "runs"), (("a|b", "1"),)).markdown()[-1])
        | name | runs |
        | --- | --- |
        | a\\|b | 1 |
        """
        lines = [self.header, ("---",) * len(self.header), *(tuple(map(escape, row)) for row in self.rows)]
        table = ["\n".join(f"| {' | '.join(line)} |" for line in lines)] if self.header else []
        first = (*self.before, self.verdict) if self.verdict else self.before
        return [f"## {escape(self.title)}", *map(escape, first), *table, *map(escape, self.notes)]


def escape(text: str) -> str:
    """Plain text as Markdown shows it: no letter of it is a mark, and no line ends in it.

    >>> escape("output[0] <= 1 | x")
    'output\\\\[0\\\\] \\\\<= 1 \\\\| x'
    """
    return MARKS.sub(lambda found: f"\\{found[0]}", " ".join(text.split()))
