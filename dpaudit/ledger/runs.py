"""Runs in the ledger: what was asked, how far it is, and who drives it; so that a killed one can be resumed.

A resumed run must be the same run: same audits, same options, same sources, same versions. The shards of an audit are
there until it has a result: synced before their counts are used. A run is driven by the process that has its lock,
which ends with that process. A call of `dpaudit.audit` is a run of one audit: the same call asks the same question of a
mechanism that is made of the same parts (`running.program`).
"""

import contextlib
import hashlib
import json
import os
import sys
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dpaudit.base.files import lock
from dpaudit.base.quoting import clean
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.execution.journal import LOADED, ShardStore, StoredShard
from dpaudit.ledger.database import LedgerError
from dpaudit.ledger.results import Ledger
from dpaudit.mechanisms import Mechanism
from dpaudit.processes.clusters import ClusterLost
from dpaudit.processes.tasks import parts_of
from dpaudit.results.result import AuditResult
from dpaudit.running.contents import PACKAGE, digest_of, digest_of_file
from dpaudit.running.program import changed, made_with, unknown
from dpaudit.running.streams import Shard, Stage

KEPT_DAYS = 30  # for which an unfinished run is kept
DAYS_SEEN = 3  # on which runs must have begun since: a clock that jumped is seen on one
MADE = "made of"  # in a question: the parts of its mechanism
INTO = (
    'INTO shards (run, audit, "call", look, stage, pair, shard, runs, question, kind, content, digest) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
BEFORE = (
    'DELETE FROM shards WHERE run = ? AND audit = ? AND "call" = ? AND look = ? AND stage = ? AND pair = ? '
    "AND shard = ? AND kind = 'piece'"
)
NOTES = -1  # stands for a call: what was noted of the audit is kept as a shard is
_OPEN_LOCKS: set[int] = set()


class RunLock:
    """The lock of a run; `take` raises `LedgerError` where its file cannot be made."""

    def __init__(self, ledger: Path, run: str) -> None:
        real = ledger.resolve()  # one lock, by any name of the ledger
        self.path = real.with_name(f"{real.name}.{run}.lock")
        self._file: int | None = None

    def take(self) -> bool:
        """Whether the run is ours now: not where another process has the lock."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise LedgerError(
                f"{clean(self.path, 200)}: the lock of the run cannot be made ({why}); make the folder writable"
            ) from None
        ours = False
        with suppress(OSError):
            ours = lock(file, wait=False)
        if not ours:
            os.close(file)
            return False
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(self.path)):
                self._file = file
                _OPEN_LOCKS.add(file)
                return True
        os.close(file)  # the process that had it has freed it since it was opened, and deleted the file
        return self.take()

    def free(self) -> None:
        """Frees the run, and deletes the file."""
        if self._file is not None:
            self.path.unlink(missing_ok=True)  # before it is closed: whoever opens the name next makes a new file
            _OPEN_LOCKS.discard(self._file)
            os.close(self._file)
            self._file = None


def _close_in_children() -> None:
    """A process forked from the driver must not keep the lock for longer than the driver lives."""
    for file in _OPEN_LOCKS:
        os.close(file)
    _OPEN_LOCKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_children)


@dataclass(frozen=True, slots=True)
class Begun:
    """An audit that has begun: how many processes drove it, its question as it was stored, the runs planned for it."""

    drivers: int
    spec: dict[str, Any]
    runs: int | None

    @property
    def interruptions(self) -> int:
        """How often it was interrupted before the process that drives it now took it up."""
        return self.drivers - 1


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite, or of a call, driven by this process until `close`."""

    ledger: Ledger
    id: str
    _lock: RunLock

    def finish(self) -> None:
        """All audits of the run are recorded."""
        with self.ledger.transaction() as connection:
            connection.execute("UPDATE runs SET finished = ? WHERE id = ?", (_now().isoformat(), self.id))
            connection.execute("DELETE FROM shards WHERE run = ?", (self.id,))
        self.ledger.give_back()
        self.ledger.check_present()

    def close(self) -> None:
        """Lets other processes take the run up."""
        self._lock.free()


@dataclass(slots=True)
class LedgerJournal:
    """One audit of a run: its shards until it has a result, then the result; the `ShardStore` of its engine.

    `parts` are those of its mechanism (`running.program`), `driver` is how many processes have driven it before. Raises
    `LedgerWriteFailed` where the disk refuses, `LedgerLost` where the file is gone, and `LedgerError` where a stored
    shard is not what was stored, or a place is taken.
    """

    ledger: Ledger
    run: str
    number: int = 1
    parts: dict[str, str] = field(default_factory=dict)
    driver: int = 0
    ours: bool = False  # this process has begun or resumed it
    _noted: dict[str, Any] | None = None

    @property
    def begun(self) -> Begun | None:
        """What is known of it; None where it has not begun."""
        rows = self.ledger.rows("SELECT content FROM begun WHERE run = ? AND number = ?", (self.run, self.number))
        return Begun(**json.loads(rows[0]["content"])) if rows else None

    def look_at(self, mechanism: Mechanism, engine: Engine) -> None:
        """Looks at what the mechanism is made of, before any run."""
        self.parts = engine.made_of(mechanism)

    def begin(self, spec: Mapping[str, Any], runs: int | None) -> ShardStore:
        """It begins or resumes, with this process as its driver; `runs` are those that a probe chose."""
        self.ledger.check_present()
        if self.begun is not None and (lost := unknown(self.parts)):
            self.begin_anew(spec["name"], lost)
        self.check(spec)
        self.driver, self._noted = 0 if (before := self.begun) is None else before.drivers, None
        begun = {"drivers": self.driver + 1, "spec": outlined(spec, self.parts), "runs": runs}
        with self.ledger.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO begun VALUES (?, ?, ?)", (self.run, self.number, _text(begun)))
        self.ours = True
        return self

    def check(self, spec: Mapping[str, Any]) -> None:
        """Has it refused where it has begun and is not the same any more: spec, parts, or sources that runs loaded."""
        if (before := self.begun) is None:
            return
        self.driver = before.drivers
        why = differences(before.spec, outlined(spec, self.parts))
        for file, digest in self.notes().get(LOADED, {}).items():
            if digest_of_file(file) != digest:
                why.append(f"the source {clean(os.path.relpath(file), 200)} is not what it was")
        if why:
            self.refuse(spec["name"], why)

    def refuse(self, name: str, why: list[str]) -> None:
        """Raises `InvalidSpec`: it is not what began."""
        raise InvalidSpec(f"audit {clean(name)!r}: {'; '.join(why[:3])}")

    def begin_anew(self, name: str, why: list[str]) -> None:
        """It had begun, and nothing can tell whether it is the same: all that is known of it is deleted."""
        self.drop()
        with self.ledger.transaction() as connection:
            connection.execute("DELETE FROM begun WHERE run = ? AND number = ?", (self.run, self.number))

    def ended(self) -> AuditResult | tuple[str, int] | None:
        """How it ended in this run: its result, or why it has none and the exit code of that; None where it has not."""
        record = self.ledger.of_run(self.run, self.number)
        return self.ledger.failure(self.run, self.number) if record is None else self.ledger.load(record)

    def record(self, result: AuditResult) -> AuditResult:
        """Records the result; shards are needed no longer."""
        self.ledger.record(result, run=self.run, number=self.number)
        self.drop()
        return result

    def drop(self) -> None:
        """Deletes its shards. Raises `LedgerLost` where the file is gone."""
        with self.ledger.transaction() as connection:
            connection.execute("DELETE FROM shards WHERE run = ? AND audit = ?", (self.run, self.number))
        self.ledger.check_present()

    def fetch(self, call: int) -> Sequence[StoredShard]:
        """All shards of a call of the audit."""
        if self.driver == 0:
            return ()  # no process has driven the audit before
        query = 'SELECT * FROM shards WHERE run = ? AND audit = ? AND "call" = ?'
        return [self._checked(row) for row in self.ledger.rows(query, (self.run, self.number, call))]

    def keep(self, shards: Sequence[StoredShard]) -> None:
        """Stores all of them or none; they are on the disk when this returns."""
        rows = [self._row(each) for each in shards]
        with self.ledger.transaction() as connection:
            connection.executemany(BEFORE, [row[:7] for row in rows])
            connection.executemany(f"INSERT {INTO}", rows)
        self.ledger.check_present()

    def notes(self) -> dict[str, Any]:
        """What was noted of the audit."""
        return {key: value for each in self.fetch(NOTES) for key, value in json.loads(each.content).items()}

    def note(self, name: str, value: Any) -> None:
        """Notes a value under a name; it is on the disk when this returns."""
        if self._noted is None:
            self._noted = self.notes()
        self._noted[name] = value
        content = json.dumps(self._noted, sort_keys=True).encode("ascii")
        shard = StoredShard(NOTES, 0, Shard(Stage.PROBE, 0, 0, 0), "", "notes", content)
        with self.ledger.transaction() as connection:
            connection.execute(f"INSERT OR REPLACE {INTO}", self._row(shard))

    def _row(self, each: StoredShard) -> tuple[Any, ...]:
        shard = each.shard
        place = (each.call, each.look, int(shard.stage), shard.pair, shard.index, shard.runs)
        known = repr((self.run, self.number, *place, each.question, each.kind)).encode()
        digest = hashlib.sha256(known + b"\0" + each.content).hexdigest()  # so it is not what was stored elsewhere
        return self.run, self.number, *place, each.question, each.kind, each.content, digest

    def _checked(self, row: Any) -> StoredShard:
        with suppress(ValueError):  # there is no such stage
            shard = Shard(Stage(row["stage"]), row["pair"], row["shard"], row["runs"])
            stored = StoredShard(row["call"], row["look"], shard, row["question"], row["kind"], bytes(row["content"]))
            if self._row(stored)[-1] == row["digest"]:
                return stored
        raise LedgerError(
            f"ledger {clean(self.ledger.path, 200)}: a shard of run {self.run} is not what was stored; "
            "begin the run anew"
        )


def start(ledger: Ledger, sources: Iterable[str], asked: Mapping[str, Any]) -> Run:
    """A new run; unfinished runs that were not resumed for `KEPT_DAYS` days are deleted."""
    _drop_old(ledger)
    now = _now()
    key = f"{now:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"
    lock = RunLock(ledger.path, key)
    lock.take()
    with ledger.transaction() as connection:
        connection.execute(
            "INSERT INTO runs (id, suite_hash, suite, started) VALUES (?, ?, ?, ?)",
            (key, digest_of(sorted(sources)), _text({"asked": _plain(asked)}), now.isoformat()),
        )
    return Run(ledger, key, lock)


ANOTHER = "--resume: {why}: this is another run; leave out --resume to begin it"


def resume(ledger: Ledger, sources: Iterable[str], asked: Mapping[str, Any], another: str = ANOTHER) -> Run:
    """The newest unfinished run of these spec files, resumed.

    Raises `InvalidSpec` where there is none, or by `another` where it asked something else; `LedgerError` where another
    process drives it.
    """
    rows = _unfinished(ledger, sources)
    place = f"the ledger {clean(ledger.path, 200)}"
    if not rows:
        raise InvalidSpec(f"--resume: there is no unfinished run of these specs in {place}; leave it out to begin one")
    asked = _plain(asked)
    before = [(row["id"], json.loads(row["suite"])["asked"]) for row in rows]
    key, known = next((each for each in before if each[1] == asked), before[0])
    if why := differences(known, asked):
        raise InvalidSpec(another.format(why="; ".join(why[:3])))
    if (run := taken(ledger, sources, asked)) is not None:
        return run
    (row,) = ledger.rows("SELECT finished FROM runs WHERE id = ?", (key,))
    if row["finished"] is not None:
        raise InvalidSpec(f"--resume: run {key} in {place} has been finished by another process; there is nothing left")
    raise LedgerError(f"--resume: run {key} in {place} is driven by another process now; wait for it, or end it")


def taken(ledger: Ledger, sources: Iterable[str], asked: Mapping[str, Any]) -> Run | None:
    """The newest unfinished run of the same question that no process drives, resumed; None where there is none."""
    asked = _plain(asked)
    for row in _unfinished(ledger, sources):
        lock = RunLock(ledger.path, row["id"])
        if json.loads(row["suite"])["asked"] != asked or not lock.take():
            continue
        if ledger.rows("SELECT id FROM runs WHERE id = ? AND finished IS NULL", (row["id"],)):
            return Run(ledger, row["id"], lock)
        lock.free()  # another process has finished it since
    return None


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """In words, what of a question is not as it was.

    >>> differences({"seed": 0, "audits": {"it": {"runs": 10}}}, {"seed": 1, "audits": {"it": {"runs": 20}}})
    ['seed was 0 and is 1', 'audits, it, runs was 10 and is 20']
    """
    if isinstance(before, dict) and isinstance(now, dict):
        if place == MADE:
            return [clean(each, 200) for each in changed(before, now)]
        lines = []
        for key in [*before, *(key for key in now if key not in before)]:
            inner = f"{place}, {key}" if place else str(key)
            if key not in now:
                lines.append(f"{clean(inner)} is gone")
            elif key not in before:
                lines.append(f"{clean(inner)} is new")
            else:
                lines += differences(before[key], now[key], inner)
        return lines
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = zip(before, now, strict=True)
        return [each for k, (old, new) in enumerate(pairs, 1) for each in differences(old, new, f"{place}, {k}")]
    if before == now:
        return []
    *outer, last = place.split(", ")
    if last == "digest":
        return [f"the content of {clean(', '.join(outer))} is not what it was"]
    return [f"{clean(place)} was {clean(before, 60)} and is {clean(now, 60)}"]


def outlined(spec: Mapping[str, Any], parts: Mapping[str, str]) -> dict[str, Any]:
    """A spec in its stored form with the parts, and without the values of its datasets: their digests say it all."""
    pairs = [
        {**pair, **{side: {"digest": pair[side]["digest"]} for side in ("first", "second")}} for pair in spec["pairs"]
    ]
    outline: dict[str, Any] = _plain({**spec, "pairs": pairs, MADE: dict(parts)})
    return outline


def _unfinished(ledger: Ledger, sources: Iterable[str]) -> list[Any]:
    return ledger.rows(
        "SELECT * FROM runs WHERE suite_hash = ? AND finished IS NULL ORDER BY started DESC, id DESC",
        (digest_of(sorted(sources)),),
    )


def _drop_old(ledger: Ledger) -> None:
    days = ledger.rows(
        "SELECT DISTINCT date(started) AS day FROM runs WHERE date(started) IS NOT NULL ORDER BY day DESC"
    )
    if len(days) < DAYS_SEEN:
        return
    seen = min(_now(), datetime.fromisoformat(days[DAYS_SEEN - 1]["day"]).replace(tzinfo=UTC))
    limit = (seen - timedelta(days=KEPT_DAYS)).isoformat()
    for row in ledger.rows("SELECT id FROM runs WHERE finished IS NULL AND started < ?", (limit,)):
        lock = RunLock(ledger.path, row["id"])
        if not lock.take():
            continue  # a process drives it still
        try:
            with ledger.transaction() as connection:
                for table in ("shards", "failures", "begun"):
                    connection.execute(f"DELETE FROM {table} WHERE run = ?", (row["id"],))
                connection.execute("DELETE FROM runs WHERE id = ?", (row["id"],))
        finally:
            lock.free()


def _now() -> datetime:
    return datetime.now(UTC)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """The value after a round trip through JSON, so that it can be compared with what was stored."""
    return json.loads(json.dumps(value, default=repr, sort_keys=True))


@dataclass(slots=True)
class Call(LedgerJournal):
    """The one audit of a call of `dpaudit.audit`: of a run whose question holds the parts of the mechanism."""

    name: str = field(kw_only=True)
    question: Mapping[str, Any] = field(kw_only=True)
    whole: Run = field(kw_only=True)

    def look_at(self, mechanism: Mechanism, engine: Engine) -> None:
        """Nothing: it was looked at before the run was chosen."""

    def record(self, result: AuditResult) -> AuditResult:
        """Records the result; shards stay until the run is finished: who is killed before makes it of them again."""
        self.ledger.record(result, run=self.run, number=self.number)
        return result

    def refuse(self, name: str, why: list[str]) -> None:
        """Another call takes the place of this one, and the user is warned."""
        self.whole.finish()
        self.whole.close()
        _say(f"audit {clean(name)!r}: {'; '.join(why[:3])}: this call of {self.name} begins anew")
        self.whole = start(self.ledger, [self.name], self.question)
        self.run = self.whole.id


@contextmanager
def resumed_call(path: str | os.PathLike[str], name: str, mechanism: Any, asked: Mapping[str, Any]) -> Iterator[Call]:
    """The newest call of this question that was interrupted, or a new one, in the ledger at a path.

    Warns where one of this name asked something else, or was made of other parts. Raises `LedgerError` where the ledger
    cannot be used.
    """
    parts = parts_of(mechanism) | made_with()
    question = {"asked": asked, MADE: parts}
    with Ledger(path) as ledger:
        lost = unknown(parts)
        run = None if lost else taken(ledger, [name], question)
        if run is None:
            rows = _unfinished(ledger, [name])
            if rows and (why := [*lost, *differences(json.loads(rows[0]["suite"])["asked"], _plain(question))]):
                _say(f"{path}: {'; '.join(why[:3])}: another call of {name}, which begins anew")
            run = start(ledger, [name], question)
        call = Call(ledger, run.id, name=name, question=question, whole=run)
        try:
            yield call
            call.whole.finish()
        except (LedgerError, ClusterLost):
            raise
        except DpAuditError:  # no verdict: the next call begins again
            call.whole.finish()
            raise
        finally:
            call.whole.close()


def _say(message: str) -> None:
    """Warns at the line of the user's that has called us."""
    frame, depth = sys._getframe(), 1
    ours = (str(PACKAGE), contextlib.__file__)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, stacklevel=depth)
