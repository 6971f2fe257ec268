"""Mechanisms on which recorded noise is measured: `BROKEN` ones, `SOUND` ones, and `EVASIVE` ones.

`case` gives many a mechanism two claims: one that it breaks on its pair, and the least that it keeps. Out of reach, and
not here, are these of the catalogue's broken twins: sparse vectors, noisy maxima and coins, whose outputs are chosen
among a few by all the noise together (`above_threshold.*`, `report_noisy_max.*`, `permute_and_flip.*`,
`randomised_response.*`, `most_common.*`); laws that end or have a wrong tail, on both datasets alike
(`laplace.uniform_noise`, `k_norm_l2.constant_length`, `gaussian.without_delta`); outputs drawn again
(`nonnegative_count.drawn_again`); few seeds (`laplace.few_seeds`); samples of records, whose claim depends on the rate
(`dp_sgd.*`, `sampled_counts.*`); and minimisers of a noisy objective (`objective_perturbation.*`).
"""

from __future__ import annotations

import asyncio
import copy
import ctypes
import inspect
import math
import os
import pickle
import random
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.stats
from numpy.random import laplace as laplace_of_import

from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PureDP, Relation, ZeroConcentratedDP


@dataclass(frozen=True)
class Case:
    """A mechanism with a pair and a claim: what recorded noise may say of it.

    `mechanism` takes the data, and a generator where it has a parameter `rng`. `expected` is "lead", "silent", or
    "either" of both; a lead is one of `kinds`. `loss` is the exact loss of the pair in the parameter of the claim;
    None where it is not known.
    """

    name: str
    mechanism: Callable[..., Any]
    pair: tuple[Any, Any]
    claim: Claim
    expected: str
    kinds: tuple[str, ...] = ()
    loss: float | None = None

    def call(self, data: Any, rng: Any) -> Any:
        """One run of the mechanism."""
        given = (rng,) if "rng" in inspect.signature(self.mechanism).parameters else ()
        return self.mechanism(data, *given)


BROKEN: list[Case] = []
SOUND: list[Case] = []
EVASIVE: list[Case] = []
Mechanism = Callable[..., Any]


def case(
    pair: tuple[Any, Any],
    broken: Claim | None = None,
    sound: Claim | None = None,
    loss: float | None = None,
    kinds: Sequence[str] = ("shift",),
    name: str = "",
) -> Callable[[Mechanism], Mechanism]:
    """Puts a mechanism among the broken ones with the claim that it breaks, among the sound ones with one it keeps."""

    def put(mechanism: Mechanism) -> Mechanism:
        title = name or mechanism.__name__
        if broken is not None:
            BROKEN.append(Case(title, mechanism, pair, broken, "lead", tuple(kinds), loss))
        if sound is not None:
            SOUND.append(Case(title, mechanism, pair, sound, "silent", (), loss))
        return mechanism

    return put


def evasive(*kinds: str, loss: float = 1.0, claim: Claim | None = None) -> Callable[[Mechanism], Mechanism]:
    """Puts a mechanism among the evasive ones, 1-DP by default: broken where leads of some kinds would be true."""

    def put(mechanism: Mechanism) -> Mechanism:
        expected = "either" if kinds else "silent"
        EVASIVE.append(Case(mechanism.__name__, mechanism, PEOPLE, claim or PureDP(1.0), expected, kinds, loss))
        return mechanism

    return put


ADDED, REPLACED, USER = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_USER
NEVER = math.inf  # the loss where some output is possible on one dataset alone
PEOPLE = (["ann", "bob", "eve"], ["ann", "bob"])
VALUES = ([0.25, 0.75, 0.5, 1.0], [0.25, 0.75, 0.5])
CHANGED = ([0.1, 0.7, 0.3, 1.0], [0.1, 0.7, 0.3, 0.0])
COLOURS = ("red", "green", "blue")
VOTES = (["red", "red", "green", "green", "green"], ["red", "red", "green", "green"])
DELTA = 1e-5

# --- the catalogue's own --------------------------------------------------------------------------------------------

MOVED = """
additive:laplace.half_noise additive:laplace_average.unclipped additive:laplace_average.divided_twice
additive:laplace_sum.replace_one additive:counting_queries.l2_sensitivity additive:geometric.half_noise
additive:gaussian.sigma_as_variance additive:gaussian_zcdp.variance_as_sigma
additive:gaussian_vector.sensitivity_of_one composition:averaged_count.each_at_full_budget
learning:output_perturbation.half_sensitivity learning:ridge_output_perturbation.labels_not_clipped
learning:dp_gradient_descent_iterates.clipping_per_coordinate
"""
TWINS = dict.fromkeys(MOVED.split(), "shift") | {
    "additive:laplace.relative_noise": "law shift untouched",
    "additive:laplace_average.secret_size": "law shift",
    "additive:laplace_average.observed_range": "law shift",
    "additive:histogram.shared_noise": "reused",
    "composition:parallel_counts.exact_total": "untouched shift",
    "releases:noisy_counts.empty_left_out": "untouched law",
    "releases:noisy_average.exact_median": "untouched",
}
# beside others the exponential mechanism, by rejection and by Gumbel noise
ENTRIES = """
sparse:above_threshold sparse:gap_sparse selection:permute_and_flip selection:permute_and_flip.drawn_again
selection:report_noisy_max selection:report_noisy_max_gumbel local:randomised_response local:symmetric_unary.until_valid
additive:prefix_sums composition:noisy_bisection composition:leaky_responses learning:output_perturbation
learning:dp_gradient_descent_iterates learning:dp_sgd_iterates
"""
for reference in (*TWINS, *ENTRIES.split()):
    room, _, entry_name = reference.partition(":")
    entry = attrgetter(entry_name)(import_module(f"dpaudit.catalogue.{room}"))
    claims = {"broken": entry.claim()} if reference in TWINS else {"sound": entry.claim()}
    case(
        entry.default_pair,
        **claims,
        loss=entry.true_loss(*entry.default_pair),
        kinds=TWINS.get(reference, "").split(),
        name=reference,
    )(entry.run)

# --- the sensitivity is 1 % too small --------------------------------------------------------------------------------

SIGMA = 3.7


@case(VALUES, PureDP(1.0, ADDED), PureDP(1.01, ADDED), 1.01)
def laplace_sum(data: Any, rng: Any) -> float:
    return float(np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=1.0 / 1.01))


@case(
    CHANGED,
    ApproximateDP(GaussianDP(1.0 / SIGMA).epsilon_at(DELTA), DELTA, REPLACED),
    ApproximateDP(GaussianDP(1.01 / SIGMA).epsilon_at(DELTA), DELTA, REPLACED),
    GaussianDP(1.01 / SIGMA).epsilon_at(DELTA),
)
def gaussian_sum(data: Any, rng: Any) -> Any:
    return sum(data) + rng.normal(0.0, SIGMA / 1.01)


@case(([[0.1, 0.2, 0.3], [0.5, -0.3, 0.2]], [[0.1, 0.2, 0.3]]), PureDP(1.0, ADDED), PureDP(1.01, ADDED), 1.01)
def laplace_vector(data: Any, rng: Any) -> Any:
    return np.sum(data, axis=0) + rng.laplace(scale=1.0 / 1.01, size=3)


@case(([[0.3, 0.1], [0.6, 0.8]], [[0.3, 0.1]]), GaussianDP(1.0), GaussianDP(1.01), 1.01)
def gaussian_vector(data: Any, rng: Any) -> list[float]:
    total = sum(np.asarray(record) / max(1.0, np.linalg.norm(record)) for record in data)
    return list(total + rng.standard_normal(2) / 1.01)


@case((["red", "red", "blue"], ["red", "green", "blue"]), PureDP(1.0, REPLACED), PureDP(1.01, REPLACED), 1.01)
def histogram(data: Any, rng: Any) -> dict[str, float]:
    return {colour: data.count(colour) + rng.laplace(0.0, 2.0 / 1.01) for colour in COLOURS}


@case(VALUES, PureDP(1.0, ADDED), PureDP(1.01, ADDED), 1.01)
def noisy_sum_and_count(data: Any, rng: Any) -> tuple[float, float]:
    return sum(data) + rng.laplace(scale=2.0 / 1.01), len(data) + rng.laplace(scale=2.0 / 1.01)


# an integral over the noisy count gives 1.00999941 for the ratio alone: next to what both lose together
MANY = (np.zeros(20_000), np.append(np.zeros(20_000), -1.0))


@case(MANY, PureDP(1.0, ADDED), PureDP(1.01, ADDED), 1.01)
def noisy_mean(data: Any, rng: Any) -> float:
    total = np.clip(data, -1.0, 1.0).sum() + rng.laplace(scale=2.0 / 1.01)
    return float(total / (len(data) + rng.laplace(scale=2.0 / 1.01)))


# --- other faults, and most with the claim that the mechanism keeps --------------------------------------------------


@case(([0.5, 0.75, 0.25], [0.5, 0.75]), ZeroConcentratedDP(1.0), None, NEVER, ["reused"])
def noise_reused(data: Any) -> dict[str, float]:
    noise = np.random.normal(scale=1.0)
    return {"sum": sum(data) + noise, "count": len(data) + noise}


# the loss at DELTA of two normal laws, about 0.625 and 0.5, with deviations SIGMA / 4 and SIGMA / 3, by integration
@case(VALUES, ApproximateDP(1.0, DELTA, ADDED), None, 7.005143, ["law", "shift"])
def scale_of_private_size(data: Any) -> float:
    return sum(data) / len(data) + random.gauss(0.0, SIGMA / len(data))


@case(([[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1]]), PureDP(1.0, ADDED), PureDP(2.0, ADDED), 2.0)
def budget_spent_twice(data: Any) -> list[int]:
    stop = 1.0 - math.exp(-1.0)
    return [
        sum(record[place] for record in data) + np.random.geometric(stop) - np.random.geometric(stop)
        for place in (0, 1)
    ]


CHOICE = 1.0 + math.log((math.exp(-1.0) + 1.0 + math.e) / 3.0)  # one count falls by 1, another rises


@case((["red", "green", "blue"], ["green", "green", "blue"]), PureDP(1.0), PureDP(CHOICE), CHOICE, ["law"])
def exponential_choice(data: Any, rng: Any) -> str:
    weights = np.exp([data.count(colour) for colour in COLOURS])
    return str(rng.choice(COLOURS, p=weights / weights.sum()))


@case(([[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5]]), PureDP(1.0, ADDED), None, NEVER, ["untouched", "shift"])
def noise_of_scale_zero(data: Any, rng: Any) -> list[float]:
    degree, features = 2, len(data[0])
    return [float(total) + rng.laplace(scale=features - degree) for total in np.sum(data, axis=0)]


@case(([0.5, 1.0, 0.25], [0.5, math.nan, 0.25]), PureDP(1.0, REPLACED), None, NEVER, ["untouched", "shift", "law"])
def nan_passes_the_clip(data: Any) -> float:
    return float(np.clip(data, 0.0, 1.0).sum() + np.random.laplace(scale=1.0))


VISITS = ([("ann", 1.0), ("eve", 1.0), ("eve", 0.5), ("eve", 1.0)], [("ann", 1.0)])


@case(VISITS, PureDP(1.0, USER), PureDP(2.5, USER), 2.5)
def user_of_many_rows(data: Any) -> float:
    uniform = secrets.SystemRandom().random() - 0.5
    return sum(min(amount, 1.0) for _, amount in data) - math.copysign(math.log1p(-2.0 * abs(uniform)), uniform)


@case(([0.5, 0.25, 3.0], [0.5, 0.25]), PureDP(1.0, ADDED), PureDP(3.0, ADDED), 3.0)
def sum_not_clipped(data: Any, rng: Any) -> float:
    return float(sum(data) + rng.choice([-1.0, 1.0]) * rng.exponential(1.0))


@case(([0.5, 0.25, 4.0], [0.5, 0.25]), PureDP(1.0, ADDED), PureDP(4.0, ADDED), 4.0)
def clipped_after_the_sum(data: Any) -> float:
    return min(sum(data), 10.0) + random.expovariate(1.0) - random.expovariate(1.0)


@case(([3, 4, 2], [3, 4]), PureDP(1.0, ADDED), PureDP(2.0, ADDED), 2.0)
def rounded_and_clipped(data: Any, rng: Any) -> int:
    return int(np.clip(np.rint(sum(data) + rng.laplace(scale=1.0)), 0, 50))


@case(PEOPLE, PureDP(1.0, ADDED), None, NEVER, ["raised"])
def refuses_few(data: Any, rng: Any) -> float:
    if len(data) < 3:
        raise ValueError("too few records")
    return len(data) + float(rng.laplace(scale=1.0))


@case(([0.5, 1.5, 2.0, 8.0], [0.5, 1.5, 2.0]), PureDP(1.0, ADDED), None, NEVER, ["untouched", "shift"])
def domain_of_the_data(data: Any, rng: Any) -> tuple[list[float], list[float]]:
    counts, edges = np.histogram(data, bins=2)
    return edges.tolist(), (counts + rng.laplace(scale=1.0, size=2)).tolist()


@case(VALUES, PureDP(1.0, ADDED), None, NEVER, ["untouched"])
def as_long_as_the_data(data: Any, rng: Any) -> list[float]:
    return [value + rng.laplace(scale=1.0) for value in data]


# --- sound: what is drawn, how often and in which order depends on the data ------------------------------------------


@case(VOTES, sound=PureDP(1.0, ADDED))  # 1 / 2 for the name, counts move one way; 1 / 2 for the value
def noisy_max_and_value(data: Any, rng: Any) -> tuple[str, float]:
    noisy = [data.count(colour) + rng.laplace(scale=2.0) for colour in COLOURS]
    best = COLOURS[int(np.argmax(noisy))]
    return best, data.count(best) + rng.laplace(scale=2.0)


def amplified(rate: float) -> float:
    """The epsilon of a mechanism with epsilon 1 on a sample that a record enters at this rate; attained here."""
    return math.log1p(rate * math.expm1(1.0))


@case(((0.01, [1.0, 1.0, 1.0]), (0.01, [1.0, 1.0])), None, PureDP(amplified(0.01)), amplified(0.01), name="poisson .01")
@case(((0.5, [1.0, 1.0, 1.0]), (0.5, [1.0, 1.0])), None, PureDP(amplified(0.5)), amplified(0.5), name="poisson .5")
@case(((0.99, [1.0, 1.0, 1.0]), (0.99, [1.0, 1.0])), None, PureDP(amplified(0.99)), amplified(0.99), name="poisson .99")
def poisson_sample(data: Any, rng: Any) -> float:
    rate, values = data
    return float(sum(value for value in values if rng.random() < rate) + rng.laplace(scale=1.0))


ZEROS = [0.0] * 999


@case(([0.0, 0.0, 0.0, 1.0], [0.0] * 4), None, PureDP(amplified(0.75), REPLACED), amplified(0.75), name="3 of 4")
@case(([*ZEROS, 1.0], [*ZEROS, 0.0]), None, PureDP(amplified(0.999), REPLACED), amplified(0.999), name="999 of 1000")
def shuffled_sample(data: Any, rng: Any) -> float:
    return float(np.asarray(data)[rng.permutation(len(data))[:-1]].sum() + rng.laplace(scale=1.0))


# the best differs between the two, and is released with probability e^-threshold / 2 = delta on either
@case((VOTES[1], VOTES[0]), None, ApproximateDP(0.0, 0.05, ADDED), 0.0)
def propose_test_release(data: Any, rng: Any) -> str | None:
    (best, most), (_, second), *_ = Counter({colour: data.count(colour) for colour in COLOURS}).most_common()
    return best if max(0, most - second - 1) + rng.laplace(scale=1.0) > math.log(1.0 / (2.0 * 0.05)) else None


def smooth_sensitivity(data: Any, beta: float) -> tuple[float, float]:
    """The median of numbers in [0, 1], and its smooth sensitivity (Nissim, Raskhodnikova & Smith 2007)."""
    n = len(data)
    padded, middle = [0.0] * n + sorted(data) + [1.0] * n, n + n // 2
    local = [max(padded[middle + t] - padded[middle + t - k - 1] for t in range(k + 2)) for k in range(n + 1)]
    return padded[middle], max(math.exp(-beta * k) * size for k, size in enumerate(local))


# losses of the pair by integration: of two Cauchy laws, and of two Laplace laws at delta 0.01; rounded up
CAUCHY, SMOOTH = 0.166740, 0.123613
MEDIANS = ([0.5, 0.49, 0.51, 0.48, 0.52, 0.47, 0.53], [0.5, 0.49, 0.51, 0.48, 0.52, 0.47, 0.0])


@case(MEDIANS, sound=PureDP(CAUCHY), loss=CAUCHY)
def smooth_sensitivity_cauchy(data: Any, rng: Any) -> float:
    median, smooth = smooth_sensitivity(data, 1.0 / 6.0)
    return float(median + 6.0 * smooth * rng.standard_cauchy())


@case(MEDIANS, sound=ApproximateDP(SMOOTH, 0.01), loss=SMOOTH)
def smooth_sensitivity_laplace(data: Any, rng: Any) -> float:
    median, smooth = smooth_sensitivity(data, 1.0 / (2.0 * math.log(2.0 / 0.01)))
    return float(median + rng.laplace(scale=2.0 * smooth))


@case((["red", "red", "blue"], ["red", "red"]), None, ApproximateDP(0.0, math.exp(-2.0) / 2.0, ADDED), 0.0)
def keys_above_a_threshold(data: Any, rng: Any) -> dict[str, float]:
    noisy = {colour: count + rng.laplace(scale=1.0) for colour, count in sorted(Counter(data).items())}
    return {colour: count for colour, count in noisy.items() if count > 3.0}


@case(
    (MEDIANS[0][:6], MEDIANS[1][1:]), sound=PureDP(1.0, REPLACED)
)  # in another order, too: one block moves, by at most 1
def sample_and_aggregate(data: Any, rng: Any) -> float:
    blocks = np.asarray(data)[rng.permutation(len(data))].reshape(3, -1)
    return float(np.clip(np.median(blocks, axis=1), 0.0, 1.0).mean() + rng.laplace(scale=1.0 / 3.0))


@case(([1, 0, 1, 1], [1, 0, 0, 1]), None, PureDP(1.0, REPLACED), 1.0)  # three levels, each 1 / 3
def tree_of_sums(data: Any, rng: Any) -> list[float]:
    spans = [(0, 4), (0, 2), (2, 4), (0, 1), (1, 2), (2, 3), (3, 4)]
    node = {span: sum(data[slice(*span)]) + rng.laplace(scale=3.0) for span in spans}
    return [node[0, 1], node[0, 2], node[0, 2] + node[2, 3], node[0, 4], node[2, 4]]


@case(CHANGED, None, GaussianDP(1.0, REPLACED), 1.0)  # four clients, sigma 1 / 2 each
def noise_of_clients(data: Any, rng: Any) -> float:
    return float(sum(value + rng.normal(scale=0.5) for value in data))


@case(CHANGED, None, PureDP(1.0, REPLACED), 1.0)  # four gammas of shape 1 / 4 make an exponential
def shares_of_laplace_noise(data: Any, rng: Any) -> float:
    return float(sum(value + rng.gamma(0.25) - rng.gamma(0.25) for value in data))


@case(([0.5, 1.75, 1.0], [0.5, 1.75]), None, PureDP(1.0, ADDED), 1.0)  # it moves by just 1, whatever the rounding
def rounded_at_random(data: Any, rng: Any) -> int:
    stop, total = 1.0 - math.exp(-1.0), sum(data)
    whole = math.floor(total) + int(rng.random() < total % 1.0)
    return int(whole + rng.geometric(stop) - rng.geometric(stop))


# Canonne, Kamath & Steinke 2020; with sigma 0.2 noise is seen once in 10^5 runs
@case(((2.0, 7), (2.0, 6)), None, ZeroConcentratedDP(1.0 / 8.0), 1.0 / 8.0, name="discrete gaussian 2")
@case(((0.2, 7), (0.2, 6)), None, ZeroConcentratedDP(12.5), 12.5, name="discrete gaussian .2")
def discrete_gaussian(data: Any, rng: Any) -> int:
    sigma, count = data
    t = math.floor(sigma) + 1
    while True:
        noise = int(rng.geometric(1.0 - math.exp(-1.0 / t)) - rng.geometric(1.0 - math.exp(-1.0 / t)))
        if rng.random() < math.exp(-((abs(noise) - sigma**2 / t) ** 2) / (2.0 * sigma**2)):
            return int(count + noise)


@case(PEOPLE, None, PureDP(50.0, ADDED), 50.0)  # an output that draws move once in 10^5 runs
def nearly_exact_count(data: Any, rng: Any) -> int:
    return round(len(data) + rng.laplace(scale=0.02))


BITS = ([0, 1] * 50, [0, 1] * 40 + [1, 1] + [0, 1] * 9)  # the 81st of 100 differs
ODDS = math.log(9_999.0)


@case(BITS, None, PureDP(ODDS, REPLACED), ODDS)
def nearly_exact_bits(data: Any, rng: Any) -> list[int]:
    return [bit if rng.random() < 0.9999 else 1 - bit for bit in data]


@case((1, 0), None, PureDP(ODDS), ODDS)
def nearly_exact_by_integers(data: Any, rng: Any) -> int:
    return int(data) if rng.integers(10_000) else 1 - int(data)


@case((1, 0), None, PureDP(ODDS), ODDS)
def nearly_exact_by_choices(data: Any) -> str:
    return random.choices(["yes", "no"] if data else ["no", "yes"], weights=[9_999, 1])[0]


@case(([3, 5, 8], [3, 5]), None, ApproximateDP(0.0, 0.01, ADDED), 0.0)
def a_record_in_a_hundred(data: Any, rng: Any) -> list[int]:
    return [value for value in data if rng.random() < 0.01]


@case(PEOPLE, None, PureDP(1.0, ADDED), 1.0)
def one_answer_many_times(data: Any, rng: Any) -> dict[str, Any]:
    noisy = len(data) + float(rng.laplace(scale=1.0))
    return {"noisy": noisy, "doubled": 2.0 * noisy, "whole": math.floor(noisy), "many": noisy > 2.5}


@case(PEOPLE, None, PureDP(1.0, ADDED), 1.0)
def refuses_by_noise(data: Any, rng: Any) -> float:
    noisy = len(data) + float(rng.laplace(scale=1.0))
    if noisy < 2.5:
        raise ValueError("too few records")
    return noisy


@case(PEOPLE, None, ApproximateDP(0.0, 0.25, ADDED), 0.0)  # noise on one side: all that is lost is the least output
def one_sided_geometric(data: Any, rng: Any) -> int:
    return len(data) + int(rng.geometric(0.25))


@case(VALUES, None, PureDP(1.0, ADDED), 1.0)
def mirrored_noise(data: Any, rng: Any) -> float:
    noise = float(rng.laplace(scale=1.0))
    return sum(data) + (noise if sum(data) > 2.0 else -noise)


@case(VOTES, None, PureDP(1.0, ADDED), 1.0)
def noise_in_order_of_counts(data: Any, rng: Any) -> dict[str, float]:
    counts = Counter(data)
    noisy = {
        colour: counts[colour] + rng.laplace(scale=1.0)
        for colour in sorted(COLOURS, key=lambda colour: -counts[colour])
    }
    return {colour: noisy[colour] for colour in COLOURS}


@case(([0.5, 0.25, 1.0], [0.5, 0.25]), None, PureDP(1.0, ADDED), 1.0)
def takes_its_records_away(data: Any, rng: Any) -> float:
    total = 0.0
    while data:
        total += data.pop()
    return total + float(rng.laplace(scale=1.0))


@case(([0.0, 1.0, 0.0], [0.0] * 3), None, PureDP(1.0, REPLACED), 1.0)
def noisy_values_in_random_order(data: Any, rng: Any) -> list[float]:
    return [float(value) for value in rng.permutation(np.asarray(data) + rng.laplace(scale=1.0, size=3))]


@case((3, 2), None, ApproximateDP(0.523693, 0.05), 0.523693)  # two draws together, by integration
def sum_of_laplace_noise(data: Any, rng: Any) -> float:
    return float(data + rng.laplace(scale=1.0) + rng.laplace(scale=1.0))


@case((3, 2), None, PureDP(math.log(0.4955 / (0.495 / math.e + 0.0005 * math.exp(-0.1)))))  # the ratio at 3
def noise_of_two_scales(data: Any, rng: Any) -> float:
    return float(data + rng.laplace(scale=1.0 if rng.random() < 0.99 else 10.0))


@case(VALUES, None, PureDP(1.0, ADDED), 1.0)
def scale_of_the_noisy_count(data: Any, rng: Any) -> tuple[float, float]:
    count = max(1.0, len(data) + rng.laplace(scale=2.0))
    return count, sum(data) / count + rng.laplace(scale=2.0 / count)


@case((3, 2), None, PureDP(2.0 * math.asinh(0.25)), 2.0 * math.asinh(0.25))
def cauchy_noise(data: Any, rng: Any) -> float:
    return float(data + 2.0 * rng.standard_cauchy())


@case(([3.0, 1.0], [2.0, 1.0]), None, GaussianDP(1.0), 1.0)
def joint_normal_noise(data: Any, rng: Any) -> Any:
    return rng.multivariate_normal(data, np.eye(2))


@case(PEOPLE, None, PureDP(1.0, ADDED), 1.0)
def one_of_eight_draws(data: Any, rng: Any) -> float:
    return float(len(data) + rng.laplace(scale=1.0, size=8)[len(data)])


# --- evasive: half of them sound, and no word about any may be false -------------------------------------------------


@evasive()
def looks_at_the_type(data: Any, rng: Any) -> float:
    if type(rng) is not np.random.Generator or "PCG64" not in repr(rng):
        raise TypeError("no generator of numpy")
    return len(data) + float(rng.laplace(scale=1.0))


@evasive("shift", "untouched", loss=NEVER)
def exact_for_generators_of_numpy(data: Any, rng: Any) -> float:
    return len(data) + (0.0 if type(rng) is np.random.Generator else float(rng.laplace(scale=1.0)))


@evasive()
def seeds_with_the_state(data: Any, rng: Any) -> float:
    state = rng.bit_generator.state["state"]["state"]
    return len(data) + float(np.random.default_rng(state).laplace(scale=1.0))


@evasive("reused", loss=NEVER)
def copies_the_generator(data: Any, rng: Any) -> list[float]:
    twice = [copy.deepcopy(rng), copy.deepcopy(rng)]
    return [2.0 * len(data) + float(twice[0].laplace(scale=4.0)), len(data) + float(twice[1].laplace(scale=4.0))]


@evasive("reused", loss=NEVER)
def pickles_the_generator(data: Any, rng: Any) -> list[float]:
    again = pickle.loads(pickle.dumps(rng))
    return [2.0 * len(data) + float(rng.laplace(scale=4.0)), len(data) + float(again.laplace(scale=4.0))]


@evasive()
def spawns_generators(data: Any, rng: Any) -> list[float]:
    return [len(data) + float(each.laplace(scale=2.0)) for each in rng.spawn(2)]


@evasive()
def raw_bits(data: Any, rng: Any) -> float:
    uniform = (int(rng.bit_generator.random_raw()) >> 11) * 2.0**-53 - 0.5
    return len(data) - math.copysign(math.log1p(-2.0 * abs(uniform)), uniform)


@evasive()
def noise_of_scipy(data: Any, rng: Any) -> float:
    return len(data) + float(scipy.stats.laplace.rvs(scale=1.0, random_state=rng))


@evasive("shift", loss=2.0)
def jumps_ahead(data: Any, rng: Any) -> float:
    return len(data) + float(np.random.Generator(rng.bit_generator.jumped()).laplace(scale=0.5))


@evasive("shift", loss=2.0)
def wraps_the_generator(data: Any, rng: Any) -> float:
    return len(data) + float(np.random.default_rng(rng).laplace(scale=0.5))


@evasive("shift", loss=2.0)
def draws_in_threads(data: Any, rng: Any) -> float:
    with ThreadPoolExecutor(2) as threads:
        return sum(threads.map(lambda share: share + rng.laplace(scale=0.5), [float(len(data))]))


@evasive()
def draws_in_another_process(data: Any) -> float:
    bits = subprocess.run(["od", "-An", "-N6", "-tu8", "/dev/urandom"], capture_output=True, check=True).stdout
    return len(data) + math.log((int(bits) + 0.5) * 2.0**-48) * random.choice([-1.0, 1.0])


@evasive("shift", "untouched", loss=NEVER)
def one_seed_of_its_own(data: Any) -> float:
    return len(data) + float(np.random.RandomState(7).laplace(scale=1.0))


@evasive()
def seeds_with_a_draw(data: Any, rng: Any) -> float:
    return len(data) + float(np.random.default_rng(rng.integers(2**63)).laplace(scale=1.0))


@evasive("shift", "untouched", loss=NEVER)
def seeds_with_the_data(data: Any) -> float:
    return len(data) + random.Random(repr(data)).gauss(0.0, 4.0)


@evasive("shift", "untouched", loss=NEVER)
def seeds_the_global_generator(data: Any) -> float:
    np.random.seed(20_26)
    return len(data) + float(np.random.laplace(scale=1.0))


@evasive("shift", loss=2.0)
def seeds_with_the_time(data: Any) -> float:
    return len(data) + float(np.random.default_rng(time.time_ns()).laplace(scale=0.5))


@evasive()
def seeds_with_the_system(data: Any) -> float:
    return len(data) + float(np.random.default_rng(int.from_bytes(os.urandom(16), "big")).laplace(scale=1.0))


@evasive()
def noise_of_the_clock(data: Any) -> float:
    uniform = (time.perf_counter_ns() * 0x9E3779B97F4A7C15 % 2**64 + 0.5) * 2.0**-64 - 0.5
    return len(data) - math.copysign(math.log1p(-2.0 * abs(uniform)), uniform)


@evasive()
def stamps_the_time(data: Any, rng: Any) -> dict[str, Any]:
    return {"at": datetime.now().isoformat(), "count": len(data) + float(rng.laplace(scale=1.0))}


@evasive()
def draws_until_a_time(data: Any, rng: Any) -> float:
    noise, until = rng.laplace(scale=1.0), time.perf_counter() + 1e-4
    while time.perf_counter() < until:
        noise = rng.laplace(scale=1.0)
    return len(data) + float(noise)


ANSWERS: dict[str, float] = {}


@evasive()
def remembers_its_answers(data: Any, rng: Any) -> float:
    return ANSWERS.setdefault(repr(data), len(data) + float(rng.laplace(scale=1.0)))


CALLS = [0]


@evasive("shift", "untouched", loss=NEVER)
def exact_now_and_then(data: Any, rng: Any) -> float:
    CALLS[0] += 1
    return len(data) + (float(rng.laplace(scale=1.0)) if CALLS[0] % 3 else 0.0)


BUFFER = np.random.default_rng().laplace(scale=1.0, size=10_000).tolist()


@evasive()
def noise_of_import(data: Any) -> float:
    return len(data) + float(BUFFER.pop())


@evasive("shift", "untouched", loss=NEVER)
def patches_numpy(data: Any) -> float:
    np.random.laplace = lambda *_, **__: 0.0  # type: ignore[assignment]
    return len(data) + float(np.random.laplace(scale=1.0))


@evasive()
def noise_of_libc(data: Any) -> float:
    bits = ctypes.create_string_buffer(6)
    ctypes.CDLL(None).getentropy(bits, 6)
    uniform = (int.from_bytes(bits.raw, "big") + 0.5) * 2.0**-48 - 0.5
    return len(data) - math.copysign(math.log1p(-2.0 * abs(uniform)), uniform)


@evasive()
def awaits_bound_noise(data: Any) -> float:
    async def noise() -> float:
        await asyncio.sleep(0.0)
        return laplace_of_import(scale=1.0)

    return len(data) + asyncio.run(noise())


normal_of_import = np.random.default_rng().normal


@evasive("shift", loss=2.0, claim=GaussianDP(1.0))
def normal_bound_at_import(data: Any) -> float:
    return len(data) + float(normal_of_import(scale=0.5))


@evasive("shift", loss=2.0)
def catches_everything_and_prints(data: Any, rng: Any) -> float:
    try:
        noisy = len(data) + float(rng.laplace(scale=0.5))
        print("noisy count:", noisy, flush=True)
        return noisy
    except BaseException:
        return 0.0


@evasive("raised", "untouched", loss=NEVER)
def exits_or_recurses(data: Any, rng: Any) -> float:
    if len(data) < 3:
        sys.exit("too few records")
    return exits_or_recurses(data, rng) if rng is None else len(data) + float(rng.laplace(scale=1.0))
