"""Rényi differential privacy at one order."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import exact
from dpaudit.claims import renyi_curve as curve
from dpaudit.claims.claim import Claim, HalfPlane, key
from dpaudit.claims.lines import Lines, iterated
from dpaudit.claims.profile import THINNED, PrivacyProfile
from dpaudit.claims.relation import Relation
from dpaudit.claims.rounding import ratio, up
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
    found = [(end.epsilon, end.delta)]
    for delta in np.geomspace(min(RAREST, end.delta), end.delta, LINES).tolist()[:-1]:
        at = curve.epsilon_at(order, epsilon, delta)
        if at < curve.MOST:
            found.append((at, delta))
    return Lines.of(found)
