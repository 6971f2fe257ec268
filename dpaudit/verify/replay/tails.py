"""Whole numbers without a largest value: what a mechanism sees of one, and where it stands in an output.

An `Unbounded` is offset + step * k for a whole k >= 0 whose law is geometric, P(k) = (1 - rate) * rate^k. Numbers are
added to it, it is multiplied by one, and a comparison cuts its law in two. Any other use is refused: then the loop that
made it is followed value by value.
"""

import math
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpaudit.verify.replay.faces import SEEMS, DrawnNumber
from dpaudit.verify.replay.source import StandIn, Weights

FINE = 1 << 128  # weights that are not exact are rounded down to this part of the whole
MOST_STEPS = 2_048  # of a law, one by one
ENDLESS = "a number of a loop without end"


def in_whole(shares: Sequence[Fraction], *, exactly: bool = False) -> Weights:
    """Shares of a whole as whole weights, and the weight of what is missing.

    Not `exactly`, they are rounded down where something is missing or they are long.

    >>> in_whole([Fraction(1, 2), Fraction(1, 2)]), in_whole([Fraction(2, 3), Fraction(2, 9)], exactly=True)
    ((1, 1, 0), (6, 2, 1))
    """
    size = math.lcm(*(share.denominator for share in shares))
    size = size if exactly or sum(shares) == 1 and size.bit_length() < MOST_STEPS else FINE
    weights = [share.numerator * size // share.denominator for share in shares]
    return (*weights, size - sum(weights))


@lru_cache(maxsize=256)
def _powers(rate: Fraction, steps: int) -> Weights:
    """The weights of k = 0, 1, ... steps - 1 and of all beyond."""
    return in_whole([(1 - rate) * rate**k for k in range(steps)], exactly=True)


class Geometric:
    """The law behind numbers, of k >= `low`; `value` is k once that is known. `used` once no other use is right."""

    def __init__(self, source: StandIn, rate: Fraction) -> None:
        self.source, self.rate, self.low, self.used = source, rate, 0, False
        self.value: int | None = None

    def below(self, cut: int) -> bool:
        """Whether k < cut."""
        if self.value is None and cut > self.low:
            self.use()
            if (steps := cut - self.low) > MOST_STEPS:
                raise self.source.refuse(f"{ENDLESS} is compared with more than {MOST_STEPS:,}")
            place = self.source.pick(_powers(self.rate, steps))
            self.value, self.low = (self.low + place, self.low) if place < steps else (None, cut)
        return self.value is not None and self.value < cut

    def use(self, *, last: bool = False) -> None:
        """Raises where the law has become part of a sum, or of the output; with `last` it does so now."""
        if self.used:
            raise self.source.refuse(f"{ENDLESS} is used twice, in a sum or the output and beside it")
        self.used = last


@dataclass(frozen=True, slots=True)
class Tail:
    """In an output, a number without a largest value: start, start + step, ..., each less likely by the `rate`."""

    start: int
    step: int
    rate: Fraction


class Unbounded(DrawnNumber):
    """What stands for the number: an int, in all that a mechanism can see."""

    __slots__ = ("law", "offset", "source", "step")
    __class__: Any = property(lambda self: int)  # as what it stands for

    def __init__(self, law: Geometric, offset: int, step: int) -> None:
        self.law, self.offset, self.step, self.source = law, offset, step, law.source

    def form(self) -> Hashable:
        """Its place in an output."""
        if self.law.value is not None:
            return self.offset + self.step * self.law.value
        self.law.use(last=True)
        return Tail(self.offset + self.step * self.law.low, self.step, self.law.rate)

    def is_below(self, number: Fraction, inclusive: bool) -> bool:
        """Whether it is below a number, or with `inclusive` at most it."""
        steps = (number - self.offset) / self.step
        least = math.floor(steps) + 1 if inclusive == (self.step > 0) else math.ceil(steps)
        return self.law.below(least) == (self.step > 0)

    def __add__(self, other: Any) -> Any:
        if type(other) is Unbounded and other.law.value is not None:
            other = other.form()
        if type(other) in (int, bool):
            return Unbounded(self.law, self.offset + other, self.step)
        if type(other) is not Unbounded:
            raise self.refuse(f"added to {type(other).__name__}")
        step, offset = self.step + other.step, self.offset + other.offset
        if self.law is other.law:
            return Unbounded(self.law, offset, step) if step else offset
        if self.law.value is not None:
            return other + self
        if step:
            raise self.refuse("added to another")
        return self._less(other) if self.step > 0 else other._less(self)

    def _less(self, other: "Unbounded") -> "Unbounded":
        """The sum where steps are step and -step: the difference is geometric from 0 up, or from -1 down."""
        self.law.use(last=True)
        other.law.use(last=True)
        up, down = self.law.rate, other.law.rate
        start = self.offset + other.offset + self.step * (self.law.low - other.law.low)
        shares = [(1 - down) / (1 - up * down), down * (1 - up) / (1 - up * down)]
        if self.source.pick(in_whole(shares, exactly=True)) == 0:
            return Unbounded(Geometric(self.source, up), start, self.step)
        return Unbounded(Geometric(self.source, down), start - self.step, -self.step)

    def __mul__(self, other: Any) -> Any:
        if type(other) not in (int, bool):
            raise self.refuse(f"multiplied by {type(other).__name__}")
        return Unbounded(self.law, self.offset * other, self.step * other) if other else 0

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise self.refuse("an array")

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other


SEEMS[Unbounded] = int
