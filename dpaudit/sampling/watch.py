"""Watching the runs of a shard in their order: the counts of an event, and integers that tell whether runs depend.

A shard's states (which of a few sets each output is in) and sides are held until it is done, then reduced at
once, so that the counts are those of a plain counter and the order costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpaudit.outputs import ABSENT, TYPE, Column, Outputs, Sample, token
from dpaudit.sampling.columns import Wanted
from dpaudit.sampling.streams import Shard

QUARTERS = 4
QUADS = 256  # patterns of four runs in a row, two bits each
PAIRINGS = 16  # patterns of two runs
PRINTED = 256  # first runs of a shard whose outputs are kept as a word each
SIZES = (2 * QUARTERS, 2 * QUARTERS, QUADS, 2 * PAIRINGS, PRINTED)  # integers of the order, as they are packed
PRINTED_SHARDS = 256  # first shards of which they are kept: a worker's first task is among them
CALLS, OF_CALL = 4, 1 << 11  # first calls of a batched shard, and first runs of each, that are held against each other
WATCHED_IN_CALLS = (
    1 << 15
)  # first runs of a batched shard whose order is looked at: all would cost half as much as a draw

Counts = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]


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
    also: Any = None

    @property
    def wanted(self) -> Wanted:
        """The paths that any of the sets reads, or `also`; None for all."""
        each = [member.wanted for member in (self.main, *self.extra, *(() if self.also is None else (self.also,)))]
        return None if any(wanted is None for wanted in each) else frozenset().union(*each)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of sets of `main` and of each of `extra`: 1 for an event, the number of bins of a partition."""
        return tuple(member.sets for member in (self.main, *self.extra))

    def begin(self, shard: Shard, space: Bytes) -> Look:
        """What takes the outputs of one shard; `space` is memory of two bytes a run for as long as it does."""
        return Look(self, shard.runs, space, printed=shard.index < PRINTED_SHARDS)

    def __call__(self, first: Sample, second: Sample) -> Counts:
        """The counts of outputs whose order is not known: hits and runs alone."""
        look = Look(self, 0, np.empty(0, np.uint8))
        for side, sample in enumerate((first, second)):
            for part, size in enumerate(self.sizes):
                state = self._member(part).state(sample.outputs)
                hits = np.bincount(state, weights=sample.counts, minlength=size + 1)
                look.hits[part][side] += hits.astype(np.int64)
        if self.also is not None:
            look.also = self.also(first, second)
        return _packed([first.runs, second.runs], look.hits, *_nothing(), look.also)

    def mixed(self, outputs: Outputs, second: Bools) -> Counts:
        """The counts of outputs that stand in the order of their runs, as one shard."""
        look = Look(self, outputs.runs, np.empty(2 * outputs.runs, np.uint8))
        look.sides[:] = second
        look.fill(0, outputs)
        return look.counts()

    def hits(self, counts: Counts, part: int = 0) -> Counts:
        """Hits of each set of a part (0 is `main`, then `extra`) from added counts: int64[2 sides, sets]."""
        start = 2 + 2 * sum(self.sizes[:part])
        return counts[..., start : start + 2 * self.sizes[part]].reshape(*counts.shape[:-1], 2, self.sizes[part])

    def plain(self, counts: Counts, part: int = 0) -> Counts:
        """Hits and runs of an event as a hit counter orders them: first hits, first runs, second hits, second runs."""
        hits = self.hits(counts, part)[..., 0]
        return np.stack([hits[..., 0], counts[..., 0], hits[..., 1], counts[..., 1]], axis=-1)

    def rest(self, counts: Counts) -> Counts:
        """The counts of `also`, from added counts."""
        return counts[..., 2 + 2 * sum(self.sizes) + sum(SIZES) :]

    def read(self, table: dict[Shard, Counts]) -> Looked:
        """What the counts of several shards tell of the order of their runs."""
        return replace(unpacked(np.array(list(table.values())), self.sizes), wanted=self.wanted)

    def _member(self, part: int) -> Sets:
        return (self.main, *self.extra)[part]


class Look:
    """The states and sides of a shard while it runs; `fill` takes them in any order, `counts` reduces them."""

    def __init__(self, watch: Watch, runs: int, space: Bytes, *, printed: bool = True) -> None:
        self.watch = watch
        self.states = space[:runs]
        self.sides = space[runs : 2 * runs].view(np.bool_)
        self.calls: list[tuple[int, int]] = []  # start and runs of the first calls of a batched mechanism
        self.batched = False
        self.hits = [np.zeros((2, size + 1), np.int64) for size in watch.sizes]
        self.words = np.zeros(min(runs, PRINTED) if printed else 0, np.uint64)
        self.also: Any = 0

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        """One call of a batched mechanism: runs of one side."""
        self.batched = True
        self.sides[start : start + outputs.runs] = bool(side)
        if len(self.calls) < CALLS and outputs.runs:
            self.calls.append((start, outputs.runs))
        self.fill(start, outputs)

    def fill(self, start: int, outputs: Outputs, numbers: npt.NDArray[np.intp] | None = None) -> None:
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
            self.also = self.also + _reduced(self.watch.also, outputs, numbers, self.sides[here])
        if start < len(self.words):
            count = min(runs, len(self.words) - start)
            wanted, looked = self.watch.wanted, count if numbers is None else outputs.runs
            found = words(outputs, looked, wanted)
            found = found if numbers is None else found[numbers[:count]]
            self.words[start : start + count] = found

    def counts(self) -> Counts:
        """All integers of the shard."""
        size = self.watch.sizes[0]
        inside = self.states if size == 1 else (self.states > size // 2).view(np.uint8)
        seen = summary(inside, self.sides, self.calls, WATCHED_IN_CALLS if self.batched else None)
        if size == 1:
            self.hits[0][:, 1] = seen[0].sum(axis=0)
        else:
            self.hits[0] += _by_side(self.states, self.sides, size + 1)
        return _packed(seen[1].sum(axis=0).tolist(), self.hits, *seen, printed(self.words, self.sides), self.also)


@dataclass(frozen=True, slots=True)
class Looked:
    """What shards tell of the order of their runs; the axes are shards, quarters of a shard, sides.

    `hits` and `runs` are int64[shards, 4, 2]; `quads` int64[256] the patterns of four runs in a row (bits of run k:
    hit 2k, side 2k + 1); `calls` int64[2, 16] those of two calls run by run (in pairs from the first call on, from the
    second one on); `prints` uint64[shards, 256] the first outputs, the side in the last bit; 0 where there is none,
    made of the paths in `wanted` (None: all).
    """

    hits: Counts
    runs: Counts
    quads: Counts
    calls: Counts
    prints: Words
    wanted: Wanted = None


def summary(
    inside: Bytes, sides: Bools, calls: Iterable[tuple[int, int]] = (), watched: int | None = None
) -> tuple[Counts, Counts, Counts, Counts]:
    """Hits and runs by quarter and side, patterns of four runs, patterns of calls; of 0-1 states in run order."""
    return (
        _quarters(inside, sides),
        _quarter_runs(sides),
        _quads(inside[:watched], sides[:watched]),
        _calls(inside, sides, list(calls)),
    )


def looked(parts: Iterable[tuple[Bytes, Bools]], prints: Words) -> Looked:
    """The same of 0-1 states and sides that are held already, a part for each shard."""
    found = [summary(inside, sides) for inside, sides in parts]
    hits, runs, quads, calls = (np.array(each) for each in zip(*found, strict=True))
    return Looked(hits, runs, quads.sum(axis=0), calls.sum(axis=0), prints)


def printed(found: Words, sides: Bools) -> Words:
    """The words of the first runs with the side in the last bit, never 0, filled up with zeros."""
    marked = np.zeros(PRINTED, np.uint64)
    marked[: len(found)] = found & ~np.uint64(3) | np.uint64(2) | sides[: len(found)].astype(np.uint64)
    return marked


def words(outputs: Outputs, count: int, wanted: Wanted = None) -> Words:
    """A 64-bit word for each of the first `count` outputs, of the columns that are wanted (None: of all).

    Equal outputs give equal words, in every process; their types alone make no difference.
    """
    total = np.zeros(count, np.uint64)
    for path, column in outputs.columns.items():
        if path == (TYPE,) or wanted is not None and path not in wanted:  # plain numbers may go without their type
            continue
        values = np.asarray(column.values[:count], np.float64) + 0.0  # -0.0 is 0.0
        codes = Column(values, None if column.codes is None else column.codes[:count]).tokens
        cell = np.where(codes == 0, values, 0.0).view(np.uint64) ^ codes
        salted = _mixed(cell ^ np.uint64(token("path", repr(path)).code))
        total += np.where(codes == np.uint64(ABSENT.code), np.uint64(0), salted)  # no column is a column of absences
    return total


def unpacked(table: Counts, sizes: tuple[int, ...] = ()) -> Looked:
    """The integers of shards, one a row, as `Look.counts` packs them."""
    rows = table[:, 2 + 2 * sum(sizes) :]
    hits, runs, quads, calls, prints, _ = np.split(rows, np.cumsum(SIZES), axis=1)
    return Looked(
        hits.reshape(-1, QUARTERS, 2),
        runs.reshape(-1, QUARTERS, 2),
        quads.sum(axis=0),
        calls.sum(axis=0).reshape(2, PAIRINGS),
        np.ascontiguousarray(prints).view(np.uint64),
    )


def _packed(
    runs: list[int], hits: list[Counts], in_quarters: Counts, of_quarters: Counts, quads: Counts, calls: Counts,
    prints: Words, also: Any,
) -> Counts:  # fmt: skip
    sets = [part[:, 1:].ravel() for part in hits]  # state 0 is none of the sets
    order = [in_quarters.ravel(), of_quarters.ravel(), quads, calls.ravel(), prints.view(np.int64)]
    more = [] if isinstance(also, int) else [np.ravel(also)]
    return np.concatenate([np.array(runs, np.int64), *sets, *order, *more])


def _reduced(reducer: Any, outputs: Outputs, numbers: npt.NDArray[np.intp] | None, sides: Bools) -> Any:
    """What a reducer makes of outputs in their order; with `numbers`, each run's output is the one of that number."""
    if numbers is None:
        return reducer.mixed(outputs, sides)
    second = np.bincount(numbers[sides], minlength=outputs.runs)
    first = np.bincount(numbers, minlength=outputs.runs) - second
    return reducer(Sample(outputs, first), Sample(outputs, second))


def _nothing() -> tuple[Counts, Counts, Counts, Counts, Words]:
    empty = np.zeros(0, np.bool_)
    return *summary(empty.view(np.uint8), empty), np.zeros(PRINTED, np.uint64)


def _by_side(states: Bytes, sides: Bools, size: int) -> Counts:
    """Runs in each state, by side: int64[2, size]."""
    if size == 2:
        both, runs = int(np.count_nonzero(states.view(np.bool_) & sides)), int(np.count_nonzero(sides))
        hits = int(np.count_nonzero(states))
        return np.array([[len(sides) - runs - hits + both, hits - both], [runs - both, both]], np.int64)
    return np.bincount(states + np.uint16(size) * sides, minlength=2 * size).reshape(2, size)


def _cuts(runs: int) -> list[int]:
    return [runs * quarter // QUARTERS for quarter in range(QUARTERS + 1)]


def _quarters(inside: Bytes, sides: Bools) -> Counts:
    hits = inside.view(np.bool_)
    cuts = _cuts(len(sides))
    found = [
        (np.count_nonzero(hits[low:high]), np.count_nonzero(hits[low:high] & sides[low:high]))
        for low, high in pairwise(cuts)
    ]
    return np.array([(all_ - second, second) for all_, second in found], np.int64)


def _quarter_runs(sides: Bools) -> Counts:
    cuts = _cuts(len(sides))
    found = [(high - low, np.count_nonzero(sides[low:high])) for low, high in pairwise(cuts)]
    return np.array([(runs - second, second) for runs, second in found], np.int64)


def _quads(inside: Bytes, sides: Bools) -> Counts:
    """How often each pattern of four runs in a row occurs; the fours do not overlap."""
    whole = len(sides) // 4 * 4
    codes = sides[:whole].view(np.uint8) << np.uint8(1)
    codes |= inside[:whole]
    # four bytes of two bits each are gathered in the highest byte; no two products share a bit, so none is carried
    gathered = codes.view("<u4") * np.uint32(0x01041040)
    return np.bincount(gathered.astype("<u4", copy=False).view(np.uint8)[3::4], minlength=QUADS)


def _calls(inside: Bytes, sides: Bools, calls: list[tuple[int, int]]) -> Counts:
    """Patterns of two calls in a row, run by run: (first, second), (third, fourth); then (second, third)."""
    found = np.zeros((2, PAIRINGS), np.int64)
    for place, ((one, runs), (other, more)) in enumerate(pairwise(calls)):
        count = min(runs, more, OF_CALL)
        codes = [
            inside[start : start + count] | sides[start : start + count].view(np.uint8) << 1 for start in (one, other)
        ]
        found[place % 2] += np.bincount(codes[0] | codes[1] << 2, minlength=PAIRINGS)
    return found


def _mixed(found: Words) -> Words:
    """The finalizer of splitmix64 (Steele, Lea & Flood 2014): every bit depends on every bit."""
    found = found ^ (found >> np.uint64(30))
    found = found * np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))
