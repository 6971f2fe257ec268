"""What many audits claimed and certified, row by row under a name: those of a suite, and those of a sweep."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpaudit.base.quoting import clean
from dpaudit.report.figures.panel import GROUND, RIGHT, SMALL, WIDTH, Kind, Panel, Places, Scale, Words, breadth, padded

HIGH, TALL, TALLEST = 15.0, 20.0, 34.0  # of a row: of many, of few, and where its name stands above it
MANY = 40
BESIDE = 0.45  # of the width that names may have beside the marks
DECADES = 3.0  # that the scale reaches down to at the most
STROKE = 0.36  # of a row: from its middle to either end of a claim's stroke
EDGE = 0.08  # of the scale, where a label of its end has the place
ENDS = " What is 0 or without limit has no place on the logarithmic scale and stands at its end."


@dataclass(frozen=True, slots=True)
class Name:
    """What stands beside a row, or above it; a row without a mark may have a word in its place."""

    text: str
    url: str | None = None
    odd: bool = False
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Audit:
    """The numbers of one audit, and the row that it stands in.

    `refuted` is whether it refuted its claim, `alone` that it did so at its own confidence and not together with the
    other audits; `beyond` marks a bound above the exact loss. What is None is not known.
    """

    row: int
    claimed: float
    lower: float | None
    refuted: bool
    alone: bool = False
    exact: float | None = None
    upper: float | None = None
    estimate: float | None = None
    beyond: bool = False

    @property
    def values(self) -> list[float]:
        """All that is drawn of it."""
        known = (self.claimed, self.lower, self.exact, self.upper, self.estimate)
        return [value for value in known if value is not None]


MARKS: tuple[tuple[Kind, str, str, float, Callable[[Audit], float | None]], ...] = (  # with their sizes
    ("upright", "claim", "claimed", 3.6, lambda audit: audit.claimed),
    ("upright", "ink", "exact loss", 1.3, lambda audit: audit.exact),
    ("hollow", "ink", "upper bound", 6.5, lambda audit: audit.upper),
    ("cross", "muted", "estimate, not certified", 5.0, lambda audit: audit.estimate),
    ("square", "second", "above the exact loss", 11.0, lambda audit: audit.lower if audit.beyond else None),
    ("point", "first", "certified", 5.5, lambda audit: None if audit.refuted else audit.lower),
    ("diamond", "refuted", "certified, REFUTED", 5.5, lambda a: a.lower if a.refuted and not a.alone else None),
    ("open", "refuted", "REFUTED alone, not with the others (Holm)", 5.5, lambda a: a.lower if a.alone else None),
)


def rows_of(names: Sequence[Name], audits: Sequence[Audit], parameter: str) -> Panel:
    """All audits on one logarithmic scale, in the rows of their names; `parameter` is the name of the axis.

    Names stand beside the rows where there is room, otherwise above them, whole.
    """
    wide = GROUND.get().width or WIDTH
    wanted = max((breadth(clean(each.text), SMALL) for each in names), default=0.0) + 20.0
    beside = wanted <= BESIDE * wide
    left = max(wanted, 60.0) if beside else RIGHT
    high = TALLEST if not beside else TALL if len(names) <= MANY else HIGH
    scale, size = _scale(audits), max(1, len(names))
    keys = tuple((kind, colour, text) for kind, colour, text, _, of in MARKS if any(of(a) is not None for a in audits))
    panel = Panel(keys, scale, Scale(float(size), 0.0), high=high * size, left=left)
    panel.frame(parameter, "", x_ticks=_ticks(scale, audits), y_ticks=[])
    middle = 0.5 if beside else 0.74
    between = np.arange(size) + (0.5 if beside else 0.0)  # guides to a name that stands beside, or parts of rows
    panel.line(*(panel.at((scale.low, scale.high), row) for row in between), colour="rule", width=0.7)
    for k, each in enumerate(names):
        x, y = (left - 8.0, middle) if beside else (left, 0.26)
        base, colour = panel.top + high * (k + y) + 0.35 * SMALL, "refuted" if each.odd else "ink"
        room = left - 16.0 if beside else panel.width - left - 8.0
        to: Literal["left", "right"] = "right" if beside else "left"
        panel.words(Words(x, base, each.text, colour, SMALL, to, bold=each.odd, url=each.url), room)
        panel.words(Words(left + 6.0, panel.top + high * (k + middle) + 0.35 * SMALL, each.instead, "muted", SMALL))

    def at(row: int, *values: float) -> Places:
        return panel.at([min(scale.high, max(scale.low, value)) for value in values], row + middle)

    panel.line(*(at(audit.row, min(audit.values), max(audit.values)) for audit in audits), colour="muted", width=0.8)
    stroke = STROKE * min(high, TALL) * np.array([(0.0, -1.0), (0.0, 1.0)])
    for kind, colour, _, mark, of in MARKS:  # each kind in one path, what is there twice once
        known = dict.fromkeys((audit.row, value) for audit in audits if (value := of(audit)) is not None)
        if kind == "upright":
            panel.line(*(at(row, value, value) + stroke for row, value in known), colour=colour, width=mark)
        else:
            panel.marks(*(at(row, value) for row, value in known), colour=colour, kind=kind, size=mark)
    return panel


def at_ends(audits: Sequence[Audit]) -> str:
    """The sentence about what has no place on the scale; empty where all has."""
    return ENDS if any(not 0.0 < value < math.inf for audit in audits for value in audit.values) else ""


def _scale(audits: Sequence[Audit]) -> Scale:
    values = [value for audit in audits for value in audit.values if 0.0 < value < math.inf] or [0.1, 1.0]
    claims = [audit.claimed for audit in audits if 0.0 < audit.claimed < math.inf]
    least = min([*claims, max(values)]) * 10.0**-DECADES / 3.0
    return padded([max(values) / 4.0, *(max(least, value) for value in values)], log=True, share=0.06)


def _ticks(scale: Scale, audits: Sequence[Audit]) -> list[tuple[float, str]]:
    """Those of the scale, and of its ends where something stands there that lies beyond."""
    values = [value for audit in audits for value in audit.values]
    ends = [(scale.low, "less")] if min(values, default=scale.low) < scale.low else []
    ends += [(scale.high, "∞")] if max(values, default=0.0) == math.inf else []
    away = [float(scale(at)) for at, _ in ends]
    apart = (tick for tick in scale.ticks() if all(abs(scale(tick[0]) - end) > EDGE for end in away))
    return [*apart, *ends]
