"""Additive noise.

Here: Laplace noise on the average and the sum of values that are clipped to known bounds, on several answers, on
counting queries and on the counts of a histogram.
"""

import math

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.additive.integers import clamped_geometric, geometric, truncated_geometric
from dpaudit.catalogue.additive.normal import (
    gaussian,
    gaussian_analytic,
    gaussian_gdp,
    gaussian_vector,
    gaussian_version_2,
    gaussian_version_2_corrected,
    gaussian_zcdp,
    k_norm_l2,
    k_norm_linf,
    norm_l1,
    norm_l2,
    norm_linf,
)
from dpaudit.catalogue.additive.single import in_room, laplace, snapping
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around_each, centred, centred_each, one_draw
from dpaudit.catalogue.promises import (
    BASSI,
    CHEEMA,
    DMNS,
    EPSILON,
    HAGHTALAB,
    SARKAR,
    SHADOW,
    pure_if_added_or_removed,
    pure_if_replaced,
    unless_same,
)

Values = list[float]

LARGEST = Parameter("bound", 100.0, "units of the values", "values are clipped to [0, bound]")
SIZE = Parameter("bound", 2.0, "units of the values", "values are clipped to [-bound, bound]")
REACH = Parameter("reach", 100, "units of the values", "L of the notes")
STEP = Parameter("step", 10.0, "units of the values", "values are rounded to its multiples")


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
    uniform_noise=Twin(
        code=Code(_uniform, _uniform_runs, unless_same(lambda data, bound, **_: (_mean(data, bound), len(data)))),
        parameters=(REACH,),
    ),
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


Answers = list[float]
Rows = list[list[int]]
Records = list[int]

TOGETHER = Parameter("sensitivity", 10.0, "units of the answers", "how far one person moves all answers together")
QUERIES = Parameter("queries", 2, "queries", "the yes-or-no questions of a record")
CELLS = Parameter("cells", 2, "cells", "the values that a record can have")


def _laplace_vector(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> tuple[float, ...]:
    return tuple(answer + rng.laplace(scale=sensitivity / epsilon) for answer in data)


_EACH = centred_each(lambda data, **_: data, lambda data, epsilon, sensitivity: sensitivity / epsilon, _laplace_vector)

laplace_vector = in_room(
    name="laplace_vector",
    title="Laplace noise on each of m answers",
    source=Source(f"{BASSI}, 'Laplace mechanism (cont.)'; {CHEEMA}, 'The Laplace mechanism'", DMNS),
    formula="every answer plus its own draw of Lap(sensitivity / epsilon)",
    neighbours="vectors at most `sensitivity` apart in the sum of absolute differences",
    code=_EACH,
    parameters=(EPSILON, TOGETHER),
    default_pair=([0] * 10, [1] * 10),
).with_twins(
    """sensitivity_of_one: m answers with the noise that one of them would need
        one person can move all m answers, and each move costs epsilon: m epsilon in all
        every answer plus its own draw of Lap(sensitivity / (m epsilon))
    inverted_scale: Laplace noise of the inverse scale on each of m answers
        the fraction is turned over: the smaller epsilon is, the less noise there is
        every answer plus its own draw of Lap(epsilon / sensitivity)""",
    sensitivity_of_one=Twin(at=lambda data, sensitivity, **_: {"sensitivity": sensitivity / len(data)}),
    inverted_scale=Twin(
        edit={"sensitivity / epsilon": "epsilon / sensitivity"},
        at=lambda data, epsilon, sensitivity: {"epsilon": sensitivity, "sensitivity": epsilon},
    ),
)


def _counting_queries(data: Rows, rng: Rng, epsilon: float, queries: int) -> tuple[float, ...]:
    counts = [sum(row[j] for row in data) for j in range(queries)]
    return tuple(count + rng.laplace(scale=queries / epsilon) for count in counts)


def _counted(data: Rows, queries: int, **_: float) -> Reals:
    return np.array([sum(row[j] for row in data) for j in range(queries)], float)


counting_queries = in_room(
    name="counting_queries",
    title="Laplace noise on m counting queries about the same people",
    source=Source(f"{BASSI}, 'Accuracy of queries under the Laplace mechanism'", DMNS),
    formula="for each of the m questions the number of records that say yes, plus its own draw of Lap(m / epsilon)",
    neighbours="one record more or less; a record is a list of m zeros and ones",
    code=centred_each(_counted, lambda data, epsilon, queries: queries / epsilon, _counting_queries),
    parameters=(EPSILON, QUERIES),
    promise=pure_if_added_or_removed,
    default_pair=([[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1]]),
).with_twins(
    """l2_sensitivity: Laplace noise for the Euclidean distance of the counts
        Laplace noise pays for the sum of the moves, m, and not for their Euclidean length, sqrt(m)
        each count plus its own draw of Lap(sqrt(m) / epsilon)""",
    l2_sensitivity=Twin(code=centred_each(_counted, lambda data, epsilon, queries: math.sqrt(queries) / epsilon)),
)


def _histogram(data: Records, rng: Rng, epsilon: float, cells: int) -> tuple[float, ...]:
    return tuple(data.count(cell) + rng.laplace(scale=1.0 / epsilon) for cell in range(cells))


def _counts(data: Records, cells: int, **_: float) -> Reals:
    return np.array([data.count(cell) for cell in range(cells)], float)


histogram = in_room(
    name="histogram",
    title="Laplace noise on the counts of a histogram",
    source=Source(f"{BASSI}, 'Preliminaries (cont.)' (disjoint counting queries)", DMNS),
    formula="for each cell the number of records in it, plus its own draw of Lap(1 / epsilon)",
    neighbours="one record more or less; a record is the number of its cell",
    code=centred_each(_counts, lambda data, epsilon, cells: 1.0 / epsilon, _histogram),
    parameters=(EPSILON, CELLS),
    promise=pure_if_added_or_removed,
    default_pair=([0, 0, 0, 1], [0, 0, 0]),
).with_twins(
    """shared_noise: One draw of noise for all cells
        the noise cancels in the difference of two cells, which is then exact
        for each cell the number of records in it, plus the same draw of Lap(1 / epsilon)
    sensitivity_of_m: Disjoint cells with the noise of m overlapping queries
        a record is in one cell only, so the noise is m times more than needed
        for each cell the number of records in it, plus its own draw of Lap(m / epsilon)""",
    shared_noise=Twin(code=one_draw(_counts, lambda data, epsilon, cells: 1.0 / epsilon)),
    sensitivity_of_m=Harmless(at=lambda data, epsilon, cells: {"epsilon": epsilon / cells}),
)


def _prefix_sums(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> tuple[float, ...]:
    total = 0.0
    totals = []
    for answer in data:
        total = total + answer + rng.laplace(scale=sensitivity / epsilon)
        totals.append(total)
    return tuple(totals)


def _prefix_sums_runs(data: Answers, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Reals:
    return np.cumsum(around_each(np.asarray(data, float), sensitivity / epsilon, runs, rng), axis=1)


prefix_sums = in_room(
    name="prefix_sums",
    title="Running totals of noisy answers",
    source=Source(None, f"{SHADOW} (partial sums); {DMNS}"),
    formula="every answer plus its own draw of Lap(sensitivity / epsilon), and of these the sum of the first 1, 2, ...",
    neighbours="vectors of which one answer moves by at most `sensitivity`, in any direction",
    adjacency=("one-differs",),
    code=Code(
        _prefix_sums, _prefix_sums_runs, _EACH.loss
    ),  # the differences of neighbouring totals are the noisy answers
    default_pair=([1, 1, 1, 1], [0, 1, 1, 1]),
).with_twins(
    """all_answers_move: Running totals of noisy answers, claimed where all answers move
        each difference of neighbouring totals costs epsilon of its own: n epsilon for n answers
        the same totals""",
    all_answers_move=Twin(
        neighbours="vectors whose answers each move by at most `sensitivity`, in any direction",
        adjacency=("all-differ",),
        default_pair=([1] * 10, [2] * 10),
    ),
)


ENTRIES = (
    *(laplace, laplace_vector, laplace_average, laplace_sum, counting_queries, histogram, geometric),
    *(clamped_geometric, norm_l1, norm_l2, norm_linf, k_norm_l2, k_norm_linf, gaussian, gaussian_version_2),
    *(gaussian_version_2_corrected, gaussian_analytic, gaussian_zcdp, gaussian_gdp, gaussian_vector, snapping),
    *(truncated_geometric, prefix_sums),
)
