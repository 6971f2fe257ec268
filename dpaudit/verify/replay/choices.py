"""Stand-ins for a random generator: one that walks every choice, and one that makes the choices of a past run again.

Their finite draws have the names, arguments and result types of `numpy.random.Generator`.
"""

import math
import operator
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from dpaudit.verify.replay.faces import Uniform, face, number_in
from dpaudit.verify.replay.source import (
    MOST_TRIALS,
    Cut,
    Key,
    StandIn,
    binomial,
    by_levels,
)

SUM_TOLERANCE = 1e-8  # of probabilities, as numpy has it


class Draws(StandIn):
    """`integers`, `random`, `choice`, `permutation`, `permuted`, `shuffle`, `binomial` and `bytes`.

    Exact at the level of bits, given a generator of fair ones, except `binomial`: that is the ideal law, to which
    numpy's own algorithm is right to the rounding of a logarithm. `face` is what a mechanism sees.
    """

    def __init__(self) -> None:
        super().__init__()
        self.face = face(self)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        if type(low) is int and low > 1 and high is None and size is None and dtype is np.int64 and not endpoint:
            return np.int64(self.pick(low))  # quick
        if size is not None:
            kind = np.dtype(dtype)
            return self._filled(size, lambda: self.integers(low, high, None, dtype, endpoint), kind)
        first, last = (0, low) if high is None else (low, high)
        try:
            start, count = operator.index(first), operator.index(last) - operator.index(first) + bool(endpoint)
        except TypeError:
            raise self.refuse(f"rng.integers takes whole numbers, got {low!r} and {high!r}") from None
        if count < 1:
            raise self.refuse(f"rng.integers has nothing to draw between {low!r} and {high!r}")
        least, most = _ends(dtype)
        if not least <= start <= start + count - 1 <= most:
            raise self.refuse(f"rng.integers draws no {np.dtype(dtype)} between {low!r} and {high!r}")
        value = start + self.place(count)
        return dtype(value) if dtype in (int, bool) else np.dtype(dtype).type(value)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        if size is out is None and dtype is np.float64:
            return self.uniform_draw()  # quick
        if dtype is not np.float64 and np.dtype(dtype) != np.float64 or out is not None:
            raise self.refuse("rng.random can be replayed for doubles that it returns; leave out dtype and out")
        if size is None:
            return self.uniform_draw()
        drawn = self._filled(size, self.uniform_draw, np.dtype(object))
        for each in drawn.ravel():
            if isinstance(each, Uniform):
                each.numpys = True
        return drawn

    def uniform_draw(self) -> Any:
        """One number of random(): uniform on the multiples of 2^-53 in [0, 1)."""
        return Uniform(self)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        if not (np.ndim(low) == np.ndim(high) == 0 and low == 0 and high == 1):
            raise self.refuse("rng.uniform can be replayed between 0 and 1 only: draw rng.integers, or random() < p")
        return self.random(size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        if size is not None:
            return self._filled(size, lambda: self.binomial(n, p), np.dtype(np.int64))
        try:
            weights = binomial(operator.index(n), float(p) if isinstance(p, np.floating) else p)
        except TypeError:
            weights = None
        if weights is None:
            raise self.refuse(f"rng.binomial takes n in 0..{MOST_TRIALS} and a number p in [0, 1], got {n!r} and {p!r}")
        self.idealised = self.idealised or len(weights) > 1 and sum(map(bool, weights)) > 1
        return self.pick(weights)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        population = self._population(a)
        count = population if isinstance(population, int) else len(population)
        if count < 1 or axis != 0:
            raise self.refuse("rng.choice takes a population of one axis that is not empty")
        if size is None:
            place = self._place(count, p)
            return place if isinstance(population, int) else population[place]
        shape = _shape(size)
        if replace or math.prod(shape) <= 1:
            places = [self._place(count, p) for _ in range(math.prod(shape))]
        elif p is None and shuffle:
            if math.prod(shape) > count:
                raise self.refuse(f"{math.prod(shape)} cannot be taken from {count} without replacement")
            places = self.in_order(count, math.prod(shape))
        else:
            raise self.refuse("rng.choice without replacement can be replayed without p and with shuffle=True only")
        if isinstance(population, int):
            return np.array(places, np.int64).reshape(shape)
        return np.array([population[place] for place in places], population.dtype).reshape(shape)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Every order as likely as the next; n! outcomes."""
        if axis != 0:
            raise self.refuse("rng.permutation can be replayed along the first axis only")
        values = np.arange(x) if isinstance(x, int | np.integer) else np.array(x)
        return values[self.in_order(len(values), len(values))]

    def permuted(self, x: Any, *, axis: Any = None, out: Any = None) -> Any:
        if np.ndim(x) != 1 or out is not None:
            raise self.refuse("rng.permuted can be replayed for one axis and without out; use rng.permutation")
        return self.permutation(x)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        if axis != 0:
            raise self.refuse("rng.shuffle can be replayed along the first axis only")
        order = self.in_order(len(x), len(x))
        x[:] = x[order] if isinstance(x, np.ndarray) else [x[place] for place in order]

    def bytes(self, length: int) -> bytes:
        return self.pick(256 ** operator.index(length)).to_bytes(length, "little") if length else b""

    def _place(self, count: int, p: Any) -> int:
        if p is None:
            return self.place(count)
        chances = np.asarray(p, np.float64)
        if chances.shape != (count,) or not (chances >= 0.0).all() or abs(chances.sum() - 1.0) > SUM_TOLERANCE:
            raise self.refuse(f"the p of rng.choice must be {count} probabilities that sum to 1, got {p!r}")
        levels = np.cumsum(chances)
        levels /= levels[-1]
        return self.pick(by_levels(tuple(levels.tolist())))

    def _population(self, a: Any) -> Any:
        """What to choose from: a number n for 0..n-1, or an array."""
        if isinstance(a, int | np.integer) and not isinstance(a, bool):
            return int(a)
        if isinstance(a, str):
            raise self.refuse("rng.choice of a text fails; pass a list of its letters")
        kinds = set(map(type, a)) if isinstance(a, list | tuple | range) else set()
        values = np.array(a) if kinds <= {int, float} or len(kinds) == 1 else None
        if values is None or values.ndim != 1:
            raise self.refuse(
                "rng.choice can be replayed for numbers, or for texts, in one list; choose a place with "
                "rng.integers(len(...)) instead"
            )
        return values

    def _filled(self, size: Any, draw: Callable[[], Any], dtype: Any) -> Any:
        shape = _shape(size)
        filled = np.empty(math.prod(shape), dtype)
        for place in range(len(filled)):
            filled[place] = draw()
        return filled.reshape(shape)


@lru_cache(maxsize=64)
def _ends(dtype: Any) -> tuple[int, int]:
    """The least and the largest number that integers() draws of a type; none, 1 and 0, where it is no whole number."""
    kind = np.dtype(dtype)
    if kind.kind not in "iu":
        return (0, 1) if kind.kind == "b" else (1, 0)
    return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


def _shape(size: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, size)) if isinstance(size, tuple | list) else (operator.index(size),)


MOST_DRAWS = 2_000  # in one run; more is a loop that does not end (reported after some seconds)
MOST_UNIFORMS = 20_000
DIFFERS = (
    "the mechanism did not do the same on the same choices: it keeps something from one run to the next, draws from "
    "elsewhere than rng, asks what a draw of rng.random() is, tells an address or the time, or returns objects of a "
    "class that it makes anew; make each run a function of data and rng alone"
)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A past run: what it picked, the ranges of its draws of random(), and its output."""

    picked: tuple[tuple[Key, int], ...]
    ranges: tuple[tuple[int, int], ...]
    output: Hashable


class Choices(Draws):
    """Takes the place of `rng` and leads each run down another path of its choices, until all are taken.

    The paths form a tree; at each place of the present one `keys` says what was drawn and `picked` which outcome was
    taken. The probability of the path down to there is numerator / denominator. `unfit` says of loops why they are run
    as they stand.

    >>> choices = Choices(most_outcomes=100)
    >>> choices.begin(); choices.place(2), choices.binomial(1, 0.25); choices.mass()
    (0, 0)
    (3, 8)
    """

    def __init__(self, most_outcomes: int, unfit: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__()
        self.most_outcomes, self.unfit = most_outcomes, unfit
        self._clear()

    def _clear(self) -> None:
        self._at, self._closed = 0, False
        self._keys: list[Key] = []
        self._picked: list[int] = []
        self._numerators, self._denominators = [1], [1]
        self.uniforms: list[Uniform] = []

    def begin(self) -> None:
        """Before a run: back to the root."""
        self._at, self.is_lost = 0, False
        self.uniforms = []

    def uniform_draw(self) -> Uniform:
        draw = Uniform(self)
        self.uniforms.append(draw)
        if len(self.uniforms) > MOST_UNIFORMS:  # each is compared with 1, say
            raise self._forever()
        return draw

    def pick(self, key: Key) -> int:
        at = self._at
        self._at = at + 1
        try:
            if self._keys[at] == key:
                return self._picked[at]
        except IndexError:
            return self._open(key)
        raise self.broken(DIFFERS)

    def _open(self, key: Key) -> int:
        """A place that no run has been to: the first outcome that is possible."""
        count = key if isinstance(key, int) else len(key)
        if self._closed:
            raise self.broken(DIFFERS)
        if count > self.most_outcomes:
            raise self.refuse(
                f"one draw has {count:,} outcomes, and at most {self.most_outcomes:,} paths are replayed; draw from "
                "fewer values, or raise most_paths"
            )
        if len(self._picked) >= MOST_DRAWS:
            raise self._forever()
        if isinstance(key, int):
            first, weight, total = 0, 1, key
        else:
            first = next(place for place, each in enumerate(key) if each)
            weight, total = key[first], sum(key)
        self._keys.append(key)
        self._picked.append(first)
        self._numerators.append(self._numerators[-1] * weight)
        self._denominators.append(self._denominators[-1] * total)
        return first

    def _forever(self) -> Exception:
        text = f"a run draws more than {MOST_DRAWS:,} times: a loop that can go on for ever has no finite law; "
        why = "".join(f"; {each}: {why}" for each, why in self.unfit.items())
        return self.refuse(f"{text}bound the number of its rounds{why}")

    def end(self) -> None:
        """After a run: raises what the run may have swallowed, or where it drew less than the run before it."""
        if self.error is not None:
            raise self.error
        if self._at != len(self._picked):
            raise self.broken(DIFFERS)

    def mass(self) -> tuple[int, int]:
        """The probability of the present path, not reduced: quick."""
        return self._numerators[-1], self._denominators[-1]

    def advance(self) -> bool:
        """On to the next path; False after the last one, and then it is ready for another dataset."""
        while self._keys:
            key, place = self._keys[-1], self._picked[-1] + 1
            if isinstance(key, int):
                if place < key:
                    self._picked[-1] = place
                    return True
            else:
                while place < len(key) and not key[place]:
                    place += 1
                if place < len(key):
                    self._picked[-1] = place
                    self._numerators[-1] = self._numerators[-2] * key[place]
                    return True
            self._keys.pop()
            self._picked.pop()
            self._numerators.pop()
            self._denominators.pop()
        return False

    def close(self) -> None:
        """No more runs: a later draw from this generator raises."""
        self._clear()
        self._closed = True

    def covered(self) -> Fraction:
        """The probability of all paths before the present one."""
        total = Fraction(0)
        for depth, (key, place) in enumerate(zip(self._keys, self._picked, strict=True)):
            passed, whole = (place, key) if isinstance(key, int) else (sum(key[:place]), sum(key))
            before = Fraction(self._numerators[depth], self._denominators[depth])
            total += before * Fraction(passed, whole)
        return total

    def record(self, output: Hashable) -> PastRun:
        """The run that has just ended."""
        ranges = tuple((draw.low, draw.high) for draw in self.uniforms)
        return PastRun(tuple(zip(self._keys, self._picked, strict=True)), ranges, output)


class Again(Draws):
    """Makes the choices of a past run again, with true numbers for its draws of random(), from the same ranges."""

    def __init__(self, past: PastRun, *, last: bool) -> None:
        super().__init__()
        self._picked = [each for each in past.picked if not isinstance(each[0], Cut)]
        self._numbers = [number_in(low, high, last=last) for low, high in past.ranges]
        self._picked.reverse()
        self._numbers.reverse()

    def pick(self, key: Key) -> int:
        if not self._picked or self._picked[-1][0] != key:
            raise self.broken(DIFFERS)
        return self._picked.pop()[1]

    def uniform_draw(self) -> float:
        if not self._numbers:
            raise self.broken(DIFFERS)
        return self._numbers.pop()

    def random(self, size: Any = None, *arguments: Any, **options: Any) -> Any:
        drawn = super().random(size, *arguments, **options)
        return drawn if size is None else drawn.astype(float)

    def end(self) -> None:
        """After the run: raises where it drew less than in the past, or swallowed an error."""
        if self.error is not None:
            raise self.error
        if self._picked or self._numbers:
            raise self.broken(DIFFERS)
