"""E-values of trainings, or of steps, against a claim: by information in nats, and by right guesses.

For curves, M is a prediction of the coins, as a multiple of the chance that a blind one has; I(claim) and the e-value
that follows from E ln M <= m I(claim) are those of docs/statistics/training.md. For claims with one epsilon, right
guesses about canaries are sharp where the mechanism answers each bit. Of curves too, with an h of 1, 2, 4, ..., where
the claim's own bound on the tail is at most 1/2, 1/4, 1/8, ...: where a leak is strong, that is stronger than nats.
"""

import math
from functools import lru_cache

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Reals
from dpaudit.claims import Claim
from dpaudit.claims.calculus import subsample_poisson, to_profile
from dpaudit.claims.profile import Lines
from dpaudit.scores.one_run import Guesses, curve_p_value, guesses_for, is_refuted, least_right, region_of

BINS, REACH = 64, 4.0  # parts of the canaries: equal parts of the normal scores of their ranks, from -4 to 4
CENTRES = (np.arange(BINS) + 0.5) / BINS * 2.0 * REACH - REACH
STRENGTHS = 2.0 ** (np.arange(-24, 17) / 4.0)  # of the predictions that are mixed: standard deviations of a shift
KEPT = 0.8  # of b is what the mixture with a blind prediction may lose
LEAST = 1.0  # of b
SLOPES, RAREST = 257, 1e-12  # lines that stand for a curve, and the delta of the steepest


@lru_cache(maxsize=4096)
def information(claim: Claim, rate: float = 1.0) -> float:
    """The most information in an output about one fair coin, in nats: ln 2 where it is all. Rounded up.

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
    logs = counts[:, 0] @ log_expit(odds).T + counts[:, 1] @ log_expit(-odds).T
    logs += counts.sum(axis=(1, 2))[:, None] * math.log(2.0)
    before = np.concatenate([[0.0], np.asarray(logsumexp(np.cumsum(logs, axis=0), axis=1)) - math.log(STRENGTHS.size)])
    return np.asarray(np.diff(before))


def floor(most: float, rows: Reals, alpha: float) -> Reals:
    """The b that makes the e-values of this many rows grow fastest where the claim is false by just enough.

    `most` is m I(claim). The standard deviation of an e-value is then about sqrt(2 ln(1/alpha) / rows): what is known
    of ln M near the claim is that its mean is m I and its variance twice that.
    """
    return np.maximum(LEAST, np.sqrt(most * rows / math.log(1.0 / alpha)) - most)


def log_e_values(log_predictions: Reals, most: float, b: Reals) -> Reals:
    """The logarithms of the e-values of rows, from their ln M, where m I(claim) is `most`."""
    lost = KEPT * b
    hedged = b + np.logaddexp(-lost, np.log(-np.expm1(-lost)) + log_predictions)
    return np.asarray(np.log(hedged) - np.log(most + b))


ENDS = (32, 27, 23, 20, 17, 15)  # parts of `BINS` that are guessed at each end: a half of the canaries, to 1.7 %
BETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # ln of the factor that one more right guess is worth
EXTRA = 0.25  # F, over all the rows that a row bets for
SURE = 0.35  # of the canaries are guessed at each end where one row gives all away: less than half, as if two values
HALVINGS = 8  # of the bound at which h is doubled
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
    right, guesses = (np.cumsum(each[:, ::-1], axis=1)[:, ::-1][:, outer] for each in folded(counts))
    q, at = 1.0 / (1.0 + math.exp(-epsilon)), 1.0 / (1.0 + math.exp(-reference))
    tilted = q * np.exp(bets) / (1.0 - q + q * np.exp(bets))
    with np.errstate(divide="ignore"):
        # the most that delta may add, as a part of F times h at its cut
        added = np.log(0.5 * delta / share * counts.sum(axis=(1, 2))[:, None]) + np.log(-np.expm1(-bets))
        cut = np.clip(np.floor((guesses * np.log1p(at * np.expm1(bets)) - added) / bets), 0.0, guesses)
        below = guesses * np.log1p(q * np.expm1(bets)) + np.log(bdtr(cut, guesses, tilted))
        mean = np.logaddexp(below, bets * cut + np.log(bdtrc(cut, guesses, q)))
    least = np.maximum(mean, np.where(cut > 0.0, bets * cut + added, -math.inf))
    paths = np.cumsum(bets * np.minimum(right, cut) - least - (delta > 0.0) * np.log1p(share) - ROUNDING, axis=0)
    return np.asarray(logsumexp(paths, axis=1) - math.log(bets.size))


@lru_cache(maxsize=64)
def _steps(claim: Claim, canaries: int, alpha: float) -> tuple[int, int, tuple[int, ...]]:
    """The part of `BINS` beyond which is guessed, how many canaries that is, and the v at which h doubles."""
    ranks = np.arange(canaries, dtype=np.float64)
    guesses = np.cumsum(folded(binned(ranks, ranks < 0.0)[None])[1][0, ::-1])[::-1]
    part = int(np.argmin(abs(guesses - guesses_for(claim, canaries, alpha)) + canaries * (guesses == 0)))
    r, region = int(guesses[part]), region_of(claim)
    doublings: list[int] = []
    for k in range(1, HALVINGS + 1):
        doublings.append(least_right(region, r, canaries, 0.5**k, doublings[-1] - 1 if doublings else r // 2))
    return part, r, tuple(v for v in doublings if v <= r)


@lru_cache(maxsize=1024)
def _mean(claim: Claim, canaries: int, guesses: int, steps: tuple[int, ...]) -> float:
    """The bound on E h(V) under a claim."""
    region, mean, j = region_of(claim), 1.0, 0
    for k, v in enumerate(steps):
        while j <= HALVINGS and is_refuted(Guesses(v, guesses, canaries, fixed=True), region, 0.5 ** (j + 1)):
            j += 1
        mean += 2.0**k * 0.5**j
    return mean


@lru_cache(maxsize=64)
def joined(claim: Claim, rate: float) -> Claim:
    """What a claim becomes where a canary that is in joins a row with probability `rate`, alone."""
    return subsample_poisson(claim, rate) if rate < 1.0 else claim


def log_one_tells(counts: Integers, own: Claim, claim: Claim, alpha: float, steps: int, rate: float) -> Reals:
    """The logarithm of the mean of e-values of single rows, after each row: 1 for rows to come.

    A row's is 1 / P where enough guesses are right that it alone refutes `own`, at its share of `alpha`; else 0. P is
    the p-value of that number against `claim`. The shares of trainings fall so that there may be ever more of them.
    """
    from scipy.special import ndtri

    canaries, power = int(counts[0].sum()), np.log2(np.arange(len(counts)) // steps + 1).astype(int)
    shares = 1.0 / (steps * 2.0**power * (power + 1.0) * (power + 2.0))
    part = math.ceil((1.0 - float(ndtri(SURE * rate)) / REACH) * BINS / 2.0)
    used = counts if rate == 1.0 else counts * (np.arange(BINS) >= BINS // 2)  # not all that are in have joined
    right, guesses = (each[:, part - BINS // 2 :].sum(axis=1) for each in folded(used))
    ranks = np.arange(canaries, dtype=np.float64)
    r = int(binned(ranks, ranks < 0.0)[1, part:].sum()) * (2 if rate == 1.0 else 1)
    worth, mine, other = np.ones(len(counts)), region_of(joined(own, rate)), joined(claim, rate)
    for each in np.unique(power):
        level = alpha * float(shares[power == each][0])
        v = least_right(mine, r, canaries, level, r // 2)
        if v > r:  # no number of right guesses would do: no bet
            continue
        won = (power == each) & (right - np.maximum(0, guesses - r) >= v)
        worth[power == each] = 0.0
        worth[won] = 1.0 / curve_p_value(Guesses(v, r, canaries, fixed=True), other) if won.any() else 0.0
    return np.asarray(np.log(1.0 + np.cumsum(shares * (worth - 1.0))))


def log_doublings(counts: Integers, own: Claim, claim: Claim, alpha: float) -> Reals:
    """The logarithms of the e-values of rows against `claim`, with the guesses and the h that suit the claim `own`.

    Where equal scores change how many are beyond a part, the missing guesses count as wrong, one too many as right.
    """
    canaries = int(counts[0].sum())
    part, r, steps = _steps(own, canaries, alpha)
    right, guesses = (each[:, part:].sum(axis=1) for each in folded(counts))
    doubled = np.searchsorted(np.array(steps), right - np.maximum(0, guesses - r), side="right")
    return np.asarray(doubled * math.log(2.0) - math.log(_mean(claim, canaries, r, steps)) - 1e-9)
