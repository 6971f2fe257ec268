"""Sweeps: audits over a grid in one call, as a tidy table with figures, streamed into the ledger as they come."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dpaudit.account import Account, Level, Topic, account, templates
from dpaudit.auditing.watching import AuditInterrupted, watching
from dpaudit.base.files import write_bytes, write_text
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.ledger.results import Ledger
from dpaudit.options import SWEEP_KEYS
from dpaudit.report.display import Rows, frame_rows
from dpaudit.report.figures import Drawing, drawings
from dpaudit.results.display import Displayed
from dpaudit.results.result import AuditResult
from dpaudit.scores.result import ESTIMATE, Decided
from dpaudit.sweeps import page
from dpaudit.sweeps.grid import Grid
from dpaudit.sweeps.page import KINDS, NOT_SHOWN, READING, sweep_row
from dpaudit.sweeps.rows import COLUMNS, REALS, columns, row_of_scores
from dpaudit.sweeps.running import run_points
from dpaudit.sweeps.spec import axis, combinations

__all__ = ["COLUMNS", "KINDS", "Sweep", "SweepInterrupted", "run_sweep", "sweep"]

Fields = dict[str, Any]
NAMED = 'a table is joined with tables, and results of trainings become one by name: Sweep.of({"DP-SGD": result})'


@dataclass(frozen=True, slots=True, repr=False)
class Sweep(Displayed):
    """The table of a sweep: a row a point of the grid, in its order, each with all columns.

    `dpaudit.sweeps.COLUMNS` says what each column means, `KINDS` which figures `plot` has. Every bound holds with the
    confidence of its row, for itself alone, and every row has a `seed` of its own; `str` tells what holds of all
    together. `repeated` counts rows of joined tables that gave the same answer to the same question: one is kept.
    """

    rows: tuple[Fields, ...]
    name: str = "sweep"
    repeated: int = 0

    def plot(self, kind: str | None = None, *, size: str | float | None = None, style: str = "screen") -> Any:
        """A figure of the table, one of `KINDS`; an error says what it needs. `size`, `style` are those of any plot."""
        from dpaudit.report.figures import panel, study

        if kind not in KINDS:
            return Displayed.plot(self, kind, size=size, style=style)
        with panel.laid_out(size, style):
            return getattr(study, kind)(self.rows)

    @classmethod
    def of(cls, results: Mapping[str, Decided], name: str = "trainings") -> "Sweep":
        """Results of `audit_training` and `audit_scores` as a table, a row for each under the name that it is given.

        Only what is certified stands in the columns of bounds; a figure of the attack has the column `estimate`.

        >>> import dpaudit
        >>> found = dpaudit.audit_scores([0.9, 0.8, 0.7], [0.1, 0.2, 0.3], epsilon=1.0)
        >>> [(row["mechanism"], row["claimed"]) for row in Sweep.of({"small model": found}).rows]
        [('small model', 1.0)]
        """
        if not isinstance(results, Mapping):
            raise InvalidSpec(NAMED)
        return cls(tuple(row_of_scores(k, *each) for k, each in enumerate(results.items(), start=1)), name)

    def __add__(self, other: "Sweep") -> "Sweep":
        """Both tables as one, its points numbered anew; the name is the first one's. No two rows share a run.

        Raises `InvalidSpec` where a point of the other has the seed of one here, and is another audit.
        """
        if not isinstance(other, Sweep):
            raise InvalidSpec(NAMED)
        by_seed, rows = {row["seed"]: row for row in self.rows}, list(self.rows)
        for row in other.rows:
            twin = None if row["seed"] is None else by_seed.get(row["seed"])
            if twin is None:
                rows.append(row)
            elif twin["fingerprint"] != row["fingerprint"]:
                raise InvalidSpec(
                    f"point {row['point']} of {other.name} ({row['mechanism']}) has the seed of point {twin['point']} "
                    f"of {self.name}, {row['seed']}, and is another audit: sweep one of them with other seeds=..."
                )
        repeated = self.repeated + other.repeated + len(self.rows) + len(other.rows) - len(rows)
        return Sweep(tuple({**row, "point": n} for n, row in enumerate(rows, start=1)), self.name, repeated)

    def __radd__(self, nothing: int) -> "Sweep":
        """This table, after the 0 that `sum` begins with."""
        return self if nothing == 0 else NotImplemented

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, those of the mechanisms' parameters after the mechanism."""
        return columns(self.rows)

    @property
    def without_verdict(self) -> tuple[Fields, ...]:
        """The rows of points that could not be asked, or whose audit broke; `error` says why."""
        return tuple(row for row in self.rows if row["verdict"] is None)

    @property
    def exit_code(self) -> int:
        """0 where every point has a verdict, whichever; 3 where one has none; 5 for an empty table."""
        if not self.rows:
            return 5
        return 3 if self.without_verdict else 0

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Writes the table, cells that no spreadsheet takes for a formula; returns the path."""
        return write_text(path, page.csv_text(self.rows))

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Writes the table with its types; returns the path. Raises `MissingRequirement` without pyarrow and polars."""
        from dpaudit.report.csv_ import parquet

        return write_bytes(path, parquet(self.columns, self.rows, (*REALS, ESTIMATE)))

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes the table, its figures and a page that explains them into a folder; returns the paths."""
        from dpaudit.report import write_account
        from dpaudit.report.figures.drawing import draws_png

        table = write_text(Path(folder, page.TABLE), page.csv_text(self.rows))
        table.with_name(page.GROWING).unlink(missing_ok=True)
        told = account(self)
        head, *rest = told.sections
        told = replace(told, sections=(replace(head, lines=(f"{self.name}: {told.headline}",)), *rest))
        drawn = [replace(each, rows=()) for each in drawings(self)]  # their numbers stand in the table of all points
        suffixes = (".svg", ".png") if draws_png() else (".svg",)
        return [table, *write_account(told, drawn, folder, "sweep", table.name, suffixes=suffixes)]


TOPICS: tuple[Topic[Sweep], ...] = (
    Topic("points", Level.HEADLINE, lambda table: (page.sweep_headline(table.rows),)),
    Topic("what holds", Level.PAGE_ONE, lambda table: page.sweep_lines(table.rows, table.repeated)),
    Topic("mechanisms", Level.DETAIL, table=lambda table: page.mechanisms_table(table.rows)),
    Topic("how to read it", Level.DETAIL, lambda table: READING),
    Topic("not shown", Level.DETAIL, lambda table: NOT_SHOWN),
    Topic("all points", Level.REVIEWER, table=lambda table: page.points_table(table.rows)),
    Topic("columns", Level.REVIEWER, table=lambda table: page.columns_table(table.rows)),
)


@account.register
def _account(table: Sweep, up_to: Level = Level.REVIEWER) -> Account:
    return Account.of(templates.SWEEP, "none", TOPICS, table, up_to)


@drawings.register
def _drawings(table: Sweep) -> tuple[Drawing, ...]:
    return tuple(page.drawings(table.rows))


@frame_rows.register
def _rows(table: Sweep) -> Rows:
    return Rows(table.rows, table.columns, (*REALS, ESTIMATE))


class SweepInterrupted(AuditInterrupted):
    """A sweep that was stopped by hand; `sweep` is the table of the points that were done by then."""

    def __init__(self, sweep: Sweep, size: int, goes_on: str) -> None:
        super().__init__(f"{len(sweep.rows):,} of {size:,} points done, their table is the error's `sweep`{goes_on}")
        self.sweep = sweep


def sweep(
    mechanisms: Any,
    *,
    parameters: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None,
    pair: Any = None,
    pairs: Iterable[Any] | None = None,
    claim: Any = None,
    claims: Iterable[Any] | None = None,
    runs: Any = 1_000_000,
    certifiers: Any = None,
    stopping: Any = "fixed",
    seeds: Any = 0,
    confidence: float = 0.999,
    run_timeout_s: float | None = None,
    user: str | int | None = None,
    prove: bool = False,
    ledger: Any = None,
    record: Callable[[AuditResult], object] | None = None,
    n_jobs: int | None = None,
    backend: str | None = None,
    scheduler: str | None = None,
    isolation: str | None = None,
    progress: Callable[[Fields], object] | bool | None = None,
) -> Sweep:
    """Audits every combination of what it is given; a list is an axis, a single value the same for all points.

    `mechanisms` are what `dpaudit.audit` takes, or names of the catalogue, `parameters` lists of values of their
    keywords, all combined, or a list of combinations. A claim may be a number, a formula in the parameters such as
    "2*eps", or a function that is called with those parameters of the point that it names, as a pair may; a mapping
    has one for each mechanism, by its name; without any, an entry of the catalogue brings its own. A point that cannot
    be asked, or whose audit breaks, is a row that says so. Tables are joined by `+` and `sum`.

    Each result goes to `record` and into `ledger` (a file, or a `Ledger`) before the next point begins; points that
    the ledger holds already, for the same question, sources and versions, are not run again. Stopped by hand, it
    raises `SweepInterrupted`, a `KeyboardInterrupt` whose `sweep` is the table so far (in a notebook
    `sys.last_value.sweep`). Raises `InvalidSpec` for a grid that is wrong in itself before anything runs.

    >>> from dpaudit.catalogue.additive import laplace
    >>> found = sweep(laplace, parameters={"epsilon": [0.5, 2.0]}, runs=10_000)
    >>> [(row["claimed"], row["true_epsilon"], row["epsilon_lower"] <= row["true_epsilon"]) for row in found.rows]
    [(0.5, 0.5, True), (2.0, 2.0, True)]
    """
    given = locals()
    for one, several in (("pair", "pairs"), ("claim", "claims")):
        if given[one] is not None and given[several] is not None:
            raise InvalidSpec(f"give {one} or {several}, one of the two")
    grid = Grid(
        mechanisms=axis(mechanisms),
        parameters=combinations(parameters),
        claims=(claim,) if claims is None else axis(claims),
        pairs=(_pair(pair, "pair"),)
        if pairs is None
        else tuple(_pair(each, f"pair {number}") for number, each in enumerate(axis(pairs), start=1)),
        options={name: axis(given[key]) for name, key in SWEEP_KEYS.items() if key in given},
        prove=prove,
    )
    engine = partial(Engine, n_jobs, backend, scheduler, isolation=isolation)
    return run_sweep(grid, engine, ledger=ledger, record=record, progress=progress)


def run_sweep(
    grid: Grid,
    make_engine: Callable[[], Engine],
    *,
    ledger: Any = None,
    record: Callable[[AuditResult], object] | None = None,
    progress: Callable[[Fields], object] | bool | None = None,
    put: Callable[[Fields], object] = lambda row: None,
) -> Sweep:
    """The table of a grid; `ledger` is a file, an open `Ledger` or None, `put` hears of each row before it is told."""
    make_engine()  # a bad number of workers is refused once, here, and not by each point
    rows: list[Fields] = []
    open_already = ledger is None or isinstance(ledger, Ledger)
    try:
        with (
            nullcontext(ledger) if open_already else Ledger(ledger) as opened,
            watching(grid.size, shown=False if callable(progress) else progress) as watcher,
        ):
            for row in run_points(grid, make_engine, ledger=opened, record=record, watcher=watcher):
                rows.append(row)
                put(row)
                if callable(progress):
                    progress(row)
                else:
                    (watcher.failed if row["verdict"] is None else watcher.finished)(sweep_row(row))
    except KeyboardInterrupt:
        goes_on = "" if ledger is None else "; the same call goes on from there"
        raise SweepInterrupted(Sweep(tuple(rows), grid.name), grid.size, goes_on) from None
    return Sweep(tuple(rows), grid.name)


def _pair(pair: Any, name: str) -> Any:
    if isinstance(pair, Mapping):
        return {mechanism: _pair(each, name) for mechanism, each in pair.items()}
    if pair is None or hasattr(pair, "resolve") or callable(pair):
        return pair
    return AdjacentPair.of(pair, name)
