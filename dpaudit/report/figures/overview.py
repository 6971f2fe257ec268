"""A whole suite in one figure: a row an audit, what was claimed, what is certified, what is known from above."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.report.figures.canvas import SMALL, Sheet, breadth, plain_style
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import BELOW, Key, Panel, key, key_height
from dpaudit.report.figures.scales import Scale
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.results.verdict import Verdict
from dpaudit.results.wording.numerals import counted, up
from dpaudit.results.wording.quoting import clean
from dpaudit.results.wording.statements import certified, claimed, verdict_text

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
    """The numbers of one audit; None where there is none."""

    entry: SuiteEntry
    claimed: float | None = None
    lower: float | None = None
    upper: float | None = None
    refuted: bool = False


def suite_drawing(suite: SuiteResult, links: Sequence[str | None] = ()) -> Drawing:
    """Claimed and certified values of all audits of a suite on one logarithmic scale, each in its claim's parameter.

    `links` are addresses beside the page, one for each entry, or none at all. Where an upper bound is joined with the
    certified one, a thin line goes from one to the other.
    """
    rows = [_row(entry) for entry in suite.entries]
    addresses = [*links, *[None] * (len(rows) - len(links))]
    with plain_style():
        return _draw(suite, rows, addresses)


def _row(entry: SuiteEntry) -> _Row:
    result = entry.result
    if result is None:
        return _Row(entry)
    promised = result.claim.promised(result.certificate.delta)
    lower = result.certificate.lower
    if result.certificate.refuted:  # bets may refute and certify no number beyond the claimed one
        lower = max(lower, promised) if _own(result) else lower
    return _Row(entry, promised, lower, _upper(result), result.verdict is Verdict.REFUTED)


def _own(result: AuditResult) -> bool:
    """Whether the claim has its parameter as a number of its own, as a curve has not."""
    return getattr(result.claim, result.claim.parameter, None) is not None


def _upper(result: AuditResult) -> float | None:
    """The upper bound where it is one of the parameter that is drawn, at the same delta."""
    if result.upper is None or result.bracket is None or result.claim.parameter != "epsilon":
        return None
    same = result.upper.delta == result.certificate.delta and not hasattr(result.claim, "order")
    return result.upper.epsilon_upper if same and math.isfinite(result.upper.epsilon_upper) else None


def _scale(rows: Sequence[_Row]) -> Scale:
    values = [
        value
        for row in rows
        for value in (row.claimed, row.lower, row.upper)
        if value is not None and 0.0 < value < math.inf
    ] or [0.1, 1.0]
    top = max(values)
    claims = [row.claimed for row in rows if row.claimed and math.isfinite(row.claimed)] or [top]
    least = max(min(values), min(*claims, top) * 10.0**-DECADES / 3.0)
    span = max(top / least, 4.0)
    return Scale(least / span**0.06, least * span**1.06, log=True)


def _odd(row: _Row) -> bool:
    return row.entry.result is not None and not row.entry.as_expected


def _draw(suite: SuiteResult, rows: Sequence[_Row], links: Sequence[str | None]) -> Drawing:
    high = TALL if len(rows) <= MANY else HIGH
    keys: list[Key] = [
        ("upright", "claim", "claimed"),
        ("point", "first", "certified, not refuted"),
        ("diamond", "refuted", "certified, REFUTED"),
    ]
    if any(row.upper is not None for row in rows):
        keys.append(("hollow", "ink", "upper bound"))
    names = [f"{row.entry.name} (!)" if _odd(row) else row.entry.name for row in rows]
    wanted = max((breadth(clean(name), SMALL) for name in names), default=0.0) + 20.0
    room = min(MOST_ROOM, max(LEAST_ROOM, wanted))
    width = room + ACROSS
    sheet = Sheet(key_height(keys, width - 24.0) + 10.0 + BELOW + high * max(1, len(rows)), width)
    top = key(sheet, keys, left=12.0, top=4.0, width=sheet.width - 24.0) + 6.0
    panel = Panel(
        sheet, (room, top, sheet.width - room - 20.0, high * max(1, len(rows))), _scale(rows), Scale(0.0, 1.0)
    )
    panel.frame("in the parameter of each claim: epsilon, mu or rho", "", y_ticks=[])
    for place, (row, name, link) in enumerate(zip(rows, names, links, strict=True)):
        base = top + high * (place + 0.5) + 0.35 * SMALL
        odd = _odd(row)
        colour = "refuted" if odd else "ink"
        sheet.words(room - 8.0, base, name, colour, size=SMALL, to="right", bold=odd, url=link, room=room - 16.0)
        if row.entry.result is None:
            sheet.words(room + 6.0, base, NO_VERDICT, "muted", size=SMALL)
    _marks(panel, rows, [top + high * (place + 0.5) for place in range(len(rows))], high)
    return sheet.drawing("suite", TITLE, _described(suite, rows), COLUMNS, [_cells(row) for row in rows])


def _marks(panel: Panel, rows: Sequence[_Row], middles: Sequence[float], high: float) -> None:
    """All ticks of one kind in one path, all marks of one kind in one go."""
    left, _, width, _ = panel.box

    def at(value: float) -> float:
        """The place on the scale; what is beyond it stands at its end."""
        return left + width * min(1.0, max(0.0, panel.x.at(value)))

    links, ticks = [], []
    marks: dict[str, list[tuple[float, float]]] = {"refuted": [], "kept": [], "upper": []}
    for row, y in zip(rows, middles, strict=True):
        if row.claimed is None or row.lower is None:
            continue
        ends = [at(row.claimed), at(row.lower)]
        links.append([(min(ends), y), (max(ends), y)])
        ticks.append([(at(row.claimed), y - 0.36 * high), (at(row.claimed), y + 0.36 * high)])
        marks["refuted" if row.refuted else "kept"].append((at(row.lower), y))
        if row.upper is not None:
            links.append([(at(row.lower), y), (at(row.upper), y)])
            marks["upper"].append((at(row.upper), y))
    sheet = panel.sheet
    sheet.lines(links, "muted", width=0.8)
    sheet.lines(ticks, "claim", width=2.2)
    for kind, colour, shape, size, filled in (
        ("upper", "ink", "o", 6.5, False),
        ("kept", "first", "o", 5.5, True),
        ("refuted", "refuted", "D", 5.5, True),
    ):
        if marks[kind]:
            places = [x for x, _ in marks[kind]], [y for _, y in marks[kind]]
            sheet.points(*places, colour, shape=shape, size=size, filled=filled)


def _described(suite: SuiteResult, rows: Sequence[_Row]) -> str:
    refuted = sum(row.refuted for row in rows)
    missing = sum(row.entry.result is None for row in rows)
    odd = sum(row.entry.result is not None and not row.entry.as_expected for row in rows)
    text = (
        f"{counted(len(rows), 'audit')}: for each what was claimed, an upright stroke, and what is certified, a mark; "
        f"{refuted} refuted, {missing} without a verdict. A mark to the right of its stroke exceeds the claim; one to "
        "the left does not show that the claim holds."
    )
    if any(value is not None and not 0.0 < value < math.inf for row in rows for value in (row.claimed, row.lower)):
        text += " What is 0 or without limit has no place on the logarithmic scale and stands at its end."
    return f"{text} (!) marks {counted(odd, 'verdict')} that nobody expected." if odd else text


def _cells(row: _Row) -> tuple[str, ...]:
    name, result = clean(row.entry.name), row.entry.result
    if result is None:
        return name, "", "", "", NO_VERDICT
    told = "" if row.upper is None else up(row.upper, 4)
    odd = "" if row.entry.as_expected else ", not expected"
    return (
        name,
        f"{result.claim.parameter} {claimed(result)}",
        certified(result),
        told,
        verdict_text(result.verdict) + odd,
    )
