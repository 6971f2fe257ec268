"""The whole privacy profile from below: what frozen events certify of delta at every epsilon at once.

The lower limit A of p and the upper one B of q, each at alpha / 2, hold together; then the event gives delta(epsilon)
>= A - e^epsilon B, its complement (1 - B) - e^epsilon (1 - A), at every epsilon (the proof: docs/statistics/curves.md).
With k events, as the first bins of a partition are, each limit has alpha / (2 k), and the largest of all these lines
is the bound. It is a statement of its own: looser than a certificate at the one delta it was frozen for. Runs whose
sides fair coins drew count as well: given those coins the hits of either side are binomial.
"""

import math
from dataclasses import dataclass

from dpaudit.base.validate import error_probability
from dpaudit.certify.binomial import joint_limits
from dpaudit.certify.evidence import Evidence

LARGEST = 700.0  # e to this is still a float
ROUNDING = 1e-15  # relative: more than what a product and two sums lose


@dataclass(frozen=True, slots=True)
class LowerProfile:
    """Limits (A, B) of each event, P(S) >= A and Q(S) <= B, that hold all together with probability `confidence`.

    >>> from dpaudit.certify import CoinFlip
    >>> profile = LowerProfile.of(CoinFlip(900, 100, 1000, 1000), confidence=0.95)
    >>> [round(profile.delta_at(epsilon), 3) for epsilon in (0.0, 1.0, 2.0)]
    [0.759, 0.553, 0.0]
    """

    limits: tuple[tuple[float, float], ...]
    confidence: float

    @classmethod
    def of(cls, evidence: Evidence, confidence: float) -> "LowerProfile":
        """The limits from the counts of one event, or of the first bins of a partition together."""
        limits = joint_limits(evidence.events, evidence.runs_p, evidence.runs_q, error_probability(confidence))
        return cls(limits, confidence)

    def delta_at(self, epsilon: float) -> float:
        """The certified lower bound on delta at `epsilon`, at least 0; rounded down. 0 where nothing is certified."""
        if epsilon > LARGEST:
            return 0.0
        ratio = math.exp(epsilon)
        gains = (_less(a, ratio * b) for low, high in self.limits for a, b in ((low, high), (1.0 - high, 1.0 - low)))
        return max(0.0, *gains)

    def epsilon_at(self, delta: float) -> float:
        """The certified lower bound on epsilon at `delta`, at least 0; rounded down.

        >>> round(LowerProfile(((0.9, 0.1),), 0.95).epsilon_at(0.1), 4)  # ln(0.8 / 0.1)
        2.0794
        """
        sides = ((a, b) for low, high in self.limits for a, b in ((low, high), (1.0 - high, 1.0 - low)))
        return max(0.0, *(_log_ratio(_less(a, delta), b) for a, b in sides))


def _less(a: float, b: float) -> float:
    """a - b, rounded down. Either is a limit, or one of them times a number, with at most a few roundings."""
    return a - b - ROUNDING * (abs(a) + abs(b))


def _log_ratio(above: float, below: float) -> float:
    if not above > 0.0:
        return 0.0
    if not below > 0.0:  # 1 - A with a limit of almost 1: the largest epsilon that is stated
        return LARGEST
    ratio = math.log(above) - math.log(below)
    return min(LARGEST, ratio - ROUNDING * (abs(math.log(above)) + abs(math.log(below)) + 1.0))
