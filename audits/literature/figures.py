"""The two figures: bounds against exact losses beside the published ones, and bounds against executions.

Drawn from records alone, with the same bytes each time. Both are 480 units wide, so that words stay readable on a
phone; nothing is told by colour alone.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from audits.literature.published import Published
from audits.literature.record import CONFIDENCE, PEERS, ROUNDING, Record

WIDTH = 480.0 / 72.0  # inches; a unit of the SVG is 1/72 inch
DOTS = 200  # per inch of the PNG
SIZE, SMALL = 11.5, 10.5  # of text, in units
INK, MUTED, RULE = "#1b2430", "#55606e", "#d9dee5"
OURS, SNIPER, STATDP, WRONG = "#0b6e3c", "#0a5ea8", "#a8480a", "#b0122a"
STYLE = {
    "svg.hashsalt": "dpaudit",
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": SIZE,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
}
LANES = {"ours": -0.24, "sniper": 0.04, "statdp": 0.30}  # of a row, so that no mark hides another
PARTS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0)  # of the exact loss, marked in the first figure
COLUMNS = 3
HEADROOM = 1.12  # of a panel's height, above its highest number
FEWEST, MOST = 5e4, 3e9  # executions of the second figure

Publications = Mapping[str, Published]
Draw = Callable[[Any], None]


def against_exact(records: Sequence[Record], publications: Publications) -> dict[str, bytes]:
    """The figure of bounds and exact losses, as SVG and PNG.

    Where the loss is finite a bound stands as its part of the exact loss; where it is infinite, as it is.
    """
    finite = [each for each in records if each.exact is not None and math.isfinite(each.exact)]
    infinite = [each for each in records if each.exact is not None and math.isinf(each.exact)]
    groups = [group for group in (finite, infinite) if group]
    heights = [len(group) + 0.6 for group in groups]
    row, above, between = 23.0 / 72.0, 74.0 / 72.0, 52.0 / 72.0
    tall = above + row * sum(heights) + between * len(groups)

    def draw(figure: Any) -> None:
        top = tall - above
        for group, height in zip(groups, heights, strict=True):
            low = top - row * height
            axes = figure.add_axes((0.255, low / tall, 0.60, row * height / tall))
            _rows(axes, group, publications, parts=group is finite)
            top = low - between
        _key(figure, tall, FIRST_KEY)

    return _files((WIDTH, tall), draw)


def _rows(axes: Any, group: Sequence[Record], publications: Publications, *, parts: bool) -> None:
    reach = 1.0
    for place, record in enumerate(group):
        assert record.exact is not None
        scale = record.exact if parts else 1.0
        axes.axhline(place + 0.5, color=RULE, linewidth=0.6)
        low, high = (record.main.bound(level) / scale for level in (CONFIDENCE, PEERS))
        lane = place + LANES["ours"]
        axes.plot([low, high], [lane, lane], color=OURS, linewidth=2.0, solid_capstyle="butt")
        axes.plot([low], [lane], "o", color=OURS, markersize=3.2, clip_on=False)
        axes.plot([high], [lane], "o", color=OURS, markersize=5.6, clip_on=False)
        if record.main.oracle_all:
            axes.plot([record.main.oracle_all / scale], [lane], "|", color=INK, markersize=8.5, markeredgewidth=1.2)
            reach = max(reach, record.main.oracle_all / scale)
        known = publications[record.name]
        marks = [(known.logistic, "D", "sniper", SNIPER, "none"), (known.network, "D", "sniper", SNIPER, SNIPER)]
        marks += [(each, "^", "statdp", STATDP, STATDP) for each in known.statdp if known.same]
        for reported, mark, name, colour, face in marks:
            if reported is None:
                continue
            over = reported.epsilon > record.exact
            edge, fill = (WRONG, "none") if over else (colour, face)
            axes.plot(
                [reported.epsilon / scale], [place + LANES[name]], mark, markersize=5.0 if mark == "D" else 5.6,
                markerfacecolor=fill, markeredgecolor=edge, markeredgewidth=1.0, clip_on=False,
            )  # fmt: skip
            reach = max(reach, reported.epsilon / scale)
        reach = max(reach, high)
        exact = f"{record.exact:.4g}" if parts else "∞"
        axes.text(1.03, place, exact, transform=axes.get_yaxis_transform(), va="center", ha="left", fontsize=SIZE)
    axes.text(
        1.03, -0.95, "exact", transform=axes.get_yaxis_transform(), va="center", ha="left", fontsize=SIZE, color=MUTED
    )
    axes.set_yticks(range(len(group)), [each.name for each in group])
    axes.set_ylim(len(group) - 0.5, -0.6)
    axes.tick_params(axis="y", length=0.0)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    if parts:
        axes.set_xscale("function", functions=(_squared, _rooted))  # most bounds lie above 0.8: room for them
        for each in PARTS:
            axes.axvline(each, color=INK if each == 1.0 else RULE, linewidth=1.0 if each == 1.0 else 0.6, zorder=0.5)
        axes.set_xticks(PARTS, [f"{each:g}" for each in PARTS])
        axes.set_xlim(0.0, 1.01 * reach)
        axes.set_xlabel("bound over the exact loss of the pairs, on a quadratic scale")
    else:
        axes.set_xlim(0.0, 1.04 * reach)
        axes.set_xlabel("bound on epsilon; the exact loss is infinite")


def _squared(values: Any) -> Any:
    return np.asarray(values) * np.abs(values)


def _rooted(values: Any) -> Any:
    return np.sign(values) * np.sqrt(np.abs(values))


def _mark(symbol: str, colour: str, face: str, words: str, size: float = 6.0) -> dict[str, Any]:
    """An entry of a key: a mark without a line."""
    return {
        "linestyle": "none", "marker": symbol, "markersize": size, "markeredgecolor": colour, "markerfacecolor": face,
        "label": words,
    }  # fmt: skip


def _key(figure: Any, tall: float, entries: Sequence[Mapping[str, Any]]) -> None:
    from matplotlib.lines import Line2D

    figure.legend(
        handles=[Line2D([], [], **entry) for entry in entries], loc="upper center",
        bbox_to_anchor=(0.5, 1.0 - 6.0 / 72.0 / tall), ncols=2, frameon=False, fontsize=SIZE, handletextpad=0.5,
        columnspacing=2.0, labelspacing=0.35, borderpad=0.0, borderaxespad=0.0,
    )  # fmt: skip


def against_executions(records: Sequence[Record], publications: Publications) -> dict[str, bytes]:
    """The figure of bounds by executions, a panel for each mechanism, as SVG and PNG."""
    lines = max(1, math.ceil(len(records) / COLUMNS))
    panel, above, below = 96.0 / 72.0, 60.0 / 72.0, 32.0 / 72.0
    tall = above + panel * lines + below

    def draw(figure: Any) -> None:
        for place, record in enumerate(records):
            line, column = divmod(place, COLUMNS)
            left, bottom = 0.09 + column * 0.315, (tall - above - panel * (line + 1) + 16.0 / 72.0) / tall
            axes = figure.add_axes((left, bottom, 0.25, (panel - 34.0 / 72.0) / tall))
            last = place + COLUMNS >= len(records)
            _panel(axes, record, publications[record.name], last)
        _key(figure, tall, SECOND_KEY)
        figure.text(0.5, 7.0 / 72.0 / tall, "executions in all, search included", ha="center", va="bottom")

    return _files((WIDTH, tall), draw)


def _panel(axes: Any, record: Record, known: Published, last: bool) -> None:
    across = [point.executions for point in record.points]
    best = [point.oracle_all for point in record.points]
    peers, own = ([point.bound(level) for point in record.points] for level in (PEERS, CONFIDENCE))
    highest = max(peers)
    if all(each is not None for each in best):
        axes.plot(across, best, color=MUTED, linewidth=1.0, linestyle=(0.0, (1.2, 2.0)))
        highest = max(highest, *(each for each in best if each is not None))
    axes.plot(across, peers, color=OURS, linewidth=1.6, marker="o", markersize=3.2)
    axes.plot(across, own, color=OURS, linewidth=1.1, linestyle=(0.0, (4.0, 2.0)), marker="o", markersize=1.8)
    for reported, face in ((known.logistic, "none"), (known.network, SNIPER)):
        if reported is not None:
            axes.plot(
                [known.executions], [reported.epsilon], "D", markersize=4.4, markeredgecolor=SNIPER,
                markerfacecolor=face,
            )  # fmt: skip
            highest = max(highest, reported.epsilon)
    if record.exact is not None and math.isfinite(record.exact):
        axes.axhline(record.exact, color=INK, linewidth=1.0)
        highest = max(highest, record.exact)
    axes.set_xscale("log")
    axes.set_xlim(FEWEST, MOST)
    axes.set_ylim(0.0, HEADROOM * highest if highest else 1.0)
    axes.set_xticks([1e5, 1e7, 1e9], ["10⁵", "10⁷", "10⁹"] if last else ["", "", ""])
    axes.minorticks_off()
    step, reach = _step(highest), HEADROOM * highest
    ticks = [times * step for times in range(5) if times * step <= reach * (1.0 + ROUNDING)]
    axes.set_yticks(ticks, [f"{each:g}" for each in ticks])
    axes.tick_params(length=2.0, labelsize=SMALL, pad=1.5)
    axes.set_title(record.name, fontsize=SIZE, pad=2.5, loc="left")
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)


def _step(highest: float) -> float:
    """The largest round number that fits into the height of a panel twice.

    >>> _step(0.1), _step(10.0), _step(0.0946), _step(0.1725)
    (0.05, 5.0, 0.05, 0.05)
    """
    if highest <= 0.0:
        return 0.5
    half = 0.5 * HEADROOM * highest
    power = 10.0 ** math.floor(math.log10(half))
    fitting = [times * power for times in (1.0, 2.0, 5.0) if times * power <= half * (1.0 + ROUNDING)]
    return float(f"{max(fitting):.6g}")


FIRST_KEY = (
    {"color": OURS, "linewidth": 2.0, "marker": "o", "markersize": 5.0, "label": "dpaudit, 0.9999 to 0.90"},
    _mark("|", INK, INK, "best event, 0.9999"),
    _mark("D", SNIPER, "none", "DP-Sniper, logistic"),
    _mark("D", SNIPER, SNIPER, "DP-Sniper, network"),
    _mark("^", STATDP, STATDP, "StatDP, two runs"),
    _mark("D", WRONG, "none", "above the exact loss"),
)
SECOND_KEY = (
    {"color": OURS, "linewidth": 1.6, "marker": "o", "markersize": 4.0, "label": "dpaudit at 0.90"},
    {"color": OURS, "linewidth": 1.1, "linestyle": (0.0, (4.0, 2.0)), "label": "dpaudit at 0.9999"},
    {"color": MUTED, "linewidth": 1.0, "linestyle": (0.0, (1.2, 2.0)), "label": "best event at 0.9999"},
    {"color": INK, "linewidth": 1.0, "label": "exact loss (no line: infinite)"},
    _mark("D", SNIPER, "none", "DP-Sniper, logistic", size=5.0),
    _mark("D", SNIPER, SNIPER, "DP-Sniper, network", size=5.0),
)


def _files(size: tuple[float, float], draw: Draw) -> dict[str, bytes]:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = {}
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=size, dpi=72.0, facecolor="#ffffff")
        FigureCanvasAgg(figure)
        draw(figure)
        for kind, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
            written = io.BytesIO()
            figure.savefig(written, format=kind, dpi=DOTS if kind == "png" else 72.0, metadata=metadata)
            made[kind] = written.getvalue()
    return made
