"""The door of sweeps: a grid of audits in one call, and the table that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.pairs import AdjacentPair
from dpaudit.results.result import AuditResult
from dpaudit.sampling import SILENT, Engine, Progress
from dpaudit.sweeps.axes import axis, combinations
from dpaudit.sweeps.grid import Grid, Point
from dpaudit.sweeps.page import KINDS
from dpaudit.sweeps.running import Row, run_points
from dpaudit.sweeps.table import Fields, Sweep


class SweepInterrupted(KeyboardInterrupt):
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
    prove: bool = False,
    ledger: Any = None,
    record: Callable[[AuditResult], object] | None = None,
    n_jobs: int = -1,
    backend: str | None = None,
    isolation: str | None = None,
    progress: Callable[[Fields], object] | None = None,
) -> Sweep:
    """Audits every combination of what it is given; a list is an axis, a single value the same for all points.

    `mechanisms` are what `dpaudit.audit` takes, `parameters` lists of values of their keywords, all combined, or a
    list of combinations. `pairs` and `claims` are axes too, `pair` and `claim` a single one; a function is called with
    the parameters of the point, a number is an epsilon, and an entry of the catalogue brings its own. A point that
    cannot be asked (a parameter the mechanism does not have, a certifier that is not for the claim), or whose audit
    breaks, is a row that says so. `prove` bounds every question from above too, by proof and exact loss where there is
    one. `confidence` is that of each point for itself.

    Each result goes to `record` and into `ledger` (a file, or a `Ledger`) before the next point begins; points that
    the ledger holds already, for the same question, sources and versions, are not run again. `progress` hears of each
    row. Stopped by hand, it raises `SweepInterrupted`, a `KeyboardInterrupt` whose `sweep` is the table so far (in a
    notebook `sys.last_value.sweep`). Raises `InvalidSpec` for a grid that is wrong in itself.

    >>> from dpaudit.catalogue.additive import laplace
    >>> found = sweep(laplace, parameters={"epsilon": [0.5, 2.0]}, runs=10_000)
    >>> [(row["claimed"], row["true_epsilon"], row["epsilon_lower"] <= row["true_epsilon"]) for row in found.rows]
    [(0.5, 0.5, True), (2.0, 2.0, True)]
    """
    if pair is not None and pairs is not None:
        raise InvalidSpec("give pair or pairs, one of the two")
    if claim is not None and claims is not None:
        raise InvalidSpec("give claim or claims, one of the two")
    grid = Grid(
        mechanisms=axis(mechanisms),
        parameters=combinations(parameters),
        claims=(claim,) if claims is None else axis(claims),
        pairs=(_pair(pair, "pair"),)
        if pairs is None
        else tuple(_pair(each, f"pair {number}") for number, each in enumerate(axis(pairs), start=1)),
        runs=axis(runs),
        certifiers=axis(certifiers),
        stopping=axis(stopping),
        seeds=axis(seeds),
        confidence=confidence,
        run_timeout_s=run_timeout_s,
    )

    def heard(row: Row) -> None:
        if progress is not None:
            progress(row.fields)

    def engine() -> Engine:
        return Engine(n_jobs, backend, isolation=isolation)

    return run_sweep(grid, engine, prove=prove, ledger=ledger, record=record, row_done=heard)


def run_sweep(
    grid: Grid,
    make_engine: Callable[[], Engine],
    *,
    name: str = "sweep",
    prove: bool = False,
    ledger: Any = None,
    record: Callable[[AuditResult], object] | None = None,
    progress: Progress = SILENT,
    begins: Callable[[Point], object] = lambda point: None,
    row_done: Callable[[Row], object] = lambda row: None,
) -> Sweep:
    """The table of a grid; `ledger` is a file, an open `Ledger` or None."""
    make_engine()  # a bad number of workers is refused once, here, and not by each point
    rows: list[Fields] = []

    def run(store: Any) -> None:
        for row in run_points(grid, make_engine, store=store, prove=prove, progress=progress, begins=begins):
            rows.append(row.fields)
            row_done(row)

    from dpaudit.ledger.results import Ledger
    from dpaudit.sweeps.store import LedgerStore

    try:
        if ledger is None or isinstance(ledger, Ledger):
            run(LedgerStore(ledger, record))
        else:
            with Ledger(ledger) as opened:
                run(LedgerStore(opened, record))
    except KeyboardInterrupt:
        goes_on = "" if ledger is None else "; the same call goes on from there"
        raise SweepInterrupted(Sweep(tuple(rows), name), grid.size, goes_on) from None
    return Sweep(tuple(rows), name)


def _pair(pair: Any, name: str) -> Any:
    if pair is None or hasattr(pair, "resolve") or callable(pair):
        return pair
    return AdjacentPair.of(pair, name)


__all__ = ["KINDS", "Sweep", "SweepInterrupted", "run_sweep", "sweep"]
