"""Exact losses of normal noise (Balle & Wang 2018, Improving the Gaussian mechanism)."""

import math
from collections.abc import Callable
from functools import lru_cache

from dpaudit.claims.rounding import crossing


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta at an epsilon for normal noise and a shift of `mu` standard deviations (theorem 8).

    >>> round(gaussian_delta(0.0, 1.0), 6)  # 2 Phi(1/2) - 1
    0.382925
    """
    from scipy.special import log_ndtr

    if mu == 0.0:
        return 0.0
    gain, loss = log_ndtr(mu / 2.0 - epsilon / mu), epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)
    return float(-math.exp(gain) * math.expm1(min(0.0, loss - gain)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The least epsilon at a delta, by bisection of `gaussian_delta`.

    >>> round(gaussian_epsilon(1e-5, 1.0), 4)
    4.3772
    """
    return least(lambda at: gaussian_delta(at, mu), mu * (mu / 2.0 + 40.0), delta)  # there delta is below 1e-300


def least(delta_at: Callable[[float], float], most: float, delta: float) -> float:
    """The least epsilon in [0, most] at which the falling `delta_at` is at most delta, to the last digits."""
    return crossing(lambda at: delta_at(at) - delta, 0.0, most)[1] if delta_at(0.0) > delta else 0.0


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest shift, in standard deviations, whose delta at `epsilon` is at most `delta`: the analytic calibration.

    >>> round(1.0 / gaussian_mu(1.0, 1e-5), 3)
    3.731
    """
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) <= delta:
        low, high = high, 2.0 * high
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low


def gaussian_mu_of_tail(epsilon: float, delta: float) -> float:
    """The shift at which the privacy loss, N(mu^2 / 2, mu^2), exceeds `epsilon` with probability exactly `delta`.

    That is asking for more than (epsilon, delta)-DP (Balle & Wang 2018, section 2), so the shift is smaller.

    >>> gaussian_mu_of_tail(1.0, 0.01) < gaussian_mu(1.0, 0.01)
    True
    """
    from scipy.special import ndtri

    z = float(ndtri(delta))
    root = math.sqrt(z * z + 2.0 * epsilon)
    return 2.0 * epsilon / (root - z) if z < 0.0 else z + root
