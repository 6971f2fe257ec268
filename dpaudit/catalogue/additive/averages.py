"""Laplace noise on the average and on the sum of values that are clipped to known bounds."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.additive.shared import CHEEMA, DMNS, HAGHTALAB, ROOM, SARKAR, around
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, pure_if_added_or_removed, pure_if_replaced
from dpaudit.losses.laplace import centred_loss

Values = list[float]

LARGEST = Parameter("bound", 100.0, "units of the values", "values are clipped to [0, bound]", validate.positive)
SIZE = Parameter("bound", 2.0, "units of the values", "values are clipped to [-bound, bound]", validate.positive)
REACH = Parameter("reach", 100, "units of the values", "L of the notes", partial(validate.whole, least=1))
STEP = Parameter("step", 10.0, "units of the values", "values are rounded to its multiples", validate.positive)


def _clipped(values: Values, low: float, high: float) -> Values:
    return [min(max(value, low), high) for value in values]


def _mean(values: Values) -> float:
    return sum(values) / len(values)


# --- the average of n values in [0, b] ------------------------------------------------------------------------


def _average(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    average = sum(min(max(value, 0.0), bound) for value in data) / len(data)
    return average + rng.laplace(scale=bound / (len(data) * epsilon))


def _average_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float) -> Reals:
    return around(_mean(_clipped(data, 0.0, bound)), bound / (len(data) * epsilon), runs, rng)


def _average_loss(first: Values, second: Values, epsilon: float, bound: float) -> float:
    centres = (_mean(_clipped(data, 0.0, bound)) for data in (first, second))
    return _between(*centres, *(bound / (len(data) * epsilon) for data in (first, second)))


def _between(first: float, second: float, first_scale: float, second_scale: float) -> float:
    return centred_loss(first, first_scale, second, second_scale)


def _unclipped(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    average = sum(data) / len(data)
    return average + rng.laplace(scale=bound / (len(data) * epsilon))


def _unclipped_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float) -> Reals:
    return around(_mean(data), bound / (len(data) * epsilon), runs, rng)


def _unclipped_loss(first: Values, second: Values, epsilon: float, bound: float) -> float:
    return _between(_mean(first), _mean(second), *(bound / (len(data) * epsilon) for data in (first, second)))


def _uniform(data: Values, rng: Rng, epsilon: float, bound: float, reach: int) -> float:
    average = sum(min(max(value, 0.0), bound) for value in data) / len(data)
    return average + int(rng.integers(-reach, reach + 1)) / len(data)


def _uniform_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float, reach: int) -> Reals:
    noisy = rng.integers(-reach, reach + 1, runs) / len(data)
    noisy += _mean(_clipped(data, 0.0, bound))
    return noisy


def _uniform_loss(first: Values, second: Values, epsilon: float, bound: float, reach: int) -> float:
    """Equally likely outputs on two sets of points: the same set, or points that only one of them has."""
    sets = {(_mean(_clipped(data, 0.0, bound)), len(data)) for data in (first, second)}
    return 0.0 if len(sets) == 1 else math.inf


def _divided_twice(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    sensitivity_of_the_average = bound / len(data)
    noisy_sum = sum(min(max(value, 0.0), bound) for value in data) + rng.laplace(
        scale=sensitivity_of_the_average / epsilon
    )
    return noisy_sum / len(data)


def _divided_twice_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float) -> Reals:
    return around(_mean(_clipped(data, 0.0, bound)), bound / (len(data) ** 2 * epsilon), runs, rng)


def _divided_twice_loss(first: Values, second: Values, epsilon: float, bound: float) -> float:
    centres = (_mean(_clipped(data, 0.0, bound)) for data in (first, second))
    return _between(*centres, *(bound / (len(data) ** 2 * epsilon) for data in (first, second)))


def _observed_range(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    clipped = [min(max(value, 0.0), bound) for value in data]
    return sum(clipped) / len(data) + rng.laplace(scale=(max(clipped) - min(clipped)) / (len(data) * epsilon))


def _observed_range_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float) -> Reals:
    clipped = _clipped(data, 0.0, bound)
    return around(_mean(clipped), (max(clipped) - min(clipped)) / (len(data) * epsilon), runs, rng)


def _observed_range_loss(first: Values, second: Values, epsilon: float, bound: float) -> float:
    before, after = (_clipped(data, 0.0, bound) for data in (first, second))
    scales = ((max(data) - min(data)) / (len(data) * epsilon) for data in (before, after))
    return _between(_mean(before), _mean(after), *scales)


def _rounded_values(data: Values, rng: Rng, epsilon: float, bound: float, step: float) -> float:
    rounded = [min(max(step * round(value / step), 0.0), bound) for value in data]
    return sum(rounded) / len(data) + rng.laplace(scale=bound / (len(data) * epsilon))


def _rounded(data: Values, step: float) -> Values:
    return [step * round(value / step) for value in data]


def _rounded_values_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float, step: float) -> Reals:
    return _average_runs(_rounded(data, step), runs, rng, epsilon, bound)


def _rounded_values_loss(first: Values, second: Values, epsilon: float, bound: float, step: float) -> float:
    return _average_loss(_rounded(first, step), _rounded(second, step), epsilon, bound)


laplace_average = Entry(
    module=ROOM,
    name="laplace_average",
    title="Laplace noise on the average of n values in [0, bound]",
    source=Source(f"{HAGHTALAB}, section 2.1 (an average of m values); {CHEEMA}, 'Privacy vs utility'", DMNS),
    formula="the average of the n values, clipped to [0, bound], plus one draw of Lap(bound / (n epsilon))",
    neighbours="n values, one of them replaced; n is public",
    code=Code(_average, _average_runs, _average_loss),
    parameters=(EPSILON, LARGEST),
    promise=pure_if_replaced,
    default_pair=([70.0, 80.0, 55.0, 95.0, 0.0], [70.0, 80.0, 55.0, 95.0, 100.0]),
).with_twins(
    Twin(
        name="unclipped",
        title="The average of values that nobody clips",
        reason="a value far beyond `bound` moves the average further than the bound / n that the noise is made for",
        formula="the average of the n values as they come, plus one draw of Lap(bound / (n epsilon))",
        code=Code(_unclipped, _unclipped_runs, _unclipped_loss),
        default_pair=([70.0, 80.0, 55.0, 95.0, 300.0], [70.0, 80.0, 55.0, 95.0, 0.0]),
    ),
    Twin(
        name="uniform_noise",
        title="Uniform noise on [-reach / n, reach / n] around the average",
        reason="the noise ends: a value that changes by `reach` moves half of the outputs out of reach",
        formula="the average plus k / n, k an integer from -reach to reach, all equally likely",
        code=Code(_uniform, _uniform_runs, _uniform_loss),
        parameters=(REACH,),
    ),
    Twin(
        name="secret_size",
        title="The average claimed for a record more or less",
        reason="then n is a secret, but noise and average are made with it: the tails tell one n from another",
        promise=pure_if_added_or_removed,
        neighbours="one value more or less",
        default_pair=([0.0, 0.0, 100.0], [0.0, 0.0]),
    ),
    Twin(
        name="divided_twice",
        title="The noise of the average added to the sum, before dividing by n",
        reason="dividing takes the noise down with the sum, so it is n times too small for the average",
        formula="(the sum plus one draw of Lap(bound / (n epsilon))) / n",
        code=Code(_divided_twice, _divided_twice_runs, _divided_twice_loss),
    ),
    Twin(
        name="observed_range",
        title="The sensitivity of the average taken from the values at hand",
        reason="the range of the values is itself a fact about them, and the width of the noise publishes it",
        formula="the average plus one draw of Lap((largest - smallest value) / (n epsilon))",
        code=Code(_observed_range, _observed_range_runs, _observed_range_loss),
        default_pair=([50.0, 40.0, 60.0, 50.0], [50.0, 40.0, 60.0, 100.0]),
    ),
    Twin(
        name="rounded_values",
        title="Each value rounded before the average is taken",
        reason="rounded values lie in [0, bound] too, so one of them moves the average by bound / n at most",
        formula="the average of the n values, each first rounded to the nearest multiple of `step`, then clipped to "
        "[0, bound], plus one draw of Lap(bound / (n epsilon))",
        code=Code(_rounded_values, _rounded_values_runs, _rounded_values_loss),
        parameters=(STEP,),
        default_pair=([74.0, 84.0, 53.0, 94.0, 4.0], [74.0, 84.0, 53.0, 94.0, 100.0]),
        broken=False,
    ),
)


# --- the sum of values in [-b, b] -----------------------------------------------------------------------------


def _sum(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    return sum(min(max(value, -bound), bound) for value in data) + rng.laplace(scale=bound / epsilon)


def _sum_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float) -> Reals:
    return around(sum(_clipped(data, -bound, bound)), bound / epsilon, runs, rng)


def _sum_loss(first: Values, second: Values, epsilon: float, bound: float) -> float:
    return epsilon * _moved(first, second, bound) / bound


def _moved(first: Values, second: Values, bound: float) -> float:
    return abs(sum(_clipped(first, -bound, bound)) - sum(_clipped(second, -bound, bound)))


def _inverted(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    return sum(min(max(value, -bound), bound) for value in data) + rng.laplace(scale=epsilon / bound)


def _inverted_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float) -> Reals:
    return around(sum(_clipped(data, -bound, bound)), epsilon / bound, runs, rng)


def _inverted_loss(first: Values, second: Values, epsilon: float, bound: float) -> float:
    return _moved(first, second, bound) * bound / epsilon


def _observed_bound(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    clipped = [min(max(value, -bound), bound) for value in data]
    return sum(clipped) + rng.laplace(scale=max(abs(value) for value in clipped) / epsilon)


def _observed_bound_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float) -> Reals:
    clipped = _clipped(data, -bound, bound)
    return around(sum(clipped), float(np.max(np.abs(clipped))) / epsilon, runs, rng)


def _observed_bound_loss(first: Values, second: Values, epsilon: float, bound: float) -> float:
    before, after = (_clipped(data, -bound, bound) for data in (first, second))
    return _between(sum(before), sum(after), *(float(np.max(np.abs(data))) / epsilon for data in (before, after)))


laplace_sum = Entry(
    module=ROOM,
    name="laplace_sum",
    title="Laplace noise on the sum of values in [-bound, bound]",
    source=Source(f"{SARKAR}, 'Aggregate functions'", DMNS),
    formula="the sum of the values, clipped to [-bound, bound], plus one draw of Lap(bound / epsilon)",
    neighbours="one value more or less",
    code=Code(_sum, _sum_runs, _sum_loss),
    parameters=(EPSILON, SIZE),
    promise=pure_if_added_or_removed,
    default_pair=([1.0, -0.5, 2.0], [1.0, -0.5]),
).with_twins(
    Twin(
        name="inverted_scale",
        title="Noise of scale epsilon / sensitivity",
        reason="the fraction is upside down: the more one value can move the sum, the less noise it gets",
        formula="the sum plus one draw of Lap(epsilon / bound)",
        code=Code(_inverted, _inverted_runs, _inverted_loss),
    ),
    Twin(
        name="observed_bound",
        title="The bound taken from the largest value at hand",
        reason="whoever holds the largest value sets the width of the noise, and it shows in the tails",
        formula="the sum plus one draw of Lap(largest absolute value / epsilon)",
        code=Code(_observed_bound, _observed_bound_runs, _observed_bound_loss),
        default_pair=([0.5, -0.5], [0.5, -0.5, 2.0]),
    ),
    Twin(
        name="replace_one",
        title="The sum claimed for a value replaced",
        reason="from -bound to bound one value moves the sum by 2 bound, twice what the noise is made for",
        promise=pure_if_replaced,
        neighbours="one value replaced",
        default_pair=([1.0, -0.5, 2.0], [1.0, -0.5, -2.0]),
    ),
)
