"""Certified bounds from one training run: m canaries, each put in or left out by a fair coin of its own.

Steinke, Nasr & Jagielski 2023, theorem 5.2, which holds given the output, so the number of guesses may be any function
of the scores; with delta the proof of docs/statistics/training.md. Where that number is random and delta > 0, the two
terms are bounded apart, with `DELTA_SHARE` of alpha for the second.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.certify.binomial import SLACK, upper_tail
from dpaudit.claims.crossing import narrowed
from dpaudit.errors import InvalidSpec
from dpaudit.scores.gaussian import wrong_beyond

DELTA_SHARE = 0.1  # of the error probability goes to the delta part where the number of guesses is random
LARGEST_EPSILON = 40.0

WITHIN = (
    "one training run (or several); a fair coin of its own, independent of all else, decided for every canary "
    "whether it was in; all canaries of the coins are scored, and the scores do not use the coins"
)


@dataclass(frozen=True, slots=True)
class Guesses:
    """`right` of `made` guesses about `canaries` canaries; `fixed` where their number was known before the run."""

    right: int
    made: int
    canaries: int
    fixed: bool

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.made <= self.canaries:
            raise InvalidSpec(
                f"guesses must have 0 <= right <= made <= canaries, got {self.right}, {self.made}, {self.canaries}"
            )


def guess_ends(scores: Any, members: Any, ends: tuple[int, int], rng: Any, fixed: bool = True) -> Guesses:
    """Guesses "in" for the `ends[0]` highest scores and "out" for the `ends[1]` lowest.

    `scores` and `members` (bools) are arrays of shape (canaries,). Ties at the cut are broken by `rng`, never by the
    order of the file, which may know the coins.

    >>> import numpy as np
    >>> scores, members = np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False])
    >>> guess_ends(scores, members, (1, 1), np.random.default_rng(0))
    Guesses(right=2, made=2, canaries=4, fixed=True)
    """
    high, low = ends
    if high < 0 or low < 0 or high + low > scores.size:
        raise InvalidSpec(f"guesses must be two numbers that {scores.size} canaries allow together, got {ends}")
    mixed = rng.permutation(scores.size)
    order = mixed[np.argsort(scores[mixed], kind="stable")]
    right = int(members[order[scores.size - high :]].sum()) + int((~members[order[:low]]).sum())
    return Guesses(right, high + low, int(scores.size), fixed)


def p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """The least error probability at which (epsilon, delta)-DP is refuted, rounded up.

    >>> round(p_value(Guesses(right=9, made=10, canaries=100, fixed=True), 0.0, 0.0), 6)  # 11 / 2^10
    0.010742
    """
    q = 1.0 / (1.0 + math.exp(-epsilon))
    tail = upper_tail(guesses.right, guesses.made, min(1.0, q * (1.0 + 1e-15)))
    if delta == 0.0 or guesses.right == 0:
        return tail
    excess = guesses.canaries * (1.0 - q) * delta * steepest(guesses.made, q, guesses.right) * (1.0 + SLACK)
    if guesses.fixed:
        return min(1.0, tail + excess)
    return min(1.0, max(tail / (1.0 - DELTA_SHARE), excess / DELTA_SHARE))


def epsilon_lower(guesses: Guesses, delta: float, alpha: float) -> float:
    """The largest epsilon at `delta` that is refuted at error probability `alpha`; 0.0 where there is none.

    With delta = 0 it is the logit of the lower Clopper-Pearson limit of the part of right guesses.

    >>> round(epsilon_lower(Guesses(right=100, made=100, canaries=100, fixed=True), 0.0, 0.05), 4)
    3.493
    """
    if p_value(guesses, 0.0, delta) > alpha:
        return 0.0
    return narrowed(lambda epsilon: p_value(guesses, epsilon, delta) <= alpha, 0.0, LARGEST_EPSILON, 1e-7)[0]


@lru_cache(maxsize=4096)
def steepest(made: int, q: float, right: int | None = None) -> float:
    """The mean over k < made of the largest Pr(Bin(k, q) = w), rounded up; w from right - made + k to right - 1.

    Without `right`, w is any number.
    """
    from scipy.special import gammaln

    k = np.arange(made + 0.0)
    mode = np.clip(np.floor((k + 1.0) * q), 0.0, k)
    if right is not None:
        mode = np.clip(mode, right - made + k, right - 1.0)
    missed = k - mode
    log = gammaln(k + 1.0) - gammaln(mode + 1.0) - gammaln(missed + 1.0) + mode * math.log(q)
    if q < 1.0:
        log = log + missed * math.log1p(-q)
    return float(np.minimum(1.0, np.exp(log) * (1.0 + 1e-9)).mean())


# What one run shows if canaries are answered independently: the product form (Xiang, Wang, Wang & Liu 2025). It is no
# certificate: mechanisms that answer all canaries, or none, are put above their claim (`benchmarks one_run`;
# the proof: docs/statistics/training.md).

CELLS = 256  # of equal probability, for the part beyond z; each takes its most favourable end
MOST_MU = 40.0
SHARE = 0.65  # of the canaries guessed: near the best for every mu from .1 to 3


def largest_chance(guesses: Guesses, mu: float) -> float:
    """The probability of so few mistakes if all canaries are independent and within mu-GDP, rounded up."""
    from scipy.special import bdtr, betaincinv, ndtr

    r, m, wrong = guesses.made, guesses.canaries, guesses.made - guesses.right
    if wrong == r:
        return 1.0
    if r == m:
        return min(1.0, float(bdtr(wrong, r, ndtr(-mu / 2.0))) * (1.0 + SLACK))
    beyond = betaincinv(r + 1.0, float(m - r), np.arange(1, CELLS + 1) / CELLS)
    # the further out, the surer the guess: each cell at its least part beyond, the first at the far end of the tails
    beyond = np.concatenate([[betaincinv(r + 1.0, float(m - r), 1e-6 / CELLS)], beyond[:-1]])
    return min(1.0, (float(bdtr(wrong, r, wrong_beyond(mu, beyond)).mean()) + 1e-6 / CELLS) * (1.0 + SLACK))


def mu_lower(guesses: Guesses, alpha: float) -> float:
    """The largest mu that is refuted at `alpha` if the canaries are independent; 0.0 where there is none."""
    if largest_chance(guesses, 0.0) > alpha:
        return 0.0
    return narrowed(lambda mu: largest_chance(guesses, mu) <= alpha, 0.0, MOST_MU, 1e-5)[0]
