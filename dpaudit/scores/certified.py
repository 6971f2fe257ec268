"""The certified methods: the only ones that are computed by default, and the only ones that may decide a verdict."""

import statistics
from dataclasses import replace
from typing import Any

from dpaudit.claims import ApproximateDP, Claim, GaussianDP
from dpaudit.scores import many_run, one_run, one_run_f, weighted
from dpaudit.scores.estimate import CERTIFIED, Estimate
from dpaudit.scores.gaussian import epsilon_of
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.question import Every, Judged, ScoresQuestion, curved


def exact(question: ScoresQuestion, name: str) -> Estimate:
    """The exact unconditional test of the frozen rule; several splits by the median at half the error probability."""
    claim = question.claim
    return _by_splits(name, question, lambda j, alpha, delta: many_run.exact(j.counts, delta, alpha, claim, j.event))


def clopper_pearson(question: ScoresQuestion, name: str) -> Estimate:
    """Two Clopper-Pearson limits, each at half the error probability; with `Every`, at all ranks at once."""
    claim = question.claim
    if isinstance(question.choice, Every):
        inside, outside = question.inside, question.outside
        lower = many_run.every_threshold(inside, outside, question.delta, question.alpha)
        p = None if claim is None else many_run.every_p_value(inside, outside, claim)
        return question.estimate(name, CERTIFIED, many_run.WITHIN, lower=lower, p_value=p, thresholds="all ranks")

    def one(judged: Judged, alpha: float, delta: float) -> tuple[float, float]:
        lower = many_run.clopper_pearson(judged.counts, delta, alpha)
        return lower, 1.0 if claim is None else many_run.clopper_pearson_p_value(judged.counts, claim)

    made = _by_splits(name, question, one, _limits_own)
    if question.several or not question.wants_upper:
        return made
    judged = question.judged[0]
    return replace(made, upper=many_run.clopper_pearson_upper(judged.counts, made.delta or 0.0, question.alpha))


def one_run_pure(question: ScoresQuestion, name: str) -> Estimate:
    """The weighted guesses of `weighted`; or Steinke, Nasr & Jagielski's bound where the guesses were given."""
    promised = None if question.claim is None else float(question.claim.epsilon_at(question.delta))
    lower, p, detail = _pure(question, promised)
    return question.estimate(name, CERTIFIED, one_run.WITHIN, lower=lower, p_value=p, **detail)


def one_run_curve(question: ScoresQuestion, name: str) -> Estimate:
    """Mahloujifar, Melis & Chaudhuri's recursion against the claim's own curve, or (epsilon, delta) without a claim.

    The epsilon at delta beside a curve is that of `one_run_pure`. A claim is refuted where all smaller ones are.
    """
    claim = question.claim
    own: dict[str, Any] = {}
    guesses = _fixed(question) or one_run_f.guessed(
        question.order, claim or ApproximateDP(1.0, question.delta), question.alpha
    )
    p = None if claim is None else one_run_f.p_value(guesses, claim)
    if claim is None or not curved(claim):
        lower, _ = _parameter(question, ApproximateDP(1.0, question.delta))
    else:
        lower, _, own = _pure(question, None)
        if claim.value:
            own[f"{claim.parameter}_lower"], last = _parameter(question, claim)
            if own[f"{claim.parameter}_lower"] < claim.value:
                p = max(p or 0.0, one_run_f.p_value(last, claim))
    detail = {**own, "guesses": guesses.made, "right": guesses.right}
    return question.estimate(name, CERTIFIED, one_run.WITHIN, lower=lower, p_value=p, **detail)


def one_run_gaussian(question: ScoresQuestion, name: str) -> list[Estimate]:
    """The largest mu-GDP that the recursion refutes; and, which is a model, the epsilon of that curve."""
    own = isinstance(question.claim, GaussianDP) and question.claim.value
    mu, _ = _parameter(question, question.claim if own and question.claim else GaussianDP(1.0))
    return question.of_mu(name, CERTIFIED, one_run.WITHIN, mu)


def _fixed(question: ScoresQuestion) -> Guesses | None:
    """Guesses whose number was known before, as the recursion needs them: as given, or one about every canary."""
    given = question.guessed
    if given is None or given.fixed:
        return given
    if question.given_counts is None:
        return Guesses(int(question.order.sum()), int(question.order.size), int(question.order.size), fixed=True)
    counts = question.given_counts
    return Guesses(counts.tp + counts.tn, given.canaries, given.canaries, fixed=True)


def _parameter(question: ScoresQuestion, claim: Claim) -> tuple[float, Guesses]:
    fixed = _fixed(question)
    return one_run_f.parameter_lower(None if fixed else question.order, claim, question.alpha, fixed)


def _pure(question: ScoresQuestion, promised: float | None) -> tuple[float, float | None, dict[str, Any]]:
    """The bound on epsilon at delta from the coins alone, the p-value of what is promised, and what they rest on."""
    delta, alpha, given = question.delta, question.alpha, question.guessed
    if given is not None:
        p = None if promised is None else one_run.p_value(given, promised, delta)
        detail = {"right": given.right, "guesses": given.made, "canaries": given.canaries}
        return one_run.epsilon_lower(given, delta, alpha), p, detail
    right = question.order
    lower, p, used = weighted.epsilon_lower(right, delta, alpha, question.event, promised)
    shown = {"weights": list(used.weights), "counts": list(used.counts), "canaries": int(right.size)}
    return lower, p, {"won": used.won(right), **shown}


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
    answers = [one(each, alpha, _offset(question, each)) for each in (judged if several else judged[:1])]
    lower, p = statistics.median_low([low for low, _ in answers]), statistics.median_high([p for _, p in answers])
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
    if 0.0 < question.delta != delta:  # the delta that was asked for: a bound of its own, of the same event
        delta = question.delta
        made = replace(made, lower=one(judged[0], alpha, delta)[0])
    return replace(made, value=epsilon_of(c.fpr, c.fn / c.members, delta), delta=delta)


def _offset(question: ScoresQuestion, judged: Judged) -> float:
    rule = judged.rule
    return question.delta if rule is None or rule.offset is None else rule.offset
