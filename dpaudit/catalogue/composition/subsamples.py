"""Counts of random samples: a secret sample lowers the loss of one release, and each release needs its own."""

import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.composition.counts import in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import at_least_one, unbounded
from dpaudit.claims import PureDP, Relation


def _sampled_counts(data: int, rng: Rng, epsilon: float, rate: float, k: int) -> tuple[float, ...]:
    releases = []
    for _ in range(k):
        sample = sum(rng.random() < rate for _ in range(data))
        releases.append(sample + rng.laplace(scale=1.0 / epsilon))
    return tuple(releases)


def _one_sample(data: int, rng: Rng, epsilon: float, rate: float, k: int) -> tuple[float, ...]:
    sample = sum(rng.random() < rate for _ in range(data))
    return tuple(sample + rng.laplace(scale=1.0 / epsilon) for _ in range(k))


def _size_published(data: int, rng: Rng, epsilon: float, rate: float, k: int) -> tuple[float, ...]:
    releases = []
    for _ in range(k):
        sample = sum(rng.random() < rate for _ in range(data))
        releases += [float(sample), sample + rng.laplace(scale=1.0 / epsilon)]
    return tuple(releases)


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
        Parameter("epsilon", 2.0, "nats", "the loss of one count without sampling", validate.positive),
        Parameter("rate", 0.1, "probability", "that a person is in the sample", validate.open_probability),
        Parameter("k", 2, "counts", "how many are released", at_least_one),
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
    size_published=Twin(code=Code(_size_published, _size_published_runs, unbounded)),
)
