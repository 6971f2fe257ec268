"""Mechanisms that do what mechanisms should not do; each is importable, so that any worker can be given it."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from typing import Any

import numpy as np


class Custom(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


# --- on the second dataset (data = 1) only: an output, and a leak -----------------------------------------------


def raises(data: int, rng: Any) -> int:
    if data:
        raise Custom("a", "b")
    return 0


def raises_unprintable(data: int, rng: Any) -> int:
    if data:
        raise Unprintable
    return 0


def exits(data: int, rng: Any) -> int:
    if data:
        sys.exit(0)
    return 0


def interrupts(data: int, rng: Any) -> int:
    if data:
        raise KeyboardInterrupt
    return 0


def raises_generator_exit(data: int, rng: Any) -> int:
    if data:
        raise GeneratorExit
    return 0


def stops_iteration(data: int, rng: Any) -> int:
    if data:
        raise StopIteration
    return 0


def hangs(data: int, rng: Any) -> int:
    while data and rng.random() < 0.1:
        time.sleep(60)
    return 0


def hangs_always(data: int, rng: Any) -> int:
    while data:
        time.sleep(60)
    return 0


def exhausts_the_stack(data: int, rng: Any) -> int:
    return exhausts_the_stack(data, rng) if data else 0


def returns_a_lambda(data: int, rng: Any) -> Any:
    return (lambda: 1) if data else 0


def returns_a_file(data: int, rng: Any) -> Any:
    return sys.__stderr__ if data else 0  # of one type in every process


def returns_a_generator(data: int, rng: Any) -> Any:
    return (each for each in (1, 2)) if data else 0


def returns_itself(data: int, rng: Any) -> Any:
    found: list[Any] = [1]
    if data:
        found.append(found)
    return found


def returns_much(data: int, rng: Any) -> Any:
    return np.zeros(1_000 if data else 700)


def returns_unhashable(data: int, rng: Any) -> Any:
    return ([data], {data: 1})


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

    def __float__(self) -> float:
        sys.exit(0)

    def __hash__(self) -> int:
        sys.exit(0)

    __eq__ = object.__eq__


def returns_evil(data: int, rng: Any) -> Any:
    return (Evil(),) if data else (0,)


def returns_broken(data: int, rng: Any) -> Any:
    return (Broken(), 1) if data else (0, 1)


def returns_exiting(data: int, rng: Any) -> Any:
    return (Exiting(), 1) if data else (0, 1)


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
    import subprocess

    from dpaudit.running import guard

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


def too_few(data: int, runs: int, rng: Any) -> Any:
    return rng.random(runs - 1) if runs > 1 else rng.random(2)


def one_number(data: int, runs: int, rng: Any) -> Any:
    return 1.0


def wrong_axis(data: int, runs: int, rng: Any) -> Any:
    return rng.random((3, runs)) if runs != 3 else rng.random((4, 3))


def uneven_parts(data: int, runs: int, rng: Any) -> Any:
    return rng.random(runs), rng.random(runs + 1)


def nothing(data: int, runs: int, rng: Any) -> Any:
    return None


def raises_in_a_batch(data: int, runs: int, rng: Any) -> Any:
    if data:
        raise Custom("a", "b")
    return np.zeros(runs)


def raises_unprintable_in_a_batch(data: int, runs: int, rng: Any) -> Any:
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
