"""Figures of a study: the rows of a sweep's table, many audits in one picture.

A row without the numbers that a figure needs is left out, and counted. All raise `InvalidSpec` where no row has them.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence

from dpaudit.errors import InvalidSpec
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Dash, Key, Panel, Scale, padded
from dpaudit.report.figures.scatter import scatter
from dpaudit.report.figures.series import Row, Series, excess, grouped, is_refuted, is_violated, number_of
from dpaudit.results.wording.numerals import bound, counted

HIGH = 260.0
COLOURS = ("first", "second", "certified", "refuted", "ink", "muted")
SHAPES = ("o", "s", "^", "D", "v", "X")
LINES: tuple[Dash, ...] = ("line", "dash", "dots")
ASIDE = 3.0  # units between the lines at one place
ROOM = 6  # characters beside an axis


def claimed_against_certified(rows: Sequence[Row], *, heading: str | None = "Claimed against certified") -> Drawing:
    """A scatter of every audit: across what was claimed, up what is certified, with the diagonal between them.

    Where an exact loss or an upper bound is known, an upright line goes from the certified value up to it. All are
    epsilons at the row's own delta.
    """
    used = [row for row in rows if number_of(row, "claimed_epsilon") and number_of(row, "epsilon_lower") is not None]
    _some(used, "claimed_epsilon and epsilon_lower")
    return scatter(used, heading, _left_out(len(rows) - len(used)))


def bound_against_runs(rows: Sequence[Row], *, heading: str | None = "The bound against the number of runs") -> Drawing:
    """The certified epsilon by the number of runs, a line a procedure: the median of its audits at each number."""
    used = [row for row in rows if number_of(row, "epsilon_lower") is not None and number_of(row, "runs")]
    _some(used, "runs and epsilon_lower")
    lines = grouped(used, _runs, lambda row: number_of(row, "epsilon_lower"))
    claims = {number_of(row, "claimed_epsilon") for row in used} - {None}
    level = claims.pop() if len(claims) == 1 else None
    names = "bound-against-runs", "runs", "certified epsilon"
    return _curves(names, heading, lines, _left_out(len(rows) - len(used)), tell=bound, level=level)


def power_curves(rows: Sequence[Row], *, heading: str | None = "How often a violation is found") -> Drawing:
    """The share of audits that refute their claim, by the number of runs, a line a procedure.

    Only rows whose claim is known to be wrong for the pair count: true_epsilon above claimed_epsilon, or, where no
    truth is known, a mechanism that the catalogue lists as broken.
    """
    used = [row for row in rows if row.get("verdict") is not None and number_of(row, "runs") and is_violated(row)]
    _some(used, "runs and a verdict on a claim that is known to be wrong")
    lines = grouped(used, _runs, lambda row: float(is_refuted(row)))
    names = "power", "runs", "share refuted"
    return _curves(names, heading, lines, _left_out(len(rows) - len(used)), tell="{:.3f}".format, shares=True)


def runs_to_refute(rows: Sequence[Row], *, heading: str | None = "Runs until a violation is refuted") -> Drawing:
    """The runs that refuted a claim, by how far the truth exceeds it; a line a procedure, medians.

    Rows that were not refuted are counted in the description: a median over the others alone flatters.
    """
    used = [row for row in rows if number_of(row, "runs_to_refute") and (excess(row) or 0.0) > 0.0]
    _some(used, "runs_to_refute, and a true_epsilon above claimed_epsilon")
    missed = sum(is_violated(row) and row.get("verdict") is not None and not is_refuted(row) for row in rows)
    lines = grouped(used, excess, lambda row: number_of(row, "runs_to_refute"))
    more = f" {counted(missed, 'audit')} of a wrong claim that did not refute it: not shown, nor in a median."
    text = (more if missed else "") + _left_out(len(rows) - len(used) - missed)
    names = "runs-to-refute", "true epsilon above the claimed one", "runs"
    return _curves(names, heading, lines, text, tell="{:,.0f}".format, log_y=True)


KINDS = {draw.__name__: draw for draw in (claimed_against_certified, bound_against_runs, power_curves, runs_to_refute)}


def _runs(row: Row) -> float | None:
    return number_of(row, "runs")


def _some(rows: Sequence[Row], needed: str) -> None:
    """Raises `InvalidSpec` where there is nothing to draw."""
    if not rows:
        raise InvalidSpec(f"no row of the table has what this figure shows: {needed}")


def _left_out(number: int) -> str:
    """How many rows a figure could not show."""
    return f" {counted(number, 'row')} of the table had no numbers for this." if number else ""


def _curves(
    names: tuple[str, str, str],
    heading: str | None,
    lines: Mapping[str, Series],
    more: str,
    *,
    tell: Callable[[float], str],
    level: float | None = None,
    shares: bool = False,
    log_y: bool = False,
) -> Drawing:
    """A line for each procedure, through medians, or means where they are `shares`; each a little aside of the others.

    `names` are those of the figure and of its axes, `level` is a claimed value, `tell` writes a value in the table.
    """
    name, x_name, y_name = names
    x = padded([at for series in lines.values() for at in series], log=True)
    drawn = [value for series in lines.values() for values in series.values() for value in values]
    straight = Scale(0.0, 1.04 if shares else 1.12 * max([*drawn, level or 0.0, 1e-9]))
    looks = [(LINES[k // len(COLOURS) % len(LINES)], COLOURS[k % len(COLOURS)]) for k in range(len(lines))]
    keys: list[Key] = [] if level is None else [("dash", "claim", "claimed")]
    keys += [(*look, label) for look, label in zip(looks, lines, strict=True)]
    panel = Panel(keys, x, padded(drawn, log=True) if log_y else straight, high=HIGH, heading=heading)
    short = [(at, text if len(text) <= ROOM else _power(at)) for at, text in panel.y.ticks()]
    panel.frame(x_name, y_name, x_ticks=x.ticks(5), y_ticks=short)
    if level is not None:
        panel.level(level, "claim", "dash")
    rows: list[tuple[str, ...]] = []
    for k, ((dash, colour), (label, series)) in enumerate(zip(looks, lines.items(), strict=True)):
        aside = ASIDE * (k - (len(lines) - 1) / 2.0), 0.0
        if not shares:
            ranges = [panel.at(at, (min(values), max(values))) + aside for at, values in series.items()]
            panel.line(*ranges, colour=colour, width=0.9)
        centres = [(statistics.fmean if shares else statistics.median_low)(values) for values in series.values()]
        curve = panel.at(list(series), centres) + aside
        panel.line(curve, colour=colour, dash=dash)
        panel.marks(curve, colour=colour, shape=SHAPES[k % len(SHAPES)], size=5.0)
        cells = zip(series.items(), centres, strict=True)
        rows += [(label, f"{at:g}", tell(centre), f"{len(values):,}") for (at, values), centre in cells]
    text = f"{y_name.capitalize()} by {x_name}, a line for each of {counted(len(lines), 'procedure')}."
    if not shares:
        text += " Lines join medians."
        if any(min(values) < max(values) for series in lines.values() for values in series.values()):
            text += " Bars reach from the least to the largest."
    title = heading or name.replace("-", " ").capitalize()
    return Drawing.of(panel, name, title, text + more, ("procedure", x_name, y_name, "audits"), rows)


def _power(value: float) -> str:
    """A large number as a power, for which there is room."""
    return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
