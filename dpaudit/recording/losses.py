"""The loss of a pair on which independent noise has moved: what a claim says of it, in the claim's own parameter.

Two laws of a number are known by location and scale. Losses of independent numbers add up, so that of all is found from
their distributions, which the cells of a grid underestimate and never overestimate.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.losses.distribution import Losses, added
from dpaudit.recording.laws import CHOICE, COUNTED, law_named

CELLS, CELLS_OF_LOSSES = 60_001, 1 << 19  # of a grid of outputs, and of one of losses
FAR, LARGEST, FAINT = 800.0, 40.0, 1e-300  # scales of a grid of outputs; a loss there; a probability that says nothing
MOST_SPREAD = 60.0  # standard deviations of what is counted
FOURIER, SEEN = 1e-15, 1e-14  # what transforms may add to a probability; a smaller one is none
MOST_DIFFERENT = 64  # numbers whose losses are added up on grids


@dataclass(frozen=True, slots=True)
class Moved:
    """One number of an output on two datasets: its law, and location and scale on the first and the second.

    `more` are further parameters of the law on either.
    """

    law: str
    location: tuple[float, float]
    scale: tuple[float, float]
    more: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())

    @property
    def shift(self) -> float:
        """How far it moves, in units of the smaller scale; infinite where there is no noise."""
        apart = abs(self.location[0] - self.location[1])
        return 0.0 if apart == 0.0 else math.inf if min(self.scale) == 0.0 else apart / min(self.scale)

    @property
    def alike(self) -> bool:
        """Whether both laws are one but for their location."""
        return self.scale[0] == self.scale[1] and repr(self.more[0]) == repr(self.more[1])

    @property
    def same(self) -> bool:
        """Whether both laws are one."""
        return self.shift == 0.0 and self.alike

    @property
    def disjoint(self) -> bool:
        """Whether the outputs of one dataset lie on another grid than those of the other."""
        steps = (self.location[1] - self.location[0]) / self.scale[0]
        whole = abs(steps - round(steps)) <= 1e-6 and self.scale[0] == self.scale[1]
        return not whole and self.law in ("discrete_laplace", *COUNTED)


def parameter_of(claim: Claim | None, moved: Sequence[Moved]) -> str:
    """The parameter in which the loss is told: the claim's; without one mu where all noise is normal, else epsilon."""
    if claim is not None:
        return "epsilon" if claim.value is None else claim.parameter
    return "mu" if moved and all(each.law == "normal" for each in moved) else "epsilon"


def loss(claim: Claim | None, moved: Sequence[Moved], *, least: bool = False) -> float | None:
    """The least parameter of a claim of this form that the pair keeps; None where the law of a number is not known.

    Or where it is beyond the grids here: then it is what is sure to be lost at the `least`. Without a claim: as
    `parameter_of` says.

    >>> loss(PureDP(1.0), [Moved("laplace", (0.0, 1.0), (2.0, 2.0))] * 3)
    1.5
    >>> round(loss(GaussianDP(1.0), [Moved("normal", (0.0, 1.0), (2.0, 2.0))] * 4), 9)
    1.0
    """
    differ = [each for each in moved if not each.same]
    if not differ:
        return 0.0
    if any(min(each.scale) <= 0.0 or each.disjoint for each in differ):
        return math.inf
    if claim is None:
        claim = GaussianDP(1.0) if parameter_of(claim, differ) == "mu" else PureDP(1.0)
    if all(each.law == "normal" and each.scale[0] == each.scale[1] for each in differ):
        mu = math.sqrt(math.fsum(each.shift**2 for each in differ))
        if isinstance(claim, GaussianDP):
            return mu
        if isinstance(claim, ZeroConcentratedDP | RenyiDP):  # Bun & Steinke 2016; Mironov 2017
            return 0.5 * mu**2 if isinstance(claim, ZeroConcentratedDP) else 0.5 * claim.order * mu**2
        return math.inf if claim.pure else _least(claim, *_normal_points(mu))
    if claim.pure:
        sides = [[_supremum(each, side) for each in differ] for side in (0, 1)]
        known = [[value for value in values if value is not None] for values in sides]
        return None if any(None in values for values in sides) else max(map(math.fsum, known))
    return _composed(claim, differ, least)


def _least(claim: Claim, q: Reals, p: Reals) -> float:
    return float(np.max(claim.least_parameter(q, p), initial=0.0))


def _normal_points(mu: float) -> tuple[Reals, Reals]:
    from scipy.special import ndtr

    t = np.linspace(-38.0, min(mu / 2.0, 7.5), 20_001)  # beyond its middle lies the mirror image
    return ndtr(t - mu), ndtr(t)


def _laws(moved: Moved) -> tuple[Any, Any] | None:
    """Both laws, of the first dataset and of the second; None where they are not known."""
    start, places = moved.location[0], moved.location
    if moved.law in ("discrete_laplace", *COUNTED):  # in steps from the first location
        places = 0.0, float(round((places[1] - start) / moved.scale[0]))
    with suppress(ArithmeticError, TypeError, ValueError):  # of parameters that no law has
        one, other = (law_named(moved.law, places[k], moved.scale[k], moved.more[k]) for k in (0, 1))
        return None if one is None or other is None else (one, other)
    return None


def _cells(moved: Moved, side: int) -> tuple[Reals, Reals, Reals] | None:
    """How far out the cells of a grid of outputs lie, and their probabilities on one side and on the other.

    Where outputs are few each is a cell. None where the law is not known.
    """
    laws = _laws(moved)
    if laws is None:
        return None
    p, q = laws[side], laws[1 - side]
    if moved.law in (CHOICE, "discrete_laplace", *COUNTED):
        mean, wide = max(law.mean() for law in laws), MOST_SPREAD * max(law.std() for law in laws) + 1.0
        low = max(min(law.support()[0] for law in laws), math.floor(mean - wide))
        high = min(max(law.support()[1] for law in laws), math.ceil(mean + wide))
        few = np.arange(low, high + 1.0)
        ended = all(math.isfinite(law.support()[1]) for law in laws)  # then nothing grows beyond
        far = np.zeros(len(few)) if ended else FAR * np.abs(few - mean) / wide
        return far, p.pmf(few), q.pmf(few)
    wide, centre = max(moved.scale) + abs(moved.location[0] - moved.location[1]), 0.5 * sum(moved.location)
    x = np.sinh(np.linspace(-math.asinh(FAR), math.asinh(FAR), CELLS))
    x = np.sort(np.concatenate([x, (np.array(moved.location) - centre) / wide]))
    with np.errstate(over="ignore"):
        below, above = ([way(centre + wide * x) for way in ways] for ways in ((p.cdf, q.cdf), (p.sf, q.sf)))
    one, other = (np.where(a[1:] < 0.5, np.diff(a), -np.diff(b)) for a, b in zip(below, above, strict=True))
    return np.maximum(np.abs(x[1:]), np.abs(x[:-1])), one, other


def _supremum(moved: Moved, side: int) -> float | None:
    """The largest ln(p / q) of a number, from the law of one side to that of the other; None where it is not known.

    It is infinite where it still grows far out.
    """
    if moved.law == "laplace":
        (a, s), (b, t) = ((moved.location[k], moved.scale[k]) for k in (side, 1 - side))
        return math.inf if s > t else math.log(t / s) + abs(a - b) / t
    if moved.law == "discrete_laplace":  # with P(k) = tanh(r / 2) e^(-r |k|)
        r, u = (-math.log1p(-float(moved.more[k][0])) for k in (side, 1 - side))
        steps = round(abs(moved.location[0] - moved.location[1]) / moved.scale[0])
        return math.inf if r < u else math.log(math.tanh(r / 2) / math.tanh(u / 2)) + u * steps
    cells = _cells(moved, side)
    if cells is None:
        return None
    far, p, q = cells
    with np.errstate(all="ignore"):
        ratio = np.where(p > FAINT, np.log(p) - np.log(q), -math.inf)
    high = [float(np.max(ratio, where=far <= reach, initial=0.0)) for reach in (FAR / 16.0, FAR / 4.0, FAR)]
    return math.inf if high[2] - high[1] > max(0.3 * (high[1] - high[0]), 1e-9) else high[2]


def _composed(claim: Claim, differ: Sequence[Moved], least: bool) -> float | None:
    """From the distribution of the losses of all numbers together; never above what is true but for rounding."""
    kinds = {repr(each): each for each in differ}
    worst, beyond = 0.0, False
    for side in (0, 1) if len(kinds) <= MOST_DIFFERENT else ():
        cells = {key: found for key, each in kinds.items() if (found := _cells(each, side)) is not None}
        if len(cells) < len(kinds):
            return None
        losses = {key: _losses(p, q) for key, (_, p, q) in cells.items()}
        beyond |= any(np.max(each[0], initial=0.0) >= LARGEST for each in losses.values())
        width = max(1e-7, sum(np.ptp([*losses[repr(each)][0], 0.0]) for each in differ) / CELLS_OF_LOSSES)
        grids = {key: _grid(*each, width) for key, each in losses.items()}
        whole = added([grids[repr(each)] for each in differ]) if len(differ) > 1 else grids[repr(differ[0])]
        values: Reals = whole.start + whole.width * np.arange(len(whole.masses), dtype=np.float64)
        masses = np.maximum(whole.masses - (FOURIER if len(differ) > 1 else 0.0), 0.0)
        if isinstance(claim, ZeroConcentratedDP | RenyiDP):
            ratios = [1.0 + 10.0 ** (place / 32.0) for place in range(-96, 97)]
            orders = [(claim.order, 1.0)] if isinstance(claim, RenyiDP) else [(each, each) for each in ratios]
            worst = max(worst, *(_renyi(order, values, masses, whole.infinite) / per for order, per in orders))
            continue
        better = slice(np.searchsorted(values, 0.0), None)  # the rest is that of the other side, with its small ends
        p = np.cumsum(masses[better][::-1])[::-1] + whole.infinite
        q = np.cumsum((masses * np.exp(-values))[better][::-1])[::-1]
        q, p = (np.minimum(each, 1.0) for each in (np.append(q, 0.0), np.append(p, whole.infinite)))
        worst = max(worst, _least(claim, q[p > SEEN], p[p > SEEN]))
    sure = least or not beyond or (claim.linear and worst < 0.9 * LARGEST)
    return worst if sure and len(kinds) <= MOST_DIFFERENT else None


def _renyi(order: float, values: Reals, masses: Reals, infinite: float) -> float:
    """The Rényi divergence of an order (Mironov 2017)."""
    from scipy.special import logsumexp

    some = masses > 0.0
    sum_ = float(logsumexp(np.log(masses[some]) + (order - 1.0) * values[some]))
    return math.inf if infinite > 0.0 else sum_ / (order - 1.0)


def _losses(p: Reals, q: Reals) -> tuple[Reals, Reals, float]:
    """The losses of cells with their probabilities, and the probability of an infinite one."""
    inside = (p > FAINT) & (q > FAINT)
    losses = np.log(p[inside] / q[inside])
    kept, infinite = losses >= -LARGEST, float(p[(p > FAINT) & (q == 0.0)].sum())
    return np.minimum(losses[kept], LARGEST), p[inside][kept], infinite if infinite > SEEN else 0.0


def _grid(losses: Reals, masses: Reals, infinite: float, width: float) -> Losses:
    """The losses rounded down to a grid."""
    steps = np.floor(losses / width).astype(np.int64)
    start = int(steps.min()) if len(steps) else 0
    return Losses(start * width, width, np.bincount(steps - start, masses, 1).astype(np.float64), infinite)
