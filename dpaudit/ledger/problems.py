"""What SQLite and the disk say, as one line that names the file and the cure."""

import os
import sqlite3

from dpaudit.errors import DpAuditError
from dpaudit.results.wording.quoting import clean

PATIENCE_S = 30.0  # how long a writer waits for the others


class LedgerError(DpAuditError):
    """The ledger cannot be used: no such file, not a ledger, a newer one, damaged. Cure: as the message says."""

    exit_code = 2


class LedgerWriteFailed(LedgerError):
    """What was to be recorded was not: a full disk, a write that failed. What stands in the ledger is whole."""

    exit_code = 3


WHOLE = "what was recorded before is whole"
CURES: tuple[tuple[str, type[LedgerError], str], ...] = (
    ("SQLITE_FULL", LedgerWriteFailed, f"the disk is full; {WHOLE}: free space and go on"),
    (
        "SQLITE_BUSY",
        LedgerWriteFailed,
        f"another process has kept it locked for {PATIENCE_S:.0f} s; {WHOLE}: wait for that process, or end it",
    ),
    ("SQLITE_LOCKED", LedgerWriteFailed, f"it is locked; {WHOLE}: wait for the process that uses it, or end it"),
    ("SQLITE_NOTADB", LedgerError, "it is not a ledger (no SQLite database); name another file"),
    (
        "SQLITE_CORRUPT",
        LedgerError,
        'it is damaged; restore a copy, or move it away: "sqlite3 FILE .recover" saves what can still be read',
    ),
    ("SQLITE_READONLY", LedgerError, "it is read-only; make it and its folder writable, or name another file"),
    ("SQLITE_CANTOPEN", LedgerError, "it cannot be opened; name a file in a folder that can be read and written"),
    ("SQLITE_PERM", LedgerError, "it must not be opened; change its permissions, or name another file"),
    ("SQLITE_TOOBIG", LedgerWriteFailed, f"a record is larger than SQLite can hold; {WHOLE}"),
    (
        "SQLITE_IOERR",
        LedgerWriteFailed,
        f"the disk failed, or its quota is used up; {WHOLE}: look at the disk, then go on",
    ),
)


def told(error: sqlite3.Error, path: str | os.PathLike[str]) -> LedgerError:
    """An error of SQLite as one of ours.

    >>> told(sqlite3.OperationalError("odd"), "a.sqlite")
    LedgerError('ledger a.sqlite: odd; name another file, or move this one away')
    """
    name = getattr(error, "sqlite_errorname", None) or ""
    place = f"ledger {clean(path, 200)}"
    for start, kind, cure in CURES:
        if name.startswith(start):
            return kind(f"{place}: {cure} ({clean(error)})")
    return LedgerError(f"{place}: {clean(error)}; name another file, or move this one away")
