"""The certified bound of one mechanism over time."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, Panel, Scale
from dpaudit.report.figures.study import is_refuted
from dpaudit.results.wording.numerals import bound, counted, exact
from dpaudit.results.wording.quoting import clean

COLUMNS = ("date", "commit", "runs", "claimed", "certified", "verdict")
MOST_TICKS = 5
SPARK, EDGE, MOST_TOLD = (96, 26), 5.0, 12  # a line in a cell: its size, what is left around it, bounds it says
COMMIT = 12  # characters of one


def history_drawing(points: Sequence[Mapping[str, Any]], *, name: str = "", parameter: str = "epsilon") -> Drawing:
    """The certified bound of one audit after another, in the order given, with what was claimed each time.

    A point has `started` (a date as text), `commit` (or None), `lower` (or `epsilon_lower`), `claimed` (or None),
    `verdict` ("REFUTED" or "NOT_REFUTED", or the enum) and `runs`. The drawing can be saved as SVG and PNG.
    """
    lower = [_number(point.get("epsilon_lower") if point.get("lower") is None else point["lower"]) for point in points]
    claims = [_number(point.get("claimed")) for point in points]
    drawn = [value for value in (*lower, *claims) if value is not None and math.isfinite(value)] or [1.0]
    keys: list[Key] = [
        ("line", "claim", "claimed"),
        ("point", "first", "certified, not refuted"),
        ("diamond", "refuted", "certified, REFUTED"),
    ]
    title = "The certified bound over time" + (f": {clean(name)}" if name else "")
    x, y = Scale(-0.5, max(1, len(points)) - 0.5), Scale(0.0, 1.12 * max(drawn) or 1.0)
    panel = Panel(keys, x, y, heading=title)
    apart = math.ceil(len(points) / MOST_TICKS) or 1
    dates = [(float(at), str(points[at].get("started") or "")[:10]) for at in range(0, len(points), apart)]
    panel.frame("", f"lower bound of {parameter}", x_ticks=dates)
    for claim, stretch in itertools.groupby(enumerate(claims), key=lambda each: each[1]):
        places = [at for at, _ in stretch]
        if claim is not None and math.isfinite(claim):
            panel.line(panel.at((places[0] - 0.4, places[-1] + 0.4), claim), colour="claim")
    known = [(at, min(value, y.high)) for at, value in enumerate(lower) if value is not None]
    if known:
        panel.line(panel.at(*zip(*known, strict=True)), colour="muted", width=0.8)
    for colour, shape, wanted in (("first", "o", False), ("refuted", "D", True)):
        marks = [panel.at(at, value) for at, value in known if is_refuted(points[at]) is wanted]
        panel.marks(*marks, colour=colour, shape=shape)
    text = (
        f"{counted(len(points), 'audit')} in the order of time: what each certified, and what was claimed. Audits with "
        "other runs or another confidence certify other bounds of the same loss."
    )
    rows = [_cells(*each) for each in zip(points, claims, lower, strict=True)]
    return Drawing.of(panel, "history", title, text, COLUMNS, rows)


def sparkline(points: Sequence[Mapping[str, Any]]) -> str:
    """The certified bounds as a line in a cell, an `<svg>` that also says them; empty for one alone."""
    lower, claims = ([_number(point.get(key)) or 0.0 for point in points] for key in ("lower", "claimed"))
    if len(points) < 2 or not all(map(math.isfinite, (*lower, *claims))):
        return ""
    top = max(*lower, *claims) or 1.0
    across = np.linspace(EDGE, SPARK[0] - EDGE, len(points))

    def way(values: Sequence[float]) -> str:
        up = SPARK[1] - EDGE - (SPARK[1] - 2.0 * EDGE) * np.array(values) / top
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(across, up, strict=True))

    end, refuted = way(lower).rpartition("L")[2], is_refuted(points[-1])
    mark = f"M{end}m-4 0l4 -4l4 4l-4 4Z" if refuted else f"M{end}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z"
    bounds = ", ".join(map(bound, lower[-MOST_TOLD:]))
    told = f"{len(points)} audits: {bounds}, the last of them {'REFUTED' if refuted else 'not refuted'}"
    return (
        f'<svg role="img" aria-label="{told}" width="{SPARK[0]}" height="{SPARK[1]}" fill="none">'
        f'<title>{told}</title><path d="{way(claims)}" style="stroke:var(--dp-claim);stroke-dasharray:4 3"/>'
        f'<path d="{way(lower)}" style="stroke:var(--dp-muted);stroke-width:1.5"/>'
        f'<path d="{mark}" style="fill:var(--dp-{"refuted" if refuted else "first"})"/></svg>'
    )


def _number(value: Any) -> float | None:
    """A number as a result stores it; the text "inf" is infinity."""
    return None if value is None else float(value)


def _cells(point: Mapping[str, Any], claimed: float | None, lower: float | None) -> tuple[str, ...]:
    commit = str(point.get("commit") or "")
    return (
        str(point.get("started") or ""),
        commit[:COMMIT] + ("-dirty" if commit.endswith("-dirty") else ""),
        f"{int(point.get('runs') or 0):,}",
        "" if claimed is None else exact(claimed),
        "" if lower is None else bound(lower),
        "REFUTED" if is_refuted(point) else "not refuted",
    )
