"""Oracles that share nothing with the code they check: whole numbers, fractions, and decimals of 45 digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

Floats = npt.NDArray[np.float64]

STIRLING = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156)]
PI = Decimal("3.14159265358979323846264338327950288419716939937510")


def tail(hits: int, runs: int, probability: float | Fraction) -> Fraction:
    """Pr(Bin(runs, probability) >= hits), exactly; the probability is the very number the float stands for."""
    share = Fraction(probability)
    top, bottom = share.numerator, share.denominator
    ways = (math.comb(runs, k) * top**k * (bottom - top) ** (runs - k) for k in range(max(0, hits), runs + 1))
    return Fraction(sum(ways), bottom**runs)


def long_tail(hits: int, runs: int, probability: float) -> float:
    """The same where there are too many runs for fractions: Stirling's series and a sum, in 45 digits."""
    with localcontext() as context:
        context.prec = 45
        if hits <= 0:
            return 1.0
        share = Decimal(probability)
        if Decimal(hits) < runs * share:
            return float(1 - _sum(runs - hits + 1, runs, 1 - share))
        return float(_sum(hits, runs, share))


def _sum(hits: int, runs: int, share: Decimal) -> Decimal:
    other = 1 - share
    log = _log_factorial(runs) - _log_factorial(hits) - _log_factorial(runs - hits)
    term = (log + hits * share.ln() + (runs - hits) * other.ln()).exp()
    total = Decimal(0)
    while hits <= runs and term > total * Decimal("1e-22"):
        total += term
        term *= share / other * (runs - hits) / (hits + 1)
        hits += 1
    return total


@lru_cache(maxsize=1 << 14)
def _log_factorial(number: int) -> Decimal:
    if number < 200:
        return Decimal(math.factorial(number)).ln()
    n = Decimal(number)
    series = sum((Decimal(a) / b / n ** (2 * j + 1) for j, (a, b) in enumerate(STIRLING)), Decimal(0))
    return (n + Decimal("0.5")) * n.ln() - n + (2 * PI).ln() / 2 + series


def outcomes(runs: int) -> npt.NDArray[np.intp]:
    """All (hits_p, hits_q) of `runs` runs of the coin-flip design, a row for each."""
    x, y = np.meshgrid(np.arange(runs + 1), np.arange(runs + 1), indexing="ij")
    keep = x + y <= runs
    return np.stack([x[keep], y[keep]], axis=1)


def chances(hits: npt.NDArray[np.intp], runs: int, p: float, q: float) -> Floats:
    """Their probabilities: a run hits on side P with p / 2, on side Q with q / 2."""
    x, y = hits.T
    rest = runs - x - y
    ways = special.gammaln(runs + 1) - special.gammaln(x + 1) - special.gammaln(y + 1) - special.gammaln(rest + 1)
    logs = special.xlogy(x, p / 2.0) + special.xlogy(y, q / 2.0) + special.xlogy(rest, 1.0 - (p + q) / 2.0)
    return np.asarray(np.exp(ways + logs))


def chances_of_sides(runs_p: int, runs_q: int, p: float, q: float) -> Floats:
    """The probabilities of all (hits_p, hits_q) of fixed sides, as a table."""
    return np.outer(
        stats.binom.pmf(np.arange(runs_p + 1), runs_p, p), stats.binom.pmf(np.arange(runs_q + 1), runs_q, q)
    )


def least_epsilon(p: float, q: float, delta: float) -> float:
    """The least epsilon that allows the point (p, q) at this delta: the truth that a bound must cover."""
    return max(0.0, math.log((p - delta) / q)) if p > delta else 0.0


def power(
    refuted: Callable[[int, int], bool], others: Any, most: Callable[[Any], Any], share: float, rare: float = 1e-9
) -> float:
    """Pr(refuted(x, y)) of y from the law `others`, but for its tails, and x from Bin(most(y), share).

    The least x that refutes rises with y, so each is sought from the one before, in steps that double.
    """
    every, least, low = np.arange(max(0, int(others.ppf(rare))), int(others.ppf(1.0 - rare)) + 1), [], 0
    for y in every.tolist():
        end, high, step = int(most(y)) + 1, low, 1
        while high < end and not refuted(high, y):
            low, high, step = high + 1, high + step, 2 * step
        high = min(high, end)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if refuted(middle, y) else (middle + 1, high)
        least.append(low)
    return float(np.sum(others.pmf(every) * stats.binom.sf(np.array(least) - 1, most(every), share)))
