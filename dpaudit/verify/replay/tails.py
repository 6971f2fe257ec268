"""Whole numbers without a largest value: what a mechanism sees of one, and where it stands in an output.

An `Unbounded` is offset + step * k for a whole k >= 0 whose law is geometric, P(k) = (1 - rate) * rate^k. A run looks
at it as little as it can: numbers are added to it, and a comparison cuts its law in two. What asks for more gets a
plain int, one run for each, up to where next to no probability is left: such runs are not followed any further.
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
MOST_STEPS = 2_048  # of a law, one by one
ENDLESS = "a number of a loop without end"
REALS = (int, bool, float, Fraction)


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
def _powers(rate: Fraction, steps: int, exactly: bool) -> Weights:
    """The weights of k = 0, 1, ... steps - 1 and of all beyond."""
    return in_whole([(1 - rate) * rate**k for k in range(steps)], exactly=exactly)


class Geometric:
    """The law behind numbers, of k >= `low`; `value` is k once that is known. `used` once no other use is right."""

    def __init__(self, source: StandIn, rate: Fraction) -> None:
        self.source, self.rate, self.low, self.used = source, rate, 0, False
        self.value: int | None = None

    def below(self, cut: int) -> bool:
        """Whether k < cut."""
        if self.value is None and cut > self.low:
            self._split(cut - self.low, exactly=True)
        return self.value is not None and self.value < cut

    def known(self) -> int:
        """k itself, one value after the other."""
        if self.value is None:
            self._split(math.ceil(math.log(RARE) / math.log(self.rate)), exactly=False)
        if self.value is None:
            raise self.source.lose()
        return self.value

    def _split(self, steps: int, *, exactly: bool) -> None:
        self.use()
        if steps > MOST_STEPS:
            raise self.source.refuse(f"{ENDLESS} has more than {MOST_STEPS:,} values to look at one by one")
        place = self.source.pick(_powers(self.rate, steps, exactly))
        self.value, self.low = (self.low + place, self.low) if place < steps else (None, self.low + steps)

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


class Unbounded:
    """What stands for the number: an int, in all that a mechanism can see."""

    __slots__ = ("law", "offset", "step")
    __class__: Any = property(lambda self: int)  # as what it stands for

    def __init__(self, law: Geometric, offset: int, step: int) -> None:
        self.law, self.offset, self.step = law, offset, step

    def known(self) -> int:
        """The number as an int; from now on it is that one."""
        return self.offset + self.step * self.law.known()

    def form(self) -> Hashable:
        """Its place in an output."""
        if self.law.value is not None:
            return self.known()
        self.law.use(last=True)
        return Tail(self.offset + self.step * self.law.low, self.step, self.law.rate)

    def __add__(self, other: Any) -> Any:
        if type(other) in (int, bool):
            return Unbounded(self.law, self.offset + other, self.step)
        if type(other) is not Unbounded or self.law.value is not None:
            return self.known() + other
        step = self.step + other.step
        if self.law is other.law:
            return Unbounded(self.law, self.offset + other.offset, step) if step else self.offset + other.offset
        if step or other.law.value is not None:
            return self + other.known()
        return self._less(other) if self.step > 0 else other._less(self)

    def _less(self, other: "Unbounded") -> "Unbounded":
        """The sum where steps are step and -step: the difference is geometric from 0 up, or from -1 down."""
        self.law.use(last=True)
        other.law.use(last=True)
        source, up, down = self.law.source, self.law.rate, other.law.rate
        start = self.offset + other.offset + self.step * (self.law.low - other.law.low)
        if source.pick(in_whole([(1 - down) / (1 - up * down), down * (1 - up) / (1 - up * down)], exactly=True)) == 0:
            return Unbounded(Geometric(source, up), start, self.step)
        return Unbounded(Geometric(source, down), start - self.step, -self.step)

    def __mul__(self, other: Any) -> Any:
        if type(other) not in (int, bool):
            return self.known() * other
        return Unbounded(self.law, self.offset * other, self.step * other) if other else 0

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) in (int, bool, Unbounded) else self.known() - other

    def __rsub__(self, other: Any) -> Any:
        return -self + other if type(other) in (int, bool) else other - self.known()

    def __eq__(self, other: Any) -> Any:
        return bool(self <= other and self >= other) if type(other) in REALS else self.known() == other

    def __ne__(self, other: Any) -> Any:
        return not self == other if type(other) in REALS else self.known() != other

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.known(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(
            *(each.known() if type(each) is Unbounded else each for each in inputs), **options
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.known(), name)


SEEMS[Unbounded] = int


def _comparison(compare: Callable[[Any, Any], Any], inclusive: bool, turned: bool) -> Any:
    """How it is compared: with `inclusive`, at most the other number, else below it; `turned` where that is denied."""

    def method(self: Unbounded, other: Any) -> Any:
        number = exact(other) if type(other) in REALS else None
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
for _name in ("matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "xor", "or"):
    setattr(Unbounded, f"__{_name}__", _of_known(getattr(operator, f"__{_name}__")))
    setattr(Unbounded, f"__r{_name}__", _of_known(getattr(operator, f"__{_name}__"), turned=True))
for _compute in (int, float, complex, hash, str, repr, format, round, abs, divmod, math.trunc, math.floor, math.ceil):
    setattr(Unbounded, f"__{_compute.__name__}__", _of_known(_compute))
for _name in ("index", "invert", "pos"):
    setattr(Unbounded, f"__{_name}__", _of_known(getattr(operator, _name)))
