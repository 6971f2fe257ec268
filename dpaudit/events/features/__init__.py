"""Features: what an event looks at."""

from __future__ import annotations

from typing import Any

from dpaudit.events.features.column import Feature, OfPath, OfPaths, rounded, single, spell, stored
from dpaudit.events.features.joint import (
    Above,
    Difference,
    Distinct,
    Equal,
    Extreme,
    FirstOf,
    Ordered,
    Present,
    Product,
    Sum,
    levels_of,
)
from dpaudit.events.features.plain import Coordinate, Shape, Whole
from dpaudit.events.features.residue import Decimals, Residue

__all__ = [
    "Above",
    "Coordinate",
    "Decimals",
    "Difference",
    "Distinct",
    "Equal",
    "Extreme",
    "Feature",
    "FirstOf",
    "OfPath",
    "OfPaths",
    "Ordered",
    "Present",
    "Product",
    "Residue",
    "Shape",
    "Sum",
    "Whole",
    "levels_of",
    "plain_feature",
    "rounded",
    "single",
    "spell",
    "stored",
]


PLAIN = (Coordinate, Shape, Whole, Residue, Decimals)
KINDS = (*PLAIN, Ordered, Above, Difference, Product, Sum, Equal, Extreme, Present, Distinct, FirstOf)


def plain_feature(written: dict[str, Any]) -> Feature | None:
    """The feature of a written result; None for a kind that is none of these.

    >>> print(plain_feature({"kind": "coordinate", "path": [2]}))
    output[2]
    """
    return next((each.from_dict(written) for each in KINDS if each.kind == written.get("kind")), None)
