"""A partition: several disjoint events of one feature, counted together."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bytes
from dpaudit.errors import InvalidSpec
from dpaudit.events.event import Event
from dpaudit.events.features.column import Feature
from dpaudit.outputs.canonical import Outputs, Path

SHOWN = 6  # bins that the printed form names


@dataclass(frozen=True, slots=True)
class Partition:
    """Disjoint bins of one feature, in order of falling ratio p/q: the first ones together make the events certified.

    Outputs in none of the bins count as rest, with the last bin. Raises `InvalidSpec` where bins overlap.

    >>> from dpaudit.events.features.plain import Coordinate
    >>> from math import inf
    >>> low, high = (Event(Coordinate(), (each,)) for each in ((-inf, 0.0), (0.0, inf)))
    >>> print(Partition(Coordinate(), (low, high)))
    2 bins: output <= 0 | output > 0
    """

    feature: Feature
    bins: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not self.bins or any(each.feature != self.feature for each in self.bins):
            raise InvalidSpec("a partition needs at least one bin, and all of them on its own feature")
        spans = sorted(span for each in self.bins for span in each.intervals)
        codes = [token.code for each in self.bins for token in each.tokens]
        overlap = any(after[0] < before[1] for before, after in itertools.pairwise(spans))
        if overlap or len(set(codes)) < len(codes):
            raise InvalidSpec("the bins of a partition must not overlap")

    @property
    def wanted(self) -> frozenset[Path] | None:
        """The paths it reads; None for all."""
        return self.feature.wanted

    @property
    def sets(self) -> int:
        """The number of sets that are counted: its bins."""
        return len(self.bins)

    def state(self, outputs: Outputs) -> Bytes:
        """The bin that each run is in, numbered from 1; 0 where it is in none: uint8[runs]."""
        column = self.feature.column(outputs)
        states = np.zeros(outputs.runs, np.uint8)
        for number, part in enumerate(self.bins, start=1):
            states[part.among(column)] = number
        return states

    def to_dict(self) -> dict[str, Any]:
        """The partition as results store it."""
        bins = [{key: value for key, value in each.to_dict().items() if key != "feature"} for each in self.bins]
        return {"feature": self.feature.to_dict(), "bins": bins}

    def __str__(self) -> str:
        more = len(self.bins) - SHOWN
        names = " | ".join(str(each) for each in self.bins[:SHOWN]) + (f" | and {more} more" if more > 0 else "")
        return f"{len(self.bins)} bin{'s' if len(self.bins) > 1 else ''}: {names}"
