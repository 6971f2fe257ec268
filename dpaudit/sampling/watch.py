"""Counting: the hits and runs of each side, and beside them the integers that tell whether runs depend.

States and sides of a shard are held until it is done, then reduced at once.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpaudit.arrays import Bools, Bytes, Integers, Places
from dpaudit.outputs import Outputs, Sample
from dpaudit.sampling.matrix import Wanted
from dpaudit.sampling.order import (
    CALLS,
    ORDER,
    PRINTED,
    PRINTED_SHARDS,
    WATCHED_IN_CALLS,
    Looked,
    packed,
    unpacked,
    words,
)
from dpaudit.sampling.streams import Shard


class Reducer(Protocol):
    """Turns the outputs of both sides into integers; picklable, and all that leaves a certifying worker."""

    @property
    def wanted(self) -> Wanted:
        """The paths it will look at; None for all."""

    def __call__(self, first: Sample, second: Sample) -> Integers:
        """The counts, of a shape that does not depend on the outputs."""

    def mixed(self, outputs: Outputs, second: Bools) -> Integers:
        """The same counts of outputs that stand in the order of the runs, `second` telling their sides."""


class Sets(Protocol):
    """What is counted: disjoint sets of outputs, one of an event, several of a partition."""

    @property
    def wanted(self) -> Wanted:
        """The paths it reads; None for all."""

    @property
    def sets(self) -> int:
        """How many there are, at most 255."""

    def state(self, outputs: Outputs) -> Bytes:
        """The set that each run is in, numbered from 1; 0 for none."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A reducer: hits and runs of each side, of `main` and of each of `extra`, and what tells dependent runs.

    It counts exactly what a plain counter would. `also` is another reducer that sees the same outputs; `rest` gives
    its counts.
    """

    main: Sets
    extra: tuple[Sets, ...] = ()
    also: Reducer | None = None

    @property
    def wanted(self) -> Wanted:
        """The paths that any of the sets reads, or `also`; None for all."""
        each = [member.wanted for member in (self.main, *self.extra, *(() if self.also is None else (self.also,)))]
        return None if any(wanted is None for wanted in each) else frozenset().union(*each)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of sets of `main` and of each of `extra`: 1 for an event, the number of bins of a partition."""
        return tuple(member.sets for member in (self.main, *self.extra))

    def begin(self, shard: Shard, space: Bytes) -> "ShardCounter":
        """What takes the outputs of one shard; `space` is memory of two bytes a run for as long as it does."""
        return ShardCounter(self, shard.runs, space, printed=shard.index < PRINTED_SHARDS)

    def __call__(self, first: Sample, second: Sample) -> Integers:
        """The counts of outputs whose order is not known: hits and runs alone."""
        look = ShardCounter(self, 0, np.empty(0, np.uint8))
        for side, sample in enumerate((first, second)):
            for part, size in enumerate(self.sizes):
                state = self._member(part).state(sample.outputs)
                hits = np.bincount(state, weights=sample.counts, minlength=size + 1)
                look.hits[part][side] += hits.astype(np.int64)
        if self.also is not None:
            look.also = self.also(first, second)
        nothing = packed(look.states, look.sides, look.words)
        return _joined([first.runs, second.runs], look.hits, nothing, look.also)

    def mixed(self, outputs: Outputs, second: Bools) -> Integers:
        """The counts of outputs that stand in the order of their runs, as one shard."""
        look = ShardCounter(self, outputs.runs, np.empty(2 * outputs.runs, np.uint8))
        look.sides[:] = second
        look.fill(0, outputs)
        return look.result()

    def hits(self, counts: Integers, part: int = 0) -> Integers:
        """Hits of each set of a part (0 is `main`, then `extra`) from added counts: int64[2 sides, sets]."""
        start = 2 + 2 * sum(self.sizes[:part])
        return counts[..., start : start + 2 * self.sizes[part]].reshape(*counts.shape[:-1], 2, self.sizes[part])

    def plain(self, counts: Integers, part: int = 0) -> Integers:
        """Hits and runs of an event as a hit counter orders them: first hits, first runs, second hits, second runs."""
        hits = self.hits(counts, part)[..., 0]
        return np.stack([hits[..., 0], counts[..., 0], hits[..., 1], counts[..., 1]], axis=-1)

    def rest(self, counts: Integers) -> Integers:
        """The counts of `also`, from added counts."""
        return counts[..., self._order + ORDER :]

    def read(self, table: dict[Shard, Integers]) -> Looked:
        """What the counts of several shards tell of the order of their runs."""
        rows = np.array(list(table.values()))
        return unpacked(rows[:, self._order : self._order + ORDER], self.wanted)

    @property
    def _order(self) -> int:
        return 2 + 2 * sum(self.sizes)

    def _member(self, part: int) -> Sets:
        return (self.main, *self.extra)[part]


class ShardCounter:
    """The states and sides of a shard while it runs; `fill` takes them in any order, `result` reduces them."""

    tallies = True

    def __init__(self, watch: Watch, runs: int, space: Bytes, *, printed: bool = True) -> None:
        self.watch, self.wanted = watch, watch.wanted
        self.states = space[:runs]
        self.sides = space[runs : 2 * runs].view(np.bool_)
        self.calls: list[tuple[int, int]] = []  # start and runs of the first calls of a batched mechanism
        self.batched = False
        self.hits = [np.zeros((2, size + 1), np.int64) for size in watch.sizes]
        self.words = np.zeros(min(runs, PRINTED) if printed else 0, np.uint64)
        self.also: Integers | None = None

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        """One call of a batched mechanism: runs of one side."""
        self.called(start, outputs.runs, side)
        self.fill(start, outputs)

    def called(self, start: int, runs: int, side: int) -> None:
        """The same, with outputs that come by `fill`."""
        self.batched = True
        self.sides[start : start + runs] = bool(side)
        if len(self.calls) < CALLS and runs:
            self.calls.append((start, runs))

    def fill(self, start: int, outputs: Outputs, numbers: Places | None = None) -> None:
        """Runs from `start` on; with `numbers`, each run's output is the one of that number."""
        runs = outputs.runs if numbers is None else len(numbers)
        if runs == 0:
            return
        here = slice(start, start + runs)
        for part in range(len(self.hits)):
            state = self.watch._member(part).state(outputs)
            state = state if numbers is None else state[numbers]
            if part == 0:
                self.states[here] = state
            else:
                self.hits[part] += _by_side(state, self.sides[here], self.hits[part].shape[1])
        if self.watch.also is not None:
            seen = reduced(self.watch.also, outputs, numbers, self.sides[here])
            self.also = seen if self.also is None else self.also + seen
        if start < len(self.words):
            count = min(runs, len(self.words) - start)
            looked = count if numbers is None else outputs.runs
            found = words(outputs, looked, self.wanted)
            found = found if numbers is None else found[numbers[:count]]
            self.words[start : start + count] = found

    def result(self, start: int = 0, stop: int | None = None) -> Integers:
        """All integers of the shard, or of the runs of it that were filled in, from a multiple of 4 on."""
        size, stop = self.watch.sizes[0], len(self.sides) if stop is None else stop
        self.hits[0] += _by_side(self.states[start:stop], self.sides[start:stop], size + 1)
        second = int(np.count_nonzero(self.sides[start:stop]))
        inside = self.states if size == 1 else (self.states > size // 2).view(np.uint8)
        watched = WATCHED_IN_CALLS if self.batched else None
        order = packed(inside, self.sides, self.words, self.calls, watched, (start, stop))
        return _joined([stop - start - second, second], self.hits, order, self.also)


def _joined(runs: list[int], hits: list[Integers], order: Integers, also: Integers | None) -> Integers:
    sets = [part[:, 1:].ravel() for part in hits]  # state 0 is none of the sets
    more = [] if also is None else [np.ravel(also)]
    return np.concatenate([np.array(runs, np.int64), *sets, order, *more])


def reduced(reducer: Reducer, outputs: Outputs, numbers: Places | None, sides: Bools) -> Integers:
    """What a reducer makes of outputs in their order; with `numbers`, each run's output is the one of that number."""
    if numbers is None:
        return reducer.mixed(outputs, sides)
    second = np.bincount(numbers[sides], minlength=outputs.runs)
    first = np.bincount(numbers, minlength=outputs.runs) - second
    return reducer(Sample(outputs, first), Sample(outputs, second))


def _by_side(states: Bytes, sides: Bools, size: int) -> Integers:
    """Runs in each state, by side: int64[2, size]."""
    if size == 2:
        both, runs = int(np.count_nonzero(states.view(np.bool_) & sides)), int(np.count_nonzero(sides))
        hits = int(np.count_nonzero(states))
        return np.array([[len(sides) - runs - hits + both, hits - both], [runs - both, both]], np.int64)
    return np.bincount(states + np.uint16(size) * sides, minlength=2 * size).reshape(2, size)
