"""Runs in the ledger: what was asked, how far it is, and who drives it; so that a killed one can be gone on with.

A run that is taken up must be the same run: same audits, same options, same sources, same versions. The shards of an
audit are there until it has a result: synced before their counts are used.
"""

import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from dpaudit.base.quoting import clean
from dpaudit.errors import InvalidSpec
from dpaudit.execution.store import StoredShard
from dpaudit.ledger.database import Database, LedgerError
from dpaudit.ledger.locks import RunLock
from dpaudit.running.contents import digest_of
from dpaudit.running.modules import digest_of_file
from dpaudit.running.program import changed
from dpaudit.running.streams import Shard, Stage

KEPT_DAYS = 30  # for which an unfinished run is kept
DAYS_SEEN = 3  # on which runs must have begun since: a clock that jumped is seen on one
MADE = "made of"  # in a question: the parts of its mechanism
INSERT = (
    'INSERT INTO shards (run, audit, "call", look, stage, pair, shard, runs, question, kind, content, digest) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
BEFORE = (
    'DELETE FROM shards WHERE run = ? AND audit = ? AND "call" = ? AND look = ? AND stage = ? AND pair = ? '
    "AND shard = ? AND kind = 'piece'"
)
SOURCES = -1  # stands for a call: what the first runs loaded is kept as a shard is


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


class LedgerShards:
    """The shards of one audit of a run: the `ShardStore` that an engine is handed.

    `driver` is how many processes have driven the audit before. Raises `LedgerWriteFailed` where the disk refuses,
    `LedgerLost` where the file is gone, and `LedgerError` where a stored shard is not what was stored, or a place is
    taken.
    """

    def __init__(self, database: Database, run: str, audit: int, *, driver: int = 0) -> None:
        self.database, self.run, self.audit = database, run, audit
        self.driver = driver

    def fetch(self, call: int) -> Sequence[StoredShard]:
        """All shards of a call of the audit."""
        if self.driver == 0:
            return ()  # nobody was here before
        rows = self.database.rows(
            'SELECT * FROM shards WHERE run = ? AND audit = ? AND "call" = ?', (self.run, self.audit, call)
        )
        return [self._checked(row) for row in rows]

    def keep(self, shards: Sequence[StoredShard]) -> None:
        """Stores all of them or none; they are on the disk when this returns."""
        rows = [self._row(each) for each in shards]
        with self.database.transaction() as connection:
            connection.executemany(BEFORE, [row[:7] for row in rows])
            connection.executemany(INSERT, rows)
        self.database.check_present()

    def loaded(self, files: Mapping[str, str]) -> None:
        """Keeps the digests of the source files that the first runs have loaded."""
        made = Shard(Stage.PROBE, 0, 0, 0)
        content = json.dumps(dict(files), sort_keys=True).encode("ascii")
        with self.database.transaction() as connection:
            connection.execute(
                'DELETE FROM shards WHERE run = ? AND audit = ? AND "call" = ?', (self.run, self.audit, SOURCES)
            )
            connection.execute(INSERT, self._row(StoredShard(SOURCES, 0, made, "", "sources", content)))

    def sources(self) -> dict[str, str]:
        """The digests of the source files that the first runs of the audit loaded."""
        return {key: value for each in self.fetch(SOURCES) for key, value in json.loads(each.content).items()}

    def drop(self) -> None:
        """Deletes the shards of the audit: its result is recorded."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM shards WHERE run = ? AND audit = ?", (self.run, self.audit))

    def _row(self, each: StoredShard) -> tuple[Any, ...]:
        shard = each.shard
        place = (each.call, each.look, int(shard.stage), shard.pair, shard.index, shard.runs)
        known = repr((self.run, self.audit, *place, each.question, each.kind)).encode()
        digest = hashlib.sha256(known + b"\0" + each.content).hexdigest()  # so it is not what was stored elsewhere
        return self.run, self.audit, *place, each.question, each.kind, each.content, digest

    def _checked(self, row: Any) -> StoredShard:
        with suppress(ValueError):  # there is no such stage
            shard = Shard(Stage(row["stage"]), row["pair"], row["shard"], row["runs"])
            found = StoredShard(row["call"], row["look"], shard, row["question"], row["kind"], bytes(row["content"]))
            if self._row(found)[-1] == row["digest"]:
                return found
        raise LedgerError(
            f"ledger {clean(self.database.path, 200)}: a shard of run {self.run} is not what was stored; "
            "begin the run anew"
        )


class Run:
    """One run of a suite, held by this process until `close`."""

    def __init__(self, database: Database, key: str, state: dict[str, Any], lock: RunLock) -> None:
        self.database, self.id = database, key
        self.driven: set[int] = set()  # audits that this process has begun or gone on with
        self._state, self._lock = state, lock

    def begun(self, number: int) -> Begun | None:
        """What is known of an audit that has begun; None where it has not."""
        rows = self.database.rows("SELECT content FROM begun WHERE run = ? AND number = ?", (self.id, number))
        # where it began under an older dpaudit, it stands in the state
        found = json.loads(rows[0]["content"]) if rows else self._state.get("begun", {}).get(str(number))
        return None if found is None else Begun(found["drivers"], found["spec"], found["runs"])

    def begin(self, number: int, spec: Mapping[str, Any], parts: Mapping[str, str], runs: int | None) -> LedgerShards:
        """An audit begins, or goes on, with this process as its driver; where its shards are kept.

        `parts` are those of its mechanism (`running.program`). Raises `InvalidSpec` where spec or parts are not those
        of its beginning.
        """
        self.database.check_present()
        self.check(number, spec, parts)
        drivers = 0 if (before := self.begun(number)) is None else before.drivers
        shards = LedgerShards(self.database, self.id, number, driver=drivers)
        for file, digest in shards.sources().items():
            if digest_of_file(file) != digest:
                self._refuse(spec, [f"the source {clean(os.path.relpath(file), 200)} is not what it was"])
        begun = {"drivers": drivers + 1, "spec": outlined(spec, parts), "runs": runs}
        with self.database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO begun VALUES (?, ?, ?)", (self.id, number, _text(begun)))
        self.driven.add(number)
        return shards

    def check(self, number: int, spec: Mapping[str, Any], parts: Mapping[str, str]) -> None:
        """Raises `InvalidSpec` where an audit that has begun is not the same any more, naming what changed."""
        before = self.begun(number)
        found = [] if before is None else differences(before.spec, outlined(spec, parts))
        if found:
            self._refuse(spec, found)

    def forget(self, number: int) -> None:
        """An audit that had begun is to begin anew."""
        self.drop(number)
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM begun WHERE run = ? AND number = ?", (self.id, number))

    def drop(self, number: int) -> None:
        """The audit is recorded: its shards are needed no longer. Raises `LedgerLost` where the file is gone."""
        LedgerShards(self.database, self.id, number).drop()
        self.database.check_present()

    def finish(self) -> None:
        """All audits of the run are recorded."""
        with self.database.transaction() as connection:
            connection.execute("UPDATE runs SET finished = ? WHERE id = ?", (_now().isoformat(), self.id))
            connection.execute("DELETE FROM shards WHERE run = ?", (self.id,))
        self.database.give_back()
        self.database.check_present()

    def close(self) -> None:
        """Lets other processes take the run up."""
        self._lock.free()

    def _refuse(self, spec: Mapping[str, Any], found: list[str]) -> NoReturn:
        raise InvalidSpec(f"audit {clean(spec['name'])!r}: {'; '.join(found[:3])}")


def start(database: Database, sources: Iterable[str], asked: Mapping[str, Any]) -> Run:
    """A new run, and the end of those that nobody has gone on with for `KEPT_DAYS` days."""
    _drop_old(database)
    now = _now()
    key = f"{now:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"
    lock = RunLock(database.path, key)
    lock.take()
    state = {"asked": _plain(asked)}
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO runs (id, suite_hash, suite, started) VALUES (?, ?, ?, ?)",
            (key, digest_of(sorted(sources)), _text(state), now.isoformat()),
        )
    return Run(database, key, state, lock)


def resume(database: Database, sources: Iterable[str], asked: Mapping[str, Any]) -> Run:
    """The newest unfinished run of these spec files, taken up.

    Raises `InvalidSpec` where there is none or it asked something else, naming what; `LedgerError` where another
    process drives it.
    """
    rows = _unfinished(database, sources)
    place = f"the ledger {clean(database.path, 200)}"
    if not rows:
        raise InvalidSpec(f"--resume: there is no unfinished run of these specs in {place}; leave it out to begin one")
    asked = _plain(asked)
    states = [(row["id"], json.loads(row["suite"])) for row in rows]
    key, state = next((each for each in states if each[1]["asked"] == asked), states[0])
    if told := differences(state["asked"], asked):
        raise InvalidSpec(f"--resume: {'; '.join(told[:3])}: this is another run; leave out --resume to begin it")
    if (found := taken(database, sources, asked)) is not None:
        return found
    (row,) = database.rows("SELECT finished FROM runs WHERE id = ?", (key,))
    if row["finished"] is not None:
        raise InvalidSpec(f"--resume: run {key} in {place} has been finished by another process; there is nothing left")
    raise LedgerError(f"--resume: run {key} in {place} is driven by another process now; wait for it, or end it")


def taken(database: Database, sources: Iterable[str], asked: Mapping[str, Any]) -> Run | None:
    """The newest unfinished run of the same question that nobody drives, taken up; None where there is none."""
    asked = _plain(asked)
    for row in _unfinished(database, sources):
        state, lock = json.loads(row["suite"]), RunLock(database.path, row["id"])
        if state["asked"] != asked or not lock.take():
            continue
        if database.rows("SELECT id FROM runs WHERE id = ? AND finished IS NULL", (row["id"],)):
            return Run(database, row["id"], state, lock)
        lock.free()  # another process has finished it since
    return None


def changes(database: Database, sources: Iterable[str], asked: Mapping[str, Any]) -> list[str] | None:
    """In words, what the newest unfinished run of these sources asked otherwise; None where there is none."""
    rows = _unfinished(database, sources)
    return differences(json.loads(rows[0]["suite"])["asked"], _plain(asked)) if rows else None


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """In words, what of a question is not as it was.

    >>> differences({"seed": 0, "audits": {"it": {"runs": 10}}}, {"seed": 1, "audits": {"it": {"runs": 20}}})
    ['seed was 0 and is 1', 'audits, it, runs was 10 and is 20']
    """
    if isinstance(before, dict) and isinstance(now, dict):
        if place == MADE:
            return [clean(each, 200) for each in changed(before, now)]
        found = []
        for key in [*before, *(key for key in now if key not in before)]:
            inner = f"{place}, {key}" if place else str(key)
            if key not in now:
                found.append(f"{clean(inner)} is gone")
            elif key not in before:
                found.append(f"{clean(inner)} is new")
            else:
                found += differences(before[key], now[key], inner)
        return found
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
    found: dict[str, Any] = _plain({**spec, "pairs": pairs, MADE: dict(parts)})
    return found


def _unfinished(database: Database, sources: Iterable[str]) -> list[Any]:
    return database.rows(
        "SELECT * FROM runs WHERE suite_hash = ? AND finished IS NULL ORDER BY started DESC, id DESC",
        (digest_of(sorted(sources)),),
    )


def _drop_old(database: Database) -> None:
    days = database.rows(
        "SELECT DISTINCT date(started) AS day FROM runs WHERE date(started) IS NOT NULL ORDER BY day DESC"
    )
    if len(days) < DAYS_SEEN:
        return
    seen = min(_now(), datetime.fromisoformat(days[DAYS_SEEN - 1]["day"]).replace(tzinfo=UTC))
    limit = (seen - timedelta(days=KEPT_DAYS)).isoformat()
    for row in database.rows("SELECT id FROM runs WHERE finished IS NULL AND started < ?", (limit,)):
        lock = RunLock(database.path, row["id"])
        if not lock.take():
            continue  # it takes long, and somebody is at it
        try:
            with database.transaction() as connection:
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
    """As JSON gives it back, so that it can be compared with what was stored."""
    return json.loads(json.dumps(value, default=repr, sort_keys=True))
