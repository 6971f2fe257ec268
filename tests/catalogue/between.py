"""An oracle for steps of normal noise that a record joins at random: the exact epsilon from both sides."""

from __future__ import annotations

from functools import lru_cache

from dpaudit.losses.distribution import ALONE, WIDTH, poisson, repeated_epsilon, step_losses

RAREST = 1e-9  # the least delta with a lower bound: below it, what the transforms add to all cells may matter


@lru_cache(maxsize=256)
def between_epsilons(
    delta: float, noise_multiplier: float, rate: float, steps: int, width: float = WIDTH
) -> tuple[float, float]:
    """Two epsilons, 5 to 6 digits alike, with the exact one of T subsampled Gaussian steps between them.

    In each step a record joins with probability `rate` and then moves the sum by one unit; the noise has
    `noise_multiplier` units. All steps are seen. The larger of the two orders, the record added and removed. For a
    delta below 1e-9 the lower one is 0: nothing is known.
    """
    joined = poisson(rate, 1.0 / noise_multiplier)
    lower = 0.0 if delta < RAREST else repeated_epsilon(delta, step_losses(joined, ALONE, "below", width), steps)
    return lower, repeated_epsilon(delta, step_losses(joined, ALONE, "above", width), steps)
