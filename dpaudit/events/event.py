"""An event: a set of outputs, given as intervals and tokens of one feature; a partition: several disjoint ones."""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Bytes, Integers, Words
from dpaudit.base.validate import Edge
from dpaudit.errors import InvalidSpec
from dpaudit.events.features import Coordinate, Feature, stored
from dpaudit.outputs.canonical import ABSENT, Column, Outputs, Path, Sample, Token

FEW_TOKENS = 16  # up to this many, comparing one by one is faster than sorting
SHOWN = 6  # intervals, tokens or bins that the printed form names


@dataclass(frozen=True, slots=True)
class Event:
    """The outputs whose feature lies in one of the `intervals` (low, high], or is one of the `tokens`."""

    feature: Feature
    intervals: tuple[tuple[Edge, Edge], ...] = ()
    tokens: tuple[Token, ...] = ()

    @property
    def wanted(self) -> frozenset[Path] | None:
        """The paths the event reads; None for all."""
        return self.feature.wanted

    def contains(self, outputs: Outputs) -> Bools:
        """Which runs are in the event: bool[runs]."""
        return self.among(self._plain(outputs) or self.feature.column(outputs))

    @property
    def sets(self) -> int:
        """The number of sets that are counted: one."""
        return 1

    def state(self, outputs: Outputs) -> Bytes:
        """The set that each run is in: uint8[runs], 1, or 0 for none."""
        return self.contains(outputs).view(np.uint8)

    def among(self, column: Column) -> Bools:
        """Which cells of the feature's column are in the event."""
        inside: Bools | None = None
        for low, high in self.intervals:
            part = _within(column.values, low, high)
            inside = part if inside is None else inside | part
        if self.tokens:
            part = _among(column.tokens, self.tokens)
            inside = part if inside is None else inside | part
        return np.zeros(len(column.values), np.bool_) if inside is None else inside

    def _plain(self, outputs: Outputs) -> Column | None:
        """The doubles themselves where the feature would do no more than round them: thresholds can round for all."""
        if type(self.feature) is not Coordinate or self.feature.centre or self.tokens:
            return None
        column = outputs.column(self.feature.path)
        return column if column.values.dtype == np.float64 else None

    def to_dict(self) -> dict[str, Any]:
        """The event as results store it."""
        return {
            "feature": self.feature.to_dict(),
            "intervals": [[stored(low), stored(high)] for low, high in self.intervals],
            "tokens": [{"label": token.label, "code": token.code} for token in self.tokens],
        }

    def __str__(self) -> str:
        name = str(self.feature)
        if isinstance(self.feature, TwoEvents):
            return name if self.intervals == ((0.5, math.inf),) else f"not ({name})"
        parts = [_spelled(name, low, high) for low, high in self.intervals[:SHOWN]]
        labels = [token.label for token in self.tokens[:SHOWN]]
        if len(labels) == 1:
            missing = "output is a plain number, or no value" if name == "type(output)" else f"there is no {name}"
            parts.append(missing if self.tokens[0] == ABSENT else f"{name} is {labels[0]}")
        elif labels:
            more = len(self.tokens) - len(labels)
            parts.append(f"{name} is one of {', '.join(labels)}" + (f" and {more} more" if more else ""))
        more = len(self.intervals) - SHOWN
        return " or ".join(parts or [f"no {name}"]) + (f" or in {more} more intervals" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class TwoEvents:
    """1 where a run is in both of two events, otherwise 0."""

    one: Event
    other: Event
    kind: ClassVar[str] = "both"

    @property
    def wanted(self) -> frozenset[Path] | None:
        """The paths that the two read; None for all."""
        one, other = self.one.wanted, self.other.wanted
        return None if one is None or other is None else one | other

    def column(self, outputs: Outputs) -> Column:
        """1 or 0 for each run: float32[runs]."""
        return Column((self.one.contains(outputs) & self.other.contains(outputs)).astype(np.float32))

    def to_dict(self) -> dict[str, Any]:
        """The two events as results store them."""
        return {"kind": self.kind, "one": self.one.to_dict(), "other": self.other.to_dict()}

    def __str__(self) -> str:
        return f"{self.one} and {self.other}"


@dataclass(frozen=True, slots=True)
class HitCounter:
    """The reducer of certification: hits and runs of each side, four integers."""

    event: Event

    @property
    def wanted(self) -> frozenset[Path] | None:
        return self.event.wanted

    def __call__(self, first: Sample, second: Sample) -> Integers:
        hits = [sample.hits(self.event.contains(sample.outputs)) for sample in (first, second)]
        return np.array([hits[0], first.runs, hits[1], second.runs], np.int64)

    def mixed(self, outputs: Outputs, second: Bools) -> Integers:
        """The same of outputs in the order of their runs: the event is evaluated once for both sides."""
        inside = self.event.contains(outputs)
        hits, runs = np.count_nonzero(inside & second), np.count_nonzero(second)
        return np.array([np.count_nonzero(inside) - hits, outputs.runs - runs, hits, runs], np.int64)


def _within(values: npt.NDArray[Any], low: float, high: float) -> Bools:
    """Which values, rounded to float32, are in (low, high]; doubles are compared without rounding each of them."""
    end = _last_double if values.dtype == np.float64 else np.float32
    inside: Bools
    if high == math.inf:
        inside = ~np.isnan(values) if low == -math.inf else values > end(low)
    elif low == -math.inf:
        inside = values <= end(high)
    else:
        inside = (values > end(low)) & (values <= end(high))
    return inside


@lru_cache(maxsize=1024)
def _last_double(threshold: float) -> float:
    """The greatest double that rounds to a float32 of at most `threshold`, itself a float32."""
    here = np.float32(threshold)
    if np.isinf(here):
        return float(here)
    with np.errstate(over="ignore"):
        gap = float(np.nextafter(here, np.float32(np.inf))) - float(here)
        if math.isinf(gap):  # at the end of the range: the gap on the other side
            gap = float(here) - float(np.nextafter(here, np.float32(0.0)))
        middle = float(here) + gap / 2.0
        ties_to_here = np.float32(middle) <= here
    return middle if ties_to_here else math.nextafter(middle, -math.inf)


def _among(codes: Words, tokens: tuple[Token, ...]) -> Bools:
    if len(tokens) <= FEW_TOKENS:
        inside: Bools = codes == np.uint64(tokens[0].code)
        for token in tokens[1:]:
            inside |= codes == np.uint64(token.code)
        return inside
    known = np.sort(np.fromiter((token.code for token in tokens), np.uint64, len(tokens)))
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    matches: Bools = known[place] == codes
    return matches


def _spelled(name: str, low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return f"{name} is a number"
    if is_one(low, high):
        return f"{name} == {short(high)}"
    if high == math.inf:
        return f"{name} > {short(low)}"
    if low == -math.inf:
        return f"{name} <= {short(high)}"
    return f"{short(low)} < {name} <= {short(high)}"


def is_one(low: float, high: float) -> bool:
    """Whether (low, high] is one number of single precision, -inf too."""
    return low == high or (low > -math.inf and bool(np.nextafter(np.float32(high), np.float32(low)) == np.float32(low)))


def short(number: float) -> str:
    """An end of an interval in the fewest digits that identify a number of single precision."""
    return f"{np.float32(number)!s}".removesuffix(".0") if abs(number) < 1e16 else f"{number:g}"


@dataclass(frozen=True, slots=True)
class Partition:
    """Disjoint bins of one feature, in order of falling ratio p/q: the first ones together make the events certified.

    Outputs in none of the bins count as rest, with the last bin. Raises `InvalidSpec` where bins overlap.

    >>> low, high = (Event(Coordinate(), (each,)) for each in ((-math.inf, 0.0), (0.0, math.inf)))
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
