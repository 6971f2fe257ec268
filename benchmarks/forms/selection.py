"""Selection of the largest, of several, of what is stable; thresholds."""

# ruff: noqa: N803

from __future__ import annotations

import math

import numpy as np

from benchmarks.forms.entry import Collection
from dpaudit import ApproximateDP

SELECTION = Collection("selection")
keeps, twin = SELECTION.keeps, SELECTION.twin
PAIR, FAR = ([2, 1, 0], [1, 2, 0]), ([0, 3], [1, 2])


def counting_max(q, rng, eps):
    return int(np.argmax(q + rng.laplace(0, 1 / eps, len(q))))


form = keeps(counting_max, "eps", "monotone", pair=([1, 0], [1, 1]), why="answers that move alike need half the noise")
twin(form, "counting max, all differ", "2 eps in the limit of a far answer", adjacency="all-differ", pair=FAR)


def softmax_choice(q, rng, eps):
    logits = [eps * x / 2 for x in q]
    top = max(logits)
    weights = [math.exp(z - top) for z in logits]
    total = sum(weights)
    return int(rng.choice(len(q), p=[w / total for w in weights]))


form = keeps(softmax_choice, "eps", "all-differ", pair=FAR)
twin(
    form,
    "softmax that tells its largest",
    "the exact largest",
    (
        "return int(rng.choice(len(q), p=[w / total for w in weights]))",
        "return int(rng.choice(len(q), p=[w / total for w in weights])), top",
    ),
)


def choice_by_inverse(q, rng, eps):
    best = max(q)
    weights = [math.exp(eps * (x - best) / 2) for x in q]
    u = rng.random() * sum(weights)
    reached = 0.0
    for i, w in enumerate(weights):
        reached += w
        if u < reached:
            return i
    return len(q) - 1


form = keeps(choice_by_inverse, "eps", "all-differ", pair=FAR)
twin(form, "choice by inverse at 2 eps", "twice the exponent", ("(x - best) / 2", "(x - best)"))


def counting_choice(q, rng, eps):
    z = eps * np.asarray(q, dtype=float)
    z -= z.max()
    p = np.exp(z) / np.exp(z).sum()
    return rng.choice(np.arange(len(q)), p=p)


keeps(counting_choice, "eps", "monotone", pair=([1, 0], [1, 1]), why="answers that move alike need no factor 2")


def permute_and_flip(q, rng, eps):
    best = max(q)
    for i in rng.permutation(len(q)):
        if rng.random() <= math.exp(eps * (q[i] - best) / 2):
            return int(i)
    return None


form = keeps(permute_and_flip, "eps", "all-differ", pair=FAR)
twin(
    form,
    "permute and flip without the 2",
    "2 eps in the limit",
    ("(q[i] - best) / 2", "(q[i] - best)"),
    pair=([0, 4], [1, 3]),
)
twin(form, "permute and flip that tells its best", "the exact largest", ("return int(i)", "return int(i), best"))


def with_gap(q, rng, eps):
    noisy = [x + rng.laplace(scale=2 / eps) for x in q]
    order = sorted(range(len(q)), key=lambda i: -noisy[i])
    return order[0], noisy[order[0]] - noisy[order[1]]


form = keeps(with_gap, "eps", "all-differ", pair=([2, 1, 0], [1, 2, 1]), why="the gap is free")
twin(
    form,
    "with its value for the gap",
    "the largest noisy value of n",
    ("noisy[order[0]] - noisy[order[1]]", "noisy[order[0]]"),
    pair=([0] * 8, [1] * 8),
)


def top_by_peeling(q, rng, eps, k):
    left = list(range(len(q)))
    chosen = []
    for _ in range(k):
        noisy = [q[i] + rng.laplace(scale=2 * k / eps) for i in left]
        best = left[noisy.index(max(noisy))]
        chosen.append(best)
        left.remove(best)
    return chosen


form = keeps(top_by_peeling, "eps", "all-differ", at={"eps": 1.0, "k": 2}, pair=PAIR)
twin(
    form,
    "top by peeling, 2 / eps a round",
    "k eps",
    ("2 * k / eps", "2 / eps"),
    at={"k": 3},
    pair=([0, 0, 0, 2, 2, 2], [1, 1, 1, 1, 1, 1]),
)


def top_at_once(q, rng, eps, k):
    noisy = np.array(q) + rng.laplace(scale=2 * k / eps, size=len(q))
    return np.argsort(-noisy)[:k].tolist()


form = keeps(top_at_once, "eps", "all-differ", at={"eps": 1.0, "k": 2}, pair=PAIR)
twin(
    form,
    "top at once in the order of the answers",
    "the chosen are sorted by their exact answers",
    ("return np.argsort(-noisy)[:k].tolist()", "return sorted(np.argsort(-noisy)[:k].tolist(), key=lambda i: q[i])"),
    pair=([2, 1], [1, 2]),
)


def top_by_gumbel(q, rng, eps, k):
    keys = np.asarray(q) * eps / (2 * k) + rng.gumbel(size=len(q))
    return list(np.argsort(keys)[::-1][:k])


keeps(top_by_gumbel, "eps", "all-differ", at={"eps": 1.0, "k": 2}, pair=PAIR, why="k exponential mechanisms")


def winner_and_count(q, rng, eps):
    winner = 0
    best = None
    for i, x in enumerate(q):
        y = x + rng.laplace(scale=4 / eps)
        if best is None or y > best:
            winner, best = i, y
    return winner, q[winner] + rng.laplace(scale=2 / eps)


form = keeps(winner_and_count, "eps", "all-differ", pair=PAIR)
twin(
    form,
    "winner and the count that won",
    "the noise that chose is told",
    ("q[winner] + rng.laplace(scale=2 / eps)", "best"),
    pair=([0] * 8, [1] * 8),
)


def propose_test_release(q, rng, eps, delta):
    first, second = sorted(q, reverse=True)[:2]
    if first - second + rng.laplace(scale=1 / eps) > 1 + math.log(1 / (2 * delta)) / eps:
        return q.index(first)
    return None


at = {"eps": 1.0, "delta": 1e-3}
form = keeps(propose_test_release, ApproximateDP(1.0, 1e-3), "one-differs", at=at, pair=([9, 0, 0], [8, 0, 0]))
twin(
    form,
    "release without the test of 1",
    "at a gap of 1, delta e^eps",
    ("> 1 + math", "> math"),
    pair=([0, 0], [0, 1]),
    at={"delta": 0.05},
    claim=ApproximateDP(1.0, 0.05),
)
twin(
    form,
    "release of what is tested",
    "the exact gap decides",
    ("first - second + rng.laplace(scale=1 / eps)", "first - second"),
    pair=([9, 2], [9, 1]),
    at={"delta": 0.00046},
)


def counts_until_top(q, rng, eps, T):
    threshold = T + rng.laplace(scale=2 / eps)
    asked = 0
    while asked < len(q) and q[asked] + rng.laplace(scale=4 / eps) < threshold:
        asked += 1
    return asked


form = keeps(counts_until_top, "eps", "all-differ", at={"eps": 1.0, "T": 1.0}, pair=([0, 0, 0, 2], [1, 1, 1, 1]))
twin(
    form,
    "counts until the exact top",
    "no noise on answers",
    ("q[asked] + rng.laplace(scale=4 / eps)", "q[asked]"),
    pair=([0, 1], [1, 0]),
)
