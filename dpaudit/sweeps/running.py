"""Running a sweep: point after point, each a row as soon as it is known, whatever another one does."""

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from dpaudit.auditing.known import comes_with_us
from dpaudit.auditing.question import Plan, plan
from dpaudit.auditing.runner import Runner
from dpaudit.auditing.watching import Watcher
from dpaudit.base.strict import spec_hash
from dpaudit.data.data import digest
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import LedgerJournal
from dpaudit.mechanisms import Imported, Mechanism
from dpaudit.mechanisms.importing import in_a_line
from dpaudit.results.provenance import versions
from dpaudit.results.result import AuditResult
from dpaudit.running.program import made_of, made_with, unknown
from dpaudit.sweeps.grid import Grid, Point, points
from dpaudit.sweeps.rows import UpperBounds, above_of, row_of

Looked = dict[int, tuple[Mechanism, dict[str, str] | None]]  # mechanisms by their id, with their parts
NUMBER_DIGITS = 15  # of a spec's hash: as many hexadecimal ones as a number of the ledger holds
SEED_DIGITS = 13  # hexadecimal ones of a point's own seed: as many as a float holds, so that every table keeps it
Fields = dict[str, Any]


def run_points(
    grid: Grid,
    make_engine: Callable[[], Engine],
    *,
    ledger: Ledger | None = None,
    record: Callable[[AuditResult], object] | None = None,
    watcher: Watcher | None = None,
) -> Iterator[Fields]:
    """The rows of a grid, in its order, each as soon as it is known; results go into `ledger`, new ones to `record`.

    Whatever goes wrong with a point becomes its row's `error`, and the next one gets an engine of its own. Where the
    grid asks for proofs, each question is bounded from above too, once for all its runs and seeds. Raises `InvalidSpec`
    before anything runs where no point can be asked, all for one reason.
    """
    asked, answers = list(points(grid)), _Answers(make_engine, watcher or Watcher(silent=True), ledger, record)
    if asked[0].error is not None and len({point.error for point in asked}) == 1:
        raise InvalidSpec(f"{asked[0].name}: {asked[0].error}")
    try:
        for point in asked:
            answers.watcher.audit(point.number, point.name)
            yield answers.row(point, grid.prove)
    finally:
        answers.close()


@dataclass(slots=True)
class _Answers:
    """The answers to points, one after the other, and what one of them leaves for the next.

    One engine serves the points of a mechanism: what it imports or breaks is gone before the next one's. A result is
    taken from the ledger where question, seed, versions and all parts of the mechanism are the same
    (`running.program`). A mechanism that cannot be shown to be the same is always run.
    """

    make_engine: Callable[[], Engine]
    watcher: Watcher
    ledger: Ledger | None
    record: Callable[[AuditResult], object] | None
    engine: Engine | None = None
    home: str | None = None  # of the mechanism that the engine is for
    bounds: dict[str, UpperBounds] = field(default_factory=dict)
    drawn: set[int] = field(default_factory=set)  # the seeds of points
    parts: Looked = field(default_factory=dict)

    def row(self, point: Point, prove: bool) -> Fields:
        """The row of a point, whose result is on the disk when this returns."""
        above = self.above(point) if prove else None
        if point.mechanism is None or point.error is not None:
            return row_of(point, None, above=above)
        try:
            runner, question = Runner(self.engine_of(point), progress=self.watcher), point.question()
            description, pairs = runner.described(question)
            question = replace(question, description=description, pairs=pairs)
            question = replace(question, seed=own_seed(plan(question), self.drawn))
            asked = plan(question)
            code = None if self.ledger is None else same_code(asked.mechanism, asked.seed, self.parts)
            number = None if code is None else int(asked.hash[:NUMBER_DIGITS], 16)
            stored = self.find(asked, code, number)
            result = runner.run(question) if stored is None else stored
        except Exception as error:
            self.close()
            why = str(error) if isinstance(error, DpAuditError) else f"internal error: {in_a_line(error)}"
            return row_of(point, None, above=above, error=why)
        if stored is None and self.ledger is not None:
            self.ledger.record(result, run=code, number=number)
        if stored is None and self.record is not None:
            self.record(result)
        return row_of(point, result, above=above, from_ledger=stored is not None)

    def find(self, asked: Plan, code: str | None, number: int | None) -> AuditResult | None:
        """The result of the very same question about the very same code; None where there is none."""
        if self.ledger is None or code is None or number is None:
            return None
        ended = LedgerJournal(self.ledger, code, number).ended()
        return ended if isinstance(ended, AuditResult) and spec_hash(ended.spec) == asked.hash else None

    def above(self, point: Point) -> UpperBounds:
        """The bounds of a point's question; computed once for the points that share mechanism, claim and pair."""
        if point.mechanism is None or point.claim is None or point.error is not None:
            return UpperBounds()
        opened = point.pair.open() if hasattr(point.pair, "open") else getattr(point.pair, "reference", "")
        asked = [point.name, repr(point.mechanism), dict(point.parameters), point.claim.to_dict(), digest(opened)]
        key = json.dumps(asked, default=repr)
        if key not in self.bounds:
            try:
                self.bounds[key] = above_of(point)
            except Exception as error:  # a bound is an addition: without it the audit still has its row
                self.bounds[key] = UpperBounds(why=f"internal error: {in_a_line(error)}")
        return self.bounds[key]

    def engine_of(self, point: Point) -> Engine:
        """The engine for a point; all mechanisms that come with us share one."""
        home, mechanism = point.name, point.mechanism
        if point.known is not None and comes_with_us(point.known):
            home = "ours"
        elif isinstance(mechanism, Imported):
            home = f"{mechanism.folder}:{mechanism.reference}"
        if self.engine is None or home != self.home:
            self.close()
            self.engine, self.home = self.make_engine().__enter__(), home
        return self.engine

    def close(self) -> None:
        """Ends the workers of the engine, if there is one."""
        engine, self.engine = self.engine, None
        if engine is not None:
            engine.__exit__(None, None, None)


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
