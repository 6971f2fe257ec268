"""Many runs of Thresholdout at once, and its exact loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from dpaudit.arrays import Masked, Reals
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.sparse.runs import Drawn, comparisons
from dpaudit.losses.comparisons import epochs, halting_ratios
from dpaudit.losses.one_threshold import one_threshold_loss
from dpaudit.losses.released import no_top_ratio, released_value_ratio

Records = list[list[float]]
ROUNDING = 1e-12  # of averages of numbers in [0, 1]


@dataclass(frozen=True, slots=True)
class Design:
    """A form of Thresholdout: the noise of what it gives away, of its threshold, and what it counts.

    `share` multiplies all noise. `redrawn` says whether the threshold gets new noise after each answer of the holdout
    set, `counted` whether those use up the budget.
    """

    value: Literal["fresh", "that of the comparison", "one draw", "none"] = "fresh"
    share: float = 1.0
    threshold_noise: bool = True
    redrawn: bool = True
    counted: bool = True

    def scales(self, data: Records, epsilon: float, budget: int) -> tuple[float, float, float]:
        """Of the noise on the threshold, on the comparisons and on the values: 2 sigma, 4 sigma, sigma."""
        sigma = self.share * noise_level(epsilon, budget, len(data))
        compared = sigma if self.value == "that of the comparison" else 4.0 * sigma
        return 2.0 * sigma * self.threshold_noise, compared, sigma


def noise_level(epsilon: float, budget: int, records: int) -> float:
    """The sigma that makes Thresholdout epsilon-DP: epsilon = 2 B / (sigma n).

    >>> noise_level(1.0, 2, 10)
    0.4
    """
    return 2.0 * budget / (epsilon * records)


def averages(data: Records, trained: float) -> tuple[Reals, Reals]:
    """Of each query: its average over the holdout set, and how far that is from the training set."""
    found = np.array([sum(column) / len(data) for column in zip(*data, strict=True)])
    return found, np.abs(found - trained)


def runs_of(
    data: Records,
    runs: int,
    rng: Rng,
    epsilon: float,
    threshold: float,
    trained: float,
    budget: int,
    *,
    design: Design,
) -> Masked:
    """The answers of the holdout set by query; those of the training set are masked, as is what follows the halt."""
    means, apart = averages(data, trained)
    *scales, sigma = design.scales(data, epsilon, budget)
    drawn: Drawn = "after each top" if design.redrawn else "once"
    values, hidden = np.zeros((len(means), runs)), np.ones((len(means), runs), np.bool_)
    shared = laplace(rng, sigma, runs) if design.value == "one draw" else np.zeros(0)
    for seen in comparisons(
        apart.tolist(), runs, rng, threshold, (scales[0], scales[1]), budget, drawn, design.counted
    ):
        noise: Reals | float = 0.0
        if design.value == "fresh":
            noise = laplace(rng, sigma, len(seen.tops))
        elif design.value == "that of the comparison":
            noise = seen.noisy - apart[seen.place]
        elif design.value == "one draw":
            noise = shared[seen.tops]
        values[seen.place, seen.tops] = means[seen.place] + noise
        hidden[seen.place, seen.tops] = False
    return np.ma.MaskedArray(values.T, mask=hidden.T)


def loss_of(
    first: Records,
    second: Records,
    epsilon: float,
    threshold: float,
    trained: float,
    budget: int,
    *,
    design: Design,
) -> float:
    """The largest |log ratio| of an output."""
    *pair, sigma = design.scales(first, epsilon, budget)
    scales = (threshold, pair[0], pair[1])
    (p_mean, p), (q_mean, q) = (averages(data, trained) for data in (first, second))
    shift = q_mean - p_mean
    moved = np.abs(shift)
    most = budget if design.counted else len(p)
    two_shown = design.value == "one draw" and most > 1
    if design.value == "none" and moved.any() or two_shown and np.ptp(shift) > ROUNDING:
        return math.inf  # a value, or the difference of two, is not hidden at all
    if not design.redrawn:
        return one_threshold_loss(p, q, budget, *scales, moved / sigma)
    sides = ((p, q, p_mean, q_mean), (q, p, q_mean, p_mean))
    if design.value == "that of the comparison":
        return max(_compared(*side, most, scales) for side in sides)

    def step(p: Reals, q: Reals, start: int) -> Reals:
        ratios = halting_ratios(p[start:], q[start:], *scales)
        if design.value == "fresh":
            ratios[:-1] += moved[start:] / sigma
        elif design.value == "one draw" and start == 0:
            ratios[:-1] += moved / sigma  # the first answer shows the draw: it is all that hides the others
        return ratios

    def one_way(p: Reals, q: Reals) -> float:
        return epochs(len(p), most, lambda start: step(p, q, start))

    return max(one_way(p, q), one_way(q, p))


def _compared(p: Reals, q: Reals, p_mean: Reals, q_mean: Reals, most: int, scales: tuple[float, float, float]) -> float:
    @cache  # most epochs hold the same queries as another
    def ratio(p: tuple[float, ...], q: tuple[float, ...], values: tuple[float, float]) -> float:
        return released_value_ratio(np.array(p), np.array(q), values, *scales)

    def step(start: int) -> Reals:
        tops = (
            ratio(tuple(p[start : j + 1]), tuple(q[start : j + 1]), (float(p_mean[j]), float(q_mean[j])))
            for j in range(start, len(p))
        )
        return np.array([*tops, no_top_ratio(p[start:], q[start:], *scales)])

    return epochs(len(p), most, step)
