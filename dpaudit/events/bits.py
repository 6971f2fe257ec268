"""Features on the binary form of floating-point outputs: what rounding to float32 hides from all other features.

A sum f(x) + noise of doubles is rounded to the grid of the sum, while the noise lies on the grid of its own size
(Mironov 2012, On significance of the least significant bits for differential privacy). So the last set bit of the
sum, or how its last bits fall where ties round to even, tells f(x). Every number here is a property of the value
alone: a float32 and the double of the same value look alike.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Reals, Words
from dpaudit.events.features import OfPath, OfPaths, rounded, spell
from dpaudit.outputs.canonical import NOT_A_NUMBER, Column, Outputs, Path, Token, token

Ints = npt.NDArray[np.int32]

ZERO = 1024  # stands for the exponents of 0, above those of all other numbers
NOT_FINITE = 1025  # and of infinities and NaN
MOST_ZEROS = 3  # trailing zeros that are distinguished
BITS, ROUNDED = 64, 29  # bits of a double, and the last of them, which rounding to float32 takes away

_MANTISSA, _IMPLICIT = np.uint64((1 << 52) - 1), np.uint64(1 << 52)


def exponents(values: npt.NDArray[np.generic]) -> tuple[Ints, Ints]:
    """The exponents of the first and of the last set bit of each number: |x| = 2^first + ... + 2^last.

    0 has `ZERO` for both, infinities and NaN have `NOT_FINITE`. About 3 ns a number.

    >>> [part.tolist() for part in exponents(np.array([1.0, 0.75, -10.0, 0.0]))]
    [[0, -1, 3, 1024], [0, -2, 1, 1024]]
    """
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    field = (bits >> np.uint64(52)).astype(np.int32)
    field &= 0x7FF
    lowest = bits | _IMPLICIT
    lowest &= ~lowest + np.uint64(1)
    last = (lowest.astype(np.float32).view(np.int32) >> 23) + field  # a power of two, so no float32 rounds it
    last -= 127 + 1075
    first = field - 1023
    if len(field) and (int(field.min()) == 0 or int(field.max()) == 0x7FF):
        first[field == 0x7FF] = last[field == 0x7FF] = NOT_FINITE
        rows = np.flatnonzero(field == 0)
        small = bits[rows] & _MANTISSA  # below the normal numbers there is no implicit bit
        top = np.frexp(small.astype(np.float64))[1] - 1
        low = np.frexp((small & (~small + np.uint64(1))).astype(np.float64))[1] - 1
        first[rows] = np.where(small == 0, ZERO, top - 1074)
        last[rows] = np.where(small == 0, ZERO, low - 1074)
    return first, last


@dataclass(frozen=True, slots=True)
class LowestBit(OfPaths, kind="lowest-bit"):
    """The exponent of the last set bit of a number, the least of several where there are several `paths`.

    So "above -54" reads "a multiple of 2^-53". 0, a multiple of everything, has 1024; what is no finite number has
    none, and keeps its token where it stands alone.
    """

    paths: tuple[Path, ...] = ((),)

    def column(self, outputs: Outputs) -> Column:
        return _least(outputs, self.paths, 1)

    def __str__(self) -> str:
        if len(self.paths) == 1:
            return f"exponent of the last set bit of {spell(self.paths[0])}"
        return f"least exponent of a last set bit among {len(self.paths)} numbers of output"


@dataclass(frozen=True, slots=True)
class FirstBit(OfPaths, kind="first-bit"):
    """The exponent of the first set bit, the least of several: what the size of a number says of its last bit."""

    paths: tuple[Path, ...] = ((),)

    def column(self, outputs: Outputs) -> Column:
        return _least(outputs, self.paths, 0)

    def __str__(self) -> str:
        return f"exponent of {spell(self.paths[0]) if len(self.paths) == 1 else 'output'}"


@dataclass(frozen=True, slots=True)
class TrailingZeros(OfPath, kind="trailing-zeros"):
    """How many zeros end the significand of `width` bits (at the last: `MOST_ZEROS` or more), and in which part of the
    line, cut at `edges`, the number lies: one token for each combination. An edge belongs to the part above it.
    """

    path: Path = ()
    edges: tuple[float, ...] = ()
    width: int = 53

    def column(self, outputs: Outputs) -> Column:
        column = outputs.column(self.path)
        first, last = exponents(column.values)
        zeros = last - first
        zeros += self.width - 1
        np.clip(zeros, 0, MOST_ZEROS, out=zeros)
        zeros[last == ZERO] = MOST_ZEROS
        part = _parts(column, self.edges)
        part *= MOST_ZEROS + 1
        part += zeros
        codes = _codes(self.edges)[part]
        codes[last == NOT_FINITE] = NOT_A_NUMBER.code
        if column.codes is not None:
            codes = np.where(column.codes != 0, column.codes, codes)
        return Column(np.broadcast_to(np.float32(np.nan), (outputs.runs,)), codes)

    def labels(self) -> dict[int, str]:
        """What people read for each code."""
        return dict(zip(_codes(self.edges).tolist(), _names(self.edges), strict=True))

    def off(self, tokens: Iterable[Token]) -> tuple[int, int] | None:
        """The least k so that no number of these tokens is a multiple of 2^k, and of how many tokens that is known.

        A number below 2^e in size, whose `width` bits end in z zeros, has its last set bit below 2^(e-width+z+1).

        >>> TrailingZeros(edges=(0.5, 1.0)).off([token("bits", "0.5 <= x < 1 ending in 10")])
        (-51, 1)
        """
        places, edges = {code: place for place, code in enumerate(self.labels())}, (-math.inf, *self.edges, math.inf)
        bounds = []
        for each in tokens:
            part, zeros = divmod(places.get(each.code, MOST_ZEROS), MOST_ZEROS + 1)
            size = max(abs(edges[part]), abs(edges[part + 1]))
            if zeros < MOST_ZEROS and size < math.inf:
                bounds.append(math.ceil(math.log2(size)) - self.width + zeros + 1)
        return (max(bounds), len(bounds)) if bounds else None

    def __str__(self) -> str:
        return f"{spell(self.path)} as {self.width} bits"


@dataclass(frozen=True, slots=True)
class LinePart(OfPath, kind="part"):
    """In which part of the line a number lies: `TrailingZeros` without the zeros."""

    path: Path = ()
    edges: tuple[float, ...] = ()

    def column(self, outputs: Outputs) -> Column:
        column = outputs.column(self.path)
        parts = _parts(column, self.edges).astype(np.float32)
        parts[~np.isfinite(column.values)] = np.nan
        return Column(parts, column.codes)

    def __str__(self) -> str:
        return f"part of the line that holds {spell(self.path)}"


@dataclass(frozen=True, slots=True)
class OnGrid(OfPath, kind="on-grid"):
    """1 where a number is exactly the float nearest to a multiple of `step`, 0 where it is not."""

    path: Path = ()
    step: float = 1.0

    def column(self, outputs: Outputs) -> Column:
        column = outputs.column(self.path)
        values = column.values.astype(np.float64, copy=False)
        with np.errstate(invalid="ignore", over="ignore"):
            on = (np.rint(values / self.step) * self.step == values).astype(np.float32)
        on[~np.isfinite(values)] = np.nan
        return Column(on, column.codes)

    def __str__(self) -> str:
        return f"({spell(self.path)} is a float multiple of {self.step!r})"


@dataclass(frozen=True, slots=True)
class BitScore(OfPath, kind="bit-score"):
    """A weighted sum of the 64 bits of a double, from the last bit on: a linear classifier of them."""

    path: Path = ()
    weights: tuple[float, ...] = ()

    def column(self, outputs: Outputs) -> Column:
        column = outputs.column(self.path)
        total = np.zeros(outputs.runs)
        for weight, bit in zip(self.weights, bits_of(column.values), strict=False):
            total += weight * bit
        total[~np.isfinite(column.values)] = np.nan
        return rounded(Column(total, column.codes))

    def __str__(self) -> str:
        return f"linear score of the {BITS} bits of {spell(self.path)}"


def bits_of(values: npt.NDArray[np.generic]) -> Iterator[Words]:
    """The bits of numbers as doubles, from the last on: 64 times uint64[numbers], each 0 or 1."""
    words = np.ascontiguousarray(values, np.float64).view(np.uint64)
    return ((words >> np.uint64(place)) & np.uint64(1) for place in range(BITS))


def _parts(column: Column, edges: tuple[float, ...]) -> Ints:
    """The number of edges that each number has reached."""
    values: Reals = column.values.astype(np.float64, copy=False)
    part = np.zeros(len(values), np.int32)
    for edge in edges:  # quicker than a search for so few
        part += values >= edge
    return part


def _least(outputs: Outputs, paths: tuple[Path, ...], which: int) -> Column:
    """The least exponent of the first bit (`which` 0) or the last (1) at the paths; NaN where none is finite."""
    least = np.full(outputs.runs, NOT_FINITE, np.int32)
    for path in paths:
        np.minimum(least, exponents(outputs.column(path).values)[which], out=least)
    numbers = least.astype(np.float32)
    numbers[least == NOT_FINITE] = np.nan
    return Column(numbers, outputs.column(paths[0]).codes if len(paths) == 1 else None)


KINDS: tuple[type[LowestBit | TrailingZeros | OnGrid | BitScore], ...] = (LowestBit, TrailingZeros, OnGrid, BitScore)


@lru_cache(maxsize=64)
def _names(edges: tuple[float, ...]) -> tuple[str, ...]:
    names = []
    for part in range(len(edges) + 1):
        low = f"{edges[part - 1]:g} <= " if part else ""
        high = f" < {edges[part]:g}" if part < len(edges) else ""
        names += [
            f"{low}x{high} ending in {'1' if zeros < MOST_ZEROS else ''}{'0' * zeros}"
            for zeros in range(MOST_ZEROS + 1)
        ]
    return tuple(names)


@lru_cache(maxsize=64)
def _codes(edges: tuple[float, ...]) -> Words:
    return np.array([token("bits", name).code for name in _names(edges)], np.uint64)
