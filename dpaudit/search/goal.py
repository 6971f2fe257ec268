"""What an event is chosen for: the bound that the certifying runs will give it, errors of search taken off.

An event is a point (q, p) that the search runs place only roughly. The score lowers it twice, each time to the
least favourable point of an ellipse: by the luck of the search, so that luck is not taken for a leak, and by
what the certificate will lose at its own, larger, number of runs, so that rare events are judged at that size.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.claims import Claim, frozen_delta

FEWEST_HITS = 10
LARGEST, RAREST = 700.0, 1e-100  # e to a larger power is no float; the square of a smaller rate is none
STEP = 1e-4  # of ln p and ln q, for the slopes of a claim's parameter


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the search may be wrong: the variances of ln p and ln q, and their covariance, for each event."""

    p: Reals
    q: Reals
    both: Reals | float = 0.0

    def at(self, place: int) -> "Spread":
        """Of one event."""
        part = slice(place, place + 1)
        return Spread(self.p[part], self.q[part], self.both if isinstance(self.both, float) else self.both[part])


@dataclass(frozen=True, slots=True)
class Goal:
    """What the chosen event will be used for: the claim at the pair's distance, and the certification to come.

    `runs` are the certifying runs of both sides together, `alpha` the certificate's error probability. Of the certifier
    search knows two facts: `coins`, it compares hits alone, of runs whose sides coins drew; `bins`, it has a limit for
    each count of a partition.
    """

    claim: Claim
    runs: int
    alpha: float
    coins: bool = True
    bins: bool = False

    def scores(self, x: Reals, y: Reals, runs_p: Reals | int, runs_q: Reals | int, z: Reals | float) -> Reals:
        """The predicted bound, in the claim's parameter, of events with these search counts; -inf with too few hits.

        Hits of side P and of side Q, float64[events], of so many runs; `z` deviations of luck are taken off.
        """
        p, q = (x + 0.5) / (runs_p + 1.0), (y + 0.5) / (runs_q + 1.0)
        luck = Spread(luck_down(x, p, z) ** 2, luck_up(y, q, z) ** 2)
        return np.where(x + y >= FEWEST_HITS, self.predicted(p, q, luck), -np.inf)

    def predicted(self, p: Reals, q: Reals, luck: Spread) -> Reals:
        """The predicted bound of events estimated at (q, p) with this much luck; -inf where there will be none.

        Rates, luck and bounds are float64[events].
        """
        if not self.linear:
            p, q = self.lowered(p, q, luck)
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                bound = np.asarray(self.claim.least_parameter(q, p), np.float64)
            return np.where((p > q) & np.isfinite(bound), bound, -np.inf)
        spare = p - self._given_away()
        final = self._final(p, q)
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = p / spare
            search = np.sqrt(weight**2 * luck.p + luck.q - 2.0 * weight * luck.both)
            score: Reals = np.log(spare / q) - search - np.sqrt(weight**2 * final.p + final.q)
        return np.where(spare > 0.0, score, -np.inf)

    def lowered(self, p: Reals, q: Reals, luck: Spread) -> tuple[Reals, Reals]:
        """The points (p, q) that the certificate is expected to reach: least favourable twice, p + q at most 1.

        Beyond p + q = 1 the complement, on the other side, is the better event.
        """
        p, q = self._least(p, q, luck)
        final = self._final(p, q)
        if self.bins:  # a limit for each count, not one for both
            return _inside(p, q, np.sqrt(final.p), -np.sqrt(final.q))
        return self._least(p, q, final)

    def delta(self, p: float, q: float, luck: Spread) -> float:
        """The delta to freeze for an event estimated at (q, p): of the tangent where the certificate will end.

        After bad luck it ends lower, and where it would leave no epsilon at this delta there is nothing to certify;
        so the tangent is that of a point which is lower by the certificate's own error once more.
        """
        if self.linear:
            return self.claim.delta
        there = self.lowered(np.array([p]), np.array([q]), luck)
        if not self.bins:
            there = self._least(*there, self._final(*there))
        return frozen_delta(self.claim, float(there[1][0]), float(there[0][0]))

    @property
    def linear(self) -> bool:
        """Whether the claim is a line with a delta of its own, the same for every member of its family."""
        return self.claim.linear

    def score(self, bound: float, delta: float) -> float:
        """A predicted bound as people read it: of a claim that is a whole curve, an epsilon at this delta."""
        promised = self.claim.promised(delta) if self._shifted else 0.0
        return bound + promised if math.isfinite(promised) else bound

    def rank(self, score: float, delta: float) -> float:
        """A score as it compares with others of this claim: of a whole curve, how far the curve must move."""
        promised = self.claim.promised(delta) if self._shifted else 0.0
        return score - promised if math.isfinite(promised) else score

    @property
    def _shifted(self) -> bool:
        """Whether the claim has no parameter of its own: what is predicted is then a shift of its epsilons."""
        return self.claim.value is None

    def _least(self, p: Reals, q: Reals, spread: Spread) -> tuple[Reals, Reals]:
        """The point of each ellipse, in (ln p, ln q), where the claim's parameter is least, to first order."""
        slope_p, slope_q = self._slopes(p, q)
        down = slope_p * spread.p + slope_q * spread.both
        up = slope_p * spread.both + slope_q * spread.q
        with np.errstate(invalid="ignore", divide="ignore"):
            size = np.sqrt(slope_p * down + slope_q * up)
            down, up = (np.where(size > 0.0, part / size, 0.0) for part in (down, up))
            return _inside(p, q, down, up)

    def _slopes(self, p: Reals, q: Reals) -> tuple[Reals, Reals]:
        p, q = _inside(p, q, 0.0, 0.0)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            here, more_p, more_q = (
                np.asarray(self.claim.least_parameter(each_q, each_p), np.float64)
                for each_q, each_p in ((q, p), (q, p * math.exp(STEP)), (q * math.exp(STEP), p))
            )
            slopes = (more_p - here) / STEP, (more_q - here) / STEP
        known = np.isfinite(slopes[0]) & np.isfinite(slopes[1]) & (slopes[0] > 0.0) & (slopes[1] < 0.0)
        return np.where(known, slopes[0], 1.0), np.where(known, slopes[1], -1.0)

    def _final(self, p: Reals, q: Reals) -> Spread:
        """What the certificate loses, as variances of ln p and ln q with its quantile in them."""
        from scipy.special import ndtri

        z, side = -float(ndtri(self.alpha / 2.0 if self.bins else self.alpha)), self.runs / 2.0
        rates = (np.zeros_like(p), np.zeros_like(q)) if self.coins else (p, q)
        with np.errstate(divide="ignore"):  # of the rarest events: their limit stays where it is for none
            rarer = np.log1p(0.5 / (side * q))
        return Spread(luck_down(side * p, rates[0], z) ** 2, (luck_up(side * q, rates[1], z) + rarer) ** 2)

    def _given_away(self) -> float:
        """The rate of P's hits that the delta part may explain; in the coin-flip design its quantile."""
        delta = self.claim.delta
        if delta == 0.0 or not self.coins:
            return delta
        mean = self.runs * delta / 2.0
        return 2.0 * (mean + 2.6 * math.sqrt(mean) + 1.0) / self.runs


def _inside(p: Reals, q: Reals, down: Reals | float, up: Reals | float) -> tuple[Reals, Reals]:
    """The rates, lowered by so much in their logarithms; q at most 1, and p at most what it leaves."""
    p, q = (rate * np.exp(np.minimum(-by, LARGEST)) for rate, by in ((p, down), (q, up)))
    q = np.clip(q, RAREST, 1.0)
    return np.maximum(np.minimum(p, 1.0 - q), RAREST), q


def luck_up(hits: Reals, rate: Reals, z: Reals | float) -> Reals:
    """ln(upper limit / estimate) of a count, `z` deviations up, by the cube root of Wilson & Hilferty (1931).

    `hits` and the `rate` that they were seen at have one shape, and so has the answer, in nats.
    """
    n = hits + 1.0
    upper = n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * np.sqrt(n))) ** 3
    return np.asarray(np.log(upper / (hits + 0.5)) * np.sqrt(1.0 - rate))


def luck_down(hits: Reals, rate: Reals, z: Reals | float) -> Reals:
    """ln(estimate / lower limit) of a count, `z` deviations down, by the same formula, of the same shapes."""
    n = np.maximum(hits, 0.5)
    lower = n * np.maximum(1.0 - 1.0 / (9.0 * n) - z / (3.0 * np.sqrt(n)), 1e-3) ** 3
    return np.asarray(np.log((hits + 0.5) / lower) * np.sqrt(1.0 - rate))
