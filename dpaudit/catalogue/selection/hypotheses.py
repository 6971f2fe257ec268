"""Learning by selection: a hypothesis with probability that falls with its average loss on the records."""

import math

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Places, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, pure_if_replaced
from dpaudit.catalogue.selection.races import by_law, in_room, pick, told_exactly
from dpaudit.losses.selecting import exponential

Records = list[int]

# a record is one of five kinds; row: its losses for three hypotheses, all in [0, 1], so that Delta = 1
LOSSES = ((0.0, 1.0, 0.5), (1.0, 0.0, 0.5), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
HYPOTHESES = range(3)
PENALTY = Parameter(
    "penalty", 0.3, "units of loss", "R(theta) for the second hypothesis, twice that for the third", validate.positive
)


def average_losses(data: Records) -> Reals:
    """The average loss of each hypothesis on the records.

    >>> average_losses([0, 1])
    array([0.5, 0.5, 0.5])
    """
    return np.asarray(np.mean([LOSSES[kind] for kind in data], axis=0))


def _average(data: Records, hypothesis: int) -> float:
    return sum(LOSSES[kind][hypothesis] for kind in data) / len(data)


def _learning(data: Records, rng: Rng, epsilon: float) -> int:
    return pick([-epsilon * len(data) * _average(data, h) / 2.0 for h in HYPOTHESES], rng)


def _law(data: Records, epsilon: float) -> Reals:
    return exponential(-average_losses(data), epsilon * len(data) / 2.0)


def _sum_for_average(data: Records, rng: Rng, epsilon: float) -> int:
    totals = [sum(LOSSES[kind][h] for kind in data) for h in HYPOTHESES]
    return pick([-epsilon * len(data) * total / 2.0 for total in totals], rng)


def _n_left_out(data: Records, rng: Rng, epsilon: float) -> int:
    return pick([-epsilon * _average(data, h) / 2.0 for h in HYPOTHESES], rng)


def _regularised(data: Records, rng: Rng, epsilon: float, penalty: float) -> int:
    return pick([-epsilon * len(data) * (_average(data, h) + penalty * h) / 2.0 for h in HYPOTHESES], rng)


def _regularised_law(data: Records, epsilon: float, penalty: float) -> Reals:
    return exponential(-average_losses(data) - penalty * np.arange(3.0), epsilon * len(data) / 2.0)


def _minimiser(data: Records, rng: Rng, epsilon: float) -> int:
    best = _best(data)
    return best[int(rng.integers(len(best)))]


def _best(data: Records) -> list[int]:
    averages = [_average(data, h) for h in HYPOTHESES]
    return [h for h in HYPOTHESES if averages[h] == min(averages)]


def _minimiser_runs(data: Records, runs: int, rng: Rng, epsilon: float) -> Places:
    best = np.array(_best(data), np.intp)
    return best[rng.integers(len(best), size=runs)]


def _minimiser_loss(first: Records, second: Records, epsilon: float) -> float:
    """Uniform over the best: infinite where these differ."""
    return 0.0 if _best(first) == _best(second) else math.inf


exponential_mechanism_learning = in_room(
    name="exponential_mechanism_learning",
    title="Learning by the exponential mechanism",
    source=Source(
        "CS 208, notes 002, section 4.3",
        "McSherry & Talwar 2007; Kasiviswanathan et al. 2011, What can we learn privately?",
    ),
    formula="hypothesis h with probability proportional to e^(epsilon n u(h) / 2), -u(h) its average loss in [0, 1]",
    neighbours="lists of n records, one of them replaced",
    adjacency=(),
    code=by_law(_learning, _law),
    parameters=(EPSILON,),
    promise=pure_if_replaced,
    default_pair=([2, 3, 3, 3, 3], [3, 3, 3, 3, 3]),
).with_twins(
    """sum_for_average: Learning by the exponential mechanism, with the sum of losses in the place of the average
        n times the sum is n^2 averages: one record moves it by n, as if its sensitivity were n times smaller
        hypothesis h with probability proportional to e^(-epsilon n (sum of losses of h) / 2)
    minimiser: Learning without any noise: the minimiser of the average loss
        a hypothesis that is not among the best is never chosen, and one record can put it there
        the hypothesis with the least average loss, one of them at random where several have it
    loss_released: Learning by the exponential mechanism, with the training loss of the hypothesis
        the average loss is released without noise: where it moved, no output is common to both datasets
        hypothesis h with probability proportional to e^(epsilon n u(h) / 2), and its average loss, -u(h)
    regularised: Learning by the exponential mechanism with a penalty on hypotheses
        the penalty R does not depend on the records, so it moves no utility
        hypothesis h with probability proportional to e^(-epsilon n (average loss + R(h)) / 2)
    n_left_out: Learning by the exponential mechanism without the factor n
        the utilities then move by 1 / n only, and the loss is epsilon / n
        hypothesis h with probability proportional to e^(epsilon u(h) / 2), -u(h) its average loss""",
    sum_for_average=Twin(
        code=by_law(_sum_for_average, lambda data, epsilon: _law(data, epsilon * len(data))),
        default_pair=([0, 0, 0, 1, 1], [1, 0, 0, 1, 1]),
    ),
    minimiser=Twin(
        code=Code(_minimiser, _minimiser_runs, _minimiser_loss), default_pair=([0, 0, 0, 1, 4], [1, 0, 0, 1, 4])
    ),
    loss_released=Twin(code=told_exactly(_learning, _law, average_losses)),
    regularised=Harmless(code=by_law(_regularised, _regularised_law), parameters=(PENALTY,)),
    n_left_out=Harmless(
        code=by_law(_n_left_out, lambda data, epsilon: _law(data, epsilon / len(data))), default_pair=([0, 2], [0, 3])
    ),
)
