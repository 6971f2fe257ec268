"""One method's answer, with the label that says what kind of statement it is and the line that it stands on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpaudit.results.strict_json import by_fields

CERTIFIED, INDEPENDENT, MODEL, BAYESIAN, APPROXIMATE, POINT = LABELS = (
    "certified",
    "given independent canaries",
    "model-based",
    "Bayesian",
    "approximate",
    "point estimate",
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
        """The one of the three `LINES` that it stands on."""
        return self.label if self.label in LINES else ESTIMATE

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

    def __str__(self) -> str:
        said = []
        if self.lower is not None:
            said.append(f"{self.quantity} >= {number_text(self.lower)}")
        if self.upper is not None:
            said.append(f"{self.quantity} <= {number_text(self.upper)}")
        if not said:
            said.append(f"{self.quantity} about {number_text(self.value)}")
        elif self.value is not None:
            said.append(f"estimate {number_text(self.value)}")
        at = "" if self.delta is None else f" at delta {self.delta:g}"
        level = "" if self.confidence is None else f", confidence {self.confidence:g}"
        return f"{self.method:<16} {self.label:<15} {', '.join(said)}{at}{level}"


def number_text(value: float | None) -> str:
    if value is None:
        return "nothing"
    return f"{math.floor(value * 1e4) / 1e4:.4f}" if math.isfinite(value) else "infinity"
