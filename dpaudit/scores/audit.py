"""`audit_scores`: which methods a design allows, and the whole answer."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.strict import stored
from dpaudit.claims import Claim, check_claim, claim_of
from dpaudit.errors import InvalidSpec
from dpaudit.scores import many_run, one_run
from dpaudit.scores.counts import AttackCounts, checked, corners, histogram
from dpaudit.scores.intervals import RATIOS, Bootstrap
from dpaudit.scores.methods import METHODS
from dpaudit.scores.question import DESIGNS, MANY, ONE, Every, Given, ScoresQuestion, choice_of, curved
from dpaudit.scores.result import INTERVALS, LINES, Estimate, ScoresResult

EVENTS = ("in", "out", "both")
COMPANIONS = (
    "independent",
    "independent-gaussian",
    "gaussian-fit",
)  # the lines in addition to a certificate from one run
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
    if counts is not None and (threshold is not None or split is not None or splits is not None or guesses is not None):
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
    how = str(question.choice)
    if known:
        how = "counts of a rule that was fixed before"
    elif question.guesses is not None and question.design == ONE:
        how = f'{question.guesses[0]:,} guesses "in" and {question.guesses[1]:,} "out", fixed before'
    return ScoresResult(
        claim=question.claim,
        design=question.design,
        assumption=many_run.WITHIN if question.design == MANY else one_run.WITHIN,
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
    fpr, fnr = many_run.bands(question.inside, question.outside, 1.0 - question.confidence)
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
        fit = [name for name, each in METHODS.items() if question.design in each.designs]
        fit = [name for name in fit if question.given_counts is None or not METHODS[name].scores]
        fit = [name for name in fit if name not in RATIOS or question.delta == 0.0]
        return tuple(name for name in fit if name != "exact" or not no_exact)
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
