"""Adaptive composition: a median by bisection, in which each question depends on the answers before it."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Masked, Reals
from dpaudit.catalogue.composition.counts import in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import at_least_one
from dpaudit.claims import PureDP, Relation

Values = list[int]


def _lead(data: Values, middle: int) -> int:
    """How many values lie below the middle, less those that do not: one person moves it by 1."""
    return sum(1 if value < middle else -1 for value in data)


def _noisy_bisection(
    data: Values, rng: Rng, epsilon: float, steps: int, *, by_truth: bool = False
) -> tuple[float, ...]:
    low, high, answers = 0, 2**steps, []
    for _ in range(steps):
        middle = (low + high) // 2
        lead = _lead(data, middle)
        answers.append(lead + rng.laplace(scale=steps / epsilon))
        low, high = (low, middle) if (lead if by_truth else answers[-1]) > 0.0 else (middle, high)
    return tuple(answers)


def _stop_by_truth(data: Values, rng: Rng, epsilon: float, steps: int) -> dict[int, float]:
    low, high = 0, 2**steps
    answers: dict[int, float] = {}
    for step in range(steps):
        middle = (low + high) // 2
        lead = _lead(data, middle)
        answers[step] = lead + rng.laplace(scale=steps / epsilon)
        if lead == 0:
            break
        low, high = (low, middle) if answers[step] > 0.0 else (middle, high)
    return answers


# --- samplers: an interval is a node of a binary tree, 1 at the root, its halves 2 n and 2 n + 1 ---------------


def _nodes(steps: int) -> Iterator[tuple[int, int, int]]:
    """Each interval that is asked about: its node, its middle, and its depth."""
    for depth in range(steps):
        width = 2 ** (steps - depth)
        for place in range(2**depth):
            yield 2**depth + place, width * place + width // 2, depth


def _leads(data: Values, steps: int) -> Reals:
    """The lead at each node; nothing stands at 0."""
    return np.array([0.0, *(_lead(data, middle) for _, middle, _ in _nodes(steps))])


def _bisection_runs(data: Values, runs: int, rng: Rng, epsilon: float, steps: int, *, by_truth: bool = False) -> Reals:
    leads, node = _leads(data, steps), np.ones(runs, np.intp)
    answers = np.empty((steps, runs))
    for row in answers:
        truth = leads[node]
        row[:] = laplace(rng, steps / epsilon, runs)
        row += truth
        node *= 2
        node += (truth if by_truth else row) <= 0.0
    return answers.T


def _stop_by_truth_runs(data: Values, runs: int, rng: Rng, epsilon: float, steps: int) -> Masked:
    leads, node, going = _leads(data, steps), np.ones(runs, np.intp), np.ones(runs, np.bool_)
    answers, hidden = np.zeros((steps, runs)), np.ones((steps, runs), np.bool_)
    for row, gone in zip(answers, hidden, strict=True):
        truth = leads[node]
        row[:] = laplace(rng, steps / epsilon, runs)
        row += truth
        gone[going] = False
        going &= truth != 0.0
        node *= 2
        node += row <= 0.0
    return np.ma.MaskedArray(answers.T, mask=hidden.T)


# --- exact losses: the best transcript from each node on -------------------------------------------------------


def _bisection_loss(first: Values, second: Values, epsilon: float, steps: int, *, stops: bool = False) -> float:
    """The largest sum of |z - q| - |z - p| along a path; a turn says on which side of 0 each answer z lies."""

    def one_way(p: Reals, q: Reals) -> float:
        best = np.zeros(2 ** (steps + 1))
        for node in reversed(range(1, 2**steps)):
            last = 2 * node >= 2**steps  # after this question every transcript ends
            if stops and not last and (p[node] == 0.0) != (q[node] == 0.0):
                best[node] = math.inf  # the end of the transcript tells the two apart
                continue
            at_zero, far = abs(q[node]) - abs(p[node]), abs(p[node] - q[node])
            if stops and p[node] == 0.0:
                best[node] = far
                continue
            left = far if p[node] >= q[node] else at_zero
            right = far if p[node] <= q[node] else at_zero
            best[node] = max(left + best[2 * node], right + best[2 * node + 1])
        return float(best[1])

    before, after = _leads(first, steps), _leads(second, steps)
    return max(one_way(before, after), one_way(after, before)) * epsilon / steps


def _turn_by_truth_loss(first: Values, second: Values, epsilon: float, steps: int) -> float:
    """The questions are fixed by the data, so the answers are vectors with noise: the l1 distance of the true ones."""

    def asked(data: Values) -> Reals:
        leads, node, found = _leads(data, steps), 1, []
        for _ in range(steps):
            found.append(leads[node])
            node = 2 * node + (1 if leads[node] <= 0.0 else 0)
        return np.array(found)

    return float(np.abs(asked(first) - asked(second)).sum()) * epsilon / steps


noisy_bisection = in_room(
    name="noisy_bisection",
    title="A median by bisection with noisy answers",
    source=Source(
        "Bassi 2019, notes 001, 'Composition of DP mechanisms (cont.)' (adaptive); Haghtalab 2020, notes 000, theorem "
        "3.3",
        "Blum, Dwork, McSherry & Nissim 2005, Practical privacy: the SuLQ framework (adaptive noisy sums)",
    ),
    formula=(
        "`steps` times: the number of values below the middle of the interval less the number of the others, plus "
        "a draw of Lap(steps / epsilon); a positive answer keeps the lower half of the interval, another the upper"
    ),
    neighbours="lists of whole numbers in [0, 2^steps), one of them added or removed",
    code=Code(_noisy_bisection, _bisection_runs, _bisection_loss),
    parameters=(
        Parameter("epsilon", 1.0, "nats", "the claim on all answers together", validate.positive),
        Parameter("steps", 3, "questions", "how many are asked", at_least_one),
    ),
    promise=lambda epsilon, steps: PureDP(epsilon, Relation.ADD_OR_REMOVE_ONE),
    default_pair=([0, 0, 7, 7], [0, 0, 0, 7, 7]),
).with_twins(
    """turn_by_truth: Bisection that turns by the answer without noise
        the next question gives away an exact comparison: the answers that follow are to other questions
        as the bisection, but the true answer decides which half is kept; the noisy answers are published
    stop_by_truth: Bisection that stops where the true answer is 0
        the number of answers gives away an exact comparison: it depends on data that no noise has touched
        as the bisection, but it ends after the first question whose true answer is 0""",
    turn_by_truth=Twin(
        code=Code(
            partial(_noisy_bisection, by_truth=True), partial(_bisection_runs, by_truth=True), _turn_by_truth_loss
        ),
        default_pair=([3, 4], [0, 3, 4]),
    ),
    stop_by_truth=Twin(code=Code(_stop_by_truth, _stop_by_truth_runs, partial(_bisection_loss, stops=True))),
)
