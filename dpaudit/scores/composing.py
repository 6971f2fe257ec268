"""A run of steps that leak alike, composed by arithmetic, which nothing here measures."""

import math

from dpaudit.claims import ApproximateDP, Claim, GaussianDP, ZeroConcentratedDP
from dpaudit.claims.composition import compose_gaussian, compose_optimal, compose_zcdp, subsample_poisson
from dpaudit.claims.conversion import to_approximate
from dpaudit.losses.distribution import ALONE, poisson, repeated_epsilon, step_losses


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
