"""One training run against a whole trade-off curve (Mahloujifar, Melis & Chaudhuri 2025, theorem 9 and algorithm 3).

Let p_i be the probability of exactly i right of c guesses about m canaries, in or out by fair coins, and let G be the
claim's region p <= G(q). Flipping the coin of one canary turns "right, i in all" into "wrong, i - 1 in all"; averaged
over the canaries, and because G is concave,

    sum_{i in A} i p_i / m <= G( sum_{i in A} (c - i + 1) p_{i-1} / m )    for every set A.

Take the tails A = {i, ..., c}: from an assumed Pr(at least v right) = tau, the probabilities below v are forced up one
by one. Where they come to more than 1, tau was too large: the claim is refuted at tau. The number of guesses is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpaudit.certify.binomial import SLACK
from dpaudit.claims import Claim
from dpaudit.scores.one_run import Guesses

LEAST = 1e-15  # the least tau that is looked at
ROUNDING = 1e-12  # what a value of the region may be wrong by


def is_refuted(guesses: Guesses, region: Callable[[float], float], alpha: float) -> bool:
    """Whether `region` (G, concave, symmetric in the two orders) cannot give so many right guesses at `alpha`.

    >>> from dpaudit.claims import PureDP
    >>> is_refuted(Guesses(right=10, made=10, canaries=10, fixed=True), PureDP(0.0).max_probability, 0.01)
    True
    """
    c, m = guesses.made, guesses.canaries
    if c == 0:
        return False
    right, wrong = alpha * guesses.right / m, alpha * (c - guesses.right) / m
    for i in range(guesses.right - 1, -1, -1):
        # G^-1 of a region that holds in both orders: q >= 1 - G(1 - p)
        least = 1.0 - region(1.0 - right) - ROUNDING
        if least <= wrong:
            break  # nothing is forced any more, here or below
        right = min(1.0, right + i / (c - i) * (least - wrong))
        wrong = least
    return right + wrong > (c / m) * (1.0 + SLACK)


def p_value(guesses: Guesses, claim: Claim) -> float:
    """The least error probability at which the claim is refuted, rounded up; 1.0 where none is.

    >>> from dpaudit.claims import PureDP
    >>> round(p_value(Guesses(right=10, made=10, canaries=10, fixed=True), PureDP(0.0)), 6)  # 2^-10
    0.000977
    """
    if not is_refuted(guesses, claim.max_probability, 1.0):
        return 1.0
    low, high = math.log(LEAST), 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        refuted = is_refuted(guesses, claim.max_probability, math.exp(middle))
        low, high = (low, middle) if refuted else (middle, high)
    return math.exp(high)


def largest_refuted(
    guesses: Guesses, family: Callable[[float], Callable[[float], float]], alpha: float, most: float = 40.0
) -> float:
    """The largest parameter of a growing family of regions that is refuted at `alpha`; 0.0 where there is none.

    `family(parameter)` is the member's G.
    """
    if not is_refuted(guesses, family(0.0), alpha):
        return 0.0
    low, high = 0.0, most
    while high - low > 1e-7:
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_refuted(guesses, family(middle), alpha) else (low, middle)
    return low
