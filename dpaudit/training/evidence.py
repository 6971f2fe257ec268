"""What the trainings of an audit have shown so far: their coins and scores, and the statements that these allow."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.arrays import Bools, Reals
from dpaudit.scores import Estimate, audit_scores, many_run
from dpaudit.scores.audit import BAND_POINTS
from dpaudit.scores.seen import corners, histogram
from dpaudit.training.coins import check_informative, drawn
from dpaudit.training.plan import MANY, TrainingPlan

MOST_SHOWN = 100_000  # scores that the pictures are made of


class Gathered:
    """The scores of the calls so far, in their order; `add` raises `UnsoundAudit` where they deserve no verdict."""

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan, self.calls, self.done = plan, 0, 0
        self.e_values: tuple[float, ...] = ()
        self._included: list[Bools] = []
        self._scores: list[Reals] = []

    @property
    def refuted(self) -> bool:
        """Whether the evidence of several trainings refutes the claim already."""
        return False

    def add(self, scores: Reals) -> None:
        """The scores of the next call."""
        self._included.append(drawn(self.plan, self.calls)[0])
        self._scores.append(scores)
        self.done += self.plan.trainings_in(self.calls)
        self.calls += 1
        check_informative(*self.all, self.plan, over=self.calls == self.plan.calls)

    @property
    def all(self) -> tuple[Bools, Reals]:
        """Coins and scores, a row for each training or step."""
        return np.concatenate(self._included), np.concatenate(self._scores)

    def estimates(self) -> tuple[Estimate, ...]:
        """The statements, the one that decides first."""
        included, scores = self.all
        many = self.plan.design == MANY
        return audit_scores(
            scores[included],
            scores[~included],
            claim=self.plan.claim,
            delta=self.plan.delta,
            confidence=self.plan.confidence,
            design="many-run" if many else "one-run",
            methods=("exact", "clopper-pearson", "gaussian") if many else None,
            threshold=None if many else "all",
            seed=self.plan.seed,
        ).estimates

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
