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
from dpaudit.scores.nats import BINS, CENTRES

ENDS = (32, 27, 23, 20, 17, 15)  # parts of `nats.BINS` that are guessed at each end: a half of the canaries, to 1.7 %
BETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # ln of the factor that one more right guess is worth
SHIFTS = 2.0 ** (np.arange(-4, 7) / 2.0)  # of normal noise: a guess is worth its log odds beyond the claim's epsilon
EXTRA = 0.2  # of an e-value, over all rows, may be lost to delta
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
    excess = 0.5 * delta * counts.sum(axis=(1, 2))
    paths = [np.cumsum(each(right, made, odds, excess, planned), axis=0) for each in (_equal, _shifted)]
    return np.asarray(logsumexp([logsumexp(path, axis=1) - math.log(2.0 * path.shape[1]) for path in paths], axis=0))


def _equal(right: Integers, made: Integers, odds: tuple[float, float], excess: Reals, planned: int) -> Reals:
    """The logarithms of e-values of each row for each of `ENDS` and `BETS`, by the exact law of the cut count."""
    from scipy.special import bdtr, bdtrc

    bets, (q, _) = np.tile(BETS, len(ENDS)), odds
    outer = np.repeat([right.shape[1] - end for end in ENDS], len(BETS))
    v, r = (np.cumsum(each[:, ::-1], axis=1)[:, ::-1][:, outer] for each in (right, made))
    grown = np.log1p(np.array(odds)[:, None] * np.expm1(bets)) * r[:, None]
    cut, extra = _cut(grown[:, 1], bets, excess, planned)
    cut = np.clip(np.floor(cut / bets), 0.0, r)
    extra = np.where(cut > 0.0, extra, 0.0)
    tilted = q * np.exp(bets) / (1.0 - q + q * np.exp(bets))
    with np.errstate(divide="ignore"):
        below = grown[:, 0] + np.log(bdtr(cut, r, tilted))
        above = bets * cut + np.log(bdtrc(cut, r, q) + extra)
    return np.asarray(bets * np.minimum(v, cut) - np.logaddexp(below, above) - ROUNDING)


def _shifted(right: Integers, made: Integers, odds: tuple[float, float], excess: Reals, planned: int) -> Reals:
    """The same for each of `SHIFTS`; what the cut takes off the mean is not counted."""
    bets = np.maximum(0.0, SHIFTS[:, None] * CENTRES[BINS // 2 :] - math.log(odds[1] / (1.0 - odds[1])))
    grown = made @ np.log1p(np.array(odds)[:, None, None] * np.expm1(bets)).transpose(0, 2, 1)
    cut, extra = _cut(grown[1], bets.max(axis=1), excess, planned)
    cut = np.clip(cut, 0.0, made @ bets.T)
    with np.errstate(divide="ignore"):
        lost = np.log(np.where(cut > 0.0, extra, 0.0))
    return np.asarray(np.minimum(right @ bets.T, cut) - np.logaddexp(grown[0], cut + lost) - ROUNDING)


def _cut(mean: Reals, step: Reals, excess: Reals, planned: int) -> tuple[Reals, Reals]:
    """Where ln h is cut, so that delta adds `EXTRA` / `planned` of its mean; and what it adds, as a part of that h."""
    extra = excess[:, None] * -np.expm1(-step)
    with np.errstate(divide="ignore"):
        return mean + np.log(EXTRA / planned) - np.log(extra), extra
