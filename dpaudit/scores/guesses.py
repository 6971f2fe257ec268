"""E-values from right guesses about canaries, for claims with one epsilon: sharp where the mechanism answers each bit.

Guess "in" for the highest scores and "out" for as many of the lowest, r in all, and let V be how many are right. With
q = e^epsilon / (1 + e^epsilon), h(V) for any h >= 0 that never falls has a mean of at most E h(Bin(r, q)) under
epsilon-DP (Steinke, Nasr & Jagielski 2023, theorem 5.2), also given the output, so r may depend on the scores.

With delta, follow the coins one by one: the value of h that is still to be expected rises by one guess above that of
Bin by at most (1 - q) Delta times the excess (P - e^epsilon (1 - P))+ of the chance P that the guess is right, Delta
the largest step of h; and these excesses have a mean of at most delta each, over all outputs. So if Delta m delta / 2
is at most F N and E h(Bin(r, q)) at most N, for every output, then h / N / (1 + F) has a mean of at most 1. (1 - q is
at most 1/2; the output decides r, h and N, so F must not depend on it.) h here is exponential, cut to keep that.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.arrays import Integers, Reals
from dpaudit.scores.nats import BINS

ENDS = (32, 27, 23, 20, 17, 15)  # parts of `nats.BINS` that are guessed at each end: a half of the canaries, to 1.7 %
BETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # ln of the factor that one more right guess is worth
EXTRA = 0.25  # F, over all the rows that a row bets for
ROUNDING = 1e-10  # of the logarithm of an e-value


def folded(counts: Integers) -> tuple[Integers, Integers]:
    """Right guesses and guesses of each row in each part from the middle outwards: (rows, BINS / 2) each."""
    half = BINS // 2
    right = counts[:, 0, half:] + counts[:, 1, half - 1 :: -1]
    return right, counts[:, :, half:].sum(axis=1) + counts[:, :, half - 1 :: -1].sum(axis=1)


def log_wealth(counts: Integers, epsilon: float, delta: float, reference: float, expected: Reals) -> Reals:
    """The logarithm of the e-process after each row, shape (rows,); it falls in epsilon.

    `reference` is the claim's epsilon and `expected` for how many rows each row bets: they choose the cuts for delta.
    The process is the mean over all `ENDS` and `BETS` of products of e-values.
    """
    from scipy.special import bdtr, bdtrc, logsumexp

    bets, share = np.tile(BETS, len(ENDS)), EXTRA / expected[:, None]
    outer = np.repeat([BINS // 2 - end for end in ENDS], len(BETS))
    right, made = (np.cumsum(each[:, ::-1], axis=1)[:, ::-1][:, outer] for each in folded(counts))
    q, at = 1.0 / (1.0 + math.exp(-epsilon)), 1.0 / (1.0 + math.exp(-reference))
    tilted = q * np.exp(bets) / (1.0 - q + q * np.exp(bets))
    with np.errstate(divide="ignore"):
        # the most that delta may add, as a part of F times h at its cut
        added = np.log(0.5 * delta / share * counts.sum(axis=(1, 2))[:, None]) + np.log(-np.expm1(-bets))
        cut = np.clip(np.floor((made * np.log1p(at * np.expm1(bets)) - added) / bets), 0.0, made)
        below = made * np.log1p(q * np.expm1(bets)) + np.log(bdtr(cut, made, tilted))
        mean = np.logaddexp(below, bets * cut + np.log(bdtrc(cut, made, q)))
    least = np.maximum(mean, np.where(cut > 0.0, bets * cut + added, -math.inf))
    paths = np.cumsum(bets * np.minimum(right, cut) - least - (delta > 0.0) * np.log1p(share) - ROUNDING, axis=0)
    return np.asarray(logsumexp(paths, axis=1) - math.log(bets.size))
