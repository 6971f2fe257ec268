"""Exact losses of normal noise (Balle & Wang 2018, Improving the Gaussian mechanism)."""

from __future__ import annotations

import math


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta at an epsilon for normal noise and a shift of `mu` standard deviations (theorem 8).

    >>> round(gaussian_delta(0.0, 1.0), 6)  # 2 Phi(1/2) - 1
    0.382925
    """
    from scipy.special import log_ndtr

    if mu == 0.0:
        return 0.0
    kept, lost = log_ndtr(mu / 2.0 - epsilon / mu), epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)
    return float(-math.exp(kept) * math.expm1(min(0.0, lost - kept)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The least epsilon at a delta, by bisection of `gaussian_delta`.

    >>> round(gaussian_epsilon(1e-5, 1.0), 4)
    4.3772
    """
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, mu * (mu / 2.0 + 40.0)  # at the upper end delta is below 1e-300
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
    return high
