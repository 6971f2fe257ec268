"""Sums of many independent privacy losses, from above: one Fourier transform, tilted towards the losses that matter.

Each step comes as the distribution of its loss on a grid (`dpaudit.losses.distribution`), already rounded so that
it cannot be exceeded. The mass of a loss L is multiplied by e^(tilt L) before the transform and divided by it
afterwards. So the transform's rounding errors are small beside the delta that is asked for, however small that is.
The transform is of a window only: what lies above it is bounded by Chernoff and counted as an infinite loss, what
lies below it comes out too high and does no harm.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.arrays import Reals
from dpaudit.claims.rounding import UNIT
from dpaudit.losses.distribution import Losses

OUTSIDE = 52.0  # minus the logarithm of what the tilted mass above the window is at most: 2.6e-23
LOWEST = 40.0  # mass is restored down to losses where that multiplies it by e^40: below them nothing is needed
LEAST_TILT, STEEPEST = 1e-4, 0.25  # where a tilt is looked for; the steepest is per cell, so that 160 cells are kept
LEANS = (1e-4, 1e5)  # and the further one of a Chernoff bound

Repeated = tuple[Losses, int]  # a step, and how many times it is made


@dataclass(frozen=True, slots=True)
class Tail:
    """The upper part of the distribution of a sum of losses, from above; losses in nats, arrays of shape [losses].

    `deltas[k]` is at least the delta at the epsilon `values[k]`, rising losses; `likelier[k]` is the probability of
    `values[k]` and more under P, `rarer[k]` the same under Q times e^values[k]; `wrong[k]` bounds the error of their
    difference at this loss and above; `infinite` is what counts everywhere. `below` bounds the error of all masses
    together where none is missing at the lower end; else it is infinite.
    """

    values: Reals
    deltas: Reals
    likelier: Reals
    rarer: Reals
    wrong: Reals
    infinite: float
    below: float

    def epsilon(self, delta: float) -> float:
        """An epsilon, not below 0, at which the delta is at most this one; infinite where there is none."""
        enough = np.flatnonzero(self.deltas <= delta)
        if len(enough) == 0:
            return math.inf
        place = int(enough[0])
        value = float(self.values[place])
        if place == 0 or self.rarer[place] <= 0.0:
            return max(0.0, value)
        excess = self._most(place) - delta
        if excess <= 0.0:
            return max(0.0, float(self.values[place - 1]))
        solved = value + math.log(excess / float(self.rarer[place]))
        return max(0.0, min(value, solved + 8.0 * UNIT * (len(self.values) + abs(value))))

    def delta(self, epsilon: float) -> float:
        """A delta that is enough at an epsilon."""
        place = int(np.searchsorted(self.values, epsilon, side="right"))
        found = float(self.deltas[place - 1]) if place else 1.0
        if place < len(self.values):
            fallen = math.exp(epsilon - float(self.values[place])) * float(self.rarer[place])
            found = min(found, self._most(place) - fallen * (1.0 - 8.0 * UNIT * (1.0 + abs(epsilon))))
        return min(1.0, max(found, self.infinite))

    def _most(self, place: int) -> float:
        """P of this loss and more, with all errors: down to the next lower loss delta is this less e^epsilon Q."""
        likelier = float(self.likelier[place]) * (1.0 + 4.0 * UNIT * len(self.values))
        return likelier + (float(self.wrong[place - 1]) if place else self.below) + self.infinite


def epsilon_of_sum(steps: Sequence[Repeated], delta: float) -> float:
    """An epsilon at which the delta of all steps together is at most this one.

    >>> coin = Losses(-1.0, 2.0, np.array([1.0, math.e]) / (1.0 + math.e))
    >>> 0.0 <= epsilon_of_sum([(coin, 100)], 1e-6) - 80.0 < 8.0
    True
    """
    if _infinite(steps) >= delta:
        return 0.0 if delta >= 1.0 else math.inf
    # this epsilon would do, and the losses around it are those that decide
    best = _best(lambda tilt: (cumulant(steps, tilt) + _hinge(tilt) - math.log(delta)) / tilt, _tilts(steps))
    return tail(steps, best).epsilon(delta)


def delta_of_sum(steps: Sequence[Repeated], epsilon: float) -> float:
    """A delta that is enough at an epsilon for all steps together.

    >>> coin = Losses(-1.0, 2.0, np.array([0.25, 0.75]))
    >>> delta_of_sum([(coin, 3)], 4.0) < 1e-12
    True
    """
    if _infinite(steps) >= 1.0:
        return 1.0
    best = _best(lambda tilt: cumulant(steps, tilt) + _hinge(tilt) - tilt * epsilon, _tilts(steps))
    return tail(steps, best).delta(epsilon)


def _tilts(steps: Sequence[Repeated]) -> tuple[float, float]:
    return LEAST_TILT, STEEPEST / steps[0][0].width


def _hinge(tilt: float) -> float:
    """ln of the least c with max(0, 1 - e^(epsilon - L)) <= c e^(tilt (L - epsilon)) for every loss L."""
    return tilt * math.log(tilt) - (tilt + 1.0) * math.log1p(tilt)


def cumulant(steps: Sequence[Repeated], tilt: float) -> float:
    """ln of the mean of e^(tilt L), L the sum of all losses where it is finite (the rest counts 0)."""
    return math.fsum(times * _log_mean(*_support(losses), tilt) for losses, times in steps)


def _log_mean(values: Reals, logs: Reals, tilt: float) -> float:
    from scipy.special import logsumexp

    return float(logsumexp(tilt * values + logs))


def tail(steps: Sequence[Repeated], tilt: float) -> Tail:
    """The sum's distribution around the losses that this tilt makes the likely ones."""
    from scipy.fft import next_fast_len

    width = steps[0][0].width
    start = math.fsum(times * losses.start for losses, times in steps)
    low, high, level = _window(steps, tilt)
    full = sum(times * (len(losses.masses) - 1) for losses, times in steps) + 1
    first = max(0, math.floor((low - start) / width))
    size = min(full - first, math.ceil((high - low) / width) + 2)
    length = int(next_fast_len(max(2, size), real=True))

    spectrum: npt.NDArray[np.complex128] = np.ones(length // 2 + 1, np.complex128)
    places = np.arange(length // 2 + 1) / length
    centre = 0
    for losses, times in steps:
        values, logs = _support(losses)
        scaled = np.exp(tilt * values + logs - _log_mean(values, logs, tilt))
        middle = round(float(scaled @ np.arange(len(scaled))))
        centre += times * middle
        folded = np.bincount((np.arange(len(scaled)) - middle) % length, scaled, length)
        spectrum = spectrum * np.fft.rfft(folded) ** times
    shift = (first - centre) % length  # the window starts at place `first` of the sum
    spectrum = spectrum * np.exp(2j * np.pi * ((places * shift) % 1.0))
    tilted: Reals = np.maximum(np.fft.irfft(spectrum, length)[:size], 0.0)
    count = sum(times for _, times in steps)
    error = 16.0 * UNIT * (math.log2(length) + count) * math.sqrt(float(np.mean(np.abs(spectrum) ** 2)))
    error += UNIT * (math.log2(length) + count) * float(tilted.max())
    grid: Reals = start + width * (first + np.arange(size, dtype=np.float64))
    infinite = _infinite(steps) * (1.0 + 8.0 * UNIT)
    if first + size < full:
        infinite += math.exp(min(0.0, level - tilt * float(grid[-1]) - OUTSIDE))
    return _restored(grid, tilted, tilt, level, error, infinite, whole=first == 0)


def _restored(
    values: Reals, tilted: Reals, tilt: float, level: float, error: float, infinite: float, *, whole: bool
) -> Tail:
    """The tail with the tilt taken back: mass = tilted e^(level - tilt value). `error` is each tilted mass's."""
    from scipy.signal import lfilter

    width = float(values[1] - values[0]) if len(values) > 1 else 1.0
    exponents = level - tilt * values
    kept = exponents <= LOWEST
    whole = whole and bool(kept.all())
    values, exponents = values[kept], exponents[kept]
    rounding = 8.0 * UNIT * (1.0 + abs(level) + tilt * float(np.abs(values).max()))  # of the exponents
    masses = tilted[kept] * np.exp(exponents) * (1.0 + rounding)
    fading = math.exp(-width)
    likelier = np.cumsum(masses[::-1])[::-1]
    rarer = lfilter([1.0], [1.0, -fading], masses[::-1])[::-1]
    steps = np.append(-math.expm1(-width) * rarer[1:], 0.0)  # delta grows by this from each loss to the next lower
    deltas = np.cumsum(steps[::-1])[::-1]
    # the same sum for masses that are all wrong by `error`: two geometric series
    above = np.arange(len(masses) - 1, -1, -1.0)
    series = _geometric(tilt * width, above) - _geometric((tilt + 1.0) * width, above)
    wrong = error * np.exp(exponents) * np.maximum(series, 0.0) * (1.0 + 1e-6)
    below = error * float(np.exp(exponents).sum()) if whole else math.inf
    rounded = (deltas * (1.0 + UNIT * len(masses)) + wrong) * (1.0 + 64.0 * UNIT) + infinite
    return Tail(values, np.minimum.accumulate(rounded), likelier, rarer, wrong, infinite, below)


def _geometric(fall: float, terms: Reals) -> Reals:
    """The sum of e^(-fall j) for j from 0 to each of these numbers; `fall` is positive."""
    return np.asarray(np.expm1(-fall * (terms + 1.0)) / math.expm1(-fall))


def _window(steps: Sequence[Repeated], tilt: float) -> tuple[float, float, float]:
    """Between which losses all but e^-OUTSIDE of the tilted mass lies, on each side, and ln of the tilted mass."""
    level = cumulant(steps, tilt)

    def above(lean: float) -> float:
        return (cumulant(steps, tilt + lean) - level + OUTSIDE) / lean

    def below(lean: float) -> float:
        return (cumulant(steps, tilt - lean) - level + OUTSIDE) / lean

    return -below(_best(below, LEANS)), above(_best(above, LEANS)), level


def _best(value: Callable[[float], float], between: tuple[float, float]) -> float:
    """Where a function with one valley is low: its bottom but for some digits, searched on a logarithmic scale.

    Any place would give a bound, a lower value a better one.
    """
    from scipy.optimize import minimize_scalar

    bounds = math.log(between[0]), math.log(between[1])
    found = minimize_scalar(lambda x: value(math.exp(x)), bounds=bounds, method="bounded", options={"xatol": 0.02})
    return math.exp(found.x)


def _support(losses: Losses) -> tuple[Reals, Reals]:
    places: Reals = np.arange(len(losses.masses), dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(losses.start + losses.width * places), np.log(losses.masses)


def _infinite(steps: Sequence[Repeated]) -> float:
    """The probability that some loss is infinite."""
    if any(losses.infinite >= 1.0 for losses, _ in steps):
        return 1.0
    return -math.expm1(math.fsum(times * math.log1p(-losses.infinite) for losses, times in steps))
