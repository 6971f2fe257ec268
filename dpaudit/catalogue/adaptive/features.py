"""Features chosen by the data they are then judged on: the last query depends on the answers to the ones before.

A record is a list of 0s and 1s: its features, and last its label. The vote of a record is the majority of its
features, each turned over where the data say that it disagrees with the label.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import pure_if_replaced
from dpaudit.losses.comparisons import below
from dpaudit.losses.discrete import log_ratios

Records = Sequence[Sequence[int]]
Scales = tuple[float, float]


def agreements(data: Records) -> Reals:
    """For each feature the fraction of the records in which it equals the label.

    >>> agreements([[1, 0, 1], [1, 1, 1]])
    array([1. , 0.5])
    """
    records = np.asarray(data)
    return np.asarray((records[:, :-1] == records[:, -1:]).mean(axis=0))


def accuracy(data: Records, kept: Sequence[int]) -> float:
    """The fraction of the records whose vote is their label: a feature is kept (1) or turned over (0).

    >>> accuracy([[1, 0, 1, 1], [0, 0, 0, 1]], (1, 1, 1))
    0.5
    """
    records = np.asarray(data)
    right = (records[:, :-1] == records[:, -1:]) == (np.asarray(kept) == 1)
    return float((2 * right.sum(axis=1) > right.shape[1]).mean())


def _halves(records: int, features: int, epsilon: float) -> Scales:
    return features / (records * epsilon / 2.0), 1.0 / (records * epsilon / 2.0)


def _columns(records: int, features: int, epsilon: float) -> Scales:
    return 1.0 / (records * epsilon / 2.0), 1.0 / (records * epsilon / 2.0)


def _exact_choice(records: int, features: int, epsilon: float) -> Scales:
    return 0.0, 1.0 / (records * epsilon)


def _exact_accuracy(records: int, features: int, epsilon: float) -> Scales:
    return features / (records * epsilon), 0.0


def _runs(data: Records, runs: int, rng: Rng, epsilon: float, *, scales: Any = _halves) -> Reals:
    means = agreements(data)
    choice, last = scales(len(data), len(means), epsilon)
    released = np.empty((len(means) + 1, runs))
    code = np.zeros(runs, np.intp)
    for feature, mean in enumerate(means):
        noisy = laplace(rng, choice, runs)
        noisy += mean
        released[feature + 1] = noisy >= 0.5
        code = 2 * code + (noisy >= 0.5)
    every = itertools.product((0, 1), repeat=len(means))
    released[0] = np.array([accuracy(data, kept) for kept in every])[code]
    released[0] += laplace(rng, last, runs)
    return released.T


def _loss(first: Records, second: Records, epsilon: float, *, scales: Any = _halves) -> float:
    """For every set of features kept: its log ratio, and the whole shift of its accuracy, which the tails show."""
    choice, last = scales(len(first), len(first[0]) - 1, epsilon)
    p, q = (_kept(agreements(data) - 0.5, choice) for data in (first, second))
    largest = 0.0
    for kept in itertools.product((0, 1), repeat=len(p)):
        chances = [math.prod(float(x if k else 1.0 - x) for x, k in zip(side, kept, strict=True)) for side in (p, q)]
        if not any(chances):
            continue
        moved = abs(accuracy(first, kept) - accuracy(second, kept))
        shown = moved / last if last else math.inf if moved else 0.0
        largest = max(largest, abs(float(log_ratios(*np.array(chances)))) + shown)
    return largest


def _kept(margins: Reals, scale: float) -> Reals:
    """The probability that each feature is kept: that its margin plus Lap(scale) is at least 0."""
    return below(margins, scale) if scale else (margins >= 0.0).astype(float)


# --- the program ----------------------------------------------------------------------------------------------


def _boosted_vote(
    data: Records, rng: Rng, epsilon: float, *, scales: Callable[[int, int, float], Scales] = _halves
) -> tuple[float, ...]:
    n, features = len(data), len(data[0]) - 1
    choice, last = scales(n, features, epsilon)
    kept = []
    for j in range(features):
        agreement = sum(record[j] == record[-1] for record in data) / n
        kept.append(int(agreement + (rng.laplace(scale=choice) if choice else 0.0) >= 0.5))
    right = 0
    for record in data:
        votes = sum((record[j] == record[-1]) == kept[j] for j in range(features))
        right += 2 * votes > features
    return (right / n + (rng.laplace(scale=last) if last else 0.0), *map(float, kept))


_CODE = Code(_boosted_vote, _runs, _loss)

RECORDS = [[0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 1, 0]]

boosted_vote = Entry(
    module="dpaudit.catalogue.adaptive",
    name="boosted_vote",
    title="Features chosen by their agreement with the label, and the accuracy of their vote",
    source=Source(
        "Bassi 2019, notes 001, 'Model description' (each step sees the data and the results before it)",
        "Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, Generalization in adaptive data analysis and "
        "holdout reuse",
    ),
    formula=(
        "with k features and n records: keep a feature where its agreement + Lap(k / (n epsilon / 2)) >= 1/2, else "
        "turn it over; release the accuracy of the majority vote + Lap(1 / (n epsilon / 2)), and which ones were kept"
    ),
    neighbours="datasets of the same size that differ in one record",
    code=_CODE,
    parameters=(Parameter("epsilon", 2.0, "nats", "the claim, half of it for the choice", validate.positive),),
    promise=pure_if_replaced,
    default_pair=([*RECORDS, [1, 1, 1, 1]], [*RECORDS, [0, 0, 0, 1]]),
).with_twins(
    Twin(
        name="columns_as_disjoint",
        title="Each feature's agreement at the noise of a single query",
        reason="the features are columns, not disjoint records: one record is in all agreements, and the losses add up",
        formula="as boosted_vote with Lap(1 / (n epsilon / 2)) on every agreement",
        code=_CODE.given(scales=_columns),
    ),
    Twin(
        name="choice_exact",
        title="Features kept by their exact agreement",
        reason="one record decides on which side of 1/2 an agreement lies, and the choice says so without noise",
        formula="keep a feature where its agreement is at least 1/2; the accuracy + Lap(1 / (n epsilon))",
        code=_CODE.given(scales=_exact_choice),
        default_pair=([*RECORDS[1:], [1, 1, 1, 1]], [*RECORDS[1:], [0, 0, 0, 1]]),
    ),
    Twin(
        name="accuracy_exact",
        title="The exact accuracy of the vote",
        reason="the accuracy is a count of records over n: an exact count tells two neighbours apart",
        formula="as boosted_vote with Lap(k / (n epsilon)) on every agreement and none on the accuracy",
        code=_CODE.given(scales=_exact_accuracy),
    ),
)
