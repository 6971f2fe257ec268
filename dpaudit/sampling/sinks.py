"""Where the outputs of a shard go: counted, reduced, or kept as they are; wherever that is done, to the same bits."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.arrays import Bools, Bytes, Integers, Places
from dpaudit.outputs import Outputs, Pilot, Sample, concatenate
from dpaudit.sampling.pieces import Piece
from dpaudit.sampling.streams import Shard
from dpaudit.sampling.watch import Reducer, ShardCounter, Watch, reduced

NOTHING = Outputs(0, {})


class _Sided:
    sides: Bools

    def called(self, start: int, runs: int, side: int) -> None:
        """One call of a batched mechanism, whose outputs come by `fill`."""
        self.sides[start : start + runs] = bool(side)


class Adding(_Sided):
    """Adds up the counts of any reducer."""

    tallies = True

    def __init__(self, reducer: Reducer, space: Bytes) -> None:
        self.reducer, self.wanted, self.sides = reducer, reducer.wanted, space.view(np.bool_)
        self._total: Integers | None = None

    def fill(self, start: int, outputs: Outputs, numbers: Places | None = None) -> None:
        runs = outputs.runs if numbers is None else len(numbers)
        self._add(reduced(self.reducer, outputs, numbers, self.sides[start : start + runs]))

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        both = (NOTHING, outputs) if side else (outputs, NOTHING)
        self._add(self.reducer(*map(Sample, both)))

    def _add(self, found: Integers) -> None:
        self._total = found if self._total is None else self._total + found

    def result(self, start: int = 0, stop: int | None = None) -> Integers:
        assert self._total is not None
        return self._total


class Keeping(_Sided):
    """Keeps the outputs of each side, in the order of the runs."""

    wanted, tallies = None, False

    def __init__(self, space: Bytes) -> None:
        self.sides = space.view(np.bool_)
        self._parts: tuple[list[Outputs], list[Outputs]] = [], []

    def fill(self, start: int, outputs: Outputs, numbers: Places | None = None) -> None:
        here = self.sides[start : start + outputs.runs]
        for part, rows in zip(self._parts, (~here, here), strict=True):
            part.append(outputs.take(rows))

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        self.called(start, outputs.runs, side)
        self._parts[side].append(outputs)

    def result(self, start: int = 0, stop: int | None = None) -> Pilot:
        first, second = (concatenate(part or [NOTHING]) for part in self._parts)
        return Pilot(first, second, self.sides.copy(), (len(self.sides),))


def begun(shard: Shard, reducer: Reducer | None, space: Bytes) -> Adding | Keeping | ShardCounter:
    """What takes the outputs of a shard for a reducer, or for a pilot; `space` is memory of two bytes a run."""
    if isinstance(reducer, Watch):
        return reducer.begin(shard, space)
    return Keeping(space[: shard.runs]) if reducer is None else Adding(reducer, space[: shard.runs])


def added(
    sink: Adding | Keeping | ShardCounter, reducer: Reducer | None, part: Piece | None, so_far: Piece | None
) -> Integers | Pilot | Piece:
    """What a shard came to, with the counts of the parts before this one, or the shard so far."""
    if part is None or (reducer is None and so_far is None):
        return sink.result()
    if reducer is None:
        return so_far  # type: ignore[return-value]
    counts: Any = sink.result(part.done, part.stop)
    counts = counts if part.counts is None else counts + part.counts
    return counts if so_far is None else replace(so_far, counts=counts)
