"""Laplace noise on several answers: any m of them, m counting queries, and the counts of a histogram."""

import math

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.additive.single import BASSI, CHEEMA, in_room
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, centred_each, laplace, one_draw
from dpaudit.catalogue.promises import DMNS, EPSILON, at_least_one, pure_if_added_or_removed
from dpaudit.losses.comparisons import vector_loss

Answers = list[float]
Rows = list[list[int]]
Records = list[int]

TOGETHER = Parameter(
    "sensitivity", 10.0, "units of the answers", "how far one person moves all answers together", validate.positive
)
QUERIES = Parameter("queries", 2, "queries", "the yes-or-no questions of a record", at_least_one)
CELLS = Parameter("cells", 2, "cells", "the values that a record can have", at_least_one)


def _laplace_vector(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> tuple[float, ...]:
    return tuple(answer + rng.laplace(scale=sensitivity / epsilon) for answer in data)


def _answers(data: Answers, **_: float) -> Reals:
    return np.asarray(data, float)


def _inverted_scale(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> tuple[float, ...]:
    return tuple(answer + rng.laplace(scale=epsilon / sensitivity) for answer in data)


laplace_vector = in_room(
    name="laplace_vector",
    title="Laplace noise on each of m answers",
    source=Source(f"{BASSI}, 'Laplace mechanism (cont.)'; {CHEEMA}, 'The Laplace mechanism'", DMNS),
    formula="every answer plus its own draw of Lap(sensitivity / epsilon)",
    neighbours="vectors at most `sensitivity` apart in the sum of absolute differences",
    code=centred_each(_answers, lambda data, epsilon, sensitivity: sensitivity / epsilon, _laplace_vector),
    parameters=(EPSILON, TOGETHER),
    default_pair=([0] * 10, [1] * 10),
).with_twins(
    """sensitivity_of_one: m answers with the noise that one of them would need
        one person can move all m answers, and each move costs epsilon: m epsilon in all
        every answer plus its own draw of Lap(sensitivity / (m epsilon))
    inverted_scale: Laplace noise of the inverse scale on each of m answers
        the fraction is turned over: the smaller epsilon is, the less noise there is
        every answer plus its own draw of Lap(epsilon / sensitivity)""",
    sensitivity_of_one=Twin(at=lambda data, sensitivity, **_: {"sensitivity": sensitivity / len(data)}),
    inverted_scale=Twin(
        code=Code(_inverted_scale),
        at=lambda data, epsilon, sensitivity: {"epsilon": sensitivity, "sensitivity": epsilon},
    ),
)


def _counting_queries(data: Rows, rng: Rng, epsilon: float, queries: int) -> tuple[float, ...]:
    counts = [sum(row[j] for row in data) for j in range(queries)]
    return tuple(count + rng.laplace(scale=queries / epsilon) for count in counts)


def _counted(data: Rows, queries: int, **_: float) -> Reals:
    return np.array([sum(row[j] for row in data) for j in range(queries)], float)


counting_queries = in_room(
    name="counting_queries",
    title="Laplace noise on m counting queries about the same people",
    source=Source(f"{BASSI}, 'Accuracy of queries under the Laplace mechanism'", DMNS),
    formula="for each of the m questions the number of records that say yes, plus its own draw of Lap(m / epsilon)",
    neighbours="one record more or less; a record is a list of m zeros and ones",
    code=centred_each(_counted, lambda data, epsilon, queries: queries / epsilon, _counting_queries),
    parameters=(EPSILON, QUERIES),
    promise=pure_if_added_or_removed,
    default_pair=([[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1]]),
).with_twins(
    """l2_sensitivity: Laplace noise for the Euclidean distance of the counts
        Laplace noise pays for the sum of the moves, m, and not for their Euclidean length, sqrt(m)
        each count plus its own draw of Lap(sqrt(m) / epsilon)""",
    l2_sensitivity=Twin(code=centred_each(_counted, lambda data, epsilon, queries: math.sqrt(queries) / epsilon)),
)


def _histogram(data: Records, rng: Rng, epsilon: float, cells: int) -> tuple[float, ...]:
    return tuple(data.count(cell) + rng.laplace(scale=1.0 / epsilon) for cell in range(cells))


def _counts(data: Records, cells: int, **_: float) -> Reals:
    return np.array([data.count(cell) for cell in range(cells)], float)


histogram = in_room(
    name="histogram",
    title="Laplace noise on the counts of a histogram",
    source=Source(f"{BASSI}, 'Preliminaries (cont.)' (disjoint counting queries)", DMNS),
    formula="for each cell the number of records in it, plus its own draw of Lap(1 / epsilon)",
    neighbours="one record more or less; a record is the number of its cell",
    code=centred_each(_counts, lambda data, epsilon, cells: 1.0 / epsilon, _histogram),
    parameters=(EPSILON, CELLS),
    promise=pure_if_added_or_removed,
    default_pair=([0, 0, 0, 1], [0, 0, 0]),
).with_twins(
    """shared_noise: One draw of noise for all cells
        the noise cancels in the difference of two cells, which is then exact
        for each cell the number of records in it, plus the same draw of Lap(1 / epsilon)
    sensitivity_of_m: Disjoint cells with the noise of m overlapping queries
        a record is in one cell only, so the noise is m times more than needed
        for each cell the number of records in it, plus its own draw of Lap(m / epsilon)""",
    shared_noise=Twin(code=one_draw(_counts, lambda data, epsilon, cells: 1.0 / epsilon)),
    sensitivity_of_m=Harmless(at=lambda data, epsilon, cells: {"epsilon": epsilon / cells}),
)


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
    default_pair=([1, 1, 1, 1], [0, 1, 1, 1]),
).with_twins(
    """all_answers_move: Running totals of noisy answers, claimed where all answers move
        each difference of neighbouring totals costs epsilon of its own: n epsilon for n answers
        the same totals""",
    all_answers_move=Twin(
        neighbours="vectors whose answers each move by at most `sensitivity`, in any direction",
        adjacency=("all-differ",),
        default_pair=([1] * 10, [2] * 10),
    ),
)
