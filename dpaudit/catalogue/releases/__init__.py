"""Releases of tables and aggregates, without differential privacy and with it.

Here: sums, averages and largest values as answers to queries, and refusals to answer.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Masked, Reals
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around, centred, centred_each, exact
from dpaudit.catalogue.promises import DMNS, EPSILON, pure_if_added_or_removed
from dpaudit.catalogue.releases.counts import noisy_counts, noisy_mean_vector
from dpaudit.catalogue.releases.tables import (
    in_room,
    noisy_column,
    noisy_models,
    noisy_subset_counts,
    noisy_table,
    two_noisy_tables,
)

Values = Sequence[float]

CAP = Parameter("cap", 10.0, "units of the values", "larger values count as this")
CHEEMA = "Cheema & Huszár, notes 004, 'Why bother?' (query auditing)"


def _sum(data: Values, rng: Rng, epsilon: float, cap: float) -> float:
    return sum(min(value, cap) for value in data) + rng.laplace(scale=cap / epsilon)


def _sum_loss(first: Values, second: Values, epsilon: float, cap: float) -> float:
    return epsilon * abs(_total(first, cap) - _total(second, cap)) / cap


def _total(data: Values, cap: float, **_: float) -> float:
    return float(sum(min(value, cap) for value in data))


def _scale(data: Values, epsilon: float, cap: float, **_: float) -> float:
    return cap / epsilon


def _refused_noisy(data: Values, rng: Rng, epsilon: float, cap: float, least: int) -> dict[int, float]:
    return {0: _sum(data, rng, epsilon, cap)} if len(data) >= least else {}


def _refused_noisy_runs(data: Values, runs: int, rng: Rng, epsilon: float, cap: float, least: int) -> Masked:
    noisy = around(_total(data, cap), cap / epsilon, runs, rng)[:, None]
    return np.ma.MaskedArray(noisy, mask=np.full(noisy.shape, len(data) < least))


def _refused_noisy_loss(first: Values, second: Values, epsilon: float, cap: float, least: int) -> float:
    refused = [len(data) < least for data in (first, second)]
    if refused[0] != refused[1]:
        return math.inf
    return 0.0 if refused[0] else _sum_loss(first, second, epsilon, cap)


_SALARIES = [4, 6, 3, 7, 10]
_LEAST = Parameter("least", 5, "people", "a query about fewer is refused")

noisy_sum = in_room(
    name="noisy_sum",
    title="The sum over the people that a query selects, with noise",
    source=Source("Sarkar, notes 003, 'Aggregate functions' (sum)", DMNS),
    formula="the sum, each value at most `cap`, plus a draw of Lap(cap / epsilon)",
    neighbours="lists of values of at least 0, of which one is added or removed",
    code=centred(_total, _scale, _sum, _sum_loss),
    parameters=(EPSILON, CAP),
    promise=pure_if_added_or_removed,
    default_pair=(_SALARIES, _SALARIES[:4]),
).with_twins(
    """refused: The exact sum, refused where fewer than 5 are selected
        the refusal tells that there are fewer than 5, and an answer is exact
        the sum where at least `least` people are selected; nothing otherwise
    refused_noisy: The noisy sum, refused where fewer than 5 are selected
        the noise in the answer is enough, but whether there is an answer depends on the exact count
        as the noisy sum where at least `least` people are selected; nothing otherwise
    unclipped: A noisy sum whose values are not cut at the cap
        the noise is for values up to the cap, and a value of three times the cap costs 3 epsilon
        the sum of the values as they are, plus a draw of Lap(cap / epsilon)
    asked_again: The same sum asked four times, with fresh noise each time
        every answer costs epsilon, and the noise averages out
        `times` answers, each the sum plus a draw of its own of Lap(cap / epsilon)""",
    refused=Twin(
        code=exact(lambda data, least, **_: {0: float(sum(data))} if len(data) >= least else {}, places=1),
        parameters=(_LEAST,),
    ),
    refused_noisy=Twin(code=Code(_refused_noisy, _refused_noisy_runs, _refused_noisy_loss), parameters=(_LEAST,)),
    unclipped=Twin(
        code=centred(lambda data, **_: sum(data), _scale), default_pair=([*_SALARIES[:4], 30], _SALARIES[:4])
    ),
    asked_again=Twin(
        code=centred_each(lambda data, cap, times, **_: [_total(data, cap)] * times, _scale),
        parameters=(Parameter("times", 4, "queries", "how often it is asked", partial(validate.whole, least=2)),),
    ),
)


def _largest(data: Values, cap: float, **_: float) -> tuple[float, float]:
    values = [min(max(value, 0.0), cap) for value in data]
    return max(values), max(values[:-1])


def _query_auditing(data: Values, **_: float) -> dict[int, float]:
    of_all, of_others = float(max(data)), float(max(data[:-1]))
    if of_others < of_all:  # both answers together would give the last person's value
        return {0: of_all}
    return {0: of_all, 1: of_others}


noisy_maxima = in_room(
    name="noisy_maxima",
    title="The largest value of all, and of all but one person, with noise",
    source=Source(f"{CHEEMA}, as a release with DP", DMNS),
    formula="the largest value, and the largest but for the last person's, each in [0, cap], plus Lap(2 cap / epsilon)",
    neighbours="lists of values, in one order of the people, with one of them replaced: both answers move by up to cap",
    code=centred_each(_largest, lambda data, epsilon, cap: 2.0 * cap / epsilon),
    parameters=(EPSILON, CAP),
    default_pair=([3, 10, 2, 9], [3, 1, 2, 9]),
).with_twins(
    """exact: The exact largest value of all, and of all but one
        a largest value is the value of one person
        the largest value, and the largest but for the last person's
    query_auditing: Exact largest values, the second refused where both would give a value away
        the refusal itself says that the last person has the largest value, which the first answer gives
        the largest value; then the largest but for the last person's, unless that is smaller""",
    exact=Twin(code=exact(lambda data, **_: (float(max(data)), float(max(data[:-1]))))),
    query_auditing=Twin(code=exact(_query_auditing, places=2), default_pair=([3, 9, 2, 9], [3, 7, 2, 9])),
)


def _count_and_average(data: Values, rng: Rng, epsilon: float, cap: float) -> tuple[float, float]:
    count = len(data) + rng.laplace(scale=2.0 / epsilon)
    total = sum(min(value, cap) for value in data) + rng.laplace(scale=2.0 * cap / epsilon)
    return count, total / max(1.0, count)


def _count_and_average_runs(data: Values, runs: int, rng: Rng, epsilon: float, cap: float) -> Reals:
    count = around(len(data), 2.0 / epsilon, runs, rng)
    total = around(_total(data, cap), 2.0 * cap / epsilon, runs, rng)
    return np.column_stack([count, total / np.maximum(1.0, count)])


def _count_and_average_loss(first: Values, second: Values, epsilon: float, cap: float) -> float:
    """The two noisy numbers can be read off the two published ones, so their losses add up."""
    moved = abs(_total(first, cap) - _total(second, cap))
    return epsilon / 2.0 * (abs(len(first) - len(second)) + moved / cap)


def _exact_count_runs(data: Values, runs: int, rng: Rng, epsilon: float, cap: float) -> Reals:
    total = around(_total(data, cap), cap / epsilon, runs, rng)
    return np.column_stack([np.full(runs, float(len(data))), total / len(data)])


def _exact_count_loss(first: Values, second: Values, epsilon: float, cap: float) -> float:
    return math.inf if len(first) != len(second) else _sum_loss(first, second, epsilon, cap)


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
    parameters=(EPSILON, replace(CAP, default=20.0)),
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
    exact_count=Twin(
        code=Code(sampler=_exact_count_runs, loss=_exact_count_loss),
        edit={"len(data) + rng.laplace(scale=2.0 / epsilon)": "float(len(data))", "2.0 * cap": "cap"},
    ),
)


def _average(data: Values, rng: Rng, epsilon: float, cap: float) -> float:
    clipped = [min(max(value, 0.0), cap) for value in data]
    return sum(clipped) / len(data) + rng.laplace(scale=cap / (len(data) * epsilon))


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
    code=centred(
        lambda data, epsilon, cap: float(np.clip(data, 0.0, cap).mean()),
        lambda data, epsilon, cap: cap / (len(data) * epsilon),
        _average,
        _average_loss,
    ),
    parameters=(EPSILON, Parameter("cap", 10.0, "points", "the best grade; the worst is 0")),
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


ENTRIES = (
    *(noisy_table, two_noisy_tables, noisy_column, noisy_counts, noisy_count_and_average, noisy_average),
    *(noisy_sum, noisy_maxima, noisy_mean_vector, noisy_models, noisy_subset_counts),
)
