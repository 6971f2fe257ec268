"""Halving: where a condition that holds from `low` on ends."""

from collections.abc import Callable


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
