"""One method's answer, with the label that says what kind of statement it is and the line that it stands on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpaudit.base.strict import by_fields

CERTIFIED, INDEPENDENT, MODEL, BAYESIAN, APPROXIMATE, POINT, COMPOSED = LABELS = (
    "certified",
    "given independent canaries",
    "model-based",
    "Bayesian",
    "approximate",
    "point estimate",
    "composed from certified steps",
)
ESTIMATE = "estimate"
LINES = (CERTIFIED, INDEPENDENT, ESTIMATE)  # never mixed; only the first may decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One method's answer about one quantity ("epsilon", "auroc", ...).

    `label` says what kind of statement it is (one of `LABELS`), `assumption` what it rests on, in words. `value` is
    the plain estimate, `lower` and `upper` the ends of the interval at `confidence`; None where the method has none.
    `p_value` is that of the claim: the least error probability at which this method refutes it (certified ones only).
    """

    method: str
    label: str
    quantity: str
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    delta: float | None = None
    confidence: float | None = None
    p_value: float | None = None
    assumption: str
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The one of the three `LINES` that it stands on, or below; a figure without a bound is an estimate."""
        if self.label == COMPOSED:
            return CERTIFIED
        return ESTIMATE if self.label not in LINES or self.lower is None is self.upper else self.label

    @property
    def epsilon_lower(self) -> float | None:
        """The lower end, where the quantity is epsilon."""
        return self.lower if self.quantity == "epsilon" else None

    @property
    def epsilon_upper(self) -> float | None:
        """The upper end, where the quantity is epsilon: of what this attack shows, never of the mechanism's own."""
        return self.upper if self.quantity == "epsilon" else None

    def to_dict(self) -> dict[str, object]:
        """The estimate as plain values; infinity is the string "inf"."""
        return by_fields(self)


def number_text(value: float | None) -> str:
    """A lower bound or an estimate with four decimals, rounded down.

    >>> number_text(1.23456), number_text(0.0), number_text(None)
    ('1.2345', '0', 'nothing')
    """
    if value is None or not math.isfinite(value):
        return "nothing" if value is None else "infinity"
    return f"{math.floor(value * 1e4) / 1e4:.4f}" if value else "0"
