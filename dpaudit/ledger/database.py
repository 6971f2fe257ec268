"""One SQLite file with several writers: opened, checked, and changed in whole transactions.

Write-ahead log, every commit synced: what a finished `transaction` wrote is on the disk, whatever is killed next; of an
unfinished one nothing is. Only a file that is empty or says that it is a ledger is written to.

Results are chained by hash: each link covers a whole row and the link before it, so that no row changes unnoticed.
Whoever can write the file can make the chain again; a head that was written down elsewhere covers all rows up to it.
"""

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from dpaudit.base.files import FILE, found_at
from dpaudit.base.quoting import clean
from dpaudit.errors import DpAuditError

CHAIN = 'CREATE TABLE chain (id INTEGER PRIMARY KEY, "row" INTEGER NOT NULL, link TEXT NOT NULL, adopted INTEGER)'
START = "0" * 64  # stands before the first link
PAGE = 100  # rows read at a time: a result may be a megabyte
LAST_LINK = 'SELECT "row", link FROM chain ORDER BY id DESC LIMIT 1'
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
    def text(self) -> str:
        """The chain in a line."""
        if self.wrong is not None:
            return f"the chain of its results does not hold: {self.wrong}"
        if not self.rows:
            return "none of its results is chained yet"
        before = f", {self.adopted} of them recorded before there was a chain" if self.adopted else ""
        return f"the chain of its results holds ({self.rows}{before}); head {self.rows}:{self.head}"


def append_link(connection: sqlite3.Connection, number: int, *, adopted: bool = False) -> None:
    """Chains the row with this id, the last one, in the transaction that has written it."""
    done, before = connection.execute(LAST_LINK).fetchone() or (0, START)
    row = connection.execute(f"SELECT {ROWS} FROM results WHERE id = ?", (number,)).fetchone()
    connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", (number, done + 1, _link(before, row), adopted))


def follow(rows: Callable[..., list[Any]], head: Head | None = None) -> Chain:
    """The chain, checked at every row; with a `head` from elsewhere, also whether that row still has that hash.

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


FOLDER = ".dpaudit"  # made with the ledger, ignored by git
DEFAULT = Path(FOLDER, "ledger.sqlite")  # where results are recorded when nothing else is said
PATIENCE_S = 30.0  # how long a writer waits for the others
APPLICATION = 0x64706175  # "dpau": how the file says what it is
VERSION = 2  # of the tables; a newer one is refused, as its meaning is not known here; 1 had no chain and no "begun"
WORTH_COPYING = 256  # free pages from which on an old ledger, which cannot shrink, is copied
CHECKED = 16 * 2**20  # bytes up to which a file is checked page by page when it is opened

BEGUN = "CREATE TABLE begun (run TEXT, number INTEGER, content TEXT NOT NULL, PRIMARY KEY (run, number))"
TABLES = (
    "CREATE TABLE runs (id TEXT PRIMARY KEY, suite_hash TEXT NOT NULL, suite TEXT NOT NULL, started TEXT NOT NULL, "
    "finished TEXT)",
    """CREATE TABLE results (
        id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT, number INTEGER, recorded TEXT NOT NULL, started TEXT,
        name TEXT NOT NULL, subject TEXT NOT NULL, reference TEXT NOT NULL,
        fingerprint TEXT NOT NULL, representation TEXT, spec_hash TEXT NOT NULL, pairs TEXT NOT NULL, mechanism TEXT,
        "commit" TEXT, version TEXT, seed TEXT NOT NULL, runs INTEGER NOT NULL,
        verdict TEXT NOT NULL, claimed REAL, lower REAL NOT NULL, epsilon_lower REAL, delta REAL NOT NULL,
        confidence REAL NOT NULL, p_value REAL NOT NULL,
        content TEXT NOT NULL, digest TEXT NOT NULL,
        UNIQUE (run, number)
    )""",
    """CREATE TABLE failures (
        run TEXT NOT NULL, number INTEGER NOT NULL, recorded TEXT NOT NULL,
        name TEXT NOT NULL, error TEXT NOT NULL, exit_code INTEGER NOT NULL,
        PRIMARY KEY (run, number)
    )""",
    """CREATE TABLE shards (
        run TEXT NOT NULL, audit INTEGER NOT NULL, "call" INTEGER NOT NULL, look INTEGER NOT NULL,
        stage INTEGER NOT NULL, pair INTEGER NOT NULL, shard INTEGER NOT NULL, runs INTEGER NOT NULL,
        question TEXT NOT NULL, kind TEXT NOT NULL, content BLOB NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (run, audit, "call", look, stage, pair, shard)
    )""",
    BEGUN,
    CHAIN,
    *(
        f'CREATE INDEX results_{column} ON results ("{column}", id)'
        for column in ("name", "reference", "subject", "fingerprint", "representation", "commit")
    ),
)


class LedgerError(DpAuditError):
    """The ledger cannot be used: no such file, not a ledger, a newer one, damaged. Cure: as the message says."""

    exit_code = 2


class LedgerWriteFailed(LedgerError):
    """What was to be recorded was not: a full disk, a write that failed. What stands in the ledger is whole."""

    exit_code = 3


class LedgerLost(LedgerError):
    """The ledger was deleted, moved or replaced during a run. Cure: put it back, or run anew."""

    exit_code = 3


WHOLE = "what was recorded before is whole"
CURES = {  # by what is raised: nothing was written, or the file cannot be used
    LedgerWriteFailed: {
        "SQLITE_FULL": f"the disk is full; {WHOLE}: free space and go on",
        "SQLITE_BUSY": f"another process has kept it locked for {PATIENCE_S:.0f} s; {WHOLE}: "
        "wait for that process, or end it",
        "SQLITE_LOCKED": f"it is locked; {WHOLE}: wait for the process that uses it, or end it",
        "SQLITE_TOOBIG": f"a record is larger than SQLite can hold; {WHOLE}",
        "SQLITE_IOERR": f"the disk failed, or its quota is used up; {WHOLE}: look at the disk, then go on",
    },
    LedgerError: {
        "SQLITE_NOTADB": "it is not a ledger (no SQLite database); name another file",
        "SQLITE_CORRUPT": "it is damaged; restore a copy, or move it away: "
        '"sqlite3 FILE .recover" saves what can still be read',
        "SQLITE_READONLY": "it is read-only; make it and its folder writable, or name another file",
        "SQLITE_CANTOPEN": "it cannot be opened; name a file in a folder that can be read and written",
        "SQLITE_PERM": "it must not be opened; change its permissions, or name another file",
    },
}


def ledger_error(error: sqlite3.Error | UnicodeDecodeError, path: str | os.PathLike[str]) -> LedgerError:
    """An error of SQLite as one of ours, in a line that names the file and the cure.

    >>> ledger_error(sqlite3.OperationalError("odd"), "a.sqlite")
    LedgerError('ledger a.sqlite: odd; name another file, or move this one away')
    """
    text = isinstance(error, UnicodeDecodeError)  # a name of a table, or a message about it, that is no text
    name = "SQLITE_CORRUPT" if text else getattr(error, "sqlite_errorname", None) or ""
    place = f"ledger {clean(path, 200)}"
    for kind, cures in CURES.items():
        for start, cure in cures.items():
            if name.startswith(start):
                return kind(f"{place}: {cure} ({clean(error)})")
    return LedgerError(f"{place}: {clean(error)}; name another file, or move this one away")


class Database:
    """A ledger file, open. Made where there is none, but for `read_only`, which never changes a file.

    Threads may share it (each transaction is one thread's); a process that forks must open its own. Raises
    `LedgerError` where the file cannot be opened, is not a ledger, is newer than this dpaudit, or is damaged.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self.version = VERSION
        self._lock = threading.RLock()
        self._connection = self._open()
        try:
            with self._translated():
                self._check()
            self._there = self.path.absolute()
            self._file = self._identity()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; the last one to do so leaves a single file behind."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing: committed and synced at the end, rolled back on any error.

        Writers wait for one another, up to `PATIENCE_S` seconds. One inside another is a part of it. Raises
        `LedgerWriteFailed` where the disk is full, fails, or another process keeps the file locked.
        """
        with self._lock, self._translated():
            connection, inside = self._connection, self._connection.in_transaction
            if inside:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # some errors of SQLite have rolled back already
                    with suppress(sqlite3.Error):  # the first error is the one to raise
                        connection.execute("ROLLBACK")
                raise

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """The rows that a query gives, all read before anything else happens."""
        with self._lock, self._translated():
            return self._connection.execute(sql, tuple(values)).fetchall()

    def check_present(self) -> None:
        """Raises `LedgerLost` where the path has no file or another one: SQLite goes on writing to a deleted one."""
        if self._identity() != self._file:
            raise LedgerLost(
                f"ledger {clean(self.path, 200)}: it was deleted, moved or replaced during the run, and the records "
                "with it; leave it where it is, and run anew"
            )

    def _identity(self) -> tuple[int, int] | None:
        with suppress(OSError):
            stat = self._there.stat()
            return stat.st_dev, stat.st_ino
        return None

    def give_back(self) -> None:
        """Returns the space of what was deleted to the disk, and empties the log; left for later where others read."""
        with self._lock, suppress(sqlite3.Error), closing(self._connection.cursor()) as cursor:
            cursor.execute("PRAGMA busy_timeout = 500")
            old = cursor.execute("PRAGMA auto_vacuum").fetchone()[0] == 0
            if old and cursor.execute("PRAGMA freelist_count").fetchone()[0] >= WORTH_COPYING:
                cursor.executescript("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")  # from now on as one made today
            cursor.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")  # to their ends
        with self._lock, self._translated():
            self._connection.execute(f"PRAGMA busy_timeout = {1000 * PATIENCE_S:.0f}")

    def in_one_file(self) -> None:
        """Everything is in the file itself, and no log beside it; where nobody else has it open."""
        with self._lock, self._translated():
            self._connection.execute("PRAGMA journal_mode = DELETE").fetchone()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise ledger_error(error, self.path) from error

    def _open(self) -> sqlite3.Connection:
        there, shown = found_at(self.path), clean(self.path, 200)
        if there not in (FILE, None):
            raise LedgerError(f"ledger {shown}: it is not a file; name another one")
        if there is None and self.read_only:
            raise LedgerError(f"ledger {shown}: there is no such file; name one that dpaudit wrote")
        if there is None:
            self._make_folder()
        with self._translated():
            return self._connect_to_read() if self.read_only else self._connect("mode=rwc")

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"file:{quote(os.fsencode(self.path.absolute()))}?{mode}"
        connection = sqlite3.connect(
            address, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False, uri=True
        )
        connection.row_factory = sqlite3.Row
        return connection

    def _connect_to_read(self) -> sqlite3.Connection:
        """As a writer that only asks, where that is allowed: others may write meanwhile, and no log is left behind."""
        if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
            connection = self._connect("mode=rw")
            connection.execute("PRAGMA query_only = ON")
            return connection
        connection = self._connect("mode=ro")
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorname != "SQLITE_READONLY_DIRECTORY":
                raise
            connection = self._connect("immutable=1")  # there is no log, and none can be made here
        return connection

    def _make_folder(self) -> None:
        folder = self.path.parent
        try:
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                return folder.mkdir(exist_ok=True)  # raises where it is no folder
            if folder.name == FOLDER:
                (folder / ".gitignore").write_text("*\n", encoding="ascii")
        except OSError as error:
            why = error.strerror or type(error).__name__
            where = f"ledger {clean(self.path, 200)}: its folder cannot be made ({why})"
            raise LedgerError(f"{where}; name a file in a folder that can be written") from None

    def _check(self) -> None:
        """That it is a ledger of this version and whole; an empty file becomes one."""
        if self._version() == 0 and not self.read_only:
            self._make_tables()
        version = self._version()
        shown = clean(self.path, 200)
        if version == 0:
            raise LedgerError(f"ledger {shown}: it is empty; name a ledger that dpaudit wrote")
        if version > VERSION:
            raise LedgerError(
                f"ledger {shown}: its tables are of version {version}, and this dpaudit knows {VERSION}; "
                "use the newer dpaudit that wrote it"
            )
        if not self.read_only:
            self._use_log()
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA secure_delete = ON")  # shards of a search hold outputs of private data
        self.version = version
        self._connection.execute("PRAGMA trusted_schema = OFF")
        if self.path.stat().st_size <= CHECKED:
            wrong = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check(1)")]
            if wrong != ["ok"]:
                error = sqlite3.DatabaseError(wrong[0])
                error.sqlite_errorname = "SQLITE_CORRUPT"
                raise ledger_error(error, self.path)
        if version < VERSION and not self.read_only:
            self._make_tables()

    def _version(self) -> int:
        """The version of the tables; 0 for an empty file. Raises `LedgerError` for a database of something else."""
        self._connection.execute("BEGIN")  # one state of the file for three questions
        try:
            application = self._connection.execute("PRAGMA application_id").fetchone()[0]
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if application == APPLICATION and version >= 1:
            return int(version)
        if application or version or tables:
            raise LedgerError(f"ledger {clean(self.path, 200)}: it is a database of something else; name another file")
        return 0

    def _make_tables(self) -> None:
        """The tables of an empty file, or those of a ledger of version 1 as they are now; what is recorded stays."""
        self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # it can be said of an empty file only
        with self.transaction() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]  # another process may have been first
            if version < VERSION:
                for table in TABLES if version == 0 else (BEGUN, CHAIN):
                    connection.execute(table)
                for (number,) in connection.execute("SELECT id FROM results ORDER BY id").fetchall():
                    append_link(connection, number, adopted=True)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        self.version = VERSION

    def _use_log(self) -> None:
        """Turns on the write-ahead log; SQLite does not wait by itself for others that do so at this moment."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                    raise
                time.sleep(0.01)
