"""The command line: thin, light to start, and never the process that runs a mechanism of users."""

import io
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import Any

NO_VERDICT = 3


def main() -> None:
    """The console script, the last that its process does; SIGTERM and SIGHUP are interrupts.

    An interrupted command reports what is finished, and how to resume. Exit code 1 is a verdict, and nothing else.
    """
    _end_with(NO_VERDICT)  # where a library ends the process, as some do without memory
    _open_streams()
    warnings.filterwarnings("ignore", ".*joblib will operate in serial mode")  # where /dev/shm is closed: we need none
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # Windows has one of them
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _terminated)
    code = NO_VERDICT
    try:
        from dpaudit.cli.group import exit_code

        code = exit_code(sys.argv[1:])
    except OSError:  # standard error is full too, so there is no message
        code = 2
    except (MemoryError, ImportError) as error:
        sys.stderr.write(f"error: {type(error).__name__}: {error}; give it more memory, or install it anew\n")
    _end_with(code)
    sys.exit(code)


class _Output(io.FileIO):
    """A standard stream; once its reader has gone, as `head` does, output is discarded and work continues."""

    def write(self, data: Any) -> int:
        with suppress(BrokenPipeError):
            return super().write(data)
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        return len(data)


def _open_streams() -> None:
    """Opens closed standard streams on the null device, so that no file of ours gets their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    for number, name in ((1, "stdout"), (2, "stderr")):
        before = getattr(sys, name)
        if before is None or os.name == "posix":
            output = io.BufferedWriter(_Output(number, "w", closefd=False))
            encoding, errors = (before.encoding, before.errors) if before else ("utf-8", "backslashreplace")
            lines = number == 2 or output.isatty()
            setattr(sys, name, io.TextIOWrapper(output, encoding, errors, line_buffering=lines))


def _end_with(code: int) -> None:
    """From now on the process ends with this code, whatever calls exit(); done in C, after Python has ended."""
    with suppress(Exception):  # where there is no such function
        from ctypes import CDLL, c_void_p

        libc = CDLL(None)
        libc.__cxa_atexit(libc._exit, c_void_p(code), None)


def _terminated(number: int, _: object) -> None:
    raise KeyboardInterrupt("terminated" if number == signal.SIGTERM else "hung up")
