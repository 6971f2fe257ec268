"""The private PAC learner of theorem 3.2: any learner from statistical queries, answered with Laplace noise.

The learners are those of `learners`; a record is (x, y), and a query costs epsilon / K of the K that its learner may
ask. The loss and many runs at once rest on its exact law; all its answers, told, are an analyst's of the adaptive room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Integers, Reals
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.learning.learners import LEARNER, LEARNERS, Asking, Query, following, learned, named
from dpaudit.catalogue.learning.output_noise import in_room
from dpaudit.catalogue.learning.queries import BITS, BLUM, HAGHTALAB, TOLERANCE, Data
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, doubled
from dpaudit.losses.discrete import largest_log_ratio

Means = Callable[[Query], float]

_OTHERS: Data = [[1, 0], [2, 0], [3, 0], [4, 0], [5, 1], [6, 1], [7, 1], [6, 1], [3, 0], [1, 0]] + [[7, 1]] * 9
_MIXED: Data = [[0, 1], [0, 1], [0, 1], [4, 0], [5, 1], [6, 1], [7, 1], [6, 1], [3, 0], [1, 0]] + [[7, 1]] * 9


# --- one run ----------------------------------------------------------------------------------------------------


def _hypothesis(
    data: Data, rng: Rng, epsilon: float, bits: int, tolerance: float, learner: str, margin: float = 0.0
) -> int:
    most = named(learner).queries(bits)

    def answer(query: Query) -> float:
        share, noisy = sum(query(x, y) for x, y in data) / len(data), math.nan
        while not abs(noisy - tolerance) >= margin:
            noisy = share + rng.laplace(scale=most / (epsilon * len(data)))
        return float(noisy)

    return learned(named(learner).start(bits, tolerance), answer, most)[0]


def _error_released(data: Data, rng: Rng, bits: int, learner: str, **given: Any) -> tuple[float, float]:
    hypothesis = _hypothesis(data, rng, bits=bits, learner=learner, **given)
    return float(hypothesis), training_error(data, hypothesis, bits, learner)


def training_error(data: Data, hypothesis: int, bits: int, learner: str = "threshold") -> float:
    """The share of records that a hypothesis of a learner's class gets wrong.

    >>> training_error([[1, 0], [2, 1]], 1, 2)
    0.5
    """
    predict = named(learner).predict
    return sum(bool(predict(hypothesis, x, bits)) != (y == 1) for x, y in data) / len(data)


# --- the law: all that a learner can ask, by the sides of tau that answers lie on ----------------------------------


def _means(data: Data) -> Means:
    x, y = np.array(data).T
    return lambda query: float(np.mean(query(x, y)))


def _tail(gap: float, scale: float) -> float:
    """Pr(Lap(scale) > gap)."""
    return 0.5 * math.exp(-gap / scale) if gap > 0.0 else 1.0 - 0.5 * math.exp(gap / scale)


def _leaves(
    start: Callable[[], Asking], above: Means, answers: tuple[float, ...] = (), chance: float = 1.0
) -> Iterator[tuple[int, float]]:
    found = following(start(), answers)
    if isinstance(found, int):
        yield found, chance
        return
    up = above(found)
    yield from _leaves(start, above, (*answers, math.inf), chance * up)
    yield from _leaves(start, above, (*answers, -math.inf), chance * (1.0 - up))


def learner_law(
    data: Data, epsilon: float, bits: int, tolerance: float, learner: str = "threshold", margin: float = 0.0
) -> tuple[Integers, Reals]:
    """The hypotheses in rising order, and the probability of each; answers within `margin` of tau are drawn anew.

    >>> [each.round(4).tolist() for each in learner_law([[0, 0]], 1.0, 1, 0.5)]
    [[0, 1], [0.3033, 0.6967]]
    """
    mean, scale = _means(data), named(learner).queries(bits) / (epsilon * len(data))

    def above(query: Query) -> float:
        gap = tolerance - mean(query)
        up, down = _tail(gap + margin, scale), _tail(margin - gap, scale)
        return up / (up + down)

    found, chances = zip(*_leaves(partial(named(learner).start, bits, tolerance), above), strict=True)
    hypotheses, places = np.unique(np.array(found, np.int64), return_inverse=True)
    return hypotheses, np.bincount(places, np.array(chances, float)).astype(np.float64)


# --- many runs --------------------------------------------------------------------------------------------------


def _hypothesis_runs(data: Data, runs: int, rng: Rng, **given: Any) -> Integers:
    """Drawn from the exact law: answers that may be asked for again have no fixed number."""
    hypotheses, chances = learner_law(data, **given)
    steps = np.cumsum(chances)
    return hypotheses[np.searchsorted(steps[:-1] / steps[-1], rng.random(runs), side="right")]


def _error_runs(data: Data, runs: int, rng: Rng, bits: int, learner: str, **given: Any) -> Reals:
    drawn = _hypothesis_runs(data, runs, rng, bits=bits, learner=learner, **given)
    found, places = np.unique(drawn, return_inverse=True)
    errors = np.array([training_error(data, hypothesis, bits, learner) for hypothesis in found])
    return np.stack([drawn, errors[places]], axis=1)


# --- exact losses -----------------------------------------------------------------------------------------------


def _hypothesis_loss(first: Data, second: Data, **given: Any) -> float:
    return largest_log_ratio(*(learner_law(data, **given)[1] for data in (first, second)))


def _error_loss(first: Data, second: Data, bits: int, learner: str, **given: Any) -> float:
    hypotheses, _ = learner_law(first, bits=bits, learner=learner, **given)
    errors = [[training_error(data, each, bits, learner) for each in hypotheses] for data in (first, second)]
    return _hypothesis_loss(first, second, bits=bits, learner=learner, **given) if errors[0] == errors[1] else math.inf


# --- the entries ------------------------------------------------------------------------------------------------


def _in_turn(data: Data, epsilon: float, bits: int, **_: float | str) -> dict[str, float | str]:
    """Thresholds one after the other, each with all of epsilon."""
    return {"epsilon": epsilon * LEARNERS["scan"].queries(bits), "learner": "scan"}


sq_learner = in_room(
    name="sq_learner",
    title="Private PAC learner from statistical queries",
    source=Source(HAGHTALAB, BLUM),
    formula=(
        "a learner asks at most K queries psi, one after the other; each answer is the mean of psi(x, y) over the m "
        "records plus Lap(K / (epsilon m)); the output is the hypothesis (threshold: binary search for h_t(x) = "
        "[x >= t], where t is too large if the share of records with x < t and y = 1 exceeds tau)"
    ),
    code=Code(_hypothesis, _hypothesis_runs, _hypothesis_loss).given(margin=0.0),
    parameters=(EPSILON, replace(BITS, default=3), replace(TOLERANCE, default=0.15), LEARNER),
    default_pair=([*_OTHERS, [0, 1]], [*_OTHERS, [0, 0]]),
).with_twins(
    half_noise=Twin(
        title="Private PAC learner, half the noise",
        reason="noise of half the scale costs twice epsilon, whatever the learner does with the answers",
        formula="as the learner, each answer with Lap(K / (2 epsilon m))",
        at=doubled,
    ),
    asked_until_clear=Twin(
        title="PAC learner that asks again where the answer is close",
        reason="every answer costs epsilon / K, those thrown away as well: far out, a query costs twice as much",
        formula="as the learner, each query with fresh noise until the answer is at least `margin` away from tau",
        code=Code(_hypothesis, _hypothesis_runs, _hypothesis_loss),
        parameters=(Parameter("margin", 0.3, "share of records", "how far is clear", validate.positive),),
    ),
    last_one_charged=Twin(
        title="PAC learner that tries the thresholds in turn and charges the last query",
        reason="that the queries before it came out below is told as well, and each of them costs epsilon",
        formula="t = 1, 2, ... until the share plus Lap(1 / (epsilon m)) exceeds tau; the output is t - 1",
        at=_in_turn,
        default_pair=([*_MIXED, [0, 1]], [*_MIXED, [0, 0]]),
    ),
    error_released=Twin(
        title="PAC learner that reports its training error",
        reason="the threshold is private, its error on the private data is an exact statistic of them",
        formula="as the learner, and beside the hypothesis the share of the records that it gets wrong",
        code=Code(_error_released, _error_runs, _error_loss),
    ),
)
