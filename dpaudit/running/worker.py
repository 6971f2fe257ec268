"""The work of a worker: opens the mechanism once, runs shards, and reduces their outputs before anything leaves.

Sides are drawn by fair coins. Per-run mechanisms get them in coin order, run by run; batched ones get small
calls, each of one side, in random order. So a drift in time never looks like a difference of sides.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, islice, pairwise
from typing import Any, Protocol

import numpy as np

from dpaudit import errors
from dpaudit.base.arrays import Bools, Bytes, Integers, Places
from dpaudit.data.data import mark, private_copy
from dpaudit.data.pair import AdjacentPair, SealedPair
from dpaudit.errors import DpAuditError, UnsoundAudit
from dpaudit.mechanisms.protocol import Mechanism, Opened
from dpaudit.outputs.canonical import MESSAGE, Column, Outputs, Pilot, Wanted, concatenate, is_metadata, reals
from dpaudit.outputs.encode import PRINTED, Lookup, encode_batch, encode_objects, listening, lookup_of, with_printed
from dpaudit.outputs.exact import FIXED, Encoded, arrays_of, snapshot
from dpaudit.running import guard
from dpaudit.running.contents import digest_of
from dpaudit.running.pieces import Piece, again, outputs_of, state_of, text_of
from dpaudit.running.streams import Shard, calls, flips, parts, sides_of
from dpaudit.running.watch import Reducer, Tally, added, begun

BATCH, LARGEST_BATCH = 1 << 14, 1 << 17  # runs of both sides between two coin flips of a batched mechanism
CALLS = 16  # pairs of calls in a shard where that makes them larger: each costs some microseconds
CELL = 1 << 11  # runs of a per-run mechanism whose outputs are in memory at a time, so that they stay in cache
LARGE_CELL = 1 << 12  # for a pilot that stores them all; where no output is kept, but a number of each, 8 cells

_REUSING: set[str] = set()  # jobs whose batched mechanism fills the same memory in every call
_ONE_AT_A_TIME = threading.Lock()  # for these, from the call until what it returned is encoded

Rng = np.random.Generator


class Sink(Protocol):
    """Takes the outputs of one shard, from the first run to the last."""

    @property
    def wanted(self) -> Wanted | None: ...
    @property
    def tallies(self) -> bool: ...
    @property
    def sides(self) -> Bools: ...

    def fill(self, start: int, outputs: Outputs, numbers: Places | None = None) -> None: ...
    def call(self, start: int, outputs: Outputs, side: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of a first look at a mechanism: its speed, and whether equal streams give equal outputs."""

    run_s: float
    runs: int
    reproducible: bool
    alone: bool
    pilots: tuple[Pilot, ...] = ()  # the first look, by pair
    accelerated: bool = False  # by a process that may have an accelerator at work


def identical(one: Pilot, other: Pilot) -> bool:
    """Whether two pilots have the same outputs, bit for bit."""
    return _bytes_of(one.first) == _bytes_of(other.first) and _bytes_of(one.second) == _bytes_of(other.second)


def likeness(pilot: Pilot) -> str:
    """A digest of the outputs of a pilot, bit for bit."""
    return digest_of([repr(_bytes_of(side)) for side in (pilot.first, pilot.second)])


def _bytes_of(outputs: Outputs) -> list[tuple[Any, bytes, bytes]]:
    return [
        (path, column.values.tobytes(), b"" if column.codes is None else column.codes.tobytes())
        for path, column in sorted(outputs.columns.items(), key=lambda item: repr(item[0]))
    ]


@dataclass(frozen=True, slots=True)
class Job:
    """What every task of an audit shares; pickled once, opened once in each worker."""

    key: str
    seed: int
    run_timeout_s: float | None
    contents: Any = None  # mechanism and pairs: as they are, in this process; pickled; or None, where a worker has them
    alone: bool = False  # call a batched mechanism for one run at a time
    own_process: bool = False  # the worker may be ended
    isolated: bool = False  # what it makes is counted by its host
    shown: tuple[tuple[str, str], ...] = ()  # what a worker that dpaudit did not start must have too, by `alike`
    sentinel: Shard | None = None  # which that runs first, to show that its outputs are those of the driver


@dataclass
class Worker:
    """A mechanism opened in this worker, with its datasets."""

    job: Job
    opened: Opened
    pairs: tuple[tuple[Any, Any], ...]
    digests: tuple[tuple[str | None, str | None], ...]
    tally: Tally | None = None
    lookup: Lookup | None = None  # of outputs like the last one, for what the tally is of
    space: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    last: Any = None  # what the last batched call returned
    going: tuple[Shard, int, Any] | None = None  # the shard whose part came last, where that ended, and its stream
    place: tuple[str, str, str] | None = None  # of one that dpaudit did not start: its host, name and `likeness`

    @classmethod
    def start(cls, job: Job, mechanism: Mechanism, pairs: tuple[AdjacentPair | SealedPair, ...]) -> "Worker":
        """Opens the mechanism and copies the datasets, so that the caller's stay as they are."""
        opened = mechanism.open()
        if job.alone and not opened.per_run and not opened.size:
            batch = opened.call
            opened = Opened(lambda data, rng: _single(batch(data, 1, rng)), per_run=True, takes_rng=opened.takes_rng)
        if job.run_timeout_s is not None and opened.per_run:
            opened = replace(opened, call=guard.time_limited(opened.call, job.run_timeout_s, hard=job.own_process))
        data = tuple(tuple(private_copy(side) for side in pair.open()) for pair in pairs)
        marks = tuple((mark(first), mark(second)) for first, second in data)
        return cls(job, opened, data, marks)

    def run(self, shard: Shard, reducer: Reducer | None, part: Piece | None = None) -> Integers | Pilot | Piece:
        """The reduced outputs of a shard; the outputs themselves where there is no reducer; the shard so far."""
        if len(self.space) < 2 * shard.runs:  # the same for every shard: new pages would cost as much as the counting
            self.space = np.empty(2 * shard.runs, np.uint8)
        sink = begun(shard, reducer, self.space)
        so_far = self.feed(shard, sink, part)
        return added(sink, reducer, part if self.opened.per_run else None, so_far)

    def feed(self, shard: Shard, sink: Sink, part: Piece | None = None) -> Piece | None:
        """Runs a shard, and gives its outputs to a sink; of a per-run mechanism to the end of a part.

        Returns the state then, without counts, if more parts follow.
        """
        coins, rng = shard.streams(self.job.seed)
        if not self.opened.per_run:
            self._batched(shard, coins, rng, sink)
            return None
        part = part or Piece(stop=shard.runs)
        if part.done:
            known = self.going is not None and self.going[:2] == (shard, part.done)
            rng = self.going[2] if self.going and known else again(rng, part.stream)
        flipped = flips(coins, shard.runs)
        sink.sides[:] = sides_of(flipped, shard.runs)
        self.going = (shard, part.stop, rng)
        if sink.tallies:
            self._per_run(shard, flipped, rng, sink, part.done, part.stop)
            return Piece(part.stop, stream=state_of(rng)) if part.stop < shard.runs else None
        return self._stored(shard, flipped, rng, sink, part)

    def batch(self, shard: Shard) -> int:
        """Runs of both sides between two coin flips of a batched mechanism, in a shard."""
        return max(BATCH, self.opened.smallest_batch, min(LARGEST_BATCH, shard.runs // CALLS))

    def one_by_one(self, pair: int, sides: Bools, rng: Rng) -> Outputs:
        """The outputs of runs on given sides, in their order; a batched mechanism gets a call for each stretch."""
        if self.opened.per_run:
            both = self.pairs[pair]
            return encode_objects(run_each(self.opened.call, (both[side] for side in sides.tolist()), rng, None))
        stretches = [(side, len(list(runs))) for side, runs in groupby(sides.tolist())]
        work = [(int(side), part) for side, runs in stretches for part in parts(runs, self.opened.size or runs)]
        return concatenate([self._call(pair, side, runs, rng, None) for side, runs in work] or [encode_objects([])])

    def check_datasets(self) -> None:
        """Raises `UnsoundAudit` where a run has changed a dataset."""
        for pair, marks in zip(self.pairs, self.digests, strict=True):
            for side, data, before in zip(("first", "second"), pair, marks, strict=True):
                if before is not None and mark(data) != before:
                    raise UnsoundAudit(
                        f"the mechanism changed its dataset ({side} of a pair): later runs saw other data; "
                        "let it work on a copy"
                    )

    # --- the two ways to run --------------------------------------------------------------------------------

    def _per_run(self, shard: Shard, flipped: bytes, rng: Rng, sink: Sink, first: int, end: int) -> None:
        if self.tally is None or self.tally.wanted != sink.wanted:
            self.tally, self.lookup = Tally(sink.wanted), None
        # outputs of two types may be equal, so an event on types looks at each
        tally = None if sink.wanted is not None and any(map(is_metadata, sink.wanted)) else self.tally
        recurring: list[Places] = []  # the first cells, as long as the tally holds them
        call, data, done = self.opened.call, self._data(shard.pair, flipped, first, end), first
        while done < end:
            if (lookup := self.lookup) is not None:
                odd: list[Any] = []
                cells = np.fromiter(_read_each(call, islice(data, 8 * CELL), rng, lookup, odd), lookup.dtype)
                try:
                    read = Outputs(len(cells), {lookup.path: Column(reals(cells))})
                except OverflowError:  # a whole number beyond all doubles
                    read = encode_objects(cells.tolist(), sink.wanted)
                if odd:  # and outputs that are kept follow
                    read, self.lookup = concatenate([read, encode_objects(odd, sink.wanted)]), None
                sink.fill(done, read)
                done += read.runs
                continue
            start, done = done, min(done + CELL, end)
            outputs = run_each(call, islice(data, CELL), rng, sink.wanted)
            numbers = tally.numbers(outputs) if tally is not None and tally.recurring else None
            if numbers is not None:
                recurring.append(numbers)
            if tally is not None and recurring and (numbers is None or done == end):
                sink.fill(first, tally.known(), np.concatenate(recurring))
                recurring = []
            if numbers is None:
                sink.fill(start, encode_objects(outputs, sink.wanted))
                self.lookup = lookup_of(outputs[-1], sink.wanted)

    def _stored(self, shard: Shard, flipped: bytes, rng: Rng, sink: Sink, part: Piece) -> Piece | None:
        """Outputs that are stored: their cells are those of the whole shard, whatever its parts."""
        fresh: list[Any] = []
        if part.stop < shard.runs:
            fresh = run_each(self.opened.call, self._data(shard.pair, flipped, part.done, part.stop), rng)
            if (text := text_of([*outputs_of(part.held), *fresh])) is not None:
                return Piece(part.stop, stream=state_of(rng), held=text)
        done = part.done + len(fresh)
        ends = [0, *range(CELL, shard.runs, LARGE_CELL), shard.runs]
        for start, stop in pairwise(ends):
            more = run_each(self.opened.call, self._data(shard.pair, flipped, max(start, done), stop), rng)
            before = [*outputs_of(part.held), *fresh][start:stop] if start < done else []
            sink.fill(start, encode_objects(before + more, None))
        return None

    def _data(self, pair: int, flipped: bytes, start: int, stop: int) -> Iterator[Any]:
        """The datasets of the runs from one place to another, in a form that no run can change."""
        both = np.empty(2, object)
        both[0], both[1] = self.pairs[pair]
        return iter(tuple(both[np.unpackbits(np.frombuffer(flipped, np.uint8), count=stop)[start:]].tolist()))

    def _batched(self, shard: Shard, coins: Rng, rng: Rng, sink: Sink) -> None:
        for start, runs, side in calls(coins, shard.runs, self.batch(shard), self.opened.size):
            with _ONE_AT_A_TIME if self.job.key in _REUSING else nullcontext():
                outputs = self._call(shard.pair, side, runs, rng, sink.wanted)
            sink.call(start, outputs, side)

    def _call(self, pair: int, side: int, runs: int, rng: np.random.Generator, wanted: Wanted) -> Outputs:
        counted, runs = runs, self.opened.size or runs
        try:
            call, limit = self.opened.call, self.job.run_timeout_s
            if limit is not None and self.opened.limited is not None:
                call = self.opened.limited(limit)
            elif limit is not None:
                call = guard.time_limited(call, limit * runs, hard=self.job.own_process)
            with listening(wanted):
                raw = call(self.pairs[pair][side], runs, rng)
        except (DpAuditError, errors.Interrupted):
            raise
        except guard.RunTimedOut:
            late = f"longer than run_timeout_s = {limit:g} s a run allows, so there is no verdict"
            raise UnsoundAudit(f"a batched call for {runs} runs took {late}") from None
        except BaseException as error:
            where = f"on the {'second' if side else 'first'} dataset with {named(error)}"
            message = f"a batched call for {runs} runs failed {where}"
            if self.opened.size:  # one run of many has raised, so no call can stand for one run
                raise UnsoundAudit(
                    f"{message}, so there is no verdict; leave out size, and runs are called alone"
                ) from None
            raise BatchFailed(message) from None
        previous, self.last = self.last, raw
        if any(np.may_share_memory(one, other) for one in arrays_of(previous) for other in arrays_of(raw)):
            _REUSING.add(self.job.key)  # the probe finds out, before there are threads
        outputs = encode_batch(raw, runs, wanted)
        if printed := PRINTED.take():
            outputs = with_printed(outputs, printed)
        return outputs if counted == runs else outputs.take(np.arange(counted))


class BatchFailed(UnsoundAudit):
    """A batched call raised: it is not known which run failed."""


def run_each(call: Callable[..., Any], data: Any, rng: np.random.Generator, wanted: Wanted = None) -> list[Any]:
    """One output for each dataset of an iterator, in order; what a run raises is its output.

    An output that a later run could change is copied, or encoded at once where that cannot be done.

    >>> [type(output).__name__ for output in run_each(lambda data, rng: 1 / data, iter([1, 0]), None)]
    ['float', 'Failure']
    """
    # until the last run no frame and no object known to the collector refers to them: no run can find earlier ones
    return np.fromiter(_each(call, data, rng, wanted), object).tolist()  # type: ignore[no-any-return]


def _each(call: Callable[..., Any], data: Any, rng: np.random.Generator, wanted: Wanted) -> Iterator[Any]:
    noted: set[str] = set()  # labels whose first exception has been described
    with_text = wanted is None or any(MESSAGE in path for path in wanted)
    encode, fixed = partial(encode_objects, wanted=wanted), float  # the type of the last output that cannot change
    with listening(wanted) as with_prints:
        while True:
            try:
                for item in data:  # a plain loop: no C function between the runs and their exceptions, and the fastest
                    output = call(item, rng)
                    if type(output) is not fixed:
                        if type(output) in FIXED:
                            fixed = type(output)
                        else:
                            output = snapshot(output, encode, whole=with_prints)
                    if with_prints and PRINTED.text:
                        output = _with_printed(output, encode)
                    yield output
                return
            except (errors.Interrupted, UnsoundAudit):
                raise
            except BaseException as error:
                failed = guard.failure(error, noted, with_text=with_text)
                yield _with_printed(failed, encode) if with_prints and PRINTED.text else failed


def _with_printed(output: Any, encode: Callable[..., Outputs]) -> Encoded:
    return Encoded(with_printed(encode([output]), PRINTED.take()))


def _read_each(call: Callable[..., Any], data: Any, rng: Rng, lookup: Lookup, odd: list[Any]) -> Iterator[Any]:
    """The number in each output, up to one that has none: this is `odd`, to be encoded before the next run."""
    kind, fits, kind_of = lookup.kind, lookup.fits, type
    place: Any = lookup.path[0] if lookup.path else None
    try:
        if place is None:
            for item in data:
                output = call(item, rng)
                if kind_of(output) is not kind:
                    break
                yield output
            else:
                return
        else:
            for item in data:
                output = call(item, rng)  # one without such a place is as if it had been raised: there is no number
                cell = output[place] if kind_of(output) is kind and (not fits or fits(output)) else None
                if kind_of(cell) is not float and kind_of(cell) is not np.float64:
                    break
                yield cell
            else:
                return
    except (errors.Interrupted, UnsoundAudit):
        raise
    except BaseException as error:
        output = guard.failure(error)
    odd.append(output)


guard.end_strays(_each.__code__)
guard.end_strays(_read_each.__code__)


def _single(raw: Any) -> Any:
    """The one output of a batch of one run, as a per-run mechanism would have returned it."""
    if isinstance(raw, tuple):
        return tuple(_single(part) for part in raw)
    if isinstance(raw, dict):
        return {key: _single(part) for key, part in raw.items()}
    if not hasattr(raw, "__len__") or len(raw) != 1:
        got = f"{len(raw)} outputs" if hasattr(raw, "__len__") else f"a single {type(raw).__name__}"
        raise UnsoundAudit(
            f"a batched mechanism was asked for 1 run and returned {got}; the run must be its first axis"
        )
    return raw[0]


def named(error: BaseException) -> str:
    """The type of an exception with the first line of its message, if this can be read."""
    try:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    except BaseException:
        return f"{type(error).__name__}: no message"
