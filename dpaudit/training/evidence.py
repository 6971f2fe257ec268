"""What the trainings of an audit have shown so far: their coins and scores, and the statements that these allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.arrays import Bools, Reals
from dpaudit.certify.certifiers import suited
from dpaudit.errors import InvalidSpec
from dpaudit.results.wording.numerals import counted
from dpaudit.scores import Estimate, audit_scores, few, lines, many_run, steps
from dpaudit.scores.audit import BAND_POINTS
from dpaudit.scores.choice import Split
from dpaudit.scores.dependence import BLIND, SEES, Dependence
from dpaudit.scores.few import Evidence
from dpaudit.scores.seen import corners, histogram
from dpaudit.scores.steps import StepEvidence
from dpaudit.training.coins import check_informative, drawn
from dpaudit.training.plan import FEW, MANY, ONE, TrainingPlan

MOST_SHOWN = 100_000  # scores that the pictures are made of


def begun(plan: TrainingPlan) -> Evidence | None:
    """No evidence yet, where it grows from training to training; None where all scores are looked at together."""
    canaries, alpha = plan.canaries, plan.alpha
    if plan.steps is not None:
        return steps.begin(plan.claim, canaries, plan.steps, alpha, delta=plan.delta, rate=plan.sample_rate)
    if plan.design == FEW:
        return few.begin(plan.claim, canaries, alpha, delta=plan.delta)
    return None


def check_reach(plan: TrainingPlan) -> None:
    """Raises `InvalidSpec` where not even scores that tell every coin could refute the claim, with how many could."""
    if plan.underpowered or refutable(plan):
        return
    least = None if plan.design == MANY else least_canaries(plan)
    could = [] if least is None else [f"{least:,} canaries"]
    grown = (plan.trainings << k for k in range(1, 1 if plan.design == ONE else 9))
    enough = next((each for each in grown if refutable(replace(plan, trainings=each))), None)
    could += [] if enough is None else [f"{enough:,} trainings"]
    cures = [f"{' or '.join(could)} could"] if could else []
    if plan.claim.linear and plan.design in (ONE, FEW):
        cures.append("a GaussianDP(mu), or the claim of one step with steps=..., needs fewer")
    raise InvalidSpec(
        f"{counted(plan.trainings, 'training')} with {counted(plan.canaries, 'canary', 'canaries')} can never refute "
        f"{plan.claim} at confidence {plan.confidence:g}, whatever they show: "
        f"{'; '.join([*cures, 'say underpowered=True for the bound alone'])}"
    )


def least_canaries(plan: TrainingPlan) -> int | None:
    """How many canaries a training could refute the claim; None where no number could."""
    if plan.design == ONE:
        return lines.ceiling(plan.canaries, plan.claim, plan.delta, plan.alpha)[1]
    rows = {"trainings": plan.trainings, "steps": plan.steps or 1}
    return few.ceiling(plan.canaries, plan.claim, plan.delta, plan.alpha, **rows)[1]


def refutable(plan: TrainingPlan) -> bool:
    """Whether scores that tell every coin would refute the claim."""
    if plan.design == MANY:
        judged = int(plan.trainings * (1.0 - Split().fraction)) // 2
        return suited(plan.claim).at(plan.claim).refutable(judged, judged, plan.claim, plan.confidence)
    least = least_canaries(plan)
    return least is not None and least <= plan.canaries


class Gathered:
    """The scores of the calls so far, in their order; `add` raises `UnsoundAudit` where they deserve no verdict."""

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan, self.calls, self.done = plan, 0, 0
        self.e_values: tuple[float, ...] = ()
        self._process = begun(plan)
        self._included: list[Bools] = []
        self._scores: list[Reals] = []
        self._told = False

    @property
    def refuted(self) -> bool:
        """Whether the evidence of several trainings refutes the claim already."""
        return self._process is not None and self._process.refuted

    def add(self, scores: Reals) -> None:
        """The scores of the next call."""
        included = drawn(self.plan, self.calls)[0]
        if self._process is not None:
            self._process = self._process.after(scores, included)
            self.e_values += (self._process.e_value,)
        self._included.append(included)
        self._scores.append(scores)
        self.done += self.plan.trainings_in(self.calls)
        self.calls += 1
        if not self._told:  # what tells something, and not all, does so whatever follows
            self._told = check_informative(*self.all, self.plan, over=self.calls == self.plan.calls)

    @property
    def all(self) -> tuple[Bools, Reals]:
        """Coins and scores, a row for each training or step."""
        return np.concatenate(self._included), np.concatenate(self._scores)

    def estimates(self) -> tuple[Estimate, ...]:
        """The statements, the one that decides first."""
        if isinstance(self._process, StepEvidence):
            run = self._process.composed(self.plan.compose or 1, self.plan.delta)
            return *self._process.estimates(), *([] if run.lower is None else [run])
        if self._process is not None:
            return self._process.estimates()
        (included, scores), plan = self.all, self.plan
        asked: dict[str, Any] = {each: getattr(plan, each) for each in ("claim", "delta", "confidence", "seed")}
        if plan.design == ONE:
            return lines.three_lines(scores[0], included[0], **asked)
        methods = ("exact", "clopper-pearson", "gaussian")
        return audit_scores(scores[included], scores[~included], methods=methods, **asked).estimates

    def dependence(self) -> Dependence | None:
        """The test of dependence between canaries: the strongest finding of all rows, at so many times its p-value."""
        if self.plan.canaries == 1:
            return None
        included, scores = self.all
        rows = len(scores)
        found = min(map(lines.dependence, scores, included), key=lambda each: each.p_value)
        if rows == 1:
            return found
        p = min(1.0, rows * found.p_value)
        seen = "dependence" if p <= 0.01 else "no dependence"
        words = f"{seen} seen between {SEES}: p-value {p:.3g} over {rows:,} rows; {BLIND}"
        return Dependence(p, found.statistic, words)

    def pictures(self) -> dict[str, Any]:
        """The histogram of both groups, the corners of their ROC, and where trainings had one canary each its band."""
        included, scores = self.all
        first = included.ravel()[:MOST_SHOWN]
        inside, outside = scores.ravel()[:MOST_SHOWN][first], scores.ravel()[:MOST_SHOWN][~first]
        if not (inside.size and outside.size):
            return {}
        found: dict[str, Any] = {"histogram": histogram(inside, outside), "roc": corners(inside, outside)}
        if self.plan.design != MANY:
            return found
        fpr, fnr = many_run.bands(inside, outside, self.plan.alpha)
        places = np.unique(np.linspace(0, fpr.size - 1, min(fpr.size, BAND_POINTS)).astype(int))
        return {**found, "band": tuple(zip(fpr[places].tolist(), fnr[places].tolist(), strict=True))}
