"""One question about scores, checked and split: what every method gets."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.certify.certificate import error_probability
from dpaudit.claims import Claim
from dpaudit.scores import gaussian, one_run, weighted
from dpaudit.scores.choice import Choice, Every, Given, Split, ThresholdRule, choose, parts
from dpaudit.scores.counts import AttackCounts
from dpaudit.scores.estimate import MODEL, Estimate
from dpaudit.scores.intervals import Bootstrap
from dpaudit.scores.one_run import Guesses

NORMAL = "the mechanism's own trade-off curve is Gaussian"
MANY, ONE = DESIGNS = ("many-run", "one-run")


@dataclass(frozen=True)
class Judged:
    """A frozen rule and its counts on scores that did not choose it; `event` is what the exact test compares."""

    rule: ThresholdRule | None
    counts: AttackCounts
    event: str


@dataclass(frozen=True)
class ScoresQuestion:
    """Everything that a method may look at. `inside` and `outside` are None where only counts are known."""

    inside: Any
    outside: Any
    claim: Claim | None
    delta: float
    confidence: float
    design: str
    choice: Choice
    event: str
    seed: int
    given_counts: AttackCounts | None = None
    guesses: tuple[int, int] | None = None
    interval: str = "lower"
    bootstrap: Bootstrap | None = None
    min_count: int = 1
    fpr: tuple[float, ...] = ()
    prevalence: float | None = None

    @property
    def alpha(self) -> float:
        """The error probability of one end of an interval."""
        whole = error_probability(self.confidence)
        return whole / 2.0 if self.interval == "two-sided" else whole

    @property
    def wants_lower(self) -> bool:
        """Whether a lower end is asked for."""
        return self.interval != "upper"

    @property
    def wants_upper(self) -> bool:
        """Whether an upper end is asked for."""
        return self.interval != "lower"

    @property
    def several(self) -> bool:
        """Whether the answer is a median over several splits."""
        return isinstance(self.choice, Split) and self.choice.splits > 1

    def estimate(
        self,
        method: str,
        label: str,
        assumption: str,
        *,
        lower: float | None = None,
        upper: float | None = None,
        value: float | None = None,
        p_value: float | None = None,
        **detail: Any,
    ) -> Estimate:
        """An estimate of epsilon at `delta`; ends that are not asked for are left out."""
        return Estimate(
            method=method,
            label=label,
            quantity="epsilon",
            assumption=assumption,
            value=value,
            lower=lower if self.wants_lower else None,
            upper=upper if self.wants_upper else None,
            delta=self.delta,
            confidence=self.confidence,
            p_value=p_value,
            detail=detail,
        )

    def of_mu(self, method: str, label: str, assumption: str, mu: float) -> list[Estimate]:
        """A lower bound on mu, which needs no model, and the epsilon at `delta` of that Gaussian curve, which does."""
        said = replace(self.estimate(method, label, assumption, lower=mu), quantity="mu", delta=None)
        if self.delta == 0.0:
            return [said]
        epsilon = gaussian.epsilon_of_mu(mu, self.delta)
        return [said, self.estimate(method, MODEL, f"{NORMAL}; {assumption}", lower=epsilon, mu_lower=mu)]

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """The rules to judge with their counts: one, or one for each split. `Every` falls back to a single split."""
        if self.given_counts is not None:
            return (Judged(None, self.given_counts, self.event),)
        if isinstance(self.choice, Given):
            rule = ThresholdRule(self.choice.threshold, offset=self.delta)
            return (Judged(rule, rule.counts(self.inside, self.outside), self.event),)
        choice = Split() if isinstance(self.choice, Every) else self.choice
        seeds = np.random.SeedSequence(self.seed).spawn(choice.splits)
        return tuple(self._split(choice.fraction, np.random.default_rng(each)) for each in seeds)

    @cached_property
    def guessed(self) -> Guesses | None:
        """The guesses of a one-run design that were given; None where the methods choose their number."""
        if self.given_counts is not None:
            return self._by_counts(self.given_counts)
        if isinstance(self.choice, Given):
            return self._by_counts(AttackCounts.from_scores(self.inside, self.outside, self.choice.threshold))
        if self.guesses is None:
            return None
        scores, members, mixer = self._pooled()
        return one_run.guess_ends(scores, members, self.guesses, mixer)

    @cached_property
    def order(self) -> Any:
        """Whether the guess about each canary is right, the most extreme score first; bools, shape (canaries,)."""
        return weighted.ranked(*self._pooled(), self.event)

    def _split(self, fraction: float, rng: Any) -> Judged:
        chosen_in, chosen_out, judged_in, judged_out = parts(self.inside, self.outside, fraction, rng)
        sizes = (judged_in.size, judged_out.size)
        rule = choose(chosen_in, chosen_out, sizes, self.delta, self.alpha, self.claim)
        return Judged(rule, rule.counts(judged_in, judged_out), rule.event)

    def _pooled(self) -> tuple[Any, Any, Any]:
        """Scores, members, and a generator that breaks ties, of the seed and of all that is known."""
        scores = np.concatenate([self.inside, self.outside])
        members = np.arange(scores.size) < self.inside.size
        # members stand first: one order for all audits would break ties for or against them in every one
        drawn = hashlib.sha256(scores.tobytes() + members.tobytes()).digest()
        return scores, members, np.random.default_rng([self.seed, *drawn])

    def _by_counts(self, counts: AttackCounts) -> Guesses:
        """Guesses of a threshold: of one kind, so that their number is random, or about every canary."""
        total = counts.members + counts.others
        if self.event == "both":
            return Guesses(counts.tp + counts.tn, total, total, fixed=True)
        if self.event == "in":
            return Guesses(counts.tp, counts.tp + counts.fp, total, fixed=False)
        return Guesses(counts.tn, counts.tn + counts.fn, total, fixed=False)
