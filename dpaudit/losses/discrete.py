"""Exact losses of outputs with probabilities that can be listed.

`first` and `second` are the laws in both datasets: float64[outcomes] each, in the same order. Losses are in nats.
"""

import numpy as np

from dpaudit.base.arrays import Bits, Reals


def largest_log_ratio(first: Reals, second: Reals) -> float:
    """The loss of a discrete output: the largest |ln(p / p')| over the outcomes that happen at all.

    >>> round(largest_log_ratio(np.array([0.75, 0.25]), np.array([0.25, 0.75])), 4)
    1.0986
    """
    return float(np.max(np.abs(log_ratios(first, second)), initial=0.0, where=(first > 0.0) | (second > 0.0)))


def log_ratios(first: Reals, second: Reals) -> Reals:
    """ln(p / p') of each outcome; minus infinity where p = 0, whatever p' is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(first > 0.0, np.log(first) - np.log(second), -np.inf)


def delta_of(first: Reals, second: Reals, epsilon: float) -> float:
    """The least delta at an epsilon: the larger sum of max(0, p - e^epsilon p'), of the two orders.

    >>> round(delta_of(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 0.0), 4)
    0.5
    """
    with np.errstate(over="ignore"):  # an infinite ratio takes all but the outcomes that the other side never has
        ratio = np.exp(epsilon)
        taken = [np.multiply(ratio, q, out=np.zeros_like(q), where=q > 0.0) for q in (second, first)]
    return float(max(np.maximum(p - q, 0.0).sum() for p, q in zip((first, second), taken, strict=True)))


def epsilon_of(first: Reals, second: Reals, delta: float) -> float:
    """The least epsilon at a delta, exact: `delta_of` is solved on the piece between two of its kinks.

    >>> round(epsilon_of(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 0.05), 4)
    1.0296
    """
    return max(one_way_epsilon(first, second, delta), one_way_epsilon(second, first, delta), 0.0)


def one_way_epsilon(p: Reals, q: Reals, delta: float) -> float:
    """ln of the largest (P(S) - delta) / Q(S): the outcomes of largest ratio are taken as long as they raise it."""
    order = np.argsort(-log_ratios(p, q))
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    if np.any((hits > delta) & (misses == 0.0)):
        return float(np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(hits > delta, np.log(hits - delta) - np.log(misses), -np.inf), initial=-np.inf))


# --- reports of several bits: the probability of each pattern, in the order of binary numbers ---------------------


def patterns(bits: int) -> Bits:
    """All patterns of this many bits, one a row; the first bit is the highest.

    >>> patterns(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    numbers = np.arange(2**bits)[:, None]
    return np.asarray(numbers >> np.arange(bits)[::-1] & 1, np.int8)


def independent(ones: Reals) -> Reals:
    """The law of independent bits, each 1 with its own probability.

    >>> independent(np.array([0.5, 0.25]))
    array([0.375, 0.125, 0.375, 0.125])
    """
    return np.asarray(np.prod(np.where(patterns(len(ones)) == 1, ones, 1.0 - ones), axis=1))


def one_hot(value: int, values: int) -> Bits:
    """The unary code of a value: a 1 in its place, 0 elsewhere.

    >>> one_hot(1, 3).tolist()
    [0, 1, 0]
    """
    return np.asarray(np.arange(values) == value, np.int8)
