"""The finite draws of Python's own `random.Random` that numpy has not, and those of replay itself."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpaudit.verify.replay.source import StandIn
from dpaudit.verify.replay.weights import by_search, proportional, running, yes_or_no


class StandardDraws(StandIn):
    """`randrange`, `randint`, `getrandbits`, `randbytes`, `choices` and `sample`, exact at the level of bits."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """A whole number of a range, each as likely as the next."""
        try:
            values = range(start) if stop is None else range(start, stop, step)
            count = max(0, -((values.start - values.stop) // values.step))  # len() ends at 2^63
        except (TypeError, ValueError, OverflowError) as error:
            raise self.refuse(f"rng.randrange takes a range of whole numbers: {error}") from None
        if count < 1:
            raise self.refuse(f"rng.randrange has nothing to draw from {values}")
        return values[self.place(count)]

    def randint(self, a: int, b: int) -> int:
        return self.randrange(a, operator.index(b) + 1)

    def getrandbits(self, k: int) -> int:
        return self.pick(1 << operator.index(k)) if k > 0 else 0

    def randbytes(self, n: int) -> bytes:
        return self.getrandbits(8 * n).to_bytes(n, "little")

    def choices(
        self, population: Any, weights: Sequence[float] | None = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        count = len(population)
        if weights is not None and cum_weights is not None:
            raise self.refuse("rng.choices takes weights or cum_weights, not both")
        levels = running(weights) if weights is not None else tuple(cum_weights or range(1, count + 1))
        rising = all(0 <= low <= high for low, high in zip((0, *levels), levels, strict=False))
        if count < 1 or len(levels) != count or not rising or not 0 < levels[-1] < float("inf"):
            raise self.refuse(f"rng.choices takes {count} weights of at least 0, got {weights or cum_weights!r}")
        key = by_search(levels)
        return [population[self.pick(key)] for _ in range(k)]

    def sample(self, population: Sequence[Any], k: int, *, counts: Any = None) -> list[Any]:
        if counts is not None or not 0 <= k <= len(population):
            raise self.refuse("rng.sample takes a sequence, a number of at most its length, and no counts")
        return [population[place] for place in self.in_order(len(population), k)]


class OwnDraws(StandIn):
    """`bit`, `bernoulli` and `finite`: exact where a generator's own methods would round."""

    def bit(self) -> int:
        """A fair bit."""
        return self.pick(2)

    def bernoulli(self, p: Fraction | float) -> bool:
        """True with probability p, a double taken as the number it is."""
        weights = yes_or_no(p)
        if weights is None:
            raise self.refuse(f"rng.bernoulli takes a probability, got {p!r}")
        return self.pick(weights) == 0

    def finite(self, weights: Sequence[Fraction | float]) -> int:
        """The place of one of the weights, with a probability in proportion to it."""
        key = proportional(tuple(weights))
        if key is None:
            raise self.refuse(f"rng.finite takes weights of at least 0, not all of them 0, got {weights!r}")
        return self.pick(key)
