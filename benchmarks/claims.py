"""Yes or no: what brackets say of claims about small mechanisms, in the manner of DPriv-Bench.

DPriv-Bench asks language models whether a mechanism has a guarantee, in six topics. The claims here are of its kinds,
and written anew: the textbook's, and those that are off by a constant, a sensitivity, a sign, or what is told beside.
A line says why each is true or not. `python -m benchmarks claims` prints every verdict, the score of each topic, and
ends with status 1 after a verdict against the truth.
"""

# ruff: noqa: N803

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.forms import BREAKS, KEEPS, RUNS, Form, decide
from benchmarks.tables import print_table
from dpaudit import ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP
from dpaudit.claims import Claim

LAPLACE, AS_GDP, AS_ZCDP = "Laplace", "Gaussian as GDP", "Gaussian as zCDP"
EXPONENTIAL, NOISY_MAX, FLIP = "exponential mechanism", "Laplace noisy max", "permute-and-flip"
TOPICS = (LAPLACE, AS_GDP, AS_ZCDP, EXPONENTIAL, NOISY_MAX, FLIP)
CLAIMS: list[Form] = []


class About(NamedTuple):
    """A mechanism with the neighbours that its claims are about, and a pair of these."""

    function: Callable[..., Any]
    adjacency: str
    pair: Any


def _ask(topic: str, truth: str, about: About, claim: Claim | float, why: str, parameters: dict[str, Any]) -> None:
    at = ", ".join(f"{name} = {value:g}" for name, value in parameters.items())
    said = f"epsilon {claim:g}" if not isinstance(claim, Claim) else str(claim).replace(", relation=None", "")
    words = f"{about.function.__name__.replace('_', ' ')}, {about.adjacency}, {at}: {said}"
    CLAIMS.append(Form(words, about.function, claim, about.adjacency, parameters, topic, about.pair, None, truth, why))


def yes(topic: str, about: About, claim: Claim | float, why: str, **parameters: float) -> None:
    """A claim that holds."""
    _ask(topic, KEEPS, about, claim, why, parameters)


def no(topic: str, about: About, claim: Claim | float, why: str, **parameters: float) -> None:
    """A claim that does not."""
    _ask(topic, BREAKS, about, claim, why, parameters)


ONE, UP = ([1, 0, 2], [0, 0, 2]), ([1, 1, 1], [0, 0, 0])
FAR, RISES = ([0, 3], [1, 2]), ([0, 3], [1, 3])


# --- Laplace noise --------------------------------------------------------------------------------------------


def count(q, rng, b):
    return q + rng.laplace(scale=b)


def count_times(q, rng, k, b):
    return k * q + rng.laplace(scale=b)


def after_noise_times(q, rng, k, b):
    return k * (q + rng.laplace(scale=b))


def counts(q, rng, b):
    return np.array(q) + rng.laplace(scale=b, size=len(q))


def two_of_one(q, rng, b, c):
    return q + rng.laplace(scale=b), q + rng.laplace(scale=c)


def mean_of_two(q, rng, b):
    return q + (rng.laplace(scale=b) + rng.laplace(scale=b)) / 2


def sum_of_two(q, rng, b):
    return q + rng.laplace(scale=b) + rng.laplace(scale=b)


def rounded(q, rng, b):
    return round(q + rng.laplace(scale=b))


def positive_part(q, rng, b):
    return max(0, q + rng.laplace(scale=b))


def noise_of_positive_part(q, rng, b):
    return q + max(0, rng.laplace(scale=b))


def sign(q, rng, b):
    return q + rng.laplace(scale=b) > 0


def product(q, rng, b):
    return q * rng.laplace(scale=b)


def average(q, rng, b):
    return sum(q) / len(q) + rng.laplace(scale=b)


def half_the_time(q, rng, b):
    if rng.random() < 0.5:
        return None
    return q + rng.laplace(scale=b)


def count_and_noise(q, rng, b):
    noise = rng.laplace(scale=b)
    return q + noise, noise > 0


COUNT = About(count, "all-differ", (10, 9))
SCALED = About(count_times, "all-differ", (10, 9))
COUNTS, ALL = About(counts, "one-differs", ONE), About(counts, "all-differ", UP)
TWO = About(two_of_one, "all-differ", (10, 9))
why = "1 / b"
yes(LAPLACE, COUNT, 1.0, why, b=1.0)
yes(LAPLACE, COUNT, 0.5, why, b=2.0)
yes(LAPLACE, COUNT, 0.5, "weaker than 1 / b", b=4.0)
no(LAPLACE, COUNT, 0.5, why, b=1.0)
no(LAPLACE, COUNT, 2.0, "b = 1 / epsilon^2 at epsilon = 2 gives 4", b=0.25)
yes(LAPLACE, SCALED, 3.0, "k / b", k=3.0, b=1.0)
no(LAPLACE, SCALED, 2.0, "k / b", k=3.0, b=1.0)
yes(LAPLACE, About(after_noise_times, "all-differ", (10, 9)), 1.0, "what is done afterwards is free", k=3.0, b=1.0)
yes(LAPLACE, COUNTS, 1.0, "one entry moves", b=1.0)
yes(LAPLACE, About(counts, "one-differs", ONE), 0.25, "one entry moves", b=4.0)
no(LAPLACE, ALL, 2.0, "three entries move: the L1 norm is 3, the L2 norm below 2", b=1.0)
no(LAPLACE, About(counts, "all-differ", UP), 1.0, "three entries move", b=1.0)
yes(LAPLACE, TWO, 1.0, "1/2 + 1/2", b=2.0, c=2.0)
yes(LAPLACE, TWO, 1.0, "3/4 + 1/4", b=4 / 3 + 1e-9, c=4.0)
no(LAPLACE, TWO, 1.0, "1 + 1/2: the larger is not the sum", b=1.0, c=2.0)
no(LAPLACE, About(mean_of_two, "all-differ", (10, 9)), 1.0, "noise falls as e^(-2x): 2 in the limit", b=1.0)
yes(LAPLACE, About(mean_of_two, "all-differ", (10, 9)), 2.0, "a sum of halves: one is enough", b=1.0)
yes(LAPLACE, About(sum_of_two, "all-differ", (10, 9)), 1.0, "more noise after the first", b=1.0)
yes(LAPLACE, About(rounded, "all-differ", (10, 9)), 1.0, "what is done afterwards is free", b=1.0)
yes(LAPLACE, About(positive_part, "all-differ", (1, 0)), 1.0, "what is done afterwards is free", b=1.0)
no(LAPLACE, About(noise_of_positive_part, "all-differ", (10, 9)), 3.0, "half the time exact", b=1.0)
yes(LAPLACE, About(sign, "all-differ", (0, 1)), 1.0, "what is done afterwards is free", b=1.0)
no(LAPLACE, About(sign, "all-differ", (-1, 0)), 0.5, "in the limit 1, at 0 already 1", b=1.0)
no(LAPLACE, About(product, "all-differ", (1, 0)), 1.0, "0 stays 0", b=1.0)
yes(LAPLACE, About(average, "one-differs", ONE), 1.0, "1 / n at most 1", b=1.0)
no(LAPLACE, About(average, "all-differ", UP), 1.0, "all n move, and so does the mean by 1", b=0.5)
yes(LAPLACE, About(half_the_time, "all-differ", (10, 9)), 1.0, "a coin that is public", b=1.0)
no(LAPLACE, About(half_the_time, "all-differ", (10, 9)), 0.7, "the coin is seen, so it amplifies nothing", b=1.0)
no(
    LAPLACE,
    About(count_and_noise, "all-differ", (10, 9)),
    1.0,
    "the sign of the noise: 9.5 by a negative one is of 10 alone",
    b=1.0,
)
yes(LAPLACE, COUNT, ApproximateDP(0.5, 0.2213), "1 - e^((0.5 - 1) / 2) = 0.2212", b=1.0)
no(LAPLACE, COUNT, ApproximateDP(0.5, 0.15), "1 - e^((0.5 - 1) / 2) = 0.2212", b=1.0)
yes(LAPLACE, COUNT, ZeroConcentratedDP(0.5), "epsilon^2 / 2", b=1.0)
yes(LAPLACE, COUNT, ZeroConcentratedDP(0.37), "epsilon + e^-epsilon - 1 = 0.368", b=1.0)
yes(LAPLACE, COUNT, GaussianDP(1.25), "epsilon = 1 gives twice the quantile of e / (1 + e), 1.2318", b=1.0)
no(LAPLACE, COUNT, GaussianDP(0.5), "its total variation is 0.197, of Laplace noise 0.393", b=1.0)


# --- Gaussian noise -------------------------------------------------------------------------------------------


def normal(q, rng, sigma):
    return q + rng.normal(0, sigma)


def normal_of_variance(q, rng, variance):
    return q + rng.normal(0, math.sqrt(variance))


def normal_times(q, rng, k, sigma):
    return k * q + rng.normal(0, sigma)


def normals(q, rng, sigma):
    return np.array(q) + rng.normal(0, sigma, size=len(q))


def two_normals(q, rng, sigma, tau):
    return q + rng.normal(0, sigma), q + rng.normal(0, tau)


def mean_of_normals(q, rng, sigma, T):
    return sum(q + rng.normal(0, sigma) for _ in range(T)) / T


def repeated(q, rng, sigma, T):
    return [q + rng.normal(0, sigma) for _ in range(T)]


def noise_twice(q, rng, sigma):
    noise = rng.normal(0, sigma)
    return q + noise, 2 * q - noise


def doubled_noise(q, rng, sigma):
    noise = rng.normal(0, sigma)
    return q + noise + noise


def clamped(q, rng, sigma):
    return min(10, max(0, q + rng.normal(0, sigma)))


def absolute_noise(q, rng, sigma):
    return q + abs(rng.normal(0, sigma))


def normal_or_nothing(q, rng, sigma):
    noisy = q + rng.normal(0, sigma)
    return noisy if noisy > 3 else None


def tell_if_large(q, rng, sigma):
    return q + rng.normal(0, sigma) if q > 9.5 else None


def sum_of_squares(q, rng, sigma):
    return q * q + rng.normal(0, sigma)


NORMAL = About(normal, "all-differ", (10, 9))
VARIANCE = About(normal_of_variance, "all-differ", (10, 9))
NORMAL_TIMES = About(normal_times, "all-differ", (10, 9))
NORMALS, ALL_NORMALS = About(normals, "one-differs", ONE), About(normals, "all-differ", ([1] * 4, [0] * 4))
NORMAL_TWICE = About(two_normals, "all-differ", (10, 9))
AVERAGED, REPEATED = About(mean_of_normals, "all-differ", (10, 9)), About(repeated, "all-differ", (10, 9))
SAME, DOUBLED = About(noise_twice, "all-differ", (10, 9)), About(doubled_noise, "all-differ", (10, 9))
CLAMPED = About(clamped, "all-differ", (5, 4))
ABSOLUTE = About(absolute_noise, "all-differ", (10, 9))
NOTHING, LARGE = About(normal_or_nothing, "all-differ", (4, 3)), About(tell_if_large, "all-differ", (10, 9))
SQUARES = About(sum_of_squares, "all-differ", (10, 9))

yes(AS_GDP, NORMAL, GaussianDP(0.5), "1 / sigma", sigma=2.0)
yes(AS_GDP, NORMAL, GaussianDP(0.5), "weaker than 1 / sigma", sigma=4.0)
no(AS_GDP, NORMAL, GaussianDP(0.5), "1 / sigma", sigma=1.0)
no(AS_GDP, NORMAL, GaussianDP(0.25), "1 / sigma, not 1 / sigma^2", sigma=2.0)
yes(AS_GDP, VARIANCE, GaussianDP(0.5), "1 / sqrt(variance)", variance=4.0)
no(AS_GDP, VARIANCE, GaussianDP(0.25), "1 / sqrt(variance)", variance=4.0)
yes(AS_GDP, NORMAL_TIMES, GaussianDP(1.5), "k / sigma", k=3.0, sigma=2.0)
no(AS_GDP, NORMAL_TIMES, GaussianDP(0.9), "k / sigma, not sqrt(k) / sigma", k=3.0, sigma=2.0)
yes(AS_GDP, NORMALS, GaussianDP(0.5), "one entry moves", sigma=2.0)
no(AS_GDP, ALL_NORMALS, GaussianDP(0.5), "the L2 norm of four is 2", sigma=2.0)
yes(AS_GDP, NORMAL_TWICE, GaussianDP(0.7072), "sqrt(1/4 + 1/4)", sigma=2.0, tau=2.0)
yes(AS_GDP, NORMAL_TWICE, GaussianDP(1.0), "weaker than the root of the squares", sigma=2.0, tau=2.0)
no(AS_GDP, NORMAL_TWICE, GaussianDP(0.5), "the larger is not the root of the squares", sigma=2.0, tau=2.0)
yes(AS_GDP, AVERAGED, GaussianDP(0.5), "the mean of 4 has noise sigma / 2", sigma=4.0, T=4)
no(AS_GDP, AVERAGED, GaussianDP(0.25), "the mean of 4 has noise sigma / 2", sigma=4.0, T=4)
yes(AS_GDP, REPEATED, GaussianDP(1.0), "sqrt(16) / sigma", sigma=4.0, T=16)
no(AS_GDP, REPEATED, GaussianDP(0.5), "sqrt(16) / sigma", sigma=4.0, T=16)
no(AS_GDP, SAME, GaussianDP(1.0), "the sum is 3 q", sigma=2.0)
yes(AS_GDP, DOUBLED, GaussianDP(0.25), "2 sigma", sigma=2.0)
no(AS_GDP, DOUBLED, GaussianDP(0.15), "2 sigma, not 4 sigma", sigma=2.0)
yes(AS_GDP, CLAMPED, GaussianDP(0.5), "what is done afterwards is free", sigma=2.0)
no(AS_GDP, ABSOLUTE, GaussianDP(1.0), "below q nothing can be", sigma=2.0)
yes(AS_GDP, NOTHING, GaussianDP(0.5), "what is done afterwards is free", sigma=2.0)
no(AS_GDP, LARGE, GaussianDP(2.0), "an exact comparison", sigma=2.0)
no(AS_GDP, SQUARES, GaussianDP(0.5), "a square moves by 2 q + 1", sigma=2.0)
yes(AS_GDP, NORMAL, ApproximateDP(1.0, 0.007), "Phi(-1.75) - e Phi(-2.25) = 0.0068", sigma=2.0)
no(AS_GDP, NORMAL, ApproximateDP(0.5, 0.02), "Phi(-0.75) - e^0.5 Phi(-1.25) = 0.0524", sigma=2.0)
no(AS_GDP, NORMAL, 1.5, "the tails", sigma=1.0)

yes(AS_ZCDP, NORMAL, ZeroConcentratedDP(0.125), "1 / (2 sigma^2)", sigma=2.0)
yes(AS_ZCDP, NORMAL, ZeroConcentratedDP(0.25), "weaker than 1 / (2 sigma^2)", sigma=2.0)
no(AS_ZCDP, NORMAL, ZeroConcentratedDP(0.125), "1 / (2 sigma^2)", sigma=1.0)
no(AS_ZCDP, NORMAL, ZeroConcentratedDP(0.0625), "1 / (2 sigma^2), not 1 / (4 sigma^2)", sigma=2.0)
yes(AS_ZCDP, VARIANCE, ZeroConcentratedDP(0.125), "1 / (2 variance)", variance=4.0)
no(AS_ZCDP, VARIANCE, ZeroConcentratedDP(0.1), "1 / (2 variance), not 1 / (2 variance^2)", variance=2.0)
yes(AS_ZCDP, NORMAL_TIMES, ZeroConcentratedDP(0.5), "k^2 / (2 sigma^2)", k=2.0, sigma=2.0)
no(AS_ZCDP, NORMAL_TIMES, ZeroConcentratedDP(0.25), "k^2, not k", k=2.0, sigma=2.0)
yes(AS_ZCDP, NORMALS, ZeroConcentratedDP(0.125), "one entry moves", sigma=2.0)
no(AS_ZCDP, ALL_NORMALS, ZeroConcentratedDP(0.125), "the squared L2 norm is 4", sigma=2.0)
yes(AS_ZCDP, NORMAL_TWICE, ZeroConcentratedDP(0.25), "1/8 + 1/8", sigma=2.0, tau=2.0)
yes(AS_ZCDP, NORMAL_TWICE, ZeroConcentratedDP(0.625), "1/2 + 1/8", sigma=1.0, tau=2.0)
no(AS_ZCDP, NORMAL_TWICE, ZeroConcentratedDP(0.3), "1/2 alone is more", sigma=1.0, tau=2.0)
yes(AS_ZCDP, REPEATED, ZeroConcentratedDP(0.5), "16 / (2 sigma^2)", sigma=4.0, T=16)
no(AS_ZCDP, REPEATED, ZeroConcentratedDP(0.125), "rho adds up, not its root", sigma=4.0, T=16)
yes(AS_ZCDP, AVERAGED, ZeroConcentratedDP(0.125), "noise sigma / 2", sigma=4.0, T=4)
no(AS_ZCDP, SAME, ZeroConcentratedDP(1.0), "the sum is 3 q", sigma=2.0)
yes(AS_ZCDP, DOUBLED, ZeroConcentratedDP(0.03125), "2 sigma", sigma=2.0)
yes(AS_ZCDP, CLAMPED, ZeroConcentratedDP(0.125), "what is done afterwards is free", sigma=2.0)
no(AS_ZCDP, ABSOLUTE, ZeroConcentratedDP(2.0), "below q nothing can be", sigma=2.0)
no(AS_ZCDP, LARGE, ZeroConcentratedDP(2.0), "an exact comparison", sigma=2.0)
no(AS_ZCDP, SQUARES, ZeroConcentratedDP(1.0), "a square moves by 2 q + 1", sigma=2.0)
yes(AS_ZCDP, NORMAL, RenyiDP(4.0, 0.5), "order / (2 sigma^2)", sigma=2.0)
no(AS_ZCDP, NORMAL, RenyiDP(4.0, 0.125), "order / (2 sigma^2)", sigma=2.0)
yes(AS_ZCDP, NORMAL, ApproximateDP(2.53, 1e-5), "rho + 2 sqrt(rho ln(1 / delta)) = 2.524", sigma=2.0)
no(AS_ZCDP, NORMAL, ApproximateDP(0.125, 1e-5), "rho is no epsilon", sigma=2.0)


# --- the exponential mechanism --------------------------------------------------------------------------------


def exponential(q, rng, c):
    scores = np.array(q) - max(q)
    weights = np.exp(c * scores)
    return int(rng.choice(len(q), p=weights / weights.sum()))


def exponential_times(q, rng, k, c):
    scores = k * np.array(q) - max(k * x for x in q)
    weights = np.exp(c * scores)
    return int(rng.choice(len(q), p=weights / weights.sum()))


def exponential_prior(q, rng, c):
    weights = [math.exp(c * (x - max(q))) / (1 + i) for i, x in enumerate(q)]
    total = sum(weights)
    return int(rng.choice(len(q), p=[w / total for w in weights]))


def exponential_least(q, rng, c):
    weights = np.exp(-c * (np.array(q) - min(q)))
    return int(rng.choice(len(q), p=weights / weights.sum()))


def exponential_clipped(q, rng, c):
    scores = np.clip(q, 0, 2)
    weights = np.exp(c * (scores - 2))
    return int(rng.choice(len(q), p=weights / weights.sum()))


def exponential_score(q, rng, c):
    chosen = exponential(q, rng, c)
    return chosen, q[chosen]


def exponential_noisy_score(q, rng, c, b):
    chosen = exponential(q, rng, c)
    return chosen, q[chosen] + rng.laplace(scale=b)


def exponential_twice(q, rng, c):
    return exponential(q, rng, c), exponential(q, rng, c)


def exponential_linear(q, rng, c):
    weights = np.array([max(0, x) + c for x in q])
    return int(rng.choice(len(q), p=weights / weights.sum()))


def gumbel_max(q, rng, b):
    return int(np.argmax(np.array(q) + rng.gumbel(scale=b, size=len(q))))


EXP, EXP_MONOTONE = About(exponential, "all-differ", FAR), About(exponential, "monotone", RISES)
EXP_ONE, TIMES = About(exponential, "one-differs", RISES), About(exponential_times, "all-differ", FAR)
PRIOR, LEAST = About(exponential_prior, "all-differ", FAR), About(exponential_least, "all-differ", FAR)
CLIPPED = About(exponential_clipped, "all-differ", ([0, 2], [1, 1]))
SCORE = About(exponential_score, "all-differ", FAR)
NOISY_SCORE = About(exponential_noisy_score, "all-differ", FAR)
CHOSEN_TWICE = About(exponential_twice, "all-differ", FAR)
LINEAR = About(exponential_linear, "all-differ", ([1, 1, 1], [0, 2, 2]))
GUMBEL = About(gumbel_max, "all-differ", FAR)

yes(EXPONENTIAL, EXP, 1.0, "2 c", c=0.5)
yes(EXPONENTIAL, EXP, 2.0, "2 c", c=1.0)
no(EXPONENTIAL, EXP, 1.0, "2 c in the limit; of this pair 1.73", c=1.0)
yes(EXPONENTIAL, EXP_MONOTONE, 1.0, "c, where scores move alike", c=1.0)
no(EXPONENTIAL, EXP_MONOTONE, 0.5, "c in the limit", c=1.0)
yes(EXPONENTIAL, EXP_ONE, 1.0, "c, where one score moves: one way or the other", c=1.0)
no(EXPONENTIAL, EXP_ONE, 0.5, "c in the limit", c=1.0)
yes(EXPONENTIAL, TIMES, 2.0, "2 k c", k=2.0, c=0.5)
no(EXPONENTIAL, TIMES, 1.0, "2 k c in the limit", k=2.0, c=0.5)
yes(EXPONENTIAL, PRIOR, 1.0, "a public prior changes nothing", c=0.5)
no(EXPONENTIAL, PRIOR, 1.0, "2 c in the limit", c=1.0)
yes(EXPONENTIAL, LEAST, 1.0, "the least is the largest of the negative", c=0.5)
no(EXPONENTIAL, LEAST, 0.6, "2 c in the limit", c=0.5)
yes(EXPONENTIAL, CLIPPED, 1.0, "a clipped score moves no more", c=0.5)
no(EXPONENTIAL, CLIPPED, 0.5, "2 c in the limit; of this pair 0.62", c=0.5)
no(EXPONENTIAL, SCORE, 1.0, "the exact score", c=0.5)
yes(EXPONENTIAL, NOISY_SCORE, 2.0, "2 c + 1 / b", c=0.5, b=1.0)
no(EXPONENTIAL, NOISY_SCORE, 1.0, "2 c + 1 / b in the limit", c=0.5, b=0.5)
yes(EXPONENTIAL, CHOSEN_TWICE, 2.0, "twice 2 c", c=0.5)
no(EXPONENTIAL, CHOSEN_TWICE, 1.0, "twice 2 c in the limit", c=0.5)
no(EXPONENTIAL, LINEAR, 1.0, "weights are no exponentials: x + c from 1 to 0", c=0.1)
yes(EXPONENTIAL, GUMBEL, 1.0, "the exponential mechanism with c = 1 / b", b=2.0)
no(EXPONENTIAL, GUMBEL, 1.0, "2 / b in the limit", b=1.0)


# --- noisy max ------------------------------------------------------------------------------------------------


def noisy_max(q, rng, b):
    return int(np.argmax(np.array(q) + rng.laplace(scale=b, size=len(q))))


def noisy_min(q, rng, b):
    noisy = [x + rng.laplace(scale=b) for x in q]
    return noisy.index(min(noisy))


def noisy_max_value(q, rng, b):
    return max(x + rng.laplace(scale=b) for x in q)


def noisy_max_fresh(q, rng, b, c):
    noisy = [x + rng.laplace(scale=b) for x in q]
    winner = noisy.index(max(noisy))
    return winner, q[winner] + rng.laplace(scale=c)


def noisy_max_gap(q, rng, b):
    noisy = [x + rng.laplace(scale=b) for x in q]
    last, best = sorted(noisy)[-2:]
    return noisy.index(best), best - last


def noisy_max_order(q, rng, b):
    noisy = np.array(q) + rng.laplace(scale=b, size=len(q))
    return np.argsort(noisy).tolist()


def noisy_max_one_draw(q, rng, b):
    noise = rng.laplace(scale=b)
    return int(np.argmax([x + noise for x in q]))


def noisy_max_but_first(q, rng, b):
    noisy = [q[0], *[x + rng.laplace(scale=b) for x in q[1:]]]
    return noisy.index(max(noisy))


def noisy_max_exponential(q, rng, b):
    noisy = [x + rng.exponential(scale=b) for x in q]
    return noisy.index(max(noisy))


def noisy_max_normal(q, rng, sigma):
    noisy = [x + rng.normal(0, sigma) for x in q]
    return noisy.index(max(noisy))


def noisy_max_twice(q, rng, b):
    return noisy_max(q, rng, b), noisy_max(q, rng, b)


def noisy_max_of_large(q, rng, b):
    noisy = [x + rng.laplace(scale=b) if x > 0 else -100 for x in q]
    return noisy.index(max(noisy))


MAX, MAX_MONOTONE = About(noisy_max, "all-differ", FAR), About(noisy_max, "monotone", RISES)
MIN, VALUE = About(noisy_min, "all-differ", FAR), About(noisy_max_value, "all-differ", ([0] * 8, [1] * 8))
FRESH, GAP = About(noisy_max_fresh, "all-differ", FAR), About(noisy_max_gap, "all-differ", FAR)
ORDER = About(noisy_max_order, "all-differ", ([0, 2, 4], [1, 2, 3]))
ORDER_ONE = About(noisy_max_order, "one-differs", ([0, 2, 4], [1, 2, 4]))
ONE_DRAW = About(noisy_max_one_draw, "all-differ", ([2, 1], [1, 2]))
BUT_FIRST = About(noisy_max_but_first, "all-differ", ([0, 3, 3], [1, 2, 2]))
BY_EXPONENTIAL, BY_NORMAL = About(noisy_max_exponential, "all-differ", FAR), About(noisy_max_normal, "all-differ", FAR)
MAX_TWICE = About(noisy_max_twice, "all-differ", FAR)
OF_LARGE = About(noisy_max_of_large, "all-differ", ([0, 0], [0, 1]))

yes(NOISY_MAX, MAX, 1.0, "2 / b", b=2.0)
yes(NOISY_MAX, MAX, 2.0, "2 / b", b=1.0)
no(NOISY_MAX, MAX, 1.0, "2 / b in the limit", b=1.0)
no(NOISY_MAX, MAX, 0.5, "2 / b in the limit", b=2.0)
yes(NOISY_MAX, MAX_MONOTONE, 1.0, "1 / b, where answers move alike", b=1.0)
no(NOISY_MAX, MAX_MONOTONE, 0.5, "1 / b in the limit", b=1.0)
yes(NOISY_MAX, MIN, 1.0, "2 / b", b=2.0)
no(NOISY_MAX, MIN, 1.0, "2 / b in the limit", b=1.0)
no(NOISY_MAX, VALUE, 1.0, "n / b in the limit", b=2.0)
yes(NOISY_MAX, FRESH, 1.0, "2 / b + 1 / c", b=4.0, c=2.0)
no(NOISY_MAX, FRESH, 1.0, "2 / b + 1 / c in the limit", b=2.0, c=0.5)
yes(NOISY_MAX, GAP, 1.0, "2 / b: the gap is free", b=2.0)
no(NOISY_MAX, GAP, 1.0, "2 / b", b=1.0)
yes(NOISY_MAX, ORDER_ONE, 0.5, "what is done afterwards is free, and one answer moves", b=2.0)
no(NOISY_MAX, ORDER, 0.5, "a pair of them is noisy max, 2 / b", b=2.0)
no(NOISY_MAX, ONE_DRAW, 1.0, "one draw for all decides nothing", b=2.0)
no(NOISY_MAX, BUT_FIRST, 1.0, "2 / b for each of the others, which all fall below the first", b=2.0)
yes(NOISY_MAX, BY_EXPONENTIAL, 1.0, "2 / b", b=2.0)
no(NOISY_MAX, BY_EXPONENTIAL, 1.0, "2 / b", b=1.0)
no(NOISY_MAX, BY_NORMAL, 2.0, "the tails", sigma=0.7)
yes(NOISY_MAX, MAX_TWICE, 2.0, "twice 2 / b", b=2.0)
no(NOISY_MAX, MAX_TWICE, 1.0, "twice 2 / b in the limit", b=2.0)
no(NOISY_MAX, OF_LARGE, 1.0, "who takes part is exact", b=2.0)


# --- permute-and-flip -----------------------------------------------------------------------------------------


def permute_and_flip(q, rng, c):
    best = max(q)
    for i in rng.permutation(len(q)):
        if rng.random() <= math.exp(c * (q[i] - best)):
            return int(i)
    return None


def flip_in_order(q, rng, c):
    best = max(q)
    for i in range(len(q)):
        if rng.random() <= math.exp(c * (q[i] - best)):
            return i
    return None


def flip_with_replacement(q, rng, c):
    best = max(q)
    while True:
        i = int(rng.integers(len(q)))
        if rng.random() <= math.exp(c * (q[i] - best)):
            return i


def flip_once(q, rng, c):
    i = int(rng.integers(len(q)))
    return i if rng.random() <= math.exp(c * (q[i] - max(q))) else None


def flip_and_best(q, rng, c):
    return permute_and_flip(q, rng, c), max(q)


def flip_and_noisy(q, rng, c, b):
    chosen = permute_and_flip(q, rng, c)
    return chosen, q[chosen] + rng.laplace(scale=b)


def flip_and_rounds(q, rng, c):
    best = max(q)
    order = [int(i) for i in rng.permutation(len(q))]
    for tried, i in enumerate(order):
        if rng.random() <= math.exp(c * (q[i] - best)):
            return i, order[:tried]
    return None


def flip_twice(q, rng, c):
    return permute_and_flip(q, rng, c), permute_and_flip(q, rng, c)


def flip_the_least(q, rng, c):
    return permute_and_flip([-x for x in q], rng, c)


def flip_by_halves(q, rng, c):
    best = max(q)
    for i in rng.permutation(len(q)):
        if rng.random() <= 0.5 ** (c * (best - q[i])):
            return int(i)
    return None


FAR4 = ([0, 4], [1, 3])
PF, PF_MONOTONE = About(permute_and_flip, "all-differ", FAR4), About(permute_and_flip, "monotone", ([0, 3], [0, 4]))
IN_ORDER = About(flip_in_order, "all-differ", ([1, 0], [0, 1]))
REPLACED = About(flip_with_replacement, "all-differ", FAR4)
ONCE = About(flip_once, "all-differ", ([1, 1], [2, 1]))
AND_BEST, AND_NOISY = About(flip_and_best, "all-differ", FAR4), About(flip_and_noisy, "all-differ", FAR4)
ROUNDS, PF_TWICE = About(flip_and_rounds, "all-differ", ([1, 1], [2, 1])), About(flip_twice, "all-differ", FAR4)
THE_LEAST, HALVES = About(flip_the_least, "all-differ", FAR4), About(flip_by_halves, "all-differ", FAR4)

yes(FLIP, PF, 1.0, "2 c", c=0.5)
yes(FLIP, PF, 2.0, "2 c", c=1.0)
no(FLIP, PF, 1.0, "2 c: of two, the lesser has e^(-4 c) / 2 and e^(-2 c) / 2", c=1.0)
no(FLIP, PF, 0.5, "2 c", c=0.5)
yes(FLIP, PF_MONOTONE, 1.0, "c, where answers move alike", c=1.0)
no(FLIP, PF_MONOTONE, 0.5, "c", c=1.0)
no(FLIP, IN_ORDER, 1.0, "the best ends it: what is after it cannot be", c=0.5)
yes(FLIP, REPLACED, 1.0, "the exponential mechanism", c=0.5)
no(FLIP, REPLACED, 1.0, "the exponential mechanism at 2 c", c=1.0)
no(FLIP, ONCE, 1.0, "None cannot be where all are the best", c=0.5)
no(FLIP, AND_BEST, 1.0, "the exact largest", c=0.5)
yes(FLIP, AND_NOISY, 2.0, "2 c + 1 / b", c=0.5, b=1.0)
no(FLIP, AND_NOISY, 1.0, "2 c + 1 / b", c=0.5, b=0.5)
no(FLIP, ROUNDS, 1.0, "that a coin fell short shows that it was not the best", c=0.5)
yes(FLIP, PF_TWICE, 2.0, "twice 2 c", c=0.5)
no(FLIP, PF_TWICE, 1.0, "twice 2 c", c=0.5)
yes(FLIP, THE_LEAST, 1.0, "the negative moves as much", c=0.5)
no(FLIP, THE_LEAST, 0.5, "2 c", c=0.5)
yes(FLIP, HALVES, 1.0, "2 c ln 2 = 0.97", c=0.7)
no(FLIP, HALVES, 1.0, "2 c ln 2 = 1.39", c=1.0)


def run(quick: bool) -> None:
    """Prints every verdict and the score of each topic; `quick` takes every fifth claim, without audits."""
    claims = CLAIMS[::5] if quick else CLAIMS
    found = [(each, decide(each, 0 if quick else RUNS)) for each in claims]
    rows = []
    for each, said in found:
        mark = "AGAINST THE TRUTH" if said.contradicts(each) else ""
        truth = "yes" if each.truth == KEEPS else "no"
        rows.append((each.kind, each.name, truth, said.word, f"{said.seconds:.2f}", mark, each.why))
    print_table("Claims", ("topic", "claim", "truth", "verdict", "CPU s", "", "why"), rows)
    scores = []
    for topic in (*TOPICS, "all"):
        of = [(each, said) for each, said in found if topic in (each.kind, "all")]
        right = sum(said.word in ("proved", "refuted") and not said.contradicts(each) for each, said in of)
        left = sum(said.word in ("open", "error") for _, said in of)
        wrong = len(of) - right - left
        scores.append((topic, str(len(of)), str(right), str(left), str(wrong)))
    print_table("Claims decided", ("topic", "claims", "right", "left open", "wrong"), scores)
    if any(said.contradicts(each) for each, said in found):
        raise SystemExit(1)
