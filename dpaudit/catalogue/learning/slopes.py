"""NoisyStats: a line from a noisy variance and a noisy covariance, and an intercept with noise of its own.

Data lie in [0, 1], and n is public. A run in which the noisy variance is not positive gives no line.
"""

import itertools
import math
from functools import partial

import numpy as np

from dpaudit.arrays import Masked, Reals
from dpaudit.catalogue.entry import Code, Source, Twin
from dpaudit.catalogue.learning.output_noise import Data, in_room
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON

PARTS = 3.0  # variance, covariance and intercept share epsilon
_SAME = 1e-12
_FAR = 12.0  # sinh of it: the steepest slopes tried
_NODES = 100_001
_SMALL = 0.3  # below it a series is more exact than the closed form

_OTHERS: Data = [[0.1, 0.2], [0.9, 0.7], [0.4, 0.5], [0.6, 0.4], [0.3, 0.3]]
_CLOSE: Data = [[0.4, 0.2], [0.6, 0.7], [0.5, 0.5], [0.6, 0.4], [0.4, 0.3]]
_AT_ONE: Data = [[1.0, 0.2], [1.0, 0.7], [1.0, 0.5], [1.0, 0.4], [1.0, 0.3]]


def _clipped(value: float) -> float:
    return max(0.0, min(1.0, value))


def _moments(data: Data) -> tuple[float, float, float, float]:
    """Mean of x, mean of y, n times their covariance, n times the variance of x."""
    n, pairs = len(data), [(_clipped(x), _clipped(y)) for x, y in data]
    x, y = sum(x for x, _ in pairs) / n, sum(y for _, y in pairs) / n
    return x, y, sum((a - x) * (b - y) for a, b in pairs), sum((a - x) ** 2 for a, _ in pairs)


def _noisy_stats(
    data: Data, rng: Rng, epsilon: float, *, exact: bool = False, widened: bool = True
) -> dict[int, float]:
    n, (x, y, covariance, variance) = len(data), _moments(data)
    scale = PARTS * (1.0 - 1.0 / n) / epsilon
    variance += 0.0 if exact else rng.laplace(scale=scale)
    if variance <= 0.0:
        return {}
    slope = (covariance + rng.laplace(scale=scale)) / variance
    wide = 1.0 + abs(slope) if widened else 1.0
    return {0: slope, 1: y - slope * x + rng.laplace(scale=PARTS * wide / (n * epsilon))}


def _runs(data: Data, runs: int, rng: Rng, epsilon: float, *, exact: bool = False, widened: bool = True) -> Masked:
    n, (x, y, covariance, variance) = len(data), _moments(data)
    scale = PARTS * (1.0 - 1.0 / n) / epsilon
    below = laplace(rng, 0.0 if exact else scale, runs)
    below += variance
    none = below <= 0.0
    below[none] = 1.0
    output = np.empty((2, runs))
    slope, intercept = output
    slope[:] = laplace(rng, scale, runs)
    slope += covariance
    slope /= below
    intercept[:] = laplace(rng, PARTS / (n * epsilon), runs)
    if widened:
        intercept *= 1.0 + np.abs(slope)
    intercept += y
    intercept -= slope * x
    return np.ma.MaskedArray(output.T, mask=np.repeat(none[:, None], 2, axis=1))


def _risen(z: Reals) -> Reals:
    """The integral of t e^(z t) over [0, 1], by its series near 0."""
    near = np.where(np.abs(z) < _SMALL, z, 0.0)
    series = sum(near**k / (math.factorial(k) * (k + 2)) for k in range(14))
    far = np.where(np.abs(z) < _SMALL, 1.0, z)
    return np.where(np.abs(z) < _SMALL, series, (np.exp(far) * (far - 1.0) + 1.0) / far**2)


def _grown(z: Reals) -> Reals:
    """The integral of e^(z t) over [0, 1]."""
    safe = np.where(z == 0.0, 1.0, z)
    return np.where(z == 0.0, 1.0, np.expm1(safe) / safe)


def slope_density(slope: Reals, covariance: float, variance: float, scale: float) -> Reals:
    """The density of (covariance + Lap) / (variance + Lap) where the divisor is positive; both noises of one scale.

    It is the integral of b f(slope b - covariance) f(b - variance) over the divisor b > 0: between the kinks of the
    two densities the integrand is b times an exponential.

    >>> slope_density(np.array([0.0]), 0.0, 0.0, 1.0)
    array([0.25])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        kink = np.where(slope != 0.0, covariance / slope, 0.0)
    kink = np.clip(np.nan_to_num(kink), 0.0, 1e12)
    other = np.full_like(slope, variance)
    stops = [np.zeros_like(slope), np.minimum(kink, other), np.maximum(kink, other)]

    def exponent(b: Reals) -> Reals:
        return -(np.abs(slope * b - covariance) + np.abs(b - variance)) / scale

    total = np.zeros_like(slope)
    for low, high in itertools.pairwise(stops):
        width, rise = high - low, exponent(high) - exponent(low)
        total += np.exp(exponent(low)) * width * (low * _grown(rise) + width * _risen(rise))
    rate = (1.0 + np.abs(slope)) / scale
    total += np.exp(exponent(stops[2])) * (stops[2] / rate + 1.0 / rate**2)
    return np.asarray(total / (4.0 * scale * scale))


def _loss(first: Data, second: Data, epsilon: float, *, widened: bool = True) -> float:
    """The largest over the slope; given the slope, the intercepts far out add their whole shift over their scale."""
    n = len(first)
    scale = PARTS * (1.0 - 1.0 / n) / epsilon
    (x, y, covariance, variance), (x2, y2, covariance2, variance2) = _moments(first), _moments(second)
    if not widened and abs(x - x2) > _SAME:
        return math.inf
    kinks = [c / v for c, v in ((covariance, variance), (covariance2, variance2)) if v > 0.0]
    slope = np.sinh(np.append(np.linspace(-_FAR, _FAR, _NODES), np.arcsinh(kinks)))
    ratio = np.log(slope_density(slope, covariance, variance, scale))
    ratio -= np.log(slope_density(slope, covariance2, variance2, scale))
    shift = np.abs((y - y2) - slope * (x - x2)) * n * epsilon / PARTS
    lines = np.abs(ratio) + (shift / (1.0 + np.abs(slope)) if widened else shift)
    return float(max(lines.max(), abs(variance - variance2) / scale))


def _exact_variance_loss(first: Data, second: Data, epsilon: float) -> float:
    n = len(first)
    (x, y, covariance, variance), (x2, y2, covariance2, variance2) = _moments(first), _moments(second)
    if abs(variance - variance2) > _SAME:
        return math.inf
    if variance <= 0.0:
        return 0.0  # all x are alike: there never is a line
    slope = np.sinh(np.append(np.linspace(-_FAR, _FAR, _NODES), np.arcsinh([covariance / variance])))
    scale = PARTS * (1.0 - 1.0 / n) / (epsilon * variance)
    ratio = np.abs(np.abs(slope - covariance / variance) - np.abs(slope - covariance2 / variance)) / scale
    shift = np.abs((y - y2) - slope * (x - x2)) * n * epsilon / PARTS
    return float(np.max(ratio + shift / (1.0 + np.abs(slope))))


noisy_stats = in_room(
    name="noisy_stats",
    title="NoisyStats: slope and intercept from noisy moments",
    source=Source(
        "CS 208, notes 002, 'Modifying ML Algorithms'",
        "Alabi, McMillan, Sarathy, Smith & Vadhan 2022, Differentially private simple linear regression (NoisyStats)",
    ),
    formula=(
        "slope = (n cov + Lap(s)) / (n var + Lap(s)), s = 3 (1 - 1/n) / epsilon, no line where the divisor is not "
        "positive; intercept = mean y - slope * mean x + Lap(3 (1 + |slope|) / (n epsilon)); x, y clipped to [0, 1]"
    ),
    code=Code(_noisy_stats, _runs, _loss),
    parameters=(EPSILON,),
    default_pair=([*_OTHERS, [0.0, 1.0]], [*_OTHERS, [1.0, 1.0]]),
).with_twins(
    """exact_variance: NoisyStats that divides by the exact variance
        the scale of the slope is then a function of the data: where all x are alike it scatters far
        slope = (n cov + Lap(s)) / (n var), and the rest as in NoisyStats
    mean_of_y_only: NoisyStats with intercept noise for the mean of y alone
        the intercept holds slope * mean x too, which one record moves by |slope| / n
        as NoisyStats with Lap(3 / (n epsilon)) on the intercept""",
    exact_variance=Twin(
        code=Code(partial(_noisy_stats, exact=True), partial(_runs, exact=True), _exact_variance_loss),
        default_pair=([*_CLOSE, [1.0, 0.5]], [*_CLOSE, [0.5, 0.5]]),
    ),
    mean_of_y_only=Twin(
        code=Code(_noisy_stats, _runs, _loss).given(widened=False),
        default_pair=([*_AT_ONE, [0.0, 0.0]], [*_AT_ONE, [1.0, 0.0]]),
    ),
)
