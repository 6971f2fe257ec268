"""`audit_training`: trainings with canaries in them by coins of ours, their scores, and what these certify."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.arrays import Bools, Reals
from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Description, wrap
from dpaudit.results.provenance import versions
from dpaudit.scores import Estimate, audit_scores
from dpaudit.training.coins import check_informative, drawn, trained
from dpaudit.training.plan import FEW, MANY, STEPS, TrainingPlan, plan_of
from dpaudit.training.result import TrainingResult

NEVER_TESTED = ("the accountant's own arithmetic: the claim is taken as it was given", "other data, other canaries")


def audit_training(
    train: Any,
    *,
    canaries: int,
    claim: Claim | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    trainings: int = 1,
    steps: int | None = None,
    compose: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    inserted: str = "",
    not_tested: Iterable[str] = (),
    exact: bool = False,
) -> TrainingResult:
    """Audits private training by canaries, each put in or left out by a fair coin of ours.

    `train(included, rng)` trains once: `included` is a bool array of shape (canaries,) that says which canaries are
    in, and every random choice is drawn from `rng`. It returns a score a canary, higher where the training looks as
    if the canary was in: an array of shape (canaries,), or (any, canaries) of which the rows are summed. White box, a
    score is what the steps released along the canary's direction; black box, what the final model says of it.

    `trainings=1` certifies from one training. Several are combined until they refute the claim. With `canaries=1` each
    training is one run of the usual kind; `dpaudit.batched(train)` then makes many at once: `train(included, runs,
    rng)`, arrays of shape (runs, 1). `steps=T` audits the claim of one *step*: coins and scores have shape
    (T, canaries), a coin of its own for every canary at every step, row t what step t released.

    The claim is `claim`, or `epsilon` with `delta`, and neighbours differ by one record that is added or removed.
    `inserted` and `not_tested` are words for the report. Raises `InvalidSpec` for a question that cannot be asked and
    for scores that say nothing, `UnsoundAudit` where a training breaks.

    >>> def train(included, rng):  # every canary along a direction of its own, noise of standard deviation 1
    ...     return included * 2.0 + rng.normal(size=included.size)
    >>> result = audit_training(train, canaries=1_000, epsilon=0.5, delta=1e-5)
    >>> result.verdict.value, result.epsilon_lower > 1.2
    ('REFUTED', True)
    """
    plan = plan_of(
        canaries=canaries,
        claim=claim,
        epsilon=epsilon,
        delta=delta,
        trainings=trainings,
        steps=steps,
        compose=compose,
        confidence=confidence,
        seed=seed,
        exact=exact,
    )
    mechanism = wrap(train)
    opened = mechanism.open()

    def calls(numbers: Iterable[int]) -> Iterator[Reals]:
        return (trained(opened, plan, number) for number in numbers)

    if plan.design in (FEW, STEPS):
        raise InvalidSpec("this version combines no trainings and certifies no steps: give trainings=1")
    return run_plan(plan, calls, mechanism.describe(), inserted=inserted, not_tested=tuple(not_tested))


def run_plan(
    plan: TrainingPlan,
    calls: Callable[[Iterable[int]], Iterator[Reals]],
    train: Description,
    *,
    inserted: str,
    not_tested: tuple[str, ...],
) -> TrainingResult:
    """The result of a plan; `calls` gives the scores of the calls of these numbers, in their order."""
    started = time.process_time()
    coins: list[Bools] = []
    scores: list[Reals] = []
    for number, found in enumerate(calls(range(plan.calls))):
        coins.append(drawn(plan, number)[0])
        scores.append(found)
        check_informative(np.concatenate(coins), np.concatenate(scores), plan, over=number == plan.calls - 1)
    included, seen = np.concatenate(coins), np.concatenate(scores)
    return TrainingResult(
        claim=plan.claim,
        delta=plan.delta,
        confidence=plan.confidence,
        seed=plan.seed,
        canaries=plan.canaries,
        trainings=plan.trainings,
        trainings_used=plan.trainings,
        steps=plan.steps,
        compose=plan.compose,
        inserted=inserted,
        not_tested=(*not_tested, *NEVER_TESTED),
        lines=_estimates(plan, included.ravel(), seen.ravel()),
        provenance={"train": train.to_dict(), "cpu_s": time.process_time() - started, **versions()},
    )


def _estimates(plan: TrainingPlan, included: Bools, scores: Reals) -> tuple[Estimate, ...]:
    many = plan.design == MANY
    return audit_scores(
        scores[included],
        scores[~included],
        claim=plan.claim,
        delta=plan.delta,
        confidence=plan.confidence,
        design="many-run" if many else "one-run",
        methods=("exact", "clopper-pearson", "gaussian") if many else None,
        threshold=None if many else "all",
        seed=plan.seed,
    ).estimates
