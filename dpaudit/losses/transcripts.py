"""Exact losses of a few steps, each of which depends on what was seen before.

Given the past, a step is normal noise of standard deviation 1 around 0, and with the record, at some rate, around a
shift; rate and shift are functions of the past. The last step has a closed form, the steps before it are a sum over
a grid: the trapezoid rule, which for such integrands gains digits exponentially with the nodes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Reals

Law = Callable[[list[Reals]], tuple[Reals, Reals]]

SPACING, FINE = 0.45, 0.08  # of the grid, in deviations of the noise; the step before the last one meets a corner
REACH = 6.5  # deviations beyond the outermost centre: 1e-10 is left out
FAINT = 1e-13  # of all probability: pasts rarer than that, with the record and without it, are left out
SMALLEST = 1e-9  # of a shift, so that dividing by it is harmless


@dataclass(frozen=True, slots=True)
class Past:
    """All that may be seen before the last step: log ratios, probabilities without the record, and the law to come."""

    log_ratio: Reals
    chance: Reals
    rate: Reals
    shift: Reals


def pasts(steps: int, law: Law, largest: float) -> Past:
    """The grid of pasts. `law(seen)` gives rate and shift of the next step from the outputs so far, 0 to `largest`."""
    axes = [np.arange(-REACH, REACH + largest, width) for width in [SPACING] * (steps - 2) + [FINE] * (steps > 1)]
    seen = [column.ravel() for column in np.meshgrid(*axes)]
    volume = math.prod(float(axis[1] - axis[0]) / math.sqrt(2.0 * math.pi) for axis in axes)
    log_ratio, log_chance = np.zeros(()), np.asarray(math.log(volume))
    for place, output in enumerate(seen):
        rate, shift = law(seen[:place])
        log_ratio = log_ratio + np.log1p(rate * np.expm1(output * shift - shift**2 / 2.0))
        log_chance = log_chance - output**2 / 2.0
    kept = np.exp(log_chance) * (1.0 + np.exp(log_ratio)) > FAINT / log_chance.size
    columns = np.broadcast_arrays(log_ratio, np.exp(log_chance), *law(seen))
    ratio, chance, rate, shift = (column[kept] for column in columns)
    return Past(ratio, chance, rate, np.maximum(shift, SMALLEST))


def transcript_delta(epsilon: float, past: Past) -> float:
    """The least delta at an epsilon: the larger of the two orders."""
    from scipy.special import ndtr

    def threshold(level: Reals) -> Reals:
        """Where the ratio of the last step reaches a level; minus infinity where it is never below."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log((level - 1.0 + past.rate) / past.rate) / past.shift + past.shift / 2.0
        return np.where(level > 1.0 - past.rate, found, -np.inf)

    with np.errstate(over="ignore"):
        level = np.exp(np.minimum(epsilon - past.log_ratio, 700.0))
        place = threshold(level)
        joined = (1.0 - past.rate) * ndtr(-place) + past.rate * ndtr(past.shift - place)
        forth = past.chance * np.exp(past.log_ratio) @ np.maximum(joined - level * ndtr(-place), 0.0)
        level = np.exp(np.minimum(epsilon + past.log_ratio, 700.0))
        place = threshold(1.0 / level)
        joined = (1.0 - past.rate) * ndtr(place) + past.rate * ndtr(place - past.shift)
        back = past.chance @ np.maximum(ndtr(place) - level * joined, 0.0)
    return float(max(forth, back))


def transcript_epsilon(delta: float, steps: int, law: Law, largest: float) -> float:
    """The least epsilon at a delta of `steps` steps, all of them seen, the larger of the two orders.

    >>> always = lambda seen: (np.array(1.0), np.array(0.5))  # normal noise, mu = 0.5 in each of 3 steps
    >>> round(transcript_epsilon(0.01, 3, always, 0.5), 4)
    1.9114
    """
    from scipy.optimize import brentq

    past = pasts(steps, law, largest)
    if transcript_delta(0.0, past) <= delta:
        return 0.0
    high = 1.0
    while transcript_delta(high, past) > delta:
        high *= 2.0
    return float(brentq(lambda epsilon: transcript_delta(epsilon, past) - delta, 0.0, high, xtol=1e-10))
