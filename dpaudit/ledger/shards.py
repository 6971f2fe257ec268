"""The shards of a run in the ledger, until their audit has a result: synced before their counts are used."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.ledger.database import Database
from dpaudit.ledger.locks import Presence
from dpaudit.ledger.problems import LedgerError
from dpaudit.results.wording.quoting import clean
from dpaudit.sampling import Shard, Stage, StoredShard

INSERT = (
    'INSERT INTO shards (run, audit, "call", look, stage, pair, shard, runs, question, kind, content, digest) '
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
BEFORE = (
    'DELETE FROM shards WHERE run = ? AND audit = ? AND "call" = ? AND look = ? AND stage = ? AND pair = ? '
    "AND shard = ? AND kind = 'piece'"
)
SOURCES = -1  # stands for a call: what the first runs loaded is kept as a shard is


class LedgerShards:
    """The shards of one audit of a run: the `ShardStore` that an engine is handed.

    `driver` is how many processes have driven the audit before. Raises `LedgerWriteFailed` where the disk refuses,
    `LedgerLost` where the file is gone, and `LedgerError` where a stored shard is not what was stored, or a place is
    taken.
    """

    def __init__(self, database: Database, run: str, audit: int, *, driver: int = 0) -> None:
        self.database, self.run, self.audit = database, run, audit
        self.driver = driver
        self._presence = Presence(database.path)

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
        self._presence.check()

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
        digest = _digest((self.run, self.audit, *place, each.question, each.kind), each.content)
        return self.run, self.audit, *place, each.question, each.kind, each.content, digest

    def _checked(self, row: Any) -> StoredShard:
        place = (row["call"], row["look"], row["stage"], row["pair"], row["shard"], row["runs"])
        content = bytes(row["content"])
        known = (self.run, self.audit, *place, row["question"], row["kind"])
        if _digest(known, content) != row["digest"]:
            raise LedgerError(
                f"ledger {clean(self.database.path, 200)}: a shard of run {self.run} is not what was stored; "
                "begin the run anew"
            )
        shard = Shard(Stage(row["stage"]), row["pair"], row["shard"], row["runs"])
        return StoredShard(row["call"], row["look"], shard, row["question"], row["kind"], content)


def _digest(place: tuple[Any, ...], content: bytes) -> str:
    """Of the place, the question and the content together: a shard moved to another place is not what was stored."""
    return hashlib.sha256(repr(place).encode() + b"\0" + content).hexdigest()
