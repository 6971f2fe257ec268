"""The whole of the unrealistic example: subsets are chosen, and then the average over the chosen ones is released."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.adaptive.splitting import (
    BOUND,
    GROUP,
    LECTURE,
    PAPER,
    PER_GROUP,
    SIZE,
    choices,
    chosen,
    largest,
    replaced,
    split,
)
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import pure_if_replaced
from dpaudit.losses.discrete import log_ratios

Sample = Sequence[float]
Budgets = tuple[float, float]

HALVES, WHOLES, EXACT = (0.5, 0.5), (1.0, 1.0), (1.0, 0.0)


def _scales(data: Sample, epsilon: float, size: int, per_group: int, bound: float, budgets: Budgets) -> Budgets:
    """The noise of the choice and that of the average, where the two stages have these shares of epsilon."""
    groups = len(split(data, size, per_group, bound))
    choice, last = (replaced(len(data), taken, bound) / epsilon for taken in (size, size * groups))
    return choice / budgets[0], last / budgets[1] if budgets[1] else 0.0


def _runs(
    data: Sample,
    runs: int,
    rng: Rng,
    epsilon: float,
    size: int,
    per_group: int,
    bound: float,
    *,
    budgets: Budgets = HALVES,
    of_all: bool = False,
    clip_answer: bool = True,
) -> Reals:
    groups = split(data, size, per_group, bound)
    answers = groups if clip_answer else split(data, size, per_group, math.inf)
    choice, last = _scales(data, epsilon, size, per_group, bound, budgets)
    places = chosen(groups, choice, runs, rng)[0]
    released = np.empty((len(groups) + 1, runs))
    released[:-1] = places
    released[-1] = laplace(rng, _of_all(last, data, size, groups) if of_all else last, runs)
    for means, picks in zip(answers, places, strict=True):
        released[-1] += means[picks] / len(groups)
    return released.T


def _of_all(scale: float, data: Sample, size: int, groups: Sequence[Reals]) -> float:
    return scale * size * len(groups) / len(data)


def _loss(
    first: Sample,
    second: Sample,
    epsilon: float,
    size: int,
    per_group: int,
    bound: float,
    *,
    budgets: Budgets = HALVES,
    of_all: bool = False,
    clip_answer: bool = True,
) -> float:
    """For every choice: its log ratio, and the whole shift of the average over it, which Laplace tails show."""
    groups = split(first, size, per_group, bound)
    choice, last = _scales(first, epsilon, size, per_group, bound, budgets)
    scale = _of_all(last, first, size, groups) if of_all else last
    p, q = (choices(split(data, size, per_group, bound), choice) for data in (first, second))
    a, b = (split(data, size, per_group, bound if clip_answer else math.inf) for data in (first, second))
    most = 0.0
    for places in itertools.product(*(range(len(group)) for group in groups)):
        here, there = (math.prod(law[j] for law, j in zip(side, places, strict=True)) for side in (p, q))
        moved = sum(float(y[j] - x[j]) for x, y, j in zip(a, b, places, strict=True)) / len(groups)
        shown = abs(moved) / scale if scale else math.inf if moved else 0.0
        most = max(most, abs(float(log_ratios(np.array(here), np.array(there)))) + shown)
    return most


# --- the program ----------------------------------------------------------------------------------------------


def _select_and_average(
    data: Sample,
    rng: Rng,
    epsilon: float,
    size: int,
    per_group: int,
    bound: float,
    *,
    budgets: Budgets = HALVES,
    of_all: bool = False,
    clip_answer: bool = True,
) -> tuple[float, ...]:
    groups = split(data, size, per_group, bound)
    picks = [largest(group, 2.0 * bound / size / (epsilon * budgets[0]), rng) for group in groups]
    answers = groups if clip_answer else split(data, size, per_group, math.inf)
    average = sum(float(group[pick]) for group, pick in zip(answers, picks, strict=True)) / len(groups)
    if budgets[1]:
        scale = 2.0 * bound / (len(data) if of_all else size * len(groups)) / (epsilon * budgets[1])
        average += rng.laplace(scale=scale)
    return (*map(float, picks), average)


_CODE = Code(_select_and_average, _runs, _loss)

select_and_average = Entry(
    module="dpaudit.catalogue.adaptive",
    name="select_and_average",
    title="The average over the subsets that were chosen",
    source=Source(LECTURE, PAPER),
    formula=(
        "clip the samples; of every group the subset of the largest mean after Lap(2 bound / (size epsilon / 2)); "
        "then the average of the chosen means plus Lap(2 bound / (size groups epsilon / 2))"
    ),
    neighbours="samples of the same size that differ in one value",
    code=_CODE,
    parameters=(
        Parameter("epsilon", 1.0, "nats", "the claim, half of it for the choice", validate.positive),
        SIZE,
        PER_GROUP,
        BOUND,
    ),
    promise=pure_if_replaced,
    default_pair=([3.0, 3.0, *[0.0] * 4, *GROUP], [3.0, -3.0, *[0.0] * 4, *GROUP]),
).with_twins(
    Twin(
        name="final_answer_exact",
        title="The last query answered without noise",
        reason="that nobody adapts to the last answer saves the generalisation, not the privacy: it is exact",
        formula="the choice as in select_subsets at epsilon; then the average of the chosen means as it is",
        code=_CODE.given(budgets=EXACT),
    ),
    Twin(
        name="budget_spent_twice",
        title="The whole epsilon for the choice, and again for the average",
        reason="a choice at epsilon and then an answer at epsilon compose to 2 epsilon",
        formula="as select_and_average with Lap(2 bound / (size epsilon)) and Lap(2 bound / (size groups epsilon))",
        code=_CODE.given(budgets=WHOLES),
    ),
    Twin(
        name="average_of_all",
        title="The noise of an average of all samples",
        reason="the average is over the chosen subsets only, so a sample in one weighs per_group times as much",
        formula="as select_and_average with Lap(2 bound / (n epsilon / 2)) on the average, n the number of all samples",
        code=_CODE.given(of_all=True),
    ),
    Twin(
        name="final_answer_unclipped",
        title="The average taken over the samples as they are",
        reason="only the choice saw clipped samples: from 15 to -15 one moves the average five times as far as 3 to -3",
        formula="as select_and_average, but the average is over the samples before clipping",
        code=_CODE.given(clip_answer=False),
        default_pair=([3.0, 15.0, *[0.0] * 4, *GROUP], [3.0, -15.0, *[0.0] * 4, *GROUP]),
    ),
)
