"""The features on bits that outputs deserve, and their cells."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.events.bits import ZERO, FirstBit, LinePart, LowestBit, OnGrid, TrailingZeros, exponents
from dpaudit.events.cells import Binning
from dpaudit.events.features import Feature
from dpaudit.events.search.binning import binning
from dpaudit.outputs import NOT_A_NUMBER, Column, Outputs

MOST = 16  # coordinates of an output that are looked at
SEGMENTS = 16  # of equal mass, cut again at powers of two


def bit_features(both: Outputs) -> Iterator[Feature]:
    """The features on bits that the outputs of a pilot deserve; none for text, integers, or whole numbers."""
    places = [path for path in sorted(both.columns, key=repr) if _is_fractional(both.column(path))][:MOST]
    for path in places:
        yield LowestBit((path,))
        numbers = _finite(both.column(path))
        first, last = exponents(numbers)
        there = last != ZERO
        yield TrailingZeros(path, _edges(numbers), int(np.max(first[there] - last[there])) + 1)
        for step in _steps(numbers):
            yield OnGrid(path, step)
    if len(places) > 1:
        yield LowestBit(tuple(places))


def without_bits(feature: Feature) -> Feature | None:
    """What is left of a feature once the last bits are taken out of it: the size or place of the number alone."""
    if isinstance(feature, LowestBit):
        return FirstBit(feature.paths)
    return LinePart(feature.path, feature.edges) if isinstance(feature, TrailingZeros) else None


def bit_binning(feature: Feature, both: Outputs) -> Binning:
    """The cells of a feature on bits, each with its label."""
    labels = feature.labels() if isinstance(feature, TrailingZeros) else {}
    return binning(feature.column(both), {**both.labels, **labels, NOT_A_NUMBER.code: "no finite number"})


def _finite(column: Column) -> Reals:
    numbers: Reals = column.values[column.tokens == 0].astype(np.float64)
    return numbers[np.isfinite(numbers)]


def _is_fractional(column: Column) -> bool:
    numbers = _finite(column)
    return bool(np.any(numbers != np.rint(numbers)))


def _edges(numbers: Reals) -> tuple[float, ...]:
    """Borders of parts of equal mass, short enough to read, and the powers of two among them."""
    ranks = np.linspace(0.0, 1.0, SEGMENTS + 1)[1:-1]
    cuts = {float(f"{cut:.3g}") for cut in np.quantile(numbers, ranks)}
    inner = np.abs(np.quantile(numbers, [0.001, 0.999]))
    largest = math.frexp(max(float(inner.max()), 1e-300))[1]
    powers = [sign * math.ldexp(1.0, k) for k in range(largest - 6, largest) for sign in (-1.0, 1.0)]
    low, high = float(numbers.min()), float(numbers.max())
    return tuple(sorted(cut for cut in {*cuts, *powers} if low < cut < high))


def _steps(numbers: Reals) -> Iterator[float]:
    """The step of a grid that the numbers lie on, but for rounding; none where they do not recur on one.

    Powers of two are left out: there the last set bit says all.
    """
    scale = float(np.max(np.abs(numbers)))
    if scale == 0.0 or not math.isfinite(scale * 1e9):
        return
    gaps = np.diff(np.unique(numbers))
    gaps = gaps[gaps > 1e-9 * scale]
    if len(gaps) == 0 or 2 * (len(gaps) + 1) > len(numbers):
        return
    least = float(gaps.min())
    with np.errstate(over="ignore"):
        beside = numbers / least - np.rint(numbers / least)
    if float(np.max(np.abs(beside))) > 1e-3:
        return
    for step in dict.fromkeys((float(f"{least:.9g}"), least)):
        if math.frexp(step)[0] != 0.5:
            yield step
