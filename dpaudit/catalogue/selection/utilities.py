"""The exponential mechanism: a candidate with probability proportional to the exponential of its utility, or loss."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Places, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import CS208, EPSILON, pure_if_added_or_removed, pure_if_replaced, unless_same
from dpaudit.catalogue.selection.races import by_law, in_room, of_answers, pick, rate, told_exactly
from dpaudit.losses.released import exponential

Utilities = list[float]

CHEEMA = "Cheema & Huszár, notes 004, 'The exponential mechanism'"
MCSHERRY = "McSherry & Talwar 2007, Mechanism design via differential privacy"
UTILITY = Parameter("sensitivity", 1.0, "units of utility", "how far one person moves the utility of a candidate")
LIMIT = Parameter("limit", 2.0, "units of utility", "where utilities are cut off, on both sides of 0")
TOO_LOW = Parameter("too_low", 4.0, "units of utility", "the cost of each unit below the count")
TOO_HIGH = Parameter("too_high", 1.0, "units of utility", "the cost of each unit above the count")
TOP = Parameter("top", 10, "units of the count", "the largest candidate")


def _exponential(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    return pick([epsilon * utility / (2.0 * sensitivity) for utility in data], rng)


_LAW = of_answers(exponential, rate(0.5))


def _less_cost(data: int, too_low: float, too_high: float, top: int, **_: float) -> Utilities:
    return [-max(too_low * (data - candidate), too_high * (candidate - data)) for candidate in range(top + 1)]


def _priced(price: Callable[[float, float], float], broken: bool = True) -> Twin:
    """A count by the exponential mechanism, scaled to one of the two prices."""
    return Twin(
        on=_less_cost,
        at=lambda data, sensitivity, too_low, too_high, **_: {"sensitivity": sensitivity * price(too_low, too_high)},
        parameters=(TOO_LOW, TOO_HIGH, TOP),
        default_pair=(5, 6),
        neighbours="counts at most `sensitivity` apart",
        adjacency=(),
        broken=broken,
    )


exponential_mechanism = in_room(
    name="exponential_mechanism",
    title="The exponential mechanism",
    source=Source(CHEEMA, MCSHERRY),
    formula="candidate r with probability proportional to e^(epsilon u(r) / (2 sensitivity))",
    neighbours="utilities that each move by at most `sensitivity`, in any direction",
    code=by_law(_LAW, _exponential),
    parameters=(EPSILON, UTILITY),
    default_pair=([0, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]),
).with_twins(
    """factor_two_missing: The exponential mechanism without the 2 in the exponent
        a weight moves by e^epsilon and the sum of weights by e^epsilon the other way: 2 epsilon together
        candidate r with probability proportional to e^(epsilon u(r) / sensitivity)
    utility_released: The exponential mechanism with the exact utility of the winner
        the utility is released without noise: where it moved, the two datasets have no output in common
        candidate r with probability proportional to e^(epsilon u(r) / (2 sensitivity)), and u(r)
    powers_of_two: The exponential mechanism with powers of two
        2^x = e^(x ln 2) only lowers epsilon, to 0.69 of the claim
        candidate r with probability proportional to 2^(epsilon u(r) / (2 sensitivity))
    cut_off: The exponential mechanism with utilities cut off
        cutting off at limits known to all never moves two utilities further apart
        candidate r with probability proportional to e^(epsilon u(r) / (2 sensitivity)), u(r) cut to +-limit
    two_prices: A count by the exponential mechanism, where too low costs more than too high
        the cost of a candidate moves by the larger of the two prices at most, and the exponent allows for it
        r in {0, ..., top} with probability proportional to e^(-epsilon cost(r) / (2 sensitivity max(too_low, \
            too_high))), cost(r) = too_low (count - r) below the count and too_high (r - count) above it
    lower_price: A count by the exponential mechanism with two prices, scaled to the lower one
        one person moves the cost of every candidate below the count by the higher price
        the same with the smaller of the two prices in the exponent""",
    factor_two_missing=Twin(
        code=by_law(of_answers(exponential, rate(1.0))), edit={"(2.0 * sensitivity)": "sensitivity"}
    ),
    utility_released=Twin(
        code=told_exactly(_exponential, _LAW, lambda data: np.asarray(data, float)), default_pair=([0, 1, 2], [0, 1, 3])
    ),
    powers_of_two=Harmless(
        code=by_law(of_answers(exponential, rate(0.5 * math.log(2.0)))), edit={"[epsilon": "[math.log(2.0) * epsilon"}
    ),
    cut_off=Harmless(
        on=lambda data, limit, **_: [min(max(utility, -limit), limit) for utility in data],
        parameters=(LIMIT,),
        default_pair=([0, 1, 1, 1, 1, 9], [1, 0, 0, 0, 0, 8]),
    ),
    two_prices=_priced(max, broken=False),
    lower_price=_priced(min),
)


VALUES = Parameter("candidates", 4, "values", "how many values there are: 0, 1, ...", partial(validate.whole, least=2))
Votes = list[int]


def _most_common(data: Votes, rng: Rng, epsilon: float, candidates: int) -> int:
    return pick([epsilon * data.count(value) for value in range(candidates)], rng)


def _counts(data: Votes, candidates: int) -> Reals:
    return np.array([float(data.count(value)) for value in range(candidates)])


def _unseen_dropped(data: Votes, rng: Rng, epsilon: float, candidates: int) -> int:
    seen = sorted(set(data))
    return seen[pick([epsilon * data.count(value) for value in seen], rng)]


def _seen_law(data: Votes, epsilon: float, candidates: int) -> Reals:
    counts = _counts(data, candidates)
    return exponential(np.where(counts > 0.0, counts, -np.inf), epsilon)


most_common = in_room(
    name="most_common",
    title="The most common value by the exponential mechanism, without the 2",
    source=Source(CHEEMA, f"{MCSHERRY}; Dwork & Roth 2014 (utilities that all move one way)"),
    formula="value v with probability proportional to e^(epsilon count(v)): one more record raises counts, lowers none",
    neighbours="lists of values, one record more or less",
    adjacency=(),
    code=by_law(lambda data, epsilon, candidates: exponential(_counts(data, candidates), epsilon), _most_common),
    parameters=(EPSILON, VALUES),
    promise=pure_if_added_or_removed,
    default_pair=([0, 0, 1, 2], [0, 0, 1, 2, 3]),
).with_twins(
    """unseen_dropped: The most common value, chosen among the values that occur
        a value that nobody has is never reported: the one person who has it shows
        value v with probability proportional to e^(epsilon count(v)), among the values in the data
    weighted_votes: The most common value, where a record may count several times
        a record that counts three times moves a count by 3, and the exponent allows for 1
        value v with probability proportional to e^(epsilon times(v)), times(v) as the records say""",
    unseen_dropped=Twin(code=by_law(_seen_law, _unseen_dropped)),
    weighted_votes=Twin(
        on=lambda data, **_: [vote for vote, times in data for _ in range(times)],
        default_pair=([[0, 1], [0, 1], [1, 1], [2, 1]], [[0, 1], [0, 1], [1, 1], [2, 1], [3, 3]]),
        neighbours="lists of records, each a value and how often it counts, one record more or less",
    ),
)


Records = list[int]

LARGEST = Parameter("top", 9, "units of the records", "the largest value; the least is 0")


def _imbalance(data: Records, value: int) -> int:
    return abs(sum(record < value for record in data) - sum(record > value for record in data))


def _median(data: Records) -> int:
    return sorted(data)[(len(data) - 1) // 2]


def _private_median(data: Records, rng: Rng, epsilon: float, top: int) -> int:
    return pick([-epsilon * _imbalance(data, value) / 2.0 for value in range(top + 1)], rng)


def _median_law(data: Records, epsilon: float, top: int) -> Reals:
    return exponential(-np.array([float(_imbalance(data, value)) for value in range(top + 1)]), epsilon / 2.0)


def _range_from_data(data: Records, rng: Rng, epsilon: float, top: int) -> int:
    values = range(min(data), max(data) + 1)
    return values[pick([-epsilon * _imbalance(data, value) / 2.0 for value in values], rng)]


def _inner_law(data: Records, epsilon: float, top: int) -> Reals:
    values = np.arange(top + 1)
    law = np.where((min(data) <= values) & (values <= max(data)), _median_law(data, epsilon, top), 0.0)
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
    code=by_law(_median_law, _private_median),
    parameters=(EPSILON, LARGEST),
    promise=pure_if_added_or_removed,
    default_pair=([2, 3, 3, 4, 7], [2, 3, 3, 4, 7, 9]),
).with_twins(
    """share_sensitivity: A private median with the sensitivity of shares and the utility in records
        a share of n records moves by 1 / n, their number by 1: the sensitivity is taken n times too small
        value v with probability proportional to e^(-epsilon n |records below v - records above v| / 2)
    range_from_data: A private median, chosen between the least and the largest record
        values beyond the largest record are never reported: a person who lies there shows
        as the private median, among the values from the least record to the largest
    distance_to_median: A private median with the distance to the median as utility
        one record can move the median across the whole range, and the exponent allows for 1
        value v with probability proportional to e^(-epsilon |v - median| / 2)
    unmixed_chain: A private median by a Markov chain that is stopped too early
        after a few steps the law still depends on the start, and the start is the exact median
        `steps` Metropolis steps of +1 or -1 towards the private median, from the exact one""",
    share_sensitivity=Twin(
        code=by_law(lambda data, epsilon, top: _median_law(data, epsilon * len(data), top)),
        edit={"-epsilon": "-epsilon * len(data)"},
        default_pair=([0, 0, 1, 1], [0, 0, 1, 1, 9]),
    ),
    range_from_data=Twin(code=by_law(_inner_law, _range_from_data)),
    distance_to_median=Twin(
        code=by_law(_distance_law, _distance_to_median), default_pair=([1, 1, 7, 7], [1, 1, 7, 7, 7])
    ),
    unmixed_chain=Twin(
        code=by_law(_chain_law, _unmixed_chain),
        parameters=(Parameter("steps", 12, "steps", "how long the chain runs"),),
        default_pair=([1, 1, 7, 7], [1, 1, 7, 7, 7]),
    ),
)


# a record is one of five kinds; row: its losses for three hypotheses, all in [0, 1], so that Delta = 1
LOSSES = ((0.0, 1.0, 0.5), (1.0, 0.0, 0.5), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
HYPOTHESES = range(3)
PENALTY = Parameter("penalty", 0.3, "units of loss", "R(theta) for the second hypothesis, twice that for the third")


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


exponential_mechanism_learning = in_room(
    name="exponential_mechanism_learning",
    title="Learning by the exponential mechanism",
    source=Source(
        f"{CS208}, section 4.3", "McSherry & Talwar 2007; Kasiviswanathan et al. 2011, What can we learn privately?"
    ),
    formula="hypothesis h with probability proportional to e^(epsilon n u(h) / 2), -u(h) its average loss in [0, 1]",
    neighbours="lists of n records, one of them replaced",
    adjacency=(),
    code=by_law(_law, _learning),
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
        code=by_law(lambda data, epsilon: _law(data, epsilon * len(data)), _sum_for_average),
        default_pair=([0, 0, 0, 1, 1], [1, 0, 0, 1, 1]),
    ),
    minimiser=Twin(
        code=Code(_minimiser, _minimiser_runs, unless_same(lambda data, epsilon: _best(data))),
        default_pair=([0, 0, 0, 1, 4], [1, 0, 0, 1, 4]),
    ),
    loss_released=Twin(code=told_exactly(_learning, _law, average_losses)),
    regularised=Harmless(
        code=by_law(_regularised_law),
        edit={") ->": ", penalty: float) ->", "_average(data, h)": "(_average(data, h) + penalty * h)"},
        parameters=(PENALTY,),
    ),
    n_left_out=Harmless(
        code=by_law(lambda data, epsilon: _law(data, epsilon / len(data))),
        edit={" * len(data)": ""},
        default_pair=([0, 2], [0, 3]),
    ),
)
