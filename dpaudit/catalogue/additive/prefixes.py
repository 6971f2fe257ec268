"""Running totals of noisy answers: every answer gets its own noise, and the sums of the first 1, 2, ... are given."""

from __future__ import annotations

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.catalogue.additive.shared import SENSITIVITY, in_room
from dpaudit.catalogue.entry import Code, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import DMNS, EPSILON, pure
from dpaudit.losses.laplace import vector_loss

Answers = list[float]


def _prefix_sums(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> tuple[float, ...]:
    total = 0.0
    totals = []
    for answer in data:
        total = total + answer + rng.laplace(scale=sensitivity / epsilon)
        totals.append(total)
    return tuple(totals)


def _prefix_sums_runs(data: Answers, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Reals:
    noisy = laplace(rng, sensitivity / epsilon, len(data) * runs).reshape(len(data), runs)
    noisy += np.asarray(data, float)[:, None]
    for row, before in zip(noisy[1:], noisy[:-1], strict=True):
        row += before
    return noisy.T


def _prefix_sums_loss(first: Answers, second: Answers, epsilon: float, sensitivity: float) -> float:
    """The differences of neighbouring totals are the noisy answers again."""
    return vector_loss(np.asarray(first, float), np.asarray(second, float), sensitivity / epsilon)


prefix_sums = in_room(
    name="prefix_sums",
    title="Running totals of noisy answers",
    source=Source(
        None,
        "Wang, Ding, Wang, Kifer & Zhang 2019, Proving differential privacy with shadow execution (partial sums); "
        f"{DMNS}",
    ),
    formula="every answer plus its own draw of Lap(sensitivity / epsilon), and of these the sum of the first 1, 2, ...",
    neighbours="vectors of which one answer moves by at most `sensitivity`, in any direction",
    adjacency=("one-differs",),
    code=Code(_prefix_sums, _prefix_sums_runs, _prefix_sums_loss),
    parameters=(EPSILON, SENSITIVITY),
    promise=pure,
    default_pair=([1, 1, 1, 1], [0, 1, 1, 1]),
).with_twins(
    all_answers_move=Twin(
        title="Running totals of noisy answers, claimed where all answers move",
        reason="each difference of neighbouring totals costs epsilon of its own: n epsilon for n answers",
        formula="the same totals",
        neighbours="vectors whose answers each move by at most `sensitivity`, in any direction",
        adjacency=("all-differ",),
        default_pair=([1] * 10, [2] * 10),
    ),
)
