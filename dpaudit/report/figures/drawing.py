"""A drawing as a page holds it: SVG that stands inside HTML, the same numbers as a table, and a file of either kind."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpaudit.errors import InvalidSpec
from dpaudit.report.figures.colours import STYLE
from dpaudit.report.figures.panel import Panel
from dpaudit.report.figures.png import write_png
from dpaudit.report.figures.svg import inline
from dpaudit.results.files import write_text
from dpaudit.results.wording.quoting import clean

SUFFIXES = (".svg", ".png")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure for people who look, and its numbers for people who cannot or would rather not.

    `svg` is one `<svg>` element without script, style sheet, date or reference to anything outside; its colours are
    variables which `STYLE` gives a value in light and in dark. `description` says in a sentence or two what there is
    to see, `columns` and `rows` hold what is drawn.
    """

    name: str
    title: str
    description: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    panel: Panel = field(repr=False, compare=False)

    @classmethod
    def of(
        cls,
        panel: Panel,
        name: str,
        title: str,
        description: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
    ) -> Drawing:
        """The drawing of a finished panel, its words made harmless."""
        told = clean(title), clean(description, 1_000)
        table = tuple(tuple(clean(cell) for cell in row) for row in rows)
        return cls(name, *told, inline(panel, name, *told), tuple(columns), table, panel)


def save(drawing: Drawing, path: str | os.PathLike[str]) -> Path:
    """Writes the drawing as an SVG or PNG file, whole or not at all, and returns the path.

    An SVG file carries its colours with it, light and dark, and a ground to be seen on; a PNG is light. Raises
    `InvalidSpec` for another suffix.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidSpec(f"{target.name}: a figure ends in {' or '.join(SUFFIXES)}, got {suffix or 'no suffix'!r}")
    if suffix == ".svg":
        head, _, body = drawing.svg.partition(">")
        style = f"<style>{STYLE} svg{{background:var(--dp-paper)}}</style>"
        return write_text(target, f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{style}{body}\n')
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write_png(drawing.panel, beside)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    return target
