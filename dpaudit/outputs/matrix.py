"""Many numbers of one output: the paths of their entries, those that are wanted, and one matrix for all of them."""

import itertools
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.outputs.canonical import Numbers, Path

Wanted = frozenset[Path] | None
WIDEST = 1 << 16  # entries of an array or list that are looked at; of lists in lists see `Builder._add_sequences`
NARROW = 64  # entries up to which each is a column of its own; more of them are a matrix
EXACT = 2.0**53  # doubles hold all integers up to here
PIECE = 1 << 9  # runs whose entries are put into a matrix at a time


def reals(numbers: Numbers) -> Numbers:
    """The numbers as floats, through doubles, so that an integer is rounded alike whatever stands beside it."""
    return numbers if numbers.dtype in (np.float64, np.float32) else numbers.astype(np.float64)


@lru_cache(maxsize=16)
def positions(shape: tuple[int, ...], path: Path = (), wanted: Wanted = None) -> Mapping[Path, int]:
    """The paths of the first entries of an array of this shape, those that are wanted, and their places in it."""
    first = itertools.islice(np.ndindex(*shape), WIDEST)
    every = {(*path, *map(int, index)): place for place, index in enumerate(first)}
    return every if wanted is None else {each: every[each] for each in every if each in prefixes(wanted)}


@lru_cache(maxsize=64)
def prefixes(wanted: frozenset[Path]) -> frozenset[Path]:
    """The wanted paths, and what leads to them."""
    return frozenset(want[:length] for want in wanted for length in range(len(want) + 1))


def as_matrix(flat: Numbers, places: Mapping[Path, int]) -> tuple[Mapping[Path, int], Numbers]:
    """The wanted entries of flat[runs, entries] as new rows of one matrix, and the row of each path."""
    chosen = list(places.values())
    matrix = np.empty((len(chosen), len(flat)), reals(flat[:0]).dtype)
    for start in range(0, len(flat), PIECE):  # so that a piece stays in cache while it is turned
        piece = flat[start : start + PIECE]
        matrix[:, start : start + PIECE] = (piece if len(chosen) == flat.shape[1] else piece[:, chosen]).T
    return (places if len(chosen) == flat.shape[1] else {path: row for row, path in enumerate(places)}), matrix


def flat_lists(members: Sequence[Any]) -> tuple[Numbers, set[type]] | None:
    """Lists of one length as a matrix, where all entries are plain numbers that doubles hold, and their types."""
    kinds = set(map(type, itertools.chain.from_iterable(members)))
    if not kinds <= {float, int, bool}:
        return None
    try:
        found = np.array([list(map(float, each)) for each in members])
    except OverflowError:  # beyond the range of floats
        return None
    return None if int in kinds and (np.abs(found) >= EXACT).any() else (found, kinds)
