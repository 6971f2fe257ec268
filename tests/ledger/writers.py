"""A script: processes that write one ledger at once, are killed, or meet a disk that is full. Prints JSON.

Everything is forked from here, so that one process alone pays for the imports.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dpaudit.ledger.database import Database, LedgerError

WRITERS, EACH = 8, 6
PAGE = 4096


def put(database: Database, writer: int, number: int, size: int = 100) -> None:
    """Two rows in one transaction: whoever reads must see both or neither."""
    with database.transaction() as connection:
        for half in range(2):
            connection.execute(
                "INSERT INTO shards VALUES (?, ?, 0, 0, 0, 0, ?, 1, '', '', ?, '')",
                (f"run {writer}", number, half, os.urandom(size)),
            )


def forked(work: Callable[[], None]) -> int:
    """A child that does the work and ends without cleaning up after its parent."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def whole(path: Path) -> dict[int, int]:
    """The transactions of each writer; fails where the file is not whole, or half of one is there."""
    with Database(path) as database:
        assert database.rows("PRAGMA integrity_check")[0][0] == "ok"
        counts = "SELECT run, audit, count(*) AS halves FROM shards GROUP BY run, audit ORDER BY run, audit"
        rows = database.rows(counts)
    assert all(row["halves"] == 2 for row in rows)
    found: dict[int, int] = {}
    for row in rows:
        writer = int(row["run"].split()[1])
        assert row["audit"] == found.get(writer, 0)  # none is missing before a later one
        found[writer] = row["audit"] + 1
    return found


def at_once(path: Path) -> dict[int, int]:
    """Eight writers, which also race to make the file."""

    def write(writer: int) -> None:
        with Database(path) as database:
            for number in range(EACH):
                put(database, writer, number)

    children = [forked(lambda writer=writer: write(writer)) for writer in range(WRITERS)]  # type: ignore[misc]
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    return whole(path)


def killed(path: Path, kills: int) -> list[tuple[int, int]]:
    """For each killed writer: how many transactions it knew to be on the disk, and how many are there."""
    moments = random.Random(0)
    known = []

    def write(writer: int, told: int) -> None:
        database = Database(path)
        for number in range(10**6):
            put(database, writer, number, 3000)
            os.write(told, b".")

    for writer in range(kills):
        heard, told = os.pipe()
        child = forked(lambda writer=writer, told=told: write(writer, told))  # type: ignore[misc]
        os.close(told)
        told_of, enough = 0, moments.randrange(4)
        while told_of < enough:
            told_of += len(os.read(heard, 1 << 16))
        time.sleep(moments.uniform(0.0, 0.02))  # so that it may die anywhere in the next one
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while dots := os.read(heard, 1 << 16):
            told_of += len(dots)
        os.close(heard)
        known.append(told_of)
    there = whole(path)
    return [(told_of, there.get(writer, 0)) for writer, told_of in enumerate(known)]


def full(path: Path, pages: int) -> tuple[int, int, str]:
    """A disk that takes files of so many pages: transactions acknowledged, those that are there, and what was said."""
    heard, told = os.pipe()

    def write() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (pages * PAGE + 100, resource.RLIM_INFINITY))
        try:
            database = Database(path)
            for number in range(200):
                put(database, 0, number, 3000)
                os.write(told, b".")
        except LedgerError as error:
            os.write(told, f"|{error.exit_code} {error}".encode())

    child = forked(write)
    os.close(told)
    said = b""
    while part := os.read(heard, 1 << 16):
        said += part
    os.close(heard)
    assert os.waitpid(child, 0)[1] == 0
    dots, _, message = said.partition(b"|")
    return len(dots), whole(path).get(0, 0), message.decode()


def main(folder: Path) -> None:
    """All three."""
    told = {
        "at once": at_once(folder / "at_once" / "ledger.sqlite"),
        "killed": killed(folder / "killed.sqlite", 8),
        "full": [full(folder / f"full_{pages}.sqlite", pages) for pages in range(2, 40, 4)],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
