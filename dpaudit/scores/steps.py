"""Step certificates: what one step of a training leaks at least, from canaries whose coins are fresh at every step.

Given everything before, the coins of step t are fair and independent, so that step is one training's worth of evidence
(`few`) about the step's claim, however it makes canaries depend on each other. The product over all steps of all
trainings is an e-process against "every step keeps the claim"; where it refutes, at least one step does not.

Composing certified steps to a run is arithmetic with words of its own: it says what a run of so many steps leaks that
each leak what the steps show together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit import validate
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, ZeroConcentratedDP
from dpaudit.claims.composition import compose_gaussian, compose_optimal, compose_zcdp, subsample_poisson
from dpaudit.claims.conversion import to_approximate
from dpaudit.errors import InvalidSpec
from dpaudit.losses.distribution import ALONE, poisson, repeated_epsilon, step_losses
from dpaudit.scores import few
from dpaudit.scores.estimate import COMPOSED, Estimate
from dpaudit.scores.few import Evidence

WITHIN = (
    "a fair coin of its own, independent of all else, for every canary at every step, which no step before it sees; "
    "scores that do not use the coins. Canaries may depend on each other in any way, and a step on all steps before it"
)
ASSUMED = (
    "certified is that not every step keeps the smaller claim; the run's figure takes each of its {steps} steps to "
    "leak what the steps show together, and composes them by arithmetic: {how}"
)


@dataclass(frozen=True, slots=True)
class StepEvidence(Evidence):
    """What the steps so far say about the claim of one step; `.after` takes a training's matrix (steps, canaries)."""

    def composed(self, compose: int, delta: float) -> Estimate:
        """The bound of one step, as a run of `compose` such steps: epsilon at `delta`."""
        times = validate.whole("compose", compose, least=1)
        at = validate.probability("delta", delta)
        bound = self._certified()
        own = self.claim.parameter
        value = bound.lower if self.claim.linear else bound.detail.get(f"{own}_lower")
        epsilon, how = composed_epsilon(self.claim, value or 0.0, times, at, self.rate)
        return Estimate(
            method="steps composed",
            label=COMPOSED,
            quantity="epsilon",
            lower=epsilon,
            delta=at,
            confidence=bound.confidence,
            assumption=f"{self.within}. {ASSUMED.format(steps=f'{times:,}', how=how)}",
            detail={"steps": times, f"step_{own}_lower": value},
        )


def begin(
    claim: Claim,
    canaries: int,
    steps: int,
    alpha: float,
    *,
    delta: float | None = None,
    rate: float = 1.0,
) -> StepEvidence:
    """No evidence yet: `.after(scores, included)` adds a training's matrices of shape (steps, canaries).

    Where the audit itself lets a canary that is in join a step with probability `rate`, alone, the claim is that of a
    step before sampling, such as `GaussianDP(1 / noise_multiplier)`; the sampling is then no part of what is tested.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random((20, 1_000)) < 0.5
    >>> evidence = begin(GaussianDP(0.2), 1_000, 20, 0.05, delta=1e-5)
    >>> evidence = evidence.after(0.4 * coins + rng.normal(size=coins.shape), coins)
    >>> evidence.refuted, round(evidence.composed(20, 1e-5).detail["step_mu_lower"], 2)
    (True, 0.36)
    """
    count = validate.whole("steps", steps, least=1)
    begun = few.begin(claim, canaries, alpha, delta=delta)
    share = validate.probability("rate", rate)
    if share == 0.0:
        raise InvalidSpec("rate must be above 0, got 0: no canary would join a step")
    return StepEvidence(claim, canaries, begun.alpha, begun.delta, count, share, WITHIN)


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
