"""Both output distributions where the witness looks: from search runs, to look at and never evidence."""

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
from dpaudit.report.figures.panel import BELOW, SMALL, Key, Panel, Scale, number
from dpaudit.results.observations import Histogram
from dpaudit.results.result import AuditResult

TITLE = "Both output distributions, from search runs"
BETS_TITLE = "Both output distributions, from the first runs of the blocks"
HIGH = 180.0
TOKEN = 17.0  # of a row of tokens
BARS, MOST = 170.0, 240.0  # where those of tokens begin, and how long they are at the most
RARE = 0.02  # an event of a smaller share is seen on a logarithmic scale alone
MOST_TICKS = 10  # of single values

Span = tuple[float, float]
Shares = tuple[list[float], list[float]]


def distributions(result: AuditResult) -> Drawing | None:
    """The histogram of a result; None where it has none."""
    held, event = result.histogram, result.witness.event
    if held is None or not (held.runs_first and held.runs_second):
        return None
    numbers = bool(held.edges or held.values)
    spans = event.intervals if isinstance(event, Event) else ()
    tokens = event.tokens if isinstance(event, Event) else ()
    labels = {label for token in tokens for label in (token.label, f"token {token.code:x}")}
    first, second = names(result)
    keys: list[Key] = [("line", "first", first), ("dash", "second", second)]
    bins = event.bins if isinstance(event, Partition) else ()
    cuts = sorted({end for each in bins for span in each.intervals for end in span if math.isfinite(end)})
    if cuts:
        keys.append(("line", "certified", "bins of the witness"))
    elif spans and numbers or labels & set(held.labels):
        ends = held.edges
        beyond = ends and spans and all(low >= ends[-1] or high <= ends[0] for low, high in spans)
        keys.append(("area", "event", "event of the witness, further out" if beyond else "event of the witness"))
    below = (BELOW if numbers else 0.0) + (TOKEN * len(held.labels) + 32.0 if held.labels else 0.0)
    panel = compared(held, keys, spans, cuts, below=below)
    if held.labels:
        _tokens(panel, held, labels)
    columns = "output", f"runs, {first}", f"runs, {second}", "in the witness event"
    title = BETS_TITLE if result.blocks else TITLE
    return Drawing.of(panel, "distributions", title, _described(result, held), columns, _table(held, spans, labels))


def compared(
    held: Histogram,
    keys: list[Key],
    spans: Sequence[Span] = (),
    cuts: Sequence[float] = (),
    *,
    below: float = BELOW,
    of: str = "runs",
) -> Panel:
    """Both sides of a histogram: steps, or bars for few values; shares `of` what was counted."""
    share = f"share of the {of}"
    if held.edges:
        return _binned(held, spans, cuts, keys, below, share)
    if held.values:
        return _single(held, spans, cuts, keys, below, share)
    return Panel(keys, Scale(0.0, 1.0), Scale(0.0, 1.0), high=0.0, below=below)


def _described(result: AuditResult, held: Histogram) -> str:
    told = ("", "") if (said := names(result)) == WHOLE else tuple(f" ({each})" for each in said)
    sides = f"{counted(held.runs_first, 'run')} on the first dataset{told[0]} and {held.runs_second:,} on the second"
    sides += told[1]
    if result.blocks:  # the runs that bets learn from are bet on too, each before it is learned from
        where, rests = "the first runs of the blocks", "on the bets, each frozen before its block, and on fresh runs"
    else:
        where, rests = "search runs", "on fresh runs alone"
    return (
        f"How often {clean(held.feature)} took which value in {where}: {sides}. The witness is "
        f"{clean(result.witness.event, 200)}. To look at, never evidence: the verdict rests {rests}."
    )


def _heights(held: Histogram, shares: Shares, spans: Sequence[Span]) -> Scale:
    """Logarithmic where the event is so rare on both sides that straight axes would hide it."""
    inside = [_inside(low, high, spans) for low, high in _cells(held)]
    hits = [sum(itertools.compress(counts, inside)) for counts in (held.first, held.second)]
    top = max([*shares[0], *shares[1], 1e-12])
    if spans and max(hits[0] / held.runs_first, hits[1] / held.runs_second) < RARE:
        return Scale(0.4 / max(held.runs_first, held.runs_second), top * 2.0, log=True)
    return Scale(0.0, top * 1.06)


def _shares(held: Histogram) -> Shares:
    return [count / held.runs_first for count in held.first], [count / held.runs_second for count in held.second]


def _binned(
    held: Histogram, spans: Sequence[Span], cuts: Sequence[float], keys: list[Key], below: float, share: str
) -> Panel:
    """Steps whose area is the share of the runs; what lies beyond the edges is a step of usual width at either end."""
    edges = held.edges
    usual = (edges[-1] - edges[0]) / max(1, len(edges) - 1) or abs(edges[0]) or 1.0
    ends = [edges[0] - usual, *edges, edges[-1] + usual]
    widths = np.diff(ends) / usual
    sides = [(np.array(side) / widths).tolist() for side in _shares(held)]
    x = Scale(ends[0] - 0.5 * usual, ends[-1] + 0.5 * usual)
    panel = Panel(keys, x, _heights(held, (sides[0], sides[1]), spans), high=HIGH, below=below)
    first, last = edges[0] - 0.5 * usual, edges[-1] + 0.5 * usual  # an event beyond is shown at the rim
    _event(panel, [(max(x.low, min(low, last)), min(x.high, max(high, first))) for low, high in spans])
    ticks = [(at, text) for at, text in x.ticks() if edges[0] <= at <= edges[-1]]
    panel.frame(held.feature, share, x_ticks=ticks)
    _upright(panel, cuts)
    least = panel.y.low
    panel.line(panel.at(np.repeat(ends, 2), [least, *np.repeat(sides[0], 2), least]), colour="first")
    panel.line(panel.at(np.repeat(ends, 2), [least, *np.repeat(sides[1], 2), least]), colour="second", dash="dash")
    return panel


def _single(
    held: Histogram, spans: Sequence[Span], cuts: Sequence[float], keys: list[Key], below: float, share_of: str
) -> Panel:
    """Two bars for each of a few different values, which stand side by side whatever lies between them."""
    shares, values = _shares(held), held.values
    panel = Panel(keys, Scale(-0.6, len(values) - 0.4), _heights(held, shares, spans), high=HIGH, below=below)

    def after(value: float) -> float:
        """The place between the values up to this one and those above it."""
        return bisect.bisect_right(values, value) - 0.5

    _event(panel, [(after(low), after(high)) for low, high in spans if after(low) < after(high)])
    apart = math.ceil(len(values) / MOST_TICKS)
    panel.frame(held.feature, share_of, x_ticks=[(k, number(values[k])) for k in range(0, len(values), apart)])
    _upright(panel, [after(cut) for cut in cuts])
    for side, colour, left, right in ((shares[0], "first", -0.36, -0.03), (shares[1], "second", 0.03, 0.36)):
        bars = [
            panel.at((k + left, k + right, k + right, k + left), (panel.y.low, panel.y.low, share, share))
            for k, share in enumerate(side)
        ]
        panel.area(*bars, colour=colour)
    return panel


def _event(panel: Panel, spans: Sequence[Span]) -> None:
    low, high = panel.y.low, panel.y.high
    panel.area(*(panel.at((a, b, b, a), (low, low, high, high)) for a, b in spans), colour="event", least=1.5)


def _upright(panel: Panel, places: Sequence[float]) -> None:
    ends = panel.y.low, panel.y.high
    panel.line(*(panel.at(place, ends) for place in places), colour="certified", width=0.8)


def _tokens(panel: Panel, held: Histogram, inside: set[str]) -> None:
    """What is no number: a row for each, its share on both sides as a bar."""
    top = panel.height - TOKEN * len(held.labels) - 12.0
    panel.words(12.0, top - 8.0, "no number", "muted", size=SMALL)
    first = [hits / held.runs_first for hits in held.tokens_first]
    second = [hits / held.runs_second for hits in held.tokens_second]
    most = max(*first, *second, 1.0 / min(held.runs_first, held.runs_second))
    for k, label in enumerate(held.labels):
        y, base = top + TOKEN * k, top + TOKEN * (k + 0.5) + 0.35 * SMALL
        if label in inside:
            panel.box(8.0, y, panel.width - 16.0, TOKEN, "event")
        panel.box(BARS, y + 2.0, MOST * first[k] / most, 6.0, "first")
        panel.box(BARS, y + 8.5, MOST * second[k] / most, 6.0, "second")
        larger = max(first[k], second[k])
        panel.words(BARS - 8.0, base, label, size=SMALL, to="right", room=BARS - 24.0)
        told = f"{number(100.0 * larger)} %"
        panel.words(BARS + MOST * larger / most + 6.0, base, told, "muted", size=SMALL)


def _cells(held: Histogram) -> list[Span]:
    """Where each count lies, as (low, high]; a single value is both of its ends."""
    if held.values or not held.edges:
        return [(value, value) for value in held.values]
    ends = (-math.inf, *held.edges, math.inf)
    return list(itertools.pairwise(ends))


def _inside(low: float, high: float, spans: Sequence[Span]) -> bool:
    """Whether a cell lies in one of the spans (a, b]."""
    return any(a < high <= b if low == high else a <= low and high <= b for a, b in spans)


def _table(held: Histogram, spans: Sequence[Span], tokens: set[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for (low, high), (told, *counts) in zip(_cells(held), counted_rows(held), strict=True):
        rows.append((told, *counts, "yes" if _inside(low, high, spans) else ""))
    for label, first, second in zip(held.labels, held.tokens_first, held.tokens_second, strict=True):
        rows.append((clean(label), f"{first:,}", f"{second:,}", "yes" if label in tokens else ""))
    return rows


def counted_rows(held: Histogram) -> list[tuple[str, ...]]:
    """Each cell of numbers, with its count on both sides."""
    counts = zip(_cells(held), held.first, held.second, strict=True)
    return [(_cell(low, high), f"{first:,}", f"{second:,}") for (low, high), first, second in counts]


def _cell(low: float, high: float) -> str:
    if low == high:
        return f"{low:g}"
    if low == -math.inf:
        return f"at most {high:g}"
    return f"above {low:g}" if high == math.inf else f"above {low:g}, at most {high:g}"
