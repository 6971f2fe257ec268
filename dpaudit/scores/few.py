"""Evidence of a few independent trainings with many canaries each, or of their steps: products of e-values.

They fall as the claim promises less, so the largest claim of a family that is refuted is a bound (the proofs:
docs/statistics/training.md).

For curves, M is a prediction of the coins, as a multiple of the chance that a blind one has; I(claim) and the e-value
that follows from E ln M <= m I(claim) are those of the page. For claims with one epsilon, right guesses about canaries
are sharp where the mechanism answers each bit. Of curves too, with an h of 1, 2, 4, ..., where the claim's own bound on
the tail is at most 1/2, 1/4, 1/8, ...: where a leak is strong, that is stronger than nats.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Bools, Integers, Reals
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, ZeroConcentratedDP, calculus
from dpaudit.claims.profile import Lines
from dpaudit.claims.rounding import least
from dpaudit.errors import InvalidSpec
from dpaudit.losses.distribution import ALONE, poisson, repeated_epsilon, step_losses
from dpaudit.scores import intervals, one_run
from dpaudit.scores.counts import AttackCounts, epsilon_of_mu, mu_of
from dpaudit.scores.dependence import halves_p_value, halves_right
from dpaudit.scores.one_run import Guesses, curve_p_value, guesses_for, is_refuted, least_right, region_of
from dpaudit.scores.result import CERTIFIED, COMPOSED, INDEPENDENT, MODEL, Estimate

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
        return calculus.to_profile(claim).region
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
SURE_SHARE = (
    0.35  # of the canaries are guessed at each end where one row gives all away: less than half, as if two values
)
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
    return calculus.subsample_poisson(claim, rate) if rate < 1.0 else claim


def log_one_tells(counts: Integers, own: Claim, claim: Claim, alpha: float, steps: int, rate: float) -> Reals:
    """The logarithm of the mean of e-values of single rows, after each row: 1 for rows to come.

    A row's is 1 / P where enough guesses are right that it alone refutes `own`, at its share of `alpha`; else 0. P is
    the p-value of that number against `claim`. The shares of trainings fall so that there may be ever more of them.
    """
    from scipy.special import ndtri

    canaries, power = int(counts[0].sum()), np.log2(np.arange(len(counts)) // steps + 1).astype(int)
    shares = 1.0 / (steps * 2.0**power * (power + 1.0) * (power + 2.0))
    part = math.ceil((1.0 - float(ndtri(SURE_SHARE * rate)) / REACH) * BINS / 2.0)
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


def composed_epsilon(
    claim: Claim, value: float, times: int, delta: float, rate: float = 1.0
) -> tuple[float | None, str]:
    """The epsilon at `delta` of `times` steps, each the family's member with this parameter, and how it was found.

    Each step is of a Poisson sample at `rate`. None where this package has no composition of the form.

    >>> round(composed_epsilon(GaussianDP(0.1), 0.2, 100, 1e-5)[0], 2)
    10.0
    >>> round(composed_epsilon(GaussianDP(1.0), 1.0, 200, 1e-5, rate=0.1)[0], 2)
    9.97
    """
    if isinstance(claim, GaussianDP) and rate < 1.0:
        losses = step_losses(poisson(rate, value), ALONE, "below") if value > 0.0 else None
        epsilon = 0.0 if losses is None else repeated_epsilon(delta, losses, times)
        return epsilon, f"the losses of normal noise on Poisson samples at rate {rate:g} add up (Koskela et al. 2020)"
    if isinstance(claim, GaussianDP):
        run: Claim = calculus.compose_gaussian([claim.with_value(value)] * times)
        return run.epsilon_at(delta), "the squares of mu add up (Dong, Roth & Su 2022, corollary 3.3)"
    if isinstance(claim, ZeroConcentratedDP) and rate == 1.0:
        run = calculus.compose_zcdp([claim.with_value(value)] * times)
        return calculus.to_approximate(run, delta).epsilon, "rho adds up (Bun & Steinke 2016, lemma 1.7)"
    if claim.linear:
        step: Claim = ApproximateDP(value, claim.delta)
        sampled = calculus.subsample_poisson(step, rate) if rate < 1.0 else step
        at = calculus.compose_optimal(
            ApproximateDP(sampled.epsilon_at(sampled.delta), sampled.delta), times
        ).epsilon_at(delta)
        return None if at == math.inf else at, "the optimal composition (Kairouz, Oh & Viswanath 2015, theorem 3.3)"
    return None, "of this form no composition is known here"


WITHIN = (
    "trainings that are independent of each other given the ones before; in each, a fair coin of its own, independent "
    "of all else, for every canary; scores that do not use the coins. Canaries may depend on each other in any way"
)
EACH_STEP = (
    "a fair coin of its own, independent of all else, for every canary at every step, which no step before it sees; "
    "scores that do not use the coins. Canaries may depend on each other in any way, and a step on all steps before it"
)
ASSUMED = (
    "certified is what the steps of a training show together; the run's figure takes {steps} steps to leak {what}, "
    "and composes them by arithmetic: {how}"
)
INDEPENDENTLY = (
    "no canary's score tells anything of another's, in its row and between rows; spread_p_value is small where two "
    "halves of the canaries are told in the same rows: they share a coin, or rows leak unlike"
)
NORMAL = (
    "the scores of both sides are normal with one variance, up to one growing transformation "
    "for each row; the epsilon is that of N(mu, 1) against N(0, 1)"
)
SPLITS = (17, 24, 32, 40, 47)  # parts from which on scores are called in, each at its share of alpha
SURE = 4  # parts on both sides of the middle that a bound on mu leaves out: 38 % of the canaries
MOST = 40.0  # the largest parameter that is tried
ONE_TELLS = 0.1  # of the bets
MOST_ROWS = 10_000  # that are computed beforehand: many more would take longer than the trainings


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the trainings so far say about `claim`: an e-process, as counts of canaries in and out by rank.

    `counts` has shape (rows, 2, parts): a row for every training, or every step of every training. `steps` is how
    many rows a training has; how boldly a row bets follows from it and from the rows before. `delta` is where epsilon
    is stated.
    A canary that is in joins a row with probability `rate`, alone; the claim is about a row that it joined.
    """

    claim: Claim
    canaries: int
    alpha: float
    delta: float
    steps: int = 1
    rate: float = 1.0
    within: str = WITHIN
    counts: Integers = field(default_factory=lambda: np.zeros((0, 2, BINS), np.int64), repr=False, compare=False)
    halves: Reals = field(default_factory=lambda: np.zeros((0, 2)), repr=False, compare=False)

    def after(self, scores: Any, included: Any) -> "Evidence":
        """The evidence with another training's scores and coins: arrays of shape (canaries,) or (steps, canaries)."""
        rows, coins = np.atleast_2d(np.asarray(scores, np.float64)), np.atleast_2d(np.asarray(included, bool))
        if rows.shape != coins.shape or rows.shape[1] != self.canaries:
            raise InvalidSpec(
                f"scores and coins must have one shape, with {self.canaries} canaries; got {rows.shape}, {coins.shape}"
            )
        new = [binned(row, coin) for row, coin in zip(rows, coins, strict=True)]
        halves = [halves_right(row, coin) for row, coin in zip(rows, coins, strict=True)]
        return replace(self, counts=np.concatenate([self.counts, new]), halves=np.concatenate([self.halves, halves]))

    def log_path(self, claim: Claim) -> Reals:
        """The logarithm of the e-process against `claim` after each row; the bets are those against `self.claim`.

        Where a training has steps, a part `ONE_TELLS` of them is that a single row gives nearly all away.
        """
        path = self._together(claim)
        if self.steps == 1 or len(self.counts) == 0:
            return path
        alone = log_one_tells(self.counts, self.claim, claim, ONE_TELLS * self.alpha, self.steps, self.rate)
        return np.asarray(np.logaddexp(path + math.log1p(-ONE_TELLS), alone + math.log(ONE_TELLS)))

    def _together(self, claim: Claim) -> Reals:
        """The same of all rows together: products of e-values."""
        if len(self.counts) == 0:
            return np.zeros(self.steps)
        if self.claim.linear:
            return self._guessed(claim)
        most, against = (self.canaries * information(each, self.rate) for each in (self.claim, claim))
        b = floor(most, self._expected, self.alpha)
        path = np.cumsum(log_e_values(predicted(self.counts, self.rate), against, b))
        if claim.linear:  # an epsilon stated in addition to a curve
            other = self._guessed(claim)
        elif self.steps == 1:
            other = np.cumsum(log_doublings(self.counts, self.claim, claim, self.alpha))
        else:
            return path
        return np.asarray(np.logaddexp(path, other)) - math.log(2.0)

    def _guessed(self, claim: Claim) -> Reals:
        """The logarithm of the e-process of right guesses against a claim with one epsilon."""
        own, other = (joined(each, self.rate) for each in (self.claim, claim))
        at = own.epsilon_at(other.delta)
        return log_wealth(self.counts, other.epsilon_at(other.delta), other.delta, at, self._expected)

    @property
    def _expected(self) -> Reals:
        """How many rows each row bets for: those of 1, 2, 4, ... trainings, the block that it is in."""
        return self.steps * 2.0 ** np.ceil(np.log2(np.arange(len(self.counts)) // self.steps + 1))

    @property
    def e_value(self) -> float:
        """The e-process against the claim at the end of the last training, or at the step of it where it is largest."""
        return math.exp(min(700.0, float(self.log_path(self.claim)[-self.steps :].max())))

    @property
    def p_value(self) -> float:
        """The least error probability at which the claim is refuted: 1 over the largest e-value so far."""
        return math.exp(-max(0.0, float(self.log_path(self.claim).max())))

    @property
    def refuted(self) -> bool:
        """Whether the e-process was at least 1/alpha at any time."""
        return self.p_value <= self.alpha

    def largest(self, family: Callable[[float], Claim], whole: bool = False) -> float:
        """The largest parameter of a growing family that is refuted; 0.0 where there is none.

        `whole`: where a training ends, and of its rows together.
        """
        goal = -math.log(self.alpha)
        low, high = 0.0, MOST
        while high - low > 1e-5 * max(high, 1e-1):
            middle = (low + high) / 2.0 if low > 0.0 or high < 1e-3 else high / 4.0
            path = self._together(family(middle)) if whole else self.log_path(family(middle))
            refuted = float(path[self.steps - 1 :: self.steps].max() if whole else path.max()) >= goal
            low, high = (middle, high) if refuted else (low, middle)
        return low

    def composed(self, compose: int, delta: float) -> Estimate:
        """What the steps of a training show together, as a run of `compose` such steps: epsilon at `delta`.

        Only the product at the ends of trainings is used: the first steps may leak most. Let step t be mu_t-GDP, T
        steps in all, b the same for all. As I is concave in mu^2 (Guo, Shamai & Verdu 2005, theorem 1), the product of
        m I(mu_t) + b is at most (m I(mu) + b)^T, mu^2 the mean of mu_t^2: what is refuted is that the steps of a
        training, in squares of mu, come to no more than T mu^2. For other forms all steps are taken to leak alike.
        """
        times, at = validate.whole("compose", compose, least=1), validate.probability("delta", delta)
        own, linear, gaussian = self.claim.parameter, self.claim.linear, isinstance(self.claim, GaussianDP)
        family = (lambda epsilon: ApproximateDP(epsilon, self.delta)) if linear else self.claim.with_value
        value = self.largest(family, whole=True) if linear or self.claim.value is not None else 0.0
        epsilon, how = composed_epsilon(self.claim, value, times, at, self.rate)
        what = "as much on the mean of mu squared" if gaussian and self.rate == 1.0 else "as much each"
        assumption = f"{self.within}. {ASSUMED.format(steps=f'{times:,}', what=what, how=how)}"
        detail = {"steps": times, f"step_{own}_lower": value}
        return self._estimate("steps composed", COMPOSED, assumption, detail, lower=epsilon, delta=at)

    def estimates(self) -> tuple[Estimate, ...]:
        """The three lines: certified, given independent canaries, and an estimate by the Gaussian model."""
        detail: dict[str, Any] = {"e_value": self.e_value, "rows": len(self.counts)}
        if not self.claim.linear:
            detail["nats"] = float(predicted(self.counts, self.rate).sum() / max(1, len(self.counts)))
            if self.claim.value is not None:
                detail[f"{self.claim.parameter}_lower"] = self.largest(self.claim.with_value)
        lower = self.largest(lambda epsilon: ApproximateDP(epsilon, self.delta))
        decides = self._estimate("e-values", CERTIFIED, self.within, detail, lower=lower, p_value=self.p_value)
        return (decides, *self._pooled())

    def lines(self, compose: int | None) -> tuple[Estimate, ...]:
        """All that is stated: the three lines, and of `compose` steps what they show as a run, where that is known."""
        run = None if compose is None else self.composed(compose, self.delta)
        return self.estimates() + (() if run is None or run.lower is None else (run,))

    @property
    def halved(self) -> AttackCounts:
        """The counts where the higher half of each row is guessed in."""
        inside, outside = self.counts.sum(axis=0).tolist()
        high, low = slice(BINS // 2, None), slice(BINS // 2)
        return AttackCounts(tp=sum(inside[high]), fp=sum(outside[high]), tn=sum(outside[low]), fn=sum(inside[low]))

    def _estimate(self, method: str, label: str, assumption: str, detail: dict[str, Any], **values: Any) -> Estimate:
        """An estimate of epsilon, at `delta` and at this confidence where `values` do not say another."""
        usual = {"delta": self.delta, "confidence": 1.0 - self.alpha}
        return Estimate(
            method=method, label=label, quantity="epsilon", assumption=assumption, detail=detail, **usual | values
        )

    def _pooled(self) -> tuple[Estimate, ...]:
        """What all rows pooled show: the guesses of independent canaries, and normal scores of one variance."""
        from scipy.special import ndtri

        inside, outside = self.counts.sum(axis=0)
        if not (inside.any() and outside.any()):
            return ()
        errors = []
        for at in SPLITS:
            tp, fp = int(inside[at:].sum()), int(outside[at:].sum())
            judged = AttackCounts(tp=tp, fp=fp, tn=int(outside.sum()) - fp, fn=int(inside.sum()) - tp)
            fpr, fnr = intervals.rectangle(judged, self.alpha / len(SPLITS))
            errors.append((fpr, min(1.0, 1.0 - (1.0 - fnr - (1.0 - self.rate) * fpr) / self.rate)))
        right, guesses = folded(self.counts)
        detail = {"spread_p_value": halves_p_value(self.halves)}
        if isinstance(self.claim, GaussianDP):
            sure = Guesses(int(right[:, SURE:].sum()), int(guesses[:, SURE:].sum()), int(guesses.sum()), fixed=True)
            sampled = max(mu_of(*each) for each in errors)
            detail["mu_lower"] = one_run.mu_lower(sure, self.alpha) if self.rate == 1.0 else sampled
        below = np.cumsum(outside) - outside / 2.0
        area = float((inside * below).sum()) / max(1.0, float(inside.sum()) * float(outside.sum()))
        mu = math.sqrt(2.0) * float(ndtri(min(1.0 - 1e-12, max(0.5, 0.5 + (area - 0.5) / self.rate))))
        lower = max(intervals.shown(*each, self.delta) for each in errors)
        return (
            self._estimate("pooled", INDEPENDENT, INDEPENDENTLY, detail, lower=lower),
            self._estimate("gaussian", MODEL, NORMAL, {"mu": mu}, value=epsilon_of_mu(mu, self.delta), confidence=None),
        )


def begin(
    claim: Claim,
    canaries: int,
    alpha: float,
    *,
    delta: float | None = None,
    steps: int | None = None,
    rate: float = 1.0,
) -> Evidence:
    """No evidence yet: `.after(scores, included)` adds a training, any number of times.

    `delta` is where epsilon is stated: the claim's, if it has one epsilon. With `steps`, the claim is that of one step,
    and a training has that many; where the audit itself lets a canary that is in join a step with probability `rate`,
    alone, it is that of a step before sampling, such as `GaussianDP(1 / noise_multiplier)`.

    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random((20, 1_000)) < 0.5
    >>> evidence = begin(GaussianDP(0.2), 1_000, 0.05, delta=1e-5, steps=20)
    >>> evidence = evidence.after(0.4 * coins + rng.normal(size=coins.shape), coins)
    >>> evidence.refuted, round(evidence.composed(20, 1e-5).detail["step_mu_lower"], 2)
    (True, 0.36)
    """
    at = claim.delta if delta is None or claim.linear else validate.probability("delta", delta)
    count, error = validate.whole("canaries", canaries, least=1), validate.open_probability("alpha", alpha)
    rows, within = (1, WITHIN) if steps is None else (validate.whole("steps", steps, least=1), EACH_STEP)
    share = validate.positive("rate", validate.probability("rate", rate))
    return Evidence(claim, count, error, at, rows, share, within)


# --- what this many canaries could show if the scores gave every coin away: known before anything is trained ---


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
    asked: dict[str, Any] = {"trainings": trainings, "steps": steps}
    if alone := trainings == 1 and steps is None:
        bound = one_run.weighted_lower(np.ones(canaries, dtype=bool), delta, alpha)[0]
    else:
        best = _best_case(begin(claim, canaries, alpha, delta=delta, steps=steps), trainings)
        bound = best.largest(lambda epsilon: ApproximateDP(epsilon, delta))
    return bound, _least(lambda number: bool(refutable(number, claim, alpha, **asked)), 30 if alone else 20)


def refutable(
    canaries: int, claim: Claim, alpha: float, *, trainings: int = 1, steps: int | None = None
) -> bool | None:
    """Whether trainings that give every coin away would refute the claim; None where `MOST_ROWS` do not, of more rows.

    Where rows are multiplied, one canary gives nothing away: a rank among one says nothing.
    """
    if trainings > 1 or steps is not None:
        empty = begin(claim, canaries, alpha, steps=steps)
        refuted = canaries > 1 and _best_case(empty, trainings).refuted
        return None if canaries > 1 and not refuted and trainings * empty.steps > MOST_ROWS else refuted
    if claim.linear:
        epsilon, delta = float(claim.epsilon_at(float(claim.delta))), float(claim.delta)
        used = one_run.design(canaries, epsilon, delta, alpha)
        return one_run.weighted_p_value(used, used.total, canaries, epsilon, delta) <= alpha
    number = one_run.guesses_for(claim, canaries, alpha)
    return is_refuted(Guesses(number, number, canaries, fixed=True), region_of(claim), alpha)


def _best_case(empty: Evidence, trainings: int) -> Evidence:
    """The evidence of this many trainings, at most `MOST_ROWS` rows of them, each of which gives every coin away."""
    ranks = np.arange(empty.canaries, dtype=np.float64)
    rows = min(trainings * empty.steps, MOST_ROWS)
    return replace(empty, counts=np.repeat(binned(ranks, ranks >= empty.canaries // 2)[None], rows, axis=0))


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    """The least number that is enough, as all above it are; None where not even 2^most is."""
    power = next((number for number in (1 << k for k in range(most + 1)) if enough(number)), None)
    return None if power is None else least(enough, power // 2, power)
