"""Where a monotone function of one number crosses zero, or a condition ends: two ends that were evaluated."""

import math
from collections.abc import Callable

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
    kept, slow, goal = 0, 0, (high - low) / 2.0
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
            low, above, below = middle, value, below / 2.0 if kept == 1 else below
            kept = 1
        else:
            high, below, above = middle, value, above / 2.0 if kept == -1 else above
            kept = -1
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
