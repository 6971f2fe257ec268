"""The figures of the study, in the style of every report: SVG for pages in light and dark, PNG, and their numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from audits.research.table import by_mechanism
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Dash, Key, Panel, Scale
from dpaudit.report.figures.study import claimed_against_certified

Row = dict[str, Any]
KINDS = ("sound", "harmless", "broken")
HIGH = 380.0
LEAST, MOST = 0.02, 60.0  # shares of the claim that the figure of all mechanisms shows
GAP = 6  # places between two kinds


def claims(rows: Sequence[Row]) -> Drawing:
    """Sound mechanisms at every claim: claimed, certified, exact and proved."""
    names = {"claimed": "claimed_epsilon", "certified": "epsilon_lower", "exact": "exact_epsilon"}
    told = [{names.get(key, key): value for key, value in row.items()} for row in rows if row["part"] == "claims"]
    return claimed_against_certified(told)


def mechanisms(rows: Sequence[Row]) -> Drawing:
    """Every mechanism at its own claim: the bounds of its repetitions, the best event's, and the exact loss."""
    held = by_mechanism(rows)
    groups = [sorted((each for each in held if each["kind"] == kind), key=_order) for kind in KINDS]
    groups = [group for group in groups if group]
    size = sum(map(len, groups)) + GAP * (len(groups) - 1)
    keys: list[Key] = [
        ("dash", "claim", "claimed"),
        ("line", "ink", "exact loss of the pair"),
        ("point", "second", "best known event"),
        ("upright", "first", "certified, all repetitions"),
        ("upright", "refuted", "the same, REFUTED"),
    ]
    panel = Panel(keys, Scale(-1.0, size), Scale(LEAST, 1.15 * MOST, log=True), high=HIGH)
    ticks = [(value, f"{value:g}") for value in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)]
    places, start = [], 0
    for group in groups:
        places.append((start + len(group) / 2.0 - 0.5, f"{group[0]['kind']}: {len(group)}"))
        start += len(group) + GAP
    panel.frame("mechanisms, by exact loss", "share of the claimed epsilon", x_ticks=places,
                y_ticks=[(LEAST, "less"), *ticks, (MOST, "∞")])  # fmt: skip
    panel.level(1.0, "claim", "dash")
    start = 0
    for group in groups:
        _draw(panel, group, start)
        start += len(group) + GAP
    text = (
        f"{len(held)} mechanisms, each at its own claim, by kind and rising exact loss. All values are shares of the "
        "claimed epsilon: the exact loss of the pair, what the best known event would certify, and from the least to "
        "the largest bound of the mechanism's repetitions. What is above 1 exceeds the claim."
    )
    columns = ("mechanism", "claimed", "certified, least", "largest", "best known event", "exact")
    table = [
        [each["mechanism"], *(_text(each[key]) for key in ("claimed", "least", "largest", "oracle", "exact"))]
        for group in groups
        for each in group
    ]
    return Drawing.of(panel, "mechanisms", "All mechanisms at their own claim", text, columns, table)


def _draw(panel: Panel, group: Sequence[Row], start: int) -> None:
    exact, oracle, lines = [], [], {"first": [], "refuted": []}
    for place, each in enumerate(group, start=start):
        shares = {key: _share(each[key]) for key in ("least", "median", "largest", "oracle", "exact")}
        if shares["exact"] is not None:
            exact.append(panel.at((place - 0.5, place + 0.5), shares["exact"]))
        if shares["oracle"] is not None:
            oracle.append(panel.at(place, shares["oracle"]))
        colour = "refuted" if 2 * each["refuted"] > each["audits"] else "first"
        low, high = shares["least"] or LEAST, shares["largest"] or LEAST
        reach = panel.at(place, (low, high))
        if abs(reach[0, 1] - reach[1, 1]) < 2.0:  # repetitions that are nearly one are seen too
            reach = reach + np.array([(0.0, 1.0), (0.0, -1.0)])
        lines[colour].append(reach)
    for colour, drawn in lines.items():
        panel.line(*drawn, colour=colour, width=1.3)
    if oracle:
        panel.marks(*oracle, colour="second", size=0.6)
    panel.line(*exact, colour="ink", width=1.6)


@dataclass(frozen=True, slots=True)
class Curve:
    """What mechanisms of one kind reach by the number of runs: the quarters of one number of their rows."""

    kind: str
    key: str
    spans: Mapping[int, tuple[list[float], int]]  # by runs: the three quarters, and of how many rows

    @property
    def look(self) -> tuple[str, str, Dash]:
        """Colour, kind of mark and dash."""
        best = self.key == "oracle"
        if self.kind == "broken":
            return "refuted", "open" if best else "diamond", "dash" if best else "line"
        return "first", "hollow" if best else "point", "dash" if best else "line"

    @property
    def words(self) -> str:
        """What it is, for the key and the table."""
        return f"{self.kind}, {'best known event' if self.key == 'oracle' else 'certified'}"


def against_runs(rows: Sequence[Row], *, finite: bool) -> Drawing | None:
    """The bound by the number of runs: quarters over the mechanisms that were audited at every size."""
    sized = {row["mechanism"] for row in rows if row["part"] == "runs"}
    used = [
        row
        for row in rows
        if row["part"] in ("runs", "seeds") and row["mechanism"] in sized and row["exact"]
        if None not in (row["certified"], row["oracle"]) and math.isfinite(row["exact"]) == finite
    ]
    sizes = sorted({row["runs"] for row in used})
    if len(sizes) < 2:
        return None
    curves = [_curve(used, kind, key, sizes, finite) for kind in ("sound", "broken") for key in ("oracle", "certified")]
    curves = [curve for curve in curves if curve.spans]
    keys: list[Key] = [(curve.look[2], curve.look[0], curve.words) for curve in curves]
    top = 1.05 if finite else 1.1 * max(span[2] for curve in curves for span, _ in curve.spans.values())
    title = "The bound against the number of runs" if finite else "The same where the loss is infinite"
    across = Scale(sizes[0] / 1.4, sizes[-1] * 1.4, log=True)
    panel = Panel(keys, across, Scale(0.0, top), high=260.0)
    x_ticks = [(float(size), f"{size:,}") for size in sizes]
    panel.frame("runs", "share of the exact loss" if finite else "epsilon", x_ticks=x_ticks)
    for place, curve in enumerate(curves):
        colour, kind, dash = curve.look
        aside = np.array((4.0 * (place - (len(curves) - 1) / 2.0), 0.0))
        ranges = (panel.at(size, (span[0], span[2])) + aside for size, (span, _) in curve.spans.items())
        panel.line(*ranges, colour=colour, width=0.9)
        middle = panel.at(list(curve.spans), [span[1] for span, _ in curve.spans.values()]) + aside
        panel.line(middle, colour=colour, dash=dash)
        panel.marks(middle, colour=colour, kind=kind, size=5.0)
    beyond = "1 is the price of finite runs" if finite else "infinity is closed by no number of runs"
    text = (
        f"{len({row['mechanism'] for row in used})} mechanisms at their own claim: medians, and bars from the lower to "
        "the upper quarter. What is between certified and best known event is search, and the luck of counts; what is "
        f"between that and {beyond}."
    )
    table = [
        (curve.words, f"{size:,}", *(f"{cut:.3f}" for cut in span), str(number))
        for curve in curves
        for size, (span, number) in curve.spans.items()
    ]
    columns = ("what", "runs", "lower quarter", "median", "upper quarter", "audits")
    return Drawing.of(panel, f"against-runs-{'finite' if finite else 'infinite'}", title, text, columns, table)


def _curve(rows: Sequence[Row], kind: str, key: str, sizes: Sequence[int], finite: bool) -> Curve:
    spans = {}
    for size in sizes:
        held = [row for row in rows if (row["kind"], row["runs"]) == (kind, size)]
        found = [row[key] / row["exact"] if finite else row[key] for row in held]
        if found:
            cuts = statistics.quantiles(found, n=4, method="inclusive") if len(found) > 1 else found * 3
            spans[size] = cuts, len(found)
    return Curve(kind, key, spans)


def drawings(rows: Sequence[Row]) -> list[Drawing]:
    """All figures that the rows have something for."""
    found = [mechanisms(rows)] if by_mechanism(rows) else []
    found += [each for finite in (True, False) if (each := against_runs(rows, finite=finite)) is not None]
    return found + ([claims(rows)] if any(row["part"] == "claims" for row in rows) else [])


def _order(each: Row) -> tuple[float, float]:
    return -1.0 if each["exact"] is None else each["exact"], each["median"]


def _share(value: float | None) -> float | None:
    return None if value is None else min(MOST, max(LEAST, value))


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
