"""Figures of a study: the rows of a sweep's table, many audits in one picture.

A row without the numbers that a figure needs is left out, and counted. All raise `InvalidSpec` where no row has them.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpaudit.base.numerals import bound, counted, up
from dpaudit.base.quoting import clean
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify.certificate import holm
from dpaudit.errors import InvalidSpec
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import GROUND, RIGHT, SMALL, WIDTH, Dash, Keys, Panel, Scale, breadth, padded
from dpaudit.report.figures.rows import BESIDE, Audit, Name, at_ends, rows_of
from dpaudit.results.display import Verdict

Row = Mapping[str, Any]
Series = dict[float, list[float]]  # the values at each place, in the order of the places

PARAMETERS = "parameters."  # before the name of a mechanism's keyword, so that no keyword hides a column
TELLING = ("claim", "pair", "certifier", "selector", "stopping")  # what audits of a mechanism may differ in
ROUNDING = 1e-9  # relative: a bound above an exact loss by less is the same number
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
    known = (row.get(name) for name in ("exact_epsilon", "true_epsilon"))
    return next((float(value) for value in known if value not in (None, "")), None)


def excess(row: Row) -> float | None:
    """By how much the truth exceeds what is claimed."""
    true, claimed = truth(row), number_of(row, "claimed_epsilon")
    return None if true is None or claimed is None else float(f"{true - claimed:.3g}")


def is_violated(row: Row) -> bool:
    """Whether the claim is known to be wrong: by the truth, or, where none is known, as the catalogue lists it."""
    beyond = excess(row)
    return bool(row.get("broken")) if beyond is None else beyond > 0.0


def is_beyond(row: Row) -> bool:
    """Whether the certified bound is above the exact loss: it is wrong then, as a few by chance may be."""
    true, lower = truth(row), number_of(row, "epsilon_lower")
    return true is not None and lower is not None and lower > true * (1.0 + ROUNDING)


def together(rows: Sequence[Row]) -> list[bool]:
    """Which rows refute their claims together, by Holm's method, at the least confidence of them."""
    asked = [row for row in rows if row.get("confidence") is not None]  # those without verdict too: outputs decide that
    alpha = max((error_probability(float(row["confidence"])) for row in asked), default=1.0)
    adjusted = holm([1.0 if row.get("p_value") is None else row["p_value"] for row in asked])
    least = {id(row): value for row, value in zip(asked, adjusted, strict=True)}
    return [is_refuted(row) and least.get(id(row), 0.0) <= alpha for row in rows]


def labels(rows: Sequence[Row], *, mechanism: bool = False) -> list[str]:
    """A name for each row: of mechanism, parameters, claim, pair and procedure what tells it from the others.

    What an earlier part settles is not in a name: where each `epsilon` has one claim, the claim is not. With
    `mechanism` the mechanism always is.
    """
    parameters = dict.fromkeys(key for row in rows for key in row if key.startswith(PARAMETERS))
    names = [""] * len(rows)
    for key in ("mechanism", *parameters, *TELLING):
        words: dict[str, set[str]] = {}
        for name, row in zip(names, rows, strict=True):
            words.setdefault(name, set()).add(_word(row, key))
        always = mechanism and key == "mechanism"
        names = [
            ", ".join(filter(None, (name, _word(row, key)))) if always or len(words[name]) > 1 else name
            for name, row in zip(names, rows, strict=True)
        ]
    return [name or _word(row, "mechanism") for name, row in zip(names, rows, strict=True)]


def _word(row: Row, key: str) -> str:
    value = row.get(key)
    if key == "mechanism":
        return str(value or "mechanism")
    word = f"{value:g}" if isinstance(value, float) else str(value)
    return "" if value is None else f"{key.removeprefix(PARAMETERS)} {word}" if key.startswith(PARAMETERS) else word


def grouped(
    rows: Sequence[Row], x: Callable[[Row], float | None], y: Callable[[Row], float | None]
) -> dict[str, Series]:
    """Lines by name, one for each of the `labels`. Beyond `MOST` lines the smallest ones are one together."""
    names = labels(rows)
    sizes = Counter(names)
    largest = {name for name, _ in sizes.most_common(len(sizes) if len(sizes) <= MOST else MOST - 1)}
    lines: dict[str, Series] = {}
    for name, row in zip(names, rows, strict=True):
        at, value = x(row), y(row)
        if at is not None and value is not None:
            lines.setdefault(name if name in largest else OTHERS, {}).setdefault(float(at), []).append(value)
    return {name: dict(sorted(series.items())) for name, series in lines.items()}


def certified_text(row: Row) -> str:
    """The certified bound in the claim's own parameter, rounded down."""
    curve = row["claimed"] is None
    name, value = ("epsilon", row["epsilon_lower"]) if curve else (row["parameter"], row["lower"])
    above = row["claimed"] if is_refuted(row) else None
    return "no bound on epsilon" if value is None else f"{name} >= {bound(float(value), above=above)}"


def otherwise_refuted(row: Row) -> str:
    """What refutes the claim where the bound on epsilon does not: one on its own parameter, or the p-value."""
    claimed, lower = number_of(row, "claimed_epsilon"), number_of(row, "epsilon_lower")
    if not is_refuted(row) or claimed is None or lower is None or lower > claimed:
        return ""
    own = number_of(row, "claimed") is not None and row["lower"] not in (None, lower)
    return f", REFUTED as {row['claim']}: {certified_text(row)}" if own else ", REFUTED by its p-value"


COLUMNS = ("mechanism", "claimed", "certified, at least", "exact", "proved, at most", "estimate", "verdict")
MOST_ROWS = 60  # beyond which a mechanism has one row, and not one for each of its parameters


def claimed_against_certified(rows: Sequence[Row]) -> Drawing:
    """What was claimed and what is certified, a row for each mechanism with its parameters, each named.

    Exact loss and proved upper bound stand in the row where they are known. All are epsilons at the row's own delta.
    """
    certified = ("epsilon_lower", "estimate")
    held = [
        (row, holds)
        for row, holds in zip(rows, together(rows), strict=True)
        if number_of(row, "claimed_epsilon") and any(number_of(row, name) is not None for name in certified)
    ]
    used = [row for row, _ in held]
    left = _left_out(rows, used, "claimed_epsilon and epsilon_lower")
    deltas = [number_of(row, "delta") or 0.0 for row in used]
    mixed, own = len(set(deltas)) > 1, [otherwise_refuted(row) for row in used]
    at = [f", delta {delta:.3g}" if mixed and delta else "" for delta in deltas]
    names = ["".join(each) for each in zip(labels(used, mechanism=True), at, own, strict=True)]
    whole = names if len(set(names)) <= MOST_ROWS else [_word(row, "mechanism") for row in used]
    places = {name: place for place, name in enumerate(dict.fromkeys(whole))}
    audits = [
        Audit(
            places[name],
            number_of(row, "claimed_epsilon") or 0.0,
            number_of(row, "epsilon_lower"),
            is_refuted(row),
            alone=is_refuted(row) and not holds,
            exact=truth(row),
            upper=number_of(row, "proved"),
            estimate=number_of(row, "estimate"),
            beyond=is_beyond(row),
        )
        for name, (row, holds) in zip(whole, held, strict=True)
    ]
    panel = rows_of([*map(Name, places)], audits, "epsilon, at each row's delta" if mixed else "epsilon")
    text = (
        f"{counted(len(used), 'audit')}: for each what was claimed, an upright stroke, and what is certified, a mark. "
        "A mark to the right of its stroke exceeds the claim."
    )
    if any(own):
        text += " A diamond that is not to the right refutes its claim otherwise: its name says how."
    if mixed:
        text += " Deltas differ: a row that names none is at delta 0."
    if any(audit.alone for audit in audits):
        text += " A hollow diamond is refuted at its own confidence, and not together with the others (Holm)."
    if any(audit.beyond for audit in audits):
        text += " A square marks a bound above the exact loss: it is wrong, as a few by chance may be."
    text += at_ends(audits) + left
    table = [_cells(name, audit) for name, audit in zip(names, audits, strict=True)]
    title = "Claimed against certified"
    return Drawing.of(panel, "claimed-against-certified", title, text, COLUMNS, table)


def _cells(name: str, audit: Audit) -> tuple[str, ...]:
    lower = "" if audit.lower is None else bound(audit.lower)
    estimate = "" if audit.estimate is None else f"{audit.estimate:.3g}"
    verdict = f"REFUTED{', alone' * audit.alone}" if audit.refuted else "not refuted"
    verdict += ", above the exact loss" * audit.beyond
    return name, f"{audit.claimed:.4g}", lower, epsilon_text(audit.exact), epsilon_text(audit.upper), estimate, verdict


def epsilon_text(value: float | None) -> str:
    """An exact or proved epsilon, rounded up where it is long; empty where it is not known.

    >>> epsilon_text(0.5), epsilon_text(0.98039729)
    ('0.5', '0.981')
    """
    if value is None:
        return ""
    text = exact(float(value))
    return text if len(text) <= 6 else up(float(value), 3)


COLOURS = ("first", "second", "certified", "refuted", "ink", "muted")
SHAPES = ("point", "block", "up", "diamond", "down", "cross")
LINES: tuple[Dash, ...] = ("line", "dash", "dots")
ASIDE = 3.0  # units between the lines at one place
ROOM = 6  # characters beside an axis


def bound_against_runs(rows: Sequence[Row]) -> Drawing:
    """The certified epsilon by the number of runs, a line a procedure: the median of its audits at each number."""
    used = [row for row in rows if number_of(row, "epsilon_lower") is not None and number_of(row, "runs")]
    lines = grouped(used, lambda row: number_of(row, "runs"), lambda row: number_of(row, "epsilon_lower"))
    claims = {number_of(row, "claimed_epsilon") for row in used} - {None}
    level = claims.pop() if len(claims) == 1 else None
    names = "bound-against-runs", "The bound against the number of runs", "runs", "certified epsilon"
    return _curves(names, lines, _left_out(rows, used, "runs and epsilon_lower"), tell=bound, level=level)


def power_curves(rows: Sequence[Row]) -> Drawing:
    """The share of audits that refute their claim, by the number of runs, a line a procedure.

    Only rows whose claim is known to be wrong for the pair count: true_epsilon above claimed_epsilon, or, where no
    truth is known, a mechanism that the catalogue lists as broken.
    """
    used = [row for row in rows if row.get("verdict") is not None and number_of(row, "runs") and is_violated(row)]
    lines = grouped(used, lambda row: number_of(row, "runs"), lambda row: float(is_refuted(row)))
    names = "power-curves", "How often a violation is found", "runs", "share refuted"
    text = _left_out(rows, used, "runs and a verdict on a claim that is known to be wrong")
    return _curves(names, lines, text, tell="{:.3f}".format, shares=True)


def runs_to_refute(rows: Sequence[Row]) -> Drawing:
    """The runs that refuted a claim, by how far the truth exceeds it; a line a procedure, medians.

    Rows that were not refuted are counted in the description: a median over the others alone flatters.
    """
    used = [row for row in rows if number_of(row, "runs_to_refute") and 0.0 < (excess(row) or 0.0) < math.inf]
    missed = sum(is_violated(row) and row.get("verdict") is not None and not is_refuted(row) for row in rows)
    lines = grouped(used, excess, lambda row: number_of(row, "runs_to_refute"))
    more = f" {counted(missed, 'audit')} of a wrong claim that did not refute it: not shown, nor in a median."
    left = _left_out(rows, used, "runs_to_refute, and a true_epsilon above claimed_epsilon", missed)
    text = (more if missed else "") + left
    names = "runs-to-refute", "Runs until a violation is refuted", "true epsilon above the claimed one", "runs"
    return _curves(names, lines, text, tell="{:,.0f}".format, log_y=True)


KINDS = (claimed_against_certified, bound_against_runs, power_curves, runs_to_refute)


def _left_out(rows: Sequence[Row], used: Sequence[Row], needed: str, told: int = 0) -> str:
    """How many rows a figure could not show, beside those it has `told`. Raises `InvalidSpec` where it has none."""
    if not used:
        raise InvalidSpec(f"no row of the table has what this figure shows: {needed}")
    number = len(rows) - len(used) - told
    return f" {counted(number, 'row')} of the table had no numbers for this." if number else ""


def _curves(
    names: tuple[str, str, str, str],
    lines: Mapping[str, Series],
    more: str,
    *,
    tell: Callable[[float], str],
    level: float | None = None,
    shares: bool = False,
    log_y: bool = False,
) -> Drawing:
    """A line for each procedure, through medians, or means where they are `shares`; each a little aside of the others.

    `names` are those of the figure, its file and its axes, `level` is a claimed value, `tell` writes a value in the
    table. The name of a line stands at its end where there is room, otherwise in a key.
    """
    name, title, x_name, y_name = names
    x = padded([at for series in lines.values() for at in series], log=True)
    drawn = [value for series in lines.values() for values in series.values() for value in values]
    straight = Scale(0.0, 1.04 if shares else 1.12 * max([*drawn, level or 0.0, 1e-9]))
    looks = [(LINES[k // len(COLOURS) % len(LINES)], COLOURS[k % len(COLOURS)]) for k in range(len(lines))]
    named = ((*look, label) for look, label in zip(looks, lines, strict=True))
    keys: Keys = (level is not None and ("dash", "claim", "claimed"), *named)
    room = 22.0 + max((breadth(clean(each[2]), SMALL) for each in keys if each), default=0.0)
    at_end = room <= BESIDE * (GROUND.get().width or WIDTH)
    y = padded(drawn, log=True) if log_y else straight
    panel = Panel(() if at_end else keys, x, y, high=260.0, right=room if at_end else RIGHT)
    # a large number as a power, for which there is room
    short = [
        (at, text if len(text) <= ROOM else f"{at:.0e}".replace("e+0", "e").replace("e+", "e"))
        for at, text in panel.y.ticks()
    ]
    panel.frame(x_name, y_name, x_ticks=x.ticks(5), y_ticks=short)
    ends = []
    if level is not None:
        panel.level(level, "claim", "dash")
        ends.append((panel.at(x.high, level)[0], "claim", "claimed"))
    rows: list[tuple[str, ...]] = []
    for k, ((dash, colour), (label, series)) in enumerate(zip(looks, lines.items(), strict=True)):
        aside = ASIDE * (k - (len(lines) - 1) / 2.0), 0.0
        if not shares:
            ranges = [panel.at(at, (min(values), max(values))) + aside for at, values in series.items()]
            panel.line(*ranges, colour=colour, width=0.9)
        centres = [(statistics.fmean if shares else statistics.median_low)(values) for values in series.values()]
        curve = panel.at(list(series), centres) + aside
        panel.line(curve, colour=colour, dash=dash)
        panel.marks(curve, colour=colour, kind=SHAPES[k % len(SHAPES)], size=5.0)
        ends.append((curve[-1], colour, label))
        cells = zip(series.items(), centres, strict=True)
        rows += [(label, f"{at:g}", tell(centre), f"{len(values):,}") for (at, values), centre in cells]
    if at_end:
        panel.names_at(ends)
    text = f"{y_name.capitalize()} by {x_name}, of {counted(len(lines), 'procedure')}."
    if not shares:
        text += " Lines join medians."
        if any(min(values) < max(values) for series in lines.values() for values in series.values()):
            text += " Bars reach from the least to the largest."
    return Drawing.of(panel, name, title, text + more, ("procedure", x_name, y_name, "audits"), rows)
