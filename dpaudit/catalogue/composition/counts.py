"""Several noisy counts as one transcript: how the budget is shared out among them, and what random samples save.

Normal noise composes exactly: k releases are one release along the line between the two vectors of answers. A secret
sample lowers the loss of one release, and each release needs its own.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Entry, Harmless, Parameter, Program, Source, Twin
from dpaudit.catalogue.noise import Rng, around, laplace, normal_each, one_draw, scaled_each
from dpaudit.catalogue.promises import BASSI, DMNS, HAGHTALAB, also, approximate, per_unit, pure, unbounded
from dpaudit.claims import GaussianDP, PureDP, Relation
from dpaudit.errors import InvalidSpec
from dpaudit.losses.composing import laplace_epsilon

Counts = list[int]
Shares = Callable[[int], float]  # the part of the budget that release 0, 1, ... gets

DRV = "Dwork, Rothblum & Vadhan 2010, Boosting and differential privacy"
EPSILON = Parameter("epsilon", 1.0, "nats", "the claim on all releases together")
in_room = partial(
    Entry,
    module="dpaudit.catalogue.composition",
    neighbours="vectors of counts that each move by at most 1",
    promise=pure,
)
of_answers = partial(in_room, adjacency=("all-differ",))


def _as_they_are(data: list[float], **_: float) -> list[float]:
    return data


def _composed_counts(data: Counts, rng: Rng, epsilon: float) -> tuple[float, ...]:
    return tuple(count + rng.laplace(scale=len(data) / epsilon) for count in data)


composed_counts = of_answers(
    name="composed_counts",
    title="k noisy counts, the budget divided by k",
    source=Source(f"{HAGHTALAB}, theorem 3.3; {BASSI}, 'Composition of DP mechanisms'", DMNS),
    formula="each of the k counts plus its own draw of Lap(k / epsilon)",
    code=scaled_each(_as_they_are, lambda data, epsilon: [len(data) / epsilon] * len(data), program=_composed_counts),
    parameters=(EPSILON,),
    default_pair=([10, 10, 10, 10], [9, 9, 9, 9]),
).with_twins(
    """noise_reused: k noisy counts with one draw of noise
        the noise cancels in the difference of two counts, which so is published exactly
        one draw of Lap(k / epsilon), added to each of the k counts
    uncoordinated: Noisy counts of k databases that do not know of each other
        each database keeps its own epsilon, and someone who is in all of them loses k epsilon
        the count of each of the k databases plus its own draw of Lap(1 / epsilon)""",
    noise_reused=Twin(
        code=one_draw(_as_they_are, lambda data, epsilon: len(data) / epsilon), default_pair=([10, 10], [10, 9])
    ),
    uncoordinated=Twin(
        at=lambda data, epsilon: {"epsilon": len(data) * epsilon},
        default_pair=([2, 1, 2, 1], [1, 0, 1, 0]),
        neighbours="the counts of k databases, each of which someone may enter or leave",
        adjacency=("up", "down"),
    ),
)


def _each(k: int, epsilon: float, delta: float, logarithm: bool) -> float:
    return epsilon / math.sqrt(2.0 * k * math.log(1.0 / delta) if logarithm else k)


def _advanced_loss(first: Counts, second: Counts, epsilon: float, delta: float, *, logarithm: bool = True) -> float:
    moves = np.abs(np.subtract(first, second))
    steps = np.unique(moves[moves > 0])
    if len(steps) == 0:
        return 0.0
    if len(steps) > 1:
        raise InvalidSpec(f"the counts that move must move by the same, got moves by {steps.tolist()}")
    each = float(steps[0]) * _each(len(first), epsilon, delta, logarithm)
    return laplace_epsilon(int(np.count_nonzero(moves)), each, delta)


def _advanced_counts(data: Counts, rng: Rng, epsilon: float, delta: float) -> tuple[float, ...]:
    scale = math.sqrt(2.0 * len(data) * math.log(1.0 / delta)) / epsilon
    return tuple(count + rng.laplace(scale=scale) for count in data)


def _advanced(*, logarithm: bool, program: Program | None = None) -> Code:
    def scales(data: Counts, epsilon: float, delta: float) -> list[float]:
        return [1.0 / _each(len(data), epsilon, delta, logarithm)] * len(data)

    return scaled_each(_as_they_are, scales, partial(_advanced_loss, logarithm=logarithm), program)


def _moderate(most: float) -> Any:
    """Where the rule of the notes is true, by the optimal composition (delta 0.1 breaks from epsilon 5.13 on)."""
    why = "; beyond it the rule of the notes may fail"
    return also(validate.positive, lambda number: number <= most, f"be at most {most:g}", why)


advanced_counts = of_answers(
    name="advanced_counts",
    title="k noisy counts, the budget shared out by advanced composition",
    source=Source(
        "Bassi 2019, notes 001, 'Accuracy of queries under the Laplace mechanism' (advanced)",
        f"{DRV}; Dwork & Roth 2014, theorem 3.20",
    ),
    formula="each of the k counts plus its own draw of Lap(sqrt(2 k ln(1 / delta)) / epsilon)",
    code=_advanced(logarithm=True, program=_advanced_counts),
    parameters=(
        Parameter("epsilon", 1.0, "nats", "the claim; the rule is true of moderate ones", _moderate(5.0)),
        Parameter("delta", 0.01, "probability", "the additive part of the claim", _moderate(0.1)),
    ),
    promise=approximate,
    default_pair=([10] * 8, [9] * 8),
).with_twins(
    """logarithm_left_out: k noisy counts, the budget divided by the root of k alone
        epsilon' grows like sqrt(k) epsilon only up to the factor sqrt(2 ln(1 / delta)), which is 3 at a delta of \
            0.01 and 5 at 1e-6
        each of the k counts plus its own draw of Lap(sqrt(k) / epsilon), claimed with the delta""",
    logarithm_left_out=Twin(code=_advanced(logarithm=False)),
)


def _halving_budget(data: Counts, rng: Rng, epsilon: float) -> tuple[float, ...]:
    return tuple(count + rng.laplace(scale=2.0 ** (i + 1) / epsilon) for i, count in enumerate(data))


def _shared(share: Shares, program: Program | None = None) -> Code:
    def scales(data: Counts, epsilon: float) -> list[float]:
        return [1.0 / (epsilon * share(i)) for i in range(len(data))]

    return scaled_each(_as_they_are, scales, program=program)


halving_budget = of_answers(
    name="halving_budget",
    title="Noisy counts without end, each with half of what is left",
    source=Source("Bassi 2019, notes 001, 'Composition of DP mechanisms'", DMNS),
    formula="count i = 1, 2, ... plus a draw of Lap(2^i / epsilon)",
    code=_shared(lambda release: 0.5 ** (release + 1), _halving_budget),
    parameters=(EPSILON,),
    default_pair=([10, 10, 10, 10], [9, 9, 9, 9]),
).with_twins(
    """harmonic_shares: Noisy counts without end, with shares of 1/2, 1/3, 1/4, ...
        the shares fall, but their sum grows without end: above 1 from the third, above 1.8 with the eighth
        count i = 1, 2, ... plus a draw of Lap((i + 1) / epsilon)""",
    harmonic_shares=Twin(code=_shared(lambda release: 1.0 / (release + 2)), default_pair=([10] * 8, [9] * 8)),
)


def _averaged_count(data: int, rng: Rng, epsilon: float, k: int, *, divided: bool = True) -> float:
    releases = [data + rng.laplace(scale=(k if divided else 1.0) / epsilon) for _ in range(k)]
    return sum(releases) / k


def _answer_kept(data: int, rng: Rng, epsilon: float, k: int) -> float:
    answer = data + rng.laplace(scale=1.0 / epsilon)
    releases = [answer for _ in range(k)]
    return sum(releases) / k


def _averaged_runs(data: int, runs: int, rng: Rng, epsilon: float, k: int, *, divided: bool = True) -> Reals:
    scale = (k if divided else 1.0) / epsilon
    mean = laplace(rng, scale, runs)
    for _ in range(k - 1):
        mean += laplace(rng, scale, runs)
    mean /= k
    mean += data
    return mean


def _averaged_loss(first: int, second: int, epsilon: float, k: int, *, divided: bool = True) -> float:
    """The densities are log-concave and fall like a polynomial times e^(-|z| k / scale): the loss of the far tail."""
    return epsilon * (1 if divided else k) * abs(first - second)


averaged_count = of_answers(
    name="averaged_count",
    title="The mean of k noisy releases of one count",
    source=Source("Bassi 2019, notes 001, 'A differencing attack' (the noise of identical queries averages out)", DMNS),
    formula="the mean of k releases, each the count plus its own draw of Lap(k / epsilon)",
    neighbours="counts at most 1 apart",
    code=Code(_averaged_count, _averaged_runs, _averaged_loss),
    parameters=(EPSILON, Parameter("k", 2, "releases", "how many are averaged")),
    default_pair=(10, 9),
).with_twins(
    """each_at_full_budget: The mean of k releases, each at the whole budget
        averaging takes the noise away again, and far out the mean loses all of the k epsilon that were spent
        the mean of k releases, each the count plus its own draw of Lap(1 / epsilon)
    answer_kept: The mean of k releases that all repeat one draw
        the same noise for the same question tells nothing new: k identical answers lose what one does
        the count plus one draw of Lap(1 / epsilon), released k times; the mean of these""",
    each_at_full_budget=Twin(code=Code(_averaged_count, _averaged_runs, _averaged_loss).given(divided=False)),
    answer_kept=Harmless(
        code=Code(_answer_kept, lambda data, runs, rng, epsilon, k: around(data, 1.0 / epsilon, runs, rng), per_unit)
    ),
)


def _composed_gaussians(data: list[float], rng: Rng, mu: float) -> tuple[float, ...]:
    return tuple(answer + rng.normal(scale=math.sqrt(len(data)) / mu) for answer in data)


def _gaussians(power: float, program: Program | None = None) -> Code:
    return normal_each(_as_they_are, lambda data, mu: math.pow(len(data), power) / mu, program)


composed_gaussians = of_answers(
    name="composed_gaussians",
    title="k releases with normal noise, as one claim of Gaussian DP",
    source=Source(
        "Cheema & Huszár, notes 004, 'Zero concentrated DP' (its nice analysis of the Gaussian mechanism)",
        "Dong, Roth & Su 2022, Gaussian differential privacy, corollary 3.3; Bun & Steinke 2016, lemma 1.7",
    ),
    formula="each of the k answers plus its own draw of N(0, sigma^2), sigma = sqrt(k) / mu; it is rho = mu^2 / 2",
    neighbours="vectors of answers that each move by at most 1",
    code=_gaussians(0.5, _composed_gaussians),
    parameters=(Parameter("mu", 1.0, "standard deviations", "the claim on all k together"),),
    promise=GaussianDP,
    default_pair=([10, 10, 10, 10], [9, 9, 9, 9]),
).with_twins(
    """sigma_of_one: k releases with normal noise, each with the sigma of a single one
        the squares add up: k releases of mu are sqrt(k) mu
        each of the k answers plus its own draw of N(0, sigma^2), sigma = 1 / mu
    sigma_times_k: k releases with normal noise, the budget divided as for epsilon
        mu adds up in squares and not as epsilon does, so k times the sigma is more noise than needed
        each of the k answers plus its own draw of N(0, sigma^2), sigma = k / mu""",
    sigma_of_one=Twin(code=_gaussians(0.0), edit={"math.sqrt(len(data))": "1.0"}),
    sigma_times_k=Harmless(code=_gaussians(1.0), edit={"math.sqrt(len(data))": "len(data)"}),
)


def _sampled_counts(data: int, rng: Rng, epsilon: float, rate: float, k: int) -> tuple[float, ...]:
    releases = []
    for _ in range(k):
        sample = sum(rng.random() < rate for _ in range(data))
        releases.append(sample + rng.laplace(scale=1.0 / epsilon))
    return tuple(releases)


def _one_sample(data: int, rng: Rng, epsilon: float, rate: float, k: int) -> tuple[float, ...]:
    sample = sum(rng.random() < rate for _ in range(data))
    return tuple(sample + rng.laplace(scale=1.0 / epsilon) for _ in range(k))


def _sampled_runs(
    data: int, runs: int, rng: Rng, epsilon: float, rate: float, k: int, *, samples: int | None = None
) -> Reals:
    noisy = laplace(rng, 1.0 / epsilon, k * runs).reshape(k, runs)
    noisy += rng.binomial(data, rate, (samples or k, runs))
    return noisy.T


def _size_published_runs(data: int, runs: int, rng: Rng, epsilon: float, rate: float, k: int) -> Reals:
    published = np.empty((2 * k, runs))
    for release in range(k):
        published[2 * release] = rng.binomial(data, rate, runs)
        published[2 * release + 1] = laplace(rng, 1.0 / epsilon, runs)
        published[2 * release + 1] += published[2 * release]
    return published.T


def _sampled_loss(first: int, second: int, epsilon: float, rate: float, k: int) -> float:
    """Beyond all people each release has the ratio (1 - rate + rate e^epsilon) to the power of the people moved."""
    return k * abs(first - second) * math.log1p(rate * math.expm1(epsilon))


def _one_sample_loss(first: int, second: int, epsilon: float, rate: float, k: int) -> float:
    """Who is in the sample is in all k releases: e^(k epsilon) in place of e^epsilon, once."""
    return abs(first - second) * math.log1p(rate * math.expm1(k * epsilon))


sampled_counts = in_room(
    name="sampled_counts",
    title="k noisy counts, each of a random sample of its own",
    source=Source(
        None,
        "Li, Qardaji & Su 2012, On sampling, anonymization, and differential privacy, theorem 1; "
        "Balle, Barthe & Gaboardi 2018",
    ),
    formula=(
        "k times: each person is in the sample with probability `rate`; the size of the sample plus one draw of "
        "Lap(1 / epsilon); claimed as k ln(1 + rate (e^epsilon - 1))"
    ),
    neighbours="numbers of people, one of whom comes or leaves",
    code=Code(_sampled_counts, _sampled_runs, _sampled_loss),
    parameters=(
        Parameter("epsilon", 2.0, "nats", "the loss of one count without sampling"),
        Parameter("rate", 0.1, "probability", "that a person is in the sample", validate.open_probability),
        Parameter("k", 2, "counts", "how many are released"),
    ),
    promise=lambda epsilon, rate, k: PureDP(k * math.log1p(rate * math.expm1(epsilon)), Relation.ADD_OR_REMOVE_ONE),
    default_pair=(1, 0),
).with_twins(
    """one_sample: k noisy counts of one and the same sample
        a person who is in the sample is in it for all k releases: sampling lowers the loss of the whole, ln(1 + \
            rate (e^(k epsilon) - 1)), which is more than k times that of one
        one sample, drawn once; then k times its size plus a draw of Lap(1 / epsilon); the claim is as above
    size_published: k noisy counts of samples whose size is published
        a sample of everyone is larger than any of one person less, and its size has no noise
        k times: the exact size of the sample, and the same size plus one draw of Lap(1 / epsilon)""",
    one_sample=Twin(code=Code(_one_sample, partial(_sampled_runs, samples=1), _one_sample_loss)),
    size_published=Twin(
        code=Code(sampler=_size_published_runs, loss=unbounded),
        edit={"releases.append(": "releases.append(float(sample))\n        releases.append("},
    ),
)
