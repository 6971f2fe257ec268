"""The releases that an account is made of: what is declared of each, and the distribution of its privacy loss.

Besides the two parts of this module, a part is a claim: `PureDP` and `ApproximateDP` stand for any mechanism that
keeps them (its worst case is a randomised response: Kairouz, Oh & Viswanath 2015, theorem 3.3), `GaussianDP` for
normal noise of sensitivity / mu. Each of these pairs dominates the mechanism's own, so that sums of their losses hold
for releases chosen one after another (Zhu, Dong & Wang 2022, Optimal accounting of differential privacy via
characteristic function).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.rounding import UNIT
from dpaudit.errors import InvalidSpec
from dpaudit.losses.distribution import ALONE, GRAIN, Losses, from_cells, poisson, step_losses
from dpaudit.verify.accounting.finite import FinitePair

FAR, BEYOND = 12.0, 4e-33  # deviations of normal noise that the grid covers; the mass beyond, both sides
ROUGH = 16.0 * UNIT  # of the logarithm of a cell's p over q and of a cell's edge, relative to the width of a cell
LARGEST = 700.0  # a loss beyond which e^loss runs out of doubles


@dataclass(frozen=True, slots=True)
class Laplace:
    """Noise Lap(sensitivity / epsilon) on one number. Raises `InvalidSpec` where epsilon is not positive.

    >>> Laplace(0.5).epsilon
    0.5
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.positive("epsilon", self.epsilon))

    def __str__(self) -> str:
        return f"Laplace noise at epsilon {self.epsilon:g}"


@dataclass(frozen=True, slots=True)
class SubsampledGaussian:
    """A sum over a Poisson sample, with normal noise: each record joins with probability `rate`, alone.

    A record that joins moves the sum by at most 1; `noise_multiplier` is the noise's standard deviation. The pairs are
    those with and without one record. Raises `InvalidSpec` for a rate outside (0, 1] or noise that is not positive.

    >>> SubsampledGaussian(1.0, rate=0.01).rate
    0.01
    """

    noise_multiplier: float
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", validate.positive("noise_multiplier", self.noise_multiplier))
        if validate.positive("rate", self.rate) > 1.0:
            raise InvalidSpec(f"rate must be at most 1, got {self.rate!r}")
        object.__setattr__(self, "rate", float(self.rate))

    def __str__(self) -> str:
        return f"normal noise {self.noise_multiplier:g} on a sample at rate {self.rate:g}"


Part = PureDP | ApproximateDP | GaussianDP | Laplace | SubsampledGaussian | FinitePair


def largest_loss(part: Part) -> float:
    """How far the losses of a part spread, from 0, but for what may be left out: for choosing the grid."""
    match part:
        case PureDP() | ApproximateDP() | Laplace():
            return part.epsilon
        case GaussianDP(mu=mu):
            return mu * (FAR + mu / 2.0)
        case SubsampledGaussian(noise_multiplier=noise, rate=rate):
            whole = (FAR + 0.5 / noise) / noise
            return max(min(-math.log1p(-rate), whole), math.log(rate) + whole) if rate < 1.0 else whole
    return part.largest_loss()


@lru_cache(maxsize=8)
def discretised(part: Part, width: float) -> tuple[Losses, Losses]:
    """The losses of a part on a grid, from above, in both orders of its pair.

    >>> first, second = discretised(PureDP(1.0), 0.5)
    >>> bool(abs(first.masses.sum() - 1.0) < 1e-12), round(first.start + first.width * (len(first.masses) - 1), 9)
    (True, 1.0)
    """
    match part:
        case PureDP() | ApproximateDP():
            return _responses(part.epsilon, part.delta, width)
        case Laplace(epsilon=epsilon):
            return _laplace(epsilon, width)
        case GaussianDP(mu=mu):
            return _normal(1.0, mu, width)
        case SubsampledGaussian(noise_multiplier=noise, rate=rate):
            return _normal(rate, 1.0 / noise, width)
    p, q, given_away = part.floats()
    return _listed(p, q, given_away[0], width)[0], _listed(q, p, given_away[1], width)[0]


def _responses(epsilon: float, delta: float, width: float) -> tuple[Losses, Losses]:
    """The worst of (epsilon, delta)-DP: a bit given away with probability delta, else a randomised response."""
    likelier = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    rarer = (1.0 - delta) / (1.0 + math.exp(epsilon))
    one, _ = _listed(np.array([likelier, rarer]), np.array([rarer, likelier]), delta, width)
    return one, one


def _listed(p: Reals, q: Reals, infinite: float, width: float) -> tuple[Losses, Losses]:
    """Outputs with positive probabilities under both, put into cells of their log ratio below the largest."""
    if len(p) == 0:
        return (Losses(0.0, width, np.zeros(1), 1.0),) * 2
    ratios = np.log(p) - np.log(q)
    top = _up_to_grain(float(ratios.max()))
    count = max(1, math.ceil((top - float(ratios.min())) / width))
    values: Reals = top - width * np.arange(count, -1.0, -1.0)
    places = np.clip(np.searchsorted(values, ratios, side="left") - 1, 0, count - 1)
    first, second = (np.asarray(np.bincount(places, side, count), np.float64) for side in (p, q))
    return from_cells(values, first, second, "above", slack=ROUGH / width, missing=infinite)


def _laplace(epsilon: float, width: float) -> tuple[Losses, Losses]:
    """Lap(1 / epsilon) around 0 against around 1: half of it has loss epsilon, the rest is spread down to -epsilon."""
    top = _up_to_grain(epsilon)
    count = max(1, math.ceil((top + epsilon) / width))
    values: Reals = top - width * np.arange(count, -1.0, -1.0)
    places = np.clip((1.0 - values / epsilon) / 2.0, 0.0, 1.0)  # the output between 0 and 1 with this loss
    p = np.exp(-epsilon * places[1:]) / 2.0 * -np.expm1(-epsilon * (places[:-1] - places[1:]))
    q = np.exp(-epsilon * (1.0 - places[:-1])) / 2.0 * -np.expm1(-epsilon * (places[:-1] - places[1:]))
    p[-1], q[-1] = p[-1] + 0.5, q[-1] + 0.5 * math.exp(-epsilon)
    p[0], q[0] = p[0] + 0.5 * math.exp(-epsilon), q[0] + 0.5
    one, _ = from_cells(values, p, q, "above", slack=ROUGH / width, missing=0.0)
    return one, one


def _normal(rate: float, shift: float, width: float) -> tuple[Losses, Losses]:
    """Normal noise that a record shifts with probability `rate`."""
    # a cell holds no less than width / shift of the nearer tail, whose rounding is the cell's
    slack = ROUGH / width * max(1.0, shift / width)
    return step_losses(poisson(rate, shift), ALONE, "above", width, reach=FAR, slack=slack, missing=BEYOND)


def _up_to_grain(value: float) -> float:
    """A loss rounded up to where sums of losses on the grid are exact."""
    return (math.floor(value / GRAIN) + 1) * GRAIN
