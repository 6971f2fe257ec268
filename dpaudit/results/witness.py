"""The frozen question put to the fresh runs: which pair, which event, which side is the likelier one."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from dpaudit.base.arrays import Bools
from dpaudit.certify.certificate import plain
from dpaudit.claims.claim import HalfPlane
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, Partition, event_from_dict, partition_from_dict

Side = Literal["first", "second"]


@dataclass(frozen=True, slots=True)
class Witness:
    """What search proposes and certification tests; frozen before the first certifying run.

    `pair` is the index of the pair in the spec, `event` a set of outputs (or, for a Rényi bound, a partition into
    several), `p_side` the dataset that makes it likelier, `score` the selector's uncertified guess of the bound,
    `tangent` the half-plane p <= ratio q + offset that the claim implies and the event is to refute: its offset is
    the delta at which epsilon is certified (None for a partition).
    """

    pair: int
    event: Event | Partition
    p_side: Side
    selector: str
    score: float
    tangent: HalfPlane | None

    @property
    def q_side(self) -> Side:
        """The other dataset."""
        return "second" if self.p_side == "first" else "first"

    def contains(self, outputs: Any) -> Bools:
        """Which outputs are in the event, or in the first bin of a partition: bool[outputs].

        `outputs` is a list with an output for each run, as the mechanism gives it, or the array that it gives for a
        batch. Raises `InvalidSpec` for anything else.

        >>> from tests.golden import example
        >>> example.result().witness.contains([9.4, 9.6])
        array([False,  True])
        """
        if not isinstance(outputs, list | np.ndarray) or getattr(outputs, "shape", None) == ():
            got = type(outputs).__name__
            raise InvalidSpec(
                f"contains takes a list of outputs, or the array of a batch, got {got}; put one in a list"
            )
        event = self.event.bins[0] if isinstance(self.event, Partition) else self.event
        encode = import_module("dpaudit.outputs.encode")  # which stands on results
        if isinstance(outputs, list):
            return event.contains(encode.encode_objects(outputs, event.wanted))
        return event.contains(encode.encode_batch(outputs, len(outputs), event.wanted))

    def to_dict(self) -> dict[str, Any]:
        """The witness as results store it; an infinite ratio is the string "inf"."""
        line = self.tangent
        return {
            "pair": self.pair,
            "event": self.event.to_dict(),
            "event_in_words": str(self.event),
            "p_side": self.p_side,
            "selector": self.selector,
            "score": self.score,
            "tangent": None if line is None else {"ratio": plain(line.ratio), "offset": line.offset},
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "Witness":
        """The witness of a stored result."""
        line = stored["tangent"]
        return cls(
            pair=stored["pair"],
            event=(partition_from_dict if "bins" in stored["event"] else event_from_dict)(stored["event"]),
            p_side=stored["p_side"],
            selector=stored["selector"],
            score=stored["score"],
            tangent=None if line is None else HalfPlane(float(line["ratio"]), line["offset"]),
        )
