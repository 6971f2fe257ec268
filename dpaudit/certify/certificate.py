"""A certified statement: a deterministic function of evidence, claim and confidence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from dpaudit.base.validate import error_probability


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certified statement.

    With probability `confidence`, the pair's true parameter is at least `lower`.
    `lower` is in the unit of the claim's own parameter, `epsilon_lower` an epsilon at `delta` (None where the
    certifier gives none). `p_value` is the smallest error probability at which the claim would be refuted; that of
    the unconditional certifier is one for this confidence, sharp near it and never below a 500th of its error.
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


def divided(confidence: float, parts: float) -> float:
    """The confidence whose error probability is one of so many equal parts.

    >>> divided(0.95, 5)
    0.99
    """
    alpha = 1 - Decimal(repr(float(confidence)))  # in decimals, as it is written
    return confidence if parts == 1 else float(1 - alpha / Decimal(repr(float(parts))))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, each in the place of its own.

    The k-th least of m is multiplied by m - k + 1, and is at least the one before it (Holm 1979).

    >>> holm((0.25, 0.015625, 0.5))
    (0.5, 0.046875, 0.5)
    """
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, (len(p_values) - rank) * p_values[place])
        adjusted[place] = min(1.0, highest)
    return tuple(adjusted)


def plain(number: float | None) -> float | str | None:
    """A float as JSON can hold it."""
    return "inf" if number == math.inf else number
