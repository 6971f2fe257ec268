"""The private PAC learner of theorem 3.2: binary search for a threshold, every question a statistical query."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Integers, Reals
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.learning.output_noise import REPLACED, ROOM
from dpaudit.catalogue.learning.queries import BITS, BLUM, HAGHTALAB, TOLERANCE, Data, share
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON, pure_if_replaced
from dpaudit.losses.discrete import largest_log_ratio

_OTHERS: Data = [[1, 0], [2, 0], [3, 0], [4, 0], [5, 1], [6, 1], [7, 1], [6, 1], [3, 0], [1, 0]] + [[7, 1]] * 9
_MIXED: Data = [[0, 1], [0, 1], [0, 1], [4, 0], [5, 1], [6, 1], [7, 1], [6, 1], [3, 0], [1, 0]] + [[7, 1]] * 9


# --- one run ----------------------------------------------------------------------------------------------------


def _search(bits: int, is_above: Callable[[int], bool]) -> int:
    """The threshold that binary search ends at; `is_above(t)`: some records below t have the label 1."""
    low, step = 0, 2 ** (bits - 1)
    while step >= 1:
        low, step = low if is_above(low + step) else low + step, step // 2
    return low


def _learner(data: Data, rng: Rng, epsilon: float, bits: int, tolerance: float) -> int:
    scale = bits / (epsilon * len(data))
    return _search(bits, lambda t: share(data, t) + rng.laplace(scale=scale) > tolerance)


def _asked_until_clear(data: Data, rng: Rng, epsilon: float, bits: int, tolerance: float, margin: float) -> int:
    scale = bits / (epsilon * len(data))

    def is_above(t: int) -> bool:
        answer = tolerance
        while abs(answer - tolerance) < margin:
            answer = share(data, t) + rng.laplace(scale=scale)
        return answer > tolerance

    return _search(bits, is_above)


def _error_released(data: Data, rng: Rng, epsilon: float, bits: int, tolerance: float) -> tuple[float, float]:
    threshold = _learner(data, rng, epsilon, bits, tolerance)
    return float(threshold), training_error(data, threshold)


def _last_one_charged(data: Data, rng: Rng, epsilon: float, bits: int, tolerance: float) -> int:
    for t in range(1, 2**bits):
        if share(data, t) + rng.laplace(scale=1.0 / (epsilon * len(data))) > tolerance:
            return t - 1
    return (1 << bits) - 1


def training_error(data: Data, threshold: int) -> float:
    """The share of records that h_t(x) = [x >= t] gets wrong.

    >>> training_error([[1, 0], [2, 1]], 1)
    0.5
    """
    return sum((x >= threshold) != (y == 1) for x, y in data) / len(data)


# --- many runs --------------------------------------------------------------------------------------------------


def _learner_runs(data: Data, runs: int, rng: Rng, epsilon: float, bits: int, tolerance: float) -> Integers:
    shares = np.array([share(data, t) for t in range(2**bits)])
    low, step = np.zeros(runs, np.int64), 2 ** (bits - 1)
    while step:
        noisy = laplace(rng, bits / (epsilon * len(data)), runs)
        noisy += shares[low + step]
        low[noisy <= tolerance] += step
        step //= 2
    return low


def _error_runs(data: Data, runs: int, rng: Rng, epsilon: float, bits: int, tolerance: float) -> Reals:
    thresholds = _learner_runs(data, runs, rng, epsilon, bits, tolerance)
    errors = np.array([training_error(data, t) for t in range(2**bits)])
    return np.stack([thresholds, errors[thresholds]], axis=1)


def _law_runs(
    data: Data, runs: int, rng: Rng, epsilon: float, bits: int, tolerance: float, *, law: Any, **extra: float
) -> Integers:
    """The threshold drawn from its exact law: a sequence of answers that may be asked again has no fixed length."""
    steps = np.cumsum(law(data, epsilon, bits, tolerance, **extra))
    return np.searchsorted(steps[:-1] / steps[-1], rng.random(runs), side="right").astype(np.int64)


# --- the law: the probabilities of the thresholds ---------------------------------------------------------------


def _tail(gap: float, scale: float) -> float:
    """Pr(Lap(scale) > gap)."""
    return 0.5 * math.exp(-gap / scale) if gap > 0.0 else 1.0 - 0.5 * math.exp(gap / scale)


def _by_search(bits: int, above: Callable[[int], float]) -> Reals:
    chances = np.ones(2**bits)
    for threshold in range(2**bits):
        low, high = 0, 2**bits
        while high - low > 1:
            middle = (low + high) // 2
            chance = above(middle)
            chances[threshold] *= chance if threshold < middle else 1.0 - chance
            low, high = (low, middle) if threshold < middle else (middle, high)
    return chances


def learner_law(data: Data, epsilon: float, bits: int, tolerance: float) -> Reals:
    """The probability that the learner ends at each threshold.

    >>> learner_law([[0, 0]], 1.0, 1, 0.5).round(4)
    array([0.3033, 0.6967])
    """
    scale = bits / (epsilon * len(data))
    return _by_search(bits, lambda t: _tail(tolerance - share(data, t), scale))


def _clear_law(data: Data, epsilon: float, bits: int, tolerance: float, margin: float) -> Reals:
    scale = bits / (epsilon * len(data))

    def above(t: int) -> float:
        gap = tolerance - share(data, t)
        up, down = _tail(gap + margin, scale), _tail(margin - gap, scale)
        return up / (up + down)

    return _by_search(bits, above)


def _scan_law(data: Data, epsilon: float, bits: int, tolerance: float) -> Reals:
    chances, going = [], 1.0
    for t in range(1, 2**bits):
        above = _tail(tolerance - share(data, t), 1.0 / (epsilon * len(data)))
        chances.append(going * above)
        going *= 1.0 - above
    return np.array([*chances, going])


def _loss(
    first: Data, second: Data, epsilon: float, bits: int, tolerance: float, *, law: Any = learner_law, **extra: float
) -> float:
    laws = [law(data, epsilon, bits, tolerance, **extra) for data in (first, second)]
    return largest_log_ratio(*laws)


def _error_loss(first: Data, second: Data, epsilon: float, bits: int, tolerance: float) -> float:
    same = all(training_error(first, t) == training_error(second, t) for t in range(2**bits))
    return _loss(first, second, epsilon, bits, tolerance) if same else math.inf


pac_learner = Entry(
    module=ROOM,
    name="pac_learner",
    title="Private PAC learner of a threshold",
    source=Source(HAGHTALAB, BLUM),
    formula=(
        "binary search for h_t(x) = [x >= t] with K = bits queries: t is too large where the share of records with "
        "x < t and y = 1, plus Lap(K / (epsilon m)), exceeds tau; the output is the threshold"
    ),
    neighbours=REPLACED,
    code=Code(_learner, _learner_runs, _loss),
    parameters=(EPSILON, replace(BITS, default=3), replace(TOLERANCE, default=0.15)),
    promise=pure_if_replaced,
    default_pair=([*_OTHERS, [0, 1]], [*_OTHERS, [0, 0]]),
).with_twins(
    Twin(
        name="asked_until_clear",
        title="PAC learner that asks again where the answer is close",
        reason="every answer costs epsilon / K, those thrown away as well: far out, a query costs twice as much",
        formula="as the learner, each query with fresh noise until the answer is at least `margin` away from tau",
        code=Code(_asked_until_clear, partial(_law_runs, law=_clear_law), partial(_loss, law=_clear_law)),
        parameters=(Parameter("margin", 0.3, "share of records", "how far is clear", validate.positive),),
    ),
    Twin(
        name="last_one_charged",
        title="PAC learner that tries the thresholds in turn and charges the last query",
        reason="that the queries before it came out below is told as well, and each of them costs epsilon",
        formula="t = 1, 2, ... until the share plus Lap(1 / (epsilon m)) exceeds tau; the output is t - 1",
        code=Code(_last_one_charged, partial(_law_runs, law=_scan_law), partial(_loss, law=_scan_law)),
        default_pair=([*_MIXED, [0, 1]], [*_MIXED, [0, 0]]),
    ),
    Twin(
        name="error_released",
        title="PAC learner that reports its training error",
        reason="the threshold is private, its error on the private data is an exact statistic of them",
        formula="as the learner, and beside the threshold the share of the records that it gets wrong",
        code=Code(_error_released, _error_runs, _error_loss),
    ),
)

ENTRIES = (pac_learner,)
