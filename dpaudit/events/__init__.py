"""Sets of outputs, and which runs are in them: the evaluation of a frozen event. `dpaudit.search` finds one."""

from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.events.bits import KINDS as BIT_KINDS
from dpaudit.events.event import Event, HitCounter, Partition, TwoEvents
from dpaudit.events.features import Feature
from dpaudit.events.joint import plain_feature
from dpaudit.events.scores import Linear, LogRatio
from dpaudit.outputs.canonical import Token

__all__ = ["Event", "Feature", "HitCounter", "Partition", "TwoEvents", "event_from_dict", "partition_from_dict"]


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


def partition_from_dict(written: dict[str, Any]) -> Partition:
    """The partition of a stored result.

    >>> bins = [{"intervals": [["-inf", 0.5]], "tokens": []}, {"intervals": [[0.5, "inf"]], "tokens": []}]
    >>> print(partition_from_dict({"feature": {"kind": "coordinate", "path": []}, "bins": bins}))
    2 bins: output <= 0.5 | output > 0.5
    """
    events = tuple(event_from_dict({"feature": written["feature"], **each}) for each in written["bins"])
    return Partition(feature_from_dict(written["feature"]), events)


def feature_from_dict(written: dict[str, Any]) -> Feature:
    """The feature of a written result; raises `InvalidSpec` for a kind this version does not know."""
    if (plain := plain_feature(written)) is not None:
        return plain
    for score in (LogRatio, Linear, *BIT_KINDS):
        if score.kind == written.get("kind"):
            return score.from_dict(written)
    parts = [written[key] for key in ("one", "other")] if written.get("kind") == TwoEvents.kind else []
    if parts and all(each["feature"].get("kind") != TwoEvents.kind for each in parts):  # both parts are single events
        return TwoEvents(*map(event_from_dict, parts))
    raise InvalidSpec(f"the event's feature has the unknown kind {written.get('kind')!r}; a newer dpaudit may know it")
