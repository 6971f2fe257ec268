"""A median by the exponential mechanism: a value is the better, the more evenly it divides the records."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, pure_if_added_or_removed
from dpaudit.catalogue.selection.draws import by_law, pick
from dpaudit.catalogue.selection.races import in_room
from dpaudit.catalogue.selection.utilities import CHEEMA
from dpaudit.losses.selecting import exponential

Records = list[int]

TOP = Parameter("top", 9, "units of the records", "the largest value; the least is 0", partial(validate.whole, least=1))


def _imbalance(data: Records, value: int) -> int:
    return abs(sum(record < value for record in data) - sum(record > value for record in data))


def _median(data: Records) -> int:
    return sorted(data)[(len(data) - 1) // 2]


def _private_median(data: Records, rng: Rng, epsilon: float, top: int) -> int:
    return pick([-epsilon * _imbalance(data, value) / 2.0 for value in range(top + 1)], rng)


def _law(data: Records, epsilon: float, top: int) -> Reals:
    return exponential(-np.array([float(_imbalance(data, value)) for value in range(top + 1)]), epsilon / 2.0)


def _share_sensitivity(data: Records, rng: Rng, epsilon: float, top: int) -> int:
    return pick([-epsilon * len(data) * _imbalance(data, value) / 2.0 for value in range(top + 1)], rng)


def _range_from_data(data: Records, rng: Rng, epsilon: float, top: int) -> int:
    values = range(min(data), max(data) + 1)
    return values[pick([-epsilon * _imbalance(data, value) / 2.0 for value in values], rng)]


def _inner_law(data: Records, epsilon: float, top: int) -> Reals:
    values = np.arange(top + 1)
    law = np.where((min(data) <= values) & (values <= max(data)), _law(data, epsilon, top), 0.0)
    return np.asarray(law / law.sum())


def _distance_to_median(data: Records, rng: Rng, epsilon: float, top: int) -> int:
    return pick([-epsilon * abs(value - _median(data)) / 2.0 for value in range(top + 1)], rng)


def _distance_law(data: Records, epsilon: float, top: int) -> Reals:
    return exponential(-np.abs(np.arange(top + 1.0) - _median(data)), epsilon / 2.0)


def _unmixed_chain(data: Records, rng: Rng, epsilon: float, top: int, steps: int) -> int:
    here = _median(data)
    for _ in range(steps):
        there = min(max(here + (1 if rng.random() < 0.5 else -1), 0), top)
        better = _imbalance(data, here) - _imbalance(data, there)
        if rng.random() < math.exp(epsilon * better / 2.0):
            here = there
    return here


def _chain_law(data: Records, epsilon: float, top: int, steps: int) -> Reals:
    """The start times the power of the matrix of one step, from here (row) to there (column)."""
    imbalance = np.array([float(_imbalance(data, value)) for value in range(top + 1)])
    step = np.zeros((top + 1, top + 1))
    for here, there in itertools.permutations(range(top + 1), 2):
        if abs(here - there) == 1:
            step[here, there] = 0.5 * min(1.0, math.exp(epsilon * (imbalance[here] - imbalance[there]) / 2.0))
    np.fill_diagonal(step, 1.0 - step.sum(axis=1))
    return np.asarray(np.linalg.matrix_power(step, steps)[_median(data)])


private_median = in_room(
    name="private_median",
    title="A median by the exponential mechanism",
    source=Source(
        CHEEMA, "McSherry & Talwar 2007 (the mechanism); Smith 2011, Privacy-preserving statistical estimation"
    ),
    formula=(
        "value v in 0, ..., top with probability proportional to e^(-epsilon |records below v - records above v| / 2)"
    ),
    neighbours="lists of whole numbers from 0 to `top`, one record more or less",
    adjacency=(),
    code=by_law(_private_median, _law),
    parameters=(EPSILON, TOP),
    promise=pure_if_added_or_removed,
    default_pair=([2, 3, 3, 4, 7], [2, 3, 3, 4, 7, 9]),
).with_twins(
    share_sensitivity=Twin(
        title="A private median with the sensitivity of shares and the utility in records",
        reason="a share of n records moves by 1 / n, their number by 1: the sensitivity is taken n times too small",
        formula="value v with probability proportional to e^(-epsilon n |records below v - records above v| / 2)",
        code=by_law(_share_sensitivity, lambda data, epsilon, top: _law(data, epsilon * len(data), top)),
        default_pair=([0, 0, 1, 1], [0, 0, 1, 1, 9]),
    ),
    range_from_data=Twin(
        title="A private median, chosen between the least and the largest record",
        reason="values beyond the largest record are never reported: a person who lies there shows",
        formula="as the private median, among the values from the least record to the largest",
        code=by_law(_range_from_data, _inner_law),
    ),
    distance_to_median=Twin(
        title="A private median with the distance to the median as utility",
        reason="one record can move the median across the whole range, and the exponent allows for 1",
        formula="value v with probability proportional to e^(-epsilon |v - median| / 2)",
        code=by_law(_distance_to_median, _distance_law),
        default_pair=([1, 1, 7, 7], [1, 1, 7, 7, 7]),
    ),
    unmixed_chain=Twin(
        title="A private median by a Markov chain that is stopped too early",
        reason="after a few steps the law still depends on the start, and the start is the exact median",
        formula="`steps` Metropolis steps of +1 or -1 towards the private median, from the exact one",
        code=by_law(_unmixed_chain, _chain_law),
        parameters=(Parameter("steps", 12, "steps", "how long the chain runs", partial(validate.whole, least=1)),),
        default_pair=([1, 1, 7, 7], [1, 1, 7, 7, 7]),
    ),
)
