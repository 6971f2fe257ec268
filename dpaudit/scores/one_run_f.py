"""One training run against a whole trade-off curve (Mahloujifar, Melis & Chaudhuri 2025, theorem 9 and algorithm 3).

Let p_i be the probability of exactly i right of c guesses about m canaries, and p <= G(q) the claim's region. Flipping
the coin of one canary turns "right, i in all" into "wrong, i - 1 in all"; averaged, and because G is concave,

    sum_{i in A} i p_i / m <= G( sum_{i in A} (c - i + 1) p_{i-1} / m )    for every set A.

Take the tails A = {i, ..., c}: from an assumed Pr(at least v right) = tau, the probabilities below v are forced up one
by one. Where they come to more than 1, tau was too large: the claim is refuted at tau. The number of guesses is fixed
before the run, and may be another one for every claim: nothing is paid for the choice.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from statistics import NormalDist
from typing import Any

from dpaudit.certify.binomial import SLACK, lower_limit
from dpaudit.claims import Claim, GaussianDP
from dpaudit.claims.crossing import least, narrowed
from dpaudit.scores.gaussian import mu_that_wins
from dpaudit.scores.one_run import Guesses

LEAST = 1e-15  # the least tau that is looked at
ROUNDING = 1e-12  # what a value of the region may be wrong by
POWER = 0.9  # with which a number of guesses refutes: it has slack for one error more
STEP = 1.15  # between two values of a parameter that have numbers of guesses of their own
STEPS = 24  # of them on each side of the claim's value

Region = Callable[[float], float]


def region_of(claim: Claim) -> Region:
    """The claim's G; that of a Gaussian claim without its checks, which take most of the time."""
    if not isinstance(claim, GaussianDP):
        return claim.max_probability
    normal, mu = NormalDist(), claim.mu

    def region(q: float) -> float:
        return normal.cdf(normal.inv_cdf(q) + mu) if 0.0 < q < 1.0 else q

    return region


def is_refuted(guesses: Guesses, region: Region, alpha: float) -> bool:
    """Whether `region` (G, concave, symmetric in the two orders) cannot give so many right guesses at `alpha`.

    >>> from dpaudit.claims import PureDP
    >>> is_refuted(Guesses(right=10, made=10, canaries=10, fixed=True), PureDP(0.0).max_probability, 0.01)
    True
    """
    c, m = guesses.made, guesses.canaries
    if c == 0:
        return False
    right, wrong = alpha * guesses.right / m, alpha * (c - guesses.right) / m
    most = (c / m) * (1.0 + SLACK)
    for i in range(guesses.right - 1, -1, -1):
        # G^-1 of a region that holds in both orders: q >= 1 - G(1 - p)
        least = 1.0 - region(1.0 - right) - ROUNDING
        if least <= wrong or right + wrong > most:
            break  # nothing is forced any more, here or below; or more than there is
        right = min(1.0, right + i / (c - i) * (least - wrong))
        wrong = least
    return right + wrong > most


def least_right(region: Region, made: int, canaries: int, alpha: float, low: int) -> int:
    """The least number of right guesses above `low` that refutes at `alpha`; `made` + 1 where none does."""
    return least(lambda v: is_refuted(Guesses(v, made, canaries, fixed=True), region, alpha), low, made + 1)


def p_value(guesses: Guesses, claim: Claim) -> float:
    """The least error probability at which the claim is refuted, rounded up; 1.0 where none is."""
    region = region_of(claim)
    if not is_refuted(guesses, region, 1.0):
        return 1.0
    return math.exp(narrowed(lambda log: not is_refuted(guesses, region, math.exp(log)), math.log(LEAST), 0.0, 1e-6)[1])


@lru_cache(maxsize=1024)
def made_for(claim: Claim, canaries: int, alpha: float) -> int:
    """The number of guesses that refutes the claim at `alpha` with `POWER` for the weakest Gaussian leak.

    It is known before the run. Looked for among coarse shares of the canaries, then among finer ones near the best.
    """
    region = region_of(claim)

    def needed(made: int) -> float:
        right = least_right(region, made, canaries, alpha, made // 2)
        return mu_that_wins(lower_limit(right, made, POWER), made / canaries) if right <= made else math.inf

    coarse = [max(1, round(canaries * math.pow(2.0, -i / 2.0))) for i in range(19)]
    best = min(coarse, key=needed)
    near = [min(canaries, max(1, round(best * math.pow(2.0, i / 8.0)))) for i in (0, -3, -2, -1, 1, 2, 3)]
    return min(near, key=needed)


def parameter_lower(right: Any, claim: Claim, alpha: float, given: Guesses | None = None) -> tuple[float, Guesses]:
    """(The largest value of the claim's parameter up to which all are refuted, the guesses that end there).

    Each step of the values, which the claim's own value ends one of, has its number of guesses. `right` are bools,
    shape (canaries,), the most extreme score first (`weighted.ranked`); `claim` has a value above 0. With `given`,
    those guesses instead.
    """
    assert claim.value

    def refuted(guesses: Guesses, value: float) -> bool:
        return is_refuted(guesses, region_of(claim.with_value(value)), alpha)

    unit = 1.0 if isinstance(claim, GaussianDP) else claim.value
    for start, end in pairwise(sorted({0.0, claim.value, *(unit * STEP**i for i in range(-STEPS, STEPS + 1))})):
        guesses = given or guessed(right, claim.with_value(end), alpha)
        if not refuted(guesses, end):
            return narrowed(partial(refuted, guesses), start, end, 1e-7)[0], guesses
    return end, guesses


def guessed(right: Any, claim: Claim, alpha: float) -> Guesses:
    """As many guesses as the claim asks for, from `right`, the most extreme score first."""
    made = made_for(claim, int(right.size), alpha)
    return Guesses(int(right[:made].sum()), made, int(right.size), fixed=True)
