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
    fields = {key: value for key, value in written.items() if key != "kind"}
    for name in ("path", "left", "right"):
        if name in fields:
            fields[name] = tuple(fields[name])
    if "values" in fields:
        fields["values"] = tuple(float(value) for value in fields["values"])
    for name in ("threshold", "modulus"):
        if name in fields:
            fields[name] = float(fields[name])
    if "centres" in fields:
        fields["centres"] = tuple(float(centre) for centre in fields["centres"])
    if "paths" in fields:
        fields["paths"] = tuple(tuple(path) for path in fields["paths"])
    return next((each(**fields) for each in KINDS if each.kind == written.get("kind")), None)
