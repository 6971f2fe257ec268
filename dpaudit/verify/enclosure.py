"""Enclosures: two floats with a real number between them, rounded outwards from a ball."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import flint

BITS = 200  # of a ball's centre: enough for sums of terms that cancel to 1e-40
LEAST, MOST = 5e-324, 1.7976931348623157e308  # the doubles next to 0 and to infinity
SMALLEST, LARGEST = -1080, 1024  # binary sizes beyond which a number is taken for too small or too large for a double


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A real number that lies in [lower, upper]; both ends are infinite where the number is known to be.

    >>> Enclosure(0.5, 0.5).exact
    True
    """

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether both ends are the same number."""
        return self.lower == self.upper

    @property
    def middle(self) -> float:
        """The number to print: halfway between the ends."""
        return self.lower if self.exact else self.lower + (self.upper - self.lower) / 2.0


def largest(ways: Iterable[Enclosure]) -> Enclosure:
    """The largest of some numbers.

    >>> largest([Enclosure(0.0, 0.5), Enclosure(0.25, 0.25)])
    Enclosure(lower=0.25, upper=0.5)
    """
    lower, upper = zip(*((way.lower, way.upper) for way in ways), strict=True)
    return Enclosure(max(lower), max(upper))


def of_ball(ball: Any) -> Enclosure:
    """The doubles around a ball (`flint.arb`), rounded outwards.

    >>> found = of_ball(flint().arb(1) / 3)
    >>> found.lower < 1 / 3 <= found.upper, found.upper - found.lower < 1e-15
    (True, True)
    """
    if not ball.is_finite():
        return Enclosure(-math.inf, math.inf)
    return Enclosure(_towards(ball.lower(), -math.inf), _towards(ball.upper(), math.inf))


def of_log(ratio: Fraction) -> Enclosure:
    """The logarithm of a positive rational number, enclosed.

    >>> of_log(Fraction(1))
    Enclosure(lower=0.0, upper=0.0)
    >>> of_log(Fraction(4)).lower <= 2 * math.log(2) <= of_log(Fraction(4)).upper
    True
    """
    if ratio == 1:
        return Enclosure(0.0, 0.0)
    with flint().ctx.workprec(BITS):
        return of_ball(ball(ratio).log())


def ball(value: Fraction | int | float) -> Any:
    """A rational number, or a double taken as the number it is, as a ball at the current precision of flint.

    >>> ball(Fraction(1, 2)) == flint().arb("0.5")
    True
    """
    return flint().arb(ratio(Fraction(value)))


def ratio(value: Fraction) -> Any:
    """A rational number as flint has it."""
    return flint().fmpq(value.numerator, value.denominator)


def _towards(end: Any, side: float) -> float:
    """An end of a ball as a double: the next one on that side, unless it is exactly one."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    outwards = (mantissa > 0) == (side > 0)
    size = exponent + mantissa.bit_length()  # the end is below 2^size; building 2^exponent may cost minutes
    if mantissa and size < SMALLEST:
        return math.copysign(LEAST if outwards else 0.0, mantissa)
    value = Fraction(0) if size > LARGEST else Fraction(mantissa) * Fraction(2) ** exponent
    if size > LARGEST or abs(value) > Fraction(MOST):
        return math.copysign(math.inf if outwards else MOST, mantissa)
    nearest = float(value)
    beside = Fraction(nearest) > value if side < 0.0 else Fraction(nearest) < value
    return math.nextafter(nearest, side) if beside else nearest
