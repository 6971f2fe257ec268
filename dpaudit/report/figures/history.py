"""The certified bound of one mechanism over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.report.figures.canvas import plain_style
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, plain_panel
from dpaudit.report.figures.scales import Scale
from dpaudit.results.verdict import Verdict
from dpaudit.results.wording.numerals import bound, counted, exact
from dpaudit.results.wording.quoting import clean

COLUMNS = ("date", "commit", "runs", "claimed", "certified", "verdict")
MOST_TICKS = 5
COMMIT = 12  # characters of one


def history_drawing(points: Sequence[Mapping[str, Any]], *, name: str = "", parameter: str = "epsilon") -> Drawing:
    """The certified bound of one audit after another, in the order given, with what was claimed each time.

    A point has `started` (a date as text), `commit` (or None), `lower` (or `epsilon_lower`), `claimed` (or None),
    `verdict` ("REFUTED" or "NOT_REFUTED", or the enum) and `runs`. The drawing can be saved as SVG and PNG.
    """
    with plain_style():
        return _draw([dict(point) for point in points], name, parameter)


def _draw(points: Sequence[dict[str, Any]], name: str, parameter: str) -> Drawing:
    lower = [_lower(point) for point in points]
    claims = [_number(point.get("claimed")) for point in points]
    refuted = [_refuted(point) for point in points]
    drawn = [each for each in (*lower, *claims) if each is not None and math.isfinite(each)] or [1.0]
    keys: list[Key] = [
        ("line", "claim", "claimed"),
        ("point", "first", "certified, not refuted"),
        ("diamond", "refuted", "certified, REFUTED"),
    ]
    title = "The certified bound over time" + (f": {clean(name)}" if name else "")
    panel = plain_panel(
        keys, Scale(-0.5, max(1, len(points)) - 0.5), Scale(0.0, 1.12 * max(drawn) or 1.0), heading=title
    )
    panel.frame("", f"lower bound of {parameter}", x_ticks=_dates(points))
    x = list(range(len(points)))
    for start, end, value in _steps(claims):
        panel.line([start - 0.4, end + 0.4], [value, value], "claim")
    known = [(at, min(value, panel.y.high)) for at, value in zip(x, lower, strict=True) if value is not None]
    if known:
        panel.line([at for at, _ in known], [value for _, value in known], "muted", width=0.8)
    for colour, shape, wanted in (("first", "o", False), ("refuted", "D", True)):
        marks = [(at, value) for at, value in known if refuted[at] is wanted]
        if marks:
            panel.points([at for at, _ in marks], [value for _, value in marks], colour, shape=shape)
    text = (
        f"{counted(len(points), 'audit')} in the order of time: what each certified, and what was claimed. Audits with "
        "other runs or another confidence certify other bounds of the same loss."
    )
    rows = [_cells(point, value) for point, value in zip(points, lower, strict=True)]
    return panel.sheet.drawing("history", title, text, COLUMNS, rows, keep=True)


def _number(value: Any) -> float | None:
    """A number as a result stores it; the text "inf" is infinity."""
    return None if value is None else float(value)


def _lower(point: Mapping[str, Any]) -> float | None:
    own = _number(point.get("lower"))
    return _number(point.get("epsilon_lower")) if own is None else own


def _refuted(point: Mapping[str, Any]) -> bool:
    return getattr(point.get("verdict"), "value", point.get("verdict")) == Verdict.REFUTED.value


def _dates(points: Sequence[Mapping[str, Any]]) -> list[tuple[float, str]]:
    apart = math.ceil(len(points) / MOST_TICKS)
    return [(float(at), str(points[at].get("started") or "")[:10]) for at in range(0, len(points), apart or 1)]


def _steps(claims: Sequence[float | None]) -> list[tuple[int, int, float]]:
    """Stretches of one claimed value: (first, last, value)."""
    found: list[tuple[int, int, float]] = []
    for at, value in enumerate(claims):
        if value is None or not math.isfinite(value):
            continue
        if found and found[-1][1] == at - 1 and found[-1][2] == value:
            found[-1] = (found[-1][0], at, value)
        else:
            found.append((at, at, value))
    return found


def _cells(point: Mapping[str, Any], lower: float | None) -> tuple[str, ...]:
    commit, claimed = str(point.get("commit") or ""), point.get("claimed")
    return (
        str(point.get("started") or ""),
        commit[:COMMIT] + ("-dirty" if commit.endswith("-dirty") else ""),
        f"{int(point.get('runs') or 0):,}",
        "" if claimed is None else exact(float(claimed)),
        "" if lower is None else bound(lower),
        "REFUTED" if _refuted(point) else "not refuted",
    )
