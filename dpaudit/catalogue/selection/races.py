"""Many choices at once: a race of noisy answers, and draws from probabilities that can be listed.

And Report Noisy Max over any queries, with Laplace, exponential and Gumbel noise.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base.arrays import Masked, Places, Reals
from dpaudit.catalogue.entry import Code, Entry, Loss, Parameter, Program, Sampler, Source, Twin, edited, left_out
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON, pure
from dpaudit.losses.comparisons import winning
from dpaudit.losses.distribution import largest_log_ratio, log_ratios
from dpaudit.losses.released import (
    exponential,
    largest_one_sided,
    last_clock,
    permute_and_flip,
    releasing,
    releasing_one_sided,
    top_two,
)


def race(answers: Sequence[float], runs: int, noise: Callable[[int], Reals]) -> tuple[Places, Reals]:
    """The index of the largest noisy answer, and that answer; `noise(runs)` draws the noise of one answer.

    >>> winner, best = race([1.0, 3.0], 2, np.zeros)
    >>> winner.tolist(), best.tolist()
    ([1, 1], [3.0, 3.0])
    """
    best = noise(runs)
    best += answers[0]
    winner = np.zeros(runs, np.intp)
    for index in range(1, len(answers)):
        noisy = noise(runs)
        noisy += answers[index]
        np.putmask(winner, noisy > best, index)
        np.maximum(best, noisy, out=best)
    return winner, best


def chosen(law: Reals, runs: int, rng: Rng) -> Places:
    """Indices drawn with these probabilities."""
    inner = np.cumsum(law)[:-1]
    return np.searchsorted(inner / law.sum(), rng.random(runs), side="right")


def with_values(winner: Places, values: Reals, candidates: int) -> Masked:
    """The winner with a value: one coordinate for each candidate, all masked but the winner's."""
    rows = np.arange(len(winner))
    filled, hidden = np.zeros((len(winner), candidates)), np.ones((len(winner), candidates), np.bool_)
    filled[rows, winner] = values
    hidden[rows, winner] = False
    return np.ma.MaskedArray(filled, mask=hidden)


Law = Callable[..., Reals]  # the probabilities of the outcomes 0, 1, ..., from a dataset and the parameters


def pick(exponents: Sequence[float], rng: Rng) -> int:
    """One choice, with probabilities proportional to the exponentials."""
    weights = [math.exp(exponent) for exponent in exponents]
    return int(rng.choice(len(weights), p=[weight / sum(weights) for weight in weights]))


def compared(law: Law) -> Loss:
    """The loss of a choice with this law."""
    return lambda first, second, **given: largest_log_ratio(law(first, **given), law(second, **given))


def by_law(law: Law, program: Program = left_out) -> Code:
    """A choice by its law: many are drawn from it, and the loss is that of its probabilities."""
    return Code(program, lambda data, runs, rng, **given: chosen(law(data, **given), runs, rng), compared(law))


def told_exactly(pick_one: Program, law: Law, values: Callable[[Any], Reals]) -> Code:
    """A choice by its law with the exact value of the winner: its loss has no end where the values differ."""

    def program(data: Any, rng: Rng, **given: Any) -> dict[int, float]:
        winner = pick_one(data, rng, **given)
        return {winner: float(values(data)[winner])}

    def sampler(data: Any, runs: int, rng: Rng, **given: Any) -> Masked:
        winner = chosen(law(data, **given), runs, rng)
        return with_values(winner, values(data)[winner], len(values(data)))

    def loss(first: Any, second: Any, **given: Any) -> float:
        same = np.allclose(values(first), values(second), rtol=0.0, atol=1e-12)
        return compared(law)(first, second, **given) if same else math.inf

    return Code(program, sampler, loss)


def rate(units: float) -> Callable[..., float]:
    """`units` times epsilon / sensitivity."""
    return lambda epsilon, sensitivity: units * epsilon / sensitivity


def scale(units: float) -> Callable[..., float]:
    """`units` times sensitivity / epsilon."""
    return lambda epsilon, sensitivity: units * sensitivity / epsilon


def of_answers(law: Callable[[Reals, float], Reals], number: Callable[..., float]) -> Law:
    """A law of answers and one number, a rate or a scale, which is made from the parameters."""
    return lambda data, **given: law(np.asarray(data, float), number(**given))


def between(loss: Callable[[Reals, Reals, float], float], number: Callable[..., float]) -> Loss:
    """A loss of two vectors of answers and one number, which is made from the parameters."""
    return lambda first, second, **given: loss(np.asarray(first, float), np.asarray(second, float), number(**given))


def raced(noise: Callable[[Rng, float, int], Reals], width: Callable[..., float], out: str = "index") -> Sampler:
    """Many races with noise of a width: the index of the winner, its value, or both."""

    def sampler(data: Sequence[float], runs: int, rng: Rng, **given: float) -> Places | Reals | Masked:
        winner, best = race(data, runs, partial(noise, rng, width(**given)))
        if out == "both":
            return with_values(winner, best, len(data))
        return winner if out == "index" else best

    return sampler


Answers = list[float]

SENSITIVITY = Parameter("sensitivity", 1.0, "units of the answers", "how far one person moves each answer")
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
_VALUE = {"-> int": "-> float", "noisy.index(max(noisy))": "max(noisy)"}
BOTH = {"-> int": "-> dict[int, float]", "noisy.index(max(noisy))": "{noisy.index(max(noisy)): max(noisy)}"}


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
    source=Source(BASSI, "Dwork & Roth 2014; Ding et al. 2018, Detecting violations of differential privacy"),
    formula="the index of the largest answer after each got its own draw of Lap(2 sensitivity / epsilon)",
    code=Code(_general, _INDEX, compared(of_answers(winning, scale(2.0)))),
).with_twins(
    """counts_noise: Report Noisy Max over any queries with the noise for counts
        answers that move in opposite directions change a margin by 2: with the noise for counts 2 epsilon
        the index of the largest answer after each got its own draw of Lap(sensitivity / epsilon)
    value_only: The noisy maximum itself in the place of its index
        a low maximum says that all noisy answers were low: each costs epsilon / 2, so n answers n epsilon / 2
        the largest answer after each got its own draw of Lap(2 sensitivity / epsilon), without its index
    top_two: Report Noisy Max that names the second as well
        one draw of noise pays for one name: two names can cost 2 epsilon
        the indices of the two largest after each answer got one draw of Lap(2 sensitivity / epsilon)
    unpaid_value: Report Noisy Max with a fresh noisy answer of the winner, not paid for
        the index costs epsilon and the fresh answer another epsilon: the claim counts one of them
        the index of the largest answer after each got a draw of Lap(2 sensitivity / epsilon), and that answer \
            plus a fresh draw of Lap(sensitivity / epsilon)""",
    counts_noise=Twin(
        code=Code(sampler=raced(laplace, scale(1.0)), loss=compared(of_answers(winning, scale(1.0)))),
        edit={"2.0 * ": ""},
        default_pair=([-1, 1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0, 0]),
    ),
    value_only=Twin(
        code=Code(
            sampler=raced(laplace, scale(2.0), "value"), loss=between(partial(releasing, index=False), scale(2.0))
        ),
        edit=_VALUE,
        default_pair=([0, 0, 0, 0, 0], [1, 1, 1, 1, 1]),
    ),
    top_two=Twin(
        code=Code(_top_two, _top_two_runs, compared(of_answers(top_two, scale(2.0)))),
        default_pair=([0, 0, 0, 0, 0, 0], [-1, -1, 1, 1, 1, 1]),
    ),
    unpaid_value=Twin(code=Code(_unpaid_value, _unpaid_value_runs, _unpaid_value_loss)),
)


def _exponential(rng: Rng, scale: float, size: int) -> Reals:
    noise = rng.standard_exponential(size)
    noise *= scale
    return noise


report_noisy_max_exponential = in_room(
    name="report_noisy_max_exponential",
    title="Report Noisy Max with exponential noise",
    source=Source(
        BASSI,
        "Dwork & Roth 2014 (one-sided noise); Ding et al. 2021, The permute-and-flip mechanism is "
        "identical to report-noisy-max with exponential noise",
    ),
    formula="the index of the largest answer after each got its own exponential draw of mean 2 sensitivity / epsilon",
    code=Code(
        edited(_general, "_one_sided", {"laplace(scale=": "exponential("}),
        raced(_exponential, scale(2.0)),
        compared(of_answers(permute_and_flip, rate(0.5))),
    ),
).with_twins(
    """counts_noise: Report Noisy Max over any queries with exponential noise of half the mean
        a mean of sensitivity / epsilon suits answers that all move one way; else a margin of 2 is 2 epsilon
        the index of the largest answer after each got its own exponential draw of mean sensitivity / epsilon
    value_released: Report Noisy Max with exponential noise that gives away the noisy answer
        the noise is never negative: a value below the largest answer of a dataset cannot come from it
        the index of the largest noisy answer, and that noisy answer
    value_only: The noisy maximum itself, of exponential noise, in the place of its index
        the noise is never negative: a maximum below the largest answer of a dataset cannot come from it
        the largest answer after each got its own exponential draw of mean 2 sensitivity / epsilon, without its \
            index""",
    counts_noise=Twin(
        code=Code(sampler=raced(_exponential, scale(1.0)), loss=compared(of_answers(permute_and_flip, rate(1.0)))),
        edit={"2.0 * ": ""},
    ),
    value_released=Twin(
        code=Code(sampler=raced(_exponential, scale(2.0), "both"), loss=between(releasing_one_sided, scale(2.0))),
        edit=BOTH,
        default_pair=([0, 0], [1, 1]),
    ),
    value_only=Twin(
        code=Code(sampler=raced(_exponential, scale(2.0), "value"), loss=between(largest_one_sided, scale(2.0))),
        edit=_VALUE,
        default_pair=([0, 0, 0, 0, 0], [1, 1, 1, 1, 1]),
    ),
)


def _gumbel_noise(rng: Rng, scale: float, size: int) -> Reals:
    noise = rng.standard_exponential(size)
    np.log(noise, out=noise)
    noise *= -scale
    return noise


_GUMBEL_LOSS = compared(of_answers(exponential, rate(0.5)))


def _gumbel_value_loss(first: Answers, second: Answers, epsilon: float, sensitivity: float) -> float:
    """The value is Gumbel about ln of the sum of all weights, whoever wins: shifted at all, its lower tail is lost."""
    per_unit = epsilon / (2.0 * sensitivity)
    centres = [float(np.logaddexp.reduce(np.asarray(answers, float) * per_unit)) for answers in (first, second)]
    if not math.isclose(*centres, abs_tol=1e-12):
        return math.inf
    return _GUMBEL_LOSS(first, second, epsilon=epsilon, sensitivity=sensitivity)


report_noisy_max_gumbel = in_room(
    name="report_noisy_max_gumbel",
    title="Report Noisy Max with Gumbel noise",
    source=Source(BASSI, "McSherry & Talwar 2007, Mechanism design via differential privacy (the law of the index)"),
    formula=(
        "the index of the largest answer after each got its own draw of Gumbel(2 sensitivity / epsilon): it is j with "
        "probability proportional to e^(epsilon answer_j / (2 sensitivity))"
    ),
    code=Code(edited(_general, "_gumbel", {"laplace": "gumbel"}), raced(_gumbel_noise, scale(2.0)), _GUMBEL_LOSS),
).with_twins(
    """inverse_scale: Report Noisy Max with Gumbel noise of the inverse scale
        the scale grows with epsilon: at epsilon 1 and sensitivity 1 it is 4 times too small
        the index of the largest answer after each got its own draw of Gumbel(epsilon / (2 sensitivity))
    wrong_tail: Report Noisy Max with Gumbel noise for minima
        its upper tail falls doubly exponentially: a candidate that lies behind many others all but never wins
        the index of the largest answer after each lost its own draw of Gumbel(2 sensitivity / epsilon)
    value_released: Report Noisy Max with Gumbel noise that gives away the noisy answer
        the lower tail of a Gumbel falls doubly exponentially: the lower the value, the larger the ratio
        the index of the largest noisy answer, and that noisy answer""",
    inverse_scale=Twin(
        code=Code(sampler=raced(_gumbel_noise, rate(0.5)), loss=compared(of_answers(exponential, scale(2.0)))),
        edit={"2.0 * sensitivity / epsilon": "epsilon / (2.0 * sensitivity)"},
        default_pair=([1, -1, -1], [0, 0, 0]),
    ),
    wrong_tail=Twin(
        code=Code(sampler=raced(_gumbel_noise, scale(-2.0)), loss=compared(of_answers(last_clock, rate(0.5)))),
        edit={"answer + ": "answer - "},
        default_pair=([0, 1, 1, 1, 1, 1], [-1, 2, 2, 2, 2, 2]),
    ),
    value_released=Twin(
        code=Code(sampler=raced(_gumbel_noise, scale(2.0), "both"), loss=_gumbel_value_loss),
        edit=BOTH,
        default_pair=([0, 0, 0], [1, 1, 1]),
    ),
)
