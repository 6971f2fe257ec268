"""Gaussian noise in all its claims, descent, and noise on whole numbers: drawn, or by samplers written out."""

# ruff: noqa: N803, PERF401

from __future__ import annotations

import math

import numpy as np

from benchmarks.forms.entry import Collection
from dpaudit import ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP

NOISE = Collection("noise")
keeps, breaks, twin = NOISE.keeps, NOISE.breaks, NOISE.twin
ADD, REPLACE = "add_or_remove_one", "replace_one"
AGES = ([23, 71, 40], [23, 40])
HALF = {"sigma": 2.0}


# --- Gaussian noise -------------------------------------------------------------------------------------------


def classical_vector(q, rng, eps, delta):
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / eps
    return np.asarray(q) + sigma * rng.standard_normal(len(q))


at = {"eps": 0.5, "delta": 1e-5}
form = keeps(classical_vector, ApproximateDP(0.5, 1e-5), "one-differs", at=at, pair=([1, 0], [0, 0]))
twin(form, "classical vector, one draw", "differences are exact", ("standard_normal(len(q))", "standard_normal()"))


def analytic(q, rng, sigma):
    return q + rng.normal(loc=0.0, scale=sigma)


why = "exact: sigma = 3.73063 at (1, 1e-5), where the classical formula wants 4.84"
form = keeps(analytic, ApproximateDP(1.0, 1e-5), "all-differ", at={"sigma": 3.7307}, pair=(10, 9), why=why)
twin(form, "analytic of 1.87", "half of sigma", at={"sigma": 1.87})
keeps(
    analytic,
    ApproximateDP(4.0, 1e-5),
    "all-differ",
    at={"sigma": 1.09},
    pair=(10, 9),
    name="analytic at 4",
    why="exact: sigma = 1.08116, and no classical formula",
)
keeps(analytic, ZeroConcentratedDP(0.125), "all-differ", at=HALF, pair=(10, 9), name="gaussian of rho")
keeps(analytic, RenyiDP(8.0, 1.0), "all-differ", at=HALF, pair=(10, 9), name="gaussian of order 8")
keeps(
    analytic,
    ApproximateDP(2.53, 1e-5),
    "all-differ",
    at=HALF,
    pair=(10, 9),
    name="gaussian by way of rho",
    why="rho + 2 sqrt(rho ln(1 / delta)) = 2.5243",
)
twin(form, "gaussian of a smaller rho", "1 / 8", claim=ZeroConcentratedDP(0.0625), at=HALF)
twin(form, "gaussian of a pure claim", "the tails", claim=1.0, at=HALF)


def several_gaussians(q, rng, sigma, T):
    answers = []
    for _ in range(T):
        answers.append(q + rng.normal(0, sigma))
    return sum(answers) / T, answers


at = {"sigma": 4.0, "T": 4}
form = keeps(several_gaussians, GaussianDP(0.5), "all-differ", at=at, pair=(10, 9))
keeps(several_gaussians, ZeroConcentratedDP(0.125), "all-differ", at=at, pair=(10, 9), name="several gaussians of rho")
keeps(several_gaussians, RenyiDP(8.0, 1.0), "all-differ", at=at, pair=(10, 9), name="several gaussians of order 8")
keeps(several_gaussians, ApproximateDP(3.0, 1e-5), "all-differ", at=at, pair=(10, 9), name="several gaussians of delta")
twin(form, "several gaussians as one", "sqrt(4) / 4", claim=GaussianDP(0.25))


def sum_and_histogram(rows, rng, mu_sum, mu_counts, cap, bins):
    total = sum(min(max(x, 0.0), cap) for x in rows) + rng.normal(scale=cap / mu_sum)
    counts = np.zeros(bins)
    for x in rows:
        counts[min(max(math.floor(x), 0), bins - 1)] += 1
    return total, counts + rng.normal(scale=1 / mu_counts, size=bins)


at = {"mu_sum": 0.375, "mu_counts": 0.5, "cap": 3.0, "bins": 3}
form = keeps(
    sum_and_histogram,
    GaussianDP(0.6251),
    ADD,
    at=at,
    pair=([1.5, 2.5], [1.5]),
    records="a number",
    why="sqrt(0.375^2 + 0.5^2) = 0.625",
)
twin(
    form,
    "sum and histogram, replaced",
    "two counts, and the sum by its bound",
    adjacency=REPLACE,
    pair=([0.0, 1.5], [9.0, 1.5]),
)


def gaussian_then_laplace(q, rng, eps, delta):
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / eps
    rough = q + rng.normal(0, sigma)
    fine = q + rng.laplace(0, 1 / eps)
    return max(rough, fine), min(rough, fine)


at = {"eps": 0.5, "delta": 1e-5}
keeps(gaussian_then_laplace, ApproximateDP(1.0, 1e-5), "all-differ", at=at, pair=(10, 9))


def mean_vector(rows, rng, clip, sigma, size):
    total = np.zeros(size)
    for row in rows:
        v = np.asarray(row, dtype=float)
        norm = math.sqrt(float((v**2).sum()))
        if norm > clip:
            v = v * (clip / norm)
        total += v
    noisy = total + rng.normal(0, sigma * 2 * clip, size)
    return noisy / max(1, len(rows))


at = {"clip": 1.0, "sigma": 2.0, "size": 2}
VECTORS = ([(3.0, 4.0), (0.0, 0.5)], [(-3.0, -4.0), (0.0, 0.5)])
form = keeps(mean_vector, GaussianDP(0.5), REPLACE, at=at, pair=VECTORS, records="a vector of two numbers")
twin(form, "mean vector, added", "the divisor tells the length", adjacency=ADD, pair=([(3.0, 4.0)] * 2, [(3.0, 4.0)]))
twin(form, "mean vector of half the noise", "sensitivity is 2 clip", ("sigma * 2 * clip", "sigma * clip"))


def noisy_descent(rows, rng, steps, rate, clip, sigma):
    weights = np.zeros(2)
    for _ in range(steps):
        total = np.zeros(2)
        for x0, x1, y in rows:
            x = np.array([x0, x1])
            gradient = (x @ weights - y) * x
            total += gradient * min(1.0, clip / max(np.linalg.norm(gradient), 1e-12))
        total += rng.normal(0, sigma * clip, size=2)
        weights = weights - rate * total
    return weights


at = {"steps": 4, "rate": 0.1, "clip": 1.0, "sigma": 4.0}
POINTS = ([(1.0, 2.0, 9.0), (1.0, 0.0, 0.5)], [(1.0, 0.0, 0.5)])
form = keeps(
    noisy_descent,
    GaussianDP(0.5),
    ADD,
    at=at,
    pair=POINTS,
    records="a vector of three numbers",
    why="sqrt(4) / 4, and the clip keeps norms below 1 where a gradient is 0",
)
twin(
    form,
    "noisy descent without sigma",
    "mu = 2 where the other rows are none",
    ("sigma * clip", "clip"),
    pair=([(1.0, 2.0, 9.0)], []),
)
twin(
    form,
    "noisy descent, clip of coordinates",
    "sqrt(2) clip",
    (
        "total += gradient * min(1.0, clip / max(np.linalg.norm(gradient), 1e-12))",
        "total += np.clip(gradient, -clip, clip)",
    ),
    at={"sigma": 1.0, "steps": 1},
    claim=GaussianDP(1.0),
    pair=([(1.0, 1.0, 9.0)], []),
)


def losses_of_steps(rows, rng, steps, clip, sigma):
    history = []
    for step in range(1, steps + 1):
        clipped = [min(clip, max(-clip, x / step)) for x in rows]
        history.append(sum(clipped) + sigma * clip * rng.standard_normal())
    return history


form = keeps(
    losses_of_steps,
    ZeroConcentratedDP(0.125),
    ADD,
    at={"steps": 4, "clip": 1.0, "sigma": 4.0},
    pair=([9.0, 1.0], [1.0]),
    records="a number",
)
twin(form, "losses of steps, true last", "the last is exact", ("return history", "return [*history, sum(clipped)]"))


def gaussian_threshold(q, rng, sigma, T):
    released = [x + rng.normal(0, sigma) for x in q]
    return [i for i, y in enumerate(released) if y > T]


form = keeps(gaussian_threshold, GaussianDP(0.5), "one-differs", at={"sigma": 2.0, "T": 1.0}, pair=([1, 0], [0, 0]))
twin(
    form,
    "gaussian threshold with those above exact",
    "the answer, where it is above",
    ("return [i for", "return [(i, q[i]) for"),
)


# --- whole numbers --------------------------------------------------------------------------------------------


def geometric_count(rows, rng, eps):
    p = -math.expm1(-eps)
    return len(rows) + int(rng.geometric(p)) - int(rng.geometric(p))


form = keeps(geometric_count, "eps", ADD, pair=AGES, records="anything")
twin(form, "geometric count on one side", "less than the count cannot be", (" - int(rng.geometric(p))", ""))


def clamped_count(rows, rng, eps, most):
    noise = rng.geometric(1 - math.exp(-eps)) - rng.geometric(1 - math.exp(-eps))
    return int(np.clip(len(rows) + noise, 0, most))


form = keeps(clamped_count, "eps", ADD, at={"eps": 1.0, "most": 9}, pair=AGES, records="anything")
twin(form, "count clamped at the count", "at most the count itself", ("0, most)", "0, len(rows))"))


def fair_coins(rows, rng):
    noise = 0
    while rng.integers(2):
        noise += 1
    while rng.integers(2):
        noise -= 1
    return len(rows) + noise


form = keeps(fair_coins, 0.6931471805599454, ADD, at={}, pair=AGES, records="anything", why="ln 2, rounded up")
twin(
    form,
    "fair coins of three",
    "below the count a step is ln 4",
    ("while rng.integers(2):\n        noise -= 1", "while rng.random() < 0.25:\n        noise -= 1"),
)


def signed_geometric(count, rng, eps):
    while True:
        negative = rng.random() < 0.5
        size = 0
        while rng.random() < math.exp(-eps):
            size += 1
        if not (negative and size == 0):
            break
    return count - size if negative else count + size


form = keeps(signed_geometric, "eps", domain=(3, 4), pair=(3, 4))
twin(
    form,
    "signed geometric with two zeros",
    "0 is twice as likely: eps + ln 2",
    ("if not (negative and size == 0)", "if True"),
)


def _bernoulli_exp(gamma, rng):
    while gamma > 1:
        if not _bernoulli_exp(1, rng):
            return False
        gamma -= 1
    k = 1
    while rng.random() < gamma / k:
        k += 1
    return k % 2 == 1


def _discrete_laplace(t, rng):
    while True:
        u = int(rng.integers(t))
        if not _bernoulli_exp(u / t, rng):
            continue
        v = 0
        while _bernoulli_exp(1, rng):
            v += 1
        size = u + t * v
        negative = rng.integers(2) == 1
        if negative and size == 0:
            continue
        return -size if negative else size


def _discrete_gaussian(sigma, rng):
    t = math.floor(sigma) + 1
    while True:
        y = _discrete_laplace(t, rng)
        if _bernoulli_exp((abs(y) - sigma**2 / t) ** 2 / (2 * sigma**2), rng):
            return y


def discrete_laplace_count(rows, rng, t):
    return len(rows) + _discrete_laplace(t, rng)


form = keeps(discrete_laplace_count, "1/t", ADD, at={"t": 2}, pair=AGES, records="anything")
twin(form, "discrete laplace of a sum", "a row counts up to 3", ("len(rows)", "sum(rows)"), pair=([1, 3], [1]))


def discrete_gaussian_count(rows, rng, sigma):
    return len(rows) + _discrete_gaussian(sigma, rng)


form = keeps(discrete_gaussian_count, ZeroConcentratedDP(0.12500001), ADD, at=HALF, pair=AGES, records="anything")
keeps(
    discrete_gaussian_count,
    ZeroConcentratedDP(0.5),
    ADD,
    at={"sigma": 1.0},
    pair=AGES,
    records="anything",
    name="discrete gaussian count at 1",
)
twin(
    form,
    "discrete gaussian that is a laplace",
    "a discrete Laplace of 1: its divergence of order 1 is 0.46",
    ("_discrete_gaussian(sigma, rng)", "_discrete_laplace(1, rng)"),
)


def uniform_count(rows, rng, k):
    return len(rows) + rng.integers(-k, k + 1)


form = keeps(uniform_count, ApproximateDP(0.0, 0.0100), ADD, at={"k": 50}, pair=AGES, records="anything", why="1 / 101")
twin(form, "uniform count, pure", "the ends", claim=1.0)


def coin_flips(count, rng, flips):
    return count + int(sum(rng.integers(2) for _ in range(flips))) - flips // 2


why = "one end is of one count alone, with 1/256; inside, probabilities differ by a factor of 8 = e^2.08 at most"
form = keeps(coin_flips, ApproximateDP(2.1, 0.004), domain=(3, 4), at={"flips": 8}, pair=(3, 4), why=why)
twin(form, "coin flips at 2", "8 is above e^2: delta = 0.0063", claim=ApproximateDP(2.0, 0.004))


def rounded_by_chance(q, rng, eps):
    noise = rng.geometric(1 - math.exp(-eps)) - rng.geometric(1 - math.exp(-eps))
    return math.floor(q) + noise


form = keeps(rounded_by_chance, "eps", "all-differ", pair=(10, 9), name="floor and geometric")


def eight_bits(value, rng, eps):
    p = 1 / (1 + math.exp(eps / 2))
    return [int(i == value) ^ int(rng.random() < p) for i in range(8)]


form = keeps(eight_bits, "eps", domain=tuple(range(8)), pair=(0, 1))
twin(form, "eight bits, the first honest", "no coin for the first", ("range(8)]", "range(1, 8)] + [int(value == 0)]"))


def bloom(value, rng, p):
    bits = [1 if (i + value) % 4 == 0 else 0 for i in range(8)]
    return tuple(1 - bit if rng.random() < p else bit for bit in bits)


form = keeps(bloom, 4.395, at={"p": 0.25}, domain=(0, 1, 2, 3), pair=(0, 1), why="four bits differ: 4 ln 3 = 4.3944")
twin(form, "bloom as one bit", "four bits differ", claim=2.0)
