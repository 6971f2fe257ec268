"""A certified statement: a deterministic function of evidence, claim and confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Certificate:
    """With probability `confidence`, the pair's true parameter is at least `lower`.

    `lower` is in the unit of the claim's own parameter, `epsilon_lower` an epsilon at `delta` (None where the
    form has none). `p_value` is the smallest error probability at which the claim would be refuted.
    """

    lower: float
    epsilon_lower: float | None
    p_value: float
    delta: float
    confidence: float
    method: str

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at this confidence."""
        return self.p_value <= error_probability(self.confidence)

    def to_dict(self) -> dict[str, object]:
        """The certificate as results store it; infinity is the string "inf"."""
        return {
            "lower": plain(self.lower),
            "epsilon_lower": plain(self.epsilon_lower),
            "p_value": self.p_value,
            "delta": self.delta,
            "confidence": self.confidence,
            "method": self.method,
        }


def error_probability(confidence: float) -> float:
    """alpha = 1 - confidence in decimals, as it is written, without the binary noise of the subtraction.

    >>> error_probability(0.999)
    0.001
    """
    return float(1 - Decimal(repr(float(confidence))))


def plain(number: float | None) -> float | str | None:
    """A float as JSON can hold it."""
    return "inf" if number == math.inf else number
