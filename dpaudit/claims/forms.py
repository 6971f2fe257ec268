"""Claim forms: frozen values, each a region p <= G(q). A new form is one class with these members."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from dpaudit import validate
from dpaudit.claims.region import HalfPlane
from dpaudit.claims.relation import Relation


class Claim(Protocol):
    """A promise about every adjacent pair: P(S) <= G(Q(S)) for every set S of outputs, in both orders."""

    form: ClassVar[str]
    parameter: ClassVar[str]

    @property
    def relation(self) -> Relation | None:
        """The relation the promise is stated for; None: none stated, none checked."""

    @property
    def delta(self) -> float:
        """The additive part of the promise; 0 where the form has none."""

    def max_probability(self, q: float) -> float:
        """G(q): the largest P(S) that the claim allows where Q(S) = q."""

    def tangent(self, q: float) -> HalfPlane:
        """A half-plane that contains the region and touches it at Q(S) = q."""

    def at_distance(self, distance: int) -> Claim:
        """What the claim implies for datasets `distance` steps apart."""

    def to_dict(self) -> dict[str, object]:
        """The claim as plain values, as specs and results store it."""


@dataclass(frozen=True, slots=True)
class PureDP:
    """Pure differential privacy: P(S) <= e^epsilon Q(S) (Dwork, McSherry, Nissim & Smith 2006, definition 1).

    `epsilon` is at least 0. Raises `InvalidSpec` for NaN, a negative or an infinite value.

    >>> claim = PureDP(epsilon=1.0)
    >>> round(claim.max_probability(0.1), 4)
    0.2718
    >>> claim.at_distance(3)
    PureDP(epsilon=3.0, relation=None)
    """

    epsilon: float
    relation: Relation | None = field(default=None)

    form: ClassVar[str] = "PureDP"
    parameter: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.not_negative("epsilon", self.epsilon))
        object.__setattr__(self, "relation", Relation.of(self.relation))

    @property
    def delta(self) -> float:
        return 0.0

    def max_probability(self, q: float) -> float:
        return _max_probability(self.epsilon, 0.0, validate.probability("q", q))

    def tangent(self, q: float) -> HalfPlane:
        return _tangent(self.epsilon, 0.0, validate.probability("q", q))

    def at_distance(self, distance: int) -> PureDP:
        return PureDP(validate.whole("distance", distance, least=1) * self.epsilon, self.relation)

    def to_dict(self) -> dict[str, object]:
        return {"form": self.form, "epsilon": self.epsilon, "relation": _word(self.relation)}

    def __str__(self) -> str:
        return f"{self.epsilon:g}-DP"


@dataclass(frozen=True, slots=True)
class ApproximateDP:
    """Approximate differential privacy: P(S) <= e^epsilon Q(S) + delta (Dwork et al. 2006b, definition 2).

    `epsilon` is at least 0, `delta` in [0, 1]. Raises `InvalidSpec` for anything else.

    >>> ApproximateDP(epsilon=1.0, delta=0.01).max_probability(0.0)
    0.01
    >>> ApproximateDP(epsilon=0.0, delta=0.01).at_distance(3).delta
    0.03
    """

    epsilon: float
    delta: float
    relation: Relation | None = field(default=None)

    form: ClassVar[str] = "ApproximateDP"
    parameter: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.not_negative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", validate.probability("delta", self.delta))
        object.__setattr__(self, "relation", Relation.of(self.relation))

    def max_probability(self, q: float) -> float:
        return _max_probability(self.epsilon, self.delta, validate.probability("q", q))

    def tangent(self, q: float) -> HalfPlane:
        return _tangent(self.epsilon, self.delta, validate.probability("q", q))

    def at_distance(self, distance: int) -> ApproximateDP:
        """Group privacy (Vadhan 2017, lemma 2.2): (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1))."""
        k = validate.whole("distance", distance, least=1)
        growth = float(k) if self.epsilon == 0 else _growth(self.epsilon, k)
        return ApproximateDP(k * self.epsilon, min(1.0, self.delta * growth), self.relation)

    def to_dict(self) -> dict[str, object]:
        return {"form": self.form, "epsilon": self.epsilon, "delta": self.delta, "relation": _word(self.relation)}

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP"


def _growth(epsilon: float, k: int) -> float:
    try:
        return math.expm1(k * epsilon) / math.expm1(epsilon)
    except OverflowError:
        return math.inf


def _ratio(epsilon: float) -> float:
    # exp overflows past 709; an infinite ratio still is a (vacuous) half-plane
    return math.exp(epsilon) if epsilon < 709.0 else math.inf


def _max_probability(epsilon: float, delta: float, q: float) -> float:
    ratio = _ratio(epsilon)
    rising = delta if q == 0.0 else ratio * q + delta
    return max(0.0, min(1.0, rising, 1.0 - (1.0 - q - delta) / ratio))


def _tangent(epsilon: float, delta: float, q: float) -> HalfPlane:
    ratio = _ratio(epsilon)
    # the two lines of the region cross at q = (1 - delta) / (1 + R)
    if q * (1.0 + ratio) <= 1.0 - delta:
        return HalfPlane(ratio, delta)
    return HalfPlane(1.0 / ratio, 1.0 - (1.0 - delta) / ratio)


def _word(relation: Relation | None) -> str | None:
    return None if relation is None else relation.value
