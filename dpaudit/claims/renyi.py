"""Rényi differential privacy at one order, and zero-concentrated: a bound on the divergences of all orders at once."""

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
from dpaudit.claims.claim import Claim, HalfPlane, Relation, key
from dpaudit.claims.profile import THINNED, Lines, PrivacyProfile, iterated
from dpaudit.claims.rounding import down, ratio, up
from dpaudit.errors import InvalidSpec

CLOSEST = 1e-12  # to 0 or 1: nearer points of a search count as this one
LINES = 800  # tangents that stand for the arc where it is iterated
RAREST = 1e-15  # the least delta of them


def order_above_one(name: str, value: object) -> float:
    """An order of a Rényi divergence: finite and above 1."""
    order = validate.real(name, value)
    if order == math.inf:
        raise InvalidSpec(f"{name} must be finite, got inf; a claim of infinite order is PureDP")
    if not order > 1.0:
        raise InvalidSpec(f"{name} must be above 1, got {value!r}")
    return order


@dataclass(frozen=True, slots=True)
class RenyiDP(Claim):
    """(order, epsilon)-RDP: the Rényi divergences of that order, both ways, are at most epsilon (Mironov 2017, def. 4).

    For an event this is p^a q^(1-a) + (1-p)^a (1-q)^(1-a) <= e^((a-1) epsilon) with a the order, and the same with p
    and q exchanged. `order` is finite and above 1, `epsilon` at least 0; anything else raises `InvalidSpec`.

    >>> claim = RenyiDP(order=2.0, epsilon=0.5)
    >>> round(claim.max_probability(0.1), 4)
    0.3416
    >>> round(claim.epsilon_at(1e-3), 4), round(claim.lower(5.0948, 1e-3), 4)
    (5.0948, 0.5)
    """

    order: float = field(metadata=key("Rényi DP, with epsilon; above 1", order_above_one, gt=1.0))
    epsilon: float = field(metadata=key("at least 0", validate.not_negative, ge=0.0))
    relation: Relation | None = field(default=None)

    example: ClassVar[tuple[Any, ...]] = (2.0, 0.5)
    form: ClassVar[str] = "RenyiDP"
    parameter: ClassVar[str] = "epsilon"

    def max_probability(self, q: float) -> float:
        return boundary(self.order, self.epsilon, validate.probability("q", q))

    def tangent(self, q: float) -> HalfPlane:
        return plane(self.order, self.epsilon, validate.probability("q", q))

    def epsilon_at(self, delta: float) -> float:
        return curve.epsilon_at(self.order, self.epsilon, validate.probability("delta", delta))

    def delta_at(self, epsilon: float) -> float:
        return curve.delta_at(self.order, self.epsilon, validate.real("epsilon", epsilon))

    def lower(self, epsilon: float, delta: float) -> float:
        return lower_level(self.order, validate.real("epsilon", epsilon), validate.probability("delta", delta))

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        q, p = curve.mirrored(np.asarray(q, np.float64), np.asarray(p, np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.where(p >= q, curve.divergence(self.order, q, p), -curve.divergence(self.order, p, q))
        return at_the_edge(q, p, level)

    def delta_through(self, q: float, p: float) -> float:
        return intercept(self.order, validate.probability("q", q), validate.probability("p", p))

    def of_groups(self, k: int) -> PrivacyProfile:
        """Group privacy: G iterated `k` times (Dong, Roth & Su 2022, theorem 2.14), as a profile."""
        return PrivacyProfile(iterated(outer_lines(self.order, self.epsilon), k, THINNED).lines, self.relation)

    def orders(self, among: Sequence[float] = (2.0,)) -> tuple[float, ...]:
        return (self.order,)

    def at_divergence(self, order: float, divergence: float) -> float:
        return divergence

    @property
    def where(self) -> str:
        return f" at order {exact(self.order)}"

    @property
    def short(self) -> str:
        return f"epsilon {exact(self.epsilon)}{self.where}"

    def promise(self, other: str) -> str:
        return (
            f"the Rényi divergence of order {exact(self.order)} between the outputs of one dataset and of {other} is "
            f"at most {exact(self.epsilon)}; that is an average over outputs, of which rare ones may be worse"
        )

    def __str__(self) -> str:
        return f"({self.order:g}, {self.epsilon:g})-RDP"


def boundary(order: float, epsilon: float, q: float) -> float:
    """G(q)."""
    if epsilon == 0.0 or q == 0.0:
        return q
    tangent, image = curve.touching(order, epsilon, q)
    if tangent is None or tangent.epsilon > curve.LARGEST:
        return 1.0
    if image:  # the value of the line, not of the point: they differ where doubles do not reach the point
        return max(q, 1.0 - (1.0 - q - tangent.delta) * math.exp(-tangent.epsilon))
    return min(1.0, max(q, math.exp(tangent.epsilon) * q + tangent.delta))


def plane(order: float, epsilon: float, q: float) -> HalfPlane:
    """The tangent at q."""
    if epsilon == 0.0:
        return HalfPlane(1.0, 0.0)
    tangent, image = curve.touching(order, epsilon, q)
    if tangent is None or tangent.epsilon > curve.LARGEST:
        return HalfPlane(math.inf, 0.0)
    if not image:
        return HalfPlane(up(ratio(tangent.epsilon)), tangent.delta)
    less = math.exp(-tangent.epsilon)
    return HalfPlane(up(less), 1.0 - (1.0 - tangent.delta) * less * (1.0 - 1e-15) + 1e-16)


def lower_level(order: float, epsilon: float, delta: float) -> float:
    """The least epsilon of this order whose region reaches the line of slope e^`epsilon` through (0, delta)."""
    if epsilon <= 0.0 or delta <= 0.0:
        return 0.0
    if delta == 1.0 or epsilon == math.inf:
        return math.inf
    return curve.least_level(order, min(epsilon, curve.MOST), delta)


def intercept(order: float, q: float, p: float) -> float:
    """Where the level curve's tangent at a point, or at its mirror image, meets q = 0."""
    q, p = (min(1.0 - CLOSEST, max(CLOSEST, each)) for each in (q, p))
    q, p = (q, p) if p + q <= 1.0 else (1.0 - p, 1.0 - q)
    if p <= q:
        return 0.0
    slope = math.exp(min(curve.MOST, curve.log_slope(order, math.log(p / q), math.log1p((q - p) / (1.0 - q)))))
    return min(1.0, max(0.0, p - slope * q))


def at_the_edge(q: Reals, p: Reals, level: Reals) -> Reals:
    """The level, completed where p or q is 0: nothing is lost at p = 0, everything at q = 0 below p."""
    level = np.where(p == q, 0.0, level)
    return np.where((q <= 0.0) & (p > 0.0), np.inf, np.where((p <= 0.0) & (q > 0.0), -np.inf, level))


def outer_lines(order: float, epsilon: float) -> Lines:
    """Tangents of the arc, dense in the logarithm of delta; together they hold the region."""
    end = curve.corner(order, epsilon)
    if epsilon == 0.0 or end is None:
        return Lines.of([(0.0, 0.0 if epsilon == 0.0 else 1.0)])
    tangents = [(end.epsilon, end.delta)]
    for delta in np.geomspace(min(RAREST, end.delta), end.delta, LINES).tolist()[:-1]:
        at = curve.epsilon_at(order, epsilon, delta)
        if at < curve.MOST:
            tangents.append((at, delta))
    return Lines.of(tangents)


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
    """The order with the least cost, by smaller and smaller steps; any other would be valid too."""
    known: dict[int, float] = {}

    def of(i: int) -> float:
        if i not in known:
            known[i] = cost(i)
        return known[i]

    best = start
    for stride in STRIDES:
        while True:
            near = [i for i in (best - stride, best + stride) if 0 <= i < len(ORDERS)]
            candidate = min(near, key=of)
            if not of(candidate) < of(best):
                break
            best = candidate
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
