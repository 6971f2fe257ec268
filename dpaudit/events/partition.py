"""A partition: several disjoint events of one feature, counted together."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.errors import InvalidSpec
from dpaudit.events.event import Event
from dpaudit.events.features import Feature
from dpaudit.sampling.outputs import Outputs, Path, Sample

SHOWN = 6  # bins that the printed form names


@dataclass(frozen=True, slots=True)
class Partition:
    """Disjoint bins of one feature, in order of falling ratio p/q: the first ones together make the events certified.

    Outputs in none of the bins count as rest, with the last bin. Raises `InvalidSpec` where bins overlap.

    >>> from dpaudit.events.features import Coordinate
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

    def index(self, outputs: Outputs) -> npt.NDArray[np.intp]:
        """The bin of each run, -1 where it is in none."""
        column = self.feature.column(outputs)
        found = np.full(outputs.runs, -1, np.intp)
        for place, each in enumerate(self.bins):
            found[each.among(column)] = place
        return found

    def to_dict(self) -> dict[str, Any]:
        """The partition as results store it."""
        bins = [{key: value for key, value in each.to_dict().items() if key != "feature"} for each in self.bins]
        return {"feature": self.feature.to_dict(), "bins": bins}

    def __str__(self) -> str:
        more = len(self.bins) - SHOWN
        names = " | ".join(str(each) for each in self.bins[:SHOWN]) + (f" | and {more} more" if more > 0 else "")
        return f"{len(self.bins)} bin{'s' if len(self.bins) > 1 else ''}: {names}"


@dataclass(frozen=True, slots=True)
class BinCounter:
    """The reducer that certifies a partition: for each side the runs of every bin, then all runs of that side.

    So of k bins 2 (k + 1) integers, those of the first side before those of the second.
    """

    partition: Partition

    @property
    def wanted(self) -> frozenset[Path] | None:
        return self.partition.wanted

    def __call__(self, first: Sample, second: Sample) -> npt.NDArray[np.int64]:
        return np.concatenate([self._side(sample) for sample in (first, second)])

    def mixed(self, outputs: Outputs, second: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The same of outputs in the order of their runs: the partition is looked at once for both sides."""
        bins = len(self.partition.bins)
        cell = self.partition.index(outputs) + 1 + (bins + 1) * second
        counts = np.bincount(cell, minlength=2 * (bins + 1)).reshape(2, bins + 1)
        return np.column_stack([counts[:, 1:], counts.sum(axis=1)]).ravel().astype(np.int64)

    def _side(self, sample: Sample) -> npt.NDArray[np.int64]:
        cell = self.partition.index(sample.outputs) + 1
        bins = len(self.partition.bins)
        counts = np.bincount(cell, weights=sample.counts, minlength=bins + 1)[1 : bins + 1]
        return np.append(counts, sample.runs).astype(np.int64)

    def split(self, counts: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
        """(counts of the first side, counts of the second, runs of the first, runs of the second)."""
        first, second = counts.reshape(2, len(self.partition.bins) + 1).tolist()
        return tuple(first[:-1]), tuple(second[:-1]), first[-1], second[-1]
