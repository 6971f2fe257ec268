"""What the two forms that are given as lines have in common: every answer is their region's."""

from __future__ import annotations

from typing import ClassVar

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.claims.claim import Claim
from dpaudit.claims.lines import Lines
from dpaudit.claims.region import HalfPlane


class OfLines(Claim):
    """A claim whose region is the intersection of lines; its parameter is the epsilon at a delta."""

    __slots__ = ()
    _region: Lines

    parameter: ClassVar[str] = "epsilon"

    @property
    def region(self) -> Lines:
        """The lines that bound the region."""
        return self._region

    @property
    def delta(self) -> float:
        return self._region.delta[0]

    @property
    def value(self) -> None:
        return None

    def max_probability(self, q: float) -> float:
        return self._region.max_probability(validate.probability("q", q))

    def tangent(self, q: float) -> HalfPlane:
        return self._region.plane(validate.probability("q", q))

    def epsilon_at(self, delta: float) -> float:
        return self._region.epsilon_at(validate.probability("delta", delta))

    def delta_at(self, epsilon: float) -> float:
        return self._region.delta_at(validate.real("epsilon", epsilon))

    def lower(self, epsilon: float, delta: float) -> float:
        validate.probability("delta", delta)
        return max(0.0, validate.real("epsilon", epsilon))

    def promised(self, delta: float) -> float:
        return self.epsilon_at(delta)

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        return self._region.shift(q, p)

    def delta_through(self, q: float, p: float) -> float:
        return self._region.delta_through(validate.probability("q", q), validate.probability("p", p))
