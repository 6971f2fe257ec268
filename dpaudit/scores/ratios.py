"""Approximate intervals for the logarithm of a ratio of two binomial rates, at delta = 0, to compare other tools with.

Names, and rules for zero counts, as in Aho & Bowyer 2015; all four miss their level where the counts are small.
"""

import math
from collections.abc import Callable

NAMES = ("katz-log", "adjusted-log", "bailey", "inverse-sinh")


def log_ratio_limit(method: str, hits_p: int, runs_p: int, hits_q: int, runs_q: int, z: float) -> float:
    """ln of the limit of (hits_p / runs_p) / (hits_q / runs_q) at the normal quantile `z` (negative: lower limit).

    >>> round(math.exp(log_ratio_limit("bailey", 100, 110, 10, 80, -1.6448536269514722)), 6)
    4.619539
    >>> round(math.exp(log_ratio_limit("katz-log", 90, 110, 5, 80, -1.6448536269514722)), 6)
    6.397126
    """
    if hits_p == 0:
        return -math.inf if z < 0.0 or hits_q else math.inf
    x, y = (hits_p - 0.5, hits_q - 0.5) if hits_p == runs_p and hits_q == runs_q else (hits_p, hits_q)
    return _METHODS[method](x, runs_p, y, runs_q, z)


def epsilon_limit(method: str, tp: int, members: int, fp: int, others: int, z: float) -> float:
    """The larger of the two lines' limits, ln(tpr / fpr) and ln(tnr / fnr); at least 0."""
    return max(
        0.0,
        log_ratio_limit(method, tp, members, fp, others, z),
        log_ratio_limit(method, others - fp, others, members - tp, members, z),
    )


def _katz(x: float, m: float, y: float, n: float, z: float) -> float:
    """Katz, Baptista, Azen & Pike 1978, method C."""
    y = y or 0.5
    return math.log(x / m) - math.log(y / n) + z * math.sqrt(1.0 / x - 1.0 / m + 1.0 / y - 1.0 / n)


def _walter(x: float, m: float, y: float, n: float, z: float) -> float:
    """Walter 1975: half a hit added everywhere."""
    return _katz(x + 0.5, m + 0.5, y + 0.5, n + 0.5, z)


def _bailey(x: float, m: float, y: float, n: float, z: float) -> float:
    """Bailey 1987: the cube root of the ratio is more nearly normal."""
    x, y = (m - 0.5 if x == m else x), (n - 0.5 if y == n else y or 0.5)
    missed_p, missed_q = 1.0 - x / m, 1.0 - y / n
    inner = missed_p / x + missed_q / y - z * z * missed_p * missed_q / (9.0 * x * y)
    below = 1.0 - z * z * missed_q / (9.0 * y)
    above = 1.0 + z / 3.0 * math.sqrt(max(0.0, inner))
    if below <= 0.0:  # too few hits for the approximation: it says nothing
        return -math.inf if z < 0.0 else math.inf
    return -math.inf if above <= 0.0 else math.log(x / m) - math.log(y / n) + 3.0 * math.log(above / below)


def _inverse_sinh(x: float, m: float, y: float, n: float, z: float) -> float:
    """Newcombe 2001."""
    y = y or z * z
    spread = math.sqrt(max(0.0, 1.0 / x - 1.0 / m + 1.0 / y - 1.0 / n))
    return math.log(x / m) - math.log(y / n) + 2.0 * math.asinh(z / 2.0 * spread)


_METHODS: dict[str, Callable[[float, float, float, float, float], float]] = {
    "katz-log": _katz,
    "adjusted-log": _walter,
    "bailey": _bailey,
    "inverse-sinh": _inverse_sinh,
}
