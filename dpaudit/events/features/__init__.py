"""Features: what an event looks at."""

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
    Sum,
    levels_of,
)
from dpaudit.events.features.plain import Coordinate, Shape, Whole
from dpaudit.events.features.product import Product
from dpaudit.events.features.reading import plain_feature
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
