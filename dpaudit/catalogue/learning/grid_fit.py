"""The exponential mechanism as a fit: draw the slope from a grid, the likelier the smaller its loss on the data."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Places, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.learning.output_noise import Data, in_room
from dpaudit.catalogue.learning.sums import clipped
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON
from dpaudit.losses.discrete import largest_log_ratio

SPAN = 4.0  # of the squared loss of a record: |x|, |y| and |theta| are at most 1
_CLOSE = 1e-12  # slopes closer than this are one

_SLOPES = ([1.0, 0.9], [0.8, 0.9], [1.0, 1.0], [-0.9, -0.7], [0.7, 0.4], [-1.0, -1.0], [0.6, 0.8], [-0.9, -1.0])
_OTHERS: Data = [*_SLOPES, [0.9, 1.0]]
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


def _fit(
    data: Data,
    rng: Rng,
    epsilon: float,
    weight: float,
    cells: int,
    *,
    clip: Callable[[Data], Data] = _clip,
    sign: float = 1.0,
    over: Callable[[Data], int] = len,
    centre: Callable[[Data, float], float] = lambda records, weight: 0.0,
    told: bool = False,
) -> float | tuple[float, float]:
    """`over` is what the sum of losses is divided by, `centre` the middle of the grid; `told`: with the risk."""
    records = clip(data)
    slopes = [clipped(centre(records, weight) + t) for t in _slopes(cells)]
    risks = [sum((y - t * x) ** 2 for x, y in records) / over(data) + sign * weight * t * t for t in slopes]
    slope = _draw(slopes, [-epsilon * len(data) * risk / (2.0 * SPAN) for risk in risks], rng)
    return (slope, risks[slopes.index(slope)]) if told else slope


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


def _indices(chances: Reals, runs: int, rng: Rng) -> Places:
    steps = np.cumsum(chances)
    return np.searchsorted(steps[:-1] / steps[-1], rng.random(runs), side="right")


def _runs(data: Data, runs: int, rng: Rng, epsilon: float, weight: float, cells: int, *, law: Any = _average) -> Reals:
    slopes, risks = law(data, weight, cells)
    return np.asarray(slopes[_indices(_chances(risks, len(data), epsilon), runs, rng)])


def _risk_runs(data: Data, runs: int, rng: Rng, epsilon: float, weight: float, cells: int) -> Reals:
    slopes, risks = _average(data, weight, cells)
    return np.asarray(np.stack([slopes, risks], axis=1)[_indices(_chances(risks, len(data), epsilon), runs, rng)])


def _loss(
    first: Data, second: Data, epsilon: float, weight: float, cells: int, *, law: Any = _average, told: bool = False
) -> float:
    """By enumeration: an outcome is a slope, and where the mechanism tells it the risk as well."""
    outcomes: list[dict[tuple[float, ...], float]] = []
    for data in (first, second):
        slopes, risks = law(data, weight, cells)
        chances = _chances(risks, len(data), epsilon)
        table: dict[tuple[float, ...], float] = {}
        for slope, risk, chance in zip(slopes, risks, chances, strict=True):
            key = (round(slope / _CLOSE), round(risk / _CLOSE)) if told else (round(slope / _CLOSE),)
            table[key] = table.get(key, 0.0) + float(chance)
        outcomes.append(table)
    keys = sorted({*outcomes[0], *outcomes[1]})
    return largest_log_ratio(*(np.array([table.get(key, 0.0) for key in keys]) for table in outcomes))


def _with(program: Callable[..., Any], law: Any) -> Code:
    return Code(program, partial(_runs, law=law), partial(_loss, law=law))


exponential_fit = in_room(
    name="exponential_fit",
    title="Regression by the exponential mechanism on a grid",
    source=Source(
        "CS 208, notes 002, 'Exponential Mechanism for ML'",
        "McSherry & Talwar 2007, Mechanism design via differential privacy",
    ),
    formula=(
        "theta on a grid of [-1, 1] with probability proportional to e^(-epsilon n L(theta) / (2 D)), "
        "L(theta) = (1/n) sum (y - theta x)^2 + lambda theta^2, x and y clipped to [-1, 1], D = 4"
    ),
    code=Code(_fit, _runs, _loss),
    parameters=(
        EPSILON,
        Parameter("weight", 0.1, "loss per squared slope", "lambda, of the regulariser", validate.positive),
        Parameter("cells", 5, "slopes", "how many the grid holds", partial(validate.whole, least=2)),
    ),
    default_pair=([*_OTHERS, [1.0, 1.0]], [*_OTHERS, [1.0, -1.0]]),
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
        code=_with(partial(_fit, over=lambda data: 1, sign=-1.0), _total),
        default_pair=([*_FEW, [1.0, 1.0]], [*_FEW, [1.0, -1.0]]),
    ),
    labels_not_clipped=Twin(
        code=_with(partial(_fit, clip=_clip_features), partial(_average, clip=_clip_features)),
        default_pair=([*_OTHERS, [1.0, 4.0]], [*_OTHERS, [1.0, -4.0]]),
    ),
    grid_from_data=Twin(code=_with(partial(_fit, centre=_best), _around_the_best)),
    risk_released=Twin(code=Code(partial(_fit, told=True), _risk_runs, partial(_loss, told=True))),
    sign_turned=Harmless(code=_with(partial(_fit, sign=-1.0), partial(_average, sign=-1.0))),
)
