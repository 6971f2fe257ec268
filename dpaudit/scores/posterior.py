"""Bayesian statements: the posterior of the two error rates under Jeffreys priors, and of epsilon with it.

Zanella-Beguelin et al. 2023 (ICML). The four cells with a Dirichlet(1/2, 1/2, 1/2, 1/2) prior give the very same law
of (fpr, fnr) as two independent Betas, so "joint-dirichlet" is "joint-beta" by another name, and is computed as it.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.claims.crossing import narrowed
from dpaudit.scores.counts import AttackCounts
from dpaudit.scores.gaussian import epsilon_of

PANELS, NODES = 48, 16  # of the Gauss-Legendre rule along the posterior of fnr
LARGEST_EPSILON = 60.0


@dataclass(frozen=True, slots=True)
class Posterior:
    """The joint posterior of (fpr, fnr) for the counts of one attack.

    >>> p = Posterior(AttackCounts(tp=60, fp=20, tn=80, fn=40))
    >>> 0.5 < p.quantile(0.05, 0.0) < p.quantile(0.95, 0.0) < 1.6
    True
    """

    counts: AttackCounts

    def probability_private(self, epsilon: float, delta: float) -> float:
        """The posterior probability that the attack's error rates are allowed by (epsilon, delta)-DP."""
        from scipy.special import betainc

        x, weights = self._nodes(epsilon, delta)
        a, b = self.counts.fp + 0.5, self.counts.tn + 0.5
        low, high = _edges(x, epsilon, delta)
        return float(min(1.0, max(0.0, (weights * (betainc(a, b, high) - betainc(a, b, low))).sum())))

    def quantile(self, share: float, delta: float) -> float:
        """The epsilon below which the posterior has a part `share`; 0.0 where epsilon = 0 has it already."""
        if self.probability_private(0.0, delta) >= share:
            return 0.0
        low, high = 0.0, 1.0
        while high < LARGEST_EPSILON and self.probability_private(high, delta) < share:
            low, high = high, 2.0 * high
        if high >= LARGEST_EPSILON:
            return math.inf
        return narrowed(lambda epsilon: self.probability_private(epsilon, delta) < share, low, high, 1e-8)[0]

    def _nodes(self, epsilon: float, delta: float) -> tuple[Any, Any]:
        """Nodes of fnr and their posterior weights: panels of equal mass, cut where an edge of the region bends."""
        from scipy.special import betainc, betaincinv

        a, b = self.counts.fn + 0.5, self.counts.tp + 0.5
        corner = (1.0 - delta) / (1.0 + math.exp(epsilon))
        bends = np.clip([0.0, delta, corner, 1.0 - corner, 1.0 - delta, (1.0 - delta) * math.exp(-epsilon)], 0.0, 1.0)
        tails = np.geomspace(1e-12, 0.02, 12)
        cuts = np.unique(
            np.concatenate([[0.0, 1.0], np.linspace(0.0, 1.0, PANELS + 1), tails, 1.0 - tails, betainc(a, b, bends)])
        )
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        half = np.diff(cuts) / 2.0
        mass = (cuts[:-1] + half)[:, None] + half[:, None] * nodes[None, :]
        return betaincinv(a, b, mass.ravel()), (half[:, None] * weights[None, :]).ravel()


def jeffreys(counts: AttackCounts, delta: float, alpha: float) -> tuple[float, float]:
    """(lower, upper) epsilon from equal-tailed Jeffreys intervals of fpr and fnr, alpha / 4 in each of the four tails.

    The intervals reach 0 and 1 where a count is 0 or all (Brown, Cai & DasGupta 2001, section 4.1.2).
    """
    from scipy.special import betaincinv

    def limits(hits: int, size: int) -> tuple[float, float]:
        a, b, tail = hits + 0.5, size - hits + 0.5, alpha / 4.0
        low = 0.0 if hits == 0 else float(betaincinv(a, b, tail))
        return low, 1.0 if hits == size else float(betaincinv(a, b, 1.0 - tail))

    (x_low, x_high), (y_low, y_high) = limits(counts.fp, counts.others), limits(counts.fn, counts.members)
    ends = epsilon_of(x_low, y_low, delta), epsilon_of(x_high, y_high, delta)
    crossed = (x_low + y_low < 1.0) != (x_high + y_high < 1.0)  # the rectangle holds guessing at random
    return 0.0 if crossed else min(ends), max(ends)


def _edges(x: Any, epsilon: float, delta: float) -> tuple[Any, Any]:
    """The least and the largest fpr that (epsilon, delta)-DP allows at fnr = x."""
    grow, shrink = math.exp(epsilon), math.exp(-epsilon)
    low = np.maximum(0.0, np.maximum(1.0 - delta - grow * x, shrink * (1.0 - delta - x)))
    high = np.minimum(1.0, np.minimum(1.0 + (delta - x) * shrink, delta + (1.0 - x) * grow))
    return low, np.maximum(low, high)
