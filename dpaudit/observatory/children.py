"""Child processes that end with their parent, each in a group of its own: an interrupt reaches them once, from here."""

import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from dpaudit.mechanisms.command import end_group

PATIENCE_S = 20.0  # for a child to say what it has, once it is told to end


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code, and what it wrote to both streams."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The last line that it said, errors first."""
        lines = [line.strip() for text in (self.out, self.err) for line in text.splitlines() if line.strip()]
        return lines[-1].removeprefix("error: ").removeprefix("ERROR: ") if lines else "it said nothing"


class Children:
    """The child processes of one command; threads may share it. Leaving it, by an interrupt too, ends them all."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._over = False

    def run(self, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Ended:
        """Runs a program to its end. What it leaves behind is killed: it would hold no more than an open file."""
        with TemporaryFile() as out, TemporaryFile() as err:
            with self._lock:
                if self._over:
                    raise KeyboardInterrupt
                process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=environment,
                    start_new_session=True,
                )
                self._running.add(process)
            try:
                code = process.wait()
            finally:
                end_group(process)
                self._running.discard(process)
            return Ended(code, _text(out), _text(err))

    def end(self) -> None:
        """No child begins any more, and those that run are told to end: by force if they do not."""
        with self._lock:
            self._over = True
            running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
