"""A whole suite in one figure: a row an audit, what was claimed, what is certified, what is known from above."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.report.figures.drawing import Drawing, undrawn
from dpaudit.report.figures.panel import SMALL, Key, Panel, Places, Scale, breadth
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.results.wording.numerals import counted, up
from dpaudit.results.wording.quoting import clean, standing
from dpaudit.results.wording.statements import certified, claimed, stamp

TITLE = "Claimed against certified, audit by audit"
COLUMNS = ("audit", "claimed", "certified", "upper bound", "verdict")
LEAST_ROOM, MOST_ROOM = 110.0, 260.0  # for the names
ACROSS = 322.0  # for the marks
HIGH, TALL = 15.0, 20.0  # of a row, where there are many and where there are few
MANY = 40
DECADES = 3.0  # that the scale reaches down to at the most
NO_VERDICT = "no verdict"


@dataclass(frozen=True, slots=True)
class _Row:
    """The numbers of one audit that came to a verdict, and where in the suite it stands."""

    place: int
    claimed: float
    lower: float
    upper: float | None
    refuted: bool

    @classmethod
    def of(cls, place: int, result: AuditResult) -> "_Row":
        promised, lower = result.claim.promised(result.certificate.delta), result.certificate.lower
        if result.certificate.refuted and result.claim.value is not None:
            lower = max(lower, promised)  # bets may refute and certify no number beyond the claimed one
        return cls(place, promised, lower, _upper(result), result.refuted)


def _upper(result: AuditResult) -> float | None:
    """The upper bound where it is one of the parameter that is drawn, at the same delta."""
    if result.upper is None or result.bracket is None or result.claim.parameter != "epsilon":
        return None
    same = result.upper.delta == result.certificate.delta and not result.claim.orders()
    return result.upper.epsilon_upper if same and math.isfinite(result.upper.epsilon_upper) else None


@standing(undrawn)
def suite_drawing(suite: SuiteResult, links: Sequence[str | None] = ()) -> Drawing:
    """Claimed and certified values of all audits of a suite on one logarithmic scale, each in its claim's parameter.

    `links` are addresses beside the page, one for each entry, or none at all. Where an upper bound is joined with the
    certified one, a thin line goes from one to the other.
    """
    entries = suite.entries
    rows = [_Row.of(place, entry.result) for place, entry in enumerate(entries) if entry.result is not None]
    keys: list[Key] = [
        ("upright", "claim", "claimed"),
        ("point", "first", "certified, not refuted"),
        ("diamond", "refuted", "certified, REFUTED"),
    ]
    if any(row.upper is not None for row in rows):
        keys.append(("hollow", "ink", "upper bound"))
    names = [f"{entry.name} (!)" if _odd(entry) else entry.name for entry in entries]
    wanted = max((breadth(clean(name), SMALL) for name in names), default=0.0) + 20.0
    room = min(MOST_ROOM, max(LEAST_ROOM, wanted))
    high = TALL if len(entries) <= MANY else HIGH
    y = Scale(max(1.0, len(entries)), 0.0)
    panel = Panel(keys, _scale(rows), y, high=high * y.low, width=room + ACROSS, left=room)
    panel.frame("in the parameter of each claim: epsilon, mu or rho", "", y_ticks=[])
    for k, (entry, name, link) in enumerate(itertools.zip_longest(entries, names, links)):
        base, odd = panel.top + high * (k + 0.5) + 0.35 * SMALL, _odd(entry)
        colour = "refuted" if odd else "ink"
        panel.words(room - 8.0, base, name, colour, size=SMALL, to="right", bold=odd, url=link, room=room - 16.0)
        if entry.result is None:
            panel.words(room + 6.0, base, NO_VERDICT, "muted", size=SMALL)
    _marks(panel, rows)
    table = [_cells(entry) for entry in entries]
    return Drawing.of(panel, "suite", TITLE, _described(suite, rows), COLUMNS, table)


def _odd(entry: SuiteEntry) -> bool:
    return entry.result is not None and not entry.as_expected


def _scale(rows: Sequence[_Row]) -> Scale:
    values = [value for row in rows for value in (row.claimed, row.lower, row.upper) if value and value < math.inf]
    values = values or [0.1, 1.0]
    top = max(values)
    claims = [row.claimed for row in rows if 0.0 < row.claimed < math.inf]
    least = max(min(values), min([*claims, top]) * 10.0**-DECADES / 3.0)
    span = max(top / least, 4.0)
    return Scale(least / span**0.06, least * span**1.06, log=True)


def _marks(panel: Panel, rows: Sequence[_Row]) -> None:
    """All strokes of one kind in one path, and all marks; what is beyond the scale stands at its end."""

    def at(row: _Row, *values: float | None) -> Places:
        ends = [min(panel.x.high, max(panel.x.low, value)) for value in values if value is not None]
        return panel.at(ends, row.place + 0.5)

    panel.line(*(at(row, row.claimed, row.lower, row.upper) for row in rows), colour="muted", width=0.8)
    ticks = [at(row, row.claimed, row.claimed) for row in rows]
    stroke = 0.36 * (panel.bottom - panel.top) / panel.y.low * np.array([(0.0, -1.0), (0.0, 1.0)])
    panel.line(*(tick + stroke for tick in ticks), colour="claim", width=2.2)
    upper = [at(row, row.upper) for row in rows if row.upper is not None]
    kept = [at(row, row.lower) for row in rows if not row.refuted]
    refuted = [at(row, row.lower) for row in rows if row.refuted]
    panel.marks(*upper, colour="ink", size=6.5, filled=False)
    panel.marks(*kept, colour="first", size=5.5)
    panel.marks(*refuted, colour="refuted", shape="D", size=5.5)


def _described(suite: SuiteResult, rows: Sequence[_Row]) -> str:
    odd = sum(map(_odd, suite.entries))
    text = (
        f"{counted(len(suite.entries), 'audit')}: for each what was claimed, an upright stroke, and what is certified, "
        f"a mark; {sum(row.refuted for row in rows)} refuted, {len(suite.entries) - len(rows)} without a verdict. A "
        "mark to the right of its stroke exceeds the claim; one to the left does not show that the claim holds."
    )
    if any(not 0.0 < value < math.inf for row in rows for value in (row.claimed, row.lower)):
        text += " What is 0 or without limit has no place on the logarithmic scale and stands at its end."
    return f"{text} (!) marks {counted(odd, 'verdict')} that nobody expected." if odd else text


def _cells(entry: SuiteEntry) -> tuple[str, ...]:
    result = entry.result
    if result is None:
        return entry.name, "", "", "", NO_VERDICT
    upper = _upper(result)
    return (
        entry.name,
        f"{result.claim.parameter} {claimed(result)}",
        certified(result),
        "" if upper is None else up(upper, 4),
        stamp(result) + ("" if entry.as_expected else ", not expected"),
    )
