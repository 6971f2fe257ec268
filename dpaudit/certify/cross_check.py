"""The independent cross-check: the older rule, two Clopper-Pearson intervals, computed by statsmodels."""

import math

from dpaudit.base.validate import error_probability
from dpaudit.certify.evidence import CoinFlip, FixedSides
from dpaudit.errors import MissingRequirement

METHOD = "two-interval Clopper-Pearson (statsmodels), half the error probability a side"


def two_interval_epsilon(evidence: CoinFlip | FixedSides, delta: float, confidence: float) -> float:
    """ln((lower limit of p - delta) / upper limit of q), each at alpha / 2; 0 where it is not positive.

    `delta` is the one frozen with the event. Valid on its own (Bonferroni), looser than the certificate, and shares
    no code with it. Raises `MissingRequirement` where statsmodels, or pandas that it brings, does not load.

    >>> round(two_interval_epsilon(CoinFlip(900, 100, 1000, 1000), 0.0, 0.95), 3)
    1.99
    """
    if evidence.hits_p * evidence.runs_q <= evidence.hits_q * evidence.runs_p:  # each limit lies beyond its estimate
        return 0.0
    try:
        from statsmodels.stats.proportion import proportion_confint  # with pandas and scipy.stats: a second
    except (Exception, SystemExit) as error:  # a broken pandas raises whatever it likes
        raise MissingRequirement(f"statsmodels cannot be loaded here ({type(error).__name__}: {error})") from None

    alpha = error_probability(confidence)  # each one-sided limit at alpha / 2: a two-sided interval at alpha
    low = float(proportion_confint(evidence.hits_p, evidence.runs_p, alpha=alpha, method="beta")[0])
    high = float(proportion_confint(evidence.hits_q, evidence.runs_q, alpha=alpha, method="beta")[1])
    if not low > delta or math.isnan(low) or math.isnan(high):
        return 0.0
    return max(0.0, math.log((low - delta) / high))
