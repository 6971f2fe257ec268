"""Both output distributions where the witness looks: from search runs, to look at and never evidence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dpaudit.events import Event, Partition
from dpaudit.report.figures.canvas import SMALL, Sheet
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import BELOW, LEFT, RIGHT, Key, Panel, key, key_height
from dpaudit.report.figures.scales import Scale, number
from dpaudit.results.histogram import Histogram
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import counted
from dpaudit.results.wording.quoting import clean

TITLE = "Both output distributions, from search runs"
BETS_TITLE = "Both output distributions, from the first runs of the blocks"
COLUMNS = ("output", "runs on the first dataset", "runs on the second dataset", "in the witness event")
PANEL = 180.0  # units high
TOKEN = 17.0  # of a row of tokens
RARE = 0.02  # an event of a smaller share is seen on a logarithmic scale alone
MOST_TICKS = 10  # of single values

Span = tuple[float, float]


def distributions(result: AuditResult) -> Drawing | None:
    """The histogram of a result; None where it has none."""
    held = result.histogram
    if held is None or not (held.runs_first and held.runs_second):
        return None
    numbers = bool(held.edges or held.values)
    keys: list[Key] = [("line", "first", "first dataset"), ("dash", "second", "second dataset")]
    spans, tokens = _spans(result), _tokens(result)
    cuts = _cuts(result)
    if cuts:
        keys.append(("line", "certified", "bins of the witness"))
    elif spans and numbers or tokens & set(held.labels):
        told = "event of the witness, further out" if _further_out(held, spans) else "event of the witness"
        keys.append(("area", "event", told))
    rows = TOKEN * len(held.labels) + (24.0 if held.labels else 0.0)
    sheet = Sheet(key_height(keys) + 16.0 + (PANEL + BELOW if numbers else 0.0) + rows + (8.0 if held.labels else 0.0))
    top = key(sheet, keys, left=12.0, top=6.0, width=sheet.width - 24.0) + 8.0
    if numbers:
        box = LEFT, top, sheet.width - LEFT - RIGHT, PANEL
        rare = _rare(held, spans)
        if held.edges:
            _binned(sheet, box, held, spans, cuts, rare)
        else:
            _single(sheet, box, held, spans, cuts, rare)
        top += PANEL + BELOW
    if held.labels:
        _words(sheet, top, held, tokens)
    title = BETS_TITLE if result.blocks else TITLE
    return sheet.drawing("distributions", title, _described(result, held), COLUMNS, _table(held, spans, tokens))


def _described(result: AuditResult, held: Histogram) -> str:
    sides = f"{counted(held.runs_first, 'run')} on the first dataset and {held.runs_second:,} on the second"
    if result.blocks:  # the runs that bets learn from are bet on too, each before it is learned from
        where, rests = "the first runs of the blocks", "on the bets, each frozen before its block, and on fresh runs"
    else:
        where, rests = "search runs", "on fresh runs alone"
    return (
        f"How often {clean(held.feature)} took which value in {where}: {sides}. The witness is "
        f"{clean(result.witness.event, 200)}. To look at, never evidence: the verdict rests {rests}."
    )


def _spans(result: AuditResult) -> tuple[Span, ...]:
    event = result.witness.event
    return event.intervals if isinstance(event, Event) else ()


def _further_out(held: Histogram, spans: Sequence[Span]) -> bool:
    """Whether the whole event lies beyond the edges, where the outermost steps hold all there is."""
    ends = held.edges
    return bool(ends and spans) and all(low >= ends[-1] or high <= ends[0] for low, high in spans)


def _tokens(result: AuditResult) -> set[str]:
    event = result.witness.event
    if not isinstance(event, Event):
        return set()
    return {label for token in event.tokens for label in (token.label, f"token {token.code:x}")}


def _cuts(result: AuditResult) -> tuple[float, ...]:
    event = result.witness.event
    if not isinstance(event, Partition):
        return ()
    ends = {end for each in event.bins for span in each.intervals for end in span}
    return tuple(sorted(end for end in ends if math.isfinite(end)))


def _rare(held: Histogram, spans: Sequence[Span]) -> bool:
    """Whether the event is so rare on both sides that straight axes would hide it."""
    if not spans:
        return False
    inside = [_inside(low, high, spans) for low, high in _cells(held)]
    shares = [
        sum(count for count, within in zip(side, inside, strict=True) if within) / runs
        for side, runs in ((held.first, held.runs_first), (held.second, held.runs_second))
    ]
    return max(shares) < RARE


def _cells(held: Histogram) -> list[Span]:
    """Where each count lies, as (low, high]; a single value is both of its ends."""
    if held.values:
        return [(value, value) for value in held.values]
    ends = (-math.inf, *held.edges, math.inf)
    return list(itertools.pairwise(ends))


def _inside(low: float, high: float, spans: Sequence[Span]) -> bool:
    """Whether a cell lies in one of the spans (a, b]."""
    return any(a < high <= b if low == high else a <= low and high <= b for a, b in spans)


def _shares(held: Histogram) -> tuple[list[float], list[float]]:
    first = [count / held.runs_first for count in held.first]
    return first, [count / held.runs_second for count in held.second]


def _heights(values: Sequence[float], rare: bool, runs: int) -> Scale:
    top = max([*values, 1e-12])
    return Scale(0.4 / runs, top * 2.0, log=True) if rare else Scale(0.0, top * 1.06)


def _binned(
    sheet: Sheet,
    box: tuple[float, float, float, float],
    held: Histogram,
    spans: Sequence[Span],
    cuts: Sequence[float],
    rare: bool,
) -> None:
    """Steps whose area is the share of the runs; what lies beyond the edges is a step of usual width at either end."""
    edges = held.edges
    usual = (edges[-1] - edges[0]) / max(1, len(edges) - 1) or abs(edges[0]) or 1.0
    ends = [edges[0] - usual, *edges, edges[-1] + usual]
    widths = [(high - low) / usual for low, high in itertools.pairwise(ends)]
    sides = [[share / width for share, width in zip(side, widths, strict=True)] for side in _shares(held)]
    heights = _heights([*sides[0], *sides[1]], rare, max(held.runs_first, held.runs_second))
    panel = Panel(sheet, box, Scale(ends[0] - 0.5 * usual, ends[-1] + 0.5 * usual), heights)
    low, high = panel.x.low, panel.x.high
    inner = edges[0] - 0.5 * usual, edges[-1] + 0.5 * usual  # an event beyond is shown at the rim
    panel.bands([(max(low, min(a, inner[1])), min(high, max(b, inner[0]))) for a, b in spans], "event")
    across = [(at, text) for at, text in panel.x.ticks() if edges[0] <= at <= edges[-1]]
    panel.frame(held.feature, "share of the runs", x_ticks=across)
    for at in cuts:
        panel.line([at, at], [heights.low, heights.high], "certified", width=0.8)
    x = [ends[0], *(end for end in ends[1:-1] for _ in (0, 1)), ends[-1]]
    for side, colour, kind in zip(sides, ("first", "second"), ("line", "dash"), strict=True):
        y = [height for height in side for _ in (0, 1)]
        panel.line([x[0], *x, x[-1]], [heights.low, *y, heights.low], colour, kind=kind)


def _single(
    sheet: Sheet,
    box: tuple[float, float, float, float],
    held: Histogram,
    spans: Sequence[Span],
    cuts: Sequence[float],
    rare: bool,
) -> None:
    """Two bars for each of a few different values, which stand side by side whatever lies between them."""
    shares = _shares(held)
    heights = _heights([*shares[0], *shares[1]], rare, max(held.runs_first, held.runs_second))
    values = held.values
    panel = Panel(sheet, box, Scale(-0.6, len(values) - 0.4), heights)
    places = [place for place, value in enumerate(values) if _inside(value, value, spans)]
    panel.bands([(place - 0.5, place + 0.5) for place in places], "event")
    apart = math.ceil(len(values) / MOST_TICKS)
    across = [(float(place), number(value)) for place, value in enumerate(values) if place % apart == 0]
    panel.frame(held.feature, "share of the runs", x_ticks=across)
    for at in cuts:
        place = sum(value <= at for value in values) - 0.5
        panel.line([place, place], [heights.low, heights.high], "certified", width=0.8)
    for side, colour, low, high in ((shares[0], "first", -0.36, -0.03), (shares[1], "second", 0.03, 0.36)):
        panel.boxes([(k + low, k + high, heights.low, share) for k, share in enumerate(side)], colour)


def _words(sheet: Sheet, top: float, held: Histogram, inside: set[str]) -> None:
    """What is no number: a row for each, its share on both sides as a bar."""
    left, full = 170.0, sheet.width - 170.0 - 60.0
    sheet.words(12.0, top + 12.0, "no number", "muted", size=SMALL)
    most = max((*held.tokens_first, *held.tokens_second, 1)) / min(held.runs_first, held.runs_second)
    top += 20.0
    sides = ((held.tokens_first, held.runs_first, "first", 2.0), (held.tokens_second, held.runs_second, "second", 8.5))
    marked = [place for place, label in enumerate(held.labels) if label in inside]
    sheet.boxes([(8.0, top + TOKEN * place, sheet.width - 16.0, TOKEN) for place in marked], "event")
    for counts, runs, colour, down in sides:
        bars = [(left, top + TOKEN * k + down, full * count / runs / most, 6.0) for k, count in enumerate(counts)]
        sheet.boxes(bars, colour)
    for place, label in enumerate(held.labels):
        base = top + TOKEN * place + 0.5 * TOKEN + 0.35 * SMALL
        sheet.words(left - 8.0, base, label, size=SMALL, to="right", room=left - 24.0)
        most_here = max(held.tokens_first[place] / held.runs_first, held.tokens_second[place] / held.runs_second)
        sheet.words(left + full * most_here / most + 6.0, base, number(100.0 * most_here) + " %", "muted", size=SMALL)


def _table(held: Histogram, spans: Sequence[Span], tokens: set[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    cells = _cells(held) if held.edges or held.values else []
    for (low, high), first, second in zip(cells, held.first, held.second, strict=True):
        rows.append((_cell(low, high), f"{first:,}", f"{second:,}", "yes" if _inside(low, high, spans) else ""))
    for label, first, second in zip(held.labels, held.tokens_first, held.tokens_second, strict=True):
        rows.append((clean(label), f"{first:,}", f"{second:,}", "yes" if label in tokens else ""))
    return rows


def _cell(low: float, high: float) -> str:
    if low == high:
        return f"{low:g}"
    if low == -math.inf:
        return f"at most {high:g}"
    return f"above {low:g}" if high == math.inf else f"above {low:g}, at most {high:g}"
