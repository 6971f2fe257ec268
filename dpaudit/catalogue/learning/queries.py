"""Statistical queries answered with noise, and the sample that theorem 3.2 of the notes needs.

The class is that of thresholds on {0, ..., 2^bits - 1}: h_t(x) = [x >= t]. A record is (x, y), y in {0, 1}; query t
is the share of records with x < t and y = 1, which one record moves by 1 / m.
"""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.learning.output_noise import in_room
from dpaudit.catalogue.noise import Rng, centred_each
from dpaudit.catalogue.promises import EPSILON

Data = list[list[int]]

HAGHTALAB = "Haghtalab 2020, notes 000, 'Privacy-preserving PAC Learning', theorem 3.2"
BLUM = "Blum, Dwork, McSherry & Nissim 2005, Practical privacy: the SuLQ framework"
BITS = Parameter("bits", 2, "bits", "of x: the domain holds 2^bits values", partial(validate.whole, least=1))
TOLERANCE = Parameter(
    "tolerance", 0.1, "share of records", "tau, how far from the truth an answer may be", validate.open_probability
)

_OTHERS: Data = [[0, 0], [1, 0], [2, 0], [3, 1], [1, 0], [3, 1], [2, 0], [3, 1], [0, 0]]


def sample_size(queries: int, tolerance: float, epsilon: float, beta: float) -> int:
    """The records that suffice for K answers all within the tolerance of the truth with probability 1 - beta.

    Theorem 3.2 with its constants: half of the tolerance and of beta for the noise, a union over K tails of
    Lap(K / (epsilon m)), and half for the sample, K times Hoeffding's two tails.

    >>> sample_size(3, 0.1, 1.0, 0.05)
    1097
    """
    noise = 2.0 * queries / (epsilon * tolerance) * math.log(2.0 * queries / beta)
    sample = 2.0 / tolerance**2 * math.log(4.0 * queries / beta)
    return math.ceil(max(noise, sample))


def share(data: Data, below: int) -> float:
    """The share of the records with x < below and y = 1: the answer to one statistical query.

    >>> share([[0, 1], [1, 1], [2, 0]], 1)
    0.3333333333333333
    """
    return sum(y == 1 and x < below for x, y in data) / len(data)


# --- all queries of the class, asked at once --------------------------------------------------------------------


def _thresholds(bits: int) -> range:
    return range(1, 2**bits)


def _shares(data: Data, bits: int, **_: float) -> Reals:
    return np.array([share(data, t) for t in _thresholds(bits)])


_ANSWERS = centred_each(_shares, lambda data, epsilon, bits: len(_thresholds(bits)) / (epsilon * len(data)))


def _redrawn(data: Data, rng: Rng, epsilon: float, bits: int) -> tuple[float, ...]:
    asked, answers = _thresholds(bits), []
    for t in asked:
        answer = -1.0
        while not 0.0 <= answer <= 1.0:
            answer = share(data, t) + rng.laplace(scale=len(asked) / (epsilon * len(data)))
        answers.append(answer)
    return tuple(answers)


def _made_monotone(data: Data, rng: Rng, epsilon: float, bits: int) -> tuple[float, ...]:
    return tuple(itertools.accumulate(_ANSWERS.program(data, rng, epsilon=epsilon, bits=bits), max))


def _within_tolerance(data: Data, rng: Rng, epsilon: float, bits: int, tolerance: float) -> tuple[float, ...]:
    return tuple(share(data, t) + rng.uniform(-tolerance, tolerance) for t in _thresholds(bits))


def _monotone_runs(data: Data, runs: int, rng: Rng, **given: float) -> Reals:
    return np.asarray(np.maximum.accumulate(_ANSWERS.sampler(data, runs, rng, **given), axis=1))


def _redrawn_runs(data: Data, runs: int, rng: Rng, epsilon: float, bits: int) -> Reals:
    """By inversion of the distribution between 0 and 1: a redrawn answer is a Laplace draw given that it lies there."""
    shares = _shares(data, bits)
    scale = len(shares) / (epsilon * len(data))
    answers = rng.random((len(shares), runs))
    for row, share in zip(answers, shares, strict=True):
        left, right = -math.expm1(-share / scale), -math.expm1(-(1.0 - share) / scale)
        row *= left + right
        row -= left
        row[:] = share - scale * np.sign(row) * np.log1p(-np.abs(row))
    return np.asarray(answers.T)


def _uniform_runs(data: Data, runs: int, rng: Rng, epsilon: float, bits: int, tolerance: float) -> Reals:
    shares = _shares(data, bits)
    return (rng.random((len(shares), runs)) * (2.0 * tolerance) + (shares - tolerance)[:, None]).T


def _redrawn_loss(first: Data, second: Data, epsilon: float, bits: int) -> float:
    """Answer by answer: the log ratio is largest at 0 or at 1, and the two normalisers differ."""
    before, after = _shares(first, bits), _shares(second, bits)
    scale = len(before) / (epsilon * len(first))

    def log_density(share: Reals, at: float) -> Reals:
        kept = -np.expm1(-share / scale) - np.expm1(-(1.0 - share) / scale)
        return np.asarray(-np.abs(at - share) / scale - np.log(kept))

    ends = np.stack([log_density(before, at) - log_density(after, at) for at in (0.0, 1.0)])
    return float(max(ends.max(axis=0).sum(), (-ends).max(axis=0).sum()))


def _uniform_loss(first: Data, second: Data, epsilon: float, bits: int, tolerance: float) -> float:
    return 0.0 if np.array_equal(_shares(first, bits), _shares(second, bits)) else math.inf


statistical_queries = in_room(
    name="statistical_queries",
    title="All K statistical queries, answered with noise",
    source=Source(HAGHTALAB, BLUM),
    formula="the share of records with x < t and y = 1, plus Lap(K / (epsilon m)), for t = 1, ..., K = 2^bits - 1",
    code=_ANSWERS,
    parameters=(EPSILON, BITS),
    default_pair=([*_OTHERS, [0, 1]], [*_OTHERS, [0, 0]]),
).with_twins(
    budget_not_divided=Twin(
        title="Statistical queries with all of epsilon for each",
        reason="one record can count in every query, so K answers at epsilon each are K epsilon together",
        formula="each share plus Lap(1 / (epsilon m))",
        at=lambda data, epsilon, bits: {"epsilon": epsilon * len(_thresholds(bits))},
    ),
    redrawn=Twin(
        title="Statistical queries, drawn again until the answer is a share",
        reason="what is left of the noise must be scaled up to one, by a factor that depends on the share itself",
        formula="each share plus Lap(K / (epsilon m)), drawn anew until the answer lies in [0, 1]",
        code=Code(_redrawn, _redrawn_runs, _redrawn_loss),
    ),
    within_tolerance=Twin(
        title="Statistical queries answered anywhere within the tolerance",
        reason="the learner is content with any answer within tau, but noise that ends shows where it ended",
        formula="each share plus a draw from the uniform distribution on [-tau, tau]",
        code=Code(_within_tolerance, _uniform_runs, _uniform_loss),
        parameters=(TOLERANCE,),
    ),
    made_monotone=Harmless(
        title="Statistical queries made to rise with the threshold",
        reason="the running maximum is a function of the private answers: like shares, they now rise, at no cost",
        formula="each share plus Lap(K / (epsilon m)), then the largest answer so far",
        code=Code(_made_monotone, _monotone_runs, _ANSWERS.loss),
    ),
)
