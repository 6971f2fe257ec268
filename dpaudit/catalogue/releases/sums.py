"""Sums and largest values as answers to queries, and refusals to answer."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Masked
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around, centred, centred_each
from dpaudit.catalogue.promises import DMNS, EPSILON, at_least_one, pure_if_added_or_removed
from dpaudit.catalogue.releases.fixed import exact, in_room

Values = Sequence[float]

CAP = Parameter("cap", 10.0, "units of the values", "larger values count as this", validate.positive)
CHEEMA = "Cheema & Huszár, notes 004, 'Why bother?' (query auditing)"


def _sum(data: Values, rng: Rng, epsilon: float, cap: float) -> float:
    return sum(min(value, cap) for value in data) + rng.laplace(scale=cap / epsilon)


def _sum_loss(first: Values, second: Values, epsilon: float, cap: float) -> float:
    return epsilon * abs(_total(first, cap) - _total(second, cap)) / cap


def _total(data: Values, cap: float, **_: float) -> float:
    return float(sum(min(value, cap) for value in data))


def _scale(data: Values, epsilon: float, cap: float, **_: float) -> float:
    return cap / epsilon


def _refused_noisy(data: Values, rng: Rng, epsilon: float, cap: float, least: int) -> dict[int, float]:
    return {0: _sum(data, rng, epsilon, cap)} if len(data) >= least else {}


def _refused_noisy_runs(data: Values, runs: int, rng: Rng, epsilon: float, cap: float, least: int) -> Masked:
    noisy = around(_total(data, cap), cap / epsilon, runs, rng)[:, None]
    return np.ma.MaskedArray(noisy, mask=np.full(noisy.shape, len(data) < least))


def _refused_noisy_loss(first: Values, second: Values, epsilon: float, cap: float, least: int) -> float:
    refused = [len(data) < least for data in (first, second)]
    if refused[0] != refused[1]:
        return math.inf
    return 0.0 if refused[0] else _sum_loss(first, second, epsilon, cap)


_SALARIES = [4, 6, 3, 7, 10]
_LEAST = Parameter("least", 5, "people", "a query about fewer is refused", at_least_one)

noisy_sum = in_room(
    name="noisy_sum",
    title="The sum over the people that a query selects, with noise",
    source=Source("Sarkar, notes 003, 'Aggregate functions' (sum)", DMNS),
    formula="the sum, each value at most `cap`, plus a draw of Lap(cap / epsilon)",
    neighbours="lists of values of at least 0, of which one is added or removed",
    code=centred(_total, _scale, _sum, _sum_loss),
    parameters=(EPSILON, CAP),
    promise=pure_if_added_or_removed,
    default_pair=(_SALARIES, _SALARIES[:4]),
).with_twins(
    """refused: The exact sum, refused where fewer than 5 are selected
        the refusal tells that there are fewer than 5, and an answer is exact
        the sum where at least `least` people are selected; nothing otherwise
    refused_noisy: The noisy sum, refused where fewer than 5 are selected
        the noise in the answer is enough, but whether there is an answer depends on the exact count
        as the noisy sum where at least `least` people are selected; nothing otherwise
    unclipped: A noisy sum whose values are not cut at the cap
        the noise is for values up to the cap, and a value of three times the cap costs 3 epsilon
        the sum of the values as they are, plus a draw of Lap(cap / epsilon)
    asked_again: The same sum asked four times, with fresh noise each time
        every answer costs epsilon, and the noise averages out
        `times` answers, each the sum plus a draw of its own of Lap(cap / epsilon)""",
    refused=Twin(
        code=exact(lambda data, least, **_: {0: float(sum(data))} if len(data) >= least else {}, places=1),
        parameters=(_LEAST,),
    ),
    refused_noisy=Twin(code=Code(_refused_noisy, _refused_noisy_runs, _refused_noisy_loss), parameters=(_LEAST,)),
    unclipped=Twin(
        code=centred(lambda data, **_: sum(data), _scale), default_pair=([*_SALARIES[:4], 30], _SALARIES[:4])
    ),
    asked_again=Twin(
        code=centred_each(lambda data, cap, times, **_: [_total(data, cap)] * times, _scale),
        parameters=(Parameter("times", 4, "queries", "how often it is asked", partial(validate.whole, least=2)),),
    ),
)


def _largest(data: Values, cap: float, **_: float) -> tuple[float, float]:
    values = [min(max(value, 0.0), cap) for value in data]
    return max(values), max(values[:-1])


def _query_auditing(data: Values, **_: float) -> dict[int, float]:
    of_all, of_others = float(max(data)), float(max(data[:-1]))
    if of_others < of_all:  # both answers together would give the last person's value
        return {0: of_all}
    return {0: of_all, 1: of_others}


noisy_maxima = in_room(
    name="noisy_maxima",
    title="The largest value of all, and of all but one person, with noise",
    source=Source(f"{CHEEMA}, as a release with DP", DMNS),
    formula="the largest value, and the largest but for the last person's, each in [0, cap], plus Lap(2 cap / epsilon)",
    neighbours="lists of values, in one order of the people, with one of them replaced: both answers move by up to cap",
    code=centred_each(_largest, lambda data, epsilon, cap: 2.0 * cap / epsilon),
    parameters=(EPSILON, CAP),
    default_pair=([3, 10, 2, 9], [3, 1, 2, 9]),
).with_twins(
    """exact: The exact largest value of all, and of all but one
        a largest value is the value of one person
        the largest value, and the largest but for the last person's
    query_auditing: Exact largest values, the second refused where both would give a value away
        the refusal itself says that the last person has the largest value, which the first answer gives
        the largest value; then the largest but for the last person's, unless that is smaller""",
    exact=Twin(code=exact(lambda data, **_: (float(max(data)), float(max(data[:-1]))))),
    query_auditing=Twin(code=exact(_query_auditing, places=2), default_pair=([3, 9, 2, 9], [3, 7, 2, 9])),
)
