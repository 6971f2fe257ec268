"""Exact binomial tails and Clopper-Pearson limits, and which way each is rounded.

`scipy.special` only: the incomplete beta function is the binomial tail (Abramowitz & Stegun 26.5.24), and its
inverse the Clopper-Pearson limit (Clopper & Pearson 1934). Each is moved `SLACK` towards safety, more than
the functions' own error.
"""

import math
from collections.abc import Sequence

LEAST = 1e-300  # a tail below this is reported as this: rounded up, never 0
SLACK = 1e-9  # relative; the incomplete beta functions are good to about 1e-12


def lower_limit(hits: int, runs: int, alpha: float) -> float:
    """The one-sided lower Clopper-Pearson limit of a probability at error probability `alpha`.

    >>> round(lower_limit(10, 10, 0.05), 6)  # 0.05 ** (1 / 10)
    0.741134
    """
    from scipy.special import betaincinv

    if hits <= 0 or alpha <= 0.0:
        return 0.0
    return max(0.0, float(betaincinv(hits, runs - hits + 1, alpha)) * (1.0 - SLACK))


def upper_limit(hits: int, runs: int, alpha: float) -> float:
    """The one-sided upper Clopper-Pearson limit of a probability at error probability `alpha`.

    >>> upper_limit(10, 10, 0.05)
    1.0
    """
    from scipy.special import betainccinv

    if hits >= runs or alpha <= 0.0:
        return 1.0
    return min(1.0, float(betainccinv(hits + 1, runs - hits, alpha)) * (1.0 + SLACK))


def joint_limits(
    events: Sequence[tuple[int, int]], runs_p: int, runs_q: int, alpha: float
) -> tuple[tuple[float, float], ...]:
    """The two-interval rule: for the hits (x, y) of each event a lower limit of P and an upper one of Q.

    Each of them has an equal part of `alpha`, so all hold together with probability 1 - alpha at least (Bonferroni).
    `certify.cross_check` has the same rule of one event from statsmodels, and shares no code with this one.
    """
    share = alpha / (2 * len(events))
    return tuple((lower_limit(x, runs_p, share), upper_limit(y, runs_q, share)) for x, y in events)


def upper_tail(hits: int, runs: int, probability: float) -> float:
    """Pr(Bin(runs, probability) >= hits), rounded up.

    >>> round(upper_tail(2, 2, 0.5), 6)
    0.25
    """
    from scipy.special import betainc

    if hits <= 0:
        return 1.0
    if hits > runs:
        return 0.0
    return min(1.0, max(LEAST, float(betainc(hits, runs - hits + 1, probability)) * (1.0 + SLACK)))


def ratio_tail(hits_p: int, hits_q: int, epsilon: float) -> float:
    """Pr(X >= hits_p) of X ~ Bin(hits_p + hits_q, R / (1 + R)) at R = e^epsilon, rounded up.

    Through the small share 1 / (1 + R), which keeps its digits where R / (1 + R) is all but 1.

    >>> round(ratio_tail(2, 0, 0.0), 6)
    0.25
    """
    from scipy.special import betaincc

    if hits_p <= 0:
        return 1.0
    other = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    return min(1.0, max(LEAST, float(betaincc(hits_q + 1, hits_p, other)) * (1.0 + SLACK)))


def quantile(runs: int, probability: float, gamma: float) -> int:
    """The smallest b with Pr(Bin(runs, probability) > b) <= gamma, never below it.

    >>> quantile(100, 0.0, 0.01)
    0
    """
    if probability <= 0.0 or gamma >= 1.0:
        return 0
    low, high = 0, runs  # invariant: the tail beyond `high` is at most gamma
    while low < high:
        middle = (low + high) // 2
        if upper_tail(middle + 1, runs, probability) <= gamma:
            high = middle
        else:
            low = middle + 1
    return high
