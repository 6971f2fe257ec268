"""Pure and approximate differential privacy: one line, and its mirror image."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import exact
from dpaudit.claims.claim import Claim, HalfPlane, Relation, key, times
from dpaudit.claims.rounding import down, ratio, up


class OneLine(Claim):
    """P(S) <= e^epsilon Q(S) + delta: the region is a line and its mirror image."""

    __slots__ = ()

    parameter: ClassVar[str] = "epsilon"
    linear: ClassVar[bool] = True

    @property
    @abstractmethod
    def epsilon(self) -> float: ...

    def max_probability(self, q: float) -> float:
        q, slope = validate.probability("q", q), ratio(self.epsilon)
        rising = self.delta if q == 0.0 else slope * q + self.delta
        # before the two lines cross, for there 1 - q would lose the digits of q
        return rising if q + rising <= 1.0 else max(0.0, min(1.0, 1.0 - (1.0 - q - self.delta) / slope))

    def tangent(self, q: float) -> HalfPlane:
        q, slope = validate.probability("q", q), ratio(self.epsilon)
        # the two lines of the region cross at q = (1 - delta) / (1 + R)
        if q * (1.0 + slope) <= 1.0 - self.delta:
            return HalfPlane(slope, self.delta)
        return HalfPlane(1.0 / slope, 1.0 - (1.0 - self.delta) / slope)

    def epsilon_at(self, delta: float) -> float:
        return line_epsilon_at(self.epsilon, self.delta, validate.probability("delta", delta))

    def delta_at(self, epsilon: float) -> float:
        return line_delta_at(self.epsilon, self.delta, validate.real("epsilon", epsilon))

    def lower(self, epsilon: float, delta: float) -> float:
        epsilon, delta, own = validate.real("epsilon", epsilon), validate.probability("delta", delta), self.delta
        if epsilon <= 0.0 or delta < own:
            return 0.0
        if delta == own or epsilon == math.inf:
            return epsilon
        if delta == 1.0:
            return math.inf
        more = math.log1p((delta - own) / (1.0 - delta) * (1.0 + math.exp(-epsilon)))
        return down(epsilon + down(more, 8))

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        q, p, delta = np.asarray(q, np.float64), np.asarray(p, np.float64), self.delta
        with np.errstate(divide="ignore", invalid="ignore"):
            rising = np.where(p <= delta, -np.inf, np.log(np.maximum(p - delta, 0.0) / q))
            falling = np.where(q + delta >= 1.0, -np.inf, np.log(np.maximum(1.0 - q - delta, 0.0) / (1.0 - p)))
        return np.maximum(rising, falling)

    def delta_through(self, q: float, p: float) -> float:
        return self.delta


@dataclass(frozen=True, slots=True)
class PureDP(OneLine):
    """Pure differential privacy: P(S) <= e^epsilon Q(S) (Dwork, McSherry, Nissim & Smith 2006, definition 1).

    `epsilon` is at least 0. Raises `InvalidSpec` for NaN, a negative or an infinite value.

    >>> claim = PureDP(epsilon=1.0)
    >>> round(claim.max_probability(0.1), 4)
    0.2718
    >>> claim.at_distance(3)
    PureDP(epsilon=3.0, relation=None)
    """

    epsilon: float = field(metadata=key("at least 0", validate.not_negative, ge=0.0))
    relation: Relation | None = field(default=None)

    example: ClassVar[tuple[Any, ...]] = (1.0,)
    form: ClassVar[str] = "PureDP"
    pure: ClassVar[bool] = True

    def of_groups(self, k: int) -> "PureDP":
        """Group privacy: k times epsilon (Dwork & Roth 2014, theorem 2.2)."""
        return PureDP(k * self.epsilon, self.relation)

    def promise(self, other: str) -> str:
        often = f"at most {times(self.epsilon)}" if self.epsilon > 0.0 else "exactly"
        return f"whatever comes out is {often} as probable with one dataset as with {other}"

    def __str__(self) -> str:
        return f"{self.epsilon:g}-DP"


@dataclass(frozen=True, slots=True)
class ApproximateDP(OneLine):
    """Approximate differential privacy: P(S) <= e^epsilon Q(S) + delta (Dwork et al. 2006b, definition 2).

    `epsilon` is at least 0, `delta` in [0, 1]. Raises `InvalidSpec` for anything else. Its family has one delta and
    any epsilon.

    >>> ApproximateDP(epsilon=1.0, delta=0.01).max_probability(0.0)
    0.01
    >>> ApproximateDP(epsilon=0.0, delta=0.01).at_distance(3).delta
    0.03
    >>> claim = ApproximateDP(epsilon=1.0, delta=0.01)
    >>> claim.epsilon_at(0.01), claim.epsilon_at(0.001), round(claim.epsilon_at(0.1), 3)
    (1.0, inf, 0.867)
    """

    epsilon: float = field(metadata=key("at least 0", validate.not_negative, ge=0.0))
    delta: float = field(metadata=key("in [0, 1]", validate.probability, ge=0.0, le=1.0))
    relation: Relation | None = field(default=None)

    example: ClassVar[tuple[Any, ...]] = (1.0, 0.01)
    form: ClassVar[str] = "ApproximateDP"

    def of_groups(self, k: int) -> "ApproximateDP":
        """Group privacy (Vadhan 2017, lemma 2.2): (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1))."""
        growth = float(k) if self.epsilon == 0 else _growth(self.epsilon, k)
        return ApproximateDP(k * self.epsilon, min(1.0, self.delta * growth if self.delta else 0.0), self.relation)

    def promise(self, other: str) -> str:
        often = f"{times(self.epsilon)} " if self.epsilon > 0.0 else ""
        return (
            f"the probability of any set of outputs with one dataset is at most {often}that with {other}, "
            f"plus {exact(self.delta)}"
        )

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP"


def _growth(epsilon: float, k: int) -> float:
    try:
        return math.expm1(k * epsilon) / math.expm1(epsilon)
    except OverflowError:
        return math.inf


def line_epsilon_at(epsilon: float, own: float, delta: float) -> float:
    """The line through (0, delta) and the corner ((1 - own) / (1 + R), (own + R) / (1 + R)) of the region."""
    if delta == own:
        return epsilon
    if delta < own:
        return math.inf
    if delta == 1.0:
        return 0.0
    fall = down((1.0 + math.exp(-epsilon)) * (delta - own) / (1.0 - own), 8)
    if fall >= 1.0:
        return 0.0
    less = math.log1p(-fall)
    return max(0.0, epsilon + less + 4e-16 * (epsilon - less))


def line_delta_at(epsilon: float, own: float, at: float) -> float:
    if at >= epsilon:
        return own
    rest = (1.0 - own) * -math.expm1(at - epsilon) / (1.0 + math.exp(-epsilon))
    return min(1.0, up(own + rest, 8))
