"""A figure under construction: a rectangle with two scales, what is drawn at places in it, a key above, axis names.

Places are units of 1/72 inch from the top left corner; `Panel.at` turns numbers into them, and `drawing` writes what
`shapes` holds, in its order. A figure takes a millisecond; on matplotlib's own axes it took twenty.
Colours have a name for each role, of a contrast of at least 4.5 to the ground in light and dark: in SVG a variable.
"""

import itertools
import math
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Literal, NamedTuple

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.base.quoting import clean
from dpaudit.errors import InvalidSpec

Ticks = list[tuple[float, str]]

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
FAR = 20.0  # what lies further outside than this many lengths of the scale is drawn no further out


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` at 0 to `high` at 1; logarithmic where `log` is true, and then what is not positive lies far below.

    >>> Scale(1.0, 100.0, log=True)([1.0, 10.0]).round(9).tolist()
    [0.0, 0.5]
    """

    low: float
    high: float
    log: bool = False

    def __call__(self, values: Sequence[float] | Reals | float) -> Reals:
        at, low, high = np.asarray(values, np.float64), self.low, self.high
        if self.log:
            with np.errstate(divide="ignore"):
                at, low, high = np.log(np.maximum(at, 0.0)), math.log(low), math.log(high)
        return np.clip((at - low) / (high - low), -FAR, FAR)

    def grid(self, points: int) -> Reals:
        """Values from end to end at equal distances on the scale."""
        return (np.geomspace if self.log else np.linspace)(self.low, self.high, points)

    def ticks(self, most: int = 6) -> Ticks:
        """At most this many values with their labels.

        >>> [text for _, text in Scale(0.0, 2.3).ticks()]
        ['0', '0.5', '1', '1.5', '2']
        >>> [text for _, text in Scale(1e-5, 1.0, log=True).ticks(4)]
        ['1e-4', '0.01', '1']
        >>> [text for _, text in Scale(900, 2_000_000, log=True).ticks(4)]
        ['1,000', '10,000', '100,000', '1,000,000']
        """
        return self._decades(most) if self.log else self._straight(most)

    def _straight(self, most: int) -> Ticks:
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        for step in (power * part for part in STEPS):
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first < most:
                return [(k * step, number(k * step, step)) for k in range(first, last + 1)]
        return []

    def _decades(self, most: int) -> Ticks:
        low, high = self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            values = [at for power in powers for digit in digits if low <= (at := digit * 10.0**power) <= high]
            if len(values) < 2 and digits == (1, 2, 5):
                return [tick for tick in self._straight(most) if tick[0] > 0.0]
            if 2 <= len(values) <= most:
                return [(at, number(at)) for at in values]
        apart = math.ceil(len(values) / most)
        return [(at, number(at)) for at in values if round(math.log10(at)) % apart == 0]


def number(value: float, step: float | None = None) -> str:
    """A number at a tick: as many decimals as its `step` has, or as short as possible.

    >>> number(0.3, 0.1), number(20_000.0), number(1e-6), number(0.0)
    ('0.3', '20,000', '1e-6', '0')
    """
    if value == 0.0 or step is not None and abs(value) < 1e-9 * step:
        return "0"
    if 1e-3 <= abs(value) < 1e9:
        places = max(0, 2 - math.floor(math.log10(abs(value) if step is None else step)))
        mantissa, power = f"{value:,.{places}f}", ""
    else:
        mantissa, _, power = f"{value:.2e}".partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + (power and f"e{int(power)}")


def padded(values: Sequence[float], *, log: bool = False, share: float = 0.05) -> Scale:
    """A scale around the values, with some room at both ends; also where they are all one.

    >>> padded([1.0, 2.0], share=0.5)
    Scale(low=0.5, high=2.5, log=False)
    """
    finite = [value for value in values if math.isfinite(value) and (not log or value > 0.0)] or [1.0]
    low, high = min(finite), max(finite)
    if log:
        room = max((high / low) ** share, 1.05)
        return Scale(low / room, high * room, log=True)
    width = high - low or abs(high) or 1.0
    return Scale(low - share * width, high + share * width)


BOTH = {
    "ink": ("#1b2430", "#e7ebf0"),
    "muted": ("#55606e", "#a9b4c2"),
    "rule": ("#d9dee5", "#3b4552"),
    "paper": ("#ffffff", "#14191f"),
    "first": ("#0a5ea8", "#74b6f5"),
    "second": ("#a8480a", "#f3a468"),
    "claim": ("#6a3fa0", "#c3a6f0"),
    "allowed": ("#ede7f6", "#2e2740"),
    "event": ("#e3efe0", "#23382a"),
    "certified": ("#0b6e3c", "#63d391"),
    "refuted": ("#b0122a", "#ff8695"),
}
LIGHT = {name: light for name, (light, _) in BOTH.items()}
DARK = {name: dark for name, (_, dark) in BOTH.items()}


def _variables(values: dict[str, str]) -> str:
    return "".join(f"--dp-{name}:{value};" for name, value in values.items())


STYLE = f":root{{{_variables(LIGHT)}}} @media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
PAPER = f":root{{{_variables(LIGHT)}}}"
PRINTED = f"@media print{{{PAPER}}}"

NOTEBOOKS = (  # how a page that shows notebooks says that it is light, or dark: Jupyter, VS Code, Colab, Material
    '[data-jp-theme-light="true"],.vscode-light,.vscode-high-contrast-light,html[theme=light],[data-md-color-scheme=default]',
    '[data-jp-theme-light="false"],.vscode-dark,.vscode-high-contrast:not(.vscode-high-contrast-light),html[theme=dark],'
    "[data-md-color-scheme=slate]",
)


def _notebook() -> str:
    """The same colours for output in a notebook alone; the theme of the notebook goes first."""
    kinds = zip(("light", "dark"), map(_variables, (LIGHT, DARK)), NOTEBOOKS, strict=True)
    light, dark = ((f".dpaudit-shown{{color-scheme:{k};{v}}}", f":is({where}) ") for k, v, where in kinds)
    ground = (
        ".dpaudit-shown{background:var(--dp-paper);color:var(--dp-ink)} .dpaudit-shown svg{max-width:100%;height:auto}"
    )
    system = f"@media (prefers-color-scheme:dark){{{dark[0]}}}"
    return " ".join((light[0], system, *(where + rule for rule, where in (light, dark)), ground))


NOTEBOOK = _notebook()


WIDTH = 480.0
LEFT, RIGHT, BELOW = 58.0, 24.0, 40.0  # room for tick labels and the names of the axes
SIZE, SMALL = 12.0, 11.0  # of text
GLYPHS = {"screen": 0.57, "paper": 0.46}  # mean width of a letter, in its size
ROW, SWATCH = 18.0, 22.0  # of a key
EDGE = 1.3  # of a mark
APART = 13.0  # base lines of names below each other
CORNERS = {
    "point": [(np.cos(turn), np.sin(turn)) for turn in np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)],
    "diamond": [(-1.25, 0.0), (0.0, -1.25), (1.25, 0.0), (0.0, 1.25)],
    "block": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "up": [(-1.0, 0.9), (0.0, -1.0), (1.0, 0.9)],
    "down": [(-1.0, -0.9), (0.0, 1.0), (1.0, -0.9)],
    "cross": [(-1.0, -1.0), (0.0, -0.4), (1.0, -1.0), (0.4, 0.0), (1.0, 1.0), (0.0, 0.4), (-1.0, 1.0), (-0.4, 0.0)],
}
DASHES = {"line": (), "dash": (6.0, 4.0), "dots": (1.9, 3.4)}
HOLLOW = {"hollow": "point", "open": "diamond", "square": "block"}

SIZES = {"column": 3.33, "text": 7.0}  # inches: of a column, and of both, of the usual papers in two columns
STYLES = ("screen", "paper")
POINTS = 0.75  # of a unit where a size is given: text is of 9 and of 8.25 points then


class Ground(NamedTuple):
    """What figures are drawn for: their width in units, None for that of each; a style; and the points of a unit."""

    width: float | None = None
    style: str = "screen"
    points: float = 1.0


GROUND: ContextVar[Ground] = ContextVar("ground", default=Ground())  # noqa: B039 - a tuple


@contextmanager
def laid_out(size: str | float | None, style: str) -> Iterator[None]:
    """Figures that are drawn here are so wide, in inches or by a name of `SIZES`, and in this style."""
    inches = SIZES.get(size) if isinstance(size, str) else size
    if size is not None and not (isinstance(inches, int | float) and 2.0 <= inches <= 20.0):
        raise InvalidSpec(f"size must be {', '.join(map(repr, SIZES))} or a width of 2 to 20 inches, got {size!r}")
    ground = Ground(style=validate.one_of("style", style, STYLES))
    ground = ground if inches is None else Ground(inches * 72.0 / POINTS, style, POINTS)
    before = GROUND.set(ground)
    try:
        yield
    finally:
        GROUND.reset(before)


Numbers = Sequence[float] | Reals | float
Places = Reals  # (n, 2): units from the left and from the top
Dash = Literal["line", "dash", "dots"]
Kind = Literal["line", "dash", "dots", "area", "upright", "point", "hollow", "diamond", "open", "square", "cross"]
Key = tuple[Kind, str, str]  # how it is drawn, the name of its colour, what it is
Keys = Sequence[Key | Literal[False]]  # False: one that this figure does not need


@dataclass(frozen=True, slots=True)
class DrawnShape:
    """Lines, or areas where `fill` has one, in colours that are names of `LIGHT`."""

    paths: Sequence[Places]
    edge: str | None = None
    width: float = 0.0
    dash: tuple[float, ...] = ()
    fill: str | None = None
    clipped: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text that begins, has its middle or ends at a place, on its base line; harmless in a panel."""

    x: float
    y: float
    text: str
    colour: str = "ink"
    size: float = SIZE
    to: Literal["left", "center", "right"] = "left"
    upright: bool = False
    bold: bool = False
    url: str | None = None


class Panel:
    """What `line`, `area` and `marks` draw is cut off at the frame; keys, words and the frame itself are not.

    `high` is the height of the rectangle, `left` and `right` the room beside it; `below` is added to the sheet under it
    and the names of the axis. The title is that of the drawing and stands where the figure does, not in it.
    """

    def __init__(
        self,
        keys: Keys,
        x: Scale,
        y: Scale,
        *,
        high: float = 226.0,
        width: float = WIDTH,
        left: float = LEFT,
        right: float = RIGHT,
        below: float = BELOW,
    ) -> None:
        self.ground = GROUND.get()
        self.x, self.y, self.width = x, y, self.ground.width or width
        self.shapes: list[DrawnShape | Words] = []
        self.left, self.right = left, self.width - right
        self.top = self._key(keys, 6.0) + 8.0
        self.bottom = self.top + high
        self.height = self.bottom + below

    def at(self, x: Numbers, y: Numbers) -> Places:
        """The places of numbers on the two scales."""
        across = self.left + (self.right - self.left) * self.x(x)
        return np.column_stack(np.broadcast_arrays(across, self.bottom - (self.bottom - self.top) * self.y(y)))

    def line(self, *paths: Places, colour: str, width: float = 1.6, dash: Dash = "line") -> None:
        """Lines through places."""
        self.shapes.append(DrawnShape(paths, colour, width, DASHES[dash], clipped=True))

    def level(self, value: float, colour: str, dash: Dash = "line") -> None:
        """A line across at one height."""
        self.line(self.at((self.x.low, self.x.high), value), colour=colour, dash=dash)

    def area(self, *corners: Places, colour: str, least: float = 0.0) -> None:
        """Filled polygons, none thinner than `least`."""
        self.shapes.append(DrawnShape(corners, colour if least else None, least, fill=colour, clipped=True))

    def box(self, x: float, y: float, wide: float, high: float, colour: str) -> None:
        """A filled rectangle anywhere on the sheet, in units from its top left corner."""
        self.shapes.append(
            DrawnShape([np.array([(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)])], fill=colour)
        )

    def marks(self, *places: Places, colour: str, kind: str = "point", size: float = 6.0) -> None:
        """A mark at each place within the frame."""
        low, high = (self.left - 1.0, self.top - 1.0), (self.right + 1.0, self.bottom + 1.0)
        inside = [at for at in itertools.chain(*places) if (at >= low).all() and (at <= high).all()]
        self._marks(inside, colour, kind, size)

    def _marks(self, places: Sequence[Places], colour: str, kind: str, size: float) -> None:
        around, fill = np.array(CORNERS[HOLLOW.get(kind, kind)]) * size / 2.0, "paper" if kind in HOLLOW else colour
        self.shapes.append(DrawnShape([at + around for at in places], colour, EDGE, fill=fill))

    def words(self, words: Words, room: float | None = None) -> None:
        """A user's or our own words, made harmless; cut in the middle where they exceed `room`."""
        line = clean(words.text) if room is None else fitted(words.text, room, words.size)
        if line:
            self.shapes.append(replace(words, text=line))

    def frame(self, x_name: str, y_name: str, *, x_ticks: Ticks | None = None, y_ticks: Ticks | None = None) -> None:
        """The grid, the tick labels and the names of the axes."""
        across = self.x.ticks() if x_ticks is None else x_ticks
        up = self.y.ticks() if y_ticks is None else y_ticks
        middle, corner = (self.left + self.right) / 2.0, (self.left, self.bottom)
        columns = self.at([value for value, _ in across], self.y.low)[:, 0]
        rows = self.at(self.x.low, [value for value, _ in up])[:, 1]
        grid = [np.array([(x, self.top), (x, self.bottom)]) for x in columns]
        grid += [np.array([(self.left, y), (self.right, y)]) for y in rows]
        self.shapes.append(DrawnShape(grid, "rule", 0.7))
        self.shapes.append(DrawnShape([np.array([corner, (self.right, self.bottom)])], "muted", 0.9))
        for x, (_, text) in zip(columns, across, strict=True):
            self.words(Words(x, self.bottom + 15.0, text, "muted", SMALL, "center"))
        for y, (_, text) in zip(rows, up, strict=True):
            self.words(Words(self.left - 6.0, y + 0.35 * SMALL, text, "muted", SMALL, "right"))
        self.words(Words(middle, self.bottom + 33.0, x_name, to="center"), self.right)
        high = self.bottom - self.top
        self.words(Words(14.0, self.top + high / 2.0, y_name, to="center", upright=True), high + BELOW)

    def names_at(self, ends: Sequence[tuple[Places, str, str]]) -> None:
        """The names of lines, in their colours, right of the frame: each a little lower than the one before it."""
        ends = sorted(ends, key=lambda end: float(end[0][1]))
        heights: list[float] = []
        lowest = self.bottom + 4.0
        for place, _, _ in ends:
            heights.append(max(float(place[1]), heights[-1] + APART if heights else self.top))
        for k in reversed(range(len(heights))):
            heights[k] = lowest = min(heights[k], lowest - APART * (k + 1 < len(heights)))
        for (place, colour, text), y in zip(ends, heights, strict=True):
            self.shapes.append(DrawnShape([np.array([place, (self.right + 9.0, y)])], colour, 0.7))
            words = Words(self.right + 12.0, y + 0.35 * SMALL, text, colour, SMALL)
            self.words(words, self.width - self.right - 12.0)

    def _key(self, keys: Keys, top: float) -> float:
        """The entries in rows that fit the width; returns where they end."""
        x, middle = self.width, top - 0.5 * ROW
        for kind, colour, words in [each for each in keys if each]:
            first, *more = wrap(clean(words), int((self.width - SWATCH - 14.0) / breadth("n", SMALL)))
            long = SWATCH + breadth(first, SMALL) + 14.0
            if x + long - 2.0 > self.width:
                x, middle = 12.0, middle + ROW
            self._sample(kind, colour, x, middle)
            for k, text in enumerate((first, *more)):
                self.words(Words(x + SWATCH - 2.0, middle + k * SIZE + 0.35 * SMALL, text, size=SMALL))
            x, middle = (self.width if more else x + long), middle + len(more) * SIZE
        return middle + 0.5 * ROW

    def _sample(self, kind: Kind, colour: str, x: float, y: float) -> None:
        if kind == "area":
            self.box(x, y - 5.0, 15.0, 10.0, colour)
        elif kind == "upright":
            self.shapes.append(DrawnShape([np.array([(x + 7.5, y - 5.5), (x + 7.5, y + 5.5)])], colour, 2.2))
        elif kind in DASHES:
            self.shapes.append(DrawnShape([np.array([(x, y), (x + 15.0, y)])], colour, 2.0, DASHES[kind]))
        else:
            self._marks([np.array((x + 7.5, y))], colour, kind, 9.0 if kind == "square" else 6.0)


def fitted(text: object, room: float, size: float = SIZE) -> str:
    """The text made harmless, and short enough for this many units.

    >>> fitted("noisy count of all the visits to a clinic", 120.0)
    'noisy coun...inic'
    """
    for letters in range(max(4, int(room / breadth("n", size))), 3, -1):
        cut = clean(text, letters)
        if breadth(cut, size) > room and len(cut) > letters:  # escapes are longer than what they stand for
            cut = f"{cut[: max(1, letters - 3)]}..."
        if breadth(cut, size) <= room:
            return cut
    return cut[:4]


def breadth(text: str, size: float = SIZE) -> float:
    """About how wide a text is drawn."""
    glyph = GLYPHS[GROUND.get().style]
    return size * sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else glyph for letter in text)
