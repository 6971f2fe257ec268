"""Both output distributions where the witness looks: from search runs, never evidence."""

import bisect
import itertools
import math
from collections.abc import Sequence

import numpy as np

from dpaudit.account.first import WHOLE, names
from dpaudit.base.numerals import counted
from dpaudit.base.quoting import clean
from dpaudit.events import Event, Partition
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import BELOW, SMALL, Dash, Keys, Panel, Scale, Words, number
from dpaudit.results.observations import Histogram
from dpaudit.results.result import AuditResult

TITLE = "Both output distributions, from search runs"
BETS_TITLE = "Both output distributions, from the first runs of the blocks"
HIGH = 180.0
TOKEN = 17.0  # of a row of tokens
BARS, MOST = 0.35, 0.5  # of the width: where those of tokens begin, and how long they are at the most
RARE = 0.02  # an event of a smaller share is seen on a logarithmic scale alone
MOST_TICKS = 10  # of single values

Span = tuple[float, float]
Shares = list[list[float]]  # of both sides


def distributions(result: AuditResult) -> Drawing | None:
    """The histogram of a result; None where it has none."""
    histogram, event = result.illustration.histogram, result.witness.event
    if histogram is None or not (histogram.runs_first and histogram.runs_second):
        return None
    numbers = bool(histogram.edges or histogram.values)
    spans = event.intervals if isinstance(event, Event) else ()
    tokens = event.tokens if isinstance(event, Event) else ()
    labels = {label for token in tokens for label in (token.label, f"token {token.code:x}")}
    first, second = names(result)
    bins, ends = event.bins if isinstance(event, Partition) else (), histogram.edges
    cuts = sorted({end for each in bins for span in each.intervals for end in span if math.isfinite(end)})
    beyond = ends and spans and all(low >= ends[-1] or high <= ends[0] for low, high in spans)
    inside = not cuts and bool(spans and numbers or labels & set(histogram.labels))
    keys: Keys = (
        ("line", "first", first),
        ("dash", "second", second),
        cuts != [] and ("line", "certified", "bins of the witness"),
        inside and ("area", "event", f"event of the witness{', further out' if beyond else ''}"),
    )
    below = (BELOW if numbers else 0.0) + (TOKEN * len(histogram.labels) + 32.0 if histogram.labels else 0.0)
    panel = compared(histogram, keys, spans, cuts, below=below)
    if histogram.labels:
        _tokens(panel, histogram, labels)
    columns = "output", f"runs, {first}", f"runs, {second}", "in the witness event"
    title = BETS_TITLE if result.blocks else TITLE
    return Drawing.of(
        panel, "distributions", title, _described(result, histogram), columns, _table(histogram, spans, labels)
    )


def compared(
    histogram: Histogram,
    keys: Keys,
    spans: Sequence[Span] = (),
    cuts: Sequence[float] = (),
    *,
    below: float = BELOW,
    of: str = "runs",
) -> Panel:
    """Both sides of a histogram, shares `of` what was counted: bars for few values, side by side at equal distances.

    Else steps whose area is the share; what lies beyond the edges is a step of usual width at either end.
    """
    edges, values, sides = histogram.edges, histogram.values, _shares(histogram)
    if edges:
        usual = (edges[-1] - edges[0]) / max(1, len(edges) - 1) or abs(edges[0]) or 1.0
        ends = [edges[0] - usual, *edges, edges[-1] + usual]
        widths = np.diff(ends) / usual
        sides = [(np.array(side) / widths).tolist() for side in sides]
        x = Scale(ends[0] - 0.5 * usual, ends[-1] + 0.5 * usual)
        first, last = edges[0] - 0.5 * usual, edges[-1] + 0.5 * usual  # an event beyond is shown at the rim
        event = [(max(x.low, min(low, last)), min(x.high, max(high, first))) for low, high in spans]
        ticks = [(at, text) for at, text in x.ticks() if edges[0] <= at <= edges[-1]]
    elif values:  # a number has its place between the values up to it and those above it
        x, apart = Scale(-0.6, len(values) - 0.4), math.ceil(len(values) / MOST_TICKS)
        cuts, *places = ([bisect.bisect_right(values, each) - 0.5 for each in row] for row in (cuts, *spans))
        event = [(low, high) for low, high in places if low < high]
        ticks = [(float(k), number(values[k])) for k in range(0, len(values), apart)]
    else:
        return Panel(keys, Scale(0.0, 1.0), Scale(0.0, 1.0), high=0.0, below=below)
    panel = Panel(keys, x, _heights(histogram, sides, spans), high=HIGH, below=below)
    low, high = panel.y.low, panel.y.high
    inside = (panel.at((a, b, b, a), (low, low, high, high)) for a, b in event)
    panel.area(*inside, colour="event", least=1.5)
    panel.frame(histogram.feature, f"share of the {of}", x_ticks=ticks)
    panel.line(*(panel.at(cut, (low, high)) for cut in cuts), colour="certified", width=0.8)
    looks: tuple[tuple[str, Dash, float, float], ...] = (
        ("first", "line", -0.36, -0.03),
        ("second", "dash", 0.03, 0.36),
    )
    for side, (colour, dash, left, right) in zip(sides, looks, strict=True):
        if edges:
            panel.line(panel.at(np.repeat(ends, 2), [low, *np.repeat(side, 2), low]), colour=colour, dash=dash)
        else:
            bars = ((k + left, k + right, k + right, k + left) for k in range(len(values)))
            tops = ((low, low, share, share) for share in side)
            panel.area(*map(panel.at, bars, tops), colour=colour)
    return panel


def _described(result: AuditResult, histogram: Histogram) -> str:
    sides = names(result)
    one, other = ("", "") if sides == WHOLE else tuple(f" ({each})" for each in sides)
    runs = f"{counted(histogram.runs_first, 'run')} on the first dataset{one}"
    runs += f" and {histogram.runs_second:,} on the second{other}"
    if result.blocks:  # bets are made on the runs that they learn from, too, each before it is learned from
        where, rests = "the first runs of the blocks", "on the bets, each frozen before its block, and on fresh runs"
    else:
        where, rests = "search runs", "on fresh runs alone"
    return (
        f"How often {clean(histogram.feature)} took which value in {where}: {runs}. The witness is "
        f"{clean(result.witness.event, 200)}. To look at, never evidence: the verdict rests {rests}."
    )


def _heights(histogram: Histogram, shares: Shares, spans: Sequence[Span]) -> Scale:
    """Logarithmic where the event is so rare on both sides that straight axes would hide it."""
    inside = [_inside(low, high, spans) for low, high in _cells(histogram)]
    hits = [sum(itertools.compress(counts, inside)) for counts in (histogram.first, histogram.second)]
    top = max([*shares[0], *shares[1], 1e-12])
    if spans and max(hits[0] / histogram.runs_first, hits[1] / histogram.runs_second) < RARE:
        return Scale(0.4 / max(histogram.runs_first, histogram.runs_second), top * 2.0, log=True)
    return Scale(0.0, top * 1.06)


def _shares(histogram: Histogram) -> Shares:
    sides = (histogram.first, histogram.runs_first), (histogram.second, histogram.runs_second)
    return [[count / runs for count in counts] for counts, runs in sides]


def _tokens(panel: Panel, histogram: Histogram, inside: set[str]) -> None:
    """Tokens: a row for each, its share on both sides as a bar."""
    start, longest = BARS * panel.width, MOST * panel.width
    top = panel.height - TOKEN * len(histogram.labels) - 12.0
    panel.words(Words(12.0, top - 8.0, "no number", "muted", SMALL))
    first = [hits / histogram.runs_first for hits in histogram.tokens_first]
    second = [hits / histogram.runs_second for hits in histogram.tokens_second]
    most = max(*first, *second, 1.0 / min(histogram.runs_first, histogram.runs_second))
    for k, label in enumerate(histogram.labels):
        y, base = top + TOKEN * k, top + TOKEN * (k + 0.5) + 0.35 * SMALL
        if label in inside:
            panel.box(8.0, y, panel.width - 16.0, TOKEN, "event")
        panel.box(start, y + 2.0, longest * first[k] / most, 6.0, "first")
        panel.box(start, y + 8.5, longest * second[k] / most, 6.0, "second")
        larger = max(first[k], second[k])
        panel.words(Words(start - 8.0, base, label, size=SMALL, to="right"), start - 24.0)
        text = f"{number(100.0 * larger)} %"
        panel.words(Words(start + longest * larger / most + 6.0, base, text, "muted", SMALL))


def _cells(histogram: Histogram) -> list[Span]:
    """Where each count lies, as (low, high]; a single value is both of its ends."""
    if histogram.values or not histogram.edges:
        return [(value, value) for value in histogram.values]
    ends = (-math.inf, *histogram.edges, math.inf)
    return list(itertools.pairwise(ends))


def _inside(low: float, high: float, spans: Sequence[Span]) -> bool:
    """Whether a cell lies in one of the spans (a, b]."""
    return any(a < high <= b if low == high else a <= low and high <= b for a, b in spans)


def _table(histogram: Histogram, spans: Sequence[Span], tokens: set[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for (low, high), (cell, *counts) in zip(_cells(histogram), counted_rows(histogram), strict=True):
        rows.append((cell, *counts, "yes" if _inside(low, high, spans) else ""))
    for label, first, second in zip(histogram.labels, histogram.tokens_first, histogram.tokens_second, strict=True):
        rows.append((clean(label), f"{first:,}", f"{second:,}", "yes" if label in tokens else ""))
    return rows


def counted_rows(histogram: Histogram) -> list[tuple[str, ...]]:
    """Each cell of numbers, with its count on both sides."""
    counts = zip(_cells(histogram), histogram.first, histogram.second, strict=True)
    return [(_cell(low, high), f"{first:,}", f"{second:,}") for (low, high), first, second in counts]


def _cell(low: float, high: float) -> str:
    if low == high:
        return f"{low:g}"
    if low == -math.inf:
        return f"at most {high:g}"
    return f"above {low:g}" if high == math.inf else f"above {low:g}, at most {high:g}"
