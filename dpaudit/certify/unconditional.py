"""The exact unconditional test of p <= R q + d: x hits of n runs on side P, y of m on side Q.

It holds for numbers of runs per side that were fixed beforehand, and for those that fair coins gave (the proof:
docs/statistics/unconditional.md). Outcomes are ordered by their asymptotic score bound on R (`certify.score`), A are
those at or above the outcome seen, and with the Clopper-Pearson interval C of q from y out of m, at error gamma,
    p-value = gamma + sup over q in C of Pr(A | min(1, R q + d), q)                  (Berger & Boos 1994, lemma 1).
gamma is alpha / 500. The supremum is bounded cell by cell (`certify.cells`), and each probability block by block
(`certify.sums`), always from above: no grid error. The bound is the inversion (Buehler 1957; Lloyd & Kabaila 2003).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.certify.binomial import lower_limit, upper_limit
from dpaudit.certify.cells import ClaimLine
from dpaudit.certify.certificate import Certificate
from dpaudit.certify.certifier import EventCertifier
from dpaudit.certify.evidence import CoinFlip, Evidence, FixedSides
from dpaudit.certify.score import Region, ratio_bound, statistic
from dpaudit.certify.sums import Blocks, Staircase, rounding, upper_tails, window
from dpaudit.claims.claim import Claim

METHOD = "exact unconditional test in the order of the score bound (Berger-Boos)"
NUISANCE_SHARE = 0.002  # of the error probability goes to the interval of q
LEAST_Z = 0.5  # the order stays that of a lower bound, at a confidence of any size
FAR = 1e-3  # of gamma: the tail beyond which probabilities are bounded in one piece
PRECISION = 2e-4  # of the distance of the bound from the plain estimate
MOST_STEPS = 60
LARGEST_EPSILON = 700.0  # e to this is still a float


def p_value(evidence: CoinFlip | FixedSides, epsilon: float, delta: float, alpha: float) -> float:
    """The p-value of p <= e^epsilon q + delta in the order of the confidence 1 - alpha, rounded up.

    It is a p-value at every level; `alpha` only says at which of them the test is meant to be sharp.

    >>> round(p_value(FixedSides(900, 100, 1000, 1000), epsilon=2.1, delta=0.0, alpha=0.05), 3)
    0.171
    """
    test = _Test.of(evidence, delta, alpha)
    return 1.0 if test is None else test.p_value(epsilon)


def epsilon_lower(evidence: CoinFlip | FixedSides, delta: float, alpha: float) -> float:
    """The largest epsilon with a p-value of at most `alpha`; 0 where there is none. Rounded down.

    >>> round(epsilon_lower(FixedSides(900, 100, 1000, 1000), delta=0.0, alpha=0.05), 2)
    2.04
    """
    test = _Test.of(evidence, delta, alpha)
    return 0.0 if test is None else test.bound()


@dataclass(frozen=True, slots=True)
class _Test:
    """What the test takes from the evidence: everything but the epsilon."""

    x: int
    y: int
    n: int
    m: int
    delta: float
    alpha: float
    gamma: float
    reach: float
    region: Region | None  # None: no R is as small as the score bound, and A holds all outcomes of x hits or more
    interval: tuple[float, float]  # C

    @classmethod
    def of(cls, evidence: CoinFlip | FixedSides, delta: float, alpha: float) -> "_Test | None":
        """The test; None where no epsilon can be refuted, as the hits of side P are no more than delta explains."""
        from scipy.special import ndtri

        x, y, n, m = evidence.hits_p, evidence.hits_q, evidence.runs_p, evidence.runs_q
        if n == 0 or m == 0 or x / n <= delta:
            return None
        gamma = NUISANCE_SHARE * alpha
        z = max(LEAST_Z, -float(ndtri(alpha)))
        ratio = ratio_bound(x, y, n, m, delta, z)
        region = Region(n, m, ratio, delta, z) if ratio > 0.0 else None
        interval = lower_limit(y, m, gamma / 2.0), upper_limit(y, m, gamma / 2.0)
        return cls(x, y, n, m, delta, alpha, gamma, -float(ndtri(FAR * gamma)), region, interval)

    def p_value(self, epsilon: float) -> float:
        if epsilon > LARGEST_EPSILON:
            return 1.0
        ratio = math.exp(epsilon)
        if self.x / self.n <= ratio * self.y / self.m + self.delta:
            return 1.0
        low, high = self.interval
        line = ClaimLine(ratio, self.delta, low, min(high, (1.0 - self.delta) / ratio), self.n, self.m)
        if self.region is None:
            most = float(upper_tails(self.x, self.n, line.p(np.array([line.high])))[0])
        else:
            cells = line.cells()
            found = self._staircase(line, self.region).probabilities(cells.p, cells.q, self.reach)
            most = float(np.max(found * cells.factor))
        return min(1.0, self.gamma + most * (1.0 + rounding(self.n) + rounding(self.m)))

    def _staircase(self, line: ClaimLine, region: Region) -> Staircase:
        """A as blocks of x, each with the largest y it has anywhere: the y of its last x."""
        first = max(0, math.floor(window(self.n, float(line.p(line.low)), self.reach)[0]))
        last = min(self.n, math.ceil(window(self.n, float(line.p(line.high)), self.reach)[1]))
        x_edges = line.x_edges(first, last)
        limits = region.limits(x_edges[1:] - 1)
        before = int(region.limits(x_edges[:1] - 1)[0]) if first > 0 else -1
        low = max(0, math.floor(window(self.m, line.low, self.reach)[0]))
        high = max(low, min(int(limits[-1]), math.ceil(window(self.m, line.high, self.reach)[1])))
        between = limits[(limits >= low) & (limits <= high)] + 1
        y_edges = np.union1d(line.y_edges(low, high), between)
        return Staircase.of(Blocks.between(x_edges, self.n), y_edges, limits, before, self.m)

    def bound(self) -> float:
        """The root of ln p = ln alpha by regula falsi (Illinois), from the side where p is at most alpha."""
        estimate = math.inf if self.y == 0 else math.log((self.x / self.n - self.delta) / (self.y / self.m))
        if estimate <= 0.0:
            return 0.0
        start = 0.0 if self.region is None else max(0.0, math.log(self.region.ratio))
        gap = max(1e-9, estimate - start) if estimate < math.inf else 1.0

        def excess(epsilon: float) -> float:
            return math.log(self.p_value(epsilon) / self.alpha)

        low = high = start
        below = above = excess(start)
        step = 0.02 * gap
        while below > 0.0 and low > 0.0:
            high, above = low, below
            low = max(0.0, low - step)
            below, step = excess(low), 3.0 * step
        if below > 0.0:
            return 0.0
        while above <= 0.0:
            low, below = high, above
            high += step
            above, step = excess(high), 3.0 * step
        weight_low, weight_high = below, above
        for _ in range(MOST_STEPS):
            if high - low <= PRECISION * gap:
                break
            share = weight_low / (weight_low - weight_high)
            middle = low + (high - low) * min(0.98, max(0.02, share))
            value = excess(middle)
            if value <= 0.0:
                low, weight_low, weight_high = middle, value, 0.5 * weight_high
            else:
                high, weight_high, weight_low = middle, value, 0.5 * weight_low
        return low


def ceiling(runs_p: int, runs_q: int, delta: float, alpha: float) -> float:
    """The bound that all hits of side P and none of side Q give: nothing else stands as high in the order.

    A is that one outcome, and its probability p^n (1 - q)^m on the line is largest at a root in closed form.

    >>> round(ceiling(1000, 1000, 0.0, 0.05), 2)
    5.81
    """
    if runs_p == 0 or runs_q == 0 or delta >= 1.0:
        return 0.0
    level = math.log(alpha * (1.0 - NUISANCE_SHARE))
    widest = upper_limit(0, runs_q, NUISANCE_SHARE * alpha / 2.0)

    def log_most(epsilon: float) -> float:
        ratio = math.exp(epsilon)
        q = (runs_p * ratio - runs_q * delta) / (ratio * (runs_p + runs_q))
        q = max(0.0, min(q, widest, (1.0 - delta) / ratio))
        p = min(1.0, ratio * q + delta)
        return (runs_p * math.log(p) if p > 0.0 else -math.inf) + runs_q * math.log1p(-min(q, 1.0 - 1e-16))

    low, high = 0.0, LARGEST_EPSILON
    if log_most(low) > level:
        return 0.0
    for _ in range(MOST_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if log_most(middle) <= level else (low, middle)
    return low


class UnconditionalCertifier(EventCertifier):
    """The functions above, for the hits of one event; the usual one where no other is."""

    name, method, takes, slow = "unconditional", METHOD, (CoinFlip, FixedSides), True

    epsilon_lower, p_value, ceiling = staticmethod(epsilon_lower), staticmethod(p_value), staticmethod(ceiling)

    def certify(self, evidence: Evidence, claim: Claim, confidence: float, delta: float | None = None) -> Certificate:
        made = super().certify(evidence, claim, confidence, delta)
        assert made.epsilon_lower is not None
        # both are valid: the bound and the p-value differ by the slack of their sums, and must not disagree
        agreeing, claimed = max if made.refuted else min, claim.epsilon_at(made.delta)
        epsilon = agreeing(made.epsilon_lower, claimed)
        return replace(made, lower=claim.lower(epsilon, made.delta), epsilon_lower=epsilon)

    def guess(self, evidence: Any, claim: Claim, delta: float, alpha: float) -> bool:
        """In microseconds: the asymptotic score test."""
        from scipy.special import ndtri

        n, m, epsilon = evidence.runs_p, evidence.runs_q, claim.epsilon_at(delta)
        if n == 0 or m == 0 or epsilon > LARGEST_EPSILON:
            return False
        found = statistic(evidence.hits_p, evidence.hits_q, n, m, math.exp(epsilon), delta)
        return found >= max(LEAST_Z, -float(ndtri(alpha)))


UNCONDITIONAL = UnconditionalCertifier()
