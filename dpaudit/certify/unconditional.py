"""The exact unconditional test of p <= R q + d: x hits of n runs on side P, y of m on side Q.

It holds for numbers of runs per side that were fixed beforehand, and for those that fair coins gave (the proof:
docs/statistics/unconditional.md). Outcomes are ordered by their asymptotic score bound on R, A are
those at or above the outcome seen, and with the Clopper-Pearson interval C of q from y out of m, at error gamma,
    p-value = gamma + sup over q in C of Pr(A | min(1, R q + d), q)                  (Berger & Boos 1994, lemma 1).
gamma is alpha / 500. The supremum is bounded cell by cell, and each probability block by block
(`certify.sums`), always from above: no grid error. The bound is the inversion (Buehler 1957; Lloyd & Kabaila 2003).

The order: with p0 = R q0 + d the constrained maximum likelihood point of the hits, and
V = p0 (1 - p0) / n + R^2 q0 (1 - q0) / m, the score statistic is T = (x / n - R y / m - d) / sqrt(V)
(Koopman 1984 for d = 0; Miettinen & Nurminen 1985 for R = 1). T rises in x, falls in y and falls in R: differentiate
along the constrained maximum. So the sets {T >= z} are nested in R, each holds with a point all points of more x
and of fewer y, and the root in R of T = z puts all outcomes into one order. The edge of such a set needs no search for
the maximum: by the stationarity of the likelihood it is the curve
    x / n = p0 + z p0 (1 - p0) / (n sqrt(V)),    y / m = q0 - z R q0 (1 - q0) / (m sqrt(V)),    q0 rising.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Integers, Reals
from dpaudit.certify.binomial import lower_limit, upper_limit
from dpaudit.certify.certificate import Certificate, EventCertifier
from dpaudit.certify.evidence import CoinFlip, Evidence, FixedSides
from dpaudit.certify.sums import Blocks, ClaimLine, Staircase, rounding, upper_tails, window
from dpaudit.claims.claim import Claim

NUDGE = 1e-9  # relative: regions are taken this much too large, more than the roots are wrong
TINY = 1e-300  # in place of a variance of 0, where p0 = q0 = 1
HAIR = 1e-12  # relative, along the curve
DIRECT, STRIDE = 4000, 64  # more values of x than that are taken in strides
STEPS = 60  # of a safeguarded Newton search; it halves its bracket at the worst


def statistic(x: int, y: int, n: int, m: int, ratio: float, offset: float) -> float:
    """T of one outcome: how many standard deviations x / n lies above R y / m + d, at the constrained maximum.

    >>> round(statistic(30, 10, 100, 100, ratio=1.0, offset=0.0), 4)  # the pooled test of two equal shares
    3.5355
    """
    excess = x / n - ratio * y / m - offset
    if excess == 0.0:
        return 0.0
    q0 = _constrained_maximum(x, y, n, m, ratio, offset)
    p0 = min(1.0, ratio * q0 + offset)
    variance = p0 * (1.0 - p0) / n + ratio * ratio * q0 * (1.0 - q0) / m
    return math.copysign(math.inf, excess) if variance <= 0.0 else excess / math.sqrt(variance)


def _constrained_maximum(x: int, y: int, n: int, m: int, ratio: float, offset: float) -> float:
    """The q0 that makes the hits likeliest while p = R q + d: the root of a falling function."""
    from scipy.optimize import brentq

    def slope(q: float) -> float:
        p = ratio * q + offset
        return (x / p - (n - x) / (1.0 - p)) * ratio + y / q - (m - y) / (1.0 - q)

    top = min(1.0, (1.0 - offset) / ratio)
    low, high = top * 1e-15, top * (1.0 - 1e-15)
    if not ratio * high + offset < 1.0:
        high = top * (1.0 - 1e-12)
    if slope(low) <= 0.0:
        return 0.0 if offset > 0.0 else low
    if not ratio * high + offset < 1.0 or slope(high) >= 0.0:
        return top
    return float(brentq(slope, low, high, xtol=1e-300, rtol=1e-14))


def ratio_bound(x: int, y: int, n: int, m: int, offset: float, z: float) -> float:
    """The R with T = z, rounded down: the asymptotic lower bound of (p - d) / q. 0 where T < z for every R.

    >>> round(ratio_bound(300, 100, 1000, 1000, 0.0, 1.6449), 3)
    2.521
    """
    from scipy.optimize import brentq

    share = x / n - offset
    if share <= 0.0 or (offset > 0.0 and share < z * math.sqrt(offset * (1.0 - offset) / n)):
        return 0.0

    def above(log_ratio: float) -> float:
        return statistic(x, y, n, m, math.exp(log_ratio), offset) - z

    high = math.log(share / ((y + 1.0 + z * z) / m)) + 1.0
    while above(high) >= 0.0:
        high += 2.0
    low = high - 2.0
    while above(low) < 0.0:
        low -= 2.0
        if low < -60.0:
            return 0.0
    root = float(brentq(above, low, high, xtol=1e-13, rtol=1e-13))
    return math.exp(root) * (1.0 - NUDGE)


@dataclass(frozen=True, slots=True)
class Region:
    """All outcomes whose score bound on R is at least `ratio`, and no outcome outside it is left in by more than
    rounding: x hits in `n` runs and at most `limits(x)` in `m`.
    """

    n: int
    m: int
    ratio: float
    offset: float
    z: float

    def limits(self, x: Integers) -> Integers:
        """For rising x the largest y of the region, -1 where there is none; rising too: int64[outcomes] in and out.

        >>> Region(100, 100, 1.0, 0.0, 1.6449).limits(np.array([10, 20, 100])).tolist()
        [4, 11, 97]
        """
        if len(x) <= DIRECT:
            return self._limits(x)
        limits = np.empty(len(x), dtype=np.int64)
        knots = np.append(np.arange(0, len(x) - 1, STRIDE), len(x) - 1)
        limits[knots] = self._limits(x[knots])
        # they rise: where both ends of a stretch agree, all of it does
        same = np.repeat(limits[knots[1:]] == limits[knots[:-1]], np.diff(knots))
        limits[:-1] = np.repeat(limits[knots[:-1]], np.diff(knots))
        limits[:-1][~same] = self._limits(x[:-1][~same])
        return limits

    def _limits(self, x: Integers) -> Integers:
        ratio, z = self.ratio, self.z
        domain = self._domain()
        if domain is None:
            return np.full(len(x), -1, dtype=np.int64)
        low = np.full(len(x), domain[0])
        high = np.full(len(x), domain[1])
        target = np.asarray(x, dtype=float)
        q = (target / self.n - self.offset) / ratio
        q = np.where((q > low) & (q < high * (1.0 - NUDGE)), q, 0.5 * (low + high))
        for _ in range(STEPS):
            hits, slope = self._curve(q)
            miss = hits - target
            low = np.where(miss < 0.0, q, low)
            high = np.where(miss >= 0.0, q, high)
            newton = q - miss / slope
            inside = (newton > low) & (newton < high)
            following = np.where(inside, newton, 0.5 * (low + high))
            if np.all(np.abs(following - q) <= 1e-13 * q):
                break
            q = following
        # a hair further along the curve, more than rounding may hide; else the end of the bracket, never short of it
        further = np.minimum(domain[1], q * (1.0 + HAIR))
        q = np.where(self._curve(further)[0] >= target * (1.0 - 1e-14), further, high)
        root = np.sqrt(self._variance(q))
        y = self.m * q - z * ratio * q * (1.0 - q) / root
        whole = np.floor(y + 1e-7 + 1e-14 * self.m * q).astype(np.int64)
        start = self._curve(np.array([domain[0]]))[0][0]
        return np.where(target >= start - 1e-7 - 1e-14 * target, np.clip(whole, -1, self.m), -1)

    def _variance(self, q: Reals) -> Reals:
        p = self.ratio * q + self.offset
        return np.maximum(p * (1.0 - p) / self.n + self.ratio**2 * q * (1.0 - q) / self.m, TINY)

    def _curve(self, q: Reals) -> tuple[Reals, Reals]:
        """x along the edge, and its derivative by q0."""
        ratio = self.ratio
        p = ratio * q + self.offset
        spread, more = p * (1.0 - p) / self.n, ratio * (1.0 - 2.0 * p) / self.n
        variance = self._variance(q)
        rising = more + ratio**2 * (1.0 - 2.0 * q) / self.m
        root = np.sqrt(variance)
        hits = self.n * (p + self.z * spread / root)
        slope = self.n * (ratio + self.z * (more - 0.5 * spread * rising / variance) / root)
        return hits, slope

    def _domain(self) -> tuple[float, float] | None:
        """The q0 at which the edge has y >= 0: between the roots of a quadratic, V = (z R (1 - q0) / m)^2."""
        ratio, offset, n, m = self.ratio, self.offset, self.n, self.m
        extra = (self.z * ratio / m) ** 2
        two = ratio**2 / n + ratio**2 / m + extra
        one = ratio * (1.0 - 2.0 * offset) / n + ratio**2 / m + 2.0 * extra
        nought = offset * (1.0 - offset) / n - extra
        inner = one * one + 4.0 * two * nought
        if inner < 0.0:
            return None
        root = math.sqrt(inner)
        if one >= 0.0:
            second = (one + root) / (2.0 * two)
            first = -nought / (two * second) if second > 0.0 else 0.0
        else:
            first = (one - root) / (2.0 * two)
            second = -nought / (two * first)
        low = max(first * (1.0 - NUDGE), 1e-15 * min(1.0, (1.0 - offset) / ratio))
        high = min(second * (1.0 + NUDGE), 1.0, (1.0 - offset) / ratio)
        return (low, high) if low < high else None


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
            bounds = self._staircase(line, self.region).probabilities(cells.p, cells.q, self.reach)
            most = float(np.max(bounds * cells.factor))
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
        certificate = super().certify(evidence, claim, confidence, delta)
        assert certificate.epsilon_lower is not None
        # both are valid: the bound and the p-value differ by the slack of their sums, and must not disagree
        agreeing, claimed = max if certificate.refuted else min, claim.epsilon_at(certificate.delta)
        epsilon = agreeing(certificate.epsilon_lower, claimed)
        return replace(certificate, lower=claim.lower(epsilon, certificate.delta), epsilon_lower=epsilon)

    def guess(self, evidence: Any, claim: Claim, delta: float, alpha: float) -> bool:
        """In microseconds: the asymptotic score test."""
        from scipy.special import ndtri

        n, m, epsilon = evidence.runs_p, evidence.runs_q, claim.epsilon_at(delta)
        if n == 0 or m == 0 or epsilon > LARGEST_EPSILON:
            return False
        score = statistic(evidence.hits_p, evidence.hits_q, n, m, math.exp(epsilon), delta)
        return score >= max(LEAST_Z, -float(ndtri(alpha)))


UNCONDITIONAL = UnconditionalCertifier()
