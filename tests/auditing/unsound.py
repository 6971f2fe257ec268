"""Mechanisms whose runs depend on each other, and sound twins of the same size; importable, so that any worker can.

This imports numpy alone: each of a hundred fresh processes imports it anew."""

from __future__ import annotations

import contextvars
import functools
import itertools
import math
import os
import random
import threading
from typing import Any

import numpy as np

SEEDED = np.random.RandomState(7)  # a generator seeded on import: the same stream in every process
OWN = np.random.RandomState()
SET_UP_HERE: float | None = None


def shared_stream(data: float) -> float:
    """Every process that imports this module starts the same stream."""
    return data + SEEDED.laplace()


def uneven_shared_stream(data: float) -> float:
    """The same, with another number of draws on each dataset, so that workers fall out of step."""
    noise = SEEDED.laplace()
    return data + noise + (SEEDED.laplace() if data else 0.0)


def global_stream(data: float) -> float:
    """numpy's global generator, which a fork shares."""
    return data + np.random.laplace()


def own_stream(data: float) -> float:
    """The sound twin: each process draws its seed from the system."""
    return data + OWN.laplace()


class Reseeding:
    """Seeds again in every call: the same noise in every run."""

    def __call__(self, data: float) -> float:
        return data + np.random.RandomState(3).laplace()


class SeedOfProcess:
    """Each process keeps the noise that it drew first: workers differ, their runs do not."""

    def __init__(self) -> None:
        self.noise: dict[int, float] = {}

    def __call__(self, data: float) -> float:
        noise = self.noise.setdefault(os.getpid(), random.SystemRandom().gauss(0.0, 1.0))
        return data + noise + 1e-3 * random.random()


@functools.cache
def cached(data: float) -> float:
    return data + random.SystemRandom().gauss(0.0, 1.0)


@functools.cache
def cached_bit(data: bool) -> bool:
    return bool(data) ^ (random.SystemRandom().random() < 0.3)


def answers(data: float) -> float:
    """Deterministic, and different on different datasets."""
    return 2.0 * data


def constant(data: float) -> str:
    return "nothing to see"


class Budget:
    """Answers so many calls, then raises or returns 0."""

    def __init__(self, calls: int, raises: bool) -> None:
        self.left = calls
        self.raises = raises

    def __call__(self, data: float, rng: np.random.Generator) -> float:
        self.left -= 1
        if self.left >= 0:
            return data + rng.laplace()
        if self.raises:
            raise RuntimeError("the budget is spent")
        return 0.0


class Growing:
    """Noise whose scale, or offset, grows with the number of calls."""

    def __init__(self, per_call: float, *, offset: bool = False) -> None:
        self.calls = 0
        self.per_call = per_call
        self.offset = offset

    def __call__(self, data: float, rng: np.random.Generator) -> float:
        self.calls += 1
        grown = self.calls * self.per_call
        return data + grown + rng.laplace() if self.offset else data + (1.0 + grown) * rng.laplace()


class Reusing:
    """Every second call takes the noise of the one before; `late` moves which calls those are."""

    def __init__(self, *, late: bool = False) -> None:
        self.calls = int(late)
        self.noise = 0.0

    def __call__(self, data: float, rng: np.random.Generator) -> float:
        self.calls += 1
        if self.calls % 2:
            self.noise = rng.laplace()
        return data + self.noise


class ReusingBatches:
    """The same, with the noise of whole batches."""

    def __init__(self) -> None:
        self.noise: Any = np.zeros(0)

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        if len(self.noise) < runs:
            self.noise = rng.laplace(size=2 * runs)
            return data + self.noise[:runs]
        noise, self.noise = self.noise[:runs], np.zeros(0)
        return data + noise


def _made(folder: str) -> bool:
    """Whether this process is the one that makes the folder."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        return False
    return True


class KeepingNoise:
    """Normal noise of variance 1 in every run, a part `share` of it drawn once in each process.

    Each process has the next stream of the seed: it makes a folder of the next number in `folder`.
    """

    def __init__(self, share: float, folder: str, seed: int) -> None:
        number = next(number for number in itertools.count() if _made(os.path.join(folder, str(number))))
        self.share, self.source = share, np.random.default_rng((seed, number))
        self.kept = self.source.normal()

    def __call__(self, data: float) -> float:
        noise = (1.0 - self.share) ** 0.5 * self.source.normal() + self.share**0.5 * self.kept
        return float(data + noise)


class Pool:
    """Noise from a list, `again` times over before the next one is drawn; each time in another order if `shuffled`."""

    def __init__(self, values: int, again: int | None = None, *, shuffled: bool = False) -> None:
        self.rng = np.random.default_rng(7)
        self.again, self.shuffled = again, shuffled
        self.noise = self.rng.laplace(size=values)
        self.times, self.left = 0, np.zeros(0)

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        while len(self.left) < runs:
            if self.again is not None and self.times == self.again:
                self.noise, self.times = self.rng.laplace(size=len(self.noise)), 0
            self.times += 1
            more = self.rng.permutation(self.noise) if self.shuffled else self.noise
            self.left = np.concatenate([self.left, more])
        noise, self.left = self.left[:runs], self.left[runs:]
        return data + noise


class Leaky:
    """Without noise in its first call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        self.calls += 1
        return data + rng.laplace(size=runs) * (self.calls > 1)


class One:
    """A batched mechanism, one run a call."""

    def __init__(self, many: Any) -> None:
        self.many = many

    def __call__(self, data: float, rng: np.random.Generator) -> float:
        return float(self.many(data, 1, rng)[0])


class Stale:
    """Answers with the dataset of the call before, one time in two."""

    def __init__(self) -> None:
        self.before = 0.0

    def __call__(self, data: float, rng: np.random.Generator) -> float:
        used = self.before if rng.random() < 0.5 else data
        self.before = data
        return used + rng.laplace()


def one_draw_a_batch(data: float, runs: int, rng: np.random.Generator) -> Any:
    return np.full(runs, data + rng.laplace())


def drawn_from_a_pool(data: float, runs: int, rng: np.random.Generator) -> Any:
    """Sound: few values, each run with one of its own draw."""
    return data + np.linspace(-3.0, 3.0, 200)[rng.integers(200, size=runs)]


def rounded(data: float, runs: int, rng: np.random.Generator) -> Any:
    """Sound: half atoms, half a lattice of two decimals."""
    return np.where(rng.random(runs) < 0.5, rng.integers(30, size=runs), np.round(data + rng.laplace(size=runs), 2))


def laplace(data: float, rng: np.random.Generator) -> float:
    return data + rng.laplace()


def laplace_batch(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=runs)


def coins(data: float, rng: np.random.Generator) -> bool:
    """Atoms: two outputs."""
    return bool(rng.random() < 0.3 + 0.2 * data)


def integers(data: float, runs: int, rng: np.random.Generator) -> Any:
    return np.rint(data + rng.laplace(size=runs))


def words_of(data: float, rng: np.random.Generator) -> tuple[str, int] | None:
    draw = int(rng.integers(5))
    return None if draw == 0 else ("abc"[draw % 3], draw + int(data))


def rare(data: float, rng: np.random.Generator) -> float:
    """All but constant: the event is never hit in a short audit."""
    return float(rng.random() < 1e-5)


class Flips:
    """Randomised response that rarely lies."""

    def __init__(self, epsilon: float) -> None:
        self.lies = 1.0 / (1.0 + math.exp(epsilon))

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        return (rng.random(runs) < self.lies) ^ bool(data)


class KeptFlips(Flips):
    """The same, with an answer for each dataset that is kept for ever."""

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        kept = self.__dict__.setdefault(f"kept {data}", super().__call__(data, 1, rng))
        return np.repeat(kept, runs)


class KeptDraw:
    """Laplace noise drawn in every run and kept from the first, beside what is new: equal streams give it again."""

    def __init__(self, fails: float = 0.0) -> None:
        self.kept: dict[float, float] = {}
        self.fails = fails  # how often there is a default in place of it all

    def __call__(self, data: float, rng: np.random.Generator) -> Any:
        found = self.kept.setdefault(data, data + float(rng.laplace()))
        other = float(rng.random())
        return (0.0 if other < self.fails else found) if self.fails else (found, other)


def own_generator(data: float) -> float:
    """Draws from the system's entropy in every call."""
    return data + float(np.random.default_rng().laplace())


def needs_set_up(data: float) -> float:
    """Works only where something was set up first."""
    if SET_UP_HERE is None:
        raise RuntimeError("nothing was set up")
    return data + SET_UP_HERE * float(np.random.default_rng().laplace())


KINDS = {
    "numpy float": np.float64,
    "numpy single": np.float32,
    "numpy integer": lambda x: np.int64(round(x)),
    "numpy truth": lambda x: np.bool_(x > 0.5),
    "tuple": lambda x: (np.float64(x), 1),
    "array": lambda x: np.array([x, 2.0]),
    "dictionary": lambda x: {"sum": np.float64(x)},
    "text": lambda x: "many" if x > 0.5 else "few",
    "sometimes nothing": lambda x: None if x > 1.0 else np.float64(x),
    "sometimes another type": lambda x: 1 if x > 1.0 else np.float64(x),
}


class OwnKind:
    """A sound mechanism with randomness of its own, whose outputs are of some type."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, data: float) -> Any:
        return KINDS[self.kind](data + float(np.random.default_rng().laplace()))


class Keeping:
    """Answers from a memory of its own, which a pickled copy would take along; `jitter` is drawn anew in each run."""

    def __init__(self, jitter: bool) -> None:
        self.kept: dict[float, float] = {}
        self.jitter = jitter

    def __call__(self, data: float, rng: np.random.Generator) -> Any:
        if data not in self.kept:
            self.kept[data] = data + float(np.random.default_rng().laplace())
        return {"count": self.kept[data], "sum": data + rng.laplace()} if self.jitter else self.kept[data]


environment: dict[float, float] = {}  # a name that a filter of variables once left out


def kept_in_a_dict(data: float) -> float:
    """A sliver of the noise is drawn once for each dataset in each process: rates do not show it."""
    rng = np.random.default_rng()
    return data + environment.setdefault(data, 1e-3 * rng.normal()) + rng.normal()


class KeepingASliver:
    """The same in an attribute, beside a generator that nobody can look into."""

    def __init__(self) -> None:
        self.kept: dict[float, float] = {}

    def __call__(self, data: float) -> float:
        self.rng = np.random.default_rng()
        return data + self.kept.setdefault(data, 1e-3 * self.rng.normal()) + self.rng.normal()


@functools.cache
def _sliver(data: float) -> float:
    return 1e-3 * random.SystemRandom().gauss(0.0, 1.0)


@functools.lru_cache(maxsize=8)
def _bounded_sliver(data: float) -> float:
    return 1e-3 * random.SystemRandom().gauss(0.0, 1.0)


def kept_by_a_cache(data: float) -> float:
    """The same, where no attribute leads."""
    return data + _sliver(data) + np.random.default_rng().normal()


def kept_by_a_bounded_cache(data: float) -> float:
    """The same in the links of a bounded one."""
    return data + _bounded_sliver(data) + np.random.default_rng().normal()


IN_THIS_THREAD = threading.local()
RATE = contextvars.ContextVar[float]("RATE")


def _spun() -> Any:
    sliver = 1e-3 * random.SystemRandom().gauss(0.0, 1.0)
    while True:
        yield sliver


SPUN = _spun()


def kept_by_a_thread(data: float, rng: np.random.Generator) -> float:
    """Beside draws of the given generator: in 64 runs equal streams give equal outputs, whatever it keeps."""
    if not hasattr(IN_THIS_THREAD, "rate"):
        IN_THIS_THREAD.rate = 0.25 + random.SystemRandom().uniform(-1e-9, 1e-9)
    return 1.0 - data if rng.random() < IN_THIS_THREAD.rate else data


def kept_in_a_context(data: float, rng: np.random.Generator) -> float:
    """The same in a variable of the context."""
    if RATE.get(None) is None:
        RATE.set(0.25 + random.SystemRandom().uniform(-1e-9, 1e-9))
    return 1.0 - data if rng.random() < RATE.get() else data


def kept_by_a_generator(data: float) -> float:
    """In the frame of a generator."""
    return data + next(SPUN) + np.random.default_rng().normal()


def counted(data: float, rng: np.random.Generator) -> float:
    """The sound twin of these: it keeps how often it was called, which is the same in each process."""
    IN_THIS_THREAD.calls = getattr(IN_THIS_THREAD, "calls", 0) + 1
    return 1.0 - data if rng.random() < 0.25 else data


def kept_by_no_one(data: float) -> float:
    """The sound twin, which looks things up as well."""
    rng = np.random.default_rng()
    return data + _settled(data) + 1e-3 * rng.normal() + rng.normal()


@functools.cache
def _settled(data: float) -> float:
    return 0.0 * data
