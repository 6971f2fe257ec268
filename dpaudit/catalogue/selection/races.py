"""Report Noisy Max for any queries of bounded sensitivity: with Laplace noise."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Masked, Places
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON, pure
from dpaudit.catalogue.selection.draws import between, compared, of_answers, raced, scale, with_values
from dpaudit.losses.comparisons import winning
from dpaudit.losses.discrete import log_ratios
from dpaudit.losses.selecting import releasing, top_two

Answers = list[float]

SENSITIVITY = Parameter(
    "sensitivity", 1.0, "units of the answers", "how far one person moves each answer", validate.positive
)
in_room = partial(
    Entry,
    module="dpaudit.catalogue.selection",
    neighbours="vectors of answers that each move by at most `sensitivity`, in any direction",
    adjacency=("all-differ",),
    parameters=(EPSILON, SENSITIVITY),
    promise=pure,
    default_pair=([0, 1, 1, 1, 1], [1, 0, 0, 0, 0]),
)
BASSI = "Bassi 2019, notes 001, 'Report Noisy Max' (there for counts)"


def _general(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> int:
    noisy = [answer + rng.laplace(scale=2.0 * sensitivity / epsilon) for answer in data]
    return noisy.index(max(noisy))


_INDEX = raced(laplace, scale(2.0))


def _counts_noise(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> int:
    noisy = [answer + rng.laplace(scale=sensitivity / epsilon) for answer in data]
    return noisy.index(max(noisy))


def _value_only(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> float:
    return max(answer + rng.laplace(scale=2.0 * sensitivity / epsilon) for answer in data)


def _top_two(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> tuple[int, ...]:
    noisy = [answer + rng.laplace(scale=2.0 * sensitivity / epsilon) for answer in data]
    ranking = sorted(range(len(data)), key=lambda index: -noisy[index])
    return tuple(ranking[:2])


def _top_two_runs(data: Answers, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Places:
    noisy = laplace(rng, 2.0 * sensitivity / epsilon, len(data) * runs).reshape(len(data), runs)
    noisy += np.asarray(data, float)[:, None]
    best = np.argmax(noisy, axis=0)
    noisy[best, np.arange(runs)] = -np.inf
    return np.stack([best, np.argmax(noisy, axis=0)], axis=1)


def _unpaid_value(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> dict[int, float]:
    noisy = [answer + rng.laplace(scale=2.0 * sensitivity / epsilon) for answer in data]
    winner = noisy.index(max(noisy))
    return {winner: data[winner] + rng.laplace(scale=sensitivity / epsilon)}


def _unpaid_value_runs(data: Answers, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Masked:
    winner = _INDEX(data, runs, rng, epsilon=epsilon, sensitivity=sensitivity)
    values = laplace(rng, sensitivity / epsilon, runs) + np.asarray(data, float)[winner]
    return with_values(winner, values, len(data))


def _unpaid_value_loss(first: Answers, second: Answers, epsilon: float, sensitivity: float) -> float:
    before, after = np.asarray(first, float), np.asarray(second, float)
    index = np.abs(log_ratios(*(winning(answers, 2.0 * sensitivity / epsilon) for answers in (before, after))))
    return float(np.max(index + np.abs(before - after) * epsilon / sensitivity))


report_noisy_max_general = in_room(
    name="report_noisy_max_general",
    title="Report Noisy Max over any queries",
    source=Source(
        BASSI,
        "Dwork & Roth 2014; Ding et al. 2018, Detecting violations of differential privacy",
    ),
    formula="the index of the largest answer after each got its own draw of Lap(2 sensitivity / epsilon)",
    code=Code(_general, _INDEX, compared(of_answers(winning, scale(2.0)))),
).with_twins(
    counts_noise=Twin(
        title="Report Noisy Max over any queries with the noise for counts",
        reason="answers that move in opposite directions change a margin by 2: with the noise for counts 2 epsilon",
        formula="the index of the largest answer after each got its own draw of Lap(sensitivity / epsilon)",
        code=Code(_counts_noise, raced(laplace, scale(1.0)), compared(of_answers(winning, scale(1.0)))),
        default_pair=([-1, 1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0, 0]),
    ),
    value_only=Twin(
        title="The noisy maximum itself in the place of its index",
        reason="a low maximum says that all noisy answers were low: each costs epsilon / 2, so n answers n epsilon / 2",
        formula="the largest answer after each got its own draw of Lap(2 sensitivity / epsilon), without its index",
        code=Code(
            _value_only, raced(laplace, scale(2.0), "value"), between(partial(releasing, index=False), scale(2.0))
        ),
        default_pair=([0, 0, 0, 0, 0], [1, 1, 1, 1, 1]),
    ),
    top_two=Twin(
        title="Report Noisy Max that names the second as well",
        reason="one draw of noise pays for one name: two names can cost 2 epsilon",
        formula="the indices of the two largest after each answer got one draw of Lap(2 sensitivity / epsilon)",
        code=Code(_top_two, _top_two_runs, compared(of_answers(top_two, scale(2.0)))),
        default_pair=([0, 0, 0, 0, 0, 0], [-1, -1, 1, 1, 1, 1]),
    ),
    unpaid_value=Twin(
        title="Report Noisy Max with a fresh noisy answer of the winner, not paid for",
        reason="the index costs epsilon and the fresh answer another epsilon: the claim counts one of them",
        formula="the index of the largest answer after each got a draw of Lap(2 sensitivity / epsilon), and that "
        "answer plus a fresh draw of Lap(sensitivity / epsilon)",
        code=Code(_unpaid_value, _unpaid_value_runs, _unpaid_value_loss),
        default_pair=([0, 1, 1, 1, 1], [1, 0, 0, 0, 0]),
    ),
)
