"""Regression: noisy sums, noisy variance and covariance (NoisyStats), output perturbation, a slope drawn from a grid.

The line of least squares needs five sums of the data, and each gets Laplace noise. With x and y clipped to [-1, 1], one
person adds at most 1 to each of n, sum x, sum y, sum xy and sum x^2. For NoisyStats data lie in [0, 1], and n is
public: a run in which the noisy variance is not positive gives no line.

Output perturbation needs bounds: labels are clipped, and the regulariser bounds the optimum. With |x| <= 1 and |y| <= B
the optimum is at most W = B / (2 sqrt(lambda)), so a record's gradient there is at most 2 B (1 + 1 / (2 sqrt(lambda))),
and the optimum moves by at most 2 B (1 + 1 / (2 sqrt(lambda))) / (n lambda).
"""

import itertools
import math
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Masked, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.learning.objective_noise import NOTES, Data, in_room
from dpaudit.catalogue.noise import Rng, centred, laplace, one_draw, places_of, scaled_each
from dpaudit.catalogue.promises import CS208, DMNS, EPSILON, MCSHERRY, pure_if_added_or_removed
from dpaudit.losses.distribution import largest_log_ratio

SUMS = 5

_OTHERS: Data = [[0.2, 0.5], [-0.6, -0.4], [0.5, 0.7], [0.9, 0.8]]


def line(sums: Reals) -> Reals:
    """Slope and intercept from (n, sum x, sum y, sum xy, sum x^2), first axis: what anyone can compute.

    >>> line(np.array([2.0, 1.0, 3.0, 2.0, 1.0]))
    array([1., 1.])
    """
    n, x, y, xy, xx = sums
    slope = (n * xy - x * y) / (n * xx - x * x)
    return np.stack([slope, (y - slope * x) / n])


def clipped(value: float, bound: float = 1.0) -> float:
    """The value, or the end of [-bound, bound] that it lies beyond."""
    return max(-bound, min(bound, value))


def _exact(records: Data) -> list[float]:
    return [
        float(len(records)),
        sum(x for x, _ in records),
        sum(y for _, y in records),
        sum(x * y for x, y in records),
        sum(x * x for x, _ in records),
    ]


def _clipped_sums(data: Data, **_: float) -> list[float]:
    return _exact([[clipped(x), clipped(y)] for x, y in data])


def _shared_out(*shares: float) -> Code:
    """The clipped sums, with noise of `shares` times 1 / epsilon on each."""
    return scaled_each(_clipped_sums, lambda data, epsilon: np.array(shares, float) / epsilon)


def _scales_of_data(data: Data, epsilon: float) -> Reals:
    bound = float(np.abs(np.asarray(data)).max())
    return SUMS * np.array([1.0, bound, bound, bound**2, bound**2]) / epsilon


regression_from_sums = in_room(
    name="regression_from_sums",
    title="Linear regression from noisy sufficient statistics",
    source=Source(f"{CS208}, 'Modifying ML Algorithms'", DMNS),
    formula=(
        "n, sum x, sum y, sum xy, sum x^2, each plus its own draw of Lap(5 / epsilon), x and y clipped to [-1, 1]; "
        "slope and intercept are computed from the five"
    ),
    neighbours="datasets of which one has a record more",
    code=_shared_out(*[SUMS] * SUMS),
    parameters=(EPSILON,),
    promise=pure_if_added_or_removed,
    default_pair=([*_OTHERS, [1.0, 1.0]], [*_OTHERS]),
).with_twins(
    """exact_squares: Regression from sums, with noise on all but the sum of squares
        the sum of squares of x is a statistic of the data as well: released exactly it tells who is there
        n, sum x, sum y and sum xy, each plus Lap(5 / epsilon), and the exact sum x^2
    exact_count: Regression from sums, with the exact number of records
        where neighbours differ by a record the number of records is private too
        the exact n, and sum x, sum y, sum xy and sum x^2, each plus Lap(5 / epsilon)
    one_draw: Regression from sums, with one draw for all five
        the difference of two sums has no noise at all
        n, sum x, sum y, sum xy, sum x^2, all plus the same draw of Lap(5 / epsilon)
    budget_not_split: Regression from sums, all of epsilon for each
        five releases at epsilon each are 5 epsilon together, and one record moves all five
        n, sum x, sum y, sum xy, sum x^2, each plus its own draw of Lap(1 / epsilon)
    bounds_from_data: Regression from sums, clipped to the largest value in the data
        one far record widens the noise of all sums: how far they scatter tells whether it is there
        the five sums unclipped, with noise for |x|, |y| <= the largest |x| or |y| in the data""",
    exact_squares=Twin(code=_shared_out(SUMS, SUMS, SUMS, SUMS, 0)),
    exact_count=Twin(code=_shared_out(0, SUMS, SUMS, SUMS, SUMS), default_pair=([*_OTHERS, [0.0, 0.0]], [*_OTHERS])),
    one_draw=Twin(
        code=one_draw(_clipped_sums, lambda data, epsilon: SUMS / epsilon),
        default_pair=([*_OTHERS, [0.5, 1.0]], [*_OTHERS]),
    ),
    budget_not_split=Twin(code=_shared_out(*[1] * SUMS)),
    bounds_from_data=Twin(
        code=scaled_each(lambda data, **_: _exact(data), _scales_of_data),
        default_pair=([*_OTHERS, [6.0, 6.0]], [*_OTHERS]),
    ),
)


_SMALL: Data = [
    [0.5, 0.4],
    [-0.3, -0.2],
    [0.2, 0.3],
    [-0.5, -0.3],
    [0.1, 0.0],
    [0.4, 0.1],
    [-0.2, 0.1],
    [0.3, 0.5],
    [-0.4, -0.6],
]


def sensitivity(records: int, weight: float, bound: float) -> float:
    """How far the ridge optimum of records with |x| <= 1 and |y| <= bound moves when one of them is replaced, at most.

    >>> sensitivity(10, 1.0, 1.0)
    0.3
    """
    return 2.0 * bound * (1.0 + 0.5 / math.sqrt(weight)) / (records * weight)


def _ridge(data: Data, rng: Rng, epsilon: float, weight: float, bound: float, *, clip: bool, average: bool) -> float:
    kept = [(clipped(x), clipped(y, bound) if clip else y) for x, y in data]
    flat = len(data) * weight if average else weight
    optimum = sum(x * y for x, y in kept) / (sum(x * x for x, _ in kept) + flat)
    return optimum + rng.laplace(scale=_scale(data, epsilon, weight, bound))


def _slope_of(data: Data, weight: float, bound: float, *, clip: bool, average: bool, **_: float) -> float:
    x, y = np.asarray(data, float).T
    x, y = np.clip(x, -1.0, 1.0), np.clip(y, -bound, bound) if clip else y
    return float((x @ y) / (x @ x + (len(data) * weight if average else weight)))


def _scale(data: Data, epsilon: float, weight: float, bound: float, **_: bool) -> float:
    return sensitivity(len(data), weight, bound) / epsilon


_RIDGE = centred(_slope_of, _scale, _ridge)


ridge_output_perturbation = in_room(
    name="ridge_output_perturbation",
    title="Output perturbation of ridge regression",
    source=Source(
        f"{NOTES}; exercise 3.1 (the objective)",
        "Chaudhuri, Monteleoni & Sarwate 2011, Differentially private empirical risk minimization (the argument)",
    ),
    formula=(
        "w* + Lap(S / epsilon), w* = argmin (1/n) sum (y - w x)^2 + lambda w^2, x clipped to [-1, 1] and y to [-B, B], "
        "S = 2 B (1 + 1 / (2 sqrt(lambda))) / (n lambda)"
    ),
    code=_RIDGE.given(clip=True, average=True),
    parameters=(
        EPSILON,
        Parameter("weight", 1.0, "squared units of x", "lambda, of the regulariser"),
        Parameter("bound", 1.0, "units of y", "B, what labels are clipped to"),
    ),
    default_pair=([*_SMALL, [1.0, 1.0]], [*_SMALL, [1.0, -1.0]]),
).with_twins(
    """labels_not_clipped: Ridge regression on labels of any size
        the gradient of a squared loss grows with the label, and the move of the optimum with it
        as ridge regression with noise, with the labels as they come
    sum_for_average: Ridge regression of the sum, with noise for the average
        lambda beside a sum of losses is n times weaker than beside their average: the optimum moves further
        w* + Lap(S / epsilon) with the S of the average, and w* = argmin sum (y - w x)^2 + lambda w^2""",
    labels_not_clipped=Twin(
        code=_RIDGE.given(clip=False, average=True), default_pair=([*_SMALL, [1.0, 8.0]], [*_SMALL, [1.0, -1.0]])
    ),
    sum_for_average=Twin(code=_RIDGE.given(clip=True, average=False)),
)


PARTS = 3.0  # variance, covariance and intercept share epsilon
_SAME = 1e-12
_FAR = 12.0  # sinh of it: the steepest slopes tried
_NODES = 100_001
_SERIES = 0.3  # below it a series is more exact than the closed form

_IN_UNIT: Data = [[0.1, 0.2], [0.9, 0.7], [0.4, 0.5], [0.6, 0.4], [0.3, 0.3]]
_CLOSE: Data = [[0.4, 0.2], [0.6, 0.7], [0.5, 0.5], [0.6, 0.4], [0.4, 0.3]]
_AT_ONE: Data = [[1.0, 0.2], [1.0, 0.7], [1.0, 0.5], [1.0, 0.4], [1.0, 0.3]]


def _clipped(value: float) -> float:
    return max(0.0, min(1.0, value))


def _moments(data: Data) -> tuple[float, float, float, float]:
    """Mean of x, mean of y, n times their covariance, n times the variance of x."""
    n, pairs = len(data), [(_clipped(x), _clipped(y)) for x, y in data]
    x, y = sum(x for x, _ in pairs) / n, sum(y for _, y in pairs) / n
    return x, y, sum((a - x) * (b - y) for a, b in pairs), sum((a - x) ** 2 for a, _ in pairs)


def _noisy_stats(data: Data, rng: Rng, epsilon: float) -> dict[int, float]:
    n, (x, y, covariance, variance) = len(data), _moments(data)
    scale = PARTS * (1.0 - 1.0 / n) / epsilon
    variance += rng.laplace(scale=scale)
    if variance <= 0.0:
        return {}
    slope = (covariance + rng.laplace(scale=scale)) / variance
    return {0: slope, 1: y - slope * x + rng.laplace(scale=PARTS * (1.0 + abs(slope)) / (n * epsilon))}


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
    near = np.where(np.abs(z) < _SERIES, z, 0.0)
    series = sum(near**k / (math.factorial(k) * (k + 2)) for k in range(14))
    far = np.where(np.abs(z) < _SERIES, 1.0, z)
    return np.where(np.abs(z) < _SERIES, series, (np.exp(far) * (far - 1.0) + 1.0) / far**2)


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
    default_pair=([*_IN_UNIT, [0.0, 1.0]], [*_IN_UNIT, [1.0, 1.0]]),
).with_twins(
    """exact_variance: NoisyStats that divides by the exact variance
        the scale of the slope is then a function of the data: where all x are alike it scatters far
        slope = (n cov + Lap(s)) / (n var), and the rest as in NoisyStats
    mean_of_y_only: NoisyStats with intercept noise for the mean of y alone
        the intercept holds slope * mean x too, which one record moves by |slope| / n
        as NoisyStats with Lap(3 / (n epsilon)) on the intercept""",
    exact_variance=Twin(
        code=Code(sampler=partial(_runs, exact=True), loss=_exact_variance_loss),
        edit={"variance +=": None},
        default_pair=([*_CLOSE, [1.0, 0.5]], [*_CLOSE, [0.5, 0.5]]),
    ),
    mean_of_y_only=Twin(
        code=Code(sampler=partial(_runs, widened=False), loss=partial(_loss, widened=False)),
        edit={" * (1.0 + abs(slope))": ""},
        default_pair=([*_AT_ONE, [0.0, 0.0]], [*_AT_ONE, [1.0, 0.0]]),
    ),
)


SPAN = 4.0  # of the squared loss of a record: |x|, |y| and |theta| are at most 1
_ALIKE = 1e-12  # slopes closer than this are one

_SLOPES = ([1.0, 0.9], [0.8, 0.9], [1.0, 1.0], [-0.9, -0.7], [0.7, 0.4], [-1.0, -1.0], [0.6, 0.8], [-0.9, -1.0])
_POINTS: Data = [*_SLOPES, [0.9, 1.0]]
_FEW: Data = [[0.5, 0.1], [-0.4, 0.1], [0.3, 0.0], [0.2, 0.2]]


def _clip(data: Data) -> Data:
    return [[clipped(x), clipped(y)] for x, y in data]


def _clip_features(data: Data) -> Data:
    return [[clipped(x), y] for x, y in data]


def _draw(slopes: list[float], exponents: list[float], rng: Rng) -> float:
    largest = max(exponents)
    weights = [math.exp(exponent - largest) for exponent in exponents]
    level = rng.random() * sum(weights)
    for slope, weight in zip(slopes, weights, strict=True):
        level -= weight
        if level < 0.0:
            return slope
    return slopes[-1]


def _slopes(cells: int) -> list[float]:
    return [-1.0 + 2.0 * i / (cells - 1) for i in range(cells)]


def _fit(data: Data, rng: Rng, epsilon: float, weight: float, cells: int) -> float:
    records = _clip(data)
    slopes = _slopes(cells)
    risks = [sum((y - t * x) ** 2 for x, y in records) / len(data) + weight * t * t for t in slopes]
    slope = _draw(slopes, [-epsilon * len(data) * risk / (2.0 * SPAN) for risk in risks], rng)
    return slope


def _best(records: Data, weight: float) -> float:
    return sum(x * y for x, y in records) / (sum(x * x for x, _ in records) + len(records) * weight)


# --- many runs, and the law: slopes with the risks that the mechanism gives them ---------------------------------

Law = tuple[Reals, Reals]


def _average(data: Data, weight: float, cells: int, *, clip: Any = _clip, sign: float = 1.0) -> Law:
    slopes = np.array(_slopes(cells))
    return slopes, _risks(clip(data), slopes, weight * sign)


def _total(data: Data, weight: float, cells: int) -> Law:
    """The sum where the average belongs, and the regulariser subtracted once, as the notes print it."""
    slopes = np.array(_slopes(cells))
    return slopes, len(data) * _risks(_clip(data), slopes, -weight / len(data))


def _around_the_best(data: Data, weight: float, cells: int) -> Law:
    x, y = np.asarray(_clip(data)).T
    best = (x @ y) / (x @ x + len(data) * weight)
    slopes = np.clip(best + np.array(_slopes(cells)), -1.0, 1.0)
    return slopes, _risks(_clip(data), slopes, weight)


def _risks(records: Data, slopes: Reals, weight: float) -> Reals:
    x, y = np.asarray(records).T
    return np.asarray(((y[:, None] - np.outer(x, slopes)) ** 2).mean(axis=0) + weight * slopes**2)


def _chances(risks: Reals, records: int, epsilon: float) -> Reals:
    exponents = -epsilon * records * risks / (2.0 * SPAN)
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())


def _grid_runs(
    data: Data, runs: int, rng: Rng, epsilon: float, weight: float, cells: int, law: Any = _average, both: bool = False
) -> Reals:
    slopes, risks = law(data, weight, cells)
    outputs = np.stack([slopes, risks], axis=1) if both else slopes
    return np.asarray(outputs[places_of(_chances(risks, len(data), epsilon), runs, rng)])


def _grid_loss(
    first: Data, second: Data, epsilon: float, weight: float, cells: int, *, law: Any = _average, both: bool = False
) -> float:
    """By enumeration: an outcome is a slope, and where the mechanism tells it the risk as well."""
    outcomes: list[dict[tuple[float, ...], float]] = []
    for data in (first, second):
        slopes, risks = law(data, weight, cells)
        chances = _chances(risks, len(data), epsilon)
        table: dict[tuple[float, ...], float] = {}
        for slope, risk, chance in zip(slopes, risks, chances, strict=True):
            key = (round(slope / _ALIKE), round(risk / _ALIKE)) if both else (round(slope / _ALIKE),)
            table[key] = table.get(key, 0.0) + float(chance)
        outcomes.append(table)
    keys = sorted({*outcomes[0], *outcomes[1]})
    return largest_log_ratio(*(np.array([table.get(key, 0.0) for key in keys]) for table in outcomes))


def _drawn_by(law: Any) -> Code:
    return Code(sampler=partial(_grid_runs, law=law), loss=partial(_grid_loss, law=law))


exponential_fit = in_room(
    name="exponential_fit",
    title="Regression by the exponential mechanism on a grid",
    source=Source(f"{CS208}, 'Exponential Mechanism for ML'", MCSHERRY),
    formula=(
        "theta on a grid of [-1, 1] with probability proportional to e^(-epsilon n L(theta) / (2 D)), "
        "L(theta) = (1/n) sum (y - theta x)^2 + lambda theta^2, x and y clipped to [-1, 1], D = 4"
    ),
    code=Code(_fit, _grid_runs, _grid_loss),
    parameters=(
        EPSILON,
        Parameter("weight", 0.1, "loss per squared slope", "lambda, of the regulariser"),
        Parameter("cells", 5, "slopes", "how many the grid holds", partial(validate.whole, least=2)),
    ),
    default_pair=([*_POINTS, [1.0, 1.0]], [*_POINTS, [1.0, -1.0]]),
).with_twins(
    """sum_for_average: Regression by the exponential mechanism, with the sum where the average belongs
        the exponent epsilon n / (2 D) is for the average; beside a sum one record moves it n times too far
        theta with probability proportional to e^(-(epsilon n / (2 D)) (sum loss - lambda theta^2))
    labels_not_clipped: Regression by the exponential mechanism on labels of any size
        D = 4 bounds the loss of a record with |y| <= 1; a larger label makes a larger loss
        as the regression, with the labels as they come
    grid_from_data: Regression by the exponential mechanism on a grid around the exact fit
        the slopes that can come out depend on the data: those of one grid are not on the other
        as the regression, with the grid centred at the ridge optimum of the data
    risk_released: Regression by the exponential mechanism that tells how well it fits
        the loss of the chosen slope on the private data is an exact statistic of them
        as the regression, and beside the slope its L(theta)
    sign_turned: Regression by the exponential mechanism with the regulariser's sign turned
        the regulariser does not look at the data: large slopes are favoured, at no cost in privacy
        theta with probability proportional to e^(-(epsilon n / (2 D)) ((1/n) sum loss - lambda theta^2))""",
    sum_for_average=Twin(
        code=_drawn_by(_total),
        edit={" / len(data) + weight": " - weight"},
        default_pair=([*_FEW, [1.0, 1.0]], [*_FEW, [1.0, -1.0]]),
    ),
    labels_not_clipped=Twin(
        code=_drawn_by(partial(_average, clip=_clip_features)),
        edit={"_clip(": "_clip_features("},
        default_pair=([*_POINTS, [1.0, 4.0]], [*_POINTS, [1.0, -4.0]]),
    ),
    grid_from_data=Twin(
        code=_drawn_by(_around_the_best),
        edit={"_slopes(cells)": "[clipped(_best(records, weight) + t) for t in _slopes(cells)]"},
    ),
    risk_released=Twin(
        code=Code(sampler=partial(_grid_runs, both=True), loss=partial(_grid_loss, both=True)),
        edit={"-> float": "-> tuple[float, float]", "return slope": "return slope, risks[slopes.index(slope)]"},
    ),
    sign_turned=Harmless(code=_drawn_by(partial(_average, sign=-1.0)), edit={"+ weight": "- weight"}),
)
