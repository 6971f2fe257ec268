"""Figures of a study: the rows of a sweep's table, many audits in one picture.

Rows are dicts with the columns of `dpaudit.auditing.sweeping`; a row without the numbers that a figure needs is left
out of it, and the description says how many were. Drawings of this module can be saved as SVG and as PNG.
All raise `InvalidSpec` where no row has what they show.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.report.figures.canvas import plain_style
from dpaudit.report.figures.curves import curves, finished, left_out_words
from dpaudit.report.figures.drawing import Drawing, save
from dpaudit.report.figures.panel import Key, Panel, plain_panel
from dpaudit.report.figures.scales import Scale, Ticks, number, padded
from dpaudit.report.figures.series import grouped, named
from dpaudit.results.verdict import Verdict
from dpaudit.results.wording.numerals import counted, decimals, down, up

__all__ = ["bound_against_runs", "claimed_against_certified", "power_curves", "runs_to_refute", "save"]

Row = Mapping[str, Any]
SQUARE, BROAD = 480.0, 640.0  # units of the scatter
MOST_TICKS = 10  # claimed values that are written at the axis
DECADES = 2.0  # below the claims that values are drawn at; smaller ones stand at the edge
CROWD = 5  # a claim of at least one audit for so many of the most frequent claim has a column of its own
WIDEST, FILLED = 0.2, 0.86  # of the axis that a column may have; of its room that is used
FEWEST = 8  # audits that fill a column
SHORTEST = 2.0  # units that a level line reaches to both sides of its audit
SAME = 0.01  # units between heights that nobody can tell apart
CLOSE = 4.0  # units between audits, below which their marks are small


def claimed_against_certified(rows: Sequence[Row], *, heading: str | None = "Claimed against certified") -> Drawing:
    """A scatter of every audit: across what was claimed, up what is certified, with the diagonal between them.

    Where an exact loss or an upper bound is known, an upright line goes from the certified value up to it. All are
    epsilons at the row's own delta.
    """
    used = [row for row in rows if _number(row, "claimed_epsilon") and _number(row, "epsilon_lower") is not None]
    _some(used, "claimed_epsilon and epsilon_lower")
    with plain_style():
        return _scatter(used, len(rows) - len(used), heading)


def bound_against_runs(rows: Sequence[Row], *, heading: str | None = "The bound against the number of runs") -> Drawing:
    """The certified epsilon by the number of runs, a line a procedure: the median of its audits at each number."""
    used = [row for row in rows if _number(row, "epsilon_lower") is not None and _number(row, "runs")]
    _some(used, "runs and epsilon_lower")
    series = grouped(used, "runs", lambda row: _number(row, "epsilon_lower"))
    claims = {value for row in used if (value := _number(row, "claimed_epsilon")) is not None}
    with plain_style():
        return curves(
            "bound-against-runs",
            heading,
            series,
            "runs",
            "certified epsilon",
            len(rows) - len(used),
            tell=_down,
            level=claims.pop() if len(claims) == 1 else None,
            log_x=True,
        )


def power_curves(rows: Sequence[Row], *, heading: str | None = "How often a violation is found") -> Drawing:
    """The share of audits that refute their claim, by the number of runs, a line a procedure.

    Only rows whose claim is known to be wrong for the pair count: true_epsilon above claimed_epsilon, or, where no
    truth is known, a mechanism that the catalogue lists as broken.
    """
    used = [row for row in rows if row.get("verdict") is not None and _number(row, "runs") and _violated(row)]
    _some(used, "runs and a verdict on a claim that is known to be wrong")
    series = grouped(used, "runs", lambda row: 1.0 if _refuted(row) else 0.0, mean=True)
    with plain_style():
        return curves(
            "power", heading, series, "runs", "share refuted", len(rows) - len(used), tell=_share, top=1.0, log_x=True
        )


def runs_to_refute(rows: Sequence[Row], *, heading: str | None = "Runs until a violation is refuted") -> Drawing:
    """The runs that refuted a claim, by how far the truth exceeds it; a line a procedure, medians.

    Rows that were not refuted are counted in the description: a median over the others alone flatters.
    """
    used = [row for row in rows if _number(row, "runs_to_refute") and _violated(row) and (_excess(row) or 0.0) > 0.0]
    _some(used, "runs_to_refute, and a true_epsilon above claimed_epsilon")
    missed = sum(_violated(row) and row.get("verdict") is not None and not _refuted(row) for row in rows)
    series = grouped(used, _excess, lambda row: _number(row, "runs_to_refute"))
    more = f"{counted(missed, 'audit')} of a wrong claim that did not refute it: not shown, nor in a median."
    with plain_style():
        return curves(
            "runs-to-refute",
            heading,
            series,
            "true epsilon above the claimed one",
            "runs",
            len(rows) - len(used) - missed,
            tell=_whole,
            log_x=True,
            log_y=True,
            more=more if missed else "",
        )


def _some(rows: Sequence[Row], needed: str) -> None:
    """Raises `InvalidSpec` where there is nothing to draw."""
    if not rows:
        raise InvalidSpec(f"no row of the table has what this figure shows: {needed}")


def _number(row: Row, name: str) -> float | None:
    """A finite number of a row; None where there is none, "inf" among them."""
    value = row.get(name)
    if value is None or value == "" or isinstance(value, bool):
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def _refuted(row: Row) -> bool:
    return getattr(row.get("verdict"), "value", row.get("verdict")) == Verdict.REFUTED.value


def _truth(row: Row) -> float | None:
    exact = _number(row, "exact_epsilon")
    return _number(row, "true_epsilon") if exact is None else exact


def _excess(row: Row) -> float | None:
    truth, claimed = _truth(row), _number(row, "claimed_epsilon")
    return None if truth is None or claimed is None else float(f"{truth - claimed:.3g}")


def _violated(row: Row) -> bool:
    excess = _excess(row)
    return bool(row.get("broken")) if excess is None else excess > 0.0


def _scatter(rows: Sequence[Row], left_out: int, heading: str | None) -> Drawing:
    audits = [_Audit.of(row) for row in rows]
    claimed = [each.claimed for each in audits]
    shown = [each for audit in audits for each in audit.values if each > 0.0] or [1.0]
    least = max(min(shown), min([*claimed, max(shown)]) * 10.0**-DECADES)
    x = padded(claimed, log=True, share=0.12)
    y = padded([least, max(shown)], log=True)
    panel = plain_panel(_keys(audits), x, y, height=SQUARE, width=BROAD, heading=heading)
    places, width = _beside(audits, x)
    y_ticks = [tick for tick in y.ticks() if y.at(tick[0]) > 0.04]
    if min(each.lower for each in audits) < y.low:  # marks at the bottom edge
        y_ticks.append((y.low, "less"))
    panel.frame("claimed epsilon", "epsilon", x_ticks=_claim_ticks(claimed, x), y_ticks=y_ticks)
    panel.line([x.low, x.high], [x.low, x.high], "rule", width=1.2)
    _marks(panel, audits, [float(each) for each in panel.px(places)], width * panel.box[2])
    text = (
        f"{counted(len(rows), 'audit')}: across the epsilon that was claimed, up what is known of it. Audits of one "
        "claim, and of claims close to it, stand beside each other as a column, those that are proved first, then by "
        "falling exact loss; each has a level line at its own claimed value, and what is above it exceeds the claim."
    )
    columns = ("mechanism", "claimed", "certified, at least", "exact", "proved, at most", "verdict")
    table = [_cells(row, audit) for row, audit in zip(rows, audits, strict=True)]
    return finished(panel, "claimed-against-certified", heading, text + left_out_words(left_out), columns, table)


@dataclass(frozen=True, slots=True)
class _Audit:
    """A row of the scatter in numbers."""

    claimed: float
    lower: float
    truth: float | None
    proved: float | None
    refuted: bool

    @classmethod
    def of(cls, row: Row) -> _Audit:
        claimed, lower = _number(row, "claimed_epsilon") or 0.0, _number(row, "epsilon_lower") or 0.0
        return cls(claimed, lower, _truth(row), _number(row, "proved"), _refuted(row))

    @property
    def values(self) -> tuple[float, ...]:
        """What is drawn of it."""
        return tuple(each for each in (self.claimed, self.lower, self.truth, self.proved) if each is not None)

    @property
    def claim(self) -> float:
        """What it claims, as it was meant: 8 and 8.000000000000002 are one claim."""
        return float(f"{self.claimed:.3g}")

    @property
    def order(self) -> tuple[bool, float, float]:
        """Its place among those of its column."""
        return self.proved is None, -(self.truth or 0.0), -self.lower


def _keys(audits: Sequence[_Audit]) -> list[Key]:
    keys: list[Key] = [("line", "claim", "claimed")]
    if any(each.proved is not None for each in audits):
        keys.append(("down", "certified", "proved for all inputs, at its tip"))
    if any(each.truth is not None for each in audits):
        keys.append(("line", "ink", "exact loss of the pair"))
    if not all(each.refuted for each in audits):
        keys.append(("point", "first", "certified"))
    if any(each.refuted for each in audits):
        keys.append(("diamond", "refuted", "certified, REFUTED"))
    return keys


def _claim_ticks(claimed: Sequence[float], x: Scale) -> Ticks | None:
    """The claimed values, or those of most audits, where they can stand beside each other."""
    asked = sorted(_crowds(claimed) or {float(f"{each:.3g}") for each in claimed})
    apart = min((x.at(b) - x.at(a) for a, b in itertools.pairwise(asked)), default=1.0)
    return [(each, number(each)) for each in asked] if len(asked) <= MOST_TICKS and apart > 0.05 else None


def _crowds(claimed: Sequence[float]) -> dict[float, int]:
    """How many audits there are of a claim, for the claims of which there are several, and many beside the others."""
    found = Counter(float(f"{each:.3g}") for each in claimed)
    most = max(found.values())
    return {value: audits for value, audits in found.items() if audits > 1 and CROWD * audits >= most}


def _beside(audits: Sequence[_Audit], x: Scale) -> tuple[list[float], float]:
    """Places across, and the room of an audit as a share of the axis: a column for each claim that many make.

    A claim between two columns has a place of its own, one within a column stands in it.
    """
    crowds = sorted(_crowds([each.claimed for each in audits]))
    gaps = [x.at(b) - x.at(a) for a, b in itertools.pairwise(crowds)]
    width = FILLED * min([WIDEST, *gaps])
    columns: dict[float, list[int]] = {}
    for k, each in enumerate(audits):
        nearest = min(crowds, key=lambda value: abs(x.at(value) - x.at(each.claim)), default=each.claim)
        inside = abs(x.at(nearest) - x.at(each.claim)) <= width / 2.0
        columns.setdefault(nearest if inside else each.claim, []).append(k)
    places = [0.0] * len(audits)
    length = math.log(x.high / x.low)
    fullest = max(map(len, columns.values()))
    room = width / max(fullest, FEWEST)
    for claim, members in columns.items():
        members.sort(key=lambda k: (audits[k].claim != claim, *audits[k].order))
        for at, k in enumerate(members):
            places[k] = claim * math.exp(room * (at - (len(members) - 1) / 2.0) * length)
    return places, room


def _marks(panel: Panel, audits: Sequence[_Audit], across: Sequence[float], room: float) -> None:
    """The levels of the claims, and over them what is proved, exact and certified; thin where audits stand close."""
    close = room < CLOSE
    half = max(room / 2.0, SHORTEST) if close else 5.0
    tops = [max((v for v in (each.truth, each.proved) if v is not None), default=None) for each in audits]
    if not close:
        low = panel.py([max(each.lower, panel.y.low) for each in audits])
        up = [(a, float(b), float(panel.py([top])[0])) for a, b, top in zip(across, low, tops, strict=True) if top]
        panel.sheet.lines([[(a, b), (a, c)] for a, b, c in up], "muted", width=0.6, clip=panel.clip)
    claims = _levels(panel, across, [each.claimed for each in audits], half)
    panel.sheet.lines([[(a, height), (b, height)] for a, b, height in claims], "claim", width=3.4, clip=panel.clip)
    proved = [(a, each.proved) for a, each in zip(across, audits, strict=True) if each.proved is not None]
    if proved:
        tips = panel.py([value for _, value in proved])
        panel.sheet.points([a for a, _ in proved], tips - 6.0, "certified", shape="v", size=5.0)
    exact = _levels(panel, across, [each.truth for each in audits], half)
    if exact:  # as one path, for there may be hundreds
        x = [place for a, b, _ in exact for place in (a, b, math.nan)]
        y = [place for _, _, height in exact for place in (height, height, math.nan)]
        panel.sheet.line(x, y, "ink", width=1.5, clip=panel.clip)
    heights = [float(each) for each in panel.py([max(each.lower, panel.y.low) for each in audits])]
    marks = [(a, b) for a, b, each in zip(across, heights, audits, strict=True) if not each.refuted]
    if close:
        panel.sheet.boxes([(a - 1.5, b - 1.5, 3.0, 3.0) for a, b in marks], "first")
    elif marks:
        panel.sheet.points([a for a, _ in marks], [b for _, b in marks], "first", size=4.6)
    marks = [(a, b) for a, b, each in zip(across, heights, audits, strict=True) if each.refuted]
    if marks:
        panel.sheet.points([a for a, _ in marks], [b for _, b in marks], "refuted", shape="D", size=4.6)


def _levels(
    panel: Panel, across: Sequence[float], values: Sequence[float | None], half: float
) -> list[tuple[float, float, float]]:
    """From where to where, and how high, a level line goes for each value; neighbours at one height share one."""
    known = sorted((at, max(value, panel.y.low)) for at, value in zip(across, values, strict=True) if value is not None)
    found: list[tuple[float, float, float]] = []
    for at, value in known:
        left, height = at - half, float(panel.py([value])[0])
        if found and abs(height - found[-1][2]) < SAME and left <= found[-1][1] + 1.0:
            left = found.pop()[0]
        found.append((left, at + half, height))
    return found


def _cells(row: Row, audit: _Audit) -> tuple[str, ...]:
    verdict = "REFUTED" if audit.refuted else "not refuted"
    return named(row), f"{audit.claimed:g}", _down(audit.lower), _up(audit.truth), _up(audit.proved), verdict


def _down(value: float) -> str:
    return down(value, decimals(value, 3)) if value > 0.0 else "0"


def _share(value: float) -> str:
    return f"{value:.3f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _up(value: float | None) -> str:
    return "" if value is None else up(value, decimals(value, 4)) if value > 0.0 else "0"
