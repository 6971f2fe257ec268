"""The entries of an output that search looks at: all of a few; of many, those whose own values part the sides best.

All entries are screened in one pass. The runs of both sides are sorted by the entry, in random order among equals, so
that without a leak every order of the sides is equally likely (Fisher 1935). Several statistics of that order are
taken, each a z-score: parts of the runs from either end, down to a few; normal scores and their squares, for a shift
and a change of spread (van der Waerden 1952; Klotz 1962); and every value that recurs. An entry counts by its best.
"""

from collections.abc import Sequence

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Reals, Words
from dpaudit.outputs.canonical import (
    NUMBERS_IN,
    READ_AS,
    Column,
    Outputs,
    Path,
    Pilot,
    derived,
    is_entry,
    is_metadata,
)

MOST = 64  # entries that features of one and of several are made of
FEW_TEXTS = 64  # different numbers up to which the texts that they are written as say all
PIECE, FEW = 1 << 20, 8  # cells that are sorted at a time, and entries that keys are made of
PARTS, LEAST = 32, 8  # even parts of the sorted runs, and runs of the smallest at the ends
RECURS = 5  # times that a value comes
LOW, NUMBERS_END = 32, 0xFF800001  # bits below a value in a key; keys from here on are tokens


def looked_at(pilot: Pilot, both: Outputs) -> tuple[Path, ...]:
    """The paths whose values are features of their own: at most `MOST` entries, and as many lengths and the like."""
    paths = sorted(filter(_Readable(both), both.columns), key=repr)
    paths = [path for path in paths if not is_metadata(path) or varies(both.column(path))]
    groups = [[path for path in paths if is_entry(path) == entry] for entry in (True, False)]
    return tuple(path for part in groups for path in (part if len(part) <= MOST else best(pilot, part)))


def coordinates_of(both: Outputs) -> list[Path]:
    """The paths that stand for entries of the output, in their own order."""
    places = list(filter(_Readable(both), filter(is_entry, both.columns)))
    places.sort(
        key=lambda path: [(isinstance(step, str), step if isinstance(step, int) else 0, str(step)) for step in path]
    )
    return places


def unpaired(both: Outputs) -> int:
    """The entries that statistics and sums look at, and features of several do not."""
    return max(0, sum(map(is_entry, both.columns)) - MOST)


def varies(column: Column) -> bool:
    """Whether a column has more than one value."""
    tokens = column.tokens
    if len(tokens) == 0 or np.any(tokens != tokens[0]):
        return len(tokens) > 0
    if tokens[0] != 0:
        return False
    values = column.values
    return bool(np.any(values != values[0]))


class _Readable:
    """Whether what a text says is worth a look: not where texts recur, for then these say it, nor few numbers."""

    def __init__(self, both: Outputs) -> None:
        self.both = both
        self.known: dict[Path, int] = {}

    def __call__(self, path: Path) -> bool:
        if not derived(path):
            return True
        place = next(place for place, step in enumerate(path) if str(step).startswith(READ_AS))
        text = path[:place]
        if text not in self.known:
            self.known[text] = len(np.unique(self.both.column(text).tokens))
        return self.known[text] > (FEW_TEXTS if path[place] in NUMBERS_IN else self.both.runs // 2)


def best(pilot: Pilot, paths: Sequence[Path], most: int = MOST) -> list[Path]:
    """The paths whose columns part the sides best, in the order given."""
    order = np.argsort(-screened(pilot, paths), kind="stable")[:most]
    return [paths[place] for place in sorted(order.tolist())]


def screened(pilot: Pilot, paths: Sequence[Path]) -> Reals:
    """How far the columns at these paths part the sides, in standard deviations of luck: float64[paths]."""
    runs = pilot.runs
    if not len(paths) or min(pilot.first.runs, pilot.second.runs) < 2:
        return np.zeros(len(paths))
    second = np.repeat(np.array([0, 1], np.uint64), [pilot.first.runs, pilot.second.runs])
    shuffled = np.random.default_rng(0).permutation(runs).astype(np.uint64)
    low, size = shuffled << np.uint64(1) | second, max(1, PIECE // runs)
    pieces = [paths[start : start + size] for start in range(0, len(paths), size)]
    scores = []
    for piece in pieces:
        keys = np.empty((len(piece), runs), np.uint64)
        few = [slice(start, start + FEW) for start in range(0, len(piece), FEW)]  # what is beside the keys is as large
        for some in few:
            keys[some] = _keys(pilot, piece[some])
        keys <<= np.uint64(LOW)
        keys |= low  # the last bit is the side
        keys.sort(axis=1)
        sides = (keys & np.uint64(1)).view(np.int64)
        keys >>= np.uint64(LOW)
        recurring = [_of_values(sides[some], keys[some, 1:] == keys[some, :-1], pilot.second.runs) for some in few]
        scores.append(np.maximum(_of_ranks(sides, pilot.second.runs), np.concatenate(recurring)))
    return np.concatenate(scores)


def _keys(pilot: Pilot, paths: Sequence[Path]) -> Words:
    """The cells as whole numbers below 2^32 in the same order, tokens above all numbers: uint64[paths, runs]."""
    values = np.concatenate([side.numbers(paths) for side in (pilot.first, pilot.second)], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = np.nan_to_num(np.median(values[:, :: max(1, values.shape[1] // 64)], axis=1), posinf=0.0, neginf=0.0)
        missing = np.isnan(values)
        values -= centre[:, None]
        bits = (values.astype(np.float32) + np.float32(0.0)).view(np.uint32)
    keys = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    keys[missing] = NUMBERS_END
    for row, path in zip(keys, paths, strict=True):
        columns = pilot.first.column(path), pilot.second.column(path)
        if any(column.codes is not None for column in columns):
            codes = np.concatenate([column.tokens for column in columns])
            row[codes != 0] = NUMBERS_END + (codes[codes != 0] >> np.uint64(42))
    return np.asarray(keys)


def _of_ranks(sides: Integers, seconds: int) -> Reals:
    """Of parts from either end, and of normal scores and their squares."""
    from scipy.special import ndtri

    runs = sides.shape[1]
    ends = LEAST << np.arange(max(0, int(np.log2(max(1, runs // PARTS) / LEAST)) + 1))
    inner = np.concatenate([np.arange(1, PARTS) * runs // PARTS, ends, runs - ends])
    cuts = np.unique(np.concatenate([[0], inner[(inner > 0) & (inner < runs)]]))
    sizes, hits = np.diff(np.append(cuts, runs)).astype(np.float64), np.add.reduceat(sides, cuts, axis=1)
    before, share = np.cumsum(sizes), seconds / runs
    luck = share * (1.0 - share) * runs / (runs - 1.0)
    part = before[:-1]
    z = [np.abs(np.cumsum(hits, axis=1)[:, :-1] - share * part) / np.sqrt(luck * part * (1.0 - part / runs))]
    normal = ndtri((before - sizes / 2.0) / runs)
    for scores in (normal, normal**2):
        centred = scores - (sizes @ scores) / runs
        z.append(np.abs(hits @ centred)[:, None] / np.sqrt(luck * (sizes @ centred**2) + 1e-300))
    return np.asarray(np.concatenate(z, axis=1).max(axis=1))


def _of_values(sides: Integers, same: Bools, seconds: int) -> Reals:
    """Of the values that recur."""
    rows, runs = sides.shape
    best = np.zeros(rows)
    change = np.ones(sides.shape, np.bool_)
    change[:, 1:] = ~same
    starts = np.flatnonzero(change)
    times = np.diff(np.append(starts, change.size))
    often = (times >= RECURS) & (times < runs)
    if not often.any():
        return best
    starts, times = starts[often], times[often]
    hits = np.zeros(sides.size + 1, np.int64)
    np.cumsum(sides, out=hits[1:])
    share = seconds / runs
    luck = share * (1.0 - share) * times * (runs - times) / (runs - 1.0)
    z = np.abs(hits[starts + times] - hits[starts] - share * times) / np.sqrt(luck)
    np.maximum.at(best, starts // runs, z)
    return best
