"""Statistical queries answered with noise, the sample that theorem 3.2 of the notes needs, and its private PAC learner.

Of the queries at once, the class is that of thresholds on {0, ..., 2^bits - 1}: h_t(x) = [x >= t]. A record is (x, y),
y in {0, 1}; query t is the share of records with x < t and y = 1, which one record moves by 1 / m. The learners are
those of `learners`; a query costs epsilon / K of the K that its learner may ask. The loss and many runs at once rest
on its exact law; all its answers, told, are an analyst's of the adaptive room.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Integers, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.learning.learners import LEARNER, LEARNERS, Asking, Query, following, learned, named
from dpaudit.catalogue.learning.objective_noise import in_room
from dpaudit.catalogue.noise import Rng, centred_each, places_of
from dpaudit.catalogue.promises import EPSILON, doubled, unless_same
from dpaudit.losses.distribution import largest_log_ratio

Data = list[list[int]]

HAGHTALAB = "Haghtalab 2020, notes 000, 'Privacy-preserving PAC Learning', theorem 3.2"
BLUM = "Blum, Dwork, McSherry & Nissim 2005, Practical privacy: the SuLQ framework"
BITS = Parameter("bits", 2, "bits", "of x: the domain holds 2^bits values")
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
        chance = -np.expm1(-share / scale) - np.expm1(-(1.0 - share) / scale)
        return np.asarray(-np.abs(at - share) / scale - np.log(chance))

    ends = np.stack([log_density(before, at) - log_density(after, at) for at in (0.0, 1.0)])
    return float(max(ends.max(axis=0).sum(), (-ends).max(axis=0).sum()))


statistical_queries = in_room(
    name="statistical_queries",
    title="All K statistical queries, answered with noise",
    source=Source(HAGHTALAB, BLUM),
    formula="the share of records with x < t and y = 1, plus Lap(K / (epsilon m)), for t = 1, ..., K = 2^bits - 1",
    code=_ANSWERS,
    parameters=(EPSILON, BITS),
    default_pair=([*_OTHERS, [0, 1]], [*_OTHERS, [0, 0]]),
).with_twins(
    """budget_not_divided: Statistical queries with all of epsilon for each
        one record can count in every query, so K answers at epsilon each are K epsilon together
        each share plus Lap(1 / (epsilon m))
    redrawn: Statistical queries, drawn again until the answer is a share
        what is left of the noise must be scaled up to one, by a factor that depends on the share itself
        each share plus Lap(K / (epsilon m)), drawn anew until the answer lies in [0, 1]
    within_tolerance: Statistical queries answered anywhere within the tolerance
        the learner is content with any answer within tau, but noise that ends shows where it ended
        each share plus a draw from the uniform distribution on [-tau, tau]
    made_monotone: Statistical queries made to rise with the threshold
        the running maximum is a function of the private answers: like shares, they now rise, at no cost
        each share plus Lap(K / (epsilon m)), then the largest answer so far""",
    budget_not_divided=Twin(at=lambda data, epsilon, bits: {"epsilon": epsilon * len(_thresholds(bits))}),
    redrawn=Twin(code=Code(_redrawn, _redrawn_runs, _redrawn_loss)),
    within_tolerance=Twin(
        code=Code(_within_tolerance, _uniform_runs, unless_same(lambda data, bits, **_: _shares(data, bits).tolist())),
        parameters=(TOLERANCE,),
    ),
    made_monotone=Harmless(code=Code(_made_monotone, _monotone_runs, _ANSWERS.loss)),
)


Means = Callable[[Query], float]

_RECORDS: Data = [[1, 0], [2, 0], [3, 0], [4, 0], [5, 1], [6, 1], [7, 1], [6, 1], [3, 0], [1, 0]] + [[7, 1]] * 9
_MIXED: Data = [[0, 1], [0, 1], [0, 1], [4, 0], [5, 1], [6, 1], [7, 1], [6, 1], [3, 0], [1, 0]] + [[7, 1]] * 9


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
    step = following(start(), answers)
    if isinstance(step, int):
        yield step, chance
        return
    up = above(step)
    yield from _leaves(start, above, (*answers, math.inf), chance * up)
    yield from _leaves(start, above, (*answers, -math.inf), chance * (1.0 - up))


def learner_law(
    data: Data, epsilon: float, bits: int, tolerance: float, learner: str = "threshold", margin: float = 0.0
) -> tuple[Integers, Reals]:
    """The hypotheses in rising order, and the probability of each; answers within `margin` of tau are drawn again.

    >>> [each.round(4).tolist() for each in learner_law([[0, 0]], 1.0, 1, 0.5)]
    [[0, 1], [0.3033, 0.6967]]
    """
    mean, scale = _means(data), named(learner).queries(bits) / (epsilon * len(data))

    def above(query: Query) -> float:
        gap = tolerance - mean(query)
        up, down = _tail(gap + margin, scale), _tail(margin - gap, scale)
        return up / (up + down)

    leaves, chances = zip(*_leaves(partial(named(learner).start, bits, tolerance), above), strict=True)
    hypotheses, places = np.unique(np.array(leaves, np.int64), return_inverse=True)
    return hypotheses, np.bincount(places, np.array(chances, float)).astype(np.float64)


def _hypothesis_runs(data: Data, runs: int, rng: Rng, **given: Any) -> Integers:
    """Drawn from the exact law: answers that may be asked for again have no fixed number."""
    hypotheses, chances = learner_law(data, **given)
    return hypotheses[places_of(chances, runs, rng)]


def _error_runs(data: Data, runs: int, rng: Rng, bits: int, learner: str, **given: Any) -> Reals:
    drawn = _hypothesis_runs(data, runs, rng, bits=bits, learner=learner, **given)
    hypotheses, places = np.unique(drawn, return_inverse=True)
    errors = np.array([training_error(data, hypothesis, bits, learner) for hypothesis in hypotheses])
    return np.stack([drawn, errors[places]], axis=1)


def _hypothesis_loss(first: Data, second: Data, **given: Any) -> float:
    return largest_log_ratio(*(learner_law(data, **given)[1] for data in (first, second)))


def _error_loss(first: Data, second: Data, bits: int, learner: str, **given: Any) -> float:
    hypotheses, _ = learner_law(first, bits=bits, learner=learner, **given)
    errors = [[training_error(data, each, bits, learner) for each in hypotheses] for data in (first, second)]
    return _hypothesis_loss(first, second, bits=bits, learner=learner, **given) if errors[0] == errors[1] else math.inf


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
    default_pair=([*_RECORDS, [0, 1]], [*_RECORDS, [0, 0]]),
).with_twins(
    """half_noise: Private PAC learner, half the noise
        noise of half the scale costs twice epsilon, whatever the learner does with the answers
        as the learner, each answer with Lap(K / (2 epsilon m))
    asked_until_clear: PAC learner that asks again where the answer is close
        every answer costs epsilon / K, those thrown away as well: far out, a query costs twice as much
        as the learner, each query with fresh noise until the answer is at least `margin` away from tau
    last_one_charged: PAC learner that tries the thresholds in turn and charges the last query
        that the queries before it came out below is told as well, and each of them costs epsilon
        t = 1, 2, ... until the share plus Lap(1 / (epsilon m)) exceeds tau; the output is t - 1
    error_released: PAC learner that reports its training error
        the threshold is private, its error on the private data is an exact statistic of them
        as the learner, and beside the hypothesis the share of the records that it gets wrong""",
    half_noise=Twin(at=doubled),
    asked_until_clear=Twin(
        code=Code(_hypothesis, _hypothesis_runs, _hypothesis_loss),
        parameters=(Parameter("margin", 0.3, "share of records", "how far is clear"),),
    ),
    last_one_charged=Twin(
        at=lambda data, epsilon, bits, **_: {"epsilon": epsilon * LEARNERS["scan"].queries(bits), "learner": "scan"},
        default_pair=([*_MIXED, [0, 1]], [*_MIXED, [0, 0]]),
    ),
    error_released=Twin(code=Code(_error_released, _error_runs, _error_loss)),
)
