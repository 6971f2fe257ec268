"""The point of a half-plane that is nearest in relative entropy, and how fast a bet against it grows.

A bet that the event has the rates (p, q) multiplies its stake fastest against the point (p0, q0) of the region
that minimises kl(p, p0) + kl(q, q0): the reverse information projection (Grünwald, de Heide & Koolen 2024,
theorem 1; for two Bernoulli streams Turner & Grünwald 2023). On a half-plane it is the root of one equation.
"""

import numpy as np

from dpaudit.base.arrays import Reals

STEPS, FEW_STEPS = 20, 8  # of Newton's method, halving where it leaves the bracket: to the last digit, and for scores


def nearest(p: Reals, q: Reals, ratio: Reals, offset: Reals, *, steps: int = STEPS) -> tuple[Reals, Reals]:
    """The points (p0, q0) with p0 <= ratio q0 + offset that minimise kl(p, p0) + kl(q, q0); all arrays broadcast.

    `p`, `q` lie strictly between 0 and 1, `ratio` is above 0 and may be infinite, `offset` is at least 0. A point
    that lies in the half-plane is its own nearest one. The equation is R (p0 - p) / (p0 (1 - p0)) = (q - q0) /
    (q0 (1 - q0)) on the line p0 = R q0 + d; it has one root between q and the end of the line at p.

    >>> p0, q0 = nearest(np.array(0.5), np.array(0.1), np.array(2.0), np.array(0.0))
    >>> round(float(p0), 4), round(float(q0), 4)
    (0.4194, 0.2097)
    """
    p, q, ratio, offset = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (p, q, ratio, offset)))
    inside = ~(p > ratio * q + offset)
    line, start = np.where(inside, 1.0, ratio), np.where(inside, 0.0, offset)
    low, high = np.where(inside, 0.5, q), np.where(inside, 0.5, (p - start) / line)
    spread = p * (1.0 - p) / (q * (1.0 - q))
    q0 = np.clip(q + (p - line * q - start) * line / (line**2 + spread), low, high)  # the nearest by variances
    for _ in range(steps):
        p0 = line * q0 + start
        odds_p, odds_q, past_p, past_q = p0 * (1.0 - p0), q0 * (1.0 - q0), p0 - p, q0 - q
        excess = line * past_p * odds_q + past_q * odds_p
        slope = line**2 * odds_q + line * past_p * (1.0 - 2.0 * q0) + odds_p + line * past_q * (1.0 - 2.0 * p0)
        low, high = np.where(excess < 0.0, q0, low), np.where(excess < 0.0, high, q0)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = q0 - excess / slope
        q0 = np.where((newton >= low) & (newton <= high), newton, np.sqrt(low * high))
    return np.where(inside, p, line * q0 + start), np.where(inside, q, q0)


def entropy(p: Reals, p0: Reals) -> Reals:
    """kl(p, p0), the relative entropy of two coins, for p strictly between 0 and 1.

    >>> round(float(entropy(np.array(0.5), np.array(0.1))), 4)
    0.5108
    """
    with np.errstate(divide="ignore"):
        return np.asarray(p * np.log(p / p0) + (1.0 - p) * np.log((1.0 - p) / (1.0 - p0)))


def growth(p: Reals, q: Reals, ratio: Reals, offset: Reals) -> Reals:
    """What a run adds to the log wealth of the best bet where (p, q) is the truth and each side is half the runs.

    To eight digits, but where rates are below 1e-4: there it may be a little too large.

    >>> round(float(growth(np.array(0.5), np.array(0.1), np.array(2.0), np.array(0.0))), 5)
    0.02805
    """
    p0, q0 = nearest(p, q, ratio, offset, steps=FEW_STEPS)
    return np.asarray((entropy(p, p0) + entropy(q, q0)) / 2.0)
