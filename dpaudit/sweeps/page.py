"""What is told of a sweep: sentences and tables of its account, the table as a file, and its figures."""

import contextlib
import json
import math
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from dpaudit.account import Table
from dpaudit.base.files import write_text, writing
from dpaudit.base.numerals import confidence_text, counted, down, p_text
from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.base.validate import error_probability
from dpaudit.errors import InvalidSpec
from dpaudit.report.figures import study
from dpaudit.scores.result import ESTIMATE
from dpaudit.sweeps.rows import COLUMNS, columns, parameters_of

Fields = Mapping[str, Any]
MOST_REASONS = 6  # that a page lists, the most frequent first
MOST_NAMED = 12  # points of a table whose first page has a line for each
JOINT = 0.95  # what all bounds together would have, where nothing can be said of them as they are

READING = (
    "A certified value is a lower bound on the loss of the one pair that was audited: the loss is at least that, with "
    "the confidence of its row. It is no estimate, and a small one is no sign of a small loss.",
    "An exact value is the loss of that pair by the catalogue's formula; a proved one is an upper bound for all "
    "inputs, and stands only where a proof was found and checked. A claim may be true and neither refuted nor proved "
    "here.",
    "Claimed, exact and proved values of a point are epsilons at the same delta, that of its row; a certified value is "
    "one of the parameter that it names, the claim's own.",
    '"Refuted, alone" is refuted at its own confidence, and not together with the others (Holm); "above exact" marks a '
    "bound above the exact loss: it is wrong, as a few by chance may be.",
)
NOT_SHOWN = (
    "Not refuted means that these runs on this pair show nothing against the claim; it does not mean that the claim "
    "holds.",
    "No two points share a run, and what is wrong with one says nothing about another.",
    "A gap between certified and exact values is the price of finite runs and of the event that was found; it says "
    "nothing about the mechanism.",
)


def sweep_headline(rows: Sequence[Fields]) -> str:
    """The one line of a sweep."""
    done = [row for row in rows if row["verdict"] is not None]
    refuted = sum(map(study.is_refuted, done))
    kept, without = len(done) - refuted, len(rows) - len(done)
    return f"{counted(len(rows), 'point')}: {refuted} refuted, {kept} not refuted, {without} without verdict"


def sweep_lines(rows: Sequence[Fields], repeated: int = 0) -> tuple[str, ...]:
    """What holds of a sweep in a few lines: each of few points, error probability, why points have no verdict."""
    done = [row for row in rows if row["verdict"] is not None]
    lines = []
    if taken := sum(bool(row["from_ledger"]) for row in rows):
        lines.append(f"{counted(taken, 'result')} taken from the ledger, for the same questions, sources and versions")
    if repeated:
        lines.append(f"{counted(repeated, 'row')} left out: the same answer, of the same runs, as another row")
    lines += [sweep_row(row) for row in done if len(rows) <= MOST_NAMED]
    return (*lines, *([chance(rows)] if done else []), *without_verdict(rows))


def chance(rows: Sequence[Fields]) -> str:
    """What the confidence of the points means for all of them together, and which bounds are known to be wrong."""
    done = [row for row in rows if row["confidence"] is not None]  # those without verdict too: outputs may decide that
    alphas = [error_probability(float(row["confidence"])) for row in done]
    each, wrong = max(alphas), float(f"{math.fsum(alphas):.12g}")  # 0.15, not 0.15000000000000002
    if len(done) == 1:
        return f"The bound is wrong with probability at most {p_text(each)}."
    told = [f"Each of the {len(done):,} bounds is wrong with probability at most {p_text(each)}"]
    if wrong < 1.0:
        told[0] += f"; all hold together with confidence at least {confidence_text(1.0 - wrong)} (Bonferroni)."
    else:
        one = (1.0 - JOINT) / len(done)
        digits = math.ceil(-math.log10(one)) + 2
        told[0] += f": expect at most {math.ceil(wrong * 10.0) / 10.0:,g} wrong ones."
        told.append(
            f"With confidence={1.0 - math.floor(one * 10.0**digits) / 10.0**digits:.{digits}g} a point, all would hold "
            f"together with {JOINT:g}."
        )
        if refuted := sum(map(study.is_refuted, done)):
            holds = f"{sum(study.together(done)):,} of the {refuted:,} refutations hold together"
            told.append(f"{holds}, with confidence {confidence_text(1.0 - each)} (Holm).")
    if above := sum(map(study.is_beyond, done)):
        told.append(f"Above the exact loss: {counted(above, 'bound')}, wrong as a few by chance may be.")
    return " ".join(told)


def without_verdict(rows: Sequence[Fields]) -> tuple[str, ...]:
    """Why points have no verdict, the most frequent reason first."""
    reasons: dict[str, list[str]] = {}
    for name, _, reason in (sweep_row(row).partition(": no verdict: ") for row in rows if row["verdict"] is None):
        reasons.setdefault(reason, []).append(name)
    first = sorted(reasons.items(), key=lambda each: -len(each[1]))[:MOST_REASONS]
    lines = [
        f"without verdict, {points[0] if len(points) == 1 else counted(len(points), 'point')}: {reason}"
        for reason, points in first
    ]
    more = len(reasons) - MOST_REASONS
    return (*lines, f"and {counted(more, 'more reason')}") if more > 0 else tuple(lines)


def sweep_row(row: Fields) -> str:
    """One point on one line."""
    name = clean(row["mechanism"])
    given = ", ".join(f"{key}={clean(value)}" for key, value in parameters_of(row).items())
    what = f"{name}({given})" if given else name
    if row["verdict"] is None:
        return f"{what}: no verdict: {clean(row['error'] or 'no reason was recorded', LONGEST_DATA)}"
    # trainings and scores are no runs
    spent = f" on {row['runs_used']:,} runs" if row["runs"] and row["runs_used"] else ""
    verdict = "REFUTED" if study.is_refuted(row) else "not refuted"
    return f"{what}: {row['claim']} {verdict}, {study.certified_text(row)}{spent}"


# --- its tables and figures ---


def mechanisms_table(rows: Sequence[Fields]) -> Table:
    """A row for each mechanism: its points, the claims, and how much of the exact loss was certified."""
    groups: dict[str, list[Fields]] = {}
    for row in rows:
        groups.setdefault(str(row["mechanism"]), []).append(row)
    cells = {name: [cell(group) for group in groups.values()] for name, cell in MECHANISMS.items()}
    shown = {"mechanism": list(map(clean, groups)), **{name: column for name, column in cells.items() if any(column)}}
    note = "Shares are medians over the points where both are known." if any("/" in name for name in shown) else ""
    table = tuple(zip(*shown.values(), strict=True))
    return Table("Points of each mechanism", tuple(shown), table, frozenset(range(1, len(shown))), note)


def points_table(rows: Sequence[Fields]) -> Table:
    """A row for each of the first points; what is the same at all of them stands in the note, once."""
    held = zip(rows[:MOST_POINTS], study.together(rows), strict=False)
    cells = [{name: cell({**row, "alone": not holds}) for name, cell in POINTS.items()} for row, holds in held]
    same = [name for name in ALIKE if len({row[name] for row in cells}) == 1 and len(cells) > 1]
    shown = [name for name in POINTS if name not in same and any(row[name] for row in cells)]
    common = ", ".join(f"{name} {cells[0][name]}" for name in same if cells[0][name])
    return Table(
        "Every point of the sweep",
        tuple(shown),
        tuple(tuple(row[name] for name in shown) for row in cells),
        frozenset(at for at, name in enumerate(shown) if name in NUMBERS),
        f"The same at every point: {common}." if common else "",
        max(0, len(rows) - MOST_POINTS),
    )


def columns_table(rows: "Rows") -> Table:
    """What each column of the file means."""
    known = COLUMNS | {ESTIMATE: "epsilon that the scores of an attack show: an estimate, which certifies nothing"}
    meanings = {name: known.get(name, OF_KEYWORD + name.removeprefix(study.PARAMETERS)) for name in columns(rows)}
    return Table(f"The columns of {TABLE}", ("column", "meaning"), tuple(meanings.items()))


def _median(group: Sequence[Fields], part: Callable[[Fields], Any], whole: Callable[[Fields], Any]) -> str:
    """The median of one epsilon as a share of another, over the points where both are known, and finite."""
    pairs = [(part(row), whole(row)) for row in group]
    shares = [one / all_ for one, all_ in pairs if None not in (one, all_) and 0.0 < all_ < math.inf and one < math.inf]
    return down(statistics.median(shares), 2) if shares else ""


def verdict_text(row: Fields) -> str:
    """The verdict, whether it stands `alone` (Holm), and whether the bound is above the exact loss."""
    alone = ", alone" * (study.is_refuted(row) and row["alone"])
    return (row["verdict"] or "no verdict").lower().replace("_", " ") + alone + ", above exact" * study.is_beyond(row)


def _claimed(group: Sequence[Fields]) -> str:
    claimed = [row["claimed_epsilon"] for row in group if row["claimed_epsilon"] is not None]
    return " to ".join(dict.fromkeys(f"{end(claimed):.4g}" for end in (min, max))) if claimed else ""


def _given(row: Fields) -> str:
    return clean(
        ", ".join(f"{key} = {json.dumps(value, default=str)}" for key, value in parameters_of(row).items()), 200
    )


MECHANISMS: dict[str, Callable[[Sequence[Fields]], str]] = {  # columns of the table of mechanisms
    "points": lambda group: str(len(group)),
    "claimed epsilon": _claimed,
    "refuted": lambda group: str(sum(map(study.is_refuted, group))),
    "above exact": lambda group: str(sum(map(study.is_beyond, group)) or ""),
    "certified / exact": lambda group: _median(group, itemgetter("epsilon_lower"), study.truth),
    "exact / claimed": lambda group: _median(group, study.truth, itemgetter("claimed_epsilon")),
    "proved": lambda group: str(sum(row["proved"] is not None for row in group)),
    "without verdict": lambda group: str(sum(row["verdict"] is None for row in group)),
}
POINTS: dict[str, Callable[[Fields], str]] = {  # columns of the table of points
    "mechanism": lambda row: clean(row["mechanism"]),
    "parameters": _given,
    "claim": lambda row: clean(row["claim"] or ""),
    "runs": lambda row: "" if row["runs"] is None else f"{row['runs']:,}",
    "procedure": lambda row: clean(", ".join(filter(None, (row["certifier"], row["stopping"])))),
    "seed": lambda row: str(row["base_seed"]),
    "verdict": verdict_text,
    "certified": lambda row: study.certified_text(row) if row["verdict"] else clean(row["error"] or "", 200),
    "claimed epsilon": lambda row: "" if row["claimed_epsilon"] is None else f"{row['claimed_epsilon']:.4g}",
    "estimate": lambda row: "" if row.get(ESTIMATE) is None else f"{row[ESTIMATE]:.3g}",
    "exact": lambda row: study.epsilon_text(study.truth(row)),
    "proved": lambda row: study.epsilon_text(row["proved"]),
    "at delta": lambda row: "" if not row["delta"] else f"{row['delta']:.3g}",
    "p-value": lambda row: "" if row["p_value"] is None else p_text(row["p_value"]),
}
ALIKE = ("parameters", "claim", "runs", "procedure", "seed", "at delta")  # left out where all cells are one
NUMBERS = ("estimate", "runs", "seed", "claimed epsilon", "exact", "proved", "at delta", "p-value")
TABLE, GROWING = "sweep.csv", "sweep.csv.part"
BY_RUNS = ("bound_against_runs", "power_curves")
KINDS = ("claimed_against_certified", "bound_against_runs", "power_curves", "runs_to_refute")  # of figures
LONGEST_CELL = 1_000  # characters of a text
MOST_POINTS = 1_000  # rows of the table in a page; the CSV has all
OF_KEYWORD = "value of the mechanism's keyword "  # what a column of a parameter means


Rows = Sequence[dict[str, Any]]


def csv_text(rows: Rows) -> str:
    """The whole table, its header first, cells that no spreadsheet takes for a formula; lines end in one newline."""
    names = columns(rows)
    return _csv(names, *([row.get(name) for name in names] for row in rows))


def _csv(*lines: Iterable[Any]) -> str:
    from dpaudit.report.csv_ import table

    # as pandas, polars and R read them
    return table(
        *([str(cell) if isinstance(cell, bool) else cell for cell in line] for line in lines), longest=LONGEST_CELL
    )


def growing(folder: Path | None) -> Callable[[dict[str, Any]], None]:
    """What puts a row into the table while the sweep goes on, on the disk when it returns, for who has no ledger.

    The file is gone once the whole table is written. None for a folder: nothing is written. Raises `InvalidSpec`.
    """
    if folder is None:
        return lambda fields: None
    path = folder / GROWING
    with writing("--report", path, "folder"):
        write_text(path, _csv(COLUMNS))

    def add(fields: dict[str, Any]) -> None:  # parameters stand with the mechanism
        given = parameters_of(fields)
        shown = {**fields, "mechanism": f"{fields['mechanism']} {given}" if given else fields["mechanism"]}
        with writing("--report", path, "folder"), path.open("a", encoding="utf-8") as file:
            file.write(_csv([shown.get(name) for name in COLUMNS]))
            file.flush()
            os.fsync(file.fileno())

    return add


def drawings(rows: Rows) -> Iterator[Any]:
    """The figures that the table has something for, those by runs where there are several numbers of them."""
    sizes = {row["runs"] for row in rows if row["verdict"] is not None} - {None}
    stopped = any(row["stopping"] == "anytime" for row in rows)
    for name, draw in zip(KINDS, study.KINDS, strict=True):
        if (len(sizes) > 1 or name not in BY_RUNS) and (stopped or name != "runs_to_refute"):
            with contextlib.suppress(InvalidSpec):  # nothing to draw
                yield draw(rows)
