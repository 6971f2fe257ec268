"""Several results in one figure: a whole suite, a row an audit, and the bound of one audit over time."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.account.statements import certified, claimed, stamp
from dpaudit.base.numerals import bound, counted, up
from dpaudit.base.quoting import clean, standing
from dpaudit.base.validate import exact
from dpaudit.report.figures.drawing import Drawing, undrawn
from dpaudit.report.figures.panel import Keys, Panel, Scale
from dpaudit.report.figures.rows import Audit, Name, at_ends, rows_of
from dpaudit.report.figures.study import is_refuted
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult

TITLE = "Claimed against certified, audit by audit"
COLUMNS = ("audit", "claimed", "certified", "upper bound", "verdict")
NO_VERDICT = "no verdict"
CERTIFIED: Keys = (("point", "first", "certified, not refuted"), ("diamond", "refuted", "certified, REFUTED"))


def _audit(row: int, result: AuditResult) -> Audit:
    promised, lower = result.claim.promised(result.certificate.delta), result.certificate.lower
    if result.certificate.refuted and result.claim.value is not None:
        lower = max(lower, promised)  # bets may refute and certify no number beyond the claimed one
    return Audit(row, promised, lower, result.refuted, upper=_upper(result))


def _upper(result: AuditResult) -> float | None:
    """The upper bound where it is one of the parameter that is drawn, at the same delta."""
    if result.upper is None or result.bracket is None or result.claim.parameter != "epsilon":
        return None
    same = result.upper.delta == result.certificate.delta and not result.claim.orders()
    return result.upper.epsilon_upper if same and math.isfinite(result.upper.epsilon_upper) else None


@standing(undrawn)
def suite_drawing(suite: SuiteResult, links: Sequence[str | None] = ()) -> Drawing:
    """Claimed and certified values of all audits of a suite on one logarithmic scale, each in its claim's parameter.

    `links` are addresses in the folder of the page, one for each entry, or none. A thin line joins an upper bound with
    the certified one.
    """
    entries = suite.entries
    names = [
        Name(f"{entry.name} (!)" if _odd(entry) else entry.name, link, _odd(entry), "" if entry.result else NO_VERDICT)
        for entry, link in itertools.zip_longest(entries, [*links][: len(entries)])
    ]
    audits = [_audit(row, entry.result) for row, entry in enumerate(entries) if entry.result is not None]
    parameters = dict.fromkeys(result.claim.parameter for result in suite.results)
    axis = " or ".join(parameters) + ", of each claim" * (len(parameters) > 1)
    text = (
        f"{counted(len(entries), 'audit')}: for each what was claimed, an upright stroke, and what is certified, a "
        f"mark; {sum(each.refuted for each in audits)} refuted, {len(entries) - len(audits)} without a verdict. A mark "
        "to the right of its stroke exceeds the claim; one to the left does not show that the claim holds."
    )
    text += at_ends(audits)
    odd = sum(map(_odd, entries))
    text += f" (!) marks {counted(odd, 'verdict')} that nobody expected." if odd else ""
    table = [_cells(entry) for entry in entries]
    return Drawing.of(rows_of(names, audits, axis), "suite", TITLE, text, COLUMNS, table)


def _odd(entry: SuiteEntry) -> bool:
    return entry.result is not None and not entry.as_expected


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


POINT_COLUMNS = ("date", "commit", "runs", "claimed", "certified", "verdict")
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
    title = "The certified bound over time" + (f": {clean(name)}" if name else "")
    x, y = Scale(-0.5, max(1, len(points)) - 0.5), Scale(0.0, 1.12 * max(drawn) or 1.0)
    panel = Panel([("line", "claim", "claimed"), *CERTIFIED], x, y)
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
    for colour, kind, wanted in (("first", "point", False), ("refuted", "diamond", True)):
        marks = [panel.at(at, value) for at, value in known if is_refuted(points[at]) is wanted]
        panel.marks(*marks, colour=colour, kind=kind)
    text = (
        f"{counted(len(points), 'audit')} in the order of time: what each certified, and what was claimed. Audits with "
        "other runs or another confidence certify other bounds of the same loss."
    )
    rows = [_point_cells(*each) for each in zip(points, claims, lower, strict=True)]
    return Drawing.of(panel, "history", title, text, POINT_COLUMNS, rows)


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
    text = f"{len(points)} audits: {bounds}, the last of them {'REFUTED' if refuted else 'not refuted'}"
    return (
        f'<svg role="img" aria-label="{text}" width="{SPARK[0]}" height="{SPARK[1]}" fill="none">'
        f'<title>{text}</title><path d="{way(claims)}" style="stroke:var(--dp-claim);stroke-dasharray:4 3"/>'
        f'<path d="{way(lower)}" style="stroke:var(--dp-muted);stroke-width:1.5"/>'
        f'<path d="{mark}" style="fill:var(--dp-{"refuted" if refuted else "first"})"/></svg>'
    )


def _number(value: Any) -> float | None:
    """A number as a result stores it; the text "inf" is infinity."""
    return None if value is None else float(value)


def _point_cells(point: Mapping[str, Any], claimed: float | None, lower: float | None) -> tuple[str, ...]:
    commit = str(point.get("commit") or "")
    return (
        str(point.get("started") or ""),
        commit[:COMMIT] + ("-dirty" if commit.endswith("-dirty") else ""),
        f"{int(point.get('runs') or 0):,}",
        "" if claimed is None else exact(claimed),
        "" if lower is None else bound(lower),
        "REFUTED" if is_refuted(point) else "not refuted",
    )
