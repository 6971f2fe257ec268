"""What the entries of this room share: parameters, promises, sources, and noise in bulk."""

from __future__ import annotations

from typing import Any

from dpaudit import validate
from dpaudit.catalogue.entry import Parameter
from dpaudit.claims import ApproximateDP

ROOM = "dpaudit.catalogue.additive"

HAGHTALAB, BASSI = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001"
CS208, SARKAR, CHEEMA = "CS 208, notes 002", "Sarkar, notes 003", "Cheema & Huszár, notes 004"
DMNS = "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity in private data analysis"

SENSITIVITY = Parameter(
    "sensitivity", 1.0, "units of the answer", "how far one person moves the answer", validate.positive
)


def approximate(epsilon: float, delta: float, **_: Any) -> ApproximateDP:
    """(epsilon, delta)-DP, for neighbours that the entry states in words."""
    return ApproximateDP(epsilon, delta)
