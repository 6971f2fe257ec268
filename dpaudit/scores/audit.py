"""`audit_scores`: which methods a design allows, and the whole answer."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.strict import stored
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, check_claim, claim_of
from dpaudit.errors import InvalidSpec
from dpaudit.scores import intervals, one_run
from dpaudit.scores.counts import AttackCounts, checked, corners, epsilon_of, epsilon_of_mu, histogram, mu_of, roc
from dpaudit.scores.intervals import RATIOS, Bootstrap, Measure, Posterior
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.question import DESIGNS, MANY, NORMAL, ONE, Every, Given, Judged, ScoresQuestion, choice_of, curved
from dpaudit.scores.result import (
    APPROXIMATE,
    BAYESIAN,
    CERTIFIED,
    INDEPENDENT,
    INTERVALS,
    LINES,
    MODEL,
    POINT,
    Estimate,
    ScoresResult,
)


def exact(question: ScoresQuestion, name: str) -> Estimate:
    """The exact unconditional test of the frozen rule; several splits by the median at half the error probability."""
    claim = question.claim
    return _by_splits(name, question, lambda j, alpha, delta: intervals.exact(j.counts, delta, alpha, claim, j.event))


def clopper_pearson(question: ScoresQuestion, name: str) -> Estimate:
    """Two Clopper-Pearson limits, each at half the error probability; with `Every`, at all ranks at once."""
    claim = question.claim
    if isinstance(question.choice, Every):
        limits = intervals.every_rule(question.inside, question.outside)
        lower = intervals.lower_of(limits, question.delta, question.alpha)
        p = None if claim is None else intervals.p_value_of(limits, claim)
        return question.estimate(name, CERTIFIED, intervals.WITHIN, {"thresholds": "all ranks"}, lower=lower, p_value=p)

    def one(judged: Judged, alpha: float, delta: float) -> tuple[float, float]:
        limits = intervals.fixed_rule(judged.counts)
        return intervals.lower_of(limits, delta, alpha), 1.0 if claim is None else intervals.p_value_of(limits, claim)

    estimate = _by_splits(name, question, one, _limits_own)
    if question.several or question.interval == "lower":
        return estimate
    judged = question.judged[0]
    return replace(
        estimate, upper=intervals.clopper_pearson_upper(judged.counts, estimate.delta or 0.0, question.alpha)
    )


def one_run_pure(question: ScoresQuestion, name: str) -> Estimate:
    """Weighted guesses; or Steinke, Nasr & Jagielski's bound where the guesses were given."""
    promised = None if question.claim is None else float(question.claim.epsilon_at(question.delta))
    lower, p, detail = _pure(question, promised)
    return question.estimate(name, CERTIFIED, one_run.WITHIN, detail, lower=lower, p_value=p)


def one_run_curve(question: ScoresQuestion, name: str) -> Estimate:
    """Mahloujifar, Melis & Chaudhuri's recursion against the claim's own curve, or (epsilon, delta) without a claim.

    Against a curve, the epsilon at delta is that of `one_run_pure`. A claim is refuted where all smaller ones are.
    """
    claim = question.claim
    own: dict[str, Any] = {}
    guesses = _fixed(question) or one_run.guessed(
        question.order, claim or ApproximateDP(1.0, question.delta), question.alpha
    )
    p = None if claim is None else one_run.curve_p_value(guesses, claim)
    if claim is None or not curved(claim):
        lower, _ = _parameter(question, ApproximateDP(1.0, question.delta))
    else:
        lower, _, own = _pure(question, None)
        if claim.value:
            own[f"{claim.parameter}_lower"], last = _parameter(question, claim)
            if own[f"{claim.parameter}_lower"] < claim.value:
                p = max(p or 0.0, one_run.curve_p_value(last, claim))
    detail = {**own, "guesses": guesses.made, "right": guesses.right}
    return question.estimate(name, CERTIFIED, one_run.WITHIN, detail, lower=lower, p_value=p)


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
    return one_run.parameter_lower(None if fixed else question.order, claim, question.alpha, fixed)


def _pure(question: ScoresQuestion, promised: float | None) -> tuple[float, float | None, dict[str, Any]]:
    """The bound on epsilon at delta from the coins alone, the p-value of what is promised, and what they rest on."""
    delta, alpha, given = question.delta, question.alpha, question.guessed
    if given is not None:
        p = None if promised is None else one_run.p_value(given, promised, delta)
        detail = {"right": given.right, "guesses": given.made, "canaries": given.canaries}
        return one_run.epsilon_lower(given, delta, alpha), p, detail
    right = question.order
    lower, p, used = one_run.weighted_lower(right, delta, alpha, question.event, promised)
    shown = {"weights": list(used.weights), "counts": list(used.counts), "canaries": int(right.size)}
    return lower, p, {"won": used.won(right), **shown}


def _frozen_own(claim: Claim, judged: Judged, lower: float, alpha: float) -> float:
    """The bound in a curved claim's own parameter, at the offset that was frozen with the rule."""
    return float(claim.lower(lower, judged.offset))


def _limits_own(claim: Claim, judged: Judged, lower: float, alpha: float) -> float:
    """The same from two limits that hold together: then every tangent does, and the best may be taken afterwards."""
    best, (fpr, fnr) = 0.0, intervals.rectangle(judged.counts, alpha)
    for q, p in ((fpr, 1.0 - fnr), (fnr, 1.0 - fpr)):
        if q < p and p + q <= 1.0:
            d = float(claim.delta_through(q, p))
            best = max(best, float(claim.lower(epsilon_of(q, 1.0 - p, d), d)))
    return best


def _by_splits(method: str, question: ScoresQuestion, one: Any, own: Any = _frozen_own) -> Estimate:
    judged, claim = question.judged, question.claim
    several = question.several and question.given_counts is None
    alpha = question.alpha / 2.0 if several else question.alpha
    answers = [one(each, alpha, each.offset) for each in (judged if several else judged[:1])]
    lower, p = statistics.median_low([low for low, _ in answers]), statistics.median_high([p for _, p in answers])
    detail: dict[str, Any] = {"splits": len(judged)} if several else {}
    if not several and judged[0].rule is not None:
        detail["rule"] = str(judged[0].rule)
    if claim is not None and curved(claim):  # the inversion at the offset that was frozen with the rule
        owned = [own(claim, at, low, alpha) for (low, _), at in zip(answers, judged, strict=False)]
        detail[f"{claim.parameter}_lower"] = statistics.median_low(owned)
    p_value = None if claim is None else min(1.0, 2.0 * p) if several else p
    estimate = question.estimate(method, CERTIFIED, intervals.WITHIN, detail, lower=lower, p_value=p_value)
    if several:  # each split froze a delta of its own: only the parameter has a median
        return replace(estimate, lower=None, delta=None) if curved(claim) else estimate
    c, delta = judged[0].counts, judged[0].offset
    if 0.0 < question.delta != delta:  # the delta that was asked for: a bound of its own, of the same event
        delta = question.delta
        estimate = replace(estimate, lower=one(judged[0], alpha, delta)[0])
    return replace(estimate, value=epsilon_of(c.fpr, c.fn / c.members, delta), delta=delta)


PRIORS = {
    "joint-beta": "independent Jeffreys priors for the two error rates",
    "joint-dirichlet": "one Dirichlet(1/2, 1/2, 1/2, 1/2) prior for the four cells",
}
ALONE = "every canary is answered independently of all others, which one training cannot show: no certificate"
INDEPENDENTLY = f"{ALONE}; {one_run.WITHIN}"
SAMPLES = "the scores of each side are independent draws from one law"
OVER = "right so often on the average over what the prior draws: at epsilon = 0 itself never"


def jeffreys(question: ScoresQuestion, name: str) -> Estimate:
    """Equal-tailed Jeffreys intervals of the two error rates, carried through the region."""
    counts, delta = question.judged[0].counts, question.delta
    low, high = intervals.jeffreys(counts, delta, 2.0 * question.alpha)
    return _interval(question, name, BAYESIAN, f"a Jeffreys prior for each error rate; {SAMPLES}", low, high)


def joint(question: ScoresQuestion, name: str) -> Estimate:
    """Quantiles of the posterior of epsilon; two independent Betas and four cells of a Dirichlet give the same."""
    law = Posterior(question.judged[0].counts)
    low = 0.0 if question.interval == "upper" else law.quantile(question.alpha, question.delta)
    high = math.inf if question.interval == "lower" else law.quantile(1.0 - question.alpha, question.delta)
    return _interval(question, name, BAYESIAN, f"{PRIORS[name]}; {SAMPLES}; {OVER}", low, high)


def ratio(question: ScoresQuestion, name: str) -> Estimate:
    """One of the approximate intervals for a ratio of two rates."""
    from scipy.special import ndtri

    if question.delta != 0.0:
        raise InvalidSpec(f"method {name!r} is for delta = 0, got {question.delta:g}; leave it out")
    c, z = question.judged[0].counts, float(ndtri(question.alpha))
    low, high = (intervals.epsilon_limit(name, c, each) for each in (z, -z))
    return _interval(question, name, APPROXIMATE, f"large counts; {intervals.WITHIN}", low, high)


def gaussian_dp(question: ScoresQuestion, name: str) -> Estimate:
    """The epsilon of the Gaussian curve that the error rates refute; certified for mu, a model for epsilon."""
    if isinstance(question.choice, Every) and question.given_counts is None:
        fpr, fnr = intervals.bands(question.inside, question.outside, question.alpha)
        pairs = list(zip(fpr.tolist(), fnr.tolist(), strict=True))
    else:
        pairs = [intervals.rectangle(question.judged[0].counts, question.alpha)]
    mu = max(mu_of(*each) for each in pairs)
    c = question.judged[0].counts
    plain, estimate = mu_of(c.fpr, c.fn / c.members), question.of_mu(name, CERTIFIED, intervals.WITHIN, mu)[-1]
    if question.delta == 0.0:
        return replace(estimate, value=plain)
    value = epsilon_of_mu(plain, question.delta)
    return replace(estimate, value=value, detail={"mu": plain, **estimate.detail})


def independent(question: ScoresQuestion, name: str) -> Estimate:
    """The exact test of two independent samples, on the canaries of one run: needs that they are answered alone."""
    if min(question.inside.size, question.outside.size) < 2:
        return question.estimate(name, INDEPENDENT, INDEPENDENTLY, lower=0.0)
    estimate = exact(replace(question, claim=None), name)
    return replace(estimate, label=INDEPENDENT, assumption=INDEPENDENTLY)


def independent_gaussian(question: ScoresQuestion, name: str) -> list[Estimate]:
    """The product form for mu-GDP: what order statistics of independent canaries refute."""
    right = question.order
    number = round(one_run.SHARE * right.size)
    guesses = Guesses(int(right[:number].sum()), number, int(right.size), fixed=True)
    mu = one_run.mu_lower(guesses, question.alpha)
    return question.of_mu(name, INDEPENDENT, INDEPENDENTLY, mu)


def gaussian_fit(question: ScoresQuestion, name: str) -> Estimate:
    """The distance of the two means in standard deviations, with limits by Student's t, and the epsilon of that curve.

    For normal scores the lower limit is exact where mu is 0.
    """
    from scipy.special import stdtrit

    mu, error = _fit(question.inside, question.outside)
    z = float(stdtrit(max(1, question.inside.size + question.outside.size - 2), question.alpha))
    ends = {"value": max(0.0, mu), "lower": max(0.0, mu + z * error), "upper": max(0.0, mu - z * error)}
    read = ends
    if question.delta > 0.0:
        read = {key: epsilon_of_mu(each, question.delta) for key, each in ends.items()}
    within = f"the scores in and out are normal with one variance; {ALONE}; {NORMAL}"
    of = {} if question.delta > 0.0 else {"quantity": "mu", "delta": None}
    return question.estimate(name, MODEL, within, {"mu": mu, "mu_error": error}, **read | of)


def _fit(inside: Any, outside: Any) -> tuple[float, float]:
    """(The distance of the two means in pooled standard deviations, its standard error); 0 and infinity for no spread.

    >>> import numpy as np
    >>> [round(each, 3) for each in _fit(np.array([2.0, 4.0]), np.array([0.0, 2.0]))]
    [1.414, 1.118]
    """
    n, k = inside.size, outside.size
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in (inside, outside))
    variance = squares / max(1, n + k - 2)
    if variance <= 0.0:
        return 0.0, math.inf
    mu = float(inside.mean() - outside.mean()) / math.sqrt(variance)
    return mu, math.sqrt(1.0 / n + 1.0 / k + mu * mu / (2.0 * (n + k)))


MEASURES: dict[str, Callable[[ScoresQuestion], list[tuple[str, Measure, dict[str, Any]]]]] = {
    "raw-counts": lambda q: [
        ("epsilon", lambda a, b: roc(a, b).raw_epsilon(q.delta, q.min_count), {"min_count": q.min_count})
    ],
    "auroc": lambda q: [("auroc", lambda a, b: roc(a, b).area, {"hull": roc(q.inside, q.outside).hull_area})],
    "tpr-at-fpr": lambda q: [(f"tpr at fpr {fpr:g}", partial(_tpr_at, fpr), {"fpr": fpr}) for fpr in q.fpr],
}  # of a method its quantities, what computes each from the scores in and out, and the detail


def _tpr_at(fpr: float, inside: Any, outside: Any) -> float:
    return roc(inside, outside).tpr_at(fpr)


def measured(question: ScoresQuestion, name: str) -> list[Estimate]:
    """Plain figures of the scores, with an interval where a bootstrap is asked for."""
    scores, estimates = (question.inside, question.outside), []
    for quantity, measure, detail in MEASURES[name](question):
        values: dict[str, Any] = {"confidence": None} if question.bootstrap is None else {}
        label, within = POINT, f"none beyond {SAMPLES}; no guarantee"
        if question.bootstrap is not None:
            label, kind = APPROXIMATE, question.bootstrap.kind
            within = f"bootstrap ({kind}); {SAMPLES}; of this measure, not of the mechanism"
            shares = [question.alpha, 1.0 - question.alpha]
            ends = question.bootstrap.quantiles(measure, *scores, shares, question.seed)
            values = dict(zip(("lower", "upper"), ends.tolist(), strict=True))
        values |= {"quantity": quantity, "delta": question.delta if quantity == "epsilon" else None}
        estimates.append(question.estimate(name, label, within, detail, value=measure(*scores), **values))
    return estimates


def max_accuracy(question: ScoresQuestion, name: str) -> Estimate:
    """The best accuracy of a threshold, with an upper limit that holds for all thresholds at once."""
    inside, outside, share = question.inside, question.outside, question.prevalence
    weight = inside.size / (inside.size + outside.size) if share is None else share
    right_in, right_out = intervals.right_limits(inside, outside, question.alpha)
    upper = min(1.0, float((weight * right_in + (1.0 - weight) * right_out).max()))
    values = {
        "quantity": "accuracy",
        "delta": None,
        "value": roc(inside, outside).best_accuracy(weight),
        "upper": upper,
    }
    within = f"every threshold is paid for; {intervals.WITHIN}"
    return question.estimate(name, CERTIFIED, within, {"prevalence": weight}, **values)


def _interval(question: ScoresQuestion, method: str, label: str, assumption: str, low: float, high: float) -> Estimate:
    c = question.judged[0].counts
    plain = epsilon_of(c.fpr, c.fn / c.members, question.delta)
    return question.estimate(method, label, assumption, lower=low, upper=high, value=plain)


@dataclass(frozen=True, slots=True)
class Method:
    """A method: what computes it, the designs it is valid for, and whether it needs the scores themselves."""

    compute: Callable[[ScoresQuestion, str], Estimate | list[Estimate]]
    designs: tuple[str, ...] = DESIGNS
    scores: bool = False


METHODS: dict[str, Method] = {
    "exact": Method(exact, (MANY,)),
    "clopper-pearson": Method(clopper_pearson, (MANY,)),
    "one-run": Method(one_run_pure, (ONE,)),
    "one-run-f": Method(one_run_curve, (ONE,)),
    "gaussian": Method(gaussian_dp),
    "one-run-gaussian": Method(one_run_gaussian, (ONE,)),
    "independent": Method(independent, (ONE,), scores=True),
    "independent-gaussian": Method(independent_gaussian, (ONE,), scores=True),
    "gaussian-fit": Method(gaussian_fit, scores=True),
    "jeffreys": Method(jeffreys),
    "joint-beta": Method(joint),
    "joint-dirichlet": Method(joint),
    **{name: Method(ratio) for name in RATIOS},
    "raw-counts": Method(measured, scores=True),
    "auroc": Method(measured, scores=True),
    "tpr-at-fpr": Method(measured, scores=True),
    "max-accuracy": Method(max_accuracy, (MANY,), scores=True),
}


EVENTS = ("in", "out", "both")
COMPANIONS = "independent", "independent-gaussian", "gaussian-fit"  # in addition to a certificate from one run
BAND_POINTS = 200  # corners of the band that a result keeps


def audit_scores(
    in_scores: Any = None,
    out_scores: Any = None,
    *,
    counts: AttackCounts | None = None,
    claim: Claim | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    methods: Iterable[str] | str | None = None,
    design: str = MANY,
    threshold: float | str | None = None,
    split: float | None = None,
    splits: int | None = None,
    guesses: tuple[int, int] | None = None,
    event: str | None = None,
    interval: str = "lower",
    bootstrap: str | Bootstrap | None = None,
    min_count: int = 50,
    fpr: Iterable[float] = (0.001, 0.01, 0.1),
    prevalence: float | None = None,
    seed: int = 0,
) -> ScoresResult:
    """Lower bounds on epsilon from the scores of a membership attack, on members and on non-members.

    `in_scores` and `out_scores` are one-dimensional, one number for each example, higher where the attack believes
    in membership; or `counts`, of a rule that was fixed before. The claim is `claim`, or `epsilon` with `delta`.

    `design` says how the scores came about, and with it what the certificate rests on: "many-run" (each score from a
    model trained independently of the others, the numbers in and out fixed) or "one-run" (canaries of one training
    run, each in or out by a fair coin of its own). `methods` are names in `METHODS`, or "all"; by default the certified
    ones of the design, and for one run what stands beside them. The first certified one decides whether the claim is
    refuted; nothing else does.

    The threshold is never chosen on the scores that certify: it is chosen on a part `split` (0.25) of them drawn with
    `seed`; or over several `splits`, whose median is taken; or `threshold` is given beforehand; or `threshold="all"`
    pays for every one. One run needs none of this: how many guesses are made, and with which weights, is known before
    the run for every claim; `guesses=(k, l)` fixes the numbers of guesses "in" and "out".
    With a given threshold or counts, `event` names the guesses that the exact test compares: "in", "out", or "both"
    (half the error probability each); for one run, the guesses that are made, at any time.

    One run has three lines (`Estimate.line`): certified statements, which rest on the coins alone; those given
    independent canaries, which one run cannot show; estimates. `scores.dependence` tests what can be tested of it.

    `interval` is "lower", "upper" or "two-sided" (half of 1 - `confidence` at each end); an upper end is about this
    attack, never about the mechanism. `bootstrap` ("percentile", "bc", "bca", or a `Bootstrap`) gives the point
    estimates intervals. `fpr` is where "tpr-at-fpr" looks, `min_count` is for "raw-counts".

    Raises `InvalidSpec` for scores, counts or options that cannot be used.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> result = audit_scores(rng.normal(2, 1, 500), rng.normal(0, 1, 500), epsilon=1.0, methods=["clopper-pearson"])
    >>> result.refuted, 1.0 < result.epsilon_lower < 3.5
    (True, True)
    """
    stated, d = stated_claim(claim, epsilon, delta)
    if (counts is None) == (in_scores is None and out_scores is None):
        raise InvalidSpec("give in_scores and out_scores, or counts=..., one of the two")
    if counts is None and (in_scores is None or out_scores is None):
        raise InvalidSpec("give both in_scores and out_scores: one side alone says nothing")
    inside, outside = (None, None) if counts is not None else checked(in_scores, out_scores)
    validate.one_of("design", design, DESIGNS)
    choice = choice_of(threshold, split, splits, design == ONE)
    if counts is not None and any(each is not None for each in (threshold, split, splits, guesses)):
        raise InvalidSpec(
            "counts come from a rule that was fixed before: leave out threshold, split, splits and guesses"
        )
    validate.one_of("interval", interval, INTERVALS)
    if event is not None:
        validate.one_of("event", event, EVENTS)
    if interval == "upper" and stated is not None:
        raise InvalidSpec('interval="upper" refutes no claim: take "lower" or "two-sided", or leave out the claim')
    question = ScoresQuestion(
        inside=inside,
        outside=outside,
        given_counts=counts,
        claim=stated,
        delta=d,
        confidence=validate.open_probability("confidence", confidence),
        design=design,
        choice=choice,
        event=event or ("in" if design == ONE and (counts is not None or isinstance(choice, Given)) else "both"),
        guesses=_guesses(guesses, design, inside, outside),
        interval=interval,
        seed=validate.whole("seed", seed, least=0),
        bootstrap=Bootstrap(bootstrap) if isinstance(bootstrap, str) else bootstrap,
        min_count=validate.whole("min_count", min_count, least=1),
        fpr=tuple(validate.probability("fpr", each) for each in fpr),
        prevalence=None if prevalence is None else validate.probability("prevalence", prevalence),
    )
    names = methods_of(methods, question, delta is not None)
    estimates: list[Estimate] = []
    for name in names:
        answer = METHODS[name].compute(question, name)
        estimates += answer if isinstance(answer, list) else [answer]
    return _result(question, tuple(sorted(estimates, key=lambda each: LINES.index(each.line))))


def _result(question: ScoresQuestion, estimates: tuple[Estimate, ...]) -> ScoresResult:
    judged = question.judged[0]
    known = question.given_counts is not None
    sizes = (judged.counts.members, judged.counts.others) if known else (question.inside.size, question.outside.size)
    how = "counts of a rule that was fixed before" if known else str(question.choice)
    if question.guesses is not None:
        how = f'{question.guesses[0]:,} guesses "in" and {question.guesses[1]:,} "out", fixed before'
    return ScoresResult(
        claim=question.claim,
        design=question.design,
        assumption=intervals.WITHIN if question.design == MANY else one_run.WITHIN,
        sizes=sizes,
        choice=how,
        rule=stored(judged.rule),
        counts=judged.counts,
        confidence=question.confidence,
        interval=question.interval,
        seed=question.seed,
        estimates=estimates,
        roc=() if known else corners(question.inside, question.outside),
        band=() if known or question.design == ONE else _band(question),
        histogram=None if known else histogram(question.inside, question.outside),
    )


def _band(question: ScoresQuestion) -> tuple[tuple[float, float], ...]:
    fpr, fnr = intervals.bands(question.inside, question.outside, 1.0 - question.confidence)
    places = np.unique(np.linspace(0, fpr.size - 1, min(fpr.size, BAND_POINTS)).astype(int))
    return tuple(zip(fpr[places].tolist(), fnr[places].tolist(), strict=True))


def methods_of(methods: Iterable[str] | str | None, question: ScoresQuestion, delta_given: bool) -> tuple[str, ...]:
    """The methods asked for; those that this design, or counts alone, do not allow are refused by name."""
    every = isinstance(question.choice, Every) and question.given_counts is None
    # with no part to choose on, a curved claim has no frozen offset unless delta is given
    known = question.given_counts is not None or isinstance(question.choice, Given)
    no_exact = every or (known and curved(question.claim) and not delta_given)
    if methods is None:
        if question.design == ONE:
            first = ("one-run-f" if curved(question.claim) else "one-run", "one-run-gaussian")
            return first if question.given_counts is not None else first + COMPANIONS
        return ("clopper-pearson",) if no_exact else ("exact", "clopper-pearson")
    if methods == "all":
        left_out = {*(RATIOS if question.delta != 0.0 else ()), *(("exact",) if no_exact else ())}
        left_out |= {name for name, each in METHODS.items() if each.scores and question.given_counts is not None}
        return tuple(name for name in METHODS if question.design in METHODS[name].designs and name not in left_out)
    asked = (methods,) if isinstance(methods, str) else tuple(methods)
    if not asked:
        raise InvalidSpec("methods must name at least one method, or be left out")
    for name in asked:
        validate.one_of("methods", name, tuple(METHODS))
        designs = METHODS[name].designs
        if question.design not in designs:
            raise InvalidSpec(f'method {name!r} is for design="{designs[0]}", got {question.design!r}')
        if question.given_counts is not None and METHODS[name].scores:
            raise InvalidSpec(f"method {name!r} needs the scores, got counts alone")
    if "exact" in asked and no_exact:
        cure = "it tests one rule: take clopper-pearson, or a split" if every else "give delta=... for a curved claim"
        raise InvalidSpec(f"method 'exact' cannot be used here: {cure}")
    return asked


def stated_claim(claim: Claim | None, epsilon: float | None, delta: float | None) -> tuple[Claim | None, float]:
    """The claim, and the delta at which epsilon is bounded."""
    d = None if delta is None else validate.probability("delta", delta)
    if d == 1.0:
        raise InvalidSpec("delta must be below 1, got 1: every mechanism is (epsilon, 1)-DP")
    if claim is None:
        if epsilon is None:
            return None, d or 0.0
        return claim_of(epsilon, d or 0.0), d or 0.0
    if epsilon is not None:
        raise InvalidSpec("give the claim either as claim=... or as epsilon=... and delta=..., not both")
    if not curved(check_claim(claim)) and d is not None and d != claim.delta:
        raise InvalidSpec(f"delta must be that of the claim, {claim.delta:g}, or be left out; got {d:g}")
    return claim, claim.delta if d is None else d


def _guesses(given: Any, design: str, inside: Any, outside: Any) -> tuple[int, int] | None:
    if given is None:
        return None
    if design != ONE:
        raise InvalidSpec('guesses are for design="one-run"; give threshold=... or a split instead')
    try:
        high, low = given
    except (TypeError, ValueError):
        raise InvalidSpec(f'guesses must be two whole numbers ("in", "out"), got {given!r}') from None
    ends = validate.whole("guesses[0]", high, least=0), validate.whole("guesses[1]", low, least=0)
    total = inside.size + outside.size
    if not 0 < sum(ends) <= total:
        raise InvalidSpec(f"guesses must be between 1 and the {total} scores together, got {sum(ends)}")
    return ends
