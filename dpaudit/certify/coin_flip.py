"""The certifier of the coin-flip design: one exact Clopper-Pearson limit at the full error probability.

Each of N runs takes its side by a fair coin, x and y hits on side P and Q. Given x + y = t, x is Bin(t, p / (p + q)),
and under p <= R q that probability is at most R / (1 + R): one limit of x out of t bounds epsilon by its logit. With
delta, the hits of P split into a part of rate at most R q and a part of at most b hits, b the 1 - gamma quantile of
Bin(N, delta / 2): x - b against y is that test, at alpha - gamma, gamma = alpha / 10 (docs/statistics/coin-flip.md).
"""

from __future__ import annotations

import math
from typing import Any

from dpaudit.certify.binomial import SLACK, quantile, ratio_tail, upper_limit, upper_tail
from dpaudit.certify.certificate import EventCertifier
from dpaudit.certify.evidence import CoinFlip
from dpaudit.claims.claim import Claim

METHOD = "coin-flip, one exact Clopper-Pearson limit"
DELTA_SHARE = 0.1  # of the error probability goes to the quantile of the delta part


def epsilon_lower(evidence: CoinFlip, delta: float, alpha: float) -> float:
    """The largest epsilon that the evidence refutes at error probability `alpha`; 0 where there is none.

    >>> round(epsilon_lower(CoinFlip(100, 0, 100, 100), delta=0.0, alpha=0.05), 4)  # ln(r / (1 - r)), r = 0.05^(1/100)
    3.493
    """
    spared, level = _spared(evidence.runs, delta, alpha)
    hits = evidence.hits_p - spared
    if hits <= 0:
        return 0.0
    other = upper_limit(evidence.hits_q, hits + evidence.hits_q, level)  # of the share that side Q has of the hits
    if not 0.0 < other < 0.5:  # 0: the error probability is 1 but for rounding
        return 0.0
    bound = math.log1p(-other) - math.log(other)
    step = SLACK * max(1.0, bound)
    while bound > 0.0 and ratio_tail(hits, evidence.hits_q, bound) > level:  # the inverse is not trusted, its check is
        bound, step = bound - step, 2.0 * step
    return max(0.0, bound)


def p_value(evidence: CoinFlip, epsilon: float, delta: float) -> float:
    """The smallest error probability at which p <= e^epsilon q + delta is refuted, rounded up.

    With delta the split of alpha is part of the rule, so the value is the least alpha whose own rule rejects.

    >>> p_value(CoinFlip(900, 100, 1000, 1000), epsilon=1.0, delta=0.0) < 1e-30
    True
    """
    if epsilon == math.inf:
        return 1.0
    if delta == 0.0:
        return ratio_tail(evidence.hits_p, evidence.hits_q, epsilon)

    def needed(spared: int) -> tuple[float, float]:
        """The alpha at which the rule spares this many hits or fewer, and the one at which the rest rejects."""
        tail = upper_tail(spared + 1, evidence.runs, delta / 2.0)
        rest = ratio_tail(evidence.hits_p - spared, evidence.hits_q, epsilon)
        return tail / DELTA_SHARE, rest / (1.0 - DELTA_SHARE)

    low, high = 0, evidence.hits_p  # the first alpha falls with `spared`, the second rises: bisect their crossing
    while low < high:
        middle = (low + high) // 2
        tail, rest = needed(middle)
        low, high = (low, middle) if tail <= rest else (middle + 1, high)
    return min(1.0, *(max(needed(spared)) for spared in (low, max(0, low - 1))))


def _spared(runs: int, delta: float, alpha: float) -> tuple[int, float]:
    """How many hits of P the delta part may explain, and the error probability left for the ratio."""
    if delta == 0.0:
        return 0, alpha
    return quantile(runs, delta / 2.0, DELTA_SHARE * alpha), (1.0 - DELTA_SHARE) * alpha


class CoinFlipCertifier(EventCertifier):
    """The two functions above, for evidence of coins; the usual one where a claim has no delta."""

    name, method, takes, coins = "coin-flip", METHOD, (CoinFlip,), True
    epsilon_lower = staticmethod(epsilon_lower)

    def suits(self, claim: Claim, stopping: str) -> bool:
        return claim.pure

    def p_value(self, evidence: CoinFlip, epsilon: float, delta: float, alpha: float) -> float:
        return p_value(evidence, epsilon, delta)

    def ceiling(self, runs_p: int, runs_q: int, delta: float, alpha: float) -> float:
        return epsilon_lower(CoinFlip(runs_p, 0, runs_p, runs_q), delta, alpha)

    def refutes(self, evidence: Any, claim: Claim, delta: float, alpha: float) -> bool:
        return evidence.hits_p > evidence.hits_q and super().refutes(evidence, claim, delta, alpha)
