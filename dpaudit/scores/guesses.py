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
from dpaudit.scores.nats import BINS, CENTRES

ENDS = (32, 27, 23, 20, 17, 15)  # parts of `nats.BINS` that are guessed at each end: a half of the canaries, to 1.7 %
BETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # ln of the factor that one more right guess is worth
SHIFTS = 2.0 ** (np.arange(-4, 7) / 2.0)  # of normal noise: a guess is worth its log odds beyond the claim's epsilon
EXTRA = 0.5  # F, over all rows
ROUNDING = 1e-10  # of the logarithm of an e-value


def folded(counts: Integers) -> tuple[Integers, Integers]:
    """Right guesses and guesses of each row in each part from the middle outwards: (rows, BINS / 2) each."""
    half = BINS // 2
    right = counts[:, 0, half:] + counts[:, 1, half - 1 :: -1]
    return right, counts[:, :, half:].sum(axis=1) + counts[:, :, half - 1 :: -1].sum(axis=1)


def log_wealth(counts: Integers, epsilon: float, delta: float, reference: float, planned: int) -> Reals:
    """The logarithm of the e-process after each row, shape (rows,); it falls in epsilon.

    `reference` is the claim's epsilon and `planned` the number of rows to come, by which bets and cuts are chosen. The
    process is the mean over all bets of products of e-values: half of it where all guesses of an end are worth the
    same, half where a guess is worth more the farther out its score.
    """
    from scipy.special import logsumexp

    right, made = folded(counts)
    odds = 1.0 / (1.0 + math.exp(-epsilon)), 1.0 / (1.0 + math.exp(-reference))
    share = EXTRA / planned if delta > 0.0 else 0.0
    with np.errstate(divide="ignore"):
        steepest = np.log(0.5 * delta / (share or 1.0) * counts.sum(axis=(1, 2)))[:, None]
    paths = [np.cumsum(each(right, made, odds, steepest) - math.log1p(share), axis=0) for each in (_equal, _shifted)]
    return np.asarray(logsumexp([logsumexp(path, axis=1) - math.log(2.0 * path.shape[1]) for path in paths], axis=0))


def _equal(right: Integers, made: Integers, odds: tuple[float, float], steepest: Reals) -> Reals:
    """ln h / N of each row for each of `ENDS` and `BETS`, by the exact law of the cut count.

    `steepest` is ln (m delta / 2 F): that much larger than h at its cut, times the part of a step, N must be.
    """
    from scipy.special import bdtr, bdtrc

    bets, (q, _) = np.tile(BETS, len(ENDS)), odds
    outer = np.repeat([right.shape[1] - end for end in ENDS], len(BETS))
    v, r = (np.cumsum(each[:, ::-1], axis=1)[:, ::-1][:, outer] for each in (right, made))
    grown = np.log1p(np.array(odds)[:, None] * np.expm1(bets)) * r[:, None]
    lost = steepest + np.log(-np.expm1(-bets))
    cut = np.clip(np.floor((grown[:, 1] - lost) / bets), 0.0, r)
    tilted = q * np.exp(bets) / (1.0 - q + q * np.exp(bets))
    with np.errstate(divide="ignore"):
        below, above = grown[:, 0] + np.log(bdtr(cut, r, tilted)), bets * cut + np.log(bdtrc(cut, r, q))
    least = np.where(cut > 0.0, bets * cut + lost, -math.inf)
    return np.asarray(bets * np.minimum(v, cut) - np.maximum(np.logaddexp(below, above), least) - ROUNDING)


def _shifted(right: Integers, made: Integers, odds: tuple[float, float], steepest: Reals) -> Reals:
    """The same for each of `SHIFTS`; what the cut takes off the mean is not counted."""
    bets = np.maximum(0.0, SHIFTS[:, None] * CENTRES[BINS // 2 :] - math.log(odds[1] / (1.0 - odds[1])))
    grown = made @ np.log1p(np.array(odds)[:, None, None] * np.expm1(bets)).transpose(0, 2, 1)
    lost = steepest + np.log(np.maximum(1e-300, -np.expm1(-bets.max(axis=1))))
    cut = np.clip(grown[1] - lost, 0.0, made @ bets.T)
    least = np.where(cut > 0.0, cut + lost, -math.inf)
    return np.asarray(np.minimum(right @ bets.T, cut) - np.maximum(grown[0], least) - ROUNDING)
