"""What a pilot's outputs, put back into the order of their runs, tell of the independence of the runs.

Each state is a function of an output and of the pilot's outputs as a set, never of their order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Reals, Words
from dpaudit.outputs.canonical import REST, Column, Path, Pilot, Wanted, is_metadata
from dpaudit.running.order import PRINTED, Looked, looked, printed, words

MOST_COLUMNS = 8
FEWEST_ALIKE = 10  # runs with the most frequent output, for it to be a state of its own
FEWEST_CONSTANT = 3  # runs of each side that must be alike before a side is called constant
MOST_IN_SERIES = 1 << 14  # first runs of each side whose values are looked for again
NEARLY = 0.9  # of the runs of a side have the same entry


@dataclass(frozen=True, slots=True)
class Constants:
    """Which sides gave one and the same output in all runs, and whether it is the same on both."""

    first: bool
    second: bool
    equal: bool

    @property
    def give_away(self) -> bool:
        """Whether every output tells its dataset: constants on both sides that differ."""
        return self.first and self.second and not self.equal


def constants(pilot: Pilot) -> Constants:
    """Whether the outputs of a side are all one output; never of fewer than `FEWEST_CONSTANT` runs."""
    codes = [words(side, side.runs, whole=True) for side in (pilot.first, pilot.second)]
    first, second = (len(side) >= FEWEST_CONSTANT and bool((side == side[0]).all()) for side in codes)
    return Constants(first, second, first and second and bool(codes[0][0] == codes[1][0]))


def looked_alike(pilot: Pilot | None) -> bool:
    """Whether all outputs of both sides are one output as far as they were looked at, whatever their rest is."""
    if pilot is None:
        return False
    first, second = (side.without((REST,)) for side in (pilot.first, pilot.second))
    return constants(replace(pilot, first=first, second=second)).equal


def nearly_constant(pilot: Pilot) -> bool:
    """Whether some entry nearly always gives the dataset away: it has one value on each side, and not the same.

    What most runs of a side have in common is their median.
    """
    for path in {*pilot.first.columns, *pilot.second.columns}:
        first, second = (_cells(side.column(path)) for side in (pilot.first, pilot.second))
        middles = [np.partition(cells, len(cells) // 2)[len(cells) // 2] for cells in (first, second) if len(cells)]
        if len(set(middles)) == 2 and min(np.mean(first == middles[0]), np.mean(second == middles[1])) >= NEARLY:
            return True
    return False


def ordered(pilot: Pilot | None) -> bool:
    """Whether the pilot knows the order of its runs."""
    return pilot is not None and bool(pilot.sizes) and len(pilot.sides) == pilot.runs


def pilot_looks(pilot: Pilot) -> list[Looked]:
    """One look for each state of each of the first columns, none of them with prints."""
    sides, nothing = _by_shard(pilot, pilot.sides), np.zeros((0, PRINTED), np.uint64)
    return [
        looked(zip(_by_shard(pilot, _in_order(pilot, *both).view(np.uint8)), sides, strict=True), nothing)
        for both in _states(pilot)
    ]


def pilot_prints(pilot: Pilot, wanted: Wanted = None) -> Words:
    """The first outputs of each shard, as words of the wanted columns."""
    marks = _in_order(pilot, *(words(side, side.runs, wanted) for side in (pilot.first, pilot.second)))
    parts = zip(_by_shard(pilot, marks), _by_shard(pilot, pilot.sides), strict=True)
    return np.stack([printed(mine[:PRINTED], where[:PRINTED]) for mine, where in parts])


def pilot_series(pilot: Pilot) -> list[list[Words]]:
    """The values of each side in the order of its runs: of the whole outputs, and of each of the first columns."""
    sides = (pilot.first, pilot.second)
    paths = _paths(pilot)
    whole = [words(side, min(side.runs, MOST_IN_SERIES)) for side in sides]
    columns = [[_cells(side.column(path))[:MOST_IN_SERIES] for side in sides] for path in paths]
    return [whole, *columns] if len(paths) > 1 else [whole]


def _paths(pilot: Pilot) -> list[Path]:
    every = {*pilot.first.columns, *pilot.second.columns}
    return sorted((path for path in every if not is_metadata(path)), key=repr)[:MOST_COLUMNS]


def _by_shard(pilot: Pilot, series: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    return np.split(series, np.cumsum(pilot.sizes)[:-1])


def _in_order(pilot: Pilot, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    whole = np.empty(len(pilot.sides), first.dtype)
    whole[~pilot.sides], whole[pilot.sides] = first, second
    return whole


def _states(pilot: Pilot) -> Iterator[tuple[Bools, Bools]]:
    for path in _paths(pilot):
        each = [list(_of_column(side.column(path))) for side in (pilot.first, pilot.second)]
        for first, second in zip(*each, strict=True):
            if not (_flat(first) and _flat(second)):
                yield first, second


def _of_column(column: Column) -> Iterator[Bools]:
    """A side's runs above its median, far from its median, and with its most frequent output."""
    codes = column.tokens
    number = codes == 0
    values = np.where(number, np.asarray(column.values, np.float64), 0.0)
    reals = values[number]
    centre = float(np.median(reals)) if len(reals) else 0.0
    yield _upper_half(values, reals, number)
    with np.errstate(invalid="ignore"):  # infinity less infinity: not far
        spread = np.nan_to_num(np.abs(values - centre), nan=0.0, posinf=np.inf)
    yield _upper_half(spread, spread[number], number)
    cells = _cells(column)
    kinds, counts = np.unique(cells, return_counts=True)
    often = len(counts) > 0 and counts.max() >= FEWEST_ALIKE
    yield cells == kinds[counts.argmax()] if often else np.zeros(len(cells), np.bool_)


def _cells(column: Column) -> Words:
    """A word for each cell: equal for equal numbers and tokens."""
    codes = column.tokens
    return np.where(codes == 0, np.asarray(column.values, np.float64) + 0.0, 0.0).view(np.uint64) ^ codes


def _upper_half(values: Reals, reals: Reals, number: Bools) -> Bools:
    """The numbers above their median, or not below it, whichever is nearer to half of them."""
    if len(reals) == 0:
        return np.zeros(len(values), np.bool_)
    middle = np.median(reals)
    strict, loose = np.mean(reals > middle), np.mean(reals >= middle)
    above = values > middle if 0.5 - strict <= loose - 0.5 else values >= middle
    return np.asarray(above & number)


def _flat(state: Bools) -> bool:
    return bool(state.all()) or not state.any()
