"""One question about scores, checked and split: what every method gets.

The threshold is chosen beforehand, on a part of the scores, or not at all because every one is paid for. Several
splits: the median at half the error probability (Meinshausen, Meier & Buehlmann 2009, theorem 3.1).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Reals
from dpaudit.base.validate import error_probability
from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.scores import one_run
from dpaudit.scores.counts import AttackCounts, epsilon_of_mu, roc, side
from dpaudit.scores.designs import EVERY, Design, ManyRun, OneRun, Steps
from dpaudit.scores.few import Evidence, begin
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.result import MODEL, Estimate

CANDIDATES = 400  # thresholds that are tried when one is chosen
LUCK = [[0.1], [0.3], [0.5], [0.7], [0.9]]  # quantiles over which a mean is taken


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """A frozen attack: "in" where the score is at least `threshold`, or where it is below it (`high` is False).

    `event` is the guess whose two rates are compared: "in" (members are the likelier side) or "out" (the others are).
    `offset` is the additive part d at which the certificate will be made.
    """

    threshold: float
    high: bool = True
    event: str = "in"
    offset: float = 0.0

    def counts(self, in_scores: Any, out_scores: Any) -> AttackCounts:
        """The counts of this attack on these scores."""
        counts = AttackCounts.from_scores(in_scores, out_scores, self.threshold)
        return counts if self.high else counts.reversed()

    def __str__(self) -> str:
        return f'"in" where the score is {"at least" if self.high else "below"} {self.threshold:.6g}'


def choose(
    chosen_in: Any, chosen_out: Any, sizes: tuple[int, int], delta: float, alpha: float, claim: Claim | None
) -> ThresholdRule:
    """The rule with the best bound that `sizes` (members, others) to judge would give at the rates seen here.

    Both directions and both guesses are tried. The rates are smoothed by half a hit, the bounds are Clopper-Pearson's
    at expected counts; a curved claim is judged by its own parameter.
    """
    from scipy.special import betaincinv

    curve = roc(chosen_in, chosen_out)
    places = _spread(curve.thresholds.size)
    tpr = (curve.tp[places] + 0.5) / (curve.members + 1.0)
    fpr = (curve.fp[places] + 0.5) / (curve.others + 1.0)
    best: tuple[float, ThresholdRule] | None = None
    bent = claim if curved(claim) else None
    seen = curve.members, curve.others
    # a part is small, and its rates may be luck. A curved claim takes sizes as for a difference of both parts; others
    # the mean over the posterior of the rare rate (Jeffreys), because its logarithm is what counts
    n_in, n_out = sizes if bent is None else (a * b / (a + b) for a, b in zip(sizes, seen, strict=True))
    for high in (True, False):
        for event in ("in", "out"):
            likely, rare = (tpr, fpr) if event == "in" else (1.0 - fpr, 1.0 - tpr)
            n_p, n_q, rare_size = (n_in, n_out, seen[1]) if event == "in" else (n_out, n_in, seen[0])
            if not high:
                likely, rare = 1.0 - likely, 1.0 - rare
            p = betaincinv(likely * n_p, (1.0 - likely) * n_p + 1.0, alpha / 2.0)
            maybe = rare if bent else betaincinv(rare * (rare_size + 1.0), (1.0 - rare) * (rare_size + 1.0), LUCK)
            q = betaincinv(maybe * n_q + 1.0, (1.0 - maybe) * n_q, 1.0 - alpha / 2.0)
            worth = _worth(p, q, delta, bent)
            if bent is None:
                worth = worth.mean(axis=0)
            # an event and its complement are the same point; only one has a tangent steeper than 1
            worth = np.where(likely + rare <= 1.0, worth, -np.inf)
            at = int(np.argmax(worth))
            if best is None or worth[at] > best[0]:
                offset = delta
                if bent is not None:  # the tangent where the certificate will end: the plain one may leave nothing
                    there = (q[at], p[at]) if p[at] > q[at] else (rare[at], likely[at])
                    offset = float(bent.delta_through(float(there[0]), float(there[1])))
                best = float(worth[at]), ThresholdRule(float(curve.thresholds[places][at]), high, event, offset)
    assert best is not None
    return best[1]


def curved(claim: Claim | None) -> bool:
    """Whether the claim's region has a boundary other than straight lines."""
    return claim is not None and not claim.linear


def _worth(p: Any, q: Any, delta: float, bent: Claim | None) -> Any:
    if bent is not None:
        return np.nan_to_num(np.asarray(bent.least_parameter(q, p)), nan=-np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > delta, np.log(np.maximum(p - delta, 0.0)) - np.log(q), -np.inf)


def _spread(thresholds: int) -> Any:
    """Places among the thresholds: all of a few, else denser towards both ends, where the ratios are largest."""
    inner = np.arange(1, thresholds - 1)  # not the two that guess alike for everybody
    if inner.size == 0:
        return np.array([0])
    if inner.size <= CANDIDATES:
        return inner
    ends = np.geomspace(1.0, inner.size, CANDIDATES // 4)
    even = np.linspace(0.0, inner.size - 1.0, CANDIDATES // 2)
    return inner[np.unique(np.concatenate([ends - 1.0, inner.size - ends, even]).astype(int))]


NORMAL = "the mechanism's own trade-off curve is Gaussian"


@dataclass(frozen=True)
class JudgedRule:
    """A frozen rule and its counts on scores that did not choose it; `event` is what the exact test compares.

    `offset` is the additive part d at which it is certified: what was frozen with the rule, or delta.
    """

    rule: ThresholdRule | None
    counts: AttackCounts
    event: str
    offset: float


@dataclass(frozen=True)
class ScoresQuestion:
    """Everything that a method may use. `inside` and `outside` are None where only counts are known.

    `rows` are the scores and coins of trainings or steps, shape (rows, canaries); None in the other designs.
    """

    inside: Any
    outside: Any
    claim: Claim | None
    delta: float
    confidence: float
    design: Design
    seed: int
    given_counts: AttackCounts | None = None
    interval: str = "lower"
    rows: tuple[Reals, Bools] | None = None

    @property
    def alpha(self) -> float:
        """The error probability of one end of an interval."""
        whole = error_probability(self.confidence)
        return whole / 2.0 if self.interval == "two-sided" else whole

    @property
    def known(self) -> bool:
        """Whether one rule was known before the scores were."""
        return self.given_counts is not None or isinstance(self.design.threshold, float)

    @property
    def every(self) -> bool:
        """Whether every threshold is paid for."""
        return self.given_counts is None and self.design.threshold == EVERY

    @property
    def several(self) -> bool:
        """Whether the answer is a median over several splits."""
        return self.design.splits > 1

    @property
    def event(self) -> str:
        """The guesses that are compared, or made: "in", "out" or "both"."""
        return self.design.event or ("in" if self.known else "both")

    def estimate(
        self, method: str, label: str, assumption: str, detail: Mapping[str, Any] | None = None, **values: Any
    ) -> Estimate:
        """An estimate of epsilon at `delta`, where `values` say no other; ends that are not asked for are left out."""
        usual: dict[str, Any] = {"quantity": "epsilon", "delta": self.delta, "confidence": self.confidence}
        unasked = {"lower": "upper", "upper": "lower"}.get(self.interval)
        stated = usual | {name: each for name, each in values.items() if name != unasked}
        return Estimate(method=method, label=label, assumption=assumption, detail=detail or {}, **stated)

    def of_mu(self, method: str, label: str, assumption: str, mu: float) -> list[Estimate]:
        """A lower bound on mu, which needs no model, and the epsilon at `delta` of that Gaussian curve, which does."""
        bound = self.estimate(method, label, assumption, lower=mu, quantity="mu", delta=None)
        if self.delta == 0.0:
            return [bound]
        epsilon, within = epsilon_of_mu(mu, self.delta), f"{NORMAL}; {assumption}"
        return [bound, self.estimate(method, MODEL, within, {"mu_lower": mu}, lower=epsilon)]

    @cached_property
    def judged(self) -> tuple[JudgedRule, ...]:
        """The rules to judge with their counts: one, or one for each split; a split too where none is needed."""
        if self.given_counts is not None:
            return (JudgedRule(None, self.given_counts, self.event, self.delta),)
        if isinstance(self.design.threshold, float):
            rule = ThresholdRule(self.design.threshold, offset=self.delta)
            return (JudgedRule(rule, rule.counts(self.inside, self.outside), self.event, self.delta),)
        if self.rows is not None:
            return (JudgedRule(None, self.evidence.halved, self.event, self.delta),)
        chosen = self.design if isinstance(self.design, ManyRun) else ManyRun()
        seeds = np.random.SeedSequence(self.seed).spawn(chosen.splits)
        return tuple(self._split(chosen.split, np.random.default_rng(each)) for each in seeds)

    @cached_property
    def guessed(self) -> Guesses | None:
        """The guesses of a one-run design that were given; None where the methods choose their number."""
        if self.known:  # of one kind, so that their number is random, or about every canary
            counts = self.judged[0].counts
            cells = {"in": (counts.tp, counts.fp), "out": (counts.tn, counts.fn)}
            right, wrong = map(sum, zip(*([cells[self.event]] if self.event in cells else cells.values()), strict=True))
            return Guesses(right, right + wrong, counts.members + counts.others, fixed=self.event == "both")
        if not isinstance(self.design, OneRun) or self.design.guesses is None:
            return None
        scores, members, rng = pooled(self.inside, self.outside, self.seed)
        return one_run.guess_ends(scores, members, self.design.guesses, rng)

    @cached_property
    def order(self) -> Bools:
        """Whether the guess about each canary is right, the most extreme score first; bools, shape (canaries,)."""
        return np.asarray(one_run.ranked(*pooled(self.inside, self.outside, self.seed), self.event))

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence of several trainings, or of steps, against the claim."""
        assert self.rows is not None
        if self.claim is None:
            raise InvalidSpec(
                "several trainings, and steps, need a claim to bet against: give epsilon=... or claim=..."
            )
        asked: dict[str, Any] = {"delta": self.delta}
        rows, canaries = self.rows[0].shape
        if isinstance(self.design, Steps):
            asked |= {"steps": self.design.steps or rows, "rate": self.design.sample_rate}
            if rows % asked["steps"]:
                raise InvalidSpec(f"steps must divide the number of lists of scores, {rows:,}, got {asked['steps']:,}")
        return begin(self.claim, canaries, self.alpha, **asked).after(*self.rows)

    def _split(self, fraction: float, rng: Any) -> JudgedRule:
        """A rule, chosen on a random part of the scores and judged on the rest: a fixed number of each side.

        Raises `InvalidSpec` where a side is too small to be split.
        """
        sides: list[Any] = []
        for name, scores in (("in_scores", self.inside), ("out_scores", self.outside)):
            if scores.size < 2:
                raise InvalidSpec(f"{name} must hold at least 2 scores to be split, got 1; give threshold=... instead")
            size = min(scores.size - 1, max(1, round(fraction * scores.size)))
            order = rng.permutation(scores.size)
            sides.append((scores[order[:size]], scores[order[size:]]))
        (chosen_in, members), (chosen_out, others) = sides
        sizes = members.size, others.size
        rule = choose(chosen_in, chosen_out, sizes, self.delta, self.alpha, self.claim)
        return JudgedRule(rule, rule.counts(members, others), rule.event, rule.offset)


def pooled(inside: Any, outside: Any, seed: int) -> tuple[Reals, Bools, np.random.Generator]:
    """The scores of both sides, members first, and who is a member, shape (canaries,) each; what breaks ties.

    That is of the seed and of all that is known: one order for all audits would break ties for or against them in
    every one.
    """
    scores = np.concatenate([inside, outside])
    members = np.arange(scores.size) < inside.size
    known = hashlib.sha256(scores.tobytes() + members.tobytes()).digest()
    return scores, members, np.random.default_rng([seed, *known])


def rows_of(in_scores: Any, out_scores: Any, seed: int) -> tuple[Reals, Bools]:
    """Scores and coins of trainings or steps, shape (rows, canaries), in an order that is drawn for each row.

    Raises `InvalidSpec` where they are no lists of scores, or not of as many canaries in every row.
    """
    try:
        pairs = [*zip(in_scores, out_scores, strict=True)]
    except (TypeError, ValueError):
        raise InvalidSpec(f"in_scores and out_scores {ROWS}") from None
    rows = []
    for k, (inside, outside) in enumerate(pairs):
        put_in, left_out = side(f"in_scores[{k}]", inside, least=0), side(f"out_scores[{k}]", outside, least=0)
        scores, members, rng = pooled(put_in, left_out, seed)
        order = rng.permutation(scores.size)
        rows.append((scores[order], members[order]))
    sizes = {scores.size for scores, _ in rows}
    if len(sizes) != 1 or 0 in sizes:
        raise InvalidSpec(f"in_scores and out_scores {ROWS}; got rows of {sorted(sizes) or 'no'} scores")
    scores, coins = (np.stack(each) for each in zip(*rows, strict=True))
    return scores, coins


ROWS = "must hold a list of scores for each training or step, of all its canaries, as many in each"
