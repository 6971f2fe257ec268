"""Who drives a run, by a lock that is gone with its process."""

import os
from contextlib import suppress
from pathlib import Path

from dpaudit.base.files import lock
from dpaudit.base.quoting import clean
from dpaudit.ledger.database import LedgerError

_HELD: set[int] = set()


class RunLock:
    """Holds a run; raises `LedgerError` from `take` where another process does, or the file cannot be made."""

    def __init__(self, ledger: Path, run: str) -> None:
        real = ledger.resolve()  # one lock, by whatever name the ledger is called
        self.path = real.with_name(f"{real.name}.{run}.lock")
        self._file: int | None = None

    def take(self) -> bool:
        """Whether the run is ours now: not where another process holds it."""
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
                _HELD.add(file)
                return True
        os.close(file)  # whoever held it has let go since it was opened, and taken the file away
        return self.take()

    def free(self) -> None:
        """Lets go of the run, and of the file."""
        if self._file is not None:
            self.path.unlink(missing_ok=True)  # while it is held: whoever opens the name next makes a new file
            _HELD.discard(self._file)
            os.close(self._file)
            self._file = None


def _let_go_in_children() -> None:
    """A process forked from the driver must not hold its run for longer than the driver lives."""
    for file in _HELD:
        os.close(file)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_children)
