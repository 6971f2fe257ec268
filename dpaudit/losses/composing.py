"""Exact losses of k releases as one transcript, and the bounds of the notes that they are compared with.

The k responses here are the extremal ones: nothing that is (epsilon, delta)-DP k times over has a transcript that tells
more (Kairouz, Oh & Viswanath 2015, The composition theorem for differential privacy, theorem 3.3).
"""

import math

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.losses.discrete import delta_of
from dpaudit.losses.normal import least

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
