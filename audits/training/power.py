"""What an audit with ideal scores can refute: the least canaries or trainings, by the form of the claim and the truth.

The noise of a training of 100 full-batch steps is smaller than claimed: the run's mu is above 2 (epsilon 10 at 1e-5).
Scores are N(mu, 1) for canaries that are in and N(0, 1) for the others, as orthogonal gradients in white box have.
A number is the least of 100, 200, 400, ... at which 4 of 5 seeds refute at confidence 0.95 (of trainings with many
canaries: of 1, 2, 4, ...). docs/how/training.md prints the table. Nothing but numpy is needed: the environment is any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dpaudit
from audits.training.table import Row, timed
from dpaudit.training import audit_training

ENVIRONMENT = "opacus"
TRUTHS = (2.1, 2.2, 2.4, 3.0, 4.0)
CLAIM, STEPS, CANARIES = 2.0, 100, 1_000
SIZES = tuple(100 << k for k in range(10))  # to 51,200
FEW = tuple(1 << k for k in range(8))  # trainings of `CANARIES` each
SEEDS, ENOUGH = range(5), 4
ANCHORS = {  # of the research that this was planned from, with bounds and grids of its own
    "one training, claim GDP(2)": (None, None, None, 12_800, 800),
    "one training, claim (10, 1e-5)": (None,) * 5,
    "many trainings of one canary, claim GDP(2)": (25_600, 6_400, 1_600, 400, 200),  # half of that a side
}


def scores(included: Any, rng: Any, mu: float) -> Any:
    return included * mu + rng.normal(size=included.shape)


def batched_scores(included: Any, runs: int, rng: Any, mu: float) -> Any:
    return scores(included, rng, mu)


GAUSSIAN = dpaudit.GaussianDP(CLAIM)
EPSILON = dpaudit.ApproximateDP(10.0, 1e-5)
FORMS: dict[str, Callable[[float, int, int], dpaudit.TrainingResult]] = {
    "one training, claim GDP(2)": lambda mu, size, seed: audit_training(
        partial(scores, mu=mu), canaries=size, claim=GAUSSIAN, seed=seed, underpowered=True
    ),
    "one training, claim (10, 1e-5)": lambda mu, size, seed: audit_training(
        partial(scores, mu=mu), canaries=size, claim=EPSILON, seed=seed, underpowered=True
    ),
    "one training of 100 steps, claim GDP(0.2) of a step": lambda mu, size, seed: audit_training(
        partial(scores, mu=mu / STEPS**0.5),
        canaries=size,
        steps=STEPS,
        claim=dpaudit.GaussianDP(CLAIM / STEPS**0.5),
        seed=seed,
        underpowered=True,
    ),
    "trainings of 1,000 canaries, claim GDP(2)": lambda mu, size, seed: audit_training(
        partial(scores, mu=mu), canaries=CANARIES, trainings=size, claim=GAUSSIAN, seed=seed, underpowered=True
    ),
    "many trainings of one canary, claim GDP(2)": lambda mu, size, seed: audit_training(
        dpaudit.batched(partial(batched_scores, mu=mu)),
        canaries=1,
        trainings=size,
        claim=GAUSSIAN,
        seed=seed,
        underpowered=True,
    ),
}


def least(form: str, mu: float) -> int | None:
    """The least size at which enough seeds refute; None where not even the largest does."""
    for size in sizes(form):
        if sum(FORMS[form](mu, size, seed).refuted for seed in SEEDS) >= ENOUGH:
            return size
    return None


def sizes(form: str) -> tuple[int, ...]:
    return FEW if form.startswith("trainings of") else SIZES


def told(size: int | None, form: str) -> str:
    return f"none to {sizes(form)[-1]:,}" if size is None else f"{size:,}"


def rows() -> Iterator[Row]:
    for form in FORMS:
        for place, mu in enumerate(TRUTHS):
            found, cpu_s = timed(partial(least, form, mu))
            anchor = ANCHORS[form][place] if form in ANCHORS else None
            kept = None if anchor is None else found is not None and found <= anchor
            held = f"at most {anchor:,}" if anchor else told(None, form) if form in ANCHORS else "(no figure)"
            yield Row(f"{form}: truth {mu:g}", held, told(found, form), kept, cpu_s)
