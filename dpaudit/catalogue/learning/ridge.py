"""Output perturbation of least squares, which needs bounds: labels are clipped, and the regulariser bounds the optimum.

With |x| <= 1 and |y| <= B the optimum is at most W = B / (2 sqrt(lambda)), so a record's gradient there is at most
2 B (1 + 1 / (2 sqrt(lambda))), and the optimum moves by at most 2 B (1 + 1 / (2 sqrt(lambda))) / (n lambda).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.learning.output_noise import NOTES, Data, in_room
from dpaudit.catalogue.learning.sums import clipped
from dpaudit.catalogue.noise import Rng, centred
from dpaudit.catalogue.promises import EPSILON

_OTHERS: Data = [
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
    default_pair=([*_OTHERS, [1.0, 1.0]], [*_OTHERS, [1.0, -1.0]]),
).with_twins(
    labels_not_clipped=Twin(
        title="Ridge regression on labels of any size",
        reason="the gradient of a squared loss grows with the label, and the move of the optimum with it",
        formula="as ridge regression with noise, with the labels as they come",
        code=_code(clip=False),
        default_pair=([*_OTHERS, [1.0, 8.0]], [*_OTHERS, [1.0, -1.0]]),
    ),
    sum_for_average=Twin(
        title="Ridge regression of the sum, with noise for the average",
        reason="lambda beside a sum of losses is n times weaker than beside their average: the optimum moves further",
        formula="w* + Lap(S / epsilon) with the S of the average, and w* = argmin sum (y - w x)^2 + lambda w^2",
        code=_code(average=False),
    ),
)
