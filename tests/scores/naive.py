"""Slow and plain: the best any mechanism can do, by linear programming, and the formula of a paper."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix
from scipy.stats import binom

from dpaudit.scores.one_run import Guesses

Signs = tuple[int, ...]


def guess_vectors(canaries: int, guesses: int | None) -> list[Signs]:
    """Every way to guess in (1), out (-1) or not (0); with that many guesses, or with any number."""
    every = itertools.product((-1, 0, 1), repeat=canaries)
    return [t for t in every if guesses is None or sum(map(abs, t)) == guesses]


def weighted_vectors(weights: tuple[int, ...], canaries: int) -> list[Signs]:
    """Every way to guess in or out with these weights, each about another canary, and not about the rest."""
    placed = set(itertools.permutations((*weights, *(0,) * (canaries - len(weights)))))
    signs = list(itertools.product((-1, 1), repeat=canaries))
    return sorted({tuple(a * b for a, b in zip(t, s, strict=True)) for s in signs for t in placed})


def weighted_tail(weights: dict[int, int], v: int, q: Fraction) -> Fraction:
    """Pr(sum of weights of coins that show 1 >= v), coin by coin in integers; `weights`: how many have each."""
    law = {0: Fraction(1)}
    for w, count in weights.items():
        for _ in range(count):
            new: dict[int, Fraction] = {}
            for x, chance in law.items():
                new[x + w] = new.get(x + w, Fraction(0)) + chance * q
                new[x] = new.get(x, Fraction(0)) + chance * (1 - q)
            law = new
    return sum((chance for x, chance in law.items() if x >= v), Fraction(0))


def largest_chance(
    canaries: int, epsilon: float, delta: float, outputs: list[Signs], wins: Callable[[int, int], bool]
) -> float:
    """The largest probability, over all (epsilon, delta)-DP mechanisms on fair coins, that `wins(right, made)`."""

    def worth(coins: Signs, output: Signs) -> float:
        right = sum(abs(b) for a, b in zip(coins, output, strict=True) if a * b > 0)  # a guess of 2 counts twice
        return float(wins(right, sum(map(abs, output))))

    return largest_mean(canaries, [(epsilon, delta)], outputs, worth)


def largest_mean(
    canaries: int, lines: list[tuple[float, float]], outputs: list[Signs], worth: Callable[[Signs, Signs], float]
) -> float:
    """The largest mean of `worth(coins, output)`, over all mechanisms that keep every line (epsilon, delta)."""
    inputs = list(itertools.product((-1, 1), repeat=canaries))
    index = {s: i for i, s in enumerate(inputs)}
    pairs = [(i, index[(*s[:k], -s[k], *s[k + 1 :])]) for i, s in enumerate(inputs) for k in range(canaries)]
    asked = [(*pair, *line) for pair in pairs for line in lines]
    n, cells = len(outputs), len(inputs) * len(outputs)
    gain = np.zeros(cells + len(asked) * n)
    gain[:cells] = [worth(s, t) / len(inputs) for s in inputs for t in outputs]
    rows, columns, values, limits = [], [], [], []
    for k, (i, other, epsilon, delta) in enumerate(asked):
        for j in range(n):  # z >= M(t|s) - e^epsilon M(t|s'), and the z of a pair sum to delta
            rows += [len(limits)] * 3
            columns += [i * n + j, other * n + j, cells + k * n + j]
            values += [1.0, -math.exp(epsilon), -1.0]
            limits.append(0.0)
        rows += [len(limits)] * n
        columns += [cells + k * n + j for j in range(n)]
        values += [1.0] * n
        limits.append(delta)
    above = coo_matrix((values, (rows, columns)), shape=(len(limits), gain.size)).tocsr()
    sums = coo_matrix((np.ones(cells), (np.arange(cells) // n, np.arange(cells))), shape=(len(inputs), gain.size))
    found = linprog(-gain, A_ub=above, b_ub=limits, A_eq=sums.tocsr(), b_eq=np.ones(len(inputs)), method="highs")
    assert found.success
    return float(-found.fun)


def published_p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """The value of the paper's own formula, which other tools give; `one_run` says why it is not used."""
    q = 1.0 / (1.0 + math.exp(-epsilon))
    v, r = guesses.right, guesses.made
    tail = float(binom.sf(v - 1, r, q))
    steps = np.arange(1, v + 1)
    steepest = float(np.max((binom.sf(v - steps - 1, r, q) - tail) / steps))
    return min(1.0, tail + 2.0 * guesses.canaries * delta * steepest)
