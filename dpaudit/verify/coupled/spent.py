"""What a mechanism spends of privacy, and which claims follow.

Along one way through a program, given all that was public before, each step is a mechanism of its own: one of pure
epsilon, a Gaussian one of sensitivity/sigma, or one that fails with a delta. With all of a way's steps at most the
totals here (Rogers, Roth, Ullman & Vadhan 2016 say why they may depend on what came out before):

* pure steps alone: PureDP of their sum; each is epsilon^2/2-zCDP too (Bun & Steinke 2016, proposition 1.4);
* Gaussian steps alone: the log-likelihood ratio is a sum of normal ones of means m_i^2/2 and variances m_i^2, with
  sum m_i^2 = mu^2 on every way once a last one fills it up: so it is that of one Gaussian mechanism, GaussianDP(mu);
* both: in between stands the run with the pure steps of one dataset and the Gaussian ones of the other. From P to it
  e^epsilon' and delta, from it to Q e^epsilon: P(S) <= e^(epsilon + epsilon') Q(S) + delta(epsilon'). Steps that fail
  are on the side of the pure ones, so their deltas count e^epsilon' times;
* all: rho-zCDP of rho = mu^2/2 + the sum of epsilon^2/2, and from there to (epsilon, delta) by the best Rényi order
  (Canonne, Kamath & Steinke 2020, proposition 12).
"""

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.claims import Claim, RenyiDP
from dpaudit.claims.rounding import above
from dpaudit.verify.enclosure import BITS, ball, gaussian_delta, of_ball

HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Spending:
    """The totals of a way: pure epsilon, the sums of (sensitivity/sigma)^2, of squares of pure steps, of deltas."""

    pure: Fraction = Fraction(0)
    gaussian: Fraction = Fraction(0)
    squares: Fraction | float = Fraction(0)  # infinite of steps that are pure in one direction alone
    delta: Fraction = Fraction(0)

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    @property
    def size(self) -> float:
        """By how much it is more than another, roughly."""
        return float(self.pure) + math.sqrt(self.gaussian) + float(self.delta)

    def epsilon_at(self, delta: float) -> float:
        """An epsilon, rounded up, such that the way is (epsilon, delta)-DP; infinite where there is none."""
        return min(self._by_parts(Fraction(delta)), self._by_rho(Fraction(delta))) if delta else self._pure()

    def _pure(self) -> float:
        return above(self.pure) if not self.gaussian and not self.delta else math.inf

    def _by_parts(self, delta: Fraction) -> float:
        if not self.gaussian:
            return above(self.pure) if self.delta <= delta else math.inf

        def enough(epsilon: float) -> bool:
            with flint().ctx.workprec(BITS):
                failing = ball(self.delta) * ball(Fraction(epsilon)).exp() if self.delta else 0
                own = gaussian_delta(ball(self.gaussian).sqrt(), ball(Fraction(epsilon)))
                return bool(own + failing <= ball(delta))

        beyond = least(enough)
        return beyond if math.isinf(beyond) else above(self.pure + Fraction(beyond))

    def _by_rho(self, delta: Fraction) -> float:
        if self.delta or not (self.gaussian or self.squares) or math.isinf(self.squares):
            return math.inf
        rho = Fraction(self.gaussian + self.squares) / 2
        return least(lambda epsilon: zcdp_delta(rho, epsilon) <= float(delta))

    @property
    def rho(self) -> float:
        """The rho of concentrated DP that follows, rounded up."""
        return math.inf if math.isinf(self.squares) else above(Fraction(self.gaussian + self.squares) / 2)

    def renyi(self, order: float) -> Claim:
        """The Rényi claim at an order that follows: of Gaussian steps, and of pure ones as zCDP."""
        return RenyiDP(order, above(Fraction(order) * Fraction(self.gaussian + self.squares) / 2))


def zcdp_delta(rho: Fraction, epsilon: float) -> float:
    """A delta at epsilon of rho-zCDP, rounded up: e^((a-1)(a rho - epsilon)) / (a-1) (1 - 1/a)^a at a good order a."""
    r = float(rho)
    if epsilon <= r:
        return 1.0
    order = (epsilon + r) / (2 * r)
    steps = [order + (0.5 + 0.05 * k) / (2 * max(epsilon - r, 1e-9)) for k in range(40)]
    good = min((a for a in (order, *steps) if a > 1.0), key=lambda a: _log_delta(r, epsilon, a))
    with flint().ctx.workprec(BITS):
        a, eps = ball(Fraction(good)), ball(Fraction(epsilon))
        value = ((a - 1) * (a * ball(rho) - eps)).exp() / (a - 1) * (1 - 1 / a) ** a
        return of_ball(value).upper


def _log_delta(rho: float, epsilon: float, order: float) -> float:
    return (order - 1) * (order * rho - epsilon) - math.log(order - 1) + order * math.log1p(-1 / order)


def least(enough: Any, most: float = 2.0**12) -> float:
    """The least epsilon that is enough, rounded up; infinite above `most`."""
    low, high = 0.0, 1.0
    if enough(0.0):
        return 0.0
    while not enough(high):
        low, high = high, 2.0 * high
        if high > most:
            return math.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def root_above(square: Fraction) -> float:
    """The square root, rounded up.

    >>> root_above(Fraction(9, 4))
    1.5
    """
    near = math.sqrt(square)
    return near if Fraction(near) ** 2 >= square else math.nextafter(near, math.inf)


def at_most(totals: Iterable[Spending]) -> Spending:
    """Totals that no way exceeds: what a way spends may be chosen by what came out before."""
    return Spending(*map(max, zip(*map(astuple, totals), strict=True)))


def by_sample(total: Spending, chance: Fraction | None, delta: float) -> float:
    """An epsilon at delta, rounded up, where the one record takes part with a chance only, and all but it alike.

    With the record the output's law is p A + (1 - p) B, without it B: at most ln(1 + p (e^epsilon - 1)) at p delta
    (Balle, Barthe & Gaboardi 2018, theorem 9).
    """
    if chance is None:
        return total.epsilon_at(delta)
    if not chance:
        return 0.0
    alone = total.epsilon_at(float(Fraction(delta) / chance))
    if math.isinf(alone):
        return alone
    with flint().ctx.workprec(BITS):
        return of_ball((1 + ball(chance) * (ball(Fraction(alone)).exp() - 1)).log()).upper
