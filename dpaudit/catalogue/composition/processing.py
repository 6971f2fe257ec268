"""Post-processing: what is done to a noisy count costs nothing, unless it looks at the data again."""

import math

import numpy as np

from dpaudit.base.arrays import Integers, Reals
from dpaudit.catalogue.composition.counts import in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around, laplace
from dpaudit.catalogue.promises import EPSILON, at_least_one, unbounded
from dpaudit.losses.discrete import largest_log_ratio

PAPER = "Dwork & Roth 2014, The algorithmic foundations of differential privacy, proposition 2.1"
SOURCE = Source("Bassi 2019, notes 001, 'Post-processing'", PAPER)
NEIGHBOURS = "counts at most 1 apart"


def _nonnegative_count(data: int, rng: Rng, epsilon: float) -> float:
    return max(0.0, data + rng.laplace(scale=1.0 / epsilon))


def _drawn_again(data: int, rng: Rng, epsilon: float) -> float:
    while True:
        noisy = data + rng.laplace(scale=1.0 / epsilon)
        if noisy >= 0.0:
            return noisy


def _draws_counted(data: int, rng: Rng, epsilon: float) -> tuple[float, float]:
    draws = 0
    while True:
        draws += 1
        noisy = data + rng.laplace(scale=1.0 / epsilon)
        if noisy >= 0.0:
            return noisy, float(draws)


def _nonnegative_runs(data: int, runs: int, rng: Rng, epsilon: float) -> Reals:
    return np.maximum(around(data, 1.0 / epsilon, runs, rng), 0.0)


def _drawn_again_runs(data: int, runs: int, rng: Rng, epsilon: float) -> Reals:
    return _draws_counted_runs(data, runs, rng, epsilon)[:, 0]


def _draws_counted_runs(data: int, runs: int, rng: Rng, epsilon: float) -> Reals:
    """The first draw that is not negative, and its number."""
    noisy, draws = np.empty(runs), np.zeros(runs)
    left = np.arange(runs)
    while len(left):
        tried = around(data, 1.0 / epsilon, len(left), rng)
        noisy[left] = tried
        draws[left] += 1.0
        left = left[tried < 0.0]
    return np.stack([noisy, draws], axis=1)


def _count_loss(first: int, second: int, epsilon: float, **_: int) -> float:
    return epsilon * abs(first - second)


def _drawn_again_loss(first: int, second: int, epsilon: float) -> float:
    """At 0 the smaller count is likelier by the Laplace ratio, and once more by what the larger one need not repeat."""
    kept = sorted(1.0 - math.exp(-epsilon * count) / 2.0 for count in (first, second))
    return epsilon * abs(first - second) + math.log(kept[1] / kept[0])


nonnegative_count = in_room(
    name="nonnegative_count",
    title="A noisy count, with 0 in place of what is negative",
    source=SOURCE,
    formula="the larger of 0 and the count plus one draw of Lap(1 / epsilon)",
    neighbours=NEIGHBOURS,
    code=Code(_nonnegative_count, _nonnegative_runs, _count_loss),
    parameters=(EPSILON,),
    default_pair=(1, 0),
).with_twins(
    """drawn_again: A noisy count, drawn again until it is not negative
        the chance of having to draw again depends on the count, and so the density is divided by another number: \
            that adds up to ln 2 to the loss
        the count plus a draw of Lap(1 / epsilon), anew until the sum is at least 0
    draws_counted: A noisy count, drawn again until it is not negative, with the number of draws
        each draw that was thrown away tells that the count is small, and there is no end to their number
        as drawn again, and beside it how many draws there were""",
    drawn_again=Twin(code=Code(_drawn_again, _drawn_again_runs, _drawn_again_loss)),
    draws_counted=Twin(code=Code(_draws_counted, _draws_counted_runs, unbounded)),
)


def _rounded_count(data: int, rng: Rng, epsilon: float, least: int) -> int:
    noisy = round(data + rng.laplace(scale=1.0 / epsilon))
    return noisy if noisy >= least else 0


def _rounded_to_truth(data: int, rng: Rng, epsilon: float, least: int) -> int:
    noisy = data + int(rng.laplace(scale=1.0 / epsilon))
    return noisy if noisy >= least else 0


def _suppressed_by_truth(data: int, rng: Rng, epsilon: float, least: int) -> int:
    return round(data + rng.laplace(scale=1.0 / epsilon)) if data >= least else 0


def _whole(data: int, runs: int, rng: Rng, epsilon: float) -> Integers:
    return np.rint(laplace(rng, 1.0 / epsilon, runs)).astype(np.int64) + data


def _rounded_runs(data: int, runs: int, rng: Rng, epsilon: float, least: int) -> Integers:
    noisy = _whole(data, runs, rng, epsilon)
    return np.where(noisy < least, 0, noisy)


def _rounded_to_truth_runs(data: int, runs: int, rng: Rng, epsilon: float, least: int) -> Integers:
    noisy = laplace(rng, 1.0 / epsilon, runs).astype(np.int64) + data  # cut off, towards 0
    return np.where(noisy < least, 0, noisy)


def _suppressed_by_truth_runs(data: int, runs: int, rng: Rng, epsilon: float, least: int) -> Integers:
    return np.zeros(runs, np.int64) if data < least else _whole(data, runs, rng, epsilon)


def _rounded_to_truth_loss(first: int, second: int, epsilon: float, least: int) -> float:
    """Beyond both counts all whole numbers have one ratio, so the cells up to there are enough."""
    published = np.arange(least, max(first, second, least) + 2)

    def law(count: int) -> Reals:
        moved = np.abs(published - count)
        cells = np.where(moved == 0, 1.0, 0.5) * np.exp(-epsilon * moved) * -math.expm1(-epsilon)
        beyond = math.exp(-epsilon * abs(least - count)) / 2.0
        below = 1.0 - beyond if least > count else beyond * math.exp(-epsilon)
        return np.append(cells, below)

    return largest_log_ratio(law(first), law(second))


def _suppressed_by_truth_loss(first: int, second: int, epsilon: float, least: int) -> float:
    if (first < least) != (second < least):
        return math.inf
    return epsilon * abs(first - second) if first >= least else 0.0


rounded_count = in_room(
    name="rounded_count",
    title="A noisy count, rounded, and small ones suppressed",
    source=SOURCE,
    formula="the count plus one draw of Lap(1 / epsilon), rounded to a whole number; 0 where that is below `least`",
    neighbours=NEIGHBOURS,
    code=Code(_rounded_count, _rounded_runs, _count_loss),
    parameters=(EPSILON, Parameter("least", 5, "people", "smaller noisy counts are given as 0", at_least_one)),
    default_pair=(10, 9),
).with_twins(
    """rounded_to_truth: A noisy count, rounded towards the truth
        noise cut off towards 0 leaves the true count as it is on an interval twice as long as any other has: \
            epsilon + ln 2
        the count plus the whole part of one draw of Lap(1 / epsilon), cut off towards 0
    suppressed_by_truth: A noisy count, suppressed where the true count is small
        whether it is suppressed is an exact comparison: a count just below the limit is never published
        0 where the true count is below `least`; else the count plus one draw of Lap(1 / epsilon), rounded""",
    rounded_to_truth=Twin(code=Code(_rounded_to_truth, _rounded_to_truth_runs, _rounded_to_truth_loss)),
    suppressed_by_truth=Twin(
        code=Code(_suppressed_by_truth, _suppressed_by_truth_runs, _suppressed_by_truth_loss), default_pair=(5, 4)
    ),
)
