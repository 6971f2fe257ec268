"""External programs: one JSON request {data, runs, seed} on standard input, `runs` lines of JSON out."""

import json
import mmap
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import IO, Any

from dpaudit.errors import InvalidSpec, MissingRequirement, UnsoundAudit
from dpaudit.mechanisms.protocol import Description, Opened

LARGEST_ERROR_TAIL = 300  # characters of a program's standard error that a message quotes
MOST_AT_ONCE = 1 << 10  # programs of one process

GROUPS = memoryview(mmap.mmap(-1, 4 * MOST_AT_ONCE)).cast("i")  # of the programs that run now; forks share it
_ONE_AT_A_TIME = threading.Lock()


def end_groups() -> None:
    """Ends the programs that run, where the fork that started them was killed and can no longer do so."""
    for place, group in enumerate(GROUPS):
        if group > 1:
            with suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        GROUPS[place] = 0


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the group of a program, which it leads; on Windows, the program alone."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()


@dataclass(frozen=True, slots=True)
class Command:
    """A program in any language, started once for each batch of runs, in `folder` when given.

    The program reads one JSON object with the keys `data`, `runs` and `seed`, and prints `runs` lines, each
    one JSON value: the output of one run. A seed is good for one request.
    """

    argv: tuple[str, ...]
    folder: str | None = None
    timeout_s: float | None = None

    @property
    def name(self) -> str:
        return " ".join(os.path.basename(part) for part in self.argv[:2])

    def open(self) -> Opened:
        if shutil.which(self.argv[0], path=None) is None and not os.path.exists(
            os.path.join(self.folder or ".", self.argv[0])
        ):
            raise MissingRequirement(
                f"the command {self.argv[0]!r} is not installed here; install it or correct the path"
            )
        return Opened(self._call, per_run=False, takes_rng=True, smallest_batch=1 << 14, limited=self._limited)

    def describe(self) -> Description:
        return Description(
            self.name, "command", reference=None, parameters={"command": list(self.argv)}, takes_rng=True
        )

    def _limited(self, limit_s: float) -> Callable[..., Any]:
        """No alarm: if it fired while a program starts, that program could not be ended."""
        return replace(self, timeout_s=limit_s)._call

    def _call(self, data: Any, runs: int, rng: Any) -> list[Any]:
        seed = int(rng.integers(1 << 53))
        try:
            request = {"data": _jsonable(data), "runs": runs, "seed": seed}
            text = json.dumps(request).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise InvalidSpec(
                f"{self.name}: the dataset cannot be written as JSON ({error}); pass plain data to a command"
            ) from None
        code, out, err = self._ended(text, runs)
        if code != 0:
            tail = err.decode(errors="replace").strip()[-LARGEST_ERROR_TAIL:].replace("\n", " | ")
            raise UnsoundAudit(
                f"{self.name}: ended with exit code {code} on a request for {runs} runs; it said: {tail or 'nothing'}"
            )
        lines = out.splitlines()
        if len(lines) != runs:
            raise UnsoundAudit(
                f"{self.name}: printed {len(lines)} lines for a request of {runs} runs; one line a run is needed"
            )
        try:
            return [json.loads(line) for line in lines]
        except (ValueError, RecursionError) as error:
            raise UnsoundAudit(f"{self.name}: printed a line that is not JSON ({error})") from None

    def _ended(self, text: bytes, runs: int) -> tuple[int, bytes, bytes]:
        """Exit code and streams of the program when it ends.

        The streams are files without a name, in memory where the system can: what it leaves behind could hold a pipe
        open, and files go with this process.
        """
        with _nameless() as given, _nameless() as out, _nameless() as err:
            given.write(text)
            given.seek(0)
            try:
                process = subprocess.Popen(  # in a session, so that its children can be killed with it
                    list(self.argv), stdin=given, stdout=out, stderr=err, cwd=self.folder, start_new_session=True
                )
            except OSError as error:
                raise UnsoundAudit(
                    f"{self.name}: could not be started ({error.strerror}); correct the path or its mode"
                ) from None
            with _ONE_AT_A_TIME:
                place = GROUPS.tolist().index(0)
                GROUPS[place] = process.pid
            limit = None if self.timeout_s is None else self.timeout_s * runs
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                raise UnsoundAudit(f"{self.name}: no answer to a request for {runs} runs within {limit:g} s") from None
            finally:
                end_group(process)
                process.wait()
                GROUPS[place] = 0
            return code, _whole(out), _whole(err)


def command(argv: Sequence[str], *, folder: str | None = None) -> Command:
    """An external program as a mechanism; see `Command` for what it reads and prints.

    >>> command(["python3", "mechanism.py"]).name
    'python3 mechanism.py'
    """
    if not isinstance(argv, list | tuple) or not argv or not all(isinstance(part, str) for part in argv):
        raise InvalidSpec(f"a command is a list of strings such as ['python3', 'mechanism.py'], got {argv!r}")
    return Command(tuple(argv), folder)


def _nameless() -> IO[bytes]:
    return open(os.memfd_create("dpaudit"), "w+b") if hasattr(os, "memfd_create") else TemporaryFile()


def _whole(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _jsonable(data: Any) -> Any:
    if hasattr(data, "tolist"):
        return data.tolist()
    if isinstance(data, set | frozenset):
        return sorted(data)
    return data
