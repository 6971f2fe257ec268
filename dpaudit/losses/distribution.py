"""Exact losses of many steps: distributions of the privacy loss, added up step by step.

The privacy loss of an output is L = ln(p / q), and delta(epsilon) is the mean of max(0, 1 - e^(epsilon - L)) under P
(Sommer, Meiser & Mohammadi 2019; Koskela, Jälkö & Honkela 2020). The losses of independent steps add up, so their
distributions convolve. On a grid every distribution is kept twice: once as it cannot be exceeded, once as it cannot
be undercut, and what is true lies between the two.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from dpaudit.base.arrays import Bits, Reals
from dpaudit.claims.rounding import crossing

Side = Literal["above", "below"]

WIDTH = 1e-3  # of a cell of the grid; the error is of the order of its square
GRAIN = 2.0**-40  # the grids of steps start at whole multiples of it: with a width such as 2^-10 no loss is rounded
REACH = 9.5  # deviations of the noise that a step's grid covers: 1e-21 lies beyond
ROUNDING = 1e-13  # what the Fourier transforms may add to a probability
FAINT, OUTLYING = 1e-15, 1e-6  # a cell that the lower bound leaves out; the part of the mass that it may lower more


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses `start + k * width` with probability `masses[k]` under P, and an infinite one with `infinite`.

    What is missing to 1 is a loss of minus infinity: it counts for nothing.
    """

    start: float
    width: float
    masses: Reals
    infinite: float = 0.0

    def delta(self, epsilon: float) -> float:
        """The least delta at an epsilon: the mean of max(0, 1 - e^(epsilon - L))."""
        values = self.start + self.width * np.arange(len(self.masses))
        above = values > epsilon
        return float(self.masses[above] @ -np.expm1(epsilon - values[above])) + self.infinite

    def epsilon(self, delta: float) -> float:
        """The least epsilon at a delta, not below 0; infinite where the infinite loss is likelier than delta."""
        from scipy.signal import lfilter

        if self.infinite >= delta:
            return math.inf
        values = self.start + self.width * np.arange(len(self.masses))
        values, masses = values[values > 0.0], self.masses[values > 0.0]
        likelier = np.cumsum(masses[::-1])[::-1] + self.infinite  # P of each value and those above it
        rarer = lfilter([1.0], [1.0, -math.exp(-self.width)], masses[::-1])[::-1]  # and Q, times e^value
        enough = np.flatnonzero(likelier - rarer <= delta)  # the values that are no less than epsilon
        place = enough[0] if len(enough) else -1
        if len(enough) == 0 or rarer[place] <= 0.0 or likelier[place] <= delta:
            return 0.0
        return max(0.0, float(values[place]) + math.log((float(likelier[place]) - delta) / float(rarer[place])))


def added(steps: Sequence[Losses]) -> Losses:
    """The losses of independent steps taken together: they add up. All must have one width.

    >>> coin = Losses(-1.0, 2.0, np.array([0.5, 0.5]))
    >>> added([coin, coin]).masses.round(6)
    array([0.25, 0.5 , 0.25])
    """
    size = sum(len(step.masses) - 1 for step in steps) + 1
    length = 1 << (size - 1).bit_length()
    product = np.ones(length // 2 + 1, np.complex128)
    for step, times in Counter(map(id, steps)).items():
        product *= np.fft.rfft(next(each.masses for each in steps if id(each) == step), length) ** times
    finite = math.prod(1.0 - step.infinite for step in steps)
    masses = np.fft.irfft(product, length)[:size] if length > 1 else product.real
    return Losses(math.fsum(step.start for step in steps), steps[0].width, np.maximum(masses, 0.0), 1.0 - finite)


# --- one step: two mixtures of normal distributions whose ratio grows ------------------------------------------


@dataclass(frozen=True, slots=True)
class Mixture:
    """Normal noise of standard deviation 1 around `centres`, each with its weight.

    >>> poisson(rate=0.25, shift=2.0)
    Mixture(centres=(0.0, 2.0), weights=(0.75, 0.25))
    """

    centres: tuple[float, ...]
    weights: tuple[float, ...]

    def between(self, edges: Reals) -> Reals:
        """The probabilities of the cells between rising edges, precise in both tails: one fewer than edges."""
        from scipy.special import ndtr

        total = np.zeros(len(edges) - 1)
        for centre, weight in zip(self.centres, self.weights, strict=True):
            low, high = edges[:-1] - centre, edges[1:] - centre
            lower_tail = low + high < 0.0
            total += weight * np.where(lower_tail, ndtr(high) - ndtr(low), ndtr(-low) - ndtr(-high))
        return total

    def log_density(self, x: Reals) -> Reals:
        """The logarithm of the density at each x, the factor of the normal distribution left out."""
        terms = [
            math.log(weight) - (x - centre) ** 2 / 2.0
            for centre, weight in zip(self.centres, self.weights, strict=True)
            if weight > 0.0
        ]
        return np.asarray(np.logaddexp.reduce(terms, axis=0))


def poisson(rate: float, shift: float) -> Mixture:
    """A step that a record joins with probability `rate`, and then shifts by `shift` deviations of the noise."""
    return Mixture((0.0, shift), (1.0 - rate, rate)) if rate < 1.0 else Mixture((shift,), (1.0,))


ALONE = Mixture((0.0,), (1.0,))  # the noise of a step without the record


def step_losses(first: Mixture, second: Mixture, side: Side, width: float = WIDTH) -> tuple[Losses, Losses]:
    """The losses of one step, of `first` against `second` and back; ln(first / second) must grow with the output.

    Outputs whose loss lies in one cell of the grid are taken together. "above": as the most telling pair with their
    probabilities p and q, at both ends of the cell (Doroshenko et al. 2022). "below": as one output, which tells
    least; its loss is close to the middle of the cell, and is lowered to one grid for all.
    """
    centres = (*first.centres, *second.centres)
    ends = np.array([min(centres) - REACH, max(centres) + REACH])
    low, high = first.log_density(ends) - second.log_density(ends)
    low = math.floor(float(low) / GRAIN) * GRAIN
    count = max(1, math.ceil((high - low) / width))
    values = low + width * np.arange(count + 1)
    edges = _places(values[1:-1], first, second, ends)
    p, q = (mixture.between(np.concatenate([ends[:1], edges, ends[1:]])) for mixture in (first, second))
    return from_cells(values, p, q, side)


def from_cells(values: Reals, p: Reals, q: Reals, side: Side, *, missing: float | None = None) -> tuple[Losses, Losses]:
    """The losses of an output, p against q and back, from the probabilities of the cells between these log ratios.

    `values` are even and rise, float64[cells + 1], in nats; `p` and `q` are float64[cells].

    From above, `missing` is what lies outside all cells at most, where more is known of it than what they leave of 1.
    """
    if side == "below":
        return _below(values, p, q), _below(-values[::-1], q[::-1], p[::-1])
    return _above(values, p, q, missing), _above(-values[::-1], q[::-1], p[::-1], missing)


def _places(values: Reals, first: Mixture, second: Mixture, ends: Reals) -> Reals:
    """Where the log ratio takes these values: bisection, all at once."""
    low, high = np.full(len(values), ends[0]), np.full(len(values), ends[1])
    for _ in range(60):
        middle = (low + high) / 2.0
        short = first.log_density(middle) - second.log_density(middle) < values
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def _above(values: Reals, p: Reals, q: Reals, missing: float | None) -> Losses:
    """Each cell's p and q as those of its two ends: upper + lower = p, and upper e^-high + lower e^-low = q."""
    width = float(values[-1] - values[0]) / (len(values) - 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = -np.expm1(np.log(q) - np.log(p) + values[:-1]) / -math.expm1(-width)
    share = np.where(p > 0.0, np.clip(share, 0.0, 1.0), 1.0)  # of p, at the upper end
    masses = np.append(0.0, p * share) + np.append(p * (1.0 - share), 0.0)
    rest = max(0.0, 1.0 - float(p.sum())) + ROUNDING if missing is None else missing
    return Losses(float(values[0]), width, masses, rest)


def _below(values: Reals, p: Reals, q: Reals) -> Losses:
    """Each cell at its own loss ln(p / q), lowered to a grid that goes through the middles, or nearly so."""
    width = float(values[-1] - values[0]) / (len(values) - 1)
    counted = (p > FAINT) & (q > 0.0)
    own = np.log(np.where(counted, p, 1.0)) - np.log(np.where(counted, q, 1.0))
    offsets, mass = np.where(counted, own - values[:-1], width / 2.0), np.where(counted, p, 0.0)
    order = np.argsort(offsets)
    offset = float(offsets[order][np.searchsorted(np.cumsum(mass[order]), OUTLYING * mass.sum())])
    below = offsets < offset  # a cell with a corner of the density in it: to the next lower place
    masses = np.append(0.0, np.where(below, 0.0, mass)) + np.append(np.where(below, mass, 0.0), 0.0)
    return Losses(float(values[0]) + offset - width, width, masses)


# --- T steps of normal noise that a record joins at random ------------------------------------------------------


def repeated_epsilon(delta: float, both: tuple[Losses, Losses], times: int) -> float:
    """The least epsilon at a delta of an output given `times` times, from its losses in the two orders.

    >>> coin = Losses(-1.0, 2.0, np.array([0.25, 0.75]))
    >>> round(repeated_epsilon(0.25, (coin, coin), 1), 4)
    0.5945
    """
    return max(added([losses] * times).epsilon(delta) for losses in both)


@lru_cache(maxsize=256)
def subsampled_gaussian_epsilon(delta: float, noise_multiplier: float, rate: float, steps: int) -> float:
    """The least epsilon at a delta of T Poisson-subsampled Gaussian steps, from above: by 0.0002 at a hundred of them.

    It holds for all data: no record can do more than join whenever it is drawn and move the sum by a whole unit
    (Zhu, Dong & Wang 2022, Optimal accounting of differential privacy via characteristic function).

    >>> subsampled_gaussian_epsilon(0.01, 1.0, 0.5, 4) < subsampled_gaussian_epsilon(0.01, 1.0, 1.0, 4)
    True
    """
    joined = poisson(rate, 1.0 / noise_multiplier)
    return repeated_epsilon(delta, step_losses(joined, ALONE, "above"), steps)


def fixed_batch_losses(rate: float, shift: float, width: float = WIDTH) -> Losses:
    """The losses of a step on exactly B of n records, from above and for both orders, where one record is replaced.

    rate is B / n, and the replaced record shifts the sum by at most `shift` deviations of the noise. Above 0 the
    losses are those of a Poisson step of that rate and shift, in both orders (Balle, Barthe & Gaboardi 2018, on
    sampling without replacement); a profile that is its own mirror image has masses m(l) and e^-l m(l) at l and -l.

    >>> step = fixed_batch_losses(0.4, 1.0)
    >>> round(float(step.masses.sum()) + step.infinite, 9), round(step.epsilon(0.01), 4)
    (1.0, 1.2005)
    """
    joined, ends = poisson(rate, shift), np.array([shift / 2.0, shift + REACH])
    high = float((joined.log_density(ends) - ALONE.log_density(ends))[1])
    values = np.arange(math.ceil(high / width) + 1.0) * np.float64(width)
    edges = np.concatenate([ends[:1], _places(values[1:-1], joined, ALONE, ends), ends[1:]])
    above, _ = from_cells(values, joined.between(edges), ALONE.between(edges), "above", missing=ROUNDING)
    gains = above.masses[1:]
    losing = (gains * np.exp(-values[1:]))[::-1]
    even = max(0.0, 1.0 - above.infinite - float(gains.sum() + losing.sum()))
    return Losses(-float(values[-1]), width, np.concatenate([losing, [even], gains]), above.infinite)


def fixed_batch_epsilon(delta: float, noise_multiplier: float, rate: float, steps: int, width: float = WIDTH) -> float:
    """The least epsilon at a delta that T such steps keep for all data; the noise has `noise_multiplier` clip norms."""
    step = fixed_batch_losses(rate, 2.0 / noise_multiplier, width)
    return repeated_epsilon(delta, (step, step), steps)


def mixture_epsilon(delta: float, first: Mixture, second: Mixture = ALONE) -> float:
    """The least epsilon at a delta of one output, the larger of the two orders, rounded up in the sixth digit.

    >>> round(mixture_epsilon(0.01, Mixture((1.0,), (1.0,))), 4)
    2.3178
    """
    return repeated_epsilon(delta, step_losses(first, second, "above"), 1)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta at an epsilon for normal noise and a shift of `mu` standard deviations (theorem 8).

    >>> round(gaussian_delta(0.0, 1.0), 6)  # 2 Phi(1/2) - 1
    0.382925
    """
    from scipy.special import log_ndtr

    if mu == 0.0:
        return 0.0
    gain, loss = log_ndtr(mu / 2.0 - epsilon / mu), epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)
    return float(-math.exp(gain) * math.expm1(min(0.0, loss - gain)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The least epsilon at a delta, by bisection of `gaussian_delta`.

    >>> round(gaussian_epsilon(1e-5, 1.0), 4)
    4.3772
    """
    return least(lambda at: gaussian_delta(at, mu), mu * (mu / 2.0 + 40.0), delta)  # there delta is below 1e-300


def least(delta_at: Callable[[float], float], most: float, delta: float) -> float:
    """The least epsilon in [0, most] at which the falling `delta_at` is at most delta, to the last digits."""
    return crossing(lambda at: delta_at(at) - delta, 0.0, most)[1] if delta_at(0.0) > delta else 0.0


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest shift, in standard deviations, whose delta at `epsilon` is at most `delta`: the analytic calibration.

    >>> round(1.0 / gaussian_mu(1.0, 1e-5), 3)
    3.731
    """
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) <= delta:
        low, high = high, 2.0 * high
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low


def gaussian_mu_of_tail(epsilon: float, delta: float) -> float:
    """The shift at which the privacy loss, N(mu^2 / 2, mu^2), exceeds `epsilon` with probability exactly `delta`.

    That is asking for more than (epsilon, delta)-DP (Balle & Wang 2018, section 2), so the shift is smaller.

    >>> gaussian_mu_of_tail(1.0, 0.01) < gaussian_mu(1.0, 0.01)
    True
    """
    from scipy.special import ndtri

    z = float(ndtri(delta))
    root = math.sqrt(z * z + 2.0 * epsilon)
    return 2.0 * epsilon / (root - z) if z < 0.0 else z + root


def largest_log_ratio(first: Reals, second: Reals) -> float:
    """The loss of a discrete output: the largest |ln(p / p')| over the outcomes that happen at all.

    >>> round(largest_log_ratio(np.array([0.75, 0.25]), np.array([0.25, 0.75])), 4)
    1.0986
    """
    return float(np.max(np.abs(log_ratios(first, second)), initial=0.0, where=(first > 0.0) | (second > 0.0)))


def log_ratios(first: Reals, second: Reals) -> Reals:
    """ln(p / p') of each outcome; minus infinity where p = 0, whatever p' is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(first > 0.0, np.log(first) - np.log(second), -np.inf)


def delta_of(first: Reals, second: Reals, epsilon: float) -> float:
    """The least delta at an epsilon: the larger sum of max(0, p - e^epsilon p'), of the two orders.

    >>> round(delta_of(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 0.0), 4)
    0.5
    """
    with np.errstate(over="ignore"):  # an infinite ratio takes all but the outcomes that the other side never has
        ratio = np.exp(epsilon)
        taken = [np.multiply(ratio, q, out=np.zeros_like(q), where=q > 0.0) for q in (second, first)]
    return float(max(np.maximum(p - q, 0.0).sum() for p, q in zip((first, second), taken, strict=True)))


def epsilon_of(first: Reals, second: Reals, delta: float) -> float:
    """The least epsilon at a delta, exact: `delta_of` is solved on the piece between two of its kinks.

    >>> round(epsilon_of(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 0.05), 4)
    1.0296
    """
    return max(one_way_epsilon(first, second, delta), one_way_epsilon(second, first, delta), 0.0)


def one_way_epsilon(p: Reals, q: Reals, delta: float) -> float:
    """ln of the largest (P(S) - delta) / Q(S): the outcomes of largest ratio are taken as long as they raise it."""
    order = np.argsort(-log_ratios(p, q))
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    if np.any((hits > delta) & (misses == 0.0)):
        return float(np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(hits > delta, np.log(hits - delta) - np.log(misses), -np.inf), initial=-np.inf))


# --- reports of several bits: the probability of each pattern, in the order of binary numbers ---------------------


def patterns(bits: int) -> Bits:
    """All patterns of this many bits, one a row; the first bit is the highest.

    >>> patterns(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    numbers = np.arange(2**bits)[:, None]
    return np.asarray(numbers >> np.arange(bits)[::-1] & 1, np.int8)


def independent(ones: Reals) -> Reals:
    """The law of independent bits, each 1 with its own probability.

    >>> independent(np.array([0.5, 0.25]))
    array([0.375, 0.125, 0.375, 0.125])
    """
    return np.asarray(np.prod(np.where(patterns(len(ones)) == 1, ones, 1.0 - ones), axis=1))


def one_hot(value: int, values: int) -> Bits:
    """The unary code of a value: a 1 in its place, 0 elsewhere.

    >>> one_hot(1, 3).tolist()
    [0, 1, 0]
    """
    return np.asarray(np.arange(values) == value, np.int8)


_NODES = np.linspace(-40.0, 24.0, 385)  # u, for a distance of ln(1 + e^u) from the end: there it is e^u


def two_batches(used: float, shift: float, width: float = 2.0 * WIDTH) -> tuple[Losses, Losses]:
    """The losses of an epoch, from above, with the record and back; it is in a batch with probability `used`.

    >>> losses, _ = two_batches(1.0, 1.0)
    >>> round(float(losses.masses.sum()) + losses.infinite, 6)
    1.0
    """
    highest = math.log1p(used * math.expm1((REACH + shift) * shift - shift**2 / 2.0))
    lowest = math.log1p(-used) if used < 1.0 else -REACH * shift - shift**2 / 2.0
    values = lowest + width * np.arange(int((highest - lowest) / width) + 2)
    sums = np.maximum(2.0 * np.expm1(values) / used + 2.0, 0.0)  # r1 + r2 at the edges
    alone = _reached_below(sums, shift, 0.0)
    joined = (1.0 - used) * alone + used * _reached_below(sums, shift, shift)
    p, q = (np.maximum(np.diff(below), 0.0) for below in (joined, alone))
    return from_cells(values.astype(np.float64), p, q, "above")


def _reached_below(sums: Reals, shift: float, centre: float) -> Reals:
    """The probability that r1 + r2 is at most each of these, with the noise of the first batch around `centre`.

    An integral over the first output, which ends where r1 alone is the whole sum.
    """
    from scipy.special import ndtr

    with np.errstate(divide="ignore"):
        end = np.log(sums) / shift + shift / 2.0
    distance = np.log1p(np.exp(_NODES))
    step = float(_NODES[1] - _NODES[0]) * -np.expm1(-distance) / np.sqrt(2.0 * np.pi)
    total = np.zeros(len(sums))
    for away, weight in zip(distance, step, strict=True):
        rest = np.log(-np.expm1(-shift * away)) / shift  # of the second output, below the end
        total += weight * np.exp(-((end - away - centre) ** 2) / 2.0) * ndtr(end + rest)
    return total
