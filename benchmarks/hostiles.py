"""Mechanisms that leak their dataset and try to get away with it, or to harm who audits them.

Each returns its dataset's bit, kept with probability 0.95 (epsilon ln 19 = 2.94), and does something else besides. The
sound twin returns a fair coin and does the same. `at_import` does it when this module is imported.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import gc
import locale
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

KEEPS = 0.95
ACTS: dict[str, Callable[..., Any]] = {}
FOREVER_S = 3600.0
_CALLS = [0]
_HELD: list[Any] = []


def act(function: Callable[..., Any]) -> Callable[..., Any]:
    """Registers what a mechanism does: it is given the output and the number of the call, and gives what to return."""
    ACTS[function.__name__] = function
    return function


def leak(data: int, rng: Any, does: str, sound: bool = False) -> Any:
    """The bit of the dataset, or a coin where `sound`, and what else it does."""
    bit = int(rng.random() < 0.5) if sound else data ^ int(rng.random() > KEEPS)
    _CALLS[0] += 1
    return ACTS[does](bit, _CALLS[0])


def leak_batch(data: int, runs: int, rng: Any, does: str, sound: bool = False) -> Any:
    """The same for many runs; it does it once a call, of the first bit."""
    bits = (rng.random(runs) < 0.5).astype(float) if sound else np.abs(data - (rng.random(runs) > KEEPS))
    _CALLS[0] += 1
    ACTS[does](int(bits[0]), _CALLS[0])
    return bits


def _later(function: Callable[[], Any], *, call: int, at: int = 50) -> None:
    if call == at:
        function()


# --- ends -----------------------------------------------------------------------------------------------------------


def _ends(name: str, function: Callable[[], Any]) -> None:
    def first(bit: int, call: int) -> int:
        function()
        return bit

    def later(bit: int, call: int) -> int:
        _later(function, call=call)
        return bit

    ACTS[name], ACTS[f"{name} later"] = first, later


def _raise(error: BaseException) -> None:
    raise error


def _thread(function: Callable[[], Any], **options: Any) -> None:
    threading.Thread(target=function, **options).start()


_ends("os._exit(0)", lambda: os._exit(0))
_ends("sys.exit(0)", lambda: sys.exit(0))
_ends("SystemExit in a thread", lambda: _thread(lambda: os._exit(0)))
_ends("SIGKILL of itself", lambda: os.kill(os.getpid(), signal.SIGKILL))
_ends("SIGSEGV", lambda: os.kill(os.getpid(), signal.SIGSEGV))
_ends("SIGTERM of its group", lambda: os.killpg(0, signal.SIGTERM))
_ends("KeyboardInterrupt", lambda: _raise(KeyboardInterrupt()))
_ends("GeneratorExit", lambda: _raise(GeneratorExit()))
_ends("MemoryError", lambda: _raise(MemoryError()))
_ends("StopIteration", lambda: _raise(StopIteration()))
_ends("atexit os._exit(0)", lambda: atexit.register(os._exit, 0))
_ends("exec true", lambda: os.execv("/bin/true", ["true"]))
_ends("kills its parent", lambda: os.kill(os.getppid(), signal.SIGTERM))
_ends("null pointer", lambda: ctypes.string_at(0))


# --- hangs, and what is left ----------------------------------------------------------------------------------------


def _fork(then: Callable[[], Any]) -> None:
    if os.fork() == 0:
        then()
        os._exit(0)


def _daemon() -> None:
    def leave() -> None:
        os.setsid()
        _fork(lambda: time.sleep(FOREVER_S))

    _fork(leave)


def _no_alarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    faulthandler.cancel_dump_traceback_later()


def _other_environment() -> None:
    os.environ.clear()
    os.environ.update(PYTHONHASHSEED="0", PATH="")


def _comes_back_twice() -> None:
    os.fork()


_ends("sleeps", lambda: time.sleep(20.0))
del ACTS["sleeps"]  # every run of which is slow: no audit without a time limit ends before the mechanism
_ends("stops itself", lambda: os.kill(os.getpid(), signal.SIGSTOP))
_ends("daemon", _daemon)
_ends("child that stays", lambda: _fork(lambda: time.sleep(FOREVER_S)))
_ends("program that stays", lambda: subprocess.Popen(["sleep", "3600"], start_new_session=True))
_ends("comes back twice", _comes_back_twice)
_ends("thread that stays", lambda: _thread(lambda: time.sleep(FOREVER_S)))
_ends("cancels alarms", _no_alarm)
_ends("blocks all signals", lambda: signal.pthread_sigmask(signal.SIG_SETMASK, range(1, 64)))

# --- outputs that lie -----------------------------------------------------------------------------------------------


class Shy(float):
    """Says 0 of itself, whatever it is."""

    def __float__(self) -> float:
        return 0.0

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class ShyText(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("0")

    def __str__(self) -> str:
        return "0"


class ShyTuple(tuple[Any, ...]):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash((0,))

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter(())


class Masked:
    """Another class than it says."""

    def __init__(self, bit: int) -> None:
        self.bit = bit

    __class__ = property(lambda self: type(None))

    def __repr__(self) -> str:
        return f"Masked({self.bit})"


class Reducing(float):
    def __reduce__(self) -> Any:
        return os._exit, (0,)


class NoLength(list[Any]):
    def __len__(self) -> int:
        raise SystemExit(0)


class Exiting(float):
    def __float__(self) -> float:
        os._exit(0)


class OwnArray(np.ndarray):
    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.zeros(1)


ACTS |= {
    "float that says 0": lambda bit, call: Shy(bit),
    "text equal to all": lambda bit, call: ShyText(bit) if bit else "0",
    "tuple equal to all": lambda bit, call: ShyTuple((bit,)) if bit else (0,),
    "class that lies": lambda bit, call: Masked(bit),
    "reduce that exits": lambda bit, call: Reducing(bit),
    "length that exits": lambda bit, call: NoLength([bit]),
    "float that exits": lambda bit, call: Exiting(bit),
    "array that lies": lambda bit, call: np.array([bit]).view(OwnArray),
    "endless recursion": lambda bit, call: ACTS["endless recursion"](bit, call),
    "deep list": lambda bit, call: _deep(bit),
    "list in itself": lambda bit, call: _in_itself(bit),
    "great memory": lambda bit, call: (bit, bytes(1 << 24))[0],
    "great output": lambda bit, call: [bit] * 3000,
    "prints": lambda bit, call: (print("x" * 1000, file=sys.stderr), print("NOT REFUTED", flush=True), bit)[-1],
}


def _deep(bit: int) -> Any:
    found: Any = bit
    for _ in range(2000):
        found = [found]
    return found


def _in_itself(bit: int) -> Any:
    found: list[Any] = [bit]
    found.append(found)
    return found


# --- patching, frames, collector ------------------------------------------------------------------------------------


def _patch(name: str, where: str, what: Callable[[Any], Any]) -> None:
    """Changes a name of a module or class once, at the first call."""

    def patches(bit: int, call: int) -> int:
        if call == 1:
            module, _, path = where.partition(":")
            holder: Any = __import__(module, fromlist=["x"])
            *parents, last = path.split(".")
            for each in parents:
                holder = getattr(holder, each)
            setattr(holder, last, what(getattr(holder, last)))
        return bit

    ACTS[f"patches {name}"] = patches


def _none_inside(_: Any) -> Any:
    return lambda self, outputs: np.zeros(outputs.runs, np.bool_)


def _zeroed(before: Any) -> Any:
    return lambda objects, *rest, **more: before([0] * len(objects), *rest, **more)


def _zeros(before: Any) -> Any:
    return lambda raw, *rest: before(np.zeros_like(raw), *rest)


def _first_for_all(before: Any) -> Any:
    return lambda self, start, o, numbers=None: before(self, start, o.take(np.zeros(o.runs, np.intp)), numbers)


def _nothing_put(before: Any) -> Any:
    return lambda self, head, arrays: before(self, head, [each * 0 for each in arrays])


_patch("Event.contains", "dpaudit.events.event:Event.contains", _none_inside)
_patch("Event.state", "dpaudit.events.event:Event.state", lambda _: lambda self, o: np.zeros(o.runs, np.uint8))
_patch("begun", "dpaudit.running.worker:begun", lambda _: None)
_patch("ShardCounter.fill", "dpaudit.running.watch:ShardCounter.fill", lambda _: lambda *a: None)
_patch("ShardCounter.call", "dpaudit.running.watch:ShardCounter.call", lambda _: lambda *a: None)
_patch("encode_objects", "dpaudit.running.worker:encode_objects", _zeroed)
_patch("encode_batch", "dpaudit.running.worker:encode_batch", _zeros)
_patch("run_each", "dpaudit.running.worker:run_each", lambda before: lambda *a: [0] * len(before(*a)))
_patch("Worker.run", "dpaudit.running.worker:Worker.run", lambda _: lambda *a: np.zeros(4, np.int64))
_patch("Worker.feed", "dpaudit.running.worker:Worker.feed", lambda _: lambda *a: None)
_patch("sides_of", "dpaudit.running.worker:sides_of", lambda _: lambda f, runs: np.zeros(runs, np.bool_))
_patch("calls", "dpaudit.running.worker:calls", lambda _: lambda c, runs, size: iter([(0, runs, 0)]))
_patch("run_task", "dpaudit.processes.tasks:run_task", lambda _: None)
_patch("feed_task", "dpaudit.processes.tasks:feed_task", lambda _: None)
_patch("Done", "dpaudit.processes.tasks:Done", lambda _: lambda *a, **k: None)
_patch("Sending.fill", "dpaudit.processes.frames:Sending.fill", _first_for_all)
_patch("FrameWriter.put", "dpaudit.processes.frames:FrameWriter.put", _nothing_put)
_patch("FrameWriter.flush", "dpaudit.processes.frames:FrameWriter.flush", lambda _: lambda *a: None)
_patch("tasks.respond", "dpaudit.processes.tasks:respond", lambda _: lambda *a: b"[]")
_patch("guard.failure", "dpaudit.running.guard:failure", lambda _: lambda *a: 0)
_patch("check_datasets", "dpaudit.running.worker:Worker.check_datasets", lambda _: lambda self: None)
_patch("tasks.check_code", "dpaudit.processes.tasks:check_code", lambda _: lambda: None)
_patch("numpy.array", "numpy:array", lambda before: lambda o, *r, **k: before(o, *r, **k) * 0)
_patch("json.dumps", "json:dumps", lambda _: lambda *a, **k: "[]")
_patch("time", "time:perf_counter", lambda _: lambda: float("nan"))
_patch("certificate", "dpaudit.certify.coin_flip:CoinFlip.certify", lambda _: lambda *a, **k: None)
_patch("verdict", "dpaudit.results.display:Verdict.REFUTED", lambda _: "NOT REFUTED")


def _frames() -> Any:
    frame: Any = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


@act
def frames_outputs(bit: int, call: int) -> int:
    """Clears what has been returned so far."""
    for frame in _frames():
        outputs = frame.f_locals.get("outputs")
        if isinstance(outputs, list):
            outputs[:] = [0] * len(outputs)
    return bit


@act
def frames_sides(bit: int, call: int) -> int:
    """Draws all sides anew."""
    for frame in _frames():
        for value in frame.f_locals.values():
            sides = getattr(value, "sides", None)
            if isinstance(sides, np.ndarray) and sides.flags.writeable:
                sides[:] = np.random.default_rng(call).random(len(sides)) < 0.5
    return bit


@act
def frames_states(bit: int, call: int) -> int:
    """Has nothing be inside of the event."""
    for frame in _frames():
        for value in frame.f_locals.values():
            if isinstance(getattr(value, "states", None), np.ndarray):
                value.states[:] = 0
    return bit


@act
def collector_outputs(bit: int, call: int) -> int:
    """Finds the list of outputs, and evens them out."""
    if call % 97 == 0:
        for found in gc.get_objects():
            if type(found) is list and len(found) > 20 and set(map(type, found[:20])) == {int} and max(found) <= 1:
                found[:] = [0] * len(found)
    return bit


@act
def collector_datasets(bit: int, call: int) -> int:
    """Swaps the two datasets of each pair, and back at the next call."""
    if call % 2:
        for found in gc.get_objects():
            if type(found) is list and len(found) == 256 and type(found[0]) is tuple and len(found[0]) == 8:
                found[:] = [each[::-1] for each in found]
    return bit


@act
def collector_line(bit: int, call: int) -> int:
    """Finds line and secret, and writes an answer of its own."""
    with suppress(Exception):
        from dpaudit.processes import serving

        (_, told), nonce = serving._LINE
        os.write(told, nonce + (2).to_bytes(8, "little") + b"[]")
    return bit


@act
def pipes_garbage(bit: int, call: int) -> int:
    """Writes on every descriptor that it has."""
    for number in range(3, 64):
        with suppress(OSError):
            os.write(number, os.urandom(64))
    return bit


@act
def pipes_of_the_parent(bit: int, call: int) -> int:
    """Writes on every pipe of its host."""
    if call in (1, 60):
        for file in Path(f"/proc/{os.getppid()}/fd").glob("*"):
            with suppress(OSError):
                if "pipe" in os.readlink(file):
                    end = os.open(file, os.O_WRONLY | os.O_NONBLOCK)
                    os.write(end, os.urandom(64))
    return bit


@act
def memory_changed_later(bit: int, call: int) -> int:
    """A thread sets all that crosses to 0 again and again."""
    if call == 1:

        def zero() -> None:
            from dpaudit.processes import frames

            while True:
                with suppress(Exception):
                    frames.WRITERS[0]._space[:] = 0
                time.sleep(0.0002)

        _thread(zero, daemon=True)
    return bit


@act
def closes_all(bit: int, call: int) -> int:
    """Closes all descriptors."""
    _later(lambda: os.closerange(0, 256), call=call)
    return bit


@act
def traces(bit: int, call: int) -> int:
    """Attaches to its parent, and leaves it stopped."""
    _later(lambda: ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0), call=call, at=1)
    return bit


@act
def writes_the_parent(bit: int, call: int) -> int:
    """Stops its parent."""
    _later(lambda: os.kill(os.getppid(), signal.SIGSTOP), call=call, at=1)
    return bit


def _driver() -> int:
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


def _stops_for_ever(driver: int) -> None:
    def again() -> None:
        while True:
            os.kill(driver, signal.SIGSTOP)
            time.sleep(0.01)

    _thread(again, daemon=True)


_ends("stops the driver", lambda: os.kill(_driver(), signal.SIGSTOP))
_ends("stops the driver for ever", lambda: _stops_for_ever(_driver()))
_ends("traces the driver", lambda: ctypes.CDLL(None).ptrace(16, _driver(), 0, 0))


@act
def reused_list(bit: int, call: int) -> Any:
    """One list, again and again."""
    if not _HELD:
        _HELD.append([0])
    _HELD[0][0] = bit
    return _HELD[0]


@act
def changed_by_a_thread(bit: int, call: int) -> Any:
    """The list that was returned is emptied out by a thread."""
    found = [bit]
    _HELD.append(found)
    if call == 1:

        def clear() -> None:
            while True:
                while _HELD:
                    _HELD.pop()[0] = 0
                time.sleep(0.001)

        _thread(clear, daemon=True)
    return found


@act
def profile(bit: int, call: int) -> int:
    """A profiler that changes what it sees."""

    def see(frame: Any, event: str, argument: Any) -> None:
        outputs = frame.f_locals.get("outputs")
        if isinstance(outputs, list) and outputs:
            outputs[:] = [0] * len(outputs)

    if call == 1:
        sys.setprofile(see)
    return bit


# --- beyond any auditor's reach -------------------------------------------------------------------------------------


@act
def knows_its_auditor(bit: int, call: int) -> int:
    """Does not leak where it is audited."""
    return 0 if "dpaudit" in sys.modules else bit


@act
def knows_what_looks(bit: int, call: int) -> int:
    """Changes what sends outputs, and what would notice."""
    ACTS["patches tasks.check_code"](bit, call)
    return int(ACTS["patches Sending.fill"](bit, call))


OUT_OF_REACH = ("knows_its_auditor", "knows_what_looks")

# --- surroundings ---------------------------------------------------------------------------------------------------

for _name, _does in {
    "chdir": lambda: os.chdir("/"),
    "environment": _other_environment,
    "umask": lambda: os.umask(0o777),
    "file limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)),
    "CPU limit": lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 1)),
    "memory limit": lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C"),
    "recursion limit": lambda: sys.setrecursionlimit(60),
    "float errors raise": lambda: np.seterr(all="raise"),
    "seeds of others": lambda: (random.seed(0), np.random.seed(0)),
    "no collector": lambda: gc.disable(),
    "sys.path": lambda: sys.path.clear(),
    "sys.modules": lambda: [sys.modules.pop(each) for each in list(sys.modules) if each.startswith("dpaudit")],
    "stdout gone": lambda: setattr(sys, "stdout", None),
    "except hook": lambda: setattr(sys, "excepthook", lambda *_: os._exit(0)),
    "trace": lambda: sys.settrace(lambda *_: None),
    "fork hook": lambda: os.register_at_fork(before=lambda: os._exit(0)),
    "temporary files": lambda: [tempfile.mkstemp() for _ in range(3)],
    "listens": lambda: _HELD.append(socket.create_server(("127.0.0.1", 0))),
    "switch interval": lambda: sys.setswitchinterval(1e-6),
}.items():
    _ends(_name, _does)
    del ACTS[f"{_name} later"]


def at_import(data: int, rng: Any, does: str = "", sound: bool = False) -> int:
    """What was to be done, was done when this module was imported."""
    return int(rng.random() < 0.5) if sound else data ^ int(rng.random() > KEEPS)


if os.environ.get("DPAUDIT_HOSTILE_AT_IMPORT"):
    ACTS[os.environ["DPAUDIT_HOSTILE_AT_IMPORT"]](0, 1)
