"""Evidence of a few independent trainings with many canaries each, or of their steps: products of e-values.

They fall as the claim promises less, so the largest claim of a family that is refuted is a bound (the proofs:
docs/statistics/training.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Integers, Reals
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, ZeroConcentratedDP
from dpaudit.claims.calculus import compose_gaussian, compose_optimal, compose_zcdp, subsample_poisson, to_approximate
from dpaudit.claims.rounding import least
from dpaudit.errors import InvalidSpec
from dpaudit.losses.distribution import ALONE, poisson, repeated_epsilon, step_losses
from dpaudit.scores import evalues, many_run, one_run, weighted
from dpaudit.scores.counts import AttackCounts, epsilon_of_mu, mu_of
from dpaudit.scores.dependence import halves_p_value, halves_right
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.question import curved
from dpaudit.scores.result import CERTIFIED, COMPOSED, INDEPENDENT, MODEL, Estimate


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
        run: Claim = compose_gaussian([claim.with_value(value)] * times)
        return run.epsilon_at(delta), "the squares of mu add up (Dong, Roth & Su 2022, corollary 3.3)"
    if isinstance(claim, ZeroConcentratedDP) and rate == 1.0:
        run = compose_zcdp([claim.with_value(value)] * times)
        return to_approximate(run, delta).epsilon, "rho adds up (Bun & Steinke 2016, lemma 1.7)"
    if claim.linear:
        step: Claim = ApproximateDP(value, claim.delta)
        sampled = subsample_poisson(step, rate) if rate < 1.0 else step
        at = compose_optimal(ApproximateDP(sampled.epsilon_at(sampled.delta), sampled.delta), times).epsilon_at(delta)
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
    counts: Integers = field(
        default_factory=lambda: np.zeros((0, 2, evalues.BINS), np.int64), repr=False, compare=False
    )
    halves: Reals = field(default_factory=lambda: np.zeros((0, 2)), repr=False, compare=False)

    def after(self, scores: Any, included: Any) -> "Evidence":
        """The evidence with another training's scores and coins: arrays of shape (canaries,) or (steps, canaries)."""
        rows, coins = np.atleast_2d(np.asarray(scores, np.float64)), np.atleast_2d(np.asarray(included, bool))
        if rows.shape != coins.shape or rows.shape[1] != self.canaries:
            raise InvalidSpec(
                f"scores and coins must have one shape, with {self.canaries} canaries; got {rows.shape}, {coins.shape}"
            )
        new = [evalues.binned(row, coin) for row, coin in zip(rows, coins, strict=True)]
        halves = [halves_right(row, coin) for row, coin in zip(rows, coins, strict=True)]
        return replace(self, counts=np.concatenate([self.counts, new]), halves=np.concatenate([self.halves, halves]))

    def log_path(self, claim: Claim) -> Reals:
        """The logarithm of the e-process against `claim` after each row; the bets are those against `self.claim`.

        Where a training has steps, a part `ONE_TELLS` of them is that a single row gives nearly all away.
        """
        path = self._together(claim)
        if self.steps == 1 or len(self.counts) == 0:
            return path
        alone = evalues.log_one_tells(self.counts, self.claim, claim, ONE_TELLS * self.alpha, self.steps, self.rate)
        return np.asarray(np.logaddexp(path + math.log1p(-ONE_TELLS), alone + math.log(ONE_TELLS)))

    def _together(self, claim: Claim) -> Reals:
        """The same of all rows together: products of e-values."""
        if len(self.counts) == 0:
            return np.zeros(self.steps)
        if self.claim.linear:
            return self._guessed(claim)
        most, against = (self.canaries * evalues.information(each, self.rate) for each in (self.claim, claim))
        b = evalues.floor(most, self._expected, self.alpha)
        path = np.cumsum(evalues.log_e_values(evalues.predicted(self.counts, self.rate), against, b))
        if claim.linear:  # an epsilon stated in addition to a curve
            other = self._guessed(claim)
        elif self.steps == 1:
            other = np.cumsum(evalues.log_doublings(self.counts, self.claim, claim, self.alpha))
        else:
            return path
        return np.asarray(np.logaddexp(path, other)) - math.log(2.0)

    def _guessed(self, claim: Claim) -> Reals:
        """The logarithm of the e-process of right guesses against a claim with one epsilon."""
        own, other = (evalues.joined(each, self.rate) for each in (self.claim, claim))
        at = own.epsilon_at(other.delta)
        return evalues.log_wealth(self.counts, other.epsilon_at(other.delta), other.delta, at, self._expected)

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
        return (self._certified(), *self._others())

    def _certified(self) -> Estimate:
        detail: dict[str, Any] = {"e_value": self.e_value, "rows": len(self.counts)}
        if not self.claim.linear:
            detail["nats"] = float(evalues.predicted(self.counts, self.rate).sum() / max(1, len(self.counts)))
            if self.claim.value is not None:
                detail[f"{self.claim.parameter}_lower"] = self.largest(self.claim.with_value)
        lower = self.largest(lambda epsilon: ApproximateDP(epsilon, self.delta))
        return self._estimate("e-values", CERTIFIED, self.within, detail, lower=lower, p_value=self.p_value)

    def _estimate(self, method: str, label: str, assumption: str, detail: dict[str, Any], **values: Any) -> Estimate:
        """An estimate of epsilon, at `delta` and at this confidence where `values` do not say another."""
        usual = {"delta": self.delta, "confidence": 1.0 - self.alpha}
        return Estimate(
            method=method, label=label, quantity="epsilon", assumption=assumption, detail=detail, **usual | values
        )

    def _others(self) -> tuple[Estimate, ...]:
        """What all rows pooled show: the guesses of independent canaries, and normal scores of one variance."""
        from scipy.special import ndtri

        inside, outside = self.counts.sum(axis=0)
        if not (inside.any() and outside.any()):
            return ()
        errors = []
        for at in SPLITS:
            tp, fp = int(inside[at:].sum()), int(outside[at:].sum())
            judged = AttackCounts(tp=tp, fp=fp, tn=int(outside.sum()) - fp, fn=int(inside.sum()) - tp)
            fpr, fnr = many_run.rectangle(judged, self.alpha / len(SPLITS))
            errors.append((fpr, min(1.0, 1.0 - (1.0 - fnr - (1.0 - self.rate) * fpr) / self.rate)))
        right, guesses = evalues.folded(self.counts)
        detail = {"spread_p_value": halves_p_value(self.halves)}
        if isinstance(self.claim, GaussianDP):
            sure = Guesses(int(right[:, SURE:].sum()), int(guesses[:, SURE:].sum()), int(guesses.sum()), fixed=True)
            sampled = max(mu_of(*each) for each in errors)
            detail["mu_lower"] = one_run.mu_lower(sure, self.alpha) if self.rate == 1.0 else sampled
        below = np.cumsum(outside) - outside / 2.0
        area = float((inside * below).sum()) / max(1.0, float(inside.sum()) * float(outside.sum()))
        mu = math.sqrt(2.0) * float(ndtri(min(1.0 - 1e-12, max(0.5, 0.5 + (area - 0.5) / self.rate))))
        lower = max(many_run.shown(*each, self.delta) for each in errors)
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
    if trainings == 1 and steps is None:
        bound = weighted.epsilon_lower(np.ones(canaries, dtype=bool), delta, alpha)[0]
        return bound, _least(lambda number: refutable(number, claim, alpha), 30)

    rows, asked = trainings * (steps or 1), (claim, delta, alpha, steps)
    bound = _best_case(canaries, rows, *asked).largest(lambda epsilon: ApproximateDP(epsilon, delta))
    return bound, _least(lambda number: number > 1 and _best_case(number, rows, *asked).refuted, 20)


def refutable_by_rows(
    canaries: int, claim: Claim, delta: float, alpha: float, *, trainings: int, steps: int | None
) -> bool | None:
    """Whether trainings that give every coin away would refute the claim; None where `MOST_ROWS` do not, of more rows.

    One canary a row gives nothing away: a rank among one says nothing.
    """
    rows = trainings * (steps or 1)
    refuted = canaries > 1 and _best_case(canaries, rows, claim, delta, alpha, steps).refuted
    return None if canaries > 1 and not refuted and rows > MOST_ROWS else refuted


def _best_case(canaries: int, rows: int, claim: Claim, delta: float, alpha: float, steps: int | None) -> Evidence:
    """The evidence of this many rows, at most `MOST_ROWS`, each of which gives every coin away."""
    ranks = np.arange(canaries, dtype=np.float64)
    counts = np.repeat(evalues.binned(ranks, ranks >= canaries // 2)[None], min(rows, MOST_ROWS), axis=0)
    return replace(begin(claim, canaries, alpha, delta=delta, steps=steps), counts=counts)


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    """The least number that is enough, as all above it are; None where not even 2^most is."""
    power = next((number for number in (1 << k for k in range(most + 1)) if enough(number)), None)
    return None if power is None else least(enough, power // 2, power)


def refutable(canaries: int, claim: Claim, alpha: float) -> bool:
    """Whether this many canaries of one training would refute the claim at `alpha`, had every guess been right."""
    if not curved(claim):
        epsilon, delta = float(claim.epsilon_at(float(claim.delta))), float(claim.delta)
        used = weighted.design(canaries, epsilon, delta, alpha)
        return weighted.p_value(used, used.total, canaries, epsilon, delta) <= alpha
    number = one_run.guesses_for(claim, canaries, alpha)
    return one_run.is_refuted(Guesses(number, number, canaries, fixed=True), one_run.region_of(claim), alpha)
