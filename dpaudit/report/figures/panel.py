"""A panel: a rectangle of a sheet with two scales, a light grid, and a key in words above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpaudit.report.figures.canvas import SIZE, SMALL, WIDTH, Box, Floats, Sheet, breadth
from dpaudit.report.figures.scales import Scale, Ticks

LEFT, RIGHT, BELOW = 58.0, 14.0, 40.0  # room for tick labels and the names of the axes
ROW = 18.0  # of a key
SWATCH = 22.0

Kind = Literal["line", "dash", "dots", "area", "point", "hollow", "diamond", "upright", "down"]
Key = tuple[Kind, str, str]  # how it is drawn, the name of its colour, what it is
Reals = npt.NDArray[np.float64]


@dataclass(slots=True)
class Panel:
    """What is drawn in it is given in the units of its scales, and is cut off at its edges."""

    sheet: Sheet
    box: Box
    x: Scale
    y: Scale

    @property
    def clip(self) -> Box:
        """Its frame, and half a line around it."""
        left, top, width, height = self.box
        return left - 1.0, top - 1.0, width + 2.0, height + 2.0

    def px(self, values: Floats) -> Reals:
        """Places from left to right."""
        return np.asarray(self.box[0] + self.box[2] * self.x(np.asarray(values, np.float64)))

    def py(self, values: Floats) -> Reals:
        """Places from top to bottom."""
        return np.asarray(self.box[1] + self.box[3] * (1.0 - self.y(np.asarray(values, np.float64))))

    def frame(self, x_name: str, y_name: str, *, x_ticks: Ticks | None = None, y_ticks: Ticks | None = None) -> None:
        """The grid, the tick labels and the names of the axes."""
        left, top, width, height = self.box
        across = self.x.ticks() if x_ticks is None else x_ticks
        up = self.y.ticks() if y_ticks is None else y_ticks
        columns, rows = self.px([value for value, _ in across]), self.py([value for value, _ in up])
        grid = [[(float(x), top), (float(x), top + height)] for x in columns]
        grid += [[(left, float(y)), (left + width, float(y))] for y in rows]
        self.sheet.lines(grid, "rule", width=0.7)
        self.sheet.lines([[(left, top + height), (left + width, top + height)]], "muted", width=0.9)
        for at, (_, text) in zip(columns, across, strict=True):
            self.sheet.words(float(at), top + height + 15.0, text, "muted", size=SMALL, to="center")
        for at, (_, text) in zip(rows, up, strict=True):
            self.sheet.words(left - 6.0, float(at) + 0.35 * SMALL, text, "muted", size=SMALL, to="right")
        self.sheet.words(left + width / 2.0, top + height + 33.0, x_name, to="center", room=width + LEFT)
        self.sheet.words(14.0, top + height / 2.0, y_name, to="center", upright=True, room=height + BELOW)

    def line(self, x: Floats, y: Floats, colour: str, *, width: float = 1.6, kind: str = "line") -> None:
        """A line through the points."""
        self.sheet.line(self.px(x), self.py(y), colour, width=width, kind=kind, clip=self.clip)

    def level(self, value: float, colour: str, *, width: float = 1.6, kind: str = "line") -> None:
        """A line across at one height."""
        self.line([self.x.low, self.x.high], [value, value], colour, width=width, kind=kind)

    def points(
        self, x: Floats, y: Floats, colour: str, *, shape: str = "o", size: float = 6.0, filled: bool = True
    ) -> None:
        """A mark at each point; those at an edge are drawn whole."""
        left, top, width, height = self.box
        around = left - size, top - size, width + 2.0 * size, height + 2.0 * size
        self.sheet.points(self.px(x), self.py(y), colour, shape=shape, size=size, filled=filled, clip=around)

    def area(self, x: Floats, y: Floats, colour: str) -> None:
        """The polygon with these corners, filled."""
        self.sheet.area(self.px(x), self.py(y), colour, clip=self.clip)

    def bands(self, spans: Sequence[tuple[float, float]], colour: str) -> None:
        """Upright bands from top to bottom."""
        _, top, _, height = self.box
        ends = [self.px([low, high]) for low, high in spans]
        wide = [(float(a), top, max(float(b - a), 1.5), height) for a, b in ends]
        self.sheet.boxes(wide, colour, clip=self.clip)

    def boxes(self, corners: Sequence[tuple[float, float, float, float]], colour: str) -> None:
        """Rectangles, each as (x low, x high, y low, y high)."""
        found = []
        for x_low, x_high, y_low, y_high in corners:
            (a, b), (c, d) = self.px([x_low, x_high]), self.py([y_high, y_low])
            found.append((float(a), float(c), float(b - a), float(d - c)))
        self.sheet.boxes(found, colour, clip=self.clip)


def key_rows(keys: Sequence[Key], width: float) -> list[list[tuple[float, Key]]]:
    """The entries of a key in rows that fit the width, each with the place where it begins."""
    rows: list[list[tuple[float, Key]]] = []
    at = width
    for each in keys:
        long = SWATCH + breadth(each[2], SMALL) + 14.0
        if at + long - 14.0 > width:
            rows.append([])
            at = 0.0
        rows[-1].append((at, each))
        at += long
    return rows


def key_height(keys: Sequence[Key], width: float = WIDTH - 24.0) -> float:
    """How high the key becomes."""
    return ROW * len(key_rows(keys, width))


def key(sheet: Sheet, keys: Sequence[Key], *, left: float, top: float, width: float) -> float:
    """Draws the key and returns where it ends."""
    rows = key_rows(keys, width)
    for row, entries in enumerate(rows):
        middle = top + ROW * row + 0.5 * ROW
        for at, (kind, colour, text) in entries:
            x = left + at
            _sample(sheet, kind, colour, x, middle)
            sheet.words(x + SWATCH - 2.0, middle + 0.35 * SMALL, text, size=SMALL)
    return top + ROW * len(rows)


def _sample(sheet: Sheet, kind: Kind, colour: str, x: float, middle: float) -> None:
    if kind == "area":
        sheet.boxes([(x, middle - 5.0, 15.0, 10.0)], colour)
    elif kind == "upright":
        sheet.line([x + 7.5, x + 7.5], [middle - 5.5, middle + 5.5], colour, width=2.2)
    elif kind in ("point", "hollow", "diamond", "down"):
        shape = {"diamond": "D", "down": "v"}.get(kind, "o")
        sheet.points([x + 7.5], [middle], colour, shape=shape, filled=kind != "hollow")
    else:
        sheet.line([x, x + 15.0], [middle, middle], colour, width=2.0, kind=kind)


def plain_panel(
    keys: Sequence[Key], x: Scale, y: Scale, *, height: float = 300.0, width: float = WIDTH, heading: str | None = None
) -> Panel:
    """A sheet with one panel, its key above it; `heading` stands on top where a file is to be read on its own."""
    top = 6.0 if heading is None else 28.0
    sheet = Sheet(height + top - 6.0, width)
    if heading is not None:
        sheet.words(12.0, 19.0, heading, bold=True, size=SIZE + 1.0, room=sheet.width - 24.0)
    ends = key(sheet, keys, left=12.0, top=top, width=sheet.width - 24.0) + 8.0
    box = LEFT, ends, sheet.width - LEFT - RIGHT, sheet.height - ends - BELOW
    return Panel(sheet, box, x, y)
