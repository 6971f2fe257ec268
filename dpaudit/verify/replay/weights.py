"""Weights of the outcomes of one draw, as whole numbers: exact, and divided by what they have in common."""

import math
import numbers
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

Weights = tuple[int, ...]
Exact = int | float | Fraction

GRID = 1 << 53  # a generator's random() is one of so many multiples of 2^-53, each as likely as the next
MOST_TRIALS = 500  # of a binomial law; its weights grow with the square of their number


def exact(value: object) -> Fraction | None:
    """A number as the rational it is, a double included; None where it is none, or not finite.

    >>> exact(0.5), exact(math.inf), exact("1")
    (Fraction(1, 2), None, None)
    """
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float) and math.isfinite(value):  # numpy's doubles are floats
        return Fraction(*value.as_integer_ratio())
    return None


def reduced(weights: Sequence[int]) -> Weights:
    """Whole weights without their common divisor.

    >>> reduced([2, 0, 6])
    (1, 0, 3)
    """
    divisor = math.gcd(*weights)
    return tuple(weight // divisor for weight in weights)


@lru_cache(maxsize=4096)
def proportional(weights: tuple[Exact, ...]) -> Weights | None:
    """Whole weights in the proportions of these; None where they are no law.

    >>> proportional((Fraction(1, 2), 0.25, 0.25))
    (2, 1, 1)
    """
    values = [exact(weight) for weight in weights]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not any(known) or min(known) < 0:
        return None
    common = math.lcm(*(value.denominator for value in known))
    return reduced([int(value * common) for value in known])


@lru_cache(maxsize=4096)
def yes_or_no(p: Exact) -> Weights | None:
    """Weights of yes, with probability p, and no; None where p is no probability.

    >>> yes_or_no(0.75)
    (3, 1)
    """
    value = exact(p)
    if value is None or not 0 <= value <= 1:
        return None
    return value.numerator, value.denominator - value.numerator


@lru_cache(maxsize=1024)
def binomial(trials: int, p: Exact) -> Weights | None:
    """Weights of the number of successes, each of probability p; None where there is no such law.

    >>> binomial(2, 0.25)
    (9, 6, 1)
    """
    one = yes_or_no(p)
    if one is None or not 0 <= trials <= MOST_TRIALS:
        return None
    yes, no = one
    return reduced([math.comb(trials, k) * yes**k * no ** (trials - k) for k in range(trials + 1)])


@lru_cache(maxsize=1024)
def by_levels(levels: tuple[float, ...]) -> Weights:
    """How many multiples u of 2^-53 have just so many levels at or below them: numpy's choice with `p`.

    The levels rise to 1. Times 2^53 they are exact, so the count is what numpy's own search finds.

    >>> by_levels((0.25, 0.25, 1.0))
    (1, 0, 3)
    """
    cuts = [min(GRID, max(0, math.ceil(math.ldexp(level, 53)))) for level in levels]
    return reduced([above - below for below, above in pairwise([0, *cuts])])


@lru_cache(maxsize=1024)
def by_search(levels: tuple[float, ...]) -> Weights:
    """As `by_levels` for levels that rise to any total, with the rounding of u * total: random.choices.

    >>> by_search((1, 2, 4)) == reduced([1, 1, 2])
    True
    """
    total, last = levels[-1] + 0.0, len(levels) - 1

    def found(count: int) -> int:
        return bisect_right(levels, count / GRID * total, 0, last)

    cuts = [bisect_right(range(GRID), place - 1, key=found) for place in range(1, len(levels))]
    return reduced([above - below for below, above in pairwise([0, *cuts, GRID])])


def running(weights: Sequence[float]) -> tuple[float, ...]:
    """The running sums, added up as the standard library adds them.

    >>> running([1, 2, 3])
    (1, 3, 6)
    """
    return tuple(accumulate(weights))
