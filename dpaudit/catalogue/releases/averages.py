"""Averages: of a fixed number of people, and together with how many they are."""

from collections.abc import Sequence

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around, centred
from dpaudit.catalogue.promises import DMNS, EPSILON, pure_if_added_or_removed
from dpaudit.catalogue.releases.fixed import exact, in_room

Values = Sequence[float]


def _count_and_average(data: Values, rng: Rng, epsilon: float, cap: float) -> tuple[float, float]:
    count = len(data) + rng.laplace(scale=2.0 / epsilon)
    total = sum(min(value, cap) for value in data) + rng.laplace(scale=2.0 * cap / epsilon)
    return count, total / max(1.0, count)


def _count_and_average_runs(data: Values, runs: int, rng: Rng, epsilon: float, cap: float) -> Reals:
    count, total = (
        around(len(data), 2.0 / epsilon, runs, rng),
        around(_total(data, cap), 2.0 * cap / epsilon, runs, rng),
    )
    return np.column_stack([count, total / np.maximum(1.0, count)])


def _count_and_average_loss(first: Values, second: Values, epsilon: float, cap: float) -> float:
    """The two noisy numbers can be read off the two published ones, so their losses add up."""
    moved = abs(_total(first, cap) - _total(second, cap))
    return epsilon / 2.0 * (abs(len(first) - len(second)) + moved / cap)


def _total(data: Values, cap: float) -> float:
    return float(sum(min(value, cap) for value in data))


def _exact_count(data: Values, rng: Rng, epsilon: float, cap: float) -> tuple[float, float]:
    count = len(data)
    return float(count), (sum(min(value, cap) for value in data) + rng.laplace(scale=cap / epsilon)) / count


def _exact_count_runs(data: Values, runs: int, rng: Rng, epsilon: float, cap: float) -> Reals:
    total = around(_total(data, cap), cap / epsilon, runs, rng)
    return np.column_stack([np.full(runs, float(len(data))), total / len(data)])


def _exact_count_loss(first: Values, second: Values, epsilon: float, cap: float) -> float:
    if len(first) != len(second):
        return float("inf")
    return epsilon * abs(_total(first, cap) - _total(second, cap)) / cap


_SMOKERS = [3, 5, 1, 0, 0, 12, 0, 7, 2, 4]  # cigarettes a day; Bob is the second

noisy_count_and_average = in_room(
    name="noisy_count_and_average",
    title="How many took part and their average, both noisy",
    source=Source("Bassi 2019, notes 001, 'A differencing attack'", DMNS),
    formula=(
        "the count plus Lap(2 / epsilon); the sum, each value at most `cap`, plus Lap(2 cap / epsilon), "
        "divided by the noisy count where that is above 1"
    ),
    neighbours="lists of values of at least 0, of which one is added or removed",
    code=Code(_count_and_average, _count_and_average_runs, _count_and_average_loss),
    parameters=(
        EPSILON,
        Parameter("cap", 20.0, "units of the values", "larger values count as this", validate.positive),
    ),
    promise=pure_if_added_or_removed,
    default_pair=(_SMOKERS, _SMOKERS[:1] + _SMOKERS[2:]),
).with_twins(
    """exact: The exact count and the exact average
        count times average is the sum, and two sums differ by the value of the one who is missing
        how many there are, and the sum divided by that
    average_alone: The exact average, and no count
        the average moves whenever somebody joins who is not average
        the sum divided by how many there are
    exact_count: A noisy average with the exact count beside it
        all the noise is in the average, and the count alone tells whether somebody takes part
        the exact count; the sum, each value at most `cap`, plus Lap(cap / epsilon), divided by the count""",
    exact=Twin(code=exact(lambda data, **_: (float(len(data)), sum(data) / len(data)))),
    average_alone=Twin(code=exact(lambda data, **_: sum(data) / len(data))),
    exact_count=Twin(code=Code(_exact_count, _exact_count_runs, _exact_count_loss)),
)


def _average(data: Values, rng: Rng, epsilon: float, cap: float) -> float:
    clipped = [min(max(value, 0.0), cap) for value in data]
    return sum(clipped) / len(data) + rng.laplace(scale=cap / (len(data) * epsilon))


def _scale(data: Values, epsilon: float, cap: float) -> float:
    return cap / (len(data) * epsilon)


def _average_loss(first: Values, second: Values, epsilon: float, cap: float) -> float:
    before, after = (float(np.clip(data, 0.0, cap).sum()) for data in (first, second))
    return epsilon * abs(before - after) / cap


_GRADES = [10, 4, 5, 5, 6, 6, 7, 7, 8, 9]

noisy_average = in_room(
    name="noisy_average",
    title="The average grade of a class, with noise",
    source=Source("Haghtalab 2020, notes 000, 'Motivating Example' and section 2.1", DMNS),
    formula="the average of the m grades, each cut to [0, cap], plus a draw of Lap(cap / (m epsilon)); m is public",
    neighbours="lists of m grades with one of them replaced",
    code=centred(lambda data, epsilon, cap: float(np.clip(data, 0.0, cap).mean()), _scale, _average, _average_loss),
    parameters=(EPSILON, Parameter("cap", 10.0, "points", "the best grade; the worst is 0", validate.positive)),
    default_pair=(_GRADES, [2, *_GRADES[1:]]),
).with_twins(
    """exact: The exact average grade
        m times the average, less the other grades, is the grade of the one who is left
        the average of the m grades
    one_decimal: The average grade, rounded to one decimal
        one of m grades moves the average by up to cap / m, far more than what the rounding hides
        the average of the m grades, rounded to a tenth of a point
    exact_median: The exact median grade
        most grades never move a median, but the ones in the middle do, in every run
        the middle grade, or half of the sum of the two in the middle
    exact_best: The exact best grade
        the largest value is the value of one person
        the largest of the m grades""",
    exact=Twin(code=exact(lambda data, **_: sum(data) / len(data))),
    one_decimal=Twin(
        code=exact(lambda data, **_: round(sum(data) / len(data), 1)), default_pair=(_GRADES, [9, *_GRADES[1:]])
    ),
    exact_median=Twin(code=exact(lambda data, **_: float(np.median(data)))),
    exact_best=Twin(code=exact(lambda data, **_: float(max(data)))),
)
