"""Counting: the hits and runs of each side, and integers that show whether runs depend on each other.

States and sides of a shard stay in memory until it is done, then they are reduced at once; counts of another reducer
are added up, and without a reducer the outputs are stored. The result is the same, bit for bit, wherever this runs.
Outputs that recur are counted first, then each different one is processed once.
"""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np

from dpaudit.base.arrays import Bools, Bytes, Integers, Places
from dpaudit.errors import Interrupted
from dpaudit.outputs.canonical import Failure, Outputs, Pilot, Sample, Wanted, concatenate
from dpaudit.outputs.encode import encode_objects
from dpaudit.running import order
from dpaudit.running.pieces import Piece
from dpaudit.running.streams import Shard

NOTHING = Outputs(0, {})
GLANCE = 256  # first outputs, by which a tally decides whether outputs recur
MOST_RECURRING = 1 << 11  # different outputs up to which they are counted first
SIMPLE = frozenset({tuple, int, float, bool, str, bytes, type(None), Failure})


class Reducer(Protocol):
    """Turns the outputs of both sides into integers; picklable, and the only result that leaves a certifying worker."""

    @property
    def wanted(self) -> Wanted:
        """The paths it reads; None for all."""

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
        """The number of sets, at most 255."""

    def state(self, outputs: Outputs) -> Bytes:
        """The set that each run is in, numbered from 1; 0 for none."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A reducer: hits and runs of each side, of `main` and of each of `extra`, and integers for health checks.

    It counts exactly what a plain counter would. `also` is another reducer of the same outputs; `rest` returns its
    counts.
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

    @property
    def integers(self) -> int:
        """How many counts a shard has, those of `also` apart."""
        return self._order + order.ORDER

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
        nothing = order.packed(look.states, look.sides, look.words)
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
        return counts[..., self._order + order.ORDER :]

    def read(self, table: dict[Shard, Integers]) -> order.Looked:
        """The counts of several shards about the order of their runs."""
        rows = np.array(list(table.values()))
        return order.unpacked(rows[:, self._order : self._order + order.ORDER], self.wanted)

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
        self.words = np.zeros(min(runs, order.PRINTED) if printed else 0, np.uint64)
        self.also: Integers | None = None

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        """One call of a batched mechanism: runs of one side."""
        self.called(start, outputs.runs, side)
        self.fill(start, outputs)

    def called(self, start: int, runs: int, side: int) -> None:
        """The same, with outputs that come by `fill`."""
        self.batched = True
        self.sides[start : start + runs] = bool(side)
        if len(self.calls) < order.CALLS and runs:
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
            size = count if numbers is None else outputs.runs
            words = order.words(outputs, size, self.wanted)
            words = words if numbers is None else words[numbers[:count]]
            self.words[start : start + count] = words

    def result(self, start: int = 0, stop: int | None = None) -> Integers:
        """All integers of the shard, or of the runs of it that were filled in, from a multiple of 4 on."""
        size, stop = self.watch.sizes[0], len(self.sides) if stop is None else stop
        self.hits[0] += _by_side(self.states[start:stop], self.sides[start:stop], size + 1)
        second = int(np.count_nonzero(self.sides[start:stop]))
        inside = self.states if size == 1 else (self.states > size // 2).view(np.uint8)
        watched = order.WATCHED_IN_CALLS if self.batched else None
        ordered = order.packed(inside, self.sides, self.words, self.calls, watched, (start, stop))
        return _joined([stop - start - second, second], self.hits, ordered, self.also)


def _joined(runs: list[int], hits: list[Integers], ordered: Integers, also: Integers | None) -> Integers:
    sets = [part[:, 1:].ravel() for part in hits]  # state 0 is none of the sets
    more = [] if also is None else [np.ravel(also)]
    return np.concatenate([np.array(runs, np.int64), *sets, ordered, *more])


def reduced(reducer: Reducer, outputs: Outputs, numbers: Places | None, sides: Bools) -> Integers:
    """The counts of a reducer for outputs in their order; with `numbers`, each run has the output of that number."""
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

    def _add(self, counts: Integers) -> None:
        self._total = counts if self._total is None else self._total + counts

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
    """The sink for the outputs of a shard, for a reducer or a pilot; `space` is memory of two bytes a run."""
    if isinstance(reducer, Watch):
        return ShardCounter(reducer, shard.runs, space, printed=shard.index < order.PRINTED_SHARDS)
    return Keeping(space[: shard.runs]) if reducer is None else Adding(reducer, space[: shard.runs])


def added(
    sink: Adding | Keeping | ShardCounter, reducer: Reducer | None, part: Piece | None, so_far: Piece | None
) -> Integers | Pilot | Piece:
    """The result of a shard, with the counts of earlier parts, or the shard so far."""
    if part is None or (reducer is None and so_far is None):
        return sink.result()
    if reducer is None:
        return so_far  # type: ignore[return-value]
    counts: Any = sink.result(part.done, part.stop)
    counts = counts if part.counts is None else counts + part.counts
    return counts if so_far is None else replace(so_far, counts=counts)


class _Numbered(dict[Any, int]):
    def __missing__(self, output: Any) -> int:
        if not _is_simple(output):
            raise TypeError
        number = self[output] = len(self)
        return number


class Tally:
    """Numbers outputs that recur, so that each is processed once.

    For text, bytes and tuples of plain values, Python's equality is that of the canonical form, except for the
    metadata of values.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.recurring = True
        self._known = _Numbered()
        self._numbers: set[Any] = set()  # types of the numbers among the entries
        self._encoded = Outputs(0, {})

    def numbers(self, outputs: list[Any]) -> Places | None:
        """For each output the number of the one it is equal to; None where they do not recur, from then on."""
        plain = SIMPLE.issuperset(map(type, outputs))  # any other type may define an equality of its own
        fit = plain and isinstance(outputs[0], tuple | str | bytes) and (self._known or _recur(outputs))
        if not fit or (self.wanted is None and not self._alike(outputs)):
            self.recurring = False
            return None
        try:
            numbers = np.fromiter(map(self._known.__getitem__, outputs), np.intp, len(outputs))
        except Interrupted:
            raise
        except BaseException:  # an entry that is unhashable, not plain, or has a hash of its own
            self.recurring = False
            return None
        self.recurring = len(self._known) <= MOST_RECURRING
        return numbers

    def _alike(self, outputs: list[Any]) -> bool:
        """Whether equal outputs here have equal metadata too, which an event may read."""
        kinds = set(map(type, outputs))
        if kinds != {tuple}:
            return kinds <= {str, bytes}
        entries = list(chain.from_iterable(outputs))
        self._numbers |= set(map(type, entries)) - {str, bytes, type(None)}
        return self._numbers <= {int} or self._numbers <= {bool} or (self._numbers <= {float} and 0.0 not in entries)

    def known(self) -> Outputs:
        """Each different output once, by its number."""
        if self._encoded.runs != len(self._known):
            self._encoded = encode_objects(list(self._known), self.wanted)
        return self._encoded


def _recur(outputs: list[Any]) -> bool:
    glance = outputs[:GLANCE]
    try:
        return 2 * len(set(glance)) <= len(glance)
    except Interrupted:
        raise
    except BaseException:  # unhashable
        return False


def _is_simple(output: Any) -> bool:
    if type(output) is tuple:
        return all(map(_is_simple, output))
    return type(output) in SIMPLE
