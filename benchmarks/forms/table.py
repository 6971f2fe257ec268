"""The 43 mechanisms of the first survey of the verifier, and twins of them that break."""

# ruff: noqa: N803

from __future__ import annotations

import math

import numpy as np

from benchmarks.forms.entry import Collection
from dpaudit import ApproximateDP, GaussianDP

TABLE = Collection("survey")
keeps, twin = TABLE.keeps, TABLE.twin
THREE, FOUR, FIVE = ([2, 1, 0], [1, 2, 0]), ([1, 1, 1, 1], [0, 0, 0, 2]), ([1, 1, 1, 1, 2], [2, 2, 2, 2, 1])


# --- noise on answers -----------------------------------------------------------------------------------------


def one_count(q, rng, eps):
    return q + rng.laplace(scale=1 / eps)


form = keeps(one_count, "eps", "all-differ", pair=(10, 9))
twin(form, "one count with half noise", "half the noise", ("1 / eps", "0.5 / eps"))


def noisy_vector(q, rng, eps):
    return q + rng.laplace(scale=1 / eps, size=len(q))


form = keeps(noisy_vector, "eps", "one-differs", pair=([1, 0], [0, 0]))
twin(form, "one draw for a vector", "differences of answers are exact", (", size=len(q)", ""), ("q +", "np.array(q) +"))
twin(form, "noisy vector all differ", "n answers move", adjacency="all-differ", pair=([1, 1, 1, 1], [0, 0, 0, 0]))


def noisy_list(q, rng, eps):
    return [x + rng.laplace(scale=1 / eps) for x in q]


keeps(noisy_list, "eps", "one-differs", pair=([1, 0], [0, 0]))


def noisy_dictionary(q, rng, eps):
    return {i: x + rng.laplace(scale=1 / eps) for i, x in enumerate(q)}


keeps(noisy_dictionary, "eps", "one-differs", pair=([1, 0], [0, 0]))


def noisy_table(counts, rng, eps):
    out = {}
    for key in counts:
        out[key] = counts[key] + rng.laplace(scale=1 / eps)
    return out


form = keeps(noisy_table, "eps", "one-differs", pair=({"a": 1, "b": 0}, {"a": 0, "b": 0}))
twin(
    form,
    "noisy table of the positive",
    "a key is left out where its count is exactly 0",
    ("    out[key] =", "    if counts[key] > 0:\n            out[key] ="),
)


def array_clipped_sum(rows, rng, eps, bound):
    return np.clip(rows, 0, bound).sum() + rng.laplace(scale=bound / eps)


form = keeps(
    array_clipped_sum,
    "eps",
    "add_or_remove_one",
    at={"eps": 1.0, "bound": 5.0},
    pair=([3.0, 9.0], [3.0]),
    records="a number",
)
twin(
    form, "array sum without clip", "no bound", ("np.clip(rows, 0, bound)", "np.array(rows)"), pair=([3.0, 99.0], [3.0])
)
twin(
    form,
    "array sum of a wider clip",
    "clips below at -bound: replaced, 2 bound",
    ("(rows, 0,", "(rows, -bound,"),
    adjacency="replace_one",
    pair=([3.0, 9.0], [3.0, -9.0]),
)


def loop_clipped_sum(rows, rng, eps, bound):
    total = 0
    for x in rows:
        if x > bound:
            x = bound
        if x < 0:
            x = 0
        total += x
    return total + rng.laplace(scale=bound / eps)


form = keeps(
    loop_clipped_sum,
    "eps",
    "add_or_remove_one",
    at={"eps": 1.0, "bound": 5.0},
    pair=([3.0, 9.0], [3.0]),
    records="a number",
)
twin(form, "loop sum clipped on one side", "no lower bound", ("x < 0", "x < -9 * bound"), pair=([3.0, -40.0], [3.0]))


def sum_of_answers(q, rng, eps):
    return sum(q) + rng.laplace(scale=1 / eps)


form = keeps(sum_of_answers, "eps", "one-differs", pair=([1, 0], [0, 0]))
twin(form, "sum of answers all differ", "the sum moves by n", adjacency="all-differ", pair=([1, 1, 1], [0, 0, 0]))


# --- the largest of noisy scores ------------------------------------------------------------------------------


def argmax_of_array(q, rng, eps):
    noisy = np.array(q) + rng.laplace(scale=2 / eps, size=len(q))
    return int(np.argmax(noisy))


form = keeps(argmax_of_array, "eps", "all-differ", pair=THREE)
twin(
    form,
    "argmax of array with its value",
    "the largest noisy value of n",
    ("int(np.argmax(noisy))", "noisy.max()"),
    pair=([0] * 8, [1] * 8),
)


def index_of_max(q, rng, eps):
    noisy = [x + rng.laplace(scale=2 / eps) for x in q]
    return noisy.index(max(noisy))


keeps(index_of_max, "eps", "all-differ", pair=THREE)


def max_by_key(q, rng, eps):
    noisy = [x + rng.laplace(scale=2 / eps) for x in q]
    return max(range(len(q)), key=lambda i: noisy[i])


form = keeps(max_by_key, "eps", "all-differ", pair=THREE)
twin(form, "max by the key without noise", "the exact winner", ("noisy[i])", "q[i])"), pair=([2, 1], [1, 2]))


def noisy_max_from_none(q, rng, eps):
    best = float("-inf")
    winner = None
    for i, x in enumerate(q):
        y = x + rng.laplace(scale=2 / eps)
        if y > best:
            best = y
            winner = i
    return winner


form = keeps(noisy_max_from_none, "eps", "all-differ", pair=THREE)
twin(
    form,
    "noisy max of one draw",
    "one draw for all",
    ("for i, x", "z = rng.laplace(scale=2 / eps)\n    for i, x"),
    ("y = x + rng.laplace(scale=2 / eps)", "y = x + z"),
    pair=([2, 1], [1, 2]),
)


def noisy_max_exponential(q, rng, eps):
    best = 0
    winner = 0
    for i, x in enumerate(q):
        y = x + rng.exponential(scale=2 / eps)
        if i == 0 or y > best:
            best = y
            winner = i
    return winner


keeps(noisy_max_exponential, "eps", "all-differ", pair=THREE)


def gumbel_list(q, rng, eps):
    noisy = [x + rng.gumbel(scale=2 / eps) for x in q]
    return noisy.index(max(noisy))


form = keeps(gumbel_list, "eps", "all-differ", pair=THREE)
twin(form, "gumbel of half the scale", "exponential mechanism at 2 eps", ("2 / eps", "1 / eps"), pair=([2, 0], [1, 1]))


def gumbel_array(q, rng, eps):
    return np.argmax(np.array(q) + rng.gumbel(scale=2 / eps, size=len(q)))


keeps(gumbel_array, "eps", "all-differ", pair=THREE)


def exponential_mechanism(q, rng, eps):
    scores = np.array(q) - max(q)
    weights = np.exp(eps * scores / 2)
    return rng.choice(len(q), p=weights / weights.sum())


form = keeps(exponential_mechanism, "eps", "all-differ", pair=THREE)
twin(
    form,
    "exponential mechanism that overflows",
    "1419 has a weight that a double holds, 1420 has none: it raises",
    (" - max(q)", ""),
    pair=([1419.0, 0.0], [1420.0, 0.0]),
)
twin(form, "exponential mechanism without the 2", "2 eps", (" / 2)", ")"), pair=([0, 3], [1, 2]))


# --- one person's answer --------------------------------------------------------------------------------------


def randomised_response(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit


form = keeps(randomised_response, 1.0986122886681098, at={}, domain=(0, 1), pair=(0, 1))
twin(form, "randomised response of 0.76", "ln(0.76 / 0.24) = 1.153", ("0.75", "0.76"))


def randomised_response_of_eps(bit, rng, eps):
    p = math.exp(eps) / (1 + math.exp(eps))
    if rng.random() < p:
        return bit
    return 1 - bit


form = keeps(randomised_response_of_eps, "eps", domain=(0, 1), pair=(0, 1))
twin(form, "randomised response that says how", "tells whether it flipped", ("return 1 - bit", "return 2 + bit"))


def rappor(value, rng, eps):
    bits = np.zeros(4, dtype=int)
    bits[value] = 1
    flips = rng.random(4) < 1 / (1 + np.exp(eps / 2))
    return np.where(flips, 1 - bits, bits)


form = keeps(rappor, "eps", domain=(0, 1, 2, 3), pair=(0, 1))
twin(form, "rappor without the 2", "two bits differ: 2 eps", ("eps / 2", "eps"))


def k_ary_response(value, rng, eps, k):
    p = math.exp(eps) / (math.exp(eps) + k - 1)
    if rng.random() < p:
        return value
    other = int(rng.integers(k - 1))
    return other if other < value else other + 1


form = keeps(k_ary_response, "eps", at={"eps": 1.0, "k": 3}, domain=(0, 1, 2), pair=(0, 1))
twin(form, "k-ary response with p of two", "p of two values", ("+ k - 1)", "+ 1)"))


def coin_geometric(count, rng, eps):
    p = 1 - math.exp(-eps)
    noise = 0
    while rng.random() >= p:
        noise += 1
    while rng.random() >= p:
        noise -= 1
    return count + noise


form = keeps(coin_geometric, "eps", domain=(3, 4), pair=(3, 4))
twin(form, "coin geometric on one side", "3 is possible of 3 alone", ("noise -= 1", "noise -= 0"))


def geometric_difference(q, rng, eps):
    p = 1 - math.exp(-eps)
    return int(q) + rng.geometric(p) - rng.geometric(p)


form = keeps(geometric_difference, "eps", "all-differ", pair=(10, 9), why="int moves by at most 1 where q does")
twin(form, "geometric difference on halves", "the fraction of q is seen", ("int(q)", "q"), pair=(0.5, 0.0))
twin(form, "geometric difference rounded", "round(0.5) = 0 and round(1.5) = 2", ("int(q)", "round(q)"), pair=(0.5, 1.5))


# --- the sparse vector technique ------------------------------------------------------------------------------


def above_threshold_return(q, rng, eps, T):
    t = T + rng.laplace(scale=2 / eps)
    for i, x in enumerate(q):
        if x + rng.laplace(scale=4 / eps) >= t:
            return i
    return None


form = keeps(above_threshold_return, "eps", "all-differ", at={"eps": 1.0, "T": 0.0}, pair=FIVE)
twin(
    form,
    "above an exact threshold",
    "no noise on the threshold: eps for every answer, and half at the end",
    ("T + rng.laplace(scale=2 / eps)", "T"),
    at={"eps": 2.0},
    pair=([0] * 6 + [1], [1] * 6 + [0]),
)


def above_threshold_break(q, rng, eps, T):
    t = T + rng.laplace(scale=2 / eps)
    out = []
    for x in q:
        if x + rng.laplace(scale=4 / eps) >= t:
            out.append(True)
            break
        out.append(False)
    return out


form = keeps(above_threshold_break, "eps", "all-differ", at={"eps": 1.0, "T": 0.0}, pair=FIVE)
twin(
    form,
    "above threshold without break",
    "goes on after the first",
    ("            break\n", ""),
    at={"eps": 2.0},
    pair=([0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0, 0]),
)


def sparse_redraw(q, rng, eps, c, T):
    t = T + rng.laplace(scale=2 * c / eps)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=4 * c / eps) >= t:
            out.append(True)
            count += 1
            t = T + rng.laplace(scale=2 * c / eps)
        else:
            out.append(False)
        if count >= c:
            break
    return out


TWO = {"eps": 1.0, "c": 2, "T": 0.0}
keeps(sparse_redraw, "eps", "all-differ", at=TWO, pair=FIVE)


def sparse_continue(q, rng, eps, c, T):
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    out = []
    for x in q:
        if count == c:
            break
        if x + rng.laplace(scale=4 * c / eps) < t:
            out.append(False)
            continue
        out.append(True)
        count += 1
    return out


form = keeps(sparse_continue, "eps", "all-differ", at=TWO, pair=FIVE)
twin(
    form,
    "sparse that tells the gap to T",
    "the noise of the threshold is known by the noisy answers",
    ("if x + rng.laplace(scale=4 * c / eps) < t:", "y = x + rng.laplace(scale=4 * c / eps)\n        if y < t:"),
    ("out.append(True)", "out.append(y - T)"),
    at={"eps": 2.0},
    pair=([0] * 12 + [0], [1] * 12 + [0]),
)


def sparse_of_thirds(q, rng, eps, c, T):
    t = T + rng.laplace(scale=2 / eps)
    remaining = 1.0
    out = []
    for x in q:
        if x + rng.laplace(scale=4 * c / eps) >= t:
            out.append(True)
            remaining -= 1 / c
        else:
            out.append(False)
        if remaining <= 0:
            break
    return out


form = keeps(sparse_of_thirds, "eps", "all-differ", at=TWO, pair=FIVE, name="sparse, remaining -= 1 / c")
twin(
    form,
    "sparse, remaining -= 1 / 3",
    "1 - 1/3 - 1/3 - 1/3 > 0 in doubles: a fourth answer, 7/6 eps in the limit",
    at={"c": 3},
    pair=([1] * 20 + [0] * 4, [0] * 20 + [1] * 4),
)


def numeric_sparse(q, rng, eps, c, T):
    t = T + rng.laplace(scale=3 / eps)
    count = 0
    out = []
    for x in q:
        if count < c:
            if x + rng.laplace(scale=6 * c / eps) >= t:
                out.append(x + rng.laplace(scale=3 * c / eps))
                count += 1
            else:
                out.append(None)
    return out


form = keeps(numeric_sparse, "eps", "all-differ", at=TWO, pair=FIVE)
twin(form, "numeric sparse, exact value", "the answer itself", ("x + rng.laplace(scale=3 * c / eps))", "x)"))


# --- Gaussian noise, and histograms with a threshold ----------------------------------------------------------


def gaussian(q, rng, eps, delta):
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / eps
    return q + rng.normal(scale=sigma)


SMALL = {"eps": 0.5, "delta": 1e-5}
form = keeps(gaussian, ApproximateDP(0.5, 1e-5), "all-differ", at=SMALL, pair=(10, 9))
twin(form, "gaussian times eps", "eps^2 of the noise", (") / eps", ") * eps"))


def gaussian_of_sigma(q, rng, sigma):
    return q + rng.normal(0, sigma)


form = keeps(gaussian_of_sigma, GaussianDP(0.5), "all-differ", at={"sigma": 2.0}, pair=(10, 9))
twin(form, "gaussian of half sigma", "mu = 1", ("0, sigma", "0, sigma / 2"))


def gaussian_vector(q, rng, sigma):
    return np.array(q) + rng.normal(0, sigma, size=len(q))


form = keeps(gaussian_vector, GaussianDP(0.5), "one-differs", at={"sigma": 2.0}, pair=([1, 0], [0, 0]))
twin(form, "gaussian vector all differ", "sqrt(4) / 2", adjacency="all-differ", pair=([1, 1, 1, 1], [0, 0, 0, 0]))


def stability_histogram(q, rng, eps, delta):
    threshold = 1 + math.log(1 / (2 * delta)) / eps
    out = []
    for i, x in enumerate(q):
        if x > 0:
            noisy = x + rng.laplace(scale=1 / eps)
            if noisy > threshold:
                out.append((i, noisy))
    return out


RARE = {"eps": 1.0, "delta": 1e-3}
form = keeps(stability_histogram, ApproximateDP(1.0, 1e-3), "one-differs", at=RARE, pair=([1, 9], [0, 9]))
twin(form, "stability histogram, threshold 1", "half the time", ("1 + math.log(1 / (2 * delta)) / eps", "1"))


def bounded_mean(rows, rng, eps, bound):
    total = sum(min(max(x, 0), bound) for x in rows) + rng.laplace(scale=2 * bound / eps)
    count = len(rows) + rng.laplace(scale=2 / eps)
    return total / max(1, count)


at = {"eps": 1.0, "bound": 5.0}
form = keeps(bounded_mean, "eps", "add_or_remove_one", at=at, pair=([3.0, 9.0], [3.0]), records="a number")
twin(
    form,
    "bounded mean of the exact count",
    "an exact count beside a noisy sum: also returned",
    ("total / max(1, count)", "total / max(1, count), len(rows)"),
)


# --- several releases -----------------------------------------------------------------------------------------


def two_counts(q, rng, eps):
    return q[0] + rng.laplace(scale=1 / eps), q[1] + rng.laplace(scale=1 / eps)


form = keeps(two_counts, "eps", "one-differs", pair=([1, 0], [0, 0]))
twin(form, "two counts of the first", "the first twice", ("q[1]", "q[0]"))


def running_totals(q, rng, eps, T):
    total = 0
    out = []
    for i, x in enumerate(q):
        if i < T:
            total += x
            out.append(total + rng.laplace(scale=T / eps))
    return out


form = keeps(running_totals, "eps", "one-differs", at={"eps": 1.0, "T": 3}, pair=([1, 0, 0], [0, 0, 0]))
twin(form, "running totals of a third", "T times eps", ("scale=T / eps", "scale=1 / eps"))


def two_level_tree(q, rng, eps, M):
    out = []
    block = 0
    for i, x in enumerate(q):
        block += x
        out.append(x + rng.laplace(scale=1 / eps))
        if (i + 1) % M == 0:
            out.append(block + rng.laplace(scale=1 / eps))
            block = 0
    return out


pair = ([1, 0, 0, 0], [0, 0, 0, 0])
form = keeps(two_level_tree, "2*eps", "one-differs", at={"eps": 1.0, "M": 2}, pair=pair)
twin(form, "two level tree of running blocks", "a block counts in each later one", ("            block = 0\n", ""))


def _laplace(rng, scale):
    return rng.laplace(loc=0.0, scale=scale)


def by_helper(q, rng, eps):
    return q + _laplace(rng, 1 / eps)


form = keeps(by_helper, "eps", "all-differ", pair=(10, 9))
twin(form, "helper with the inverse scale", "eps for 1 / eps", ("1 / eps", "eps"), at={"eps": 0.25})


class NoisyCounter:
    def __init__(self, eps):
        self.eps = eps

    def release(self, q, rng):
        return q + rng.laplace(scale=1 / self.eps)

    def leak(self, q, rng):
        return q + rng.laplace(scale=1 / self.eps) * (q > 5)


keeps(NoisyCounter(0.5).release, 0.5, "all-differ", at={}, pair=(10, 9), name="bound method")
TABLE.breaks(
    NoisyCounter(0.5).leak,
    0.5,
    "all-differ",
    at={},
    pair=(5, 6),
    name="bound method that leaks",
    why="no noise up to 5",
)


def two_comprehensions(q, rng, eps):
    noisy = [x + rng.laplace(scale=1 / eps) for x in q]
    return [max(0, y) for y in noisy]


form = keeps(two_comprehensions, "eps", "one-differs", pair=([1, 0], [0, 0]))
twin(
    form,
    "two comprehensions, zeros exact",
    "where the answer is 0, so is the output",
    ("[max(0, y) for y in noisy]", "[y if x > 0 else 0 for x, y in zip(q, noisy)]"),
)


def dp_sgd_step(gradients, rng, clip, sigma):
    total = np.zeros(2)
    for gradient in gradients:
        norm = np.linalg.norm(gradient)
        total += np.array(gradient) / max(1.0, norm / clip)
    return total + rng.normal(scale=sigma * clip, size=2)


form = keeps(
    dp_sgd_step,
    GaussianDP(0.5),
    "add_or_remove_one",
    at={"clip": 1.0, "sigma": 2.0},
    pair=([(3.0, 4.0), (0.0, 0.5)], [(0.0, 0.5)]),
    records="a vector of two numbers",
)
twin(
    form,
    "dp-sgd step that clips the sum",
    "a gradient is clipped by what all are",
    ("(gradient)\n", "(gradients[0])\n"),
    pair=([(0.0, 0.5), (30.0, 40.0)], [(0.0, 0.5)]),
)
twin(form, "dp-sgd step that replaces", "2 clip", adjacency="replace_one", pair=([(3.0, 4.0)], [(-3.0, -4.0)]))


def yes_or_no(q, rng, eps, T):
    if q + rng.laplace(scale=1 / eps) > T:
        return "yes"
    return "no"


form = keeps(yes_or_no, "eps", "all-differ", at={"eps": 1.0, "T": 9.5}, pair=(10, 9))
twin(
    form,
    "yes, no or surely",
    "an exact comparison",
    ("    if q + r", "    if q > T:\n        return 'surely'\n    if q + r"),
)


def rounded_count(q, rng, eps):
    noisy = q + rng.laplace(scale=1 / eps)
    return max(0, round(noisy))


form = keeps(rounded_count, "eps", "all-differ", pair=(10, 9))
twin(form, "rounded count without noise at 0", "max with the answer", ("max(0,", "max(q,"))


def guarded_count(q: float, rng: np.random.Generator, eps: float) -> float:
    if eps <= 0:
        raise ValueError("eps must be above 0")
    return q + rng.laplace(scale=1 / eps)


form = keeps(guarded_count, "eps", "all-differ", pair=(10, 9))
twin(form, "guard on the answer", "raises where the answer is negative", ("eps <= 0:", "q < 0:"), pair=(0.5, -0.5))
