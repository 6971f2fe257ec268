"""Whether a ledger is still the file that was opened: SQLite goes on writing to one that was deleted."""

from __future__ import annotations

from pathlib import Path

from dpaudit.ledger.problems import LedgerError
from dpaudit.results.wording.quoting import clean


class LedgerLost(LedgerError):
    """The ledger was deleted, moved or replaced during a run. Cure: put it back, or run anew."""

    exit_code = 3


class Presence:
    """A ledger file as it is now; `check` raises `LedgerLost` once another one, or none, has its name."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._shown = clean(path, 200)
        self._found = self._identity()

    def check(self) -> None:
        """Raises `LedgerLost` where the name no longer leads to the same file."""
        if self._identity() != self._found:
            raise LedgerLost(
                f"ledger {self._shown}: it was deleted, moved or replaced during the run, and what the run recorded "
                "went with it; leave the ledger where it is, and run anew"
            )

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino
