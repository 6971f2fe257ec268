"""Recorded noise: what replays of one recorded run on a neighbour tell. Leads, which never decide a verdict.

The draws of a mechanism are recorded on the first dataset and played again on the second. What that shows holds if
these draws are its only randomness: it is a field of its own, and enters no bound, no bracket and no verdict.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from dpaudit.base.strict import JsonObject, Written
from dpaudit.base.validate import Bound
from dpaudit.results.display import Displayed

SCHEMA: Final = "dpaudit.recorded/1"
Kind = Literal["shift", "law", "untouched", "reused", "raised"]
Difference = Literal["number", "law", "scale", "shape", "order"]


@dataclass(frozen=True, slots=True)
class NoiseCall(Written):
    """A call that draws noise: its place in the code, and what it drew in the first replay on either dataset.

    `first` and `second` are a law with its parameters and the first values, "" where nothing was drawn there;
    `differs` names what is not the same on both.
    """

    place: str
    call: str
    first: str
    second: str
    differs: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputPart(Written):
    """A part of the output, as an expression such as `output['mean'][0]`, and what came out there on either dataset."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Lead(Written):
    """Something that the claim does not allow, if the recorded draws are the only randomness.

    `kind`: the parts are something of the data plus a draw and what they move by is too much (shift), or the law of
    the draw moves too much (law); no draw touches them and they differ (untouched), or so does what several that share
    a draw have in common (reused); one side alone ends in an exception (raised). `shift` is the largest, in units of
    the scale of the draw at `place`; `loss` that of the pair in the parameter of the claim, `at_most` that where
    outputs are rounded or clipped after the draw.
    """

    kind: Kind
    parts: tuple[str, ...]
    first: str
    second: str
    place: str = ""
    call: str = ""
    law: str = ""
    shift: Bound | None = None
    loss: Bound | None = None
    at_most: bool = False

    @property
    def weight(self) -> float:
        """What orders leads: the loss, infinite where there is none in numbers."""
        return math.inf if self.loss is None else self.loss


@dataclass(frozen=True, slots=True, repr=False)
class NoiseRecord(Displayed, Written):
    """What recorded draws tell of a mechanism on a pair. Its label is `recorded`: it is no bound and no verdict.

    `claim` is in its stored form, or None; `allowed` its parameter at the distance of the pair. `loss` is that of the
    pair in the same parameter (of no claim: epsilon at delta 0), where every part of the output is understood, else
    None. `differs` are parts under equal draws that differ for reasons that prove nothing; `unseen` says what draws
    where nothing is recorded, in words, and then there are no leads. `runs` were made in all. `description` is of the
    mechanism, as results store it, where a door has it.
    """

    mechanism: str
    pair: JsonObject
    claim: JsonObject | None
    seed: int
    runs: int
    draws: tuple[NoiseCall, ...]
    parts: tuple[OutputPart, ...]
    leads: tuple[Lead, ...]
    differs: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    allowed: Bound | None = None
    parameter: str = "epsilon"
    loss: Bound | None = None
    at_most: bool = False
    description: JsonObject = field(default_factory=dict)
    schema: Literal["dpaudit.recorded/1"] = SCHEMA
    label: ClassVar[str] = "recorded"

    @property
    def worst(self) -> Lead | None:
        """The lead of the largest loss; None where there is none."""
        return max(self.leads, key=lambda each: each.weight, default=None)
