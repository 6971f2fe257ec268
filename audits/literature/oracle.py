"""What the best event could show: the bound of the certifier itself, and the ceiling of a rule that fixes the mass.

Nothing is certified here. The bound of an event is taken at its expected counts, so that an audit with the same
certifier and the same certifying runs is compared with the choice of its event alone.
"""

from __future__ import annotations

import math

import numpy as np

from audits.literature.laws.curve import Curve
from dpaudit.certify import CoinFlip
from dpaudit.certify.coin_flip import epsilon_lower

GRID = 3e-3  # relative: less is added to the bound of the best event where numbers are cut eight times as finely
TRIED = 8  # events that are certified; a formula without their safety margins picks them


def oracle_bound(curve: Curve, runs: int, alpha: float) -> float:
    """The largest coin-flip bound at error probability `alpha` of the curve's events at their expected counts.

    `runs` are those of both sides together, half of them a side, all for certification. Counts are rounded to the
    nearest integers; where no run of Q is expected to hit, the bound is that of as many hits of P alone.

    >>> curve = Curve(np.array([0.5]), np.array([0.0]), math.inf, 0.0, "closed form")
    >>> round(oracle_bound(curve, 200, 0.05), 4)  # 50 hits against none: ln(r / (1 - r)), r = 0.05^(1/50)
    2.7847
    """
    from scipy.special import betainccinv

    half = runs // 2
    hits = np.minimum(half, np.rint(half * np.minimum(curve.p, 1.0)))
    others = np.minimum(half, np.rint(half * np.minimum(curve.q, 1.0)))
    pairs = np.unique(np.stack([hits, others], axis=1)[hits > others], axis=0)
    if not len(pairs):
        return 0.0
    share = betainccinv(pairs[:, 1] + 1.0, pairs[:, 0], alpha)  # the Clopper-Pearson limit of Q's share of the hits
    best = pairs[np.argsort(share, kind="stable")[:TRIED]]
    return max(epsilon_lower(CoinFlip(int(x), int(y), half, half), 0.0, alpha) for x, y in best)


def ceiling(curve: Curve, mass: float = 0.01) -> float:
    """The largest ln(P(S) / Q(S)) with Q(S) = `mass`: what a rule that fixes the mass of its event can show at most.

    The edge of the event is randomised, as in DP-Sniper (Bichsel et al. 2021, Algorithm 1, c = 0.01).

    >>> curve = Curve(np.array([0.25, 1.0]), np.array([0.005, 1.0]), 4.0, 0.0, "closed form")
    >>> round(ceiling(curve), 3)  # the first event, and a little of the rest
    3.234
    """
    p, q = np.append(curve.p, 1.0), np.append(curve.q, 1.0)
    place = int(np.searchsorted(q, mass, side="right"))  # the first event that is too heavy; those before it are taken
    at = (float(p[place - 1]), float(q[place - 1])) if place else (0.0, 0.0)
    if place == len(q):
        return math.log(at[0] / mass)
    rest = (mass - at[1]) / (float(q[place]) - at[1])
    taken = at[0] + rest * (float(p[place]) - at[0])
    return math.log(taken / mass) if taken > 0.0 else -math.inf
