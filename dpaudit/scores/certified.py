"""The certified methods: the only ones that are computed by default, and the only ones that may decide a verdict."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

from dpaudit.claims import ApproximateDP
from dpaudit.scores import many_run, one_run, one_run_f
from dpaudit.scores.choice import Every, curved
from dpaudit.scores.estimate import CERTIFIED, Estimate
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.question import Judged, ScoresQuestion
from dpaudit.scores.region import epsilon_of

LEVELS = 3  # of the numbers of guesses that the recursion, which is slow, looks at


def exact(question: ScoresQuestion, name: str) -> Estimate:
    """The exact unconditional test of the frozen rule; several splits by the median at half the error probability."""

    def one(judged: Judged, alpha: float) -> tuple[float, float]:
        return many_run.exact(judged.counts, _offset(question, judged), alpha, question.claim, judged.event)

    return _by_splits(name, question, one)


def clopper_pearson(question: ScoresQuestion, name: str) -> Estimate:
    """Two Clopper-Pearson limits, each at half the error probability; with `Every`, at all ranks at once."""
    claim, delta = question.claim, question.delta
    if isinstance(question.choice, Every):
        inside, outside = question.inside, question.outside
        lower = many_run.every_threshold(inside, outside, delta, question.alpha)
        p = None if claim is None else many_run.every_p_value(inside, outside, claim)
        return question.estimate(name, CERTIFIED, many_run.WITHIN, lower=lower, p_value=p, thresholds="all ranks")

    def one(judged: Judged, alpha: float) -> tuple[float, float]:
        lower = many_run.clopper_pearson(judged.counts, _offset(question, judged), alpha)
        return lower, 1.0 if claim is None else many_run.clopper_pearson_p_value(judged.counts, claim)

    made = _by_splits(name, question, one, _limits_own)
    if question.several or not question.wants_upper:
        return made
    judged = question.judged[0]
    return replace(made, upper=many_run.clopper_pearson_upper(judged.counts, made.delta or 0.0, question.alpha))


def one_run_pure(question: ScoresQuestion, name: str) -> Estimate:
    """Steinke, Nasr & Jagielski's bound from one run, with the correction for delta of `one_run`."""
    claim, delta = question.claim, question.delta
    tried, alpha = question.guessed, question.alpha
    promised = None if claim is None else float(claim.epsilon_at(delta))

    def p_of(guesses: Guesses) -> float:
        return 1.0 if promised is None else one_run.p_value(guesses, promised, delta)

    if question.several:
        lower = statistics.median_low([one_run.epsilon_lower(each, delta, alpha / 2.0) for each in tried])
        p = min(1.0, 2.0 * statistics.median_high([p_of(each) for each in tried]))
    else:  # one number of guesses, or all of a grid that is paid for
        lower = max(one_run.epsilon_lower(each, delta, alpha / len(tried)) for each in tried)
        p = min(1.0, len(tried) * min(p_of(each) for each in tried))
    shown = max(tried, key=lambda each: one_run.epsilon_lower(each, delta, alpha / len(tried)))
    detail = {"right": shown.right, "guesses": shown.made, "canaries": shown.canaries, "tried": len(tried)}
    return question.estimate(
        name, CERTIFIED, one_run.WITHIN, lower=lower, p_value=None if claim is None else p, **detail
    )


def one_run_curve(question: ScoresQuestion, name: str) -> Estimate:
    """Mahloujifar, Melis & Chaudhuri's recursion against the claim's own curve, or (epsilon, delta) without a claim."""
    claim, delta = question.claim, question.delta
    tried = f_guesses(question)
    alpha = question.alpha / len(tried)

    def of_lines(epsilon: float) -> Any:
        return ApproximateDP(epsilon, delta).max_probability

    lower = max(one_run_f.largest_refuted(each, of_lines, alpha) for each in tried)
    detail: dict[str, Any] = {"guesses": [each.made for each in tried], "right": [each.right for each in tried]}
    p = None
    if claim is not None:
        p = min(1.0, len(tried) * min(one_run_f.p_value(each, claim) for each in tried))
        if curved(claim) and claim.value is not None:

            def member(value: float) -> Any:
                return claim.with_value(value).max_probability

            own = max(one_run_f.largest_refuted(each, member, alpha) for each in tried)
            detail[f"{claim.parameter}_lower"] = own
    return question.estimate(name, CERTIFIED, one_run.WITHIN, lower=lower, p_value=p, **detail)


def f_guesses(question: ScoresQuestion) -> tuple[Guesses, ...]:
    """Guesses for the recursion, which needs their number fixed: as given, all canaries, or a short grid."""
    if question.guesses is not None or (len(question.guessed) == 1 and question.guessed[0].fixed):
        return question.guessed
    if question.given_counts is not None:
        counts = question.given_counts
        total = counts.members + counts.others
        return (Guesses(counts.tp + counts.tn, total, total, fixed=True),)
    ends = one_run.grid(question.inside.size + question.outside.size, question.delta, question.alpha)
    return question.fixed_guesses(ends[: 3 * LEVELS])


def _frozen_own(question: ScoresQuestion, judged: Judged, lower: float, alpha: float) -> float:
    """The bound in a curved claim's own parameter, at the offset that was frozen with the rule."""
    assert question.claim is not None
    return float(question.claim.lower(lower, _offset(question, judged)))


def _limits_own(question: ScoresQuestion, judged: Judged, lower: float, alpha: float) -> float:
    """The same from two limits that hold together: then every tangent does, and the best may be taken afterwards."""
    claim, best = question.claim, 0.0
    assert claim is not None
    fpr, fnr = many_run.rectangle(judged.counts, alpha)
    for q, p in ((fpr, 1.0 - fnr), (fnr, 1.0 - fpr)):
        if q < p and p + q <= 1.0:
            d = float(claim.delta_through(q, p))
            best = max(best, float(claim.lower(epsilon_of(q, 1.0 - p, d), d)))
    return best


def _by_splits(method: str, question: ScoresQuestion, one: Any, own: Any = _frozen_own) -> Estimate:
    judged, claim = question.judged, question.claim
    several = question.several and question.given_counts is None
    alpha = question.alpha / 2.0 if several else question.alpha
    answers = [one(each, alpha) for each in (judged if several else judged[:1])]
    lower, p = (
        statistics.median_low([low for low, _ in answers]),
        statistics.median_high([value for _, value in answers]),
    )
    detail: dict[str, Any] = {"splits": len(judged)} if several else {}
    if not several and judged[0].rule is not None:
        detail["rule"] = str(judged[0].rule)
    if claim is not None and curved(claim):  # the inversion at the offset that was frozen with the rule
        owned = [own(question, at, low, alpha) for (low, _), at in zip(answers, judged, strict=False)]
        detail[f"{claim.parameter}_lower"] = statistics.median_low(owned)
    p_value = None if claim is None else min(1.0, 2.0 * p) if several else p
    made = question.estimate(method, CERTIFIED, many_run.WITHIN, lower=lower, p_value=p_value, **detail)
    if several:  # each split froze a delta of its own: only the parameter has a median
        return replace(made, lower=None, delta=None) if curved(claim) else made
    c, delta = judged[0].counts, _offset(question, judged[0])
    return replace(made, value=epsilon_of(c.fpr, c.fn / c.members, delta), delta=delta)


def _offset(question: ScoresQuestion, judged: Judged) -> float:
    rule = judged.rule
    return question.delta if rule is None or rule.offset is None else rule.offset
