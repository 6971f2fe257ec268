"""What so many canaries could show, had the scores told every coin: said before anything is trained."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpaudit.claims import ApproximateDP, Claim
from dpaudit.claims.crossing import least
from dpaudit.scores import few, nats, one_run_f, weighted
from dpaudit.scores.choice import curved
from dpaudit.scores.few import Evidence
from dpaudit.scores.one_run import Guesses

MOST_ROWS = 10_000  # that are looked at: many more take longer than what they ask about


@lru_cache(maxsize=64)
def ceiling(
    canaries: int, claim: Claim, delta: float, alpha: float, *, trainings: int = 1, steps: int | None = None
) -> tuple[float, int | None]:
    """(Epsilon bound at `delta` had every guess been right, the least number of canaries that could refute the claim).

    The second is None where no number could: not even 2^30 of one training, 2^20 where rows are multiplied.

    >>> bound, least = ceiling(1000, ApproximateDP(2.0, 1e-5), 1e-5, 0.05)
    >>> bound > 5.0, least
    (True, 24)
    """
    if trainings == 1 and steps is None:
        bound = weighted.epsilon_lower(np.ones(canaries, dtype=bool), delta, alpha)[0]
        return bound, _least(lambda number: refutable(number, claim, alpha), 30)

    rows, asked = trainings * (steps or 1), (claim, delta, alpha, steps)
    bound = _told(canaries, rows, *asked).largest(lambda epsilon: ApproximateDP(epsilon, delta))
    return bound, _least(lambda number: number > 1 and _told(number, rows, *asked).refuted, 20)


def refutable_by_rows(
    canaries: int, claim: Claim, delta: float, alpha: float, *, trainings: int, steps: int | None
) -> bool | None:
    """Whether trainings that tell every coin would refute the claim; None where `MOST_ROWS` do not, and there are more.

    One canary a row is never told: a rank among one says nothing.
    """
    rows = trainings * (steps or 1)
    found = canaries > 1 and _told(canaries, rows, claim, delta, alpha, steps).refuted
    return None if canaries > 1 and not found and rows > MOST_ROWS else found


def _told(canaries: int, rows: int, claim: Claim, delta: float, alpha: float, steps: int | None) -> Evidence:
    """The evidence of so many rows, at most `MOST_ROWS`, of which each tells every coin."""
    ranks = np.arange(canaries, dtype=np.float64)
    told = np.repeat(nats.binned(ranks, ranks >= canaries // 2)[None], min(rows, MOST_ROWS), axis=0)
    return replace(few.begin(claim, canaries, alpha, delta=delta, steps=steps), counts=told)


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    """The least number that is enough, as all above it are; None where not even 2^most is."""
    power = next((number for number in (1 << k for k in range(most + 1)) if enough(number)), None)
    return None if power is None else least(enough, power // 2, power)


def refutable(canaries: int, claim: Claim, alpha: float) -> bool:
    """Whether so many canaries of one training would refute the claim at `alpha`, had every guess been right."""
    if not curved(claim):
        epsilon, delta = float(claim.epsilon_at(float(claim.delta))), float(claim.delta)
        used = weighted.design(canaries, epsilon, delta, alpha)
        return weighted.p_value(used, used.total, canaries, epsilon, delta) <= alpha
    made = one_run_f.made_for(claim, canaries, alpha)
    return one_run_f.is_refuted(Guesses(made, made, canaries, fixed=True), one_run_f.region_of(claim), alpha)
