"""The order of runs inside a shard, as integers that health checks look at and a bound never does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpaudit.base.arrays import Bools, Bytes, Integers, Words
from dpaudit.outputs.canonical import (
    ABSENT,
    NOT_A_NUMBER,
    Codes,
    Columns,
    Numbers,
    Outputs,
    Path,
    Wanted,
    derived,
    is_metadata,
    mixed,
    token,
)

QUARTERS = 4
QUADS = 256  # patterns of four runs in a row, two bits each
PAIRINGS = 16  # patterns of two runs
AT_ONCE = 1 << 18  # cells of wide outputs whose words are made together
PRINTED = 256  # first runs of a shard, of each of which a word stands for the output
SIZES = (2 * QUARTERS, 2 * QUARTERS, QUADS, 2 * PAIRINGS, PRINTED)  # integers of the order, as they are packed
ORDER = sum(SIZES)
PRINTED_SHARDS = 256  # first shards that have these words: a worker's first task is among them
CALLS, OF_CALL = 4, 1 << 11  # first calls of a batched shard, and first runs of each, that are compared with each other
WATCHED_IN_CALLS = 1 << 15  # first runs of a batched shard whose patterns are counted: all would cost half a draw


@dataclass(frozen=True, slots=True)
class Looked:
    """Counts of shards about the order of their runs; the axes are shards, quarters of a shard, sides.

    `hits` and `runs` are int64[shards, 4, 2]; `quads` int64[256] the patterns of four runs in a row (bits of run k:
    hit 2k, side 2k + 1); `calls` int64[2, 16] those of two calls run by run (in pairs from the first call on, from the
    second one on); `prints` uint64[shards, 256] the first outputs, the side in the last bit (0: no run),
    made of the paths in `wanted` (None: all).
    """

    hits: Integers
    runs: Integers
    quads: Integers
    calls: Integers
    prints: Words
    wanted: Wanted = None


def summary(
    inside: Bytes,
    sides: Bools,
    calls: Iterable[tuple[int, int]] = (),
    watched: int | None = None,
    part: tuple[int, int] | None = None,
) -> tuple[Integers, Integers, Integers, Integers]:
    """Hits and runs by quarter and side, patterns of four runs, patterns of calls; of 0-1 states in run order.

    `part`: of the runs from one place to another, which are whole fours but for the last.
    """
    start, stop = part or (0, len(sides))
    cuts = [min(max(start, len(sides) * quarter // QUARTERS), stop) for quarter in range(QUARTERS + 1)]
    seen = slice(start, stop if watched is None else min(stop, watched))
    return (
        _quarters(inside, sides, cuts),
        _quarters(np.ones_like(inside), sides, cuts),
        _quads(inside[seen], sides[seen]),
        _calls(inside, sides, list(calls)),
    )


def looked(parts: Iterable[tuple[Bytes, Bools]], prints: Words) -> Looked:
    """The same of 0-1 states and sides in memory, a part for each shard."""
    summaries = [summary(inside, sides) for inside, sides in parts]
    hits, runs, quads, calls = (np.array(each) for each in zip(*summaries, strict=True))
    return Looked(hits, runs, quads.sum(axis=0), calls.sum(axis=0), prints)


def printed(first: Words, sides: Bools) -> Words:
    """The words of the first runs with the side in the last bit, never 0, filled up with zeros."""
    marked = np.zeros(PRINTED, np.uint64)
    marked[: len(first)] = first & ~np.uint64(3) | np.uint64(2) | sides[: len(first)].astype(np.uint64)
    return marked


def words(outputs: Outputs, count: int, wanted: Wanted = None, *, whole: bool = False) -> Words:
    """A 64-bit word for each of the first `count` outputs, of the columns that are wanted (None: of all).

    Equal outputs give equal words, in every process; types and other metadata of a value make no difference,
    except where they are wanted by name, or words are of the `whole` output.
    """
    total = np.zeros(count, np.uint64)
    columns = outputs.columns
    # columns derived from a text add nothing to the text
    paths = [path for path in columns if (not derived(path) if wanted is None else path in wanted)]
    paths = paths if whole or wanted is not None else [path for path in paths if not is_metadata(path)]
    if isinstance(columns, Columns):
        wide = [path for path in paths if path in columns.places]
        paths = [path for path in paths if path in columns.loose]
        size = max(1, AT_ONCE // max(1, count))
        for part in (wide[start : start + size] for start in range(0, len(wide), size)):
            total += _salted(outputs.numbers(part, slice(count)), None, part).sum(axis=0, dtype=np.uint64)
    for path in paths:
        column = columns[path]
        total += _salted(column.values[:count], None if column.codes is None else column.codes[:count], [path])[0]
    return total


def _salted(values: Numbers, codes: Codes | None, paths: Sequence[Path]) -> Words:
    """The words of cells, uint64[paths, runs]: those that are absent have none."""
    numbers = np.atleast_2d(np.asarray(values, np.float64)) + 0.0  # -0.0 is 0.0
    tokens = np.where(np.isnan(numbers), np.uint64(NOT_A_NUMBER.code), np.uint64(0))
    if codes is not None:
        tokens = np.where(codes != 0, codes, tokens)
    cell = np.where(tokens == 0, numbers, 0.0).view(np.uint64) ^ tokens
    salts = np.array([token("path", repr(path)).code for path in paths], np.uint64)
    hashes = mixed(cell ^ salts[:, None])
    return np.where(tokens == np.uint64(ABSENT.code), np.uint64(0), hashes)  # no column is a column of absences


def packed(
    inside: Bytes,
    sides: Bools,
    words: Words,
    calls: Iterable[tuple[int, int]] = (),
    watched: int | None = None,
    part: tuple[int, int] | None = None,
) -> Integers:
    """All integers of a shard, `ORDER` of them: its 0-1 states and sides in run order, and the first words.

    Those of its parts add up to them.
    """
    counts, marked = summary(inside, sides, calls, watched, part), printed(words, sides)
    if part is not None:
        marked[: part[0]] = marked[part[1] :] = 0
    return np.concatenate([*(each.ravel() for each in counts), marked.view(np.int64)])


def unpacked(table: Integers, wanted: Wanted = None) -> Looked:
    """The integers of shards, one a row, as `packed` gives them; made of the paths in `wanted`."""
    hits, runs, quads, calls, prints = np.split(table, np.cumsum(SIZES)[:-1], axis=1)
    return Looked(
        hits.reshape(-1, QUARTERS, 2),
        runs.reshape(-1, QUARTERS, 2),
        quads.sum(axis=0),
        calls.sum(axis=0).reshape(2, PAIRINGS),
        np.ascontiguousarray(prints).view(np.uint64),
        wanted,
    )


def _quarters(inside: Bytes, sides: Bools, cuts: list[int]) -> Integers:
    hits = inside.view(np.bool_)
    counts = [
        (np.count_nonzero(hits[low:high]), np.count_nonzero(hits[low:high] & sides[low:high]))
        for low, high in pairwise(cuts)
    ]
    return np.array([(all_ - second, second) for all_, second in counts], np.int64)


def _quads(inside: Bytes, sides: Bools) -> Integers:
    """How often each pattern of four runs in a row occurs; the fours do not overlap."""
    whole = len(sides) // 4 * 4
    codes = sides[:whole].view(np.uint8) << np.uint8(1)
    codes |= inside[:whole]
    # four bytes of two bits each are gathered in the highest byte; no two products share a bit, so there is no carry
    gathered = codes.view("<u4") * np.uint32(0x01041040)
    return np.bincount(gathered.astype("<u4", copy=False).view(np.uint8)[3::4], minlength=QUADS)


def _calls(inside: Bytes, sides: Bools, calls: list[tuple[int, int]]) -> Integers:
    """Patterns of two calls in a row, run by run: (first, second), (third, fourth); then (second, third)."""
    counts = np.zeros((2, PAIRINGS), np.int64)
    for place, ((one, runs), (other, more)) in enumerate(pairwise(calls)):
        count = min(runs, more, OF_CALL)
        codes = [
            inside[start : start + count] | sides[start : start + count].view(np.uint8) << 1 for start in (one, other)
        ]
        counts[place % 2] += np.bincount(codes[0] | codes[1] << 2, minlength=PAIRINGS)
    return counts
