"""The whole of the unrealistic example: subsets are chosen, and then the average over the chosen ones is released."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.adaptive.analysts import in_room
from dpaudit.catalogue.adaptive.subsets import (
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
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.losses.discrete import log_ratios

Sample = Sequence[float]

HALVES, WHOLES, EXACT = (0.5, 0.5), (1.0, 1.0), (1.0, 0.0)


class TwoStages(NamedTuple):
    """The means to choose by and those to average, group by group, and the noise of the choice and of the average."""

    groups: list[Reals]
    answers: list[Reals]
    choice: float
    last: float


def _plan(
    data: Sample,
    epsilon: float,
    size: int,
    per_group: int,
    bound: float,
    budgets: tuple[float, float] = HALVES,
    of_all: bool = False,
    clip_answer: bool = True,
) -> TwoStages:
    """The two stages have the shares `budgets` of epsilon; a mistake is another way to answer in the last one."""
    groups = split(data, size, per_group, bound)
    answers = groups if clip_answer else split(data, size, per_group, math.inf)
    samples = len(data) if of_all else size * len(groups)
    choice, last = (replaced(len(data), taken, bound) / epsilon for taken in (size, samples))
    return TwoStages(groups, answers, choice / budgets[0], last / budgets[1] if budgets[1] else 0.0)


def _runs(data: Sample, runs: int, rng: Rng, **given: Any) -> Reals:
    groups, answers, choice, last = _plan(data, **given)
    places = chosen(groups, choice, runs, rng)[0]
    released = np.empty((len(groups) + 1, runs))
    released[:-1] = places
    released[-1] = laplace(rng, last, runs)
    for means, picks in zip(answers, places, strict=True):
        released[-1] += means[picks] / len(groups)
    return released.T


def _loss(first: Sample, second: Sample, **given: Any) -> float:
    """For every choice: its log ratio, and the whole shift of the average over it, which Laplace tails show."""
    one, other = _plan(first, **given), _plan(second, **given)
    p, q = (choices(plan.groups, one.choice) for plan in (one, other))
    most = 0.0
    for places in itertools.product(*(range(len(group)) for group in one.groups)):
        here, there = (math.prod(law[j] for law, j in zip(side, places, strict=True)) for side in (p, q))
        means = zip(one.answers, other.answers, places, strict=True)
        moved = sum(float(y[j] - x[j]) for x, y, j in means) / len(places)
        shown = abs(moved) / one.last if one.last else math.inf if moved else 0.0
        most = max(most, abs(float(log_ratios(np.array(here), np.array(there)))) + shown)
    return most


def _select_and_average(data: Sample, rng: Rng, **given: Any) -> tuple[float, ...]:
    groups, answers, choice, last = _plan(data, **given)
    picks = [largest(group, choice, rng) for group in groups]
    average = sum(float(group[pick]) for group, pick in zip(answers, picks, strict=True)) / len(groups)
    return (*map(float, picks), average + (rng.laplace(scale=last) if last else 0.0))


_CODE = Code(_select_and_average, _runs, _loss)

select_and_average = in_room(
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
    default_pair=([3.0, 3.0, *[0.0] * 4, *GROUP], [3.0, -3.0, *[0.0] * 4, *GROUP]),
).with_twins(
    """final_answer_exact: The last query answered without noise
        that nobody adapts to the last answer saves the generalisation, not the privacy: it is exact
        the choice as in select_subsets at epsilon; then the average of the chosen means as it is
    budget_spent_twice: The whole epsilon for the choice, and again for the average
        a choice at epsilon and then an answer at epsilon compose to 2 epsilon
        as select_and_average with Lap(2 bound / (size epsilon)) and Lap(2 bound / (size groups epsilon))
    average_of_all: The noise of an average of all samples
        the average is over the chosen subsets only, so a sample in one weighs per_group times as much
        as select_and_average with Lap(2 bound / (n epsilon / 2)) on the average, n the number of all samples
    final_answer_unclipped: The average taken over the samples as they are
        only the choice saw clipped samples: from 15 to -15 one moves the average five times as far as 3 to -3
        as select_and_average, but the average is over the samples before clipping""",
    final_answer_exact=Twin(code=_CODE.given(budgets=EXACT)),
    budget_spent_twice=Twin(code=_CODE.given(budgets=WHOLES)),
    average_of_all=Twin(code=_CODE.given(of_all=True)),
    final_answer_unclipped=Twin(
        code=_CODE.given(clip_answer=False),
        default_pair=([3.0, 15.0, *[0.0] * 4, *GROUP], [3.0, -15.0, *[0.0] * 4, *GROUP]),
    ),
)
