"""The order of outcomes behind the unconditional test: their asymptotic score bound on R of p <= R q + d.

With p0 = R q0 + d the constrained maximum likelihood point of x hits in n runs and y in m, and
V = p0 (1 - p0) / n + R^2 q0 (1 - q0) / m, the score statistic is T = (x / n - R y / m - d) / sqrt(V)
(Koopman 1984 for d = 0; Miettinen & Nurminen 1985 for R = 1). T rises in x, falls in y and falls in R: differentiate
along the constrained maximum. So the sets {T >= z} are nested in R, each holds with a point all points of more x
and of fewer y, and the root in R of T = z puts all outcomes into one order.

The edge of such a set needs no search for the maximum: by the stationarity of the likelihood it is the curve
    x / n = p0 + z p0 (1 - p0) / (n sqrt(V)),    y / m = q0 - z R q0 (1 - q0) / (m sqrt(V)),    q0 rising.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Integers, Reals

NUDGE = 1e-9  # relative: regions are taken this much too large, more than the roots are wrong
TINY = 1e-300  # in place of a variance of 0, where p0 = q0 = 1
HAIR = 1e-12  # relative, along the curve
DIRECT, STRIDE = 4000, 64  # more values of x than that are looked at in strides
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
        found = np.empty(len(x), dtype=np.int64)
        knots = np.append(np.arange(0, len(x) - 1, STRIDE), len(x) - 1)
        found[knots] = self._limits(x[knots])
        # they rise: where both ends of a stretch agree, all of it does
        same = np.repeat(found[knots[1:]] == found[knots[:-1]], np.diff(knots))
        found[:-1] = np.repeat(found[knots[:-1]], np.diff(knots))
        found[:-1][~same] = self._limits(x[:-1][~same])
        return found

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
        found = np.floor(y + 1e-7 + 1e-14 * self.m * q).astype(np.int64)
        start = self._curve(np.array([domain[0]]))[0][0]
        return np.where(target >= start - 1e-7 - 1e-14 * target, np.clip(found, -1, self.m), -1)

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
