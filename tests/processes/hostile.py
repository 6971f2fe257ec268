"""Mechanisms that do what mechanisms should not do; each is importable, so that any worker can be given it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.running import guard


class Custom(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Evil:
    """Equal to everything, by a hash that says nothing."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7


class Broken:
    """Nothing that can be asked of it works."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("no")

    __eq__ = __hash__ = __float__ = __len__ = __repr__ = __str__ = __iter__ = _raise  # type: ignore[assignment]


class Exiting:
    """Ends the process of whoever reads it."""

    def _exit(self) -> Any:
        sys.exit(0)

    __eq__, __hash__, __float__ = object.__eq__, _exit, _exit


# --- on the second dataset (data = 1) only: an output, and a leak -----------------------------------------------


def stack() -> Any:
    return stack()


def itself() -> Any:
    found: list[Any] = [1]
    found.append(found)
    return found


ERRORS: dict[str, Callable[[], BaseException]] = {
    "raises": lambda: Custom("a", "b"),
    "raises what does not print": Unprintable,
    "exits": lambda: SystemExit(0),
    "interrupts": KeyboardInterrupt,
    "raises GeneratorExit": GeneratorExit,
    "raises StopIteration": StopIteration,
}
OUTPUTS: dict[str, Callable[[], Any]] = {
    "exhausts the stack": stack,
    "a lambda": lambda: lambda: 1,
    "a file": lambda: sys.__stderr__,  # of one type in every process
    "a generator": lambda: (each for each in (1, 2)),
    "itself": itself,
    "much": lambda: np.zeros(1_000),
    "unhashable": lambda: ([1], {1: 1}),
    "evil": lambda: (Evil(),),
    "broken": lambda: (Broken(), 1),
    "exiting": lambda: (Exiting(), 1),
}
USUAL: dict[str, Any] = {"itself": [1], "much": np.zeros(700), "unhashable": ([0], {0: 1}), "evil": (0,)}
UNREADABLE = ("broken", "exiting")
LEAKS = [*ERRORS, *(name for name in OUTPUTS if name not in UNREADABLE)]


@dataclass(frozen=True)
class Second:
    """Raises or returns something on the second dataset; what is usual on the first."""

    act: str

    def __call__(self, data: int, rng: Any) -> Any:
        if not data:
            return USUAL.get(self.act, (0, 1) if self.act in UNREADABLE else 0)
        if self.act in ERRORS:
            raise ERRORS[self.act]()
        return OUTPUTS[self.act]()


def hangs(data: int, rng: Any) -> int:
    while data and rng.random() < 0.1:
        time.sleep(60)
    return 0


def hangs_always(data: int, rng: Any) -> int:
    while data:
        time.sleep(60)
    return 0


# --- on both datasets alike ---------------------------------------------------------------------------------------


def prints(data: int, rng: Any) -> float:
    print("x" * 2_000)
    print("y" * 2_000, file=sys.stderr)
    return rng.random()


def reads(data: int, rng: Any) -> Any:
    return input()


def reseeds(data: int, rng: Any) -> float:
    np.random.seed(0)
    random.seed(0)
    return float(rng.random())


def draws_elsewhere(data: int, rng: Any) -> float:
    return random.SystemRandom().random() + np.random.random()


def owns_its_randomness(data: int) -> float:
    return np.random.random()


def spawns_threads(data: int, rng: Any) -> float:
    if rng.random() < 0.01:
        thread = threading.Thread(target=time.sleep, args=(0.001,), daemon=True)
        thread.start()
    return float(rng.random())


# --- that end their process or never end ---------------------------------------------------------------------------


def leaves(data: int, rng: Any) -> int:
    os._exit(0)


def dies_rarely(data: int, rng: Any) -> float:
    draw = float(rng.random())
    if draw < 0.002:
        os.kill(os.getpid(), signal.SIGKILL)
    return draw


def swallows_the_alarm(data: int, rng: Any) -> int:
    while rng.random() < 0.01:
        try:
            while True:
                time.sleep(0.05)
        except BaseException:
            continue
    return 0


def leaves_children(data: int, rng: Any) -> int:
    """Starts a process that outlives it, then hangs past every limit; its process is given half a second for that."""
    if guard.HARD_GRACE_S > 0.5:
        guard.HARD_GRACE_S = 0.5
        return 0  # this run has the limit of before
    subprocess.Popen(["sleep", "987"])
    return swallows_the_alarm(data, Always())


class Always:
    def random(self) -> float:
        return 0.0


def forks(data: Any, rng: Any) -> int:
    """Forks on its first runs and comes back twice; each run leaves its process id in a file in the folder."""
    folder, value = data
    with open(os.path.join(folder, "runs"), "ab", buffering=0) as file:
        file.write(f"{os.getpid()}\n".encode())
        if file.tell() < 400:
            os.fork()
    return value


# --- that change their dataset ------------------------------------------------------------------------------------


def appends(data: list[int], rng: Any) -> int:
    data.append(1)
    return len(data)


def overwrites(data: Any, rng: Any) -> float:
    data[0] += 1.0
    return float(data[0])


def adds_a_key(data: dict[str, int], rng: Any) -> int:
    data["new"] = data.get("new", 0) + 1
    return len(data)


# --- batched ------------------------------------------------------------------------------------------------------


NONSENSE: dict[str, Callable[[int, Any], Any]] = {
    "too few": lambda runs, rng: rng.random(runs - 1 or 2),
    "one number": lambda runs, rng: 1.0,
    "wrong axis": lambda runs, rng: rng.random((4, 3) if runs == 3 else (3, runs)),
    "uneven parts": lambda runs, rng: (rng.random(runs), rng.random(runs + 1)),
    "nothing": lambda runs, rng: None,
}


def raises_in_a_batch(data: int, runs: int, rng: Any) -> Any:
    if data:
        raise Unprintable
    return np.zeros(runs)


def raises_rarely_in_a_batch(data: int, runs: int, rng: Any) -> Any:
    found = rng.random(runs)
    if runs > 1 and np.any(found < 2e-3):
        raise ValueError("rare")
    return found


class RaisesLate:
    """Raises once, in the call that comes after so many runs."""

    def __init__(self, runs: int) -> None:
        self.left = runs

    def __call__(self, data: int, runs: int, rng: Any) -> Any:
        before, self.left = self.left, self.left - runs
        if self.left < 0 <= before:
            raise ValueError("late")
        return rng.random(runs)


def many(data: int, runs: int, rng: Any) -> Any:
    """Not hostile at all."""
    return data + rng.laplace(size=runs)


def changes_in_a_batch(data: list[int], runs: int, rng: Any) -> Any:
    data.append(1)
    return rng.random(runs)
