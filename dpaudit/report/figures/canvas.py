"""The sheet that figures are drawn on: lines, areas and words at places in units of its own, and what becomes of it.

Everything is put on a matplotlib figure directly, without axes: a page has five figures, a suite a hundred pages, and
axes cost seven times as much. Units are 1/72 inch, one of them a CSS pixel of the SVG; y grows downwards.
"""

from __future__ import annotations

import io
import itertools
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox, TransformedBbox

from dpaudit.report.figures.colours import LIGHT
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.markup import inline
from dpaudit.results.wording.quoting import clean

WIDTH = 480.0
SIZE, SMALL = 12.0, 11.0  # of text
GLYPH = 0.57  # mean width of a letter, in its size
BACKENDS = ("backend", "backend_fallback", "toolbar", "interactive")
DASHES = {"dash": (4.0, 2.5), "dots": (1.2, 2.2)}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "dpaudit", "path.simplify": False, "text.parse_math": False}

Floats = Sequence[float] | npt.NDArray[np.float64]
Box = tuple[float, float, float, float]  # left, top, width, height


@contextmanager
def plain_style() -> Iterator[None]:
    """Matplotlib as it comes, whatever style the process has chosen; and no word about glyphs a font lacks."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params: Any = matplotlib.rcParams
        params.update(_defaults())
        yield


def _defaults() -> dict[str, Any]:
    """What differs from matplotlib as it comes: setting all of it again takes as long as three figures."""
    params: Any = matplotlib.rcParams
    wanted: dict[str, Any] = dict(matplotlib.rcParamsDefault.items()) | STYLE
    return {key: value for key, value in wanted.items() if key not in BACKENDS and params[key] != value}


@dataclass(slots=True)
class Sheet:
    """A figure under construction, `height` units high; `colour` names are those of `colours.LIGHT`."""

    height: float
    width: float = WIDTH
    figure: Figure = field(init=False)
    _place: Affine2D = field(init=False)
    _order: Iterator[int] = field(init=False, default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.figure = Figure(figsize=(self.width / 72.0, self.height / 72.0), dpi=72.0, facecolor="none")
        FigureCanvasSVG(self.figure)
        self._place = Affine2D().scale(1.0, -1.0).translate(0.0, self.height).scale(1.0 / 72.0)

    def line(
        self, x: Floats, y: Floats, colour: str, *, width: float = 1.6, kind: str = "line", clip: Box | None = None
    ) -> None:
        """A line through the points."""
        made = Line2D(x, y, color=LIGHT[colour], linewidth=width, solid_capstyle="butt")
        if kind in DASHES:
            made.set_linestyle((0.0, DASHES[kind]))
        self._put(made, clip)

    def lines(
        self,
        segments: Sequence[Sequence[tuple[float, float]]],
        colour: str,
        *,
        width: float = 1.0,
        clip: Box | None = None,
    ) -> None:
        """Many lines at once."""
        self._put(LineCollection(segments, colors=LIGHT[colour], linewidths=width), clip)

    def points(
        self,
        x: Floats,
        y: Floats,
        colour: str,
        *,
        shape: str = "o",
        size: float = 6.0,
        filled: bool = True,
        clip: Box | None = None,
    ) -> None:
        """A mark at each point, hollow where not `filled`."""
        face = LIGHT[colour] if filled else LIGHT["paper"]
        marks = Line2D(
            x,
            y,
            linestyle="none",
            marker=shape,
            markersize=size,
            markerfacecolor=face,
            markeredgecolor=LIGHT[colour],
            markeredgewidth=1.3,
        )
        self._put(marks, clip)

    def area(self, x: Floats, y: Floats, colour: str, *, clip: Box | None = None) -> None:
        """The polygon with these corners, filled."""
        corners = np.column_stack([np.asarray(x, np.float64), np.asarray(y, np.float64)])
        self._put(PathPatch(Path(corners, closed=False), facecolor=LIGHT[colour], linewidth=0.0), clip)

    def boxes(self, boxes: Sequence[Box], colour: str, *, clip: Box | None = None) -> None:
        """Filled rectangles, all in one path."""
        if not boxes:
            return
        corners = [point for x, y, w, h in boxes for point in ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))]
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(boxes)
        self._put(PathPatch(Path(corners, codes), facecolor=LIGHT[colour], linewidth=0.0), clip)

    def words(
        self,
        x: float,
        y: float,
        text: object,
        colour: str = "ink",
        *,
        size: float = SIZE,
        to: Literal["left", "center", "right"] = "left",
        upright: bool = False,
        bold: bool = False,
        url: str | None = None,
        room: float | None = None,
    ) -> None:
        """A user's or our own words, harmless, on the base line y; cut in the middle where they exceed `room`."""
        told = clean(text) if room is None else fitted(text, room, size)
        made = Text(
            x,
            y,
            told,
            color=LIGHT[colour],
            fontsize=size,
            horizontalalignment=to,
            verticalalignment="baseline",
            rotation=90.0 if upright else 0.0,
            rotation_mode="anchor",
            fontweight="bold" if bold else "normal",
        )
        made.set_url(url)
        self._put(made, None)

    def drawing(
        self,
        name: str,
        title: str,
        description: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        keep: bool = False,
    ) -> Drawing:
        """The finished drawing; with `keep` it holds its figure, so that it can become a PNG file."""
        raw = io.StringIO()
        self.figure.savefig(raw, format="svg", metadata={"Date": None})
        told = clean(title), clean(description, 1_000)
        table = tuple(tuple(clean(cell) for cell in row) for row in rows)
        svg = inline(raw.getvalue(), name, *told)
        return Drawing(name, *told, svg, tuple(columns), table, self.figure if keep else None)

    def _put(self, artist: Artist, clip: Box | None) -> None:
        artist.set_zorder(next(self._order))  # what is put later covers what was there
        artist.set_transform(self._place + self.figure.dpi_scale_trans)
        self.figure.add_artist(artist)
        if clip is not None:
            left, top, width, height = (each / 72.0 for each in clip)
            corners = Bbox.from_bounds(left, self.height / 72.0 - top - height, width, height)
            artist.set_clip_box(TransformedBbox(corners, self.figure.dpi_scale_trans))


def fitted(text: object, room: float, size: float = SIZE) -> str:
    """The text made harmless, and short enough for so many units.

    >>> fitted("noisy count of all the visits to a clinic", 120.0)
    'noisy coun...inic'
    """
    letters = max(4, int(room / (GLYPH * size)))
    told = clean(text, letters)
    while len(told) > 4 and breadth(told, size) > room:
        letters -= max(1, int((breadth(told, size) - room) / (2.0 * GLYPH * size)))
        if letters < 4:
            return told[:4]
        told = clean(text, letters)
        if len(told) > letters:  # escapes are longer than what they stand for
            told = f"{told[: max(1, letters - 3)]}..."
    return told


def breadth(text: str, size: float = SIZE) -> float:
    """About how wide a text is drawn."""
    return size * sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else GLYPH for letter in text)
