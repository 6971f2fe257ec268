"""The methods without a guarantee: model-based, Bayesian, approximate, and plain estimates. None decides a verdict."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.scores import gaussian, intervals, many_run, one_run, roc
from dpaudit.scores.certified import exact
from dpaudit.scores.estimate import APPROXIMATE, BAYESIAN, CERTIFIED, INDEPENDENT, MODEL, POINT, Estimate
from dpaudit.scores.gaussian import epsilon_of
from dpaudit.scores.intervals import Posterior
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.question import NORMAL, Every, ScoresQuestion

PRIORS = {
    "joint-beta": "independent Jeffreys priors for the two error rates",
    "joint-dirichlet": "one Dirichlet(1/2, 1/2, 1/2, 1/2) prior for the four cells",
}
ALONE = "every canary is answered independently of all others, which one training cannot show: no certificate"
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
    low = law.quantile(question.alpha, question.delta) if question.wants_lower else 0.0
    high = law.quantile(1.0 - question.alpha, question.delta) if question.wants_upper else math.inf
    return _interval(question, name, BAYESIAN, f"{PRIORS[name]}; {SAMPLES}; {OVER}", low, high)


def ratio(question: ScoresQuestion, name: str) -> Estimate:
    """One of the approximate intervals for a ratio of two rates."""
    from scipy.special import ndtri

    if question.delta != 0.0:
        raise InvalidSpec(f"method {name!r} is for delta = 0, got {question.delta:g}; leave it out")
    c, z = question.judged[0].counts, float(ndtri(question.alpha))
    low = intervals.epsilon_limit(name, c.tp, c.members, c.fp, c.others, z)
    high = intervals.epsilon_limit(name, c.tp, c.members, c.fp, c.others, -z)
    return _interval(question, name, APPROXIMATE, f"large counts; {many_run.WITHIN}", low, high)


def gaussian_dp(question: ScoresQuestion, name: str) -> Estimate:
    """The epsilon of the Gaussian curve that the error rates refute; certified for mu, a model for epsilon."""
    if isinstance(question.choice, Every) and question.given_counts is None:
        fpr, fnr = many_run.bands(question.inside, question.outside, question.alpha)
        pairs = list(zip(fpr.tolist(), fnr.tolist(), strict=True))
    else:
        pairs = [many_run.rectangle(question.judged[0].counts, question.alpha)]
    mu = max(gaussian.mu_of(*each) for each in pairs)
    c = question.judged[0].counts
    plain, made = gaussian.mu_of(c.fpr, c.fn / c.members), question.of_mu(name, CERTIFIED, many_run.WITHIN, mu)[-1]
    if question.delta == 0.0:
        return replace(made, value=plain)
    return replace(made, value=gaussian.epsilon_of_mu(plain, question.delta), detail={"mu": plain, **made.detail})


def independent(question: ScoresQuestion, name: str) -> Estimate:
    """The exact test of two independent samples, on the canaries of one run: needs that they are answered alone."""
    if min(question.inside.size, question.outside.size) < 2:
        return question.estimate(name, INDEPENDENT, f"{ALONE}; {one_run.WITHIN}", lower=0.0)
    made = exact(replace(question, claim=None), name)
    return replace(made, label=INDEPENDENT, assumption=f"{ALONE}; {one_run.WITHIN}")


def independent_gaussian(question: ScoresQuestion, name: str) -> list[Estimate]:
    """The product form for mu-GDP: what order statistics of independent canaries refute."""
    right = question.order
    made = round(one_run.SHARE * right.size)
    guesses = Guesses(int(right[:made].sum()), made, int(right.size), fixed=True)
    mu = one_run.mu_lower(guesses, question.alpha)
    return question.of_mu(name, INDEPENDENT, f"{ALONE}; {one_run.WITHIN}", mu)


def gaussian_fit(question: ScoresQuestion, name: str) -> Estimate:
    """The distance of the two means in standard deviations, with limits by Student's t, and the epsilon of that curve.

    For normal scores the lower limit is exact where mu is 0.
    """
    from scipy.special import stdtrit

    mu, error = gaussian.fitted(question.inside, question.outside)
    z = float(stdtrit(max(1, question.inside.size + question.outside.size - 2), question.alpha))
    ends = {"value": max(0.0, mu), "lower": max(0.0, mu + z * error), "upper": max(0.0, mu - z * error)}
    read = ends
    if question.delta > 0.0:
        read = {key: gaussian.epsilon_of_mu(each, question.delta) for key, each in ends.items()}
    within = f"the scores in and out are normal with one variance; {ALONE}; {NORMAL}"
    made = question.estimate(name, MODEL, within, mu=mu, mu_error=error, **read)
    return made if question.delta > 0.0 else replace(made, quantity="mu", delta=None)


def raw_counts(question: ScoresQuestion, name: str) -> Estimate:
    """The largest plain log ratio over the thresholds with enough counts."""

    def measure(inside: Any, outside: Any) -> float:
        return roc.raw_epsilon(inside, outside, question.delta, question.min_count)

    made = _measured(question, name, "epsilon", measure, {"min_count": question.min_count})
    return replace(made, delta=question.delta)


def auroc(question: ScoresQuestion, name: str) -> Estimate:
    """The area under the ROC curve; with the hull's in the detail."""
    hull = roc.hull_area(question.inside, question.outside)
    return _measured(question, name, "auroc", roc.auroc, {"hull": hull})


def tpr_at_fpr(question: ScoresQuestion, name: str) -> list[Estimate]:
    """The true positive rate at each false positive rate."""
    return [
        _measured(question, name, f"tpr at fpr {fpr:g}", partial(roc.tpr_at, fpr=fpr), {"fpr": fpr})
        for fpr in question.fpr
    ]


def max_accuracy(question: ScoresQuestion, name: str) -> Estimate:
    """The best accuracy of a threshold, with an upper limit that holds for all thresholds at once."""
    inside, outside, share = question.inside, question.outside, question.prevalence
    weight = inside.size / (inside.size + outside.size) if share is None else share
    right_in, right_out = many_run.right_limits(inside, outside, question.alpha)
    upper = float((weight * right_in + (1.0 - weight) * right_out).max())
    return Estimate(
        method=name,
        label=CERTIFIED,
        quantity="accuracy",
        assumption=f"every threshold is paid for; {many_run.WITHIN}",
        value=roc.best_accuracy(inside, outside, share),
        upper=min(1.0, upper) if question.wants_upper else None,
        confidence=question.confidence,
        detail={"prevalence": weight},
    )


def _interval(question: ScoresQuestion, method: str, label: str, assumption: str, low: float, high: float) -> Estimate:
    c = question.judged[0].counts
    plain = epsilon_of(c.fpr, c.fn / c.members, question.delta)
    return question.estimate(method, label, assumption, lower=low, upper=high, value=plain)


def _measured(
    question: ScoresQuestion, method: str, quantity: str, measure: Callable[[Any, Any], float], detail: dict[str, Any]
) -> Estimate:
    inside, outside = question.inside, question.outside
    made = Estimate(
        method=method,
        label=POINT,
        quantity=quantity,
        assumption=f"none beyond {SAMPLES}; no guarantee",
        value=measure(inside, outside),
        detail=detail,
    )
    if question.bootstrap is None:
        return made
    shares = [question.alpha, 1.0 - question.alpha]
    low, high = question.bootstrap.quantiles(measure, inside, outside, shares, question.seed)
    return replace(
        made,
        label=APPROXIMATE,
        assumption=f"bootstrap ({question.bootstrap.kind}); {SAMPLES}; of this measure, not of the mechanism",
        lower=float(low) if question.wants_lower else None,
        upper=float(high) if question.wants_upper else None,
        confidence=question.confidence,
    )
