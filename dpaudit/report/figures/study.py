"""Figures of a study: the rows of a sweep's table, many audits in one picture.

A row without the numbers that a figure needs is left out, and counted. All raise `InvalidSpec` where no row has them.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.numerals import bound, counted, decimals, up
from dpaudit.errors import InvalidSpec
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Dash, Keys, Panel, Places, Scale, Ticks, number, padded
from dpaudit.results.display import Verdict

Row = Mapping[str, Any]
Series = dict[float, list[float]]  # the values at each place, in the order of the places

PARAMETERS = "parameters."
TELLING = ("mechanism", "claim", "pair", "certifier", "selector", "stopping")  # what a procedure may differ in
MOST = 12  # lines that can be distinguished
OTHERS = "all others"


def number_of(row: Row, name: str) -> float | None:
    """A finite number of a row; None where there is none, "inf" among them."""
    value = row.get(name)
    if value is None or value == "" or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(float(value)) else None


def is_refuted(row: Row) -> bool:
    """Whether the verdict of a row, an enum or its name, is REFUTED."""
    return row.get("verdict") in (Verdict.REFUTED, Verdict.REFUTED.value)


def truth(row: Row) -> float | None:
    """The exact loss of the pair, or that of the mechanism, where one is known."""
    exact = number_of(row, "exact_epsilon")
    return number_of(row, "true_epsilon") if exact is None else exact


def excess(row: Row) -> float | None:
    """By how much the truth exceeds what is claimed."""
    true, claimed = truth(row), number_of(row, "claimed_epsilon")
    return None if true is None or claimed is None else float(f"{true - claimed:.3g}")


def is_violated(row: Row) -> bool:
    """Whether the claim is known to be wrong: by the truth, or, where none is known, as the catalogue lists it."""
    beyond = excess(row)
    return bool(row.get("broken")) if beyond is None else beyond > 0.0


def grouped(
    rows: Sequence[Row], x: Callable[[Row], float | None], y: Callable[[Row], float | None]
) -> dict[str, Series]:
    """Lines by name, one for each procedure that the rows differ in.

    Only what differs among the rows is in a name. Beyond `MOST` lines the smallest ones are one together.
    """
    differing = [key for key in TELLING if len({str(row.get(key)) for row in rows}) > 1]
    differing = differing or sorted({key for row in rows for key in row if key.startswith(PARAMETERS)})
    names = [_name(row, differing) for row in rows]
    sizes = Counter(names)
    largest = {name for name, _ in sizes.most_common(len(sizes) if len(sizes) <= MOST else MOST - 1)}
    lines: dict[str, Series] = {}
    for name, row in zip(names, rows, strict=True):
        at, value = x(row), y(row)
        if at is not None and value is not None:
            lines.setdefault(name if name in largest else OTHERS, {}).setdefault(float(at), []).append(value)
    return {name: dict(sorted(series.items())) for name, series in lines.items()}


def named(row: Row) -> str:
    """The mechanism with its parameters."""
    given = {key.removeprefix(PARAMETERS): row[key] for key in row if key.startswith(PARAMETERS)}
    values = [f"{key}={value}" for key, value in given.items() if value is not None]
    name = str(row.get("mechanism") or "mechanism")
    return f"{name}({', '.join(values)})" if values else name


def _name(row: Row, differing: Sequence[str]) -> str:
    parts = [
        f"{key.removeprefix(PARAMETERS)} {row.get(key)}" if key.startswith(PARAMETERS) else str(row.get(key))
        for key in differing
    ]
    return ", ".join(parts) or str(row.get("mechanism") or "audits")


COLUMNS = ("mechanism", "claimed", "certified, at least", "exact", "proved, at most", "verdict")
HIGH, BROAD = 380.0, 640.0
MOST_TICKS = 10  # claimed values that are written at the axis
DECADES = 2.0  # below the claims that values are drawn at; smaller ones stand at the edge
CROWD = 5  # a claim has a column where it has at least a fifth of the audits of the most frequent claim
WIDEST, FILLED = 0.2, 0.86  # of the axis that a column may have; of its room that is used
FEWEST = 8  # audits that fill a column
CLOSE = 4.0  # units between audits, below which their marks are small


@dataclass(frozen=True, slots=True)
class _Audit:
    """A row of the scatter in numbers."""

    claimed: float
    lower: float
    truth: float | None
    proved: float | None
    refuted: bool

    @property
    def claim(self) -> float:
        """What it claims, as it was meant: 8 and 8.000000000000002 are one claim."""
        return float(f"{self.claimed:.3g}")

    @property
    def order(self) -> tuple[bool, float, float]:
        """Its place among those of its column."""
        return self.proved is None, -(self.truth or 0.0), -self.lower


def scatter(rows: Sequence[Row], heading: str | None, left_out: str) -> Drawing:
    """The scatter of rows that have a claimed and a certified epsilon."""
    audits = [
        _Audit(
            number_of(row, "claimed_epsilon") or 0.0,
            number_of(row, "epsilon_lower") or 0.0,
            truth(row),
            number_of(row, "proved"),
            is_refuted(row),
        )
        for row in rows
    ]
    claimed = [audit.claimed for audit in audits]
    shown = [value for audit in audits for value in (audit.claimed, audit.lower, audit.truth, audit.proved) if value]
    least = max(min(shown), min(claimed) * 10.0**-DECADES)
    x, y = padded(claimed, log=True, share=0.12), padded([least, max(shown)], log=True)
    panel = Panel(_keys(audits), x, y, high=HIGH, width=BROAD, heading=heading)
    y_ticks = [tick for tick in y.ticks() if y(tick[0]) > 0.04]
    if min(audit.lower for audit in audits) < y.low:  # marks at the bottom edge
        y_ticks.append((y.low, "less"))
    panel.frame("claimed epsilon", "epsilon", x_ticks=_claim_ticks(claimed, x), y_ticks=y_ticks)
    panel.line(panel.at((x.low, x.high), (x.low, x.high)), colour="rule", width=1.2)
    _marks(panel, audits)
    text = (
        f"{counted(len(rows), 'audit')}: across the epsilon that was claimed, up what is known of it. Audits of one "
        "claim, and of claims close to it, stand beside each other as a column, those that are proved first, then by "
        "falling exact loss; each has a level line at its own claimed value, and what is above it exceeds the claim."
    )
    table = [_cells(row, audit) for row, audit in zip(rows, audits, strict=True)]
    title = heading or "Claimed against certified"
    return Drawing.of(panel, "claimed-against-certified", title, text + left_out, COLUMNS, table)


def _keys(audits: Sequence[_Audit]) -> Keys:
    return (
        ("line", "claim", "claimed"),
        any(audit.proved is not None for audit in audits)
        and ("down", "certified", "proved for all inputs, at its tip"),
        any(audit.truth is not None for audit in audits) and ("line", "ink", "exact loss of the pair"),
        not all(audit.refuted for audit in audits) and ("point", "first", "certified"),
        any(audit.refuted for audit in audits) and ("diamond", "refuted", "certified, REFUTED"),
    )


def _crowds(claims: Sequence[float]) -> list[float]:
    """The claims that have several audits, and many compared with the others."""
    numbers = Counter(claims)
    most = max(numbers.values())
    return sorted(claim for claim, audits in numbers.items() if audits > 1 and CROWD * audits >= most)


def _claim_ticks(claimed: Sequence[float], x: Scale) -> Ticks | None:
    """The claimed values, or those of most audits, where there is room for them."""
    claims = [float(f"{value:.3g}") for value in claimed]
    asked = _crowds(claims) or sorted(set(claims))
    apart = min(np.diff(x(asked)), default=1.0)
    return [(claim, number(claim)) for claim in asked] if len(asked) <= MOST_TICKS and apart > 0.05 else None


def _columns(audits: Sequence[_Audit], x: Scale) -> tuple[dict[float, list[_Audit]], float]:
    """The audits by the claim that they stand at, and how wide a column is, as a share of the axis.

    A claim between two columns has a place of its own, one within a column stands in it.
    """
    crowds = _crowds([audit.claim for audit in audits])
    width = FILLED * min([WIDEST, *np.diff(x(crowds))])
    columns: dict[float, list[_Audit]] = {}
    for audit in audits:
        nearest = min(crowds, key=lambda claim: abs(x(claim) - x(audit.claim)), default=audit.claim)
        inside = abs(x(nearest) - x(audit.claim)) <= width / 2.0
        columns.setdefault(nearest if inside else audit.claim, []).append(audit)
    for claim, members in columns.items():
        members.sort(key=lambda audit: (audit.claim != claim, audit.claim, *audit.order))
    return columns, width


def _marks(panel: Panel, audits: Sequence[_Audit]) -> None:
    """The levels of the claims, and over them what is proved, exact and certified; small where audits stand close."""
    columns, width = _columns(audits, panel.x)
    room = width * (panel.right - panel.left) / max(FEWEST, *map(len, columns.values()))  # of an audit, in units
    close = room < CLOSE
    half = np.array([(-1.0, 0.0), (1.0, 0.0)]) * (max(room / 2.0, 2.0) if close else 5.0)
    links, claims, exact, proved, others, refuted = (list[Places]() for _ in range(6))

    def at(claim: float, value: float, aside: float) -> Places:
        return np.add(panel.at(claim, max(value, panel.y.low)), (aside, 0.0))

    for claim, members in columns.items():
        places = [room * (k - (len(members) - 1) / 2.0) for k in range(len(members))]
        for _, group in itertools.groupby(zip(members, places, strict=True), key=lambda each: each[0].claim):
            same = list(group)
            ends = [at(claim, same[0][0].claimed, aside) for _, aside in (same[0], same[-1])]
            claims.append(np.concatenate(ends) + half)
        for audit, aside in zip(members, places, strict=True):
            top = max(audit.truth or 0.0, audit.proved or 0.0)
            if top and not close:
                links.append(np.concatenate([at(claim, audit.lower, aside), at(claim, top, aside)]))
            if audit.truth is not None:
                exact.append(at(claim, audit.truth, aside) + half)
            if audit.proved is not None:
                proved.append(at(claim, audit.proved, aside) - (0.0, 4.0))
            (refuted if audit.refuted else others).append(at(claim, audit.lower, aside))
    panel.line(*links, colour="muted", width=0.6)
    panel.line(*claims, colour="claim", width=3.4)
    panel.marks(*proved, colour="certified", shape="v", size=5.0)
    panel.line(*exact, colour="ink", width=1.5)
    panel.marks(*others, colour="first", shape="s" if close else "o", size=2.0 if close else 4.6)
    panel.marks(*refuted, colour="refuted", shape="D", size=4.6)


def _cells(row: Row, audit: _Audit) -> tuple[str, ...]:
    verdict = "REFUTED" if audit.refuted else "not refuted"
    return named(row), f"{audit.claimed:g}", bound(audit.lower), _at_most(audit.truth), _at_most(audit.proved), verdict


def _at_most(value: float | None) -> str:
    return "" if value is None else up(value, decimals(value, 4)) if value > 0.0 else "0"


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
    lines = grouped(used, lambda row: number_of(row, "runs"), lambda row: number_of(row, "epsilon_lower"))
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
    lines = grouped(used, lambda row: number_of(row, "runs"), lambda row: float(is_refuted(row)))
    names = "power-curves", "runs", "share refuted"
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
    labelled = ((*look, label) for look, label in zip(looks, lines, strict=True))
    keys: Keys = (level is not None and ("dash", "claim", "claimed"), *labelled)
    panel = Panel(keys, x, padded(drawn, log=True) if log_y else straight, high=260.0, heading=heading)
    # a large number as a power, for which there is room
    short = [
        (at, text if len(text) <= ROOM else f"{at:.0e}".replace("e+0", "e").replace("e+", "e"))
        for at, text in panel.y.ticks()
    ]
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
