"""Features: what an event looks at."""

from typing import Any

from dpaudit.events.features import joint
from dpaudit.events.features.column import Feature
from dpaudit.events.features.plain import Coordinate, Shape, Whole
from dpaudit.events.features.residue import Decimals, Residue

ONE = (Coordinate, Shape, Whole, Residue, Decimals)
SEVERAL = (joint.Ordered, joint.Above, joint.Difference, joint.Product, joint.Sum, joint.Equal)
KINDS = (*ONE, *SEVERAL, joint.Extreme, joint.Present, joint.Distinct, joint.FirstOf)


def plain_feature(written: dict[str, Any]) -> Feature | None:
    """The feature of a written result; None for a kind that is none of these.

    >>> print(plain_feature({"kind": "coordinate", "path": [2]}))
    output[2]
    """
    return next((each.from_dict(written) for each in KINDS if each.kind == written.get("kind")), None)
