"""The exponential mechanism: a candidate with probability proportional to the exponential of its utility."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Masked, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, pure_if_added_or_removed
from dpaudit.catalogue.selection.draws import by_law, chosen, of_answers, pick, rate, with_values
from dpaudit.catalogue.selection.races import in_room
from dpaudit.losses.selecting import exponential

Utilities = list[float]

CHEEMA = "Cheema & Huszár, notes 004, 'The exponential mechanism'"
MCSHERRY = "McSherry & Talwar 2007, Mechanism design via differential privacy"
UTILITY = Parameter(
    "sensitivity", 1.0, "units of utility", "how far one person moves the utility of a candidate", validate.positive
)
LIMIT = Parameter(
    "limit", 2.0, "units of utility", "where utilities are cut off, on both sides of 0", validate.positive
)
TOO_LOW = Parameter("too_low", 4.0, "units of utility", "the cost of each unit below the count", validate.positive)
TOO_HIGH = Parameter("too_high", 1.0, "units of utility", "the cost of each unit above the count", validate.positive)
TOP = Parameter("top", 10, "units of the count", "the largest candidate", partial(validate.whole, least=1))


# --- the utilities are given --------------------------------------------------------------------------------------


def _exponential(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    return pick([epsilon * utility / (2.0 * sensitivity) for utility in data], rng)


_LAW = of_answers(exponential, rate(0.5))


def _factor_two_missing(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    return pick([epsilon * utility / sensitivity for utility in data], rng)


def _utility_released(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> dict[int, float]:
    winner = _exponential(data, rng, epsilon, sensitivity)
    return {winner: float(data[winner])}


def _utility_released_runs(data: Utilities, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Masked:
    winner = chosen(_LAW(data, epsilon=epsilon, sensitivity=sensitivity), runs, rng)
    return with_values(winner, np.asarray(data, float)[winner], len(data))


def _utility_released_loss(first: Utilities, second: Utilities, epsilon: float, sensitivity: float) -> float:
    return 0.0 if list(first) == list(second) else math.inf


def _powers_of_two(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    return pick([math.log(2.0) * epsilon * utility / (2.0 * sensitivity) for utility in data], rng)


def _less_cost(data: int, too_low: float, too_high: float, top: int, **_: float) -> Utilities:
    return [-max(too_low * (data - candidate), too_high * (candidate - data)) for candidate in range(top + 1)]


exponential_mechanism = in_room(
    name="exponential_mechanism",
    title="The exponential mechanism",
    source=Source(CHEEMA, MCSHERRY),
    formula="candidate r with probability proportional to e^(epsilon u(r) / (2 sensitivity))",
    neighbours="utilities that each move by at most `sensitivity`, in any direction",
    code=by_law(_exponential, _LAW),
    parameters=(EPSILON, UTILITY),
    default_pair=([0, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]),
).with_twins(
    factor_two_missing=Twin(
        title="The exponential mechanism without the 2 in the exponent",
        reason="a weight moves by e^epsilon and the sum of weights by e^epsilon the other way: 2 epsilon together",
        formula="candidate r with probability proportional to e^(epsilon u(r) / sensitivity)",
        code=by_law(_factor_two_missing, of_answers(exponential, rate(1.0))),
    ),
    utility_released=Twin(
        title="The exponential mechanism with the exact utility of the winner",
        reason="the utility is released without noise: where it moved, the two datasets have no output in common",
        formula="candidate r with probability proportional to e^(epsilon u(r) / (2 sensitivity)), and u(r)",
        code=Code(_utility_released, _utility_released_runs, _utility_released_loss),
        default_pair=([0, 1, 2], [0, 1, 3]),
    ),
    powers_of_two=Harmless(
        title="The exponential mechanism with powers of two",
        reason="2^x = e^(x ln 2) only lowers epsilon, to 0.69 of the claim",
        formula="candidate r with probability proportional to 2^(epsilon u(r) / (2 sensitivity))",
        code=by_law(_powers_of_two, of_answers(exponential, rate(0.5 * math.log(2.0)))),
    ),
    cut_off=Harmless(
        title="The exponential mechanism with utilities cut off",
        reason="cutting off at limits known to all never moves two utilities further apart",
        formula="candidate r with probability proportional to e^(epsilon u(r) / (2 sensitivity)), u(r) cut to +-limit",
        on=lambda data, limit, **_: [min(max(utility, -limit), limit) for utility in data],
        parameters=(LIMIT,),
        default_pair=([0, 1, 1, 1, 1, 9], [1, 0, 0, 0, 0, 8]),
    ),
    two_prices=Harmless(
        title="A count by the exponential mechanism, where too low costs more than too high",
        reason="the cost of a candidate moves by the larger of the two prices at most, and the exponent allows for it",
        formula="r in {0, ..., top} with probability proportional to e^(-epsilon cost(r) / (2 sensitivity max(too_low, "
        "too_high))), cost(r) = too_low (count - r) below the count and too_high (r - count) above it",
        on=_less_cost,
        at=lambda data, sensitivity, too_low, too_high, **_: {"sensitivity": sensitivity * max(too_low, too_high)},
        parameters=(TOO_LOW, TOO_HIGH, TOP),
        default_pair=(5, 6),
        neighbours="counts at most `sensitivity` apart",
        adjacency=(),
    ),
    lower_price=Twin(
        title="A count by the exponential mechanism with two prices, scaled to the lower one",
        reason="one person moves the cost of every candidate below the count by the higher price",
        formula="the same with the smaller of the two prices in the exponent",
        on=_less_cost,
        at=lambda data, sensitivity, too_low, too_high, **_: {"sensitivity": sensitivity * min(too_low, too_high)},
        parameters=(TOO_LOW, TOO_HIGH, TOP),
        default_pair=(5, 6),
        neighbours="counts at most `sensitivity` apart",
        adjacency=(),
    ),
)


# --- the most common value: all utilities move one way ------------------------------------------------------------

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
    code=by_law(_most_common, lambda data, epsilon, candidates: exponential(_counts(data, candidates), epsilon)),
    parameters=(EPSILON, VALUES),
    promise=pure_if_added_or_removed,
    default_pair=([0, 0, 1, 2], [0, 0, 1, 2, 3]),
).with_twins(
    unseen_dropped=Twin(
        title="The most common value, chosen among the values that occur",
        reason="a value that nobody has is never reported: the one person who has it shows",
        formula="value v with probability proportional to e^(epsilon count(v)), among the values in the data",
        code=by_law(_unseen_dropped, _seen_law),
    ),
    weighted_votes=Twin(
        title="The most common value, where a record may count several times",
        reason="a record that counts three times moves a count by 3, and the exponent allows for 1",
        formula="value v with probability proportional to e^(epsilon times(v)), times(v) as the records say",
        on=lambda data, **_: [vote for vote, times in data for _ in range(times)],
        default_pair=([[0, 1], [0, 1], [1, 1], [2, 1]], [[0, 1], [0, 1], [1, 1], [2, 1], [3, 3]]),
        neighbours="lists of records, each a value and how often it counts, one record more or less",
    ),
)
