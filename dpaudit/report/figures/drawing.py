"""A drawing as a page holds it: SVG that stands inside HTML, the same numbers as a table, and a file of either kind."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.errors import InvalidSpec
from dpaudit.report.figures.colours import LIGHT, STYLE
from dpaudit.results.files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
DOTS = 200  # per inch of a PNG

Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure for people who look, and its numbers for people who cannot or would rather not.

    `svg` is one `<svg>` element without script, style sheet, date or reference to anything outside; its colours are
    variables which `STYLE` gives a value in light and in dark. `description` says in a sentence or two what there is
    to see, `columns` and `rows` hold what is drawn. `figure` is the matplotlib figure, kept by drawings that are
    meant for files too; a PNG needs it.
    """

    name: str
    title: str
    description: str
    svg: str
    columns: tuple[str, ...]
    rows: Rows
    figure: Figure | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.svg


def save(drawing: Drawing, path: str | os.PathLike[str]) -> Path:
    """Writes the drawing as an SVG or PNG file, whole or not at all, and returns the path.

    An SVG file carries its colours with it, light and dark; a PNG is light. Raises `InvalidSpec` for another suffix,
    and for a PNG of a drawing that was made for a page alone.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidSpec(f"{target.name}: a figure ends in {' or '.join(SUFFIXES)}, got {suffix or 'no suffix'!r}")
    if suffix == ".svg":
        return write_text(target, alone(drawing))
    if drawing.figure is None:
        raise InvalidSpec(f"{target.name}: this figure was drawn for a page alone; give a path that ends in .svg")
    from dpaudit.report.figures.canvas import plain_style

    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with plain_style():
            drawing.figure.savefig(
                beside, format="png", dpi=DOTS, facecolor=LIGHT["paper"], metadata={"Software": None}
            )
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    return target


def alone(drawing: Drawing) -> str:
    """The SVG as a document of its own: with its colours, and a ground to be seen on."""
    head, _, body = drawing.svg.partition(">")
    style = f"<style>{STYLE} svg{{background:var(--dp-paper)}}</style>"
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{style}{body}\n'
