"""Results chained by hash: each link covers a whole row and the link before it, so that no row changes unnoticed.

Whoever can write the file can make the chain anew; a head that was written down elsewhere holds all rows up to its own.
"""

import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TABLE = 'CREATE TABLE chain (id INTEGER PRIMARY KEY, "row" INTEGER NOT NULL, link TEXT NOT NULL, adopted INTEGER)'
START = "0" * 64  # stands before the first link
PAGE = 100  # rows read at a time: a result may be a megabyte
LAST = 'SELECT "row", link FROM chain ORDER BY id DESC LIMIT 1'
COVERED = (
    *("id", "recorded", "run", "number", "started", "name", "subject", "reference", "fingerprint", "representation"),
    *("spec_hash", "pairs", "mechanism", "commit", "version", "seed", "runs", "verdict", "claimed", "lower"),
    *("epsilon_lower", "delta", "confidence", "p_value", "digest", "content"),
)
ROWS = ", ".join(f'results."{name}"' for name in COVERED)
CHAINED = f"SELECT {ROWS}, link, adopted FROM results LEFT JOIN chain USING (id) WHERE id > ? ORDER BY id LIMIT {PAGE}"
GONE = "SELECT id FROM chain WHERE id NOT IN (SELECT id FROM results) ORDER BY id LIMIT 1"
EVER = "SELECT seq FROM sqlite_sequence WHERE name = 'results'"  # the last id that was ever given

Head = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Chain:
    """What the chain of a ledger says: `rows` results are chained, `head` is the hash of the last link.

    The first `adopted` of them were recorded before there was a chain: it holds them as they were when it began.
    `wrong` says where the chain breaks; None where it holds.
    """

    rows: int = 0
    head: str = START
    adopted: int = 0
    wrong: str | None = None

    @property
    def told(self) -> str:
        """The chain in a line."""
        if self.wrong is not None:
            return f"the chain of its results does not hold: {self.wrong}"
        if not self.rows:
            return "none of its results is chained yet"
        before = f", {self.adopted} of them recorded before there was a chain" if self.adopted else ""
        return f"the chain of its results holds ({self.rows}{before}); head {self.rows}:{self.head}"


def append(connection: sqlite3.Connection, number: int, *, adopted: bool = False) -> None:
    """Chains the row with this id, the last one, in the transaction that has written it."""
    done, before = connection.execute(LAST).fetchone() or (0, START)
    row = connection.execute(f"SELECT {ROWS} FROM results WHERE id = ?", (number,)).fetchone()
    connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", (number, done + 1, _link(before, row), adopted))


def followed(rows: Callable[..., list[Any]], head: Head | None = None) -> Chain:
    """The chain followed through every row; with a `head` from elsewhere, also whether that row still has that hash.

    `rows` asks the ledger a query.
    """
    if missing := rows(GONE):
        return Chain(wrong=f"result {missing[0][0]} is gone")
    done, before, adopted, last = 0, START, 0, 0
    known = head is None or head == (0, START)
    while page := rows(CHAINED, (last,)):
        for *row, link, was in page:
            last, before = row[0], _link(before, row)
            if link != before:
                broken = " was never chained" if link is None else ", or one before it, is not what was recorded"
                return Chain(done, wrong=f"result {last}{broken}")
            done, adopted = done + 1, adopted + bool(was)
            known = known or head == (done, before)
    ever = rows(EVER)
    if ever and ever[0][0] != last:
        return Chain(done, wrong=f"the results after {last} are gone")
    if not known:
        return Chain(done, wrong="it does not lead to the given head; results are gone, or were chained anew")
    return Chain(done, before, adopted)


def _link(before: str, row: Any) -> str:
    """Of the link before, and of every value of the row with its type."""
    return hashlib.sha256(ascii((before, *row)).encode("ascii")).hexdigest()
