"""E-values of one training from the tail of its right guesses, for curves: where a leak is strong, more than `nats`.

Let V of r guesses be right, r known before, and h never fall, from h(0) = 1. With any bounds beta(v) >= Pr(V >= v),

    E h(V) = 1 + sum_v (h(v) - h(v - 1)) Pr(V >= v)  <=  1 + sum_v (h(v) - h(v - 1)) beta(v).

The bounds are those of `one_run_f`, which hold however canaries depend on each other. h is 1, 2, 4, ..., where the
claim's own bound is at most 1/2, 1/4, 1/8, ...
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpaudit.arrays import Integers, Reals
from dpaudit.claims import Claim
from dpaudit.scores.guesses import folded
from dpaudit.scores.nats import binned
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.one_run_f import is_refuted, made_for, region_of

HALVINGS = 8


@lru_cache(maxsize=64)
def _steps(claim: Claim, canaries: int, alpha: float) -> tuple[int, int, tuple[int, ...]]:
    """The part of `nats.BINS` beyond which is guessed, how many canaries that is, and the v at which h doubles."""
    ranks = np.arange(canaries, dtype=np.float64)
    made = np.cumsum(folded(binned(ranks, ranks < 0.0)[None])[1][0, ::-1])[::-1]
    part = int(np.argmin(abs(made - made_for(claim, canaries, alpha)) + canaries * (made == 0)))
    r, region, found = int(made[part]), region_of(claim), []
    low = r // 2
    for k in range(1, HALVINGS + 1):
        high = r + 1
        while high - low > 1:
            middle = (low + high) // 2
            refuted = is_refuted(Guesses(middle, r, canaries, fixed=True), region, 0.5**k)
            low, high = (low, middle) if refuted else (middle, high)
        if high > r:
            break
        found.append(high)
    return part, r, tuple(found)


@lru_cache(maxsize=1024)
def _mean(claim: Claim, canaries: int, made: int, steps: tuple[int, ...]) -> float:
    """The bound on E h(V) under a claim."""
    region, mean, j = region_of(claim), 1.0, 0
    for k, v in enumerate(steps):
        while j <= HALVINGS and is_refuted(Guesses(v, made, canaries, fixed=True), region, 0.5 ** (j + 1)):
            j += 1
        mean += 2.0**k * 0.5**j
    return mean


def log_e_values(counts: Integers, own: Claim, claim: Claim, alpha: float) -> Reals:
    """The logarithms of the e-values of rows against `claim`, with the guesses and the h that suit the claim `own`.

    Where equal scores change how many are beyond a part, the missing guesses count as wrong, one too many as right.
    """
    canaries = int(counts[0].sum())
    part, r, steps = _steps(own, canaries, alpha)
    right, made = (each[:, part:].sum(axis=1) for each in folded(counts))
    doubled = np.searchsorted(np.array(steps), right - np.maximum(0, made - r), side="right")
    return np.asarray(doubled * math.log(2.0) - math.log(_mean(claim, canaries, r, steps)) - 1e-9)
