"""The whole pipeline, search included, against the truth. Each test may raise a false alarm; this is how often.

Seeds are fixed, so a test that holds today holds tomorrow: the rates say how likely each is to fail when seeds
are changed, or when a change of the code draws other numbers. An audit at confidence 0.95 refutes a true claim
with probability at most 0.05, so the refutations of m audits are below a quantile of Bin(m, 0.05).
"""

from __future__ import annotations

from collections.abc import Callable

from scipy.stats import binom

CONFIDENCE = 0.95
FALSE_ALARM = 1e-6  # of each test of validity or null, by the binomial limit: exact, whatever the mechanism
POWER_ALARM = 1e-6  # of each test that wants refutations: by the margins named there

AUDITS = {  # seeded audits of each mechanism, three times as many by night, and the runs of each
    "laplace": (16, 3_000),
    "randomised_response": (20, 1_000),
    "report_noisy_max": (14, 3_000),
    "above_threshold": (14, 2_000),
    "gaussian": (14, 3_000),
}


def most_refuted(audits: int, error: float = 1.0 - CONFIDENCE) -> int:
    """The most refutations of true claims that chance explains: the 1 - `FALSE_ALARM` quantile.

    >>> most_refuted(2_000)
    149
    """
    return int(binom.ppf(1.0 - FALSE_ALARM, audits, error))


def refuted_too_often(refuted: Callable[[int], bool], audits: int) -> bool:
    """Whether more than `most_refuted` of the audits with the seeds 0, 1, ... are; none is made once that is decided.

    >>> refuted_too_often(lambda seed: True, 20), refuted_too_often(lambda seed: seed > 11, 20)
    (True, False)
    """
    most, count = most_refuted(audits), 0
    for left in range(audits, 0, -1):
        if count > most or count + left <= most:
            break
        count += refuted(audits - left)
    return count > most
