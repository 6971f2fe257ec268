"""The Gaussian model: error rates as a mu, and a mu as an epsilon at delta.

A bound on mu is model-free (it refutes smaller trade-off curves); reading an epsilon at a small delta off it is not:
that step says that the mechanism's own curve is Gaussian. Nasr et al. 2023, section 5; Dong, Roth & Su 2022,
equation 6 and corollary 1.
"""

from __future__ import annotations

import math


def mu_of(fpr: float, fnr: float) -> float:
    """The least mu whose Gaussian trade-off curve allows error rates as small as these; 0.0 where every one does.

    >>> round(mu_of(0.05, 0.1), 4)
    2.9264
    """
    from scipy.special import ndtri

    if fpr + fnr >= 1.0:
        return 0.0
    if fpr <= 0.0 or fnr <= 0.0:
        return math.inf
    return max(0.0, float(-ndtri(fpr) - ndtri(fnr)))


def delta_of(mu: float, epsilon: float) -> float:
    """delta(epsilon) of mu-GDP (Balle & Wang 2018, theorem 8).

    >>> round(delta_of(1.0, 1.0), 6)
    0.126937
    """
    from scipy.special import log_ndtr

    if mu <= 0.0:
        return 0.0
    first = float(log_ndtr(mu / 2.0 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2.0 - epsilon / mu))
    return max(0.0, math.exp(first) * -math.expm1(min(0.0, second - first)))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The least epsilon at `delta` that mu-GDP implies; infinite at delta = 0.

    >>> round(epsilon_of_mu(1.0, 1e-5), 4)
    4.3772
    """
    if mu <= 0.0 or delta_of(mu, 0.0) <= delta:
        return 0.0
    if delta <= 0.0 or mu == math.inf:
        return math.inf
    low, high = 0.0, 1.0
    while delta_of(mu, high) > delta:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if delta_of(mu, middle) > delta else (low, middle)
    return high
