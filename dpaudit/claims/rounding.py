"""Rounding outwards: a region may grow by some units in the last place, a stated bound may shrink by them."""

import math
from fractions import Fraction

UNIT = 2.0**-52  # the gap between 1 and the next double


def up(value: float, units: float = 4.0) -> float:
    """A number above `value` by so many units in the last place; 0 and infinities stay.

    >>> up(1.0) > 1.0, up(-1.0) > -1.0, up(0.0)
    (True, True, 0.0)
    """
    return value + abs(value) * units * UNIT if math.isfinite(value) else value


def down(value: float, units: float = 4.0) -> float:
    """A number below `value` by so many units in the last place; 0 and infinities stay.

    >>> down(1.0) < 1.0, down(0.0)
    (True, 0.0)
    """
    return value - abs(value) * units * UNIT if math.isfinite(value) else value


def ratio(epsilon: float) -> float:
    """e^epsilon; infinite where it overflows, which still is a (vacuous) half-plane.

    >>> ratio(0.0), ratio(1000.0)
    (1.0, inf)
    """
    return math.exp(epsilon) if epsilon < 709.0 else math.inf


def above(exact: Fraction) -> float:
    """The least double that is not below an exact number; inf beyond the largest.

    >>> above(Fraction(3)), above(Fraction(1, 10)) >= Fraction(1, 10)
    (3.0, True)
    """
    try:
        near = float(exact)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)
