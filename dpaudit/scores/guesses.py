"""E-values from right guesses about canaries, for claims with one epsilon: sharp where the mechanism answers each bit.

Guess "in" for the highest scores and "out" for as many of the lowest, r in all, and let V be how many are right. With
q = e^epsilon / (1 + e^epsilon), h(V) for any h >= 0 that never falls has a mean of at most E h(Bin(r, q)) under
epsilon-DP (Steinke, Nasr & Jagielski 2023, theorem 5.2), also given the output, so r may depend on the scores.

With delta, follow the coins one by one: the value of h that is still to be expected rises by one guess above that of
Bin by at most (1 - q) Delta times the excess (P - e^epsilon Q)+ that the coin's output has, Delta the largest step of
h; and these excesses have a mean of at most delta each (see `one_run`). So E h(V) <= E h(Bin(r, q)) + m delta Delta/2,
where 1 - q <= 1/2 keeps the bound growing with epsilon. h here is e^(bet v), cut where that extra stays small.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.arrays import Integers, Reals
from dpaudit.scores.nats import BINS

ENDS = (32, 16, 8, 4, 2, 1)  # parts of the canaries, of `BINS`, that are guessed at each end
BETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # ln of the factor that one more right guess is worth
EXTRA = 0.2  # of an e-value, over all rows, may be lost to delta
ROUNDING = 1e-10  # of the logarithm of an e-value


def guessed(counts: Integers) -> tuple[Integers, Integers]:
    """Right guesses and guesses of each row at each of `ENDS`, from counts of shape (rows, 2, BINS)."""
    half = BINS // 2
    right = counts[:, 0, half:] + counts[:, 1, :half][:, ::-1]  # from the middle outwards
    made = counts[:, :, half:].sum(axis=1) + counts[:, :, :half].sum(axis=1)[:, ::-1]
    places = [half - each for each in ENDS]
    return (
        np.cumsum(right[:, ::-1], axis=1)[:, ::-1][:, places],
        np.cumsum(made[:, ::-1], axis=1)[:, ::-1][:, places],
    )


def log_wealth(counts: Integers, epsilon: float, delta: float, reference: float, planned: int) -> Reals:
    """The logarithm of the e-process after each row, shape (rows,); it falls in epsilon.

    `reference` is the claim's epsilon and `planned` the number of rows to come, by which the cuts for delta are chosen.
    The process is the mean over all `ENDS` and `BETS` of products of e-values.
    """
    from scipy.special import bdtr, bdtrc, logsumexp

    right, made = (each[:, :, None] for each in guessed(counts))
    bets = np.array(BETS)
    q, at = (1.0 / (1.0 + math.exp(-each)) for each in (epsilon, reference))
    grown, step = np.log1p(q * np.expm1(bets)), -np.expm1(-bets)
    cut = np.broadcast_to(made, (*made.shape[:2], bets.size)).astype(np.float64)
    extra = 0.5 * delta * counts.sum(axis=(1, 2))[:, None, None] * step
    if delta > 0.0:
        room = np.log(EXTRA / planned / extra) + made * np.log1p(at * np.expm1(bets))
        cut = np.clip(np.floor(room / bets), 0.0, made)
    extra = np.where(cut > 0.0, extra, 0.0)
    tilted = q * np.exp(bets) / (1.0 - q + q * np.exp(bets))
    with np.errstate(divide="ignore"):
        below = made * grown + np.log(bdtr(cut, made, tilted))
        above = bets * cut + np.log(bdtrc(cut, made, q) + extra)
    paths = np.cumsum(bets * np.minimum(right, cut) - np.logaddexp(below, above) - ROUNDING, axis=0)
    return np.asarray(logsumexp(paths, axis=(1, 2)) - math.log(len(ENDS) * len(BETS)))
