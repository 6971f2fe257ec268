"""Running a sweep: point after point, each a row as soon as it is known, whatever another one does."""

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from dpaudit.auditing.known import comes_with_us
from dpaudit.auditing.question import Plan, plan
from dpaudit.auditing.runner import Runner
from dpaudit.base.strict import spec_hash
from dpaudit.data.data import digest
from dpaudit.errors import DpAuditError
from dpaudit.execution.engine import Engine
from dpaudit.ledger.results import Ledger, LedgerRecord
from dpaudit.mechanisms import Imported, Mechanism
from dpaudit.results.provenance import versions
from dpaudit.results.result import AuditResult
from dpaudit.running.program import made_of, made_with, unknown
from dpaudit.running.progress import SILENT, Progress
from dpaudit.sweeps.grid import Grid, Point, failure, points
from dpaudit.sweeps.rows import UpperBounds, above_of, row_of

Looked = dict[int, tuple[Mechanism, dict[str, str] | None]]  # mechanisms by their id, with their parts
NUMBER_DIGITS = 15  # of a spec's hash: as many hexadecimal ones as a number of the ledger holds


class LedgerStore:
    """A sweep's results in a ledger; `record` hears of each new one too.

    A result is taken from the ledger where question, seed, versions and all parts of the mechanism are the same
    (`running.program`). A mechanism that cannot be shown to be the same is always run.
    """

    def __init__(self, ledger: Ledger | None, record: Callable[[AuditResult], object] | None = None) -> None:
        self._ledger = ledger
        self._record = record
        self._known: dict[str, dict[int, LedgerRecord]] = {}
        self._asked: str | None = None  # the code of the question that was looked for last
        self._parts: Looked = {}

    def find(self, asked: Plan) -> AuditResult | None:
        """The result of the very same question about the very same code; None where there is none."""
        if self._ledger is None:
            return None
        run = self._asked = same_code(asked.mechanism, asked.seed, self._parts)
        if run is None:
            return None
        if run not in self._known:
            self._known[run] = self._ledger.of_run(run)
        record = self._known[run].get(number_of(asked))
        if record is None or record.spec_hash != asked.hash:
            return None
        result = self._ledger.load(record)
        return result if spec_hash(result.spec) == asked.hash else None

    def keep(self, asked: Plan, result: AuditResult) -> None:
        """Records a result, on the disk when this returns."""
        if self._ledger is not None:
            run = self._asked
            self._ledger.record(result, run=run, number=None if run is None else number_of(asked))
        if self._record is not None:
            self._record(result)


def number_of(asked: Plan) -> int:
    """The question as a number of the ledger."""
    return int(asked.hash[:NUMBER_DIGITS], 16)


def same_code(mechanism: Mechanism, seed: int, known: Looked) -> str | None:
    """A name that two audits share whose mechanisms are made of the same parts; None where nothing can tell.

    `known` keeps what a mechanism was before its first run: once a module is loaded its file may change unseen.
    """
    if comes_with_us(mechanism):
        parts: dict[str, str] | None = {"the mechanism": "catalogue"}
    elif id(mechanism) in known:
        parts = known[id(mechanism)][1]
    else:
        before = set(sys.modules)
        parts_now = made_of(mechanism)
        parts = None if unknown(parts_now) or _may_be_old(parts_now, before) else parts_now
        known[id(mechanism)] = mechanism, parts
    if parts is None:
        return None
    identity = [parts | made_with(), seed, versions()["platform"]]
    return "sweep-" + hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


def _may_be_old(parts: Iterable[str], before: set[str]) -> bool:
    """Whether a file was changed since this process began and was loaded `before`: what runs may be an older text."""
    named = (name.removeprefix("module ") for name in parts if name.startswith("module "))
    modules = (sys.modules.get(name) for name in named if name in before)
    files = [file for module in modules if (file := getattr(module, "__file__", None)) is not None]
    return any(os.path.getmtime(file) >= _started() for file in files if os.path.exists(file))


@cache
def _started() -> float:
    """When this process began, less the second that clocks may differ in; long ago where the system does not say."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
        return int(booted.split()[1]) + ticks / os.sysconf("SC_CLK_TCK") - 1.0
    except (OSError, ValueError, StopIteration, IndexError):
        return -math.inf


SEED_DIGITS = 13  # hexadecimal ones of a point's own seed: as many as a float holds, so that every table keeps it
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A point, its line of the table, and its result where there is one."""

    point: Point
    fields: Fields
    result: AuditResult | None = None


def run_points(
    grid: Grid,
    make_engine: Callable[[], Engine],
    *,
    store: LedgerStore | None = None,
    prove: bool = False,
    progress: Progress = SILENT,
    begins: Callable[[Point], object] = lambda point: None,
) -> Iterator[Row]:
    """The rows of a grid, in its order, each as soon as it is known.

    Whatever goes wrong with a point becomes its row's `error`, and the next one gets an engine of its own. With
    `prove`, each question is bounded from above too, once for all its runs and seeds.
    """
    engines = _Engines(make_engine)
    known: dict[str, UpperBounds] = {}
    drawn: set[int] = set()
    try:
        for point in points(grid):
            begins(point)
            above = _above(point, known) if prove else None
            yield _answer(point, engines, store, progress, above, drawn)
    finally:
        engines.close()


def own_seed(asked: Plan, drawn: set[int]) -> int:
    """The seed of a point alone, so that no two share a run: 52 bits of the digest of its question, with its seed.

    Of the mechanism the name and the parameters count, not the source. A seed that is among those `drawn`, of a
    mechanism of the same name, is followed by the next number.
    """
    question = asked.to_dict()
    question["mechanism"] = {key: question["mechanism"][key] for key in ("name", "parameters")}
    seed = int(spec_hash(question)[:SEED_DIGITS], 16)
    while seed in drawn:
        seed += 1
    drawn.add(seed)
    return seed


def _answer(
    point: Point,
    engines: "_Engines",
    store: LedgerStore | None,
    progress: Progress,
    above: UpperBounds | None,
    drawn: set[int],
) -> Row:
    if point.mechanism is None or point.error is not None:
        return Row(point, row_of(point, None, above=above))
    try:
        engine = engines.of(point)
        runner, question = Runner(engine, progress=progress), point.question()
        description, pairs = runner.described(question)
        question = replace(question, description=description, pairs=pairs)
        question = replace(question, seed=own_seed(plan(question), drawn))
        asked = plan(question)
        stored = None if store is None else store.find(asked)
        result = runner.run(question) if stored is None else stored
    except DpAuditError as error:
        engines.close()
        return Row(point, row_of(point, None, above=above, error=str(error)))
    except Exception as error:
        engines.close()
        return Row(point, row_of(point, None, above=above, error=f"internal error: {failure(error)}"))
    if store is not None and stored is None:
        store.keep(asked, result)
    return Row(point, row_of(point, result, above=above, from_ledger=stored is not None), result)


def _above(point: Point, known: dict[str, UpperBounds]) -> UpperBounds:
    """The bounds of a point's question; computed once for the points that share mechanism, claim and pair."""
    if point.mechanism is None or point.claim is None or point.error is not None:
        return UpperBounds()
    opened = point.pair.open() if hasattr(point.pair, "open") else getattr(point.pair, "reference", "")
    asked = [point.name, repr(point.mechanism), dict(point.parameters), point.claim.to_dict(), digest(opened)]
    key = json.dumps(asked, default=repr)
    if key not in known:
        try:
            known[key] = above_of(point)
        except Exception as error:  # a bound is an addition: without it the audit still has its row
            known[key] = UpperBounds(why=f"internal error: {failure(error)}")
    return known[key]


class _Engines:
    """One engine for the points of a mechanism: what it imports or breaks is gone before the next one's."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._make = make
        self._engine: Engine | None = None
        self._home: str | None = None

    def of(self, point: Point) -> Engine:
        """The engine for a point; all mechanisms that come with us share one."""
        home = "ours" if point.known is not None and comes_with_us(point.known) else _home(point)
        if self._engine is None or home != self._home:
            self.close()
            self._engine, self._home = self._make().__enter__(), home
        return self._engine

    def close(self) -> None:
        """Ends the workers of the engine, if there is one."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.__exit__(None, None, None)


def _home(point: Point) -> str:
    mechanism = point.mechanism
    return f"{mechanism.folder}:{mechanism.reference}" if isinstance(mechanism, Imported) else point.name
