"""The loss of a pair on which independent noise has moved: what a claim says of it, in the claim's own parameter.

Two laws of a number are known by location and scale. Losses of independent numbers add up, so that of all is found from
their distributions, which the cells of a grid underestimate and never overestimate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.losses.distribution import Losses, added

CELLS, WIDTH = 60_001, 1e-4  # of a grid of outputs; of one of losses
NAMED = ("laplace", "normal", "logistic", "gumbel", "-gumbel", "cauchy", "t", "exponential", "uniform", "gamma")
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


def parameter_of(claim: Claim | None, moved: Sequence[Moved]) -> str:
    """The parameter in which the loss is told: the claim's; without one mu where all noise is normal, else epsilon."""
    if claim is not None:
        return "epsilon" if claim.value is None else claim.parameter
    return "mu" if moved and all(each.law == "normal" for each in moved) else "epsilon"


def loss(claim: Claim | None, moved: Sequence[Moved]) -> float | None:
    """The least parameter of a claim of this form that the pair keeps; None where the law of a number is not known.

    Without a claim: as `parameter_of` says.

    >>> loss(PureDP(1.0), [Moved("laplace", (0.0, 1.0), (2.0, 2.0))] * 3)
    1.5
    >>> round(loss(GaussianDP(1.0), [Moved("normal", (0.0, 1.0), (2.0, 2.0))] * 4), 9)
    1.0
    """
    differ = [each for each in moved if not each.same]
    if not differ:
        return 0.0
    if any(min(each.scale) <= 0.0 for each in differ):
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
    return _composed(claim, differ)


def _least(claim: Claim, q: Reals, p: Reals) -> float:
    return float(np.max(claim.least_parameter(q, p), initial=0.0))


def _normal_points(mu: float) -> tuple[Reals, Reals]:
    from scipy.special import ndtr

    t = np.linspace(-38.0, 38.0, 20_001)
    return ndtr(t - mu), ndtr(t)


def _supremum(moved: Moved, side: int) -> float | None:
    """The largest ln(p / q) of a number, from the law of one side to that of the other; None where it is not known."""
    (a, s), (b, t) = ((moved.location[k], moved.scale[k]) for k in (side, 1 - side))
    if moved.law == "laplace":
        return abs(a - b) / s if s == t else math.inf if s > t else math.log(t / s) + abs(a - b) / t
    if moved.law in ("choice", "integers", "binomial"):
        p, q = (_masses(moved, k) for k in (side, 1 - side))
        if p is None or q is None or p.shape != q.shape:
            return None if p is None or q is None else math.inf
        with np.errstate(all="ignore"):
            return float(np.max(np.where(p > 0.0, np.log(p) - np.log(q), -math.inf)))
    if moved.law == "discrete_laplace":
        rate, other = (-math.log1p(-min(float(moved.more[k][0]), 1 - 1e-16)) for k in (side, 1 - side))
        steps = abs(a - b) / s
        if rate != other or s != t or abs(steps - round(steps)) > 1e-9 * max(1.0, steps):
            return math.inf
        return rate * steps
    if moved.law == "gumbel" or moved.law == "-gumbel" or moved.law == "logistic":
        if s != t:
            return None
        sign = 1.0 if moved.law == "-gumbel" else -1.0
        apart = sign * (a - b) / s  # the densities differ without limit on the side of the steep tail
        return abs(apart) if moved.law == "logistic" else math.inf if apart < 0.0 else apart
    if moved.law in ("normal", "uniform", "exponential", "-exponential"):
        up = (a - b) * (-1.0 if moved.law.startswith("-") else 1.0)
        if moved.law.endswith("exponential") and s <= t and up >= 0.0:
            return math.log(t / s) + up / t
        inside = moved.law == "uniform" and a >= b and a + s <= b + t
        wider = moved.law == "normal" and s < t
        return math.log(t / s) + (0.5 * (a - b) ** 2 / (t**2 - s**2) if wider else 0.0) if inside or wider else math.inf
    frozen = _frozen(moved)
    if frozen is None or s != t:
        return None
    x = np.concatenate(
        [location + scale * np.sinh(np.linspace(-20, 20, CELLS)) for location, scale in ((a, s), (b, t))]
    )
    logs = frozen[side].logpdf(x) - frozen[1 - side].logpdf(x)
    return float(np.max(logs[np.isfinite(logs)], initial=0.0))


def _masses(moved: Moved, side: int) -> Reals | None:
    more = moved.more[side]
    if moved.law == "binomial" and more:
        n, p = more if len(more) > 1 else (1, more[0])
        from scipy.stats import binom

        return np.asarray(binom.pmf(np.arange(int(n) + 1), n, p)) if np.ndim(p) == np.ndim(n) == 0 else None
    return np.asarray(more[-1]) if moved.law == "choice" and more else None


def _frozen(moved: Moved) -> tuple[Any, Any] | None:
    from scipy import stats

    names = {"normal": "norm", "gumbel": "gumbel_r", "-gumbel": "gumbel_l", "exponential": "expon"}
    law: Any = getattr(stats, names.get(moved.law, moved.law), None) if moved.law in NAMED else None
    if law is None:
        return None
    more = [[float(each) for each in of] if moved.law in ("t", "gamma") else [] for of in moved.more]
    one, other = (law(*more[k], loc=moved.location[k], scale=moved.scale[k]) for k in (0, 1))
    return one, other


def _composed(claim: Claim, differ: Sequence[Moved]) -> float | None:
    """From the distribution of the losses of all numbers together; never above what is true but for rounding."""
    if len({repr(each) for each in differ}) > MOST_DIFFERENT:
        return None
    worst = 0.0
    for side in (0, 1):
        known: dict[str, Losses | None] = {repr(each): None for each in differ}
        width = WIDTH * max(1.0, len(differ) / 8)
        for each in differ:
            if known[repr(each)] is None:
                cells = _cells(each, side)
                if cells is None:
                    return None
                known[repr(each)] = _grid(*cells, width)
        whole = added([one for each in differ if (one := known[repr(each)]) is not None])
        values = whole.start + whole.width * np.arange(len(whole.masses))
        p = np.cumsum(whole.masses[::-1])[::-1] + whole.infinite
        with np.errstate(over="ignore"):
            q = np.cumsum((whole.masses * np.exp(-values))[::-1])[::-1]
        sure = (p > 1e-14) & (q > 0.0)  # below lies what Fourier transforms add
        worst = max(worst, _least(claim, np.minimum(q[sure], 1.0), np.minimum(p[sure], 1.0)))
        if whole.infinite > 1e-14:
            worst = max(worst, _least(claim, np.zeros(1), np.full(1, whole.infinite)))
    return worst


def _cells(moved: Moved, side: int) -> tuple[Reals, Reals] | None:
    """Probabilities of the cells of a grid of outputs under both laws, or of outputs where these are few."""
    if moved.law in ("choice", "binomial"):
        p, q = (_masses(moved, k) for k in (side, 1 - side))
        return None if p is None or q is None or p.shape != q.shape else (p, q)
    if moved.law == "discrete_laplace":
        (a, s), (b, t) = ((moved.location[k], moved.scale[k]) for k in (side, 1 - side))
        keep = [1.0 - float(moved.more[k][0]) for k in (side, 1 - side)]
        steps = (a - b) / s
        if s != t or abs(steps - round(steps)) > 1e-9 or keep[0] != keep[1]:
            return np.array([1.0, 0.0]), np.array([0.0, 1.0])
        far = int(60.0 / -math.log(keep[0])) + abs(round(steps)) + 1 if 0.0 < keep[0] < 1.0 else 1
        x = np.arange(-far, far + 1)
        laws = [(1 - r) / (1 + r) * r ** np.abs(x - place) for r, place in zip(keep, (round(steps), 0), strict=True)]
        return laws[0], laws[1]
    frozen = _frozen(moved)
    if frozen is None:
        return None
    centre, wide = 0.5 * sum(moved.location), max(moved.scale) + abs(moved.location[0] - moved.location[1])
    edges = centre + wide * np.sinh(np.linspace(-7.0, 7.0, CELLS))
    both = []
    for law in (frozen[side], frozen[1 - side]):
        below, above = law.cdf(edges), law.sf(edges)
        both.append(np.where(below[1:] < 0.5, np.diff(below), -np.diff(above)))
    return both[0], both[1]


def _grid(p: Reals, q: Reals, width: float) -> Losses:
    """The losses of cells, each rounded down to a grid."""
    inside = (p > 0.0) & (q > 0.0)
    steps = np.floor(np.log(p[inside] / q[inside]) / width).astype(np.int64)
    start = int(steps.min())
    masses = np.bincount(steps - start, weights=p[inside]).astype(np.float64)
    return Losses(start * width, width, masses, float(p[(p > 0.0) & (q == 0.0)].sum()))
