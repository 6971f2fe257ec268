"""Textbook noise in numpy's floats: what the bits of a sum give away, and three ways not to give it away.

numpy promises nothing of privacy. The claims are the textbook's, for noise that is a real number; the rows say what is
left of them where the noise is a double. `laplace` has scale 1, and answers that move by 1: epsilon is 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import dpaudit

Floats = npt.NDArray[np.floating]
Rng = np.random.Generator
SIGMA = 4.0  # (1, 1e-5) of answers that move by 1: the analytic Gaussian asks for 3.73


def _laplace(value: float, runs: int, rng: Rng) -> Floats:
    return value + rng.laplace(size=runs)


def _gaussian(value: float, runs: int, rng: Rng) -> Floats:
    return value + SIGMA * rng.standard_normal(runs)


def _inverse(value: float, runs: int, rng: Rng) -> Floats:
    uniform = rng.random(runs) - 0.5
    return value - np.sign(uniform) * np.log1p(-2.0 * np.abs(uniform))


def _box_muller(value: float, runs: int, rng: Rng) -> Floats:
    radius = np.sqrt(-2.0 * np.log1p(-rng.random(runs)))
    return value + SIGMA * radius * np.cos(2.0 * np.pi * rng.random(runs))


def _exponentials(value: float, runs: int, rng: Rng) -> Floats:
    return value + (rng.exponential(size=runs) - rng.exponential(size=runs))


def _single(value: float, runs: int, rng: Rng) -> Floats:
    return np.float32(value) + rng.laplace(size=runs).astype(np.float32)


def _single_gaussian(value: float, runs: int, rng: Rng) -> Floats:
    return np.float32(value) + np.float32(SIGMA) * rng.standard_normal(runs, dtype=np.float32)


def _clamped(value: float, runs: int, rng: Rng) -> Floats:
    return np.clip(_laplace(value, runs, rng), 0.0, 1.0)


def _fine_grid(value: float, runs: int, rng: Rng) -> Floats:
    return value + np.rint(1024.0 * rng.laplace(size=runs)) / 1024.0


def _snapped(value: float, runs: int, rng: Rng) -> Floats:
    clamped = np.clip(value, -100.0, 100.0)
    return np.clip(np.rint(clamped + rng.laplace(size=runs)), -100.0, 100.0)


def _two_geometrics(value: int, runs: int, rng: Rng) -> npt.NDArray[np.int64]:
    chance = -np.expm1(-1.0)
    return value + rng.geometric(chance, runs) - rng.geometric(chance, runs)


def _clipped_sum(records: list[float], runs: int, rng: Rng, *, lower: float, upper: float) -> Floats:
    total = np.clip(np.array(records), lower, upper).sum()
    return total + rng.laplace(scale=upper - lower, size=runs)


def _shifted_sum(records: list[float], runs: int, rng: Rng, *, lower: float, upper: float) -> Floats:
    """The same sum, of what is above the lower bound: no addition rounds, so the range is the sensitivity."""
    total = (np.clip(np.array(records), lower, upper) - lower).sum()
    return np.rint(total + rng.laplace(scale=upper - lower, size=runs))


laplace, gaussian = dpaudit.batched(_laplace), dpaudit.batched(_gaussian)
inverse, box_muller = dpaudit.batched(_inverse), dpaudit.batched(_box_muller)
exponentials, clamped = dpaudit.batched(_exponentials), dpaudit.batched(_clamped)
single, single_gaussian = dpaudit.batched(_single), dpaudit.batched(_single_gaussian)
fine_grid, snapped, two_geometrics = map(dpaudit.batched, (_fine_grid, _snapped, _two_geometrics))
clipped_sum, shifted_sum = dpaudit.batched(_clipped_sum), dpaudit.batched(_shifted_sum)


def exponential(scores: list[float], rng: Rng, *, epsilon: float) -> int:
    """The exponential mechanism as its formula reads: weights exp(epsilon score / 2), divided by their sum."""
    weights = np.exp(0.5 * epsilon * np.array(scores))
    return int(rng.choice(len(scores), p=weights / weights.sum()))


def exponential_from_the_best(scores: list[float], rng: Rng, *, epsilon: float) -> int:
    """The same, of what each score lacks to the best."""
    return exponential([score - max(scores) for score in scores], rng, epsilon=epsilon)


def beside_the_grid_of_doubles(output: float) -> bool:
    """The output is not a multiple of 2^-53."""
    return float(output) * 2.0**53 % 1.0 != 0.0


def beside_the_grid_of_singles(output: float) -> bool:
    """The output is not a multiple of 2^-24."""
    return float(output) * 2.0**24 % 1.0 != 0.0


def above_the_middle(output: float) -> bool:
    """The output is above 2^56 + 8, in the middle of the two sums."""
    return output > 2.0**56 + 8.0


def was_raised(output: object) -> bool:
    """The run ended in an exception."""
    return isinstance(output, Exception)


def one_lower() -> tuple[list[float], list[float]]:
    """Sixteen records at the upper bound, or fifteen and one at the lower."""
    upper = 2.0**52 + 1.0
    return [upper] * 16, [upper] * 15 + [2.0**52]


def another_order() -> tuple[list[float], list[float]]:
    """The same sixteen records, sorted or not."""
    records = [2.0**52 + each for each in (0.0, 1.0, 2.0, 3.0)] * 4
    return records, sorted(records)
