"""Rounding outwards, and roots with both ends of their bracket.

A region may grow by some units in the last place, a stated bound may shrink by them; where a monotone function crosses
zero, or a condition ends, both ends that are returned were evaluated.
"""

import math
from collections.abc import Callable
from fractions import Fraction

UNIT = 2.0**-52  # the gap between 1 and the next double
HAIR = 4  # doubles: a claim such as 0.1 * 3 or log(3) is a real number that was rounded


def up(value: float, units: float = 4.0) -> float:
    """A number `units` units in the last place above `value`; 0 and infinities stay.

    >>> up(1.0) > 1.0, up(-1.0) > -1.0, up(0.0)
    (True, True, 0.0)
    """
    return value + abs(value) * units * UNIT if math.isfinite(value) else value


def down(value: float, units: float = 4.0) -> float:
    """A number `units` units in the last place below `value`; 0 and infinities stay.

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


NARROW = 1e-14  # relative width of the bracket
PATIENCE = 3  # steps in which the bracket must halve, else it is halved
STEPS = 400  # halvings alone would need fewer


def crossing(excess: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """A narrow bracket with excess(low) > 0 >= excess(high), shrunk from one that has it.

    Every number returned as an end was evaluated, so "at most zero at high" is a fact about `excess` as computed.
    Regula falsi with the weights of the Illinois rule, and halvings where it is slow or a value is infinite.

    >>> low, high = crossing(lambda x: 2.0 - x * x, 0.0, 2.0)
    >>> low * low < 2.0 <= high * high, round(high, 12)
    (True, 1.414213562373)
    """
    above, below = excess(low), excess(high)
    side, slow, goal = 0, 0, (high - low) / 2.0
    for _ in range(STEPS):
        width, size = high - low, (abs(low) + abs(high)) / 2.0
        if width <= NARROW * size:
            break
        share = 0.5
        if slow < PATIENCE and math.isfinite(above) and math.isfinite(below) and above > below:
            share = above / (above - below)
            nudge = 0.4 * NARROW * size / width  # past the root, so that the other end moves too
            share = min(1.0 - nudge, max(nudge, share + nudge if share < 0.5 else share - nudge))
        middle = low + share * width
        if not low < middle < high:
            break
        value = excess(middle)
        if value > 0.0:
            low, above, below = middle, value, below / 2.0 if side == 1 else below
            side = 1
        else:
            high, below, above = middle, value, above / 2.0 if side == -1 else above
            side = -1
        slow += 1
        if high - low <= goal:
            slow, goal = 0, (high - low) / 2.0
    return low, high


def narrowed(holds: Callable[[float], bool], low: float, high: float, width: float) -> tuple[float, float]:
    """Two numbers at most `width` apart; `holds` is true of the first (or that is `low`), not of the second (`high`).

    >>> low, high = narrowed(lambda x: x * x < 2.0, 0.0, 2.0, 1e-3)
    >>> low * low < 2.0 <= high * high
    True
    """
    while high - low > width:
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def least(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number above `low` that is enough, as all above it are; `high` where none below it is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
