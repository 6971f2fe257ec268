"""How much the scores of a training, or of one step, may tell about the coins of its canaries, in nats.

M is a prediction of the coins, as a multiple of the chance that a blind one has; I(claim) and the e-value that follows
from E ln M <= m I(claim) are those of docs/statistics/training.md.
"""

import math
from functools import lru_cache

import numpy as np

from dpaudit.arrays import Bools, Integers, Reals
from dpaudit.claims import Claim
from dpaudit.claims.conversion import to_profile
from dpaudit.claims.lines import Lines

BINS, REACH = 64, 4.0  # parts of the canaries: equal parts of the normal scores of their ranks, from -4 to 4
CENTRES = (np.arange(BINS) + 0.5) / BINS * 2.0 * REACH - REACH
STRENGTHS = 2.0 ** (np.arange(-24, 17) / 4.0)  # of the predictions that are mixed: standard deviations of a shift
KEPT = 0.8  # of b is what the mixture with a blind prediction may lose
LEAST = 1.0  # of b
SLOPES, RAREST = 257, 1e-12  # lines that stand for a curve, and the delta of the steepest


@lru_cache(maxsize=4096)
def information(claim: Claim, rate: float = 1.0) -> float:
    """The most that an output tells about one fair coin, in nats: ln 2 where it tells all. Rounded up.

    >>> from dpaudit.claims import ApproximateDP, GaussianDP
    >>> round(information(GaussianDP(0.2)), 5), round(information(ApproximateDP(0.0, 1e-3)), 6)
    (0.00498, 0.000693)
    """
    from scipy.special import rel_entr

    corners = np.array([(0.0, 0.0), *_region(claim).vertices()])
    q, p = np.maximum(0.0, np.diff(corners, axis=0).T)
    p = rate * p + (1.0 - rate) * q
    middle = (p + q) / 2.0
    return min(math.log(2.0), float((rel_entr(p, middle) + rel_entr(q, middle)).sum() / 2.0) * (1.0 + 1e-9) + 1e-12)


def _region(claim: Claim) -> Lines:
    """Lines that hold the claim's region: its own, or for a curve those of `SLOPES` epsilons."""
    steepest = claim.epsilon_at(RAREST)
    if claim.value is None or claim.linear or steepest == math.inf:
        return to_profile(claim).region
    return Lines.of((epsilon, claim.delta_at(epsilon)) for epsilon in np.linspace(0.0, steepest, SLOPES).tolist())


def binned(scores: Reals, included: Bools) -> Integers:
    """How many canaries are in and out in each of `BINS` parts by rank, ties at their middle: shape (2, BINS).

    The parts are made of the scores alone; equal scores stay together.

    >>> binned(np.array([1.0, 3.0, 2.0, 2.0]), np.array([False, True, True, False]))[0].nonzero()[0]
    array([32, 41])
    """
    from scipy.special import ndtri

    _, inverse, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    normal = ndtri((np.cumsum(sizes) - sizes / 2.0) / scores.size)
    places = np.clip((normal + REACH) / (2.0 * REACH) * BINS, 0, BINS - 1).astype(np.int64)[inverse]
    return np.stack([np.bincount(places[side], minlength=BINS) for side in (included, ~included)]).astype(np.int64)


def predicted(counts: Integers, rate: float = 1.0) -> Reals:
    """ln M of each of `counts`, shape (rows, 2, BINS), by a mixture of predictions that learns from the rows before.

    A canary's log odds are those of normal noise and a shift by one of `STRENGTHS`, at its normal score; a row's
    weights of the strengths are those that the rows before left. So every row's M has mean 1 over its own coins, given
    all before.
    """
    return _predicted(counts.tobytes(), rate)


@lru_cache(maxsize=4)  # bounds are searched among many claims, on one prediction
def _predicted(raw: bytes, rate: float) -> Reals:
    from scipy.special import log_expit, logsumexp

    counts, shift = np.frombuffer(raw, np.int64).reshape(-1, 2, BINS), STRENGTHS[:, None]
    odds = shift * CENTRES + (rate - 1.0) * shift**2 / 2.0
    if rate < 1.0:
        odds = np.logaddexp(math.log1p(-rate), math.log(rate) + odds)
    told = counts[:, 0] @ log_expit(odds).T + counts[:, 1] @ log_expit(-odds).T
    told += counts.sum(axis=(1, 2))[:, None] * math.log(2.0)
    before = np.concatenate([[0.0], np.asarray(logsumexp(np.cumsum(told, axis=0), axis=1)) - math.log(STRENGTHS.size)])
    return np.asarray(np.diff(before))


def floor(most: float, rows: Reals, alpha: float) -> Reals:
    """The b that makes the e-values of so many rows grow fastest where the claim is false by just enough.

    `most` is m I(claim). The standard deviation of an e-value is then about sqrt(2 ln(1/alpha) / rows): what is known
    of ln M near the claim is that its mean is m I and its variance twice that.
    """
    return np.maximum(LEAST, np.sqrt(most * rows / math.log(1.0 / alpha)) - most)


def log_e_values(told: Reals, most: float, b: Reals) -> Reals:
    """The logarithms of the e-values of rows, from their ln M, where m I(claim) is `most`."""
    lost = KEPT * b
    hedged = b + np.logaddexp(-lost, np.log(-np.expm1(-lost)) + told)
    return np.asarray(np.log(hedged) - np.log(most + b))
