"""One run under control: whatever a mechanism raises becomes an output, and a hang becomes a time-out.

A run that swallows the alarm, or blocks the interpreter, meets the hard limit: the host ends its process; in workers
that dpaudit did not start a watchdog without the interpreter's lock ends the worker. A lost worker is no verdict.
"""

import faulthandler
import itertools
import math
import os
import re
import reprlib
import signal
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from dpaudit.errors import Interrupted, InvalidSpec, OutOfTime
from dpaudit.outputs.canonical import TIMED_OUT, Failure, token

LONGEST_MESSAGE, LONGEST_TEXT = 160, 1 << 14  # characters of an exception's message in a note, and in its text
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
PRINT = reprlib.Repr()  # of the attributes of an exception, limited in length
PRINT.maxlevel, PRINT.maxstring, PRINT.maxother, PRINT.maxlong = 6, LONGEST_TEXT, LONGEST_TEXT, LONGEST_TEXT
PRINT.maxtuple = PRINT.maxlist = PRINT.maxarray = PRINT.maxdict = PRINT.maxset = PRINT.maxfrozenset = 256
ROOMS = ("mechanisms", "outputs", "running", "processes", "execution")  # of code that stands around a run
OWN = tuple(os.path.join(os.path.dirname(os.path.dirname(__file__)), each) for each in ROOMS)
ELSEWHERE = ("<frozen", *OWN, *(sysconfig.get_path(each) for each in ("stdlib", "purelib", "platlib")))
RING_AGAIN_S = 0.5  # an alarm that comes just before a run blocks is not seen until it rings again
IMPORTING = "<frozen importlib._bootstrap>"  # whose frames stand around a module that is being imported
HARD_FACTOR, HARD_GRACE_S = 3.0, 5.0  # the watchdog waits this much longer than the alarm

ALARMS = hasattr(signal, "setitimer")  # not on Windows
BEATS: "list[memoryview[float]]" = []  # of a process of ours: where its host reads when to end it, 0 for never


class RunTimedOut(BaseException):
    """Raised by the alarm inside a run; a BaseException, so that `except Exception` does not swallow it."""


class TimeOver(Interrupted):
    """Raised by the alarm of `ended_at`."""


def failure(error: BaseException, noted: set[str] | None = None, *, with_text: bool = False) -> Failure:
    """The output that an exception is: its type, and `with_text` its text, without the addresses in it.

    Where `noted` is given and lacks its label, the label joins, and the failure has a note of the text and line.
    """
    if isinstance(error, RunTimedOut):
        return Failure(TIMED_OUT)
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    outcome, text = token("raised", name), _text(error) if with_text else ""
    if noted is None or outcome.label in noted:
        return Failure(outcome, message=text)
    noted.add(outcome.label)
    return Failure(outcome, _note(error), text)


def _text(error: BaseException) -> str:
    """The text of an exception without its type: message, notes, attributes, and the exception before it."""
    try:
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        parts = [str(error), *itertools.islice(getattr(error, "__notes__", ()), LONGEST_TEXT)]
        parts += [f"{name} = {PRINT.repr(value)}" for name, value in vars(error).items() if name != "__notes__"]
        parts += [] if before is None else [f"{type(before).__qualname__}: {before}"]
        text = "\n".join(map(str, parts))
        return (ADDRESS.sub("0x...", text) if "0x" in text else text)[:LONGEST_TEXT]
    except Exception:
        return "a message that cannot be read"


def _note(error: BaseException) -> str:
    """The first line of an exception's message, and the last line of code outside of Python and its packages."""
    try:
        text = (str(error).splitlines() or [""])[0][:LONGEST_MESSAGE]
    except BaseException:
        text = "a message that cannot be read"
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    mine = [place for place in frames if not place[0].startswith(ELSEWHERE)]
    file, line = (mine or [("", 0)])[-1]
    return repr(ADDRESS.sub("0x...", text)) + (f" ({os.path.basename(file)}, line {line})" if file else "")


def time_limited(call: Callable[..., Any], limit_s: float, *, hard: bool) -> Callable[..., Any]:
    """The call with a time limit in seconds, inside `alarms`; `hard` arms the watchdog that ends this process."""
    armed_until = 0.0
    beat = BEATS[0] if BEATS else None

    def limited(*arguments: Any) -> Any:
        nonlocal armed_until
        if beat is not None:
            beat[0] = time.monotonic() + HARD_FACTOR * limit_s + HARD_GRACE_S
        elif hard and time.monotonic() > armed_until - (HARD_FACTOR - 1.0) * limit_s - HARD_GRACE_S / 2.0:
            armed_until = time.monotonic() + HARD_FACTOR * limit_s + HARD_GRACE_S
            faulthandler.dump_traceback_later(HARD_FACTOR * limit_s + HARD_GRACE_S, exit=True, file=_nowhere())
        _LIMITED.append(True)
        signal.setitimer(signal.ITIMER_REAL, limit_s, RING_AGAIN_S)
        try:
            return call(*arguments)
        finally:
            _LIMITED.clear()
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    return limited


def disarm() -> None:
    """Ends the watchdog: the shard is done."""
    for beat in BEATS:
        beat[0] = 0.0
    faulthandler.cancel_dump_traceback_later()


@cache
def _nowhere() -> Any:
    return open(os.devnull, "w")


def end_strays(code: Any) -> None:
    """After this, a fork made inside a run ends when it comes back to the function of this code object.

    Without it, a mechanism that forks and returns twice would double the work of its worker with every run.
    """

    def after_fork() -> None:
        frame: Any = sys._getframe()
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        if frame is not None:
            sys.setprofile(back_home)

    def back_home(frame: Any, event: str, argument: Any) -> None:
        caller = frame.f_back if event == "return" else frame
        if event in ("return", "c_return", "c_exception") and caller is not None and caller.f_code is code:
            os._exit(1)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=after_fork)


_LIMITED: list[bool] = []  # not empty during a run with a time limit


@contextmanager
def alarms(wanted: bool) -> Iterator[None]:
    """While runs are limited, an alarm raises `RunTimedOut` in them; the caller's own handler is restored then."""
    if not wanted:
        yield
        return
    if not ALARMS:
        raise InvalidSpec("run_timeout_s needs the alarms of Linux and macOS, which Windows has not; leave it out")
    if threading.current_thread() is not threading.main_thread():
        raise InvalidSpec("run_timeout_s needs a process of its own: leave backend out, or call from the main thread")

    def alarm(number: int, frame: Any) -> None:
        if _LIMITED:  # a late alarm belongs to no run
            raise RunTimedOut

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


@contextmanager
def telling_interrupts() -> Iterator[None]:
    """While runs are in this process, turns a real Ctrl-C into `Interrupted`, and back on leaving."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: Any) -> None:
        raise Interrupted

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def ended_at(until: float, *, imports: bool = True) -> Iterator[None]:
    """Ends the Python code of the main thread at a time of `time.monotonic()`. Raises `OutOfTime`.

    Without `imports`, never during an import; on systems without alarms, never.
    """
    if until == math.inf or not ALARMS or threading.current_thread() is not threading.main_thread():
        yield
        return

    rung, left = list[bool](), list[bool]()

    def alarm(number: int, frame: Any) -> None:
        importing = any(each.f_code.co_filename == IMPORTING for each, _ in traceback.walk_stack(frame))
        if not left and (imports or not importing):
            rung.append(True)
            raise TimeOver

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, until - time.monotonic()), RING_AGAIN_S)
    try:
        try:
            yield
        finally:
            left.append(True)  # from here on it rings in vain; if it does just before, that is the time's end too
        if rung:  # a run that swallowed the alarm may have returned another output because of it
            raise OutOfTime
    except TimeOver:
        left.append(True)
        raise OutOfTime from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
