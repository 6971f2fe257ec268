"""The tables of a sweep, for its account and as a file, and its figures."""

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
from dpaudit.base.numerals import down, p_text
from dpaudit.base.quoting import clean
from dpaudit.errors import InvalidSpec
from dpaudit.report.figures.study import certified_text, epsilon_text, is_beyond, is_refuted, together, truth
from dpaudit.scores.result import ESTIMATE
from dpaudit.sweeps.rows import COLUMNS, PARAMETERS, columns, parameters_of

Fields = Mapping[str, Any]


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
    held = zip(rows[:MOST_POINTS], together(rows), strict=False)
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
    meanings = {name: known.get(name, OF_KEYWORD + name.removeprefix(PARAMETERS)) for name in columns(rows)}
    return Table(f"The columns of {TABLE}", ("column", "meaning"), tuple(meanings.items()))


def _median(group: Sequence[Fields], part: Callable[[Fields], Any], whole: Callable[[Fields], Any]) -> str:
    """The median of one epsilon as a share of another, over the points where both are known, and finite."""
    pairs = [(part(row), whole(row)) for row in group]
    shares = [one / all_ for one, all_ in pairs if None not in (one, all_) and 0.0 < all_ < math.inf and one < math.inf]
    return down(statistics.median(shares), 2) if shares else ""


def verdict_text(row: Fields) -> str:
    """The verdict, whether it stands `alone` (Holm), and whether the bound is above the exact loss."""
    alone = ", alone" * (is_refuted(row) and row["alone"])
    return (row["verdict"] or "no verdict").lower().replace("_", " ") + alone + ", above exact" * is_beyond(row)


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
    "refuted": lambda group: str(sum(map(is_refuted, group))),
    "above exact": lambda group: str(sum(map(is_beyond, group)) or ""),
    "certified / exact": lambda group: _median(group, itemgetter("epsilon_lower"), truth),
    "exact / claimed": lambda group: _median(group, truth, itemgetter("claimed_epsilon")),
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
    "certified": lambda row: certified_text(row) if row["verdict"] else clean(row["error"] or "", 200),
    "claimed epsilon": lambda row: "" if row["claimed_epsilon"] is None else f"{row['claimed_epsilon']:.4g}",
    "estimate": lambda row: "" if row.get(ESTIMATE) is None else f"{row[ESTIMATE]:.3g}",
    "exact": lambda row: epsilon_text(truth(row)),
    "proved": lambda row: epsilon_text(row["proved"]),
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
    from dpaudit.report.figures import study

    sizes = {row["runs"] for row in rows if row["verdict"] is not None} - {None}
    stopped = any(row["stopping"] == "anytime" for row in rows)
    for name, draw in zip(KINDS, study.KINDS, strict=True):
        if (len(sizes) > 1 or name not in BY_RUNS) and (stopped or name != "runs_to_refute"):
            with contextlib.suppress(InvalidSpec):  # nothing to draw
                yield draw(rows)
