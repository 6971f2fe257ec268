"""Lines of a study: one for each procedure, in colours, dashes and marks that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, Kind, Panel, plain_panel
from dpaudit.report.figures.scales import Scale, Ticks, padded
from dpaudit.report.figures.series import Series
from dpaudit.results.wording.numerals import counted

HIGH = 330.0  # units
COLOURS = ("first", "second", "certified", "refuted", "ink", "muted")
SHAPES = ("o", "s", "^", "D", "v", "P")
KINDS: tuple[Kind, ...] = ("line", "dash", "dots")
ASIDE = 3.0  # units between the lines at one place


def curves(
    name: str,
    heading: str | None,
    series: Sequence[Series],
    x_name: str,
    y_name: str,
    left_out: int,
    *,
    tell: Callable[[float], str],
    level: float | None = None,
    top: float | None = None,
    log_x: bool = False,
    log_y: bool = False,
    more: str = "",
) -> Drawing:
    """The lines, each a little aside of the others; `level` is a claimed value, `tell` writes a value in the table."""
    x = padded([at for each in series for at in each.x], log=log_x)
    drawn = [value for each in series for value in (*each.low, *each.high)]
    drawn += [] if level is None else [level]
    y = padded(drawn, log=True) if log_y else Scale(0.0, 1.04 * top if top else 1.12 * max([*drawn, 1e-9]))
    keys: list[Key] = [] if level is None else [("dash", "claim", "claimed")]
    keys += [(*_look(k), each.name) for k, each in enumerate(series)]
    panel = plain_panel(keys, x, y, height=HIGH, heading=heading)
    panel.frame(x_name, y_name, x_ticks=x.ticks(5), y_ticks=_short(y.ticks()))
    if level is not None:
        panel.level(level, "claim", kind="dash")
    for k, each in enumerate(series):
        _line(panel, each, k, ASIDE * (k - (len(series) - 1) / 2.0))
    ranges = " Bars reach from the least to the largest." if any(each.low != each.high for each in series) else ""
    words = f" Lines join medians.{ranges}" if top is None else ""
    text = f"{y_name.capitalize()} by {x_name}, a line for each of {counted(len(series), 'procedure')}.{words}"
    text += f" {more}" if more else ""
    rows = [
        (each.name, f"{at:g}", tell(value), f"{number:,}")
        for each in series
        for at, value, number in zip(each.x, each.y, each.number, strict=True)
    ]
    columns = ("procedure", x_name, y_name, "audits")
    return finished(panel, name, heading, text + left_out_words(left_out), columns, rows)


def finished(
    panel: Panel, name: str, heading: str | None, text: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> Drawing:
    """The drawing, its figure kept for a PNG file."""
    title = heading or name.replace("-", " ").capitalize()
    return panel.sheet.drawing(name, title, text, columns, rows, keep=True)


def left_out_words(number: int) -> str:
    """How many rows a figure could not show."""
    return f" {counted(number, 'row')} of the table had no numbers for this." if number else ""


def _look(k: int) -> tuple[Kind, str]:
    return KINDS[k // len(COLOURS) % len(KINDS)], COLOURS[k % len(COLOURS)]


def _line(panel: Panel, each: Series, k: int, aside: float) -> None:
    kind, colour = _look(k)
    x = panel.px(each.x) + aside
    low, y, high = panel.py(each.low), panel.py(each.y), panel.py(each.high)
    bars = [[(float(a), float(b)), (float(a), float(c))] for a, b, c in zip(x, low, high, strict=True) if b != c]
    if bars:
        panel.sheet.lines(bars, colour, width=0.9, clip=panel.clip)
    panel.sheet.line(x, y, colour, kind=kind, clip=panel.clip)
    panel.sheet.points(x, y, colour, shape=SHAPES[k % len(SHAPES)], size=5.0)


def _short(ticks: Ticks) -> Ticks:
    """Large numbers as powers: beside an axis there is room for six characters."""
    return [(at, text if len(text) <= 6 else f"{at:.0e}".replace("e+0", "e").replace("e+", "e")) for at, text in ticks]
