"""Many runs of Thresholdout at once, and its exact loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Masked, Places, Reals
from dpaudit.catalogue.adaptive.analysts import ANALYSTS, Query, Records, average, named
from dpaudit.catalogue.adaptive.asked import Both, Chain, Posed, Rules, compared_with, interact, shown, worst
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.losses.one_threshold import one_threshold_loss
from dpaudit.losses.released import no_top_ratio, released_value_ratio

ROUNDING = 1e-12  # of averages of numbers in [0, 1]


@dataclass(frozen=True, slots=True)
class Design:
    """A form of Thresholdout: the noise of what it gives away, of its threshold, and what it counts.

    `compared` multiplies sigma for the comparisons. `redrawn` says whether the threshold gets new noise after each
    answer of the holdout set, `counted` whether those use up the budget.
    """

    value: Literal["fresh", "that of the comparison", "one draw", "none"] = "fresh"
    compared: float = 4.0
    threshold_noise: bool = True
    redrawn: bool = True
    counted: bool = True

    def scales(self, data: Records, epsilon: float, budget: int) -> tuple[float, float, float]:
        """Of the noise on the threshold, on the comparisons and on the values: 2 sigma, 4 sigma, sigma."""
        sigma = noise_level(epsilon, budget, len(data))
        compared = sigma if self.value == "that of the comparison" else self.compared * sigma
        return 2.0 * sigma * self.threshold_noise, compared, 0.0 if self.value == "none" else sigma


def noise_level(epsilon: float, budget: int, records: int) -> float:
    """The sigma that makes Thresholdout epsilon-DP: epsilon = 2 B / (sigma n).

    >>> noise_level(1.0, 2, 10)
    0.4
    """
    return 2.0 * budget / (epsilon * records)


def training_set(name: str, value: object) -> float | list[list[float]]:
    """Checks the training set: records, lists of numbers, or one average."""
    if isinstance(value, list) and value and all(isinstance(record, list) for record in value):
        return [[validate.real(name, number) for number in record] for record in value]
    return validate.probability(name, value)


def _rules(
    data: Records, epsilon: float, threshold: float, trained: float | Records, budget: int, analyst: str, design: Design
) -> tuple[Rules, float]:
    """With the noise of the values."""

    def tell(query: Query, data: Records) -> Posed:
        holdout = average(query, data)
        training = trained if isinstance(trained, float) else average(query, trained)
        return Posed(abs(holdout - training), holdout, training)

    asking, (drift, compared, sigma) = named(analyst), design.scales(data, epsilon, budget)
    most = budget if design.counted else None
    return Rules(asking, tell, threshold, (drift, compared), asking.many(data), most, design.redrawn), sigma


def runs_of(data: Records, runs: int, rng: Rng, *, design: Design, **given: Any) -> Masked:
    """The answers of the holdout set by query; those of the training set are masked, as is what follows the halt."""
    rules, sigma = _rules(data, design=design, **given)
    shared = laplace(rng, sigma, runs) if design.value == "one draw" else np.zeros(0)

    def show(place: int, asked: Posed, noisy: Reals, tops: Places) -> Reals:
        if design.value == "that of the comparison":
            return asked.value + (noisy - asked.compared)
        return asked.value + (shared[tops] if design.value == "one draw" else laplace(rng, sigma, len(tops)))

    return interact(rules, data, runs, rng, show)


def loss_of(first: Records, second: Records, *, design: Design, **given: Any) -> float | None:
    """The largest |log ratio| of a transcript.

    None where an analyst chooses under a kept threshold, or reads numbers that do not have noise of their own.
    """
    rules, sigma = _rules(first, design=design, **given)
    scales = (rules.threshold, *rules.scales)
    if not design.redrawn:
        if rules.analyst is not ANALYSTS["in order"]:
            return None
        asks = [rules.analyst.asks(((0, 0),) * place) for place in range(rules.queries)]
        p, q = (np.array([rules.tell(query, data)[:2] for query in asks]) for data in (first, second))
        moved = np.abs(p[:, 1] - q[:, 1]) / sigma
        return one_threshold_loss(p[:, 0], q[:, 0], rules.most, *scales, moved)
    if design.value in ("fresh", "none"):
        return worst(rules, first, second, lambda both, tops: shown(rules, both, sigma))
    if rules.analyst.cuts:
        return None

    def one_draw(both: Both, tops: Chain) -> list[tuple[int, float]]:
        move, *earlier = (asked[1].value - asked[0].value for asked in (both, *tops[:1]))
        if not earlier:
            return [(0, abs(move) / sigma)]  # the first answer shows the draw: it is all that hides the others
        return [(0, math.inf if abs(move - earlier[0]) > ROUNDING else 0.0)]

    if design.value == "one draw":
        return worst(rules, first, second, one_draw)

    @cache  # most epochs hold the same queries as another
    def compared(chain: Chain) -> float:
        return released_value_ratio(*compared_with(chain), (chain[-1][0].value, chain[-1][1].value), *scales)

    def ratios(chain: Chain) -> list[float]:
        return [*(compared(chain[: j + 1]) for j in range(len(chain))), no_top_ratio(*compared_with(chain), *scales)]

    return worst(rules, first, second, lambda both, tops: [(0, 0.0)], ratios)
