"""Events as results store them, read back."""

from __future__ import annotations

from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.events.event import Event
from dpaudit.events.features import (
    Coordinate,
    Difference,
    Equal,
    Extreme,
    Feature,
    FirstOf,
    Ordered,
    Present,
    Sum,
    Whole,
)
from dpaudit.events.scores import Linear, LogRatio
from dpaudit.sampling.outputs import Token


def event_from_dict(written: dict[str, Any]) -> Event:
    """The event of a stored result.

    >>> written = {"feature": {"kind": "coordinate", "path": []}, "intervals": [[9.5, "inf"]], "tokens": []}
    >>> print(event_from_dict(written))
    output > 9.5
    """
    return Event(
        feature=feature_from_dict(written["feature"]),
        intervals=tuple((float(low), float(high)) for low, high in written["intervals"]),
        tokens=tuple(Token(token["label"], token["code"]) for token in written["tokens"]),
    )


def feature_from_dict(written: dict[str, Any]) -> Feature:
    """The feature of a written result; raises `InvalidSpec` for a kind this version does not know."""
    fields = {key: value for key, value in written.items() if key != "kind"}
    for name in ("path", "left", "right"):
        if name in fields:
            fields[name] = tuple(fields[name])
    if "paths" in fields:
        fields["paths"] = tuple(tuple(path) for path in fields["paths"])
    for each in (Coordinate, Ordered, Difference, Sum, Equal, Extreme, Present, FirstOf, Whole):
        if each.kind == written.get("kind"):
            return each(**fields)
    for score in (LogRatio, Linear):
        if score.kind == written.get("kind"):
            return score.from_dict(written)
    raise InvalidSpec(f"the event's feature has the unknown kind {written.get('kind')!r}; a newer dpaudit may know it")
