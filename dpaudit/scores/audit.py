"""`audit_scores`: which methods a design allows, and the whole answer."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.strict import stored
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, check_claim, claim_of
from dpaudit.errors import InvalidSpec
from dpaudit.scores import intervals, one_run
from dpaudit.scores.counts import AttackCounts, checked, corners, epsilon_of, epsilon_of_mu, histogram, mu_of
from dpaudit.scores.designs import Design, FewRuns, ManyRun, OneRun, Steps, check_design, options_of
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.question import NORMAL, JudgedRule, ScoresQuestion, curved, rows_of
from dpaudit.scores.result import CERTIFIED, INDEPENDENT, INTERVALS, LINES, MODEL, Estimate, ScoresResult


def exact(question: ScoresQuestion, name: str) -> Estimate:
    """The exact unconditional test of the frozen rule; several splits by the median at half the error probability."""
    claim = question.claim
    return _by_splits(name, question, lambda j, alpha, delta: intervals.exact(j.counts, delta, alpha, claim, j.event))


def clopper_pearson(question: ScoresQuestion, name: str) -> Estimate:
    """Two Clopper-Pearson limits, each at half the error probability; with `Every`, at all ranks at once."""
    claim = question.claim
    if question.every:
        limits = intervals.every_rule(question.inside, question.outside)
        lower = intervals.lower_of(limits, question.delta, question.alpha)
        p = None if claim is None else intervals.p_value_of(limits, claim)
        return question.estimate(name, CERTIFIED, intervals.WITHIN, {"thresholds": "all ranks"}, lower=lower, p_value=p)

    def one(judged: JudgedRule, alpha: float, delta: float) -> tuple[float, float]:
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
    counts = question.judged[0].counts
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


def _frozen_own(claim: Claim, judged: JudgedRule, lower: float, alpha: float) -> float:
    """The bound in a curved claim's own parameter, at the offset that was frozen with the rule."""
    return float(claim.lower(lower, judged.offset))


def _limits_own(claim: Claim, judged: JudgedRule, lower: float, alpha: float) -> float:
    """The same from two limits that hold together: then every tangent does, and the best may be taken afterwards."""
    best, (fpr, fnr) = 0.0, intervals.rectangle(judged.counts, alpha)
    for q, p in ((fpr, 1.0 - fnr), (fnr, 1.0 - fpr)):
        if q < p and p + q <= 1.0:
            d = float(claim.delta_through(q, p))
            best = max(best, float(claim.lower(epsilon_of(q, 1.0 - p, d), d)))
    return best


def _by_splits(method: str, question: ScoresQuestion, one: Any, own: Any = _frozen_own) -> Estimate:
    judged, claim = question.judged, question.claim
    several = question.several
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


ALONE = "every canary is answered independently of all others, which one training cannot show: no certificate"
INDEPENDENTLY = f"{ALONE}; {one_run.WITHIN}"


def gaussian_dp(question: ScoresQuestion, name: str) -> Estimate:
    """The epsilon of the Gaussian curve that the error rates refute; certified for mu, a model for epsilon."""
    if question.every:
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


def e_values(question: ScoresQuestion, name: str) -> list[Estimate]:
    """The three lines of several trainings, or of steps; steps are composed to a run too."""
    steps = question.design if isinstance(question.design, Steps) else None
    compose = None if steps is None else steps.compose or question.evidence.steps
    return [*question.evidence.lines(compose)]


@dataclass(frozen=True, slots=True)
class Method:
    """A method: what computes it, the designs it is valid for, and whether it needs the scores themselves."""

    compute: Callable[[ScoresQuestion, str], Estimate | list[Estimate]]
    designs: tuple[type[Design], ...]
    scores: bool = False


METHODS: dict[str, Method] = {
    "exact": Method(exact, (ManyRun,)),
    "clopper-pearson": Method(clopper_pearson, (ManyRun,)),
    "gaussian": Method(gaussian_dp, (ManyRun,)),
    "one-run": Method(one_run_pure, (OneRun,)),
    "one-run-f": Method(one_run_curve, (OneRun,)),
    "one-run-gaussian": Method(one_run_gaussian, (OneRun,)),
    "independent": Method(independent, (OneRun,), scores=True),
    "independent-gaussian": Method(independent_gaussian, (OneRun,), scores=True),
    "gaussian-fit": Method(gaussian_fit, (ManyRun, OneRun), scores=True),
    "e-values": Method(e_values, (FewRuns, Steps), scores=True),
}
MANY = ManyRun()
BAND_POINTS = 200  # corners of the band that a result keeps


def audit_scores(
    in_scores: Any = None,
    out_scores: Any = None,
    *,
    design: Design = MANY,
    counts: AttackCounts | None = None,
    claim: Claim | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    methods: Iterable[str] | str | None = None,
    interval: str = "lower",
    seed: int = 0,
    **options: Any,
) -> ScoresResult:
    """Lower bounds on epsilon from the scores of a membership attack, on members and on non-members.

    `in_scores` and `out_scores` are one-dimensional, one number for each example, higher where the attack believes
    in membership; or `counts`, of a rule that was fixed before. The claim is `claim`, or `epsilon` with `delta`.

    `design` says how the scores came about, and with it what the certificate rests on; each has options of its own:
    `ManyRun()` (each score from a model trained independently of the others, the numbers in and out fixed), `OneRun()`
    (canaries of one training run, each in or out by a fair coin of its own), `FewRuns()` and `Steps()` (of several
    trainings, or of their steps: a list of scores for each). `methods` are names in `METHODS`, or "all"; by default the
    certified ones of the design, and what stands beside them. The first certified one decides whether the claim is
    refuted; nothing else does.

    One run has three lines (`Estimate.line`): certified statements, which rest on the coins alone; those given
    independent canaries, which one run cannot show; estimates. The upper end of an `interval` is about this attack,
    never about the mechanism.

    Raises `InvalidSpec` for scores, counts or options that cannot be used; `options` are those of a design, which are
    refused with the place where they belong.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> result = audit_scores(rng.normal(2, 1, 500), rng.normal(0, 1, 500), epsilon=1.0, methods=["clopper-pearson"])
    >>> result.refuted, 1.0 < result.epsilon_lower < 3.5
    (True, True)
    """
    design = check_design(design, options)
    stated, d = stated_claim(claim, epsilon, delta)
    validate.one_of("interval", interval, INTERVALS)
    if interval == "upper" and stated is not None:
        raise InvalidSpec('interval="upper" refutes no claim: take "lower" or "two-sided", or leave out the claim')
    whole, rows = validate.whole("seed", seed, least=0), None
    if (counts is None) == (in_scores is None and out_scores is None):
        raise InvalidSpec("give in_scores and out_scores, or counts=..., one of the two")
    if counts is None and (in_scores is None or out_scores is None):
        raise InvalidSpec("give both in_scores and out_scores: one side alone says nothing")
    if isinstance(design, FewRuns | Steps) and counts is None:
        rows = rows_of(in_scores, out_scores, whole)
        in_scores, out_scores = rows[0][rows[1]], rows[0][~rows[1]]
    inside, outside = (None, None) if counts is not None else checked(in_scores, out_scores)
    question = ScoresQuestion(
        inside=inside,
        outside=outside,
        given_counts=counts,
        claim=stated,
        delta=d,
        confidence=validate.open_probability("confidence", confidence),
        design=design,
        interval=interval,
        seed=whole,
        rows=rows,
    )
    check_together(question)
    estimates: list[Estimate] = []
    for name in methods_of(methods, question, delta is not None):
        answer = METHODS[name].compute(question, name)
        estimates += answer if isinstance(answer, list) else [answer]
    return _result(question, tuple(sorted(estimates, key=lambda each: LINES.index(each.line))))


def check_together(question: ScoresQuestion) -> None:
    """Raises `InvalidSpec` where a design's options do not go with the scores or counts that are there."""
    design = question.design
    counted = question.given_counts is not None
    if counted and not isinstance(design, ManyRun | OneRun):
        raise InvalidSpec(f"counts are for ManyRun() and OneRun(), got design {design.name!r}; give the scores")
    own = [name for name in options_of(type(design)) if getattr(design, name) != getattr(type(design)(), name)]
    if counted and own not in ([], ["event"]):
        raise InvalidSpec(f"counts come from a rule that was fixed before: leave out {own[0]} of the design")
    if isinstance(design, OneRun) and design.guesses is not None:
        total = question.inside.size + question.outside.size
        if not 0 < sum(design.guesses) <= total:
            raise InvalidSpec(f"guesses must be between 1 and the {total} scores together, got {sum(design.guesses)}")
    if question.rows is not None and question.interval != "lower":
        raise InvalidSpec(f"interval={question.interval!r} is for ManyRun() and OneRun(): e-values bound from below")


def _result(question: ScoresQuestion, estimates: tuple[Estimate, ...]) -> ScoresResult:
    judged, design = question.judged[0], question.design
    known = question.given_counts is not None
    sizes = (judged.counts.members, judged.counts.others) if known else (question.inside.size, question.outside.size)
    within = intervals.WITHIN if isinstance(design, ManyRun) else one_run.WITHIN
    asked: dict[str, Any] = {name: getattr(question, name) for name in ("claim", "confidence", "interval", "seed")}
    return ScoresResult(
        **asked,
        design=design.name,
        assumption=within if question.rows is None else question.evidence.within,
        sizes=sizes,
        choice="counts of a rule that was fixed before" if known else str(design),
        rule=stored(judged.rule),
        counts=judged.counts,
        estimates=estimates,
        roc=() if known else corners(question.inside, question.outside),
        band=() if known or not isinstance(design, ManyRun) else _band(question),
        histogram=None if known else histogram(question.inside, question.outside),
    )


def _band(question: ScoresQuestion) -> tuple[tuple[float, float], ...]:
    fpr, fnr = intervals.bands(question.inside, question.outside, 1.0 - question.confidence)
    places = np.unique(np.linspace(0, fpr.size - 1, min(fpr.size, BAND_POINTS)).astype(int))
    return tuple(zip(fpr[places].tolist(), fnr[places].tolist(), strict=True))


def methods_of(methods: Iterable[str] | str | None, question: ScoresQuestion, delta_given: bool) -> tuple[str, ...]:
    """The methods asked for; those that this design, or counts alone, do not allow are refused by name."""
    reasons = {name: _reason(name, question, delta_given) for name in METHODS}
    fit = tuple(name for name, reason in reasons.items() if not reason)
    if methods == "all":
        return fit
    if methods is None:
        left_out = {"gaussian", "one-run" if curved(question.claim) else "one-run-f"}
        left_out |= {"gaussian-fit"} if isinstance(question.design, ManyRun) else set()
        return tuple(name for name in fit if name not in left_out)
    asked = (methods,) if isinstance(methods, str) else tuple(methods)
    if not asked:
        raise InvalidSpec("methods must name at least one method, or be left out")
    for name in asked:
        validate.one_of("methods", name, tuple(METHODS))
        if reasons[name]:
            raise InvalidSpec(reasons[name])
    return asked


def _reason(name: str, question: ScoresQuestion, delta_given: bool) -> str:
    """Why a method cannot be used here; "" where it can."""
    method, design = METHODS[name], question.design
    if not isinstance(design, method.designs):
        return f"method {name!r} is for design {' or '.join(each.name for each in method.designs)}, got {design.name!r}"
    if question.given_counts is not None and method.scores:
        return f"method {name!r} needs the scores, got counts alone"
    if name == "exact" and question.every:
        return "method 'exact' cannot be used here: it tests one rule: take clopper-pearson, or a split"
    # with no part to choose on, a curved claim has no frozen offset unless delta is given
    if name == "exact" and question.known and curved(question.claim) and not delta_given:
        return "method 'exact' cannot be used here: give delta=... for a curved claim"
    return ""


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
