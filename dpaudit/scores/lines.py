"""The three lines of one training: what is certified, what holds given independent canaries, what is an estimate.

They are never mixed. *Certified*: rests on the coins alone, however the training makes its canaries depend on each
other. *Given independent canaries*: needs that no canary's score tells anything of another's, which one training
cannot show; never a verdict. *Estimate*: the scores are normal (or what else the method says); no guarantee.
"""

from __future__ import annotations

from typing import Any

from dpaudit import validate
from dpaudit.claims import Claim, check_claim
from dpaudit.scores import one_run_f, weighted
from dpaudit.scores.audit import answers, methods_of
from dpaudit.scores.choice import Every, curved
from dpaudit.scores.dependence import dependence
from dpaudit.scores.estimate import CERTIFIED, INDEPENDENT, LINES, Estimate
from dpaudit.scores.inputs import checked, coins_of
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.question import ONE, ScoresQuestion

__all__ = ["CERTIFIED", "INDEPENDENT", "LINES", "ceiling", "dependence", "refutable", "three_lines"]


def three_lines(
    scores: Any, included: Any, *, claim: Claim | None, delta: float, confidence: float, seed: int = 0
) -> tuple[Estimate, ...]:
    """The statements about one training, in the order of `LINES`; the first is certified and holds the p-value.

    `scores` and `included` (bools: a fair coin each) have shape (canaries,); higher scores are more like "in". `delta`
    is where epsilon is bounded; a claim of (epsilon, delta)-DP states its own. `seed` breaks ties.

    Raises `InvalidSpec` for scores, coins or numbers that cannot be used.

    >>> import numpy as np
    >>> from dpaudit.claims import GaussianDP
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(2000) < 0.5
    >>> scores = rng.normal(size=2000) + 3.0 * coins
    >>> found = three_lines(scores, coins, claim=GaussianDP(1.0), delta=1e-5, confidence=0.95)
    >>> [f"{each.line}: {each.quantity}" for each in found][:4]
    ['certified: epsilon', 'certified: mu', 'given independent canaries: epsilon', 'given independent canaries: mu']
    >>> found[0].p_value < 0.05
    True
    """
    question = question_of(scores, included, claim=claim, delta=delta, confidence=confidence, seed=seed)
    return answers(question, methods_of(None, question, True))


def question_of(
    scores: Any, included: Any, *, claim: Claim | None, delta: float, confidence: float, seed: int = 0
) -> ScoresQuestion:
    """The question that `three_lines` asks, for `audit.answers` of some of its methods."""
    values, members = coins_of(scores, included)
    inside, outside = checked(values[members], values[~members])
    stated = None if claim is None else check_claim(claim)
    return ScoresQuestion(
        inside=inside,
        outside=outside,
        claim=stated,
        delta=validate.probability("delta", delta) if stated is None or curved(stated) else float(stated.delta),
        confidence=validate.open_probability("confidence", confidence),
        design=ONE,
        choice=Every(),
        event="both",
        seed=validate.whole("seed", seed, least=0),
    )


def ceiling(canaries: int, claim: Claim, delta: float, alpha: float) -> tuple[float, int | None]:
    """(Epsilon bound at `delta` had every guess been right, the least number of canaries that could refute the claim).

    The second is None where not even 2^30 canaries could. One training, at error probability `alpha`.

    >>> from dpaudit.claims import ApproximateDP
    >>> bound, least = ceiling(1000, ApproximateDP(2.0, 1e-5), 1e-5, 0.05)
    >>> bound > 5.0, least
    (True, 24)
    """
    import numpy as np

    least = next((m for m in (2**i for i in range(31)) if refutable(m, claim, alpha)), None)
    low = (least or 2) // 2
    while least is not None and least - low > 1:
        middle = (low + least) // 2
        low, least = (low, middle) if refutable(middle, claim, alpha) else (middle, least)
    return weighted.epsilon_lower(np.ones(canaries, dtype=bool), delta, alpha)[0], least


def refutable(canaries: int, claim: Claim, alpha: float) -> bool:
    """Whether so many canaries would refute the claim at error probability `alpha`, had every guess been right."""
    if not curved(claim):
        epsilon, delta = float(claim.epsilon_at(float(claim.delta))), float(claim.delta)
        used = weighted.design(canaries, epsilon, delta, alpha)
        return weighted.p_value(used, used.total, canaries, epsilon, delta) <= alpha
    made = one_run_f.made_for(claim, canaries, alpha)
    return one_run_f.is_refuted(Guesses(made, made, canaries, fixed=True), one_run_f.region_of(claim), alpha)
