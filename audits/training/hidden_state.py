"""Hidden state: a gradient canary is crafted for every step, and only the final model is seen.

Cebere, Bellet & Papernot (arXiv:2405.14457): hiding the steps amplifies nothing where the canary's gradient may be any
of clip norm at every step. Least squares by full batches has a coordinate that no example moves: along it the final
model is 2-GDP exactly, sqrt(steps) / noise, as all steps seen would be. Along a coordinate that the loss pulls back,
a step forgets part of those before it, and the truth is less (the formula is in `truth`).

The event is searched on a quarter of the trainings. `known` is what the best event, fixed beforehand, certifies of as
many trainings at expected counts: what search loses is the difference. A claim that is exactly true may be refuted at
one seed of twenty, the confidence being .95.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

import dpaudit
from audits.training.table import Row, timed
from dpaudit.training import audit_training

ENVIRONMENT = "jax"
TRAININGS, SEEDS, CLIP = 20_000, 40, 1.0


def train(
    included: np.ndarray, runs: int, rng: np.random.Generator, *, steps: int, noise: float, kept: float
) -> np.ndarray:
    """The final value of the crafted coordinate of `runs` models, shape (runs, 1).

    A step at rate 1 keeps the part `kept` of it, as the loss (1 - kept) w^2 / 2 asks, and moves it against the
    gradients: the canary's is as long as the clip norm and always points the same way.
    """
    weights = np.zeros((runs, 1))
    for _ in range(steps):
        total = (1.0 - kept) * weights - CLIP * included
        weights -= total + rng.normal(scale=noise * CLIP, size=weights.shape)
    return weights


def truth(steps: int, noise: float, kept: float) -> float:
    """mu of the final coordinate: it is normal, with a sum of kept^k for the canary and of kept^2k for the noise."""
    powers = kept ** np.arange(steps)
    return float(powers.sum() / (noise * math.sqrt((powers**2).sum())))


def rows() -> Iterator[Row]:
    yield row("one step", steps=1, noise=0.5)
    yield row("100 steps", steps=100, noise=5.0)
    yield row("1,000 steps", steps=1_000, noise=math.sqrt(1_000) / 2.0)
    yield row("100 steps, mu 4", steps=100, noise=2.5)
    yield row("100 steps, mu 1", steps=100, noise=10.0)
    yield row("100 steps, a loss that keeps .98 a step", steps=100, noise=5.0, kept=0.98)
    yield row("100 steps, a fifth of the noise left out", steps=100, noise=4.0, claimed=2.0)


def row(name: str, *, steps: int, noise: float, kept: float = 1.0, claimed: float | None = None) -> Row:
    """One training against its own truth (or `claimed`) at `SEEDS` seeds."""
    from scipy.stats import binom

    mu = truth(steps, noise, kept)
    claim = dpaudit.GaussianDP(claimed or mu)
    mechanism = dpaudit.batched(partial(train, steps=steps, noise=noise, kept=kept))
    found, cpu_s = timed(
        lambda: [
            audit_training(mechanism, canaries=1, trainings=TRAININGS, claim=claim, seed=seed) for seed in range(SEEDS)
        ]
    )
    lower = [float(result.deciding.detail["mu_lower"]) for result in found if result.deciding]
    middle, refuted = float(np.median(lower)), sum(result.refuted for result in found)
    said = f"certified {middle:.3f} ({min(lower):.3f} to {max(lower):.3f}), {middle / mu:.3f} of it"
    said += f"; known event {known(mu):.3f}; refuted at {refuted} of {SEEDS} seeds"
    # a true claim: more than so many by chance at 1e-6; a false one: these seeds were fixed before anybody looked
    likely = refuted > SEEDS // 2 if claimed else refuted <= binom.isf(1e-6, SEEDS, 0.05)
    expected = middle >= 0.95 * mu and bool(likely)
    return Row(f"{name}: mu is {mu:.3f}", f"mu {0.95 * mu:.3f}, .95 of it", said, expected, cpu_s / SEEDS)


def known(mu: float) -> float:
    """What the best event of two normal laws, fixed beforehand, certifies at the counts that are expected."""
    from scipy.stats import norm

    claim, side, best = dpaudit.GaussianDP(mu), TRAININGS // 2, 0.0
    for cut in np.arange(-mu / 2.0 + 0.1, 2.0, 0.1):  # in standard deviations from the mean of "in"
        p, q = norm.sf(cut), norm.sf(cut + mu)
        tp, fp = round(p * side), round(q * side)
        counts = dpaudit.AttackCounts(tp=tp, fp=fp, tn=side - fp, fn=side - tp)
        offset = float(claim.delta_through(q, p))
        found = dpaudit.audit_scores(
            counts=counts, claim=claim, delta=offset, methods="exact", design=dpaudit.ManyRun(event="in")
        )
        best = max(best, float(found.estimates[0].detail["mu_lower"]))
    return best
