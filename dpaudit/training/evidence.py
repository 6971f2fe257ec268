"""What the trainings of an audit have shown so far: their coins and scores, and the statements that these allow."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Reals
from dpaudit.base.numerals import counted
from dpaudit.certify.certifiers import suited
from dpaudit.errors import InvalidSpec
from dpaudit.scores import audit_scores, few
from dpaudit.scores.counts import corners, histogram
from dpaudit.scores.dependence import dependence
from dpaudit.scores.few import MOST_ROWS, Evidence, ceiling, refutable_by_rows
from dpaudit.scores.few import refutable as one_refutable
from dpaudit.scores.question import Split
from dpaudit.training.coins import check_informative, drawn
from dpaudit.training.plan import FEW, MANY, ONE, STEPS, TrainingPlan

BY_RUNS = {"methods": ("exact", "clopper-pearson", "gaussian")}  # where each training is one
MOST_SHOWN = 100_000  # scores that the pictures are made of


def check_reach(plan: TrainingPlan) -> None:
    """Raises `InvalidSpec` where not even scores that tell every coin could refute the claim, with how many could."""
    if plan.underpowered or refutable(plan):
        return
    given = plan.canaries, plan.claim, plan.delta, plan.alpha
    least = None if plan.design == MANY else ceiling(*given, trainings=plan.trainings, steps=plan.steps)[1]
    could = [] if least is None else [f"{least:,} canaries"]
    grown = (plan.trainings << k for k in range(1, 1 if plan.design == ONE else 9))
    fits = (each for each in grown if plan.design == MANY or each * (plan.steps or 1) <= MOST_ROWS)
    enough = next((each for each in fits if refutable(replace(plan, trainings=each))), None)
    could += [] if enough is None else [f"{enough:,} trainings"]
    cures = [f"{' or '.join(could)} could"] if could else []
    if plan.claim.linear and plan.design in (ONE, FEW):
        cures.append("a GaussianDP(mu), or the claim of one step with steps=..., needs fewer")
    raise InvalidSpec(
        f"{counted(plan.trainings, 'training')} with {counted(plan.canaries, 'canary', 'canaries')} can never refute "
        f"{plan.claim} at confidence {plan.confidence:g}, whatever they show: "
        f"{'; '.join([*cures, 'say underpowered=True for the bound alone'])}"
    )


def refutable(plan: TrainingPlan) -> bool:
    """Whether scores that tell every coin would refute the claim."""
    if plan.design == MANY:
        judged = int(plan.trainings * (1.0 - Split().fraction)) // 2
        return suited(plan.claim).at(plan.claim).refutable(judged, judged, plan.claim, plan.confidence)
    if plan.design == ONE:
        return one_refutable(plan.canaries, plan.claim, plan.alpha)
    given = plan.canaries, plan.claim, plan.delta, plan.alpha
    return refutable_by_rows(*given, trainings=plan.trainings, steps=plan.steps) is not False


class Gathered:
    """The scores of the calls so far, in their order; `add` raises `UnsoundAudit` where they deserve no verdict."""

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan, self.done = plan, 0
        self.e_values: tuple[float, ...] = ()
        self._process: Evidence | None = None  # where all scores are looked at together
        if plan.design in (FEW, STEPS):
            asked: dict[str, Any] = {"delta": plan.delta, "steps": plan.steps, "rate": plan.sample_rate}
            self._process = few.begin(plan.claim, plan.canaries, plan.alpha, **asked)
        self._included: list[Bools] = []
        self._scores: list[Reals] = []
        self._told = False

    @property
    def refuted(self) -> bool:
        """Whether the evidence of several trainings refutes the claim already."""
        return self._process is not None and self._process.refuted

    def add(self, scores: Reals) -> None:
        """The scores of the next call."""
        call = len(self._scores)
        included = drawn(self.plan, call)[0]
        if self._process is not None:
            self._process = self._process.after(scores, included)
            self.e_values += (self._process.e_value,)
        self._included.append(included)
        self._scores.append(scores)
        self.done += self.plan.trainings_in(call)
        if not self._told:  # what tells something, and not all, does so whatever follows
            self._told = check_informative(*self.all, self.plan, over=call + 1 == self.plan.calls)

    @property
    def all(self) -> tuple[Bools, Reals]:
        """Coins and scores, a row for each training or step."""
        return np.concatenate(self._included), np.concatenate(self._scores)

    def found(self) -> dict[str, Any]:
        """The statements, the one that decides first, the test of dependence, and what pictures are made of."""
        (included, scores), plan = self.all, self.plan
        many = plan.design == MANY
        rows: tuple[Any, ...] = (scores.ravel(), included.ravel(), "trainings") if many else (scores, included)
        alone = plan.canaries == 1 and not many
        facts: dict[str, Any] = {"dependence": None if alone else dependence(*rows)}
        if self._process is None:
            asked: dict[str, Any] = {name: getattr(plan, name) for name in ("claim", "delta", "confidence", "seed")}
            own = int(hashlib.sha256(included.tobytes()).hexdigest()[:12], 16)  # where nearly all scores are equal
            asked |= BY_RUNS if plan.design == MANY else {"design": "one-run", "seed": plan.seed + own}
            scored = audit_scores(scores[included], scores[~included], **asked)
            return {
                **facts,
                "lines": scored.estimates,
                "histogram": scored.histogram,
                "roc": scored.roc,
                "band": scored.band,
            }
        first, shown = included.ravel()[:MOST_SHOWN], scores.ravel()[:MOST_SHOWN]
        inside, outside = shown[first], shown[~first]
        if inside.size and outside.size:
            facts |= {"histogram": histogram(inside, outside), "roc": corners(inside, outside)}
        run = None if plan.compose is None else self._process.composed(plan.compose, plan.delta)
        return {**facts, "lines": self._process.estimates() + (() if run is None or run.lower is None else (run,))}
