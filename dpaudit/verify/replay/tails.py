"""Whole numbers without a largest value: what a mechanism sees of one, and the outputs that it stands for.

An `Unbounded` is offset + step * k for a whole k >= 0 whose law is geometric, P(k) = (1 - rate) * rate^k. A run looks at
it as little as it can: numbers are added to it, and a comparison cuts its law in two. What asks for more gets a plain
int, one run for each, up to where next to no probability is left: such runs are not followed any further.
"""

import math
import operator
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.verify.replay.faces import SEEMS
from dpaudit.verify.replay.source import StandIn, Weights, exact

FINE = 1 << 256  # weights that are not exact are rounded down to this part of the whole
RARE = 2.0**-80  # what is left of a law where it is no longer followed
MOST_STEPS = 4_096  # of a law, one by one
ENDLESS = "a number of a loop without end"


class Geometric:
    """The law behind numbers, of k >= `low`; `value` is k once that is known. `used` once no other use is right."""

    __slots__ = ("low", "rate", "source", "used", "value")

    def __init__(self, source: StandIn, rate: Fraction) -> None:
        self.source, self.rate, self.low, self.used = source, rate, 0, False
        self.value: int | None = None

    def below(self, cut: int) -> bool:
        """Whether k < cut; where it is, k is known."""
        if self.value is None and cut > self.low:
            if cut - self.low > MOST_STEPS:
                raise self.source.refuse(f"{ENDLESS} is compared with one beyond {MOST_STEPS:,}")
            self._split(cut, powers(self.rate, cut - self.low))
        return self.value is not None and self.value < cut

    def known(self) -> int:
        """k itself, one value after the other."""
        if self.value is None:
            steps = math.ceil(math.log(RARE) / math.log(self.rate))
            if steps > MOST_STEPS:
                raise self.source.refuse(f"{ENDLESS} is used otherwise than in sums, and has too many likely values")
            self._split(self.low + steps, powers(self.rate, steps, rounded=True))
        if self.value is None:
            raise self.source.lose()
        return self.value

    def _split(self, cut: int, weights: Weights) -> None:
        self.once()
        place = self.source.pick(weights)
        self.value, self.low = (self.low + place, self.low) if place < cut - self.low else (None, cut)

    def once(self, *, last: bool = False) -> None:
        """Raises where the law has become part of a sum, or of the output; with `last` it does so now."""
        if self.used:
            raise self.source.refuse(f"{ENDLESS} is used twice, in a sum or the output and beside it")
        self.used = last


@lru_cache(maxsize=256)
def powers(rate: Fraction, steps: int, *, rounded: bool = False) -> Weights:
    """The weights of k = 0, 1, ... steps - 1 and of all beyond; `rounded` down, what that leaves goes beyond.

    >>> powers(Fraction(1, 3), 2)
    (6, 2, 1)
    """
    top, bottom = rate.numerator, rate.denominator
    if not rounded:
        return (*((bottom - top) * top**k * bottom ** (steps - 1 - k) for k in range(steps)), top**steps)
    weights = [FINE * (bottom - top) // bottom]
    while len(weights) < steps:
        weights.append(weights[-1] * top // bottom)
    return (*weights, FINE - sum(weights))


def in_whole(shares: Sequence[Fraction]) -> Weights:
    """Shares of a whole as whole weights, and the weight of what is missing; rounded down where they are too long.

    >>> in_whole([Fraction(1, 2), Fraction(1, 3)])
    (3, 2, 1)
    """
    size = math.lcm(*(share.denominator for share in shares))
    size = size if sum(shares) == 1 and size.bit_length() < MOST_STEPS else FINE
    weights = [share.numerator * size // share.denominator for share in shares]
    return (*weights, size - sum(weights))


@dataclass(frozen=True, slots=True)
class Tail:
    """In an output, a number without a largest value: start, start + step, ... each `rate` times as likely as the last.

    Beside a law's outputs that hold one there is none that equals one of those that it stands for: see `Partition`.
    """

    start: int
    step: int
    rate: Fraction


class Unbounded:
    """What stands for the number: an int, in all that a mechanism can see."""

    __slots__ = ("law", "offset", "step")
    __array_ufunc__ = None

    def __init__(self, law: Geometric, offset: int, step: int) -> None:
        self.law, self.offset, self.step = law, offset, step

    def known(self) -> int:
        """The number as an int; from now on it is that one."""
        return self.offset + self.step * self.law.known()

    def form(self) -> Hashable:
        """Its place in an output."""
        if self.law.value is not None:
            return self.known()
        self.law.once(last=True)
        return Tail(self.offset + self.step * self.law.low, self.step, self.law.rate)

    def __add__(self, other: Any) -> Any:
        if type(other) is Unbounded and other.law.value is not None:
            other = other.known()
        if type(other) in (int, bool):
            return Unbounded(self.law, self.offset + other, self.step)
        if type(other) is not Unbounded:
            return self.known() + other
        if self.law is other.law and self.step + other.step:
            return Unbounded(self.law, self.offset + other.offset, self.step + other.step)
        if self.law is other.law:
            return self.offset + other.offset
        if self.law.value is not None or self.step + other.step:
            return self.known() + other
        return self._less(other) if self.step > 0 else other._less(self)

    def _less(self, other: "Unbounded") -> "Unbounded":
        """The sum where steps are step and -step: the difference is geometric from 0 up, or from -1 down."""
        self.law.once(last=True)
        other.law.once(last=True)
        source, up, down = self.law.source, self.law.rate, other.law.rate
        start = self.offset + other.offset + self.step * (self.law.low - other.law.low)
        if source.pick(in_whole([(1 - down) / (1 - up * down), down * (1 - up) / (1 - up * down)])) == 0:
            return Unbounded(Geometric(source, up), start, self.step)
        return Unbounded(Geometric(source, down), start - self.step, -self.step)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if type(other) not in (int, bool):
            return self.known() * other
        return Unbounded(self.law, self.offset * other, self.step * other) if other else 0

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) in (int, bool, Unbounded) else self.known() - other

    def __rsub__(self, other: Any) -> Any:
        return -self + other if type(other) in (int, bool) else other - self.known()

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __pos__(self) -> "Unbounded":
        return self

    def __eq__(self, other: Any) -> Any:
        return bool(self <= other and self >= other) if type(other) in REALS else self.known() == other

    def __ne__(self, other: Any) -> Any:
        return not self == other if type(other) in REALS else self.known() != other

    def __bool__(self) -> bool:
        return bool(self != 0)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int  # as what it stands for

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.known(), dtype)

    def __deepcopy__(self, memo: object) -> "Unbounded":
        return self

    def __copy__(self) -> "Unbounded":
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.known(), name)


REALS = (int, bool, float, Fraction)
SEEMS[Unbounded] = int


def _comparison(compare: Callable[[Any, Any], Any], inclusive: bool, turned: bool) -> Any:
    """How it is compared: with `inclusive`, at most the other number, else below it; `turned` where that is denied."""

    def method(self: Unbounded, other: Any) -> Any:
        number = exact(other) if type(other) in REALS and self.law.value is None else None
        if number is None:
            return compare(self.known(), other)
        steps = (number - self.offset) / self.step
        least = math.floor(steps) + 1 if inclusive == (self.step > 0) else math.ceil(steps)
        return (self.law.below(least) == (self.step > 0)) != turned

    return method


def _of_known(compute: Callable[..., Any], *, turned: bool = False) -> Any:
    def method(self: Unbounded, *others: Any) -> Any:
        return compute(*others, self.known()) if turned else compute(self.known(), *others)

    return method


for _name, _inclusive, _turned in (("lt", False, False), ("le", True, False), ("gt", True, True), ("ge", False, True)):
    setattr(Unbounded, f"__{_name}__", _comparison(getattr(operator, _name), _inclusive, _turned))
for _name in "matmul truediv floordiv mod pow lshift rshift and xor or".split():
    _compute = getattr(operator, f"__{_name}__")
    setattr(Unbounded, f"__{_name}__", _of_known(_compute))
    setattr(Unbounded, f"__r{_name}__", _of_known(_compute, turned=True))
for _compute in (int, float, complex, hash, str, repr, format, round, math.trunc, math.floor, math.ceil, divmod):
    setattr(Unbounded, f"__{_compute.__name__}__", _of_known(_compute))
for _name in ("index", "invert"):
    setattr(Unbounded, f"__{_name}__", _of_known(getattr(operator, _name)))
