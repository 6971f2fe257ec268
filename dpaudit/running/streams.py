"""Random streams and the shard grid: every shard has its own, keyed by (stage, pair, shard), never by the worker.

Coins and mechanism have a stream each: a mechanism cannot see, or spoil, the draw of its side.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from dpaudit.base.arrays import Bools


FIRST, GROWTH, FEWEST = 12, 0.12, 4  # runs of the first part, growth of all runs in a part, runs of the least part
RECHECK = 1 << 16  # far beyond every stage of an audit


def rechecking(seed: int) -> int:
    """The seed, below 0, of streams that no audit with any seed uses, for the runs of a recheck.

    >>> rechecking(0), rechecking(7)
    (-1, -8)
    """
    return -1 - seed


class Stage(IntEnum):
    """Which part of an audit a run belongs to; part of its stream's key, so stages never share randomness."""

    PROBE = 0
    SEARCH = 1
    CERTIFY = 2
    SEQUENTIAL = 3
    FRESH = 4


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the work with a random stream of its own: `runs` runs of one pair in one stage."""

    stage: Stage
    pair: int
    index: int
    runs: int

    def streams(self, seed: int) -> "tuple[np.random.Generator, np.random.Generator]":
        """The streams of the coins and of the mechanism; a seed below 0 is that of `rechecking`."""
        from numpy.random import SFC64, Generator, SeedSequence

        key = (int(self.stage), self.pair, self.index)
        if seed < 0:
            seed, key = rechecking(seed), (RECHECK + int(self.stage), *key[1:])
        coins, mechanism = SeedSequence(seed, spawn_key=key).spawn(2)
        return Generator(SFC64(coins)), Generator(SFC64(mechanism))


def flips(coins: "np.random.Generator", runs: int) -> bytes:
    """Fair coins of a per-run mechanism, eight to a byte, the first run in the highest bit."""
    return coins.bytes(-(-runs // 8))


def sides_of(flipped: bytes, runs: int) -> "Bools":
    """The side of each run (True: second), of `flips`."""
    import numpy as np

    return np.unpackbits(np.frombuffer(flipped, np.uint8), count=runs).view(np.bool_)


def calls(coins: "np.random.Generator", runs: int, batch: int, size: int = 0) -> Iterator[tuple[int, int, int]]:
    """The calls of a batched mechanism as (first run, runs, side): of each `batch` runs two, in random order.

    With `size`, calls of at most `size` runs, all of them in random order.
    """
    if size:
        ones, start = int(coins.binomial(runs, 0.5)), 0
        work = [(part, side) for side, of_side in enumerate((runs - ones, ones)) for part in parts(of_side, size)]
        for place in coins.permutation(len(work)).tolist():
            part, side = work[place]
            yield start, part, side
            start += part
        return
    for start in range(0, runs, batch):
        count = min(batch, runs - start)
        ones = int(coins.binomial(count, 0.5))
        for side in (0, 1) if coins.integers(2) else (1, 0):
            part = ones if side else count - ones
            if part:
                yield start, part, side
            start += part


def apart(seed: int) -> int:
    """A seed whose streams are independent of those of this one.

    >>> apart(7) == apart(7), apart(7) == apart(8)
    (True, False)
    """
    from numpy.random import SeedSequence

    return int(SeedSequence(seed, spawn_key=(len(Stage),)).generate_state(1, "u8")[0])


def shards(stage: Stage, pair: int, runs: int, shard_runs: int, *, start: int = 0) -> list[Shard]:
    """The fixed grid: full shards of `shard_runs`, then the remainder, numbered from `start`.

    >>> [shard.runs for shard in shards(Stage.SEARCH, 0, 2_500, 1_000)]
    [1000, 1000, 500]
    """
    return [Shard(stage, pair, start + index, size) for index, size in enumerate(parts(runs, shard_runs))]


def graded(
    stage: Stage, pair: int, runs: int, shard_runs: int, *, start: int = 0, done: int = 0, least: int = 0
) -> list[Shard]:
    """A grid that a clock may cut, after `done` earlier runs: small shards first, then each about an eighth of
    all before it, none above `shard_runs`, and, but for the last, none below `least`.

    >>> [shard.runs for shard in graded(Stage.CERTIFY, 0, 60, 1_000)]
    [12, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 6]
    """
    sizes = [part for size in growing(done, done + runs, least) for part in parts(size, shard_runs)]
    return [Shard(stage, pair, start + index, size) for index, size in enumerate(sizes)]


def growing(done: int, end: int, least: int = 0) -> list[int]:
    """Parts of the runs from `done` to `end`: a few first, then each about an eighth of all before it.

    >>> growing(0, 30), growing(30, 60)
    ([12, 4, 4, 4, 6], [4, 4, 4, 5, 5, 8])
    """
    sizes = []
    while done < end:
        size = min(end - done, max(FIRST if done == 0 else FEWEST, least, int(GROWTH * done)))
        if end - done - size < FEWEST:
            size = end - done  # no part of fewer
        sizes.append(size)
        done += size
    return sizes


def parts(runs: int, most: int) -> list[int]:
    """Runs in parts of `most`, and the remainder."""
    full, rest = divmod(runs, most)
    return [most] * full + ([rest] if rest else [])


def grouped(work: list[Shard], task_runs: int) -> Iterator[tuple[Shard, ...]]:
    """Consecutive shards grouped into tasks of at least `task_runs` runs; the content of no shard changes."""
    task: list[Shard] = []
    size = 0
    for shard in work:
        task.append(shard)
        size += shard.runs
        if size >= task_runs:
            yield tuple(task)
            task, size = [], 0
    if task:
        yield tuple(task)
