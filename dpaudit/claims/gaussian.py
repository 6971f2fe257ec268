"""Gaussian differential privacy: telling the datasets apart is as hard as telling N(0, 1) from N(mu, 1)."""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import exact
from dpaudit.claims.claim import Claim, HalfPlane, Relation, key
from dpaudit.claims.rounding import UNIT, crossing, up

STEEPEST = 700.0  # the largest logarithm of a tangent's slope: e^700 still is a number
CLOSEST = 1e-12  # to 0 or 1: nearer points of a search count as this one
FLOOR = 1e-300  # what underflow may hide
TINY = 1e-290  # of a delta: below it doubles run out


@dataclass(frozen=True, slots=True)
class GaussianDP(Claim):
    """mu-GDP: P(S) <= Phi(PhiInv(Q(S)) + mu) (Dong, Roth & Su 2022, definition 2.6).

    `mu` is at least 0. Raises `InvalidSpec` for NaN, a negative or an infinite value.

    >>> claim = GaussianDP(mu=1.0)
    >>> round(claim.max_probability(0.5), 4)
    0.8413
    >>> round(claim.epsilon_at(1e-5), 4), round(claim.delta_at(1.0), 4)
    (4.3772, 0.1269)
    >>> claim.at_distance(3)
    GaussianDP(mu=3.0, relation=None)
    """

    mu: float = field(metadata=key("Gaussian DP", validate.not_negative, ge=0.0))
    relation: Relation | None = field(default=None)

    example: ClassVar[tuple[Any, ...]] = (1.0,)
    form: ClassVar[str] = "GaussianDP"
    parameter: ClassVar[str] = "mu"

    def max_probability(self, q: float) -> float:
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(validate.probability("q", q)) + self.mu))

    def tangent(self, q: float) -> HalfPlane:
        from scipy.special import ndtri

        z = float(ndtri(validate.probability("q", q)))
        epsilon = min(STEEPEST, max(-STEEPEST, -self.mu * (z + self.mu / 2.0))) if self.mu else 0.0
        return HalfPlane(up(math.exp(epsilon)), profile(self.mu, epsilon))

    def epsilon_at(self, delta: float) -> float:
        return _epsilon_at(self.mu, validate.probability("delta", delta))

    def delta_at(self, epsilon: float) -> float:
        return profile(self.mu, validate.real("epsilon", epsilon))

    def lower(self, epsilon: float, delta: float) -> float:
        return _lower(validate.real("epsilon", epsilon), validate.probability("delta", delta))

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        from scipy.special import ndtri

        with np.errstate(invalid="ignore"):
            difference = np.asarray(ndtri(p)) - np.asarray(ndtri(q))
        return np.where(np.isnan(difference), -np.inf, difference)

    def delta_through(self, q: float, p: float) -> float:
        from scipy.special import ndtri

        q, p = (min(1.0 - CLOSEST, max(CLOSEST, validate.probability("q or p", each))) for each in (q, p))
        q, p = (q, p) if q + p <= 1.0 else (1.0 - p, 1.0 - q)
        low, high = float(ndtri(q)), float(ndtri(p))
        slope = math.exp(min(STEEPEST, (low - high) * (low + high) / 2.0))
        return min(1.0, max(0.0, p - slope * q))

    def of_groups(self, k: int) -> "GaussianDP":
        """Group privacy: k times mu (Dong, Roth & Su 2022, theorem 2.14)."""
        return GaussianDP(k * self.mu, self.relation)

    def promise(self, other: str) -> str:
        return (
            f"from an output, one dataset and {other} are no easier to tell apart than two normal distributions of "
            f"standard deviation 1 whose means are {exact(self.mu)} apart"
        )

    def __str__(self) -> str:
        return f"{self.mu:g}-GDP"


def profile(mu: float, epsilon: float) -> float:
    """delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), rounded up, for any real epsilon.

    Dong, Roth & Su 2022, corollary 2.13 (Balle & Wang 2018, theorem 8). With a, b = epsilon/mu -+ mu/2 it is
    phi(a) (M(a) - M(b)), M the Mills ratio: no product of a huge and a tiny number. What rounding may have cost is
    added: the terms' own errors, and that of a, which moves delta by at most Phi(-b) e^epsilon times mu a unit.

    >>> round(profile(1.0, 0.0), 6)
    0.382925
    """
    from scipy.special import erfcx

    if mu == 0.0 or epsilon == math.inf:
        return _excess(epsilon)
    centre = epsilon / mu
    a, b = centre - mu / 2.0, centre + mu / 2.0
    if a > 38.5 or b < -38.5:  # beyond the smallest double
        return min(1.0, _excess(epsilon) + FLOOR)
    density = math.exp(-a * a / 2.0)
    second = 0.5 * density * float(erfcx(b / math.sqrt(2.0))) if b > -36.0 else math.exp(epsilon)
    first = 0.5 * density * float(erfcx(a / math.sqrt(2.0))) if a > 0.0 else 0.5 * math.erfc(a / math.sqrt(2.0))
    argument = (abs(centre) + mu) * UNIT  # of a and of b
    slack = (first + second) * (8.0 + a * a) * UNIT + 2.0 * density * argument
    return min(1.0, max(0.0, first - second) + slack + FLOOR)


def _excess(epsilon: float) -> float:
    return -math.expm1(epsilon) if epsilon < 0.0 else 0.0


@lru_cache(maxsize=1 << 15)
def _epsilon_at(mu: float, delta: float) -> float:
    """The root of profile(mu, epsilon) = delta, from above."""
    if mu == 0.0 or delta == 1.0 or profile(mu, 0.0) <= delta:
        return 0.0
    if delta <= TINY:
        return math.inf
    low, high = 0.0, mu * (mu / 2.0 + 1.0)
    if high == math.inf:
        return math.inf
    while profile(mu, high) > delta:
        low, high = high, high * 1.5
    target = math.log(delta)
    return crossing(lambda epsilon: math.log(profile(mu, epsilon)) - target, low, high)[1]


@lru_cache(maxsize=1 << 15)
def _lower(epsilon: float, delta: float) -> float:
    """The root of profile(mu, epsilon) = delta in mu, from below."""
    if epsilon <= 0.0 or delta <= TINY:
        return 0.0
    if delta == 1.0 or epsilon == math.inf:
        return math.inf
    low, high = 0.0, 1.0
    while profile(high, epsilon) <= delta:
        low, high = high, high * 1.5
    target = math.log(delta)
    return crossing(lambda mu: target - math.log(max(FLOOR, profile(mu, epsilon))), low, high)[0]
