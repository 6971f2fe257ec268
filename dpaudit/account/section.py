"""The account of a finding: sections by level, of one type for every kind of finding, in the order in which one reads.

A format takes the sections up to a level, and writes no sentence of its own about a finding.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import singledispatch
from typing import Any, Generic, TypeVar

from dpaudit.base.quoting import line, standing

Of = TypeVar("Of")


class Level(IntEnum):
    """How far one reads: the verdict alone, what a printed result shows, all that was done, what a reviewer asks."""

    HEADLINE = 1
    PAGE_ONE = 2
    DETAIL = 3
    REVIEWER = 4


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its title, what stands over the columns, rows of as many texts, and which columns hold numbers.

    `note` says what a reader must know about it; `left_out` counts the rows that were too many. `below`: it stands
    below the sentences of its section, and does not say the same.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    note: str = ""
    left_out: int = 0
    below: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The table as text, its columns aligned."""
        cells = (self.head, *self.rows)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        texts = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells)
        notes = [self.note] * bool(self.note) + [f"and {self.left_out:,} more rows"] * bool(self.left_out)
        return (*(each.rstrip() for each in texts), *notes)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of an account: its key, which is its title too, sentences, a table, and lines to paste into a shell.

    Where it has sentences and a table that is not below them, these say the same: text shows the sentences, a page the
    table.
    """

    key: str
    level: Level
    lines: tuple[str, ...] = ()
    table: Table | None = None
    code: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The key as a heading."""
        return self.key[:1].upper() + self.key[1:]

    @property
    def anchor(self) -> str:
        """The key as the name of a place on a page."""
        return "-".join("".join(each if each.isalnum() else " " for each in self.key.lower()).split())

    @property
    def text(self) -> tuple[str, ...]:
        """All of it as lines of plain text; a sentence that ends in a colon and one line of code are one line."""
        if len(self.lines) == len(self.code) == 1 and self.lines[0].endswith(":"):
            return (f"{self.lines[0]} {self.code[0]}",)
        shown = self.table is not None and (self.table.below or not self.lines)
        return (*self.lines, *(self.table.lines if self.table is not None and shown else ()), *self.code)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences that a page shows: not those that say what its table says."""
        return self.lines if self.table is None or self.table.below else ()


@dataclass(frozen=True, slots=True)
class Topic(Generic[Of]):
    """How a section is made of a finding: its key, its level, and what tells its lines, its table and its code.

    Where one of them raises, a line that says so takes its place. A section of which nothing is told is left out.
    """

    key: str
    level: Level
    tell: Callable[[Of], Iterable[str]] = lambda finding: ()
    table: Callable[[Of], Table | None] = lambda finding: None
    code: Callable[[Of], Iterable[str]] = lambda finding: ()

    def section(self, finding: Of) -> Section:
        """The section of this finding."""
        table = standing(lambda text: Table("A table", ("",), ((text,),)))(self.table)(finding)
        return Section(
            self.key,
            self.level,
            standing(line)(lambda: tuple(self.tell(finding)))(),
            table if table is not None and table.rows else None,
            standing(lambda text: (f"# {text}",))(lambda: tuple(self.code(finding)))(),
        )


@dataclass(frozen=True, slots=True)
class Account:
    """What there is to say of a finding of a `kind`, the headline first; `tone` is how its verdict is shown.

    `tone` is `refuted`, `kept`, `accepted` or `none`. `whole`: whether no section was left out. `stamp` is the verdict
    in as few words as there are, with which the headline begins; empty for a finding that is no single verdict.
    """

    kind: str
    tone: str
    sections: tuple[Section, ...]
    whole: bool = True
    stamp: str = ""

    @classmethod
    def of(
        cls, kind: str, tone: str, parts: Sequence[Topic[Of]], finding: Of, up_to: Level, stamp: str = ""
    ) -> "Account":
        """The account that these parts make of a finding, up to a level; parts beyond it are not made."""
        sections = (each.section(finding) for each in parts if each.level <= up_to)
        told = tuple(each for each in sections if each.lines or each.table or each.code)
        return cls(kind, tone, told, all(each.level <= up_to for each in parts), stamp)

    @property
    def headline(self) -> str:
        """The whole account in one line: its verdict, where it has one, and what it rests on."""
        return self.sections[0].lines[0]

    @property
    def rest(self) -> str:
        """The headline without the verdict that it begins with."""
        return self.headline.removeprefix(self.stamp).strip()

    def up_to(self, level: Level) -> "Account":
        """The sections up to a level."""
        kept = tuple(each for each in self.sections if each.level <= level)
        return replace(self, sections=kept, whole=self.whole and len(kept) == len(self.sections))

    def at(self, level: Level) -> tuple[Section, ...]:
        """The sections of a level."""
        return tuple(each for each in self.sections if each.level is level)

    def __getitem__(self, key: str) -> Section:
        """The section of this key; an empty one of the last level where it is left out."""
        return next((each for each in self.sections if each.key == key), Section(key, Level.REVIEWER))

    def lines(self, more: str = "") -> Iterator[str]:
        """The account as plain text: the headline, then titles in a left column; `more` says where the rest is told."""
        head, *rest = self.sections
        yield from head.lines
        texts = [(each.key, each.text) for each in rest] + ([("more", (more,))] if more and not self.whole else [])
        width = max((len(key) for key, _ in texts), default=0) + 2
        for key, text in texts:
            for title, each in zip(itertools.chain([key], itertools.repeat("")), text, strict=False):
                yield f"{title:<{width}}{each}".rstrip()

    def __str__(self) -> str:
        return "\n".join(self.lines())


@singledispatch
def account(finding: Any, up_to: Level = Level.REVIEWER) -> Account:
    """The account of a finding up to a level. Raises `TypeError` for a kind of finding that is not registered."""
    raise TypeError(f"nothing is known of how to tell a {type(finding).__name__}")
