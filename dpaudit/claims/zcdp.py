"""Zero-concentrated differential privacy: a bound on the Rényi divergences of all orders at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import exact
from dpaudit.claims import renyi_curve as curve
from dpaudit.claims.claim import Claim, HalfPlane, key
from dpaudit.claims.relation import Relation
from dpaudit.claims.renyi import at_the_edge, boundary, intercept, lower_level, plane
from dpaudit.claims.rounding import down, up

PER_DECADE = 128
ORDERS: tuple[float, ...] = tuple(1.0 + 10.0 ** (i / PER_DECADE) for i in range(-3 * PER_DECADE, 5 * PER_DECADE + 1))
STRIDES = (128, 32, 16, 8, 4, 2, 1)
LEAST, MOST = math.log2(1e-3), math.log2(1e5)  # of log2(order - 1)
STEPS = (2.0, 2.0, 1.0, 0.5, 0.25, 0.12)  # of log2(order - 1), where many points are searched at once


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(Claim):
    """(xi, rho)-zCDP: the Rényi divergence of every order a > 1 is at most xi + rho a (Bun & Steinke 2016, def. 1.1).

    `rho` and `xi` are at least 0; anything else raises `InvalidSpec`. The region is the intersection of the Rényi
    regions on a fixed grid of orders from 1.001 to 100,001, 128 a decade, which holds that of all orders. Its family
    has one xi and any rho.

    >>> claim = ZeroConcentratedDP(rho=0.5)
    >>> round(claim.max_probability(0.1), 4)
    0.4837
    >>> round(claim.epsilon_at(1e-5), 4)
    4.7284
    >>> claim.at_distance(3)
    ZeroConcentratedDP(rho=4.5, xi=0.0, relation=None)
    """

    rho: float = field(metadata=key("zero-concentrated DP", validate.not_negative, ge=0.0))
    xi: float = field(
        default=0.0, metadata=key("zero-concentrated DP, with rho; left out: 0", validate.not_negative, ge=0.0)
    )
    relation: Relation | None = field(default=None)

    example: ClassVar[tuple[Any, ...]] = (0.5,)
    form: ClassVar[str] = "ZeroConcentratedDP"
    parameter: ClassVar[str] = "rho"

    def max_probability(self, q: float) -> float:
        q = validate.probability("q", q)
        return boundary(*self._binding(q), q)

    def tangent(self, q: float) -> HalfPlane:
        q = validate.probability("q", q)
        return plane(*self._binding(q), q)

    def epsilon_at(self, delta: float) -> float:
        return _epsilon_at(self.rho, self.xi, validate.probability("delta", delta))

    def delta_at(self, epsilon: float) -> float:
        return _delta_at(self.rho, self.xi, validate.real("epsilon", epsilon))

    def lower(self, epsilon: float, delta: float) -> float:
        return _lower(self.xi, validate.real("epsilon", epsilon), validate.probability("delta", delta))

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        q, p = curve.mirrored(np.asarray(q, np.float64), np.asarray(p, np.float64))
        return at_the_edge(q, p, _best(self.xi, q, p)[1])

    def delta_through(self, q: float, p: float) -> float:
        point = np.array([validate.probability("q", q)]), np.array([validate.probability("p", p)])
        order = float(_best(self.xi, *curve.mirrored(*point))[0][0])
        return intercept(order, q, p)

    def of_groups(self, k: int) -> "ZeroConcentratedDP":
        """Group privacy: (xi k H_k, rho k^2) with H_k = 1 + 1/2 + ... + 1/k (Bun & Steinke 2016, proposition 1.9).

        For xi above 0 by the same induction on k, from D_a(P, R) <= ka/(ka-1) D_((ka-1)/(k-1))(P, Q) + D_ka(Q, R).
        """
        harmonic = math.fsum(1.0 / i for i in range(1, k + 1))
        return ZeroConcentratedDP(self.rho * k * k, self.xi * k * harmonic, self.relation)

    def orders(self, among: Sequence[float] = (2.0,)) -> tuple[float, ...]:
        return tuple(among)

    def at_divergence(self, order: float, divergence: float) -> float:
        return (divergence - self.xi) / order

    def promise(self, other: str) -> str:
        more = f" plus {exact(self.xi)}" if self.xi else ""
        return (
            f"the Rényi divergence of every order above 1 between the outputs of one dataset and of {other} is at most "
            f"{exact(self.rho)} times the order{more}; those are averages over outputs, of which rare ones may be worse"
        )

    def __str__(self) -> str:
        return f"{self.rho:g}-zCDP" if self.xi == 0.0 else f"({self.xi:g}, {self.rho:g})-zCDP"

    def _binding(self, q: float) -> tuple[float, float]:
        """The order whose region is the smallest at q, and its epsilon."""
        i = _least(lambda i: boundary(ORDERS[i], _level(self.rho, self.xi, i), q), _guess(self.rho, min(q, 1.0 - q)))
        return ORDERS[i], _level(self.rho, self.xi, i)


def _level(rho: float, xi: float, i: int) -> float:
    return up(xi + rho * ORDERS[i])


def _guess(rho: float, delta: float) -> int:
    """The order that is about the best at a delta: that of Gaussian noise."""
    size = math.sqrt(-math.log(max(1e-300, delta)) / max(rho, 1e-300))
    return min(len(ORDERS) - 1, max(0, round(PER_DECADE * (math.log10(max(size, 1e-3)) + 3.0))))


def _least(cost: Callable[[int], float], start: int) -> int:
    """The order with the least cost, by ever smaller steps; any other would be valid too."""
    known: dict[int, float] = {}

    def of(i: int) -> float:
        if i not in known:
            known[i] = cost(i)
        return known[i]

    best = start
    for stride in STRIDES:
        while True:
            near = [i for i in (best - stride, best + stride) if 0 <= i < len(ORDERS)]
            found = min(near, key=of)
            if not of(found) < of(best):
                break
            best = found
    return best


@lru_cache(maxsize=1 << 14)
def _epsilon_at(rho: float, xi: float, delta: float) -> float:
    def cost(i: int) -> float:
        return curve.epsilon_at(ORDERS[i], _level(rho, xi, i), delta)

    return cost(_least(cost, _guess(rho, delta)))


def _delta_at(rho: float, xi: float, epsilon: float) -> float:
    def cost(i: int) -> float:
        return curve.delta_at(ORDERS[i], _level(rho, xi, i), epsilon)

    start = (epsilon + rho) / (2.0 * rho) if rho > 0.0 else 1.0
    return cost(_least(cost, _guess(1.0, math.exp(-min(600.0, max(start - 1.0, 1e-3) ** 2)))))


@lru_cache(maxsize=1 << 14)
def _lower(xi: float, epsilon: float, delta: float) -> float:
    """The largest of the bounds on rho that the orders give."""
    if epsilon <= 0.0 or delta <= 0.0:
        return 0.0
    if delta == 1.0 or epsilon == math.inf:
        return math.inf

    def cost(i: int) -> float:
        return -(lower_level(ORDERS[i], epsilon, delta) - xi) / ORDERS[i]

    tail = -math.log(delta)
    rho = (math.sqrt(tail + epsilon) - math.sqrt(tail)) ** 2
    return max(0.0, down(-cost(_least(cost, _guess(rho, delta)))))


def _best(xi: float, q: Reals, p: Reals) -> tuple[Reals, Reals]:
    """The order at which each point asks for the largest rho, and that rho; for points with p + q <= 1.

    The start is the optimum without the complement's term, ln(p/q) + ln(p) / (a-1) less xi, all by a.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        high, low = np.maximum(q, p), np.minimum(q, p)
        log_u, log_v = np.log(high / low), np.log1p((low - high) / (1.0 - low))
        log_q, log_rest = np.log(low), np.log1p(-low)
        gap, rare = np.where(log_u > xi, log_u - xi, log_u), -np.log(high)
        start = np.log2((rare + np.sqrt(rare * rare + gap * rare)) / gap)
        start = np.clip(np.nan_to_num(start, nan=0.0, posinf=MOST, neginf=LEAST), LEAST, MOST)

        def rho(exponent: Reals) -> Reals:
            less = np.exp2(exponent)
            order = 1.0 + less
            return np.asarray((np.logaddexp(log_q + order * log_u, log_rest + order * log_v) / less - xi) / order)

        best, most = start, rho(start)
        for step in STEPS:
            for other in (np.maximum(best - step, LEAST), np.minimum(best + step, MOST)):
                value = rho(other)
                better = value > most
                best, most = np.where(better, other, best), np.where(better, value, most)
    return 1.0 + np.exp2(best), np.where(p >= q, most, -most)
