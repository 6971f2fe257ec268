"""Regression: from noisy sums, and output perturbation of least squares.

The line of least squares needs five sums of the data, and each gets Laplace noise. With x and y clipped to [-1, 1], one
person adds at most 1 to each of n, sum x, sum y, sum xy and sum x^2.

Output perturbation needs bounds: labels are clipped, and the regulariser bounds the optimum. With |x| <= 1 and |y| <= B
the optimum is at most W = B / (2 sqrt(lambda)), so a record's gradient there is at most 2 B (1 + 1 / (2 sqrt(lambda))),
and the optimum moves by at most 2 B (1 + 1 / (2 sqrt(lambda))) / (n lambda).
"""

import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.learning.output_noise import NOTES, Data, in_room
from dpaudit.catalogue.noise import Rng, centred, one_draw, scaled_each
from dpaudit.catalogue.promises import EPSILON, pure_if_added_or_removed

SUMS = 5

_OTHERS: Data = [[0.2, 0.5], [-0.6, -0.4], [0.5, 0.7], [0.9, 0.8]]


def line(sums: Reals) -> Reals:
    """Slope and intercept from (n, sum x, sum y, sum xy, sum x^2), first axis: what anyone can compute.

    >>> line(np.array([2.0, 1.0, 3.0, 2.0, 1.0]))
    array([1., 1.])
    """
    n, x, y, xy, xx = sums
    slope = (n * xy - x * y) / (n * xx - x * x)
    return np.stack([slope, (y - slope * x) / n])


def clipped(value: float, bound: float = 1.0) -> float:
    """The value, or the end of [-bound, bound] that it lies beyond."""
    return max(-bound, min(bound, value))


def _exact(records: Data) -> list[float]:
    return [
        float(len(records)),
        sum(x for x, _ in records),
        sum(y for _, y in records),
        sum(x * y for x, y in records),
        sum(x * x for x, _ in records),
    ]


def _clipped_sums(data: Data, **_: float) -> list[float]:
    return _exact([[clipped(x), clipped(y)] for x, y in data])


def _shared_out(*shares: float) -> Code:
    """The clipped sums, with noise of so many times 1 / epsilon on each."""
    return scaled_each(_clipped_sums, lambda data, epsilon: np.array(shares, float) / epsilon)


def _scales_of_data(data: Data, epsilon: float) -> Reals:
    bound = float(np.abs(np.asarray(data)).max())
    return SUMS * np.array([1.0, bound, bound, bound**2, bound**2]) / epsilon


regression_from_sums = in_room(
    name="regression_from_sums",
    title="Linear regression from noisy sufficient statistics",
    source=Source(
        "CS 208, notes 002, 'Modifying ML Algorithms'",
        "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity in private data analysis",
    ),
    formula=(
        "n, sum x, sum y, sum xy, sum x^2, each plus its own draw of Lap(5 / epsilon), x and y clipped to [-1, 1]; "
        "slope and intercept are computed from the five"
    ),
    neighbours="datasets of which one has a record more",
    code=_shared_out(*[SUMS] * SUMS),
    parameters=(EPSILON,),
    promise=pure_if_added_or_removed,
    default_pair=([*_OTHERS, [1.0, 1.0]], [*_OTHERS]),
).with_twins(
    """exact_squares: Regression from sums, with noise on all but the sum of squares
        the sum of squares of x is a statistic of the data as well: released exactly it tells who is there
        n, sum x, sum y and sum xy, each plus Lap(5 / epsilon), and the exact sum x^2
    exact_count: Regression from sums, with the exact number of records
        where neighbours differ by a record the number of records is private too
        the exact n, and sum x, sum y, sum xy and sum x^2, each plus Lap(5 / epsilon)
    one_draw: Regression from sums, with one draw for all five
        the difference of two sums has no noise at all
        n, sum x, sum y, sum xy, sum x^2, all plus the same draw of Lap(5 / epsilon)
    budget_not_split: Regression from sums, all of epsilon for each
        five releases at epsilon each are 5 epsilon together, and one record moves all five
        n, sum x, sum y, sum xy, sum x^2, each plus its own draw of Lap(1 / epsilon)
    bounds_from_data: Regression from sums, clipped to the largest value in the data
        one far record widens the noise of all sums: how far they scatter tells whether it is there
        the five sums unclipped, with noise for |x|, |y| <= the largest |x| or |y| in the data""",
    exact_squares=Twin(code=_shared_out(SUMS, SUMS, SUMS, SUMS, 0)),
    exact_count=Twin(code=_shared_out(0, SUMS, SUMS, SUMS, SUMS), default_pair=([*_OTHERS, [0.0, 0.0]], [*_OTHERS])),
    one_draw=Twin(
        code=one_draw(_clipped_sums, lambda data, epsilon: SUMS / epsilon),
        default_pair=([*_OTHERS, [0.5, 1.0]], [*_OTHERS]),
    ),
    budget_not_split=Twin(code=_shared_out(*[1] * SUMS)),
    bounds_from_data=Twin(
        code=scaled_each(lambda data, **_: _exact(data), _scales_of_data),
        default_pair=([*_OTHERS, [6.0, 6.0]], [*_OTHERS]),
    ),
)


_SMALL: Data = [
    [0.5, 0.4],
    [-0.3, -0.2],
    [0.2, 0.3],
    [-0.5, -0.3],
    [0.1, 0.0],
    [0.4, 0.1],
    [-0.2, 0.1],
    [0.3, 0.5],
    [-0.4, -0.6],
]


def sensitivity(records: int, weight: float, bound: float) -> float:
    """How far the ridge optimum of records with |x| <= 1 and |y| <= bound moves when one of them is replaced, at most.

    >>> sensitivity(10, 1.0, 1.0)
    0.3
    """
    return 2.0 * bound * (1.0 + 0.5 / math.sqrt(weight)) / (records * weight)


def _ridge(data: Data, rng: Rng, epsilon: float, weight: float, bound: float, *, clip: bool, average: bool) -> float:
    kept = [(clipped(x), clipped(y, bound) if clip else y) for x, y in data]
    flat = len(data) * weight if average else weight
    optimum = sum(x * y for x, y in kept) / (sum(x * x for x, _ in kept) + flat)
    return optimum + rng.laplace(scale=_scale(data, epsilon, weight, bound))


def _fit(data: Data, weight: float, bound: float, *, clip: bool, average: bool, **_: float) -> float:
    x, y = np.asarray(data, float).T
    x, y = np.clip(x, -1.0, 1.0), np.clip(y, -bound, bound) if clip else y
    return float((x @ y) / (x @ x + (len(data) * weight if average else weight)))


def _scale(data: Data, epsilon: float, weight: float, bound: float) -> float:
    return sensitivity(len(data), weight, bound) / epsilon


def _code(*, clip: bool = True, average: bool = True) -> Code:
    fit, program = (partial(call, clip=clip, average=average) for call in (_fit, _ridge))
    return centred(fit, _scale, program)


ridge_output_perturbation = in_room(
    name="ridge_output_perturbation",
    title="Output perturbation of ridge regression",
    source=Source(
        f"{NOTES}; exercise 3.1 (the objective)",
        "Chaudhuri, Monteleoni & Sarwate 2011, Differentially private empirical risk minimization (the argument)",
    ),
    formula=(
        "w* + Lap(S / epsilon), w* = argmin (1/n) sum (y - w x)^2 + lambda w^2, x clipped to [-1, 1] and y to [-B, B], "
        "S = 2 B (1 + 1 / (2 sqrt(lambda))) / (n lambda)"
    ),
    code=_code(),
    parameters=(
        EPSILON,
        Parameter("weight", 1.0, "squared units of x", "lambda, of the regulariser", validate.positive),
        Parameter("bound", 1.0, "units of y", "B, what labels are clipped to", validate.positive),
    ),
    default_pair=([*_SMALL, [1.0, 1.0]], [*_SMALL, [1.0, -1.0]]),
).with_twins(
    """labels_not_clipped: Ridge regression on labels of any size
        the gradient of a squared loss grows with the label, and the move of the optimum with it
        as ridge regression with noise, with the labels as they come
    sum_for_average: Ridge regression of the sum, with noise for the average
        lambda beside a sum of losses is n times weaker than beside their average: the optimum moves further
        w* + Lap(S / epsilon) with the S of the average, and w* = argmin sum (y - w x)^2 + lambda w^2""",
    labels_not_clipped=Twin(code=_code(clip=False), default_pair=([*_SMALL, [1.0, 8.0]], [*_SMALL, [1.0, -1.0]])),
    sum_for_average=Twin(code=_code(average=False)),
)
