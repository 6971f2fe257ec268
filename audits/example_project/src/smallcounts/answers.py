"""Whole numbers with discrete noise: no bits of floating-point numbers leave these functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def noisy_count(rows: Sequence[object], rng: np.random.Generator, *, epsilon: float) -> int:
    """The number of rows, epsilon-DP for one row more or less."""
    return len(rows) + _noise(rng, 1.0 / epsilon)


def noisy_histogram(
    rows: Sequence[str], rng: np.random.Generator, *, bins: Sequence[str], epsilon: float
) -> dict[str, int]:
    """How often each of the bins occurs, those that do not occur too; epsilon-DP for one row more or less."""
    return {name: sum(row == name for row in rows) + _noise(rng, 1.0 / epsilon) for name in bins}


def clipped_sum(values: Sequence[int], rng: np.random.Generator, *, most: int, epsilon: float) -> int:
    """The sum of the values, each clipped to 0 ... `most`; epsilon-DP for one value more or less."""
    return sum(min(max(value, 0), most) for value in values) + _noise(rng, most / epsilon)


def _noise(rng: np.random.Generator, scale: float) -> int:
    """Discrete Laplace noise: k with a probability proportional to exp(-|k| / scale)."""
    stop = -math.expm1(-1.0 / scale)
    return int(rng.geometric(stop) - rng.geometric(stop))
