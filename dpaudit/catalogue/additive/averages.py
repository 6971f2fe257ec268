"""Laplace noise on the average and on the sum of values that are clipped to known bounds."""

import math

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.additive.single import CHEEMA, HAGHTALAB, SARKAR, in_room
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, centred
from dpaudit.catalogue.promises import DMNS, EPSILON, at_least_one, pure_if_added_or_removed, pure_if_replaced

Values = list[float]

LARGEST = Parameter("bound", 100.0, "units of the values", "values are clipped to [0, bound]", validate.positive)
SIZE = Parameter("bound", 2.0, "units of the values", "values are clipped to [-bound, bound]", validate.positive)
REACH = Parameter("reach", 100, "units of the values", "L of the notes", at_least_one)
STEP = Parameter("step", 10.0, "units of the values", "values are rounded to its multiples", validate.positive)


def _clipped(values: Values, low: float, high: float) -> Values:
    return [min(max(value, low), high) for value in values]


def _average(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    average = sum(min(max(value, 0.0), bound) for value in data) / len(data)
    return average + rng.laplace(scale=bound / (len(data) * epsilon))


def _mean(data: Values, bound: float = math.inf, **_: float) -> float:
    return sum(_clipped(data, 0.0, bound)) / len(data)


def _scale(data: Values, epsilon: float, bound: float) -> float:
    return bound / (len(data) * epsilon)


def _observed_scale(data: Values, epsilon: float, bound: float) -> float:
    clipped = _clipped(data, 0.0, bound)
    return (max(clipped) - min(clipped)) / (len(data) * epsilon)


def _uniform(data: Values, rng: Rng, epsilon: float, bound: float, reach: int) -> float:
    return _mean(data, bound) + int(rng.integers(-reach, reach + 1)) / len(data)


def _uniform_runs(data: Values, runs: int, rng: Rng, epsilon: float, bound: float, reach: int) -> Reals:
    return rng.integers(-reach, reach + 1, runs) / len(data) + _mean(data, bound)


def _uniform_loss(first: Values, second: Values, epsilon: float, bound: float, reach: int) -> float:
    """Equally likely outputs on two sets of points: the same set, or points that only one of them has."""
    return 0.0 if len({(_mean(data, bound), len(data)) for data in (first, second)}) == 1 else math.inf


laplace_average = in_room(
    name="laplace_average",
    title="Laplace noise on the average of n values in [0, bound]",
    source=Source(f"{HAGHTALAB}, section 2.1 (an average of m values); {CHEEMA}, 'Privacy vs utility'", DMNS),
    formula="the average of the n values, clipped to [0, bound], plus one draw of Lap(bound / (n epsilon))",
    neighbours="n values, one of them replaced; n is public",
    code=centred(_mean, _scale, _average),
    parameters=(EPSILON, LARGEST),
    promise=pure_if_replaced,
    default_pair=([70.0, 80.0, 55.0, 95.0, 0.0], [70.0, 80.0, 55.0, 95.0, 100.0]),
).with_twins(
    """unclipped: The average of values that nobody clips
        a value far beyond `bound` moves the average further than the bound / n that the noise is made for
        the average of the n values as they come, plus one draw of Lap(bound / (n epsilon))
    uniform_noise: Uniform noise on [-reach / n, reach / n] around the average
        the noise ends: a value that changes by `reach` moves half of the outputs out of reach
        the average plus k / n, k an integer from -reach to reach, all equally likely
    secret_size: The average claimed for a record more or less
        then n is a secret, but noise and average are made with it: the tails tell one n from another
    divided_twice: The noise of the average added to the sum, before dividing by n
        dividing takes the noise down with the sum, so it is n times too small for the average
        (the sum plus one draw of Lap(bound / (n epsilon))) / n
    observed_range: The sensitivity of the average taken from the values at hand
        the range of the values is itself a fact about them, and the width of the noise publishes it
        the average plus one draw of Lap((largest - smallest value) / (n epsilon))
    rounded_values: Each value rounded before the average is taken
        rounded values lie in [0, bound] too, so one of them moves the average by bound / n at most
        the average of the n values, each first rounded to the nearest multiple of `step`, then clipped to [0, \
            bound], plus one draw of Lap(bound / (n epsilon))""",
    unclipped=Twin(
        code=centred(lambda data, **_: sum(data) / len(data), _scale),
        default_pair=([70.0, 80.0, 55.0, 95.0, 300.0], [70.0, 80.0, 55.0, 95.0, 0.0]),
    ),
    uniform_noise=Twin(code=Code(_uniform, _uniform_runs, _uniform_loss), parameters=(REACH,)),
    secret_size=Twin(
        promise=pure_if_added_or_removed,
        neighbours="one value more or less",
        default_pair=([0.0, 0.0, 100.0], [0.0, 0.0]),
    ),
    divided_twice=Twin(code=centred(_mean, lambda data, epsilon, bound: bound / (len(data) ** 2 * epsilon))),
    observed_range=Twin(
        code=centred(_mean, _observed_scale), default_pair=([50.0, 40.0, 60.0, 50.0], [50.0, 40.0, 60.0, 100.0])
    ),
    rounded_values=Harmless(
        on=lambda data, step, **_: [step * round(value / step) for value in data],
        parameters=(STEP,),
        default_pair=([74.0, 84.0, 53.0, 94.0, 4.0], [74.0, 84.0, 53.0, 94.0, 100.0]),
    ),
)


def _sum(data: Values, rng: Rng, epsilon: float, bound: float) -> float:
    return sum(min(max(value, -bound), bound) for value in data) + rng.laplace(scale=bound / epsilon)


def _total(data: Values, bound: float, **_: float) -> float:
    return sum(_clipped(data, -bound, bound))


laplace_sum = in_room(
    name="laplace_sum",
    title="Laplace noise on the sum of values in [-bound, bound]",
    source=Source(f"{SARKAR}, 'Aggregate functions'", DMNS),
    formula="the sum of the values, clipped to [-bound, bound], plus one draw of Lap(bound / epsilon)",
    neighbours="one value more or less",
    code=centred(_total, lambda data, epsilon, bound: bound / epsilon, _sum),
    parameters=(EPSILON, SIZE),
    promise=pure_if_added_or_removed,
    default_pair=([1.0, -0.5, 2.0], [1.0, -0.5]),
).with_twins(
    """inverted_scale: Noise of scale epsilon / sensitivity
        the fraction is upside down: the more one value can move the sum, the less noise it gets
        the sum plus one draw of Lap(epsilon / bound)
    observed_bound: The bound taken from the largest value at hand
        whoever holds the largest value sets the width of the noise, and it shows in the tails
        the sum plus one draw of Lap(largest absolute value / epsilon)
    replace_one: The sum claimed for a value replaced
        from -bound to bound one value moves the sum by 2 bound, twice what the noise is made for""",
    inverted_scale=Twin(code=centred(_total, lambda data, epsilon, bound: epsilon / bound)),
    observed_bound=Twin(
        code=centred(
            _total, lambda data, epsilon, bound: max(abs(value) for value in _clipped(data, -bound, bound)) / epsilon
        ),
        default_pair=([0.5, -0.5], [0.5, -0.5, 2.0]),
    ),
    replace_one=Twin(
        promise=pure_if_replaced, neighbours="one value replaced", default_pair=([1.0, -0.5, 2.0], [1.0, -0.5, -2.0])
    ),
)
