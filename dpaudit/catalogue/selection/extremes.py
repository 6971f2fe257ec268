"""Report Noisy Max with exponential noise (permute-and-flip) and with Gumbel noise (the exponential mechanism)."""

import math

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.selection.races import BASSI, between, compared, in_room, of_answers, raced, rate, scale
from dpaudit.losses.selecting import exponential, largest_one_sided, last_clock, permute_and_flip, releasing_one_sided

Answers = list[float]


def _one_sided(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> int:
    noisy = [answer + rng.exponential(2.0 * sensitivity / epsilon) for answer in data]
    return noisy.index(max(noisy))


def _exponential(rng: Rng, scale: float, size: int) -> Reals:
    noise = rng.standard_exponential(size)
    noise *= scale
    return noise


def _one_sided_counts_noise(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> int:
    noisy = [answer + rng.exponential(sensitivity / epsilon) for answer in data]
    return noisy.index(max(noisy))


def _one_sided_value(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> dict[int, float]:
    noisy = [answer + rng.exponential(2.0 * sensitivity / epsilon) for answer in data]
    return {noisy.index(max(noisy)): max(noisy)}


def _one_sided_value_only(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> float:
    return max(answer + rng.exponential(2.0 * sensitivity / epsilon) for answer in data)


report_noisy_max_exponential = in_room(
    name="report_noisy_max_exponential",
    title="Report Noisy Max with exponential noise",
    source=Source(
        BASSI,
        "Dwork & Roth 2014 (one-sided noise); Ding et al. 2021, The permute-and-flip mechanism is "
        "identical to report-noisy-max with exponential noise",
    ),
    formula="the index of the largest answer after each got its own exponential draw of mean 2 sensitivity / epsilon",
    code=Code(_one_sided, raced(_exponential, scale(2.0)), compared(of_answers(permute_and_flip, rate(0.5)))),
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
        code=Code(
            _one_sided_counts_noise, raced(_exponential, scale(1.0)), compared(of_answers(permute_and_flip, rate(1.0)))
        )
    ),
    value_released=Twin(
        code=Code(_one_sided_value, raced(_exponential, scale(2.0), "both"), between(releasing_one_sided, scale(2.0))),
        default_pair=([0, 0], [1, 1]),
    ),
    value_only=Twin(
        code=Code(
            _one_sided_value_only, raced(_exponential, scale(2.0), "value"), between(largest_one_sided, scale(2.0))
        ),
        default_pair=([0, 0, 0, 0, 0], [1, 1, 1, 1, 1]),
    ),
)


def _gumbel(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> int:
    noisy = [answer + rng.gumbel(scale=2.0 * sensitivity / epsilon) for answer in data]
    return noisy.index(max(noisy))


def _gumbel_noise(rng: Rng, scale: float, size: int) -> Reals:
    noise = rng.standard_exponential(size)
    np.log(noise, out=noise)
    noise *= -scale
    return noise


def _inverse_scale(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> int:
    noisy = [answer + rng.gumbel(scale=epsilon / (2.0 * sensitivity)) for answer in data]
    return noisy.index(max(noisy))


def _wrong_tail(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> int:
    noisy = [answer - rng.gumbel(scale=2.0 * sensitivity / epsilon) for answer in data]
    return noisy.index(max(noisy))


def _gumbel_value(data: Answers, rng: Rng, epsilon: float, sensitivity: float) -> dict[int, float]:
    noisy = [answer + rng.gumbel(scale=2.0 * sensitivity / epsilon) for answer in data]
    return {noisy.index(max(noisy)): max(noisy)}


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
    code=Code(_gumbel, raced(_gumbel_noise, scale(2.0)), _GUMBEL_LOSS),
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
        code=Code(_inverse_scale, raced(_gumbel_noise, rate(0.5)), compared(of_answers(exponential, scale(2.0)))),
        default_pair=([1, -1, -1], [0, 0, 0]),
    ),
    wrong_tail=Twin(
        code=Code(_wrong_tail, raced(_gumbel_noise, scale(-2.0)), compared(of_answers(last_clock, rate(0.5)))),
        default_pair=([0, 1, 1, 1, 1, 1], [-1, 2, 2, 2, 2, 2]),
    ),
    value_released=Twin(
        code=Code(_gumbel_value, raced(_gumbel_noise, scale(2.0), "both"), _gumbel_value_loss),
        default_pair=([0, 0, 0], [1, 1, 1]),
    ),
)
