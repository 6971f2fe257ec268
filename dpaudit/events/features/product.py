"""The product of two coordinates: what says that they move together, or against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.events.features.column import OfTwo, rounded, spell
from dpaudit.outputs import Column, Outputs


@dataclass(frozen=True, slots=True)
class Product(OfTwo):
    """One coordinate times another, each less a centre."""

    centres: tuple[float, float]
    kind: ClassVar[str] = "product"

    def column(self, outputs: Outputs) -> Column:
        left, right = (outputs.column(path).values.astype(np.float64) for path in (self.left, self.right))
        with np.errstate(invalid="ignore", over="ignore"):
            return rounded(Column((left - self.centres[0]) * (right - self.centres[1])))

    def __str__(self) -> str:
        sides = zip((self.left, self.right), self.centres, strict=True)
        return " * ".join(f"({spell(path)} - {centre:.6g})" if centre else spell(path) for path, centre in sides)
