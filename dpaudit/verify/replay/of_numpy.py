"""The finite draws of `numpy.random.Generator`, with its names, its arguments and the types of its results."""

import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.verify.replay.source import StandIn
from dpaudit.verify.replay.uniform import Uniform
from dpaudit.verify.replay.weights import MOST_TRIALS, binomial, by_levels

SMALL = [np.int64(value) for value in range(256)]  # made once: numpy's own numbers are slow to make
SUM_TOLERANCE = 1e-8  # of probabilities, as numpy has it


class NumpyDraws(StandIn):
    """`integers`, `random`, `choice`, `permutation`, `permuted`, `shuffle`, `binomial` and `bytes`.

    Exact at the level of bits, given a generator of fair ones, but for `binomial`: that is the ideal law, to which
    numpy's own algorithm is right to the rounding of a logarithm.
    """

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
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
        if dtype is np.int64:
            return SMALL[value] if 0 <= value < 256 else np.int64(value)
        return dtype(value) if dtype in (int, bool) else np.dtype(dtype).type(value)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
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
        taken = [population[place] for place in places]
        if isinstance(population, np.ndarray):
            return np.array(taken, population.dtype).reshape(shape)
        raise self.refuse("rng.choice of a text has no size; pass a list of its letters")

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
        return self.pick(256**length).to_bytes(length, "little") if length else b""

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
        """What to choose from: a number n for 0..n-1, an array, or a text; refused where numpy and `random` differ."""
        if isinstance(a, int | np.integer) and not isinstance(a, bool):
            return int(a)
        if isinstance(a, str) and self.kind == "numpy":
            raise self.refuse(
                'rng.choice of a text fails; pass a list of its letters, or replay it with generator="random"'
            )
        if isinstance(a, str):
            return a
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
