"""Exact losses of k releases as one transcript, and the bounds of the notes that they are compared with.

The k responses here are the extremal ones: nothing that is (epsilon, delta)-DP k times over has a transcript that tells
more (Kairouz, Oh & Viswanath 2015, The composition theorem for differential privacy, theorem 3.3).

Of a few steps each may depend on what was seen before. Given the past, such a step is normal noise of standard
deviation 1 around 0, and with the record, at some rate, around a shift; rate and shift are functions of the past. The
last step has a closed form, the steps before it are a sum over a grid: the trapezoid rule, which for such integrands
gains digits exponentially with the nodes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.losses.distribution import delta_of, least

_NODES = 20  # of Gauss-Legendre, for each unit cell of the sum of uniforms: exact to rounding for k up to 30 or so


def advanced(k: int, epsilon: float, slack: float) -> float:
    """The epsilon of advanced composition with the term k epsilon (e^epsilon - 1) (Dwork, Rothblum & Vadhan 2010).

    >>> round(advanced(10_000, 1 / 800, math.exp(-32)), 4)
    1.0156
    """
    return epsilon * math.sqrt(2.0 * k * math.log(1.0 / slack)) + k * epsilon * math.expm1(epsilon)


def advanced_sharper(k: int, epsilon: float, slack: float) -> float:
    """The epsilon of advanced composition with the term k epsilon^2 / 2 (Bun & Steinke 2016, by way of zCDP).

    >>> round(advanced_sharper(10_000, 1 / 800, math.exp(-32)), 4)
    1.0078
    """
    return epsilon * math.sqrt(2.0 * k * math.log(1.0 / slack)) + k * epsilon**2 / 2.0


def responses(k: int, epsilon: float, delta: float = 0.0) -> tuple[Reals, Reals]:
    """The transcripts of k (epsilon, delta) responses to 1 and to 0, those of equal ratio taken together.

    The first two are those in which a response gave the bit away, 1 and 0; the others have 0, ..., k ones.

    >>> [side.round(4).tolist() for side in responses(2, math.log(3.0))]
    [[0.0, 0.0, 0.0625, 0.375, 0.5625], [0.0, 0.0, 0.5625, 0.375, 0.0625]]
    """
    ones = np.arange(k + 1)
    logs = np.log(np.arange(1.0, k + 1.0))
    choices = np.concatenate([[0.0], np.cumsum(logs[::-1] - logs)])  # ln of the binomial coefficients
    hidden = k * math.log1p(-delta)
    given_away = -math.expm1(hidden)
    one = np.exp(hidden + choices + ones * epsilon - k * np.logaddexp(0.0, epsilon))
    return np.concatenate([[given_away, 0.0], one]), np.concatenate([[0.0, given_away], one[::-1]])


def responses_delta(k: int, epsilon: float, at: float) -> float:
    """The least delta at the epsilon `at` of k epsilon-DP responses: the optimal composition.

    >>> round(responses_delta(2, math.log(3.0), math.log(3.0)), 4)
    0.375
    """
    return 0.0 if at >= k * epsilon else delta_of(*responses(k, epsilon), at)


def responses_epsilon(k: int, epsilon: float, delta: float) -> float:
    """The least epsilon at a delta of k epsilon-DP responses, by bisection.

    >>> round(responses_epsilon(10_000, 1 / 800, math.exp(-32)), 4)
    0.8916
    """
    return least(lambda at: responses_delta(k, epsilon, at), k * epsilon, delta)


def laplace_delta(k: int, epsilon: float, at: float) -> float:
    """The least delta at the epsilon `at` of k counts with noise Lap(1 / epsilon) that all move by 1.

    With s the loss of a transcript and x = (s / epsilon + k) / 2, each count adds to x an atom at 0 or at 1, or a
    tilted uniform between; so the law of x is a sum of cardinal B-splines, which are polynomials on unit cells.

    >>> round(laplace_delta(1, 1.0, 0.5), 6), round(1 - math.exp(-0.25), 6)
    (0.221199, 0.221199)
    """
    if at >= k * epsilon:
        return 0.0
    atoms = np.array([math.comb(k, j) * math.exp(-epsilon * (k - j)) for j in range(k + 1)]) / 2.0**k
    total = float(atoms @ _hinge(np.arange(k + 1.0), k, epsilon, at))
    start = max(0.0, (at / epsilon + k) / 2.0)  # below it nothing counts
    first = min(int(start), k - 1)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    for low, cells in ((start - first, slice(first, first + 1)), (0.0, slice(first + 1, k))):
        within = low + (1.0 - low) * (nodes + 1.0) / 2.0
        x = np.arange(k)[cells, None] + within
        density = _spread(k, epsilon, within)[cells] * np.exp(-epsilon * (k - x)) / 2.0**k
        total += float(((1.0 - low) / 2.0 * weights * density * _hinge(x, k, epsilon, at)).sum())
    return total


def laplace_epsilon(k: int, epsilon: float, delta: float) -> float:
    """The least epsilon at a delta of k counts with noise Lap(1 / epsilon) that all move by 1, by bisection.

    >>> round(laplace_epsilon(1, 1.0, 0.221199), 4)
    0.5
    """
    return least(lambda at: laplace_delta(k, epsilon, at), k * epsilon, delta)


def _hinge(x: Reals, k: int, epsilon: float, at: float) -> Reals:
    """max(0, 1 - e^(at - s)) at the loss s that belongs to x."""
    return -np.expm1(np.minimum(0.0, at - epsilon * (2.0 * x - k)))


def _spread(k: int, epsilon: float, within: Reals) -> Reals:
    """The density of x less its factor 2^-k e^(-epsilon (k - x)), at a place within each unit cell (cell, place)."""
    total = np.zeros((k, len(within)))
    spline = np.ones((1, len(within)))  # of degree 0: one uniform
    for smooth in range(1, k + 1):
        if smooth > 1:
            x = np.arange(smooth)[:, None] + within
            padded = np.vstack([np.zeros_like(within), spline, np.zeros_like(within)])
            spline = (x * padded[1:] + (smooth - x) * padded[:-1]) / (smooth - 1)
        for j in range(k - smooth + 1):
            ways = math.comb(k, smooth) * math.comb(k - smooth, j)
            total[j : j + smooth] += ways * epsilon**smooth * spline
    return total


Law = Callable[[list[Reals]], tuple[Reals, Reals]]

SPACING, FINE = 0.45, 0.08  # of the grid, in deviations of the noise; the step before the last one meets a corner
REACH = 6.5  # deviations beyond the outermost centre: 1e-10 is left out
FAINT = 1e-13  # of all probability: pasts rarer than that, with the record and without it, are left out
SMALLEST = 1e-9  # of a shift, so that dividing by it is harmless


@dataclass(frozen=True, slots=True)
class Past:
    """All that may be seen before the last step: log ratios, probabilities without the record, and the law to come."""

    log_ratio: Reals
    chance: Reals
    rate: Reals
    shift: Reals


def pasts(steps: int, law: Law, largest: float) -> Past:
    """The grid of pasts. `law(seen)` gives rate and shift of the next step from the outputs so far, 0 to `largest`."""
    axes = [np.arange(-REACH, REACH + largest, width) for width in [SPACING] * (steps - 2) + [FINE] * (steps > 1)]
    seen = [column.ravel() for column in np.meshgrid(*axes)]
    volume = math.prod(float(axis[1] - axis[0]) / math.sqrt(2.0 * math.pi) for axis in axes)
    log_ratio, log_chance = np.zeros(()), np.asarray(math.log(volume))
    for place, output in enumerate(seen):
        rate, shift = law(seen[:place])
        log_ratio = log_ratio + np.log1p(rate * np.expm1(output * shift - shift**2 / 2.0))
        log_chance = log_chance - output**2 / 2.0
    likely = np.exp(log_chance) * (1.0 + np.exp(log_ratio)) > FAINT / log_chance.size
    columns = np.broadcast_arrays(log_ratio, np.exp(log_chance), *law(seen))
    ratio, chance, rate, shift = (column[likely] for column in columns)
    return Past(ratio, chance, rate, np.maximum(shift, SMALLEST))


def transcript_delta(epsilon: float, past: Past) -> float:
    """The least delta at an epsilon: the larger of the two orders."""
    from scipy.special import ndtr

    def threshold(level: Reals) -> Reals:
        """Where the ratio of the last step reaches a level; minus infinity where it is never below."""
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.log((level - 1.0 + past.rate) / past.rate) / past.shift + past.shift / 2.0
        return np.where(level > 1.0 - past.rate, root, -np.inf)

    with np.errstate(over="ignore"):
        level = np.exp(np.minimum(epsilon - past.log_ratio, 700.0))
        place = threshold(level)
        joined = (1.0 - past.rate) * ndtr(-place) + past.rate * ndtr(past.shift - place)
        forth = past.chance * np.exp(past.log_ratio) @ np.maximum(joined - level * ndtr(-place), 0.0)
        level = np.exp(np.minimum(epsilon + past.log_ratio, 700.0))
        place = threshold(1.0 / level)
        joined = (1.0 - past.rate) * ndtr(place) + past.rate * ndtr(place - past.shift)
        back = past.chance @ np.maximum(ndtr(place) - level * joined, 0.0)
    return float(max(forth, back))


def transcript_epsilon(delta: float, steps: int, law: Law, largest: float) -> float:
    """The least epsilon at a delta of `steps` steps, all of them seen, the larger of the two orders.

    >>> always = lambda seen: (np.array(1.0), np.array(0.5))  # normal noise, mu = 0.5 in each of 3 steps
    >>> round(transcript_epsilon(0.01, 3, always, 0.5), 4)
    1.9114
    """
    from scipy.optimize import brentq

    past = pasts(steps, law, largest)
    if transcript_delta(0.0, past) <= delta:
        return 0.0
    high = 1.0
    while transcript_delta(high, past) > delta:
        high *= 2.0
    return float(brentq(lambda epsilon: transcript_delta(epsilon, past) - delta, 0.0, high, xtol=1e-10))
