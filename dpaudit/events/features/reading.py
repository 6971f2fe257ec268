"""Features as results store them, read back."""

from __future__ import annotations

from typing import Any

from dpaudit.events.features.column import Feature
from dpaudit.events.features.joint import (
    Above,
    Difference,
    Distinct,
    Equal,
    Extreme,
    FirstOf,
    Ordered,
    Present,
    Sum,
)
from dpaudit.events.features.plain import Coordinate, Shape, Whole
from dpaudit.events.features.product import Product
from dpaudit.events.features.residue import Decimals, Residue

PLAIN = (Coordinate, Shape, Whole, Residue, Decimals)
KINDS = (*PLAIN, Ordered, Above, Difference, Product, Sum, Equal, Extreme, Present, Distinct, FirstOf)


def plain_feature(written: dict[str, Any]) -> Feature | None:
    """The feature of a written result; None for a kind that is none of these.

    >>> print(plain_feature({"kind": "coordinate", "path": [2]}))
    output[2]
    """
    return next((each.from_dict(written) for each in KINDS if each.kind == written.get("kind")), None)
