"""Noise on answers and what follows it, in the spellings of authors: arrays, loops, guards, helpers, classes."""

# ruff: noqa: B905, N803, PERF401

from __future__ import annotations

import math

import numpy as np

from benchmarks.forms.entry import Collection
from dpaudit import ApproximateDP

ANSWERS = Collection("answers")
keeps, breaks, twin = ANSWERS.keeps, ANSWERS.breaks, ANSWERS.twin
ONE = ([1, 0, 2], [0, 0, 2])


def totals_of_noisy(q, rng, eps):
    noisy = q + rng.laplace(scale=1 / eps, size=len(q))
    return np.cumsum(noisy)


keeps(totals_of_noisy, "eps", "one-differs", pair=ONE)


def noisy_totals(q, rng, eps):
    totals = np.cumsum(q)
    return totals + rng.laplace(scale=len(q) / eps, size=len(q))


form = keeps(noisy_totals, "eps", "one-differs", pair=ONE)
twin(
    form, "noisy totals, all differ", "the third total moves by 3", adjacency="all-differ", pair=([1, 1, 1], [0, 0, 0])
)
twin(form, "noisy totals without len", "n eps", ("len(q) / eps", "1 / eps"))


def head_and_tail(q, rng, eps, k):
    head, tail = q[:k], q[k:]
    first = sum(head) + rng.laplace(scale=1 / eps)
    second = sum(tail) + rng.laplace(scale=1 / eps)
    return first, second


form = keeps(head_and_tail, "eps", "one-differs", at={"eps": 1.0, "k": 2}, pair=ONE)
twin(
    form,
    "head and tail that overlap",
    "answer k - 1 is in both: 2 eps",
    ("q[k:]", "q[k - 1 :]"),
    pair=([0, 1, 0], [0, 0, 0]),
)


def weighted(q, rng, eps, weights):
    return [w * (x + rng.laplace(scale=1 / eps)) for x, w in zip(q, weights)]


form = keeps(weighted, "eps", "one-differs", at={"eps": 1.0, "weights": (1.0, 2.0, 0.5)}, pair=ONE)
twin(
    form,
    "weighted before the noise",
    "a weight of 2",
    ("w * (x + rng.laplace(scale=1 / eps))", "w * x + rng.laplace(scale=1 / eps)"),
    pair=([0, 1, 0], [0, 0, 0]),
)


def kept_if_large(q, rng, eps, T):
    noisy = np.asarray(q) + rng.laplace(scale=1 / eps, size=len(q))
    return np.where(noisy > T, noisy, 0.0)


form = keeps(kept_if_large, "eps", "one-differs", at={"eps": 1.0, "T": 1.0}, pair=ONE)
twin(form, "kept if the answer is large", "np.where of the answers", ("noisy > T", "np.asarray(q) > T"), at={"T": 0.5})


def extended(q, rng, eps):
    out = []
    for x in q:
        out += [x + rng.laplace(scale=2 / eps)]
        out += [x + rng.laplace(scale=2 / eps), None]
    return out


keeps(extended, "eps", "one-differs", pair=ONE)


def other_name_of_rng(q, rng, eps):
    generator = rng
    noise = generator.laplace
    return [x + noise(0.0, 1.0 / eps) for x in q]


keeps(other_name_of_rng, "eps", "one-differs", pair=ONE)


class Release:
    """A releaser of answers with its own generator."""

    def __init__(self, eps, seed=None):
        self.scale = 1 / eps
        self.rng = np.random.default_rng(seed)

    def _noise(self):
        return self.rng.laplace(scale=self.scale)

    def counts(self, q):
        return [x + self._noise() for x in q]

    def counts_less_first(self, q):
        noise = self._noise()
        return [q[0] + noise, *[x - q[0] for x in q[1:]]]


keeps(Release(1.0).counts, 1.0, "one-differs", at={}, pair=ONE, name="self.rng")
breaks(
    Release(1.0).counts_less_first,
    1.0,
    "one-differs",
    at={},
    pair=ONE,
    name="self.rng, differences",
    why="differences of answers are exact",
)


def traced(function):
    return function


@traced
def decorated(q, rng, eps):
    return q + rng.laplace(scale=1 / eps)


keeps(decorated, "eps", "all-differ", pair=(10, 9))


class Rounding:
    STEP = 0.5

    @staticmethod
    def release(q, rng, eps):
        return round(q + rng.laplace(scale=1 / eps)) * 2

    @classmethod
    def on_grid(cls, q, rng, eps):
        return cls.STEP * math.floor((q + rng.laplace(scale=1 / eps)) / cls.STEP)

    @staticmethod
    def after(q, rng, eps):
        return q + round(rng.laplace(scale=1 / eps))


keeps(Rounding.release, "eps", "all-differ", pair=(10, 9), name="staticmethod")
keeps(Rounding.on_grid, "eps", "all-differ", pair=(10, 9), name="classmethod")
breaks(
    Rounding.after,
    "eps",
    "all-differ",
    pair=(0.5, 0.0),
    name="staticmethod, noise rounded",
    why="the fraction of q is seen",
)


def within_budget(q, rng, eps, costs, budget):
    spent = 0
    out = []
    for x, cost in zip(q, costs):
        if cost < 1:
            raise ValueError("each cost is a whole number of units")
        if spent + cost <= budget:
            out.append(x + rng.laplace(scale=1 / (cost * eps)))
            spent += cost
        else:
            out.append(None)
    return out


at = {"eps": 0.5, "costs": (1, 2, 3), "budget": 4}
form = keeps(within_budget, "4*eps", "all-differ", at=at, pair=([1, 1, 1], [0, 0, 0]))
twin(
    form,
    "within a budget that is tested late",
    "spent <= budget lets the last one through: 6 eps",
    ("spent + cost <=", "spent <="),
)


def until_empty(q, rng, eps, budget):
    if budget <= 0:
        return []
    left = budget
    out = []
    for x in q:
        if left == 0:
            return out
        out.append(x + rng.laplace(scale=budget / eps))
        left -= 1
    return out


form = keeps(until_empty, "eps", "all-differ", at={"eps": 1.0, "budget": 2}, pair=([1, 1, 1], [0, 0, 0]))
twin(
    form,
    "until empty with a refund",
    "an answer above 0 is free",
    ("        left -= 1", "        left -= x <= 0"),
    pair=([1, 1, 1, 1], [2, 2, 2, 2]),
)


def two_of_one(q, rng, eps):
    return {"count": round(q + rng.laplace(scale=2 / eps)), "size": abs(q + rng.laplace(scale=2 / eps))}


form = keeps(two_of_one, "eps", "all-differ", pair=(10, 9))
twin(form, "two of one at full eps", "2 eps", ("2 / eps", "1 / eps"))


def three_loops(q, rng, eps):
    noisy = []
    for i in range(len(q)):
        noisy.append(q[i] + rng.laplace(scale=2 / eps))
    total = 0
    for y in noisy:
        total += max(y, 0)
    again = []
    for x in q:
        again.append(x + rng.laplace(scale=2 / eps))
    shares = [min(1, abs(y) / (1 + abs(total))) for y in again]
    return total, shares


form = keeps(three_loops, "eps", "one-differs", pair=ONE)
twin(
    form,
    "three loops, shares of the true total",
    "the divisor is exact",
    ("(1 + abs(total))", "(1 + abs(sum(q)))"),
    ("return total, shares", "return shares, again"),
)


def mean_of_answers(q, rng, eps):
    n = len(q)
    return np.mean(q) + rng.laplace(scale=1 / (n * eps))


form = keeps(mean_of_answers, "eps", "one-differs", pair=ONE)
twin(form, "mean of answers all differ", "the mean moves by 1", adjacency="all-differ", pair=([1, 1, 1], [0, 0, 0]))


def _scale(sensitivity, eps=1.0):
    if sensitivity < 0:
        raise ValueError("a sensitivity is at least 0")
    return sensitivity / eps


def _add_noise(values, generator, scale):
    return [value + generator.laplace(0, scale) for value in values]


def nested_helpers(q, rng, eps, pieces=2):
    scale = _scale(pieces, eps)
    return [_add_noise(q, rng, scale) for _ in range(pieces)]


form = keeps(nested_helpers, "eps", "one-differs", pair=ONE)
twin(form, "nested helpers, a piece more", "three pieces at the scale of two", ("range(pieces)", "range(pieces + 1)"))


def by_index(q, rng, eps):
    out = np.zeros(len(q))
    i = 0
    while i < len(q):
        out[i] = q[i] + rng.laplace() / eps
        i += 1
    return out.tolist()


form = keeps(by_index, "eps", "one-differs", pair=ONE)
twin(
    form,
    "by index, a draw for two",
    "noise of the neighbour again",
    ("q[i] + rng.laplace() / eps", "q[i] + (rng.laplace() / eps if i % 2 == 0 else out[i - 1] - q[i - 1])"),
)


def hundred_answers(q, rng, eps, T):
    out = []
    for t in range(T):
        out.append(q[t] + rng.laplace(scale=1 / eps))
    return out


at = {"eps": 0.05, "T": 100}
why = "advanced composition: 100 x 0.05 at delta = 1e-5 is 2.656"
form = keeps(hundred_answers, ApproximateDP(2.66, 1e-5), "all-differ", at=at, pair=([1] * 100, [0] * 100), why=why)
keeps(hundred_answers, 5.0, "all-differ", at=at, pair=([1] * 100, [0] * 100), name="hundred answers, added up")
twin(form, "hundred answers at 0.3", "about a Gaussian of mu = 1/2: delta = 0.1", claim=ApproximateDP(0.3, 1e-5))


def noisy_tree(q, rng, eps):
    out = []
    for width in (1, 2, 4, 8):
        for start in range(0, len(q), width):
            out.append(sum(q[start : start + width]) + rng.laplace(scale=4 / eps))
    return out


EIGHT = ([0, 0, 1, 0, 0, 0, 0, 0], [0] * 8)
form = keeps(noisy_tree, "eps", "one-differs", pair=EIGHT)
twin(form, "noisy tree of three levels' noise", "4/3 eps", ("4 / eps", "3 / eps"))
twin(
    form,
    "noisy tree with an exact root",
    "no noise on the root",
    ("rng.laplace(scale=4 / eps)", "(width < 8) * rng.laplace(scale=4 / eps)"),
)


def prefix_sums_by_tree(q, rng, eps):
    levels = []
    nodes = list(q)
    for _ in range(4):
        levels.append([node + rng.laplace(scale=4 / eps) for node in nodes])
        nodes = [nodes[i] + nodes[i + 1] for i in range(0, len(nodes) - 1, 2)]
    sums = []
    for end in range(1, len(q) + 1):
        total, position = 0, 0
        for level in (3, 2, 1, 0):
            if end & (1 << level):
                total += levels[level][position >> level]
                position += 1 << level
        sums.append(total)
    return sums


form = keeps(prefix_sums_by_tree, "eps", "one-differs", at={"eps": 1.0}, pair=EIGHT)
twin(
    form, "prefix sums by a tree at 1 / eps", "answer 2 is in three nodes that are told: 3 eps", ("4 / eps", "1 / eps")
)


def add_only(q, rng, eps):
    return q + rng.exponential(scale=1 / eps)


form = keeps(add_only, "eps", "down", why="the output of the first is at least its answer, so possible of the second")
twin(form, "add only, the other way", "an output below the second's answer", adjacency="up")


def below_the_answer(q, rng, eps):
    return min(q, q - rng.exponential(scale=1 / eps))


keeps(below_the_answer, "eps", "up", why="the output of the first is at most its answer")


def sparse_one_way(q, rng, eps, T):
    t = T + rng.laplace(scale=2 / eps)
    left = 1
    out = []
    for x in q:
        if x + rng.laplace(scale=2 / eps) >= t:
            out.append(True)
            left -= 1
        else:
            out.append(False)
        if left == 0:
            break
    return out


form = keeps(sparse_one_way, "eps/2", "down", at={"eps": 1.0, "T": 0.0}, why="the threshold stays, the top moves by 1")
keeps(
    sparse_one_way,
    "eps",
    "monotone",
    at={"eps": 1.0, "T": 0.0},
    pair=([0, 1], [1, 1]),
    name="sparse of counting queries",
)
twin(
    form,
    "sparse one way, all differ",
    "3/2 eps in the limit",
    claim="eps",
    adjacency="all-differ",
    pair=([0] * 24 + [1], [1] * 24 + [0]),
)
