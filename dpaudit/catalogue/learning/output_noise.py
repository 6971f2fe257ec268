"""Output perturbation: fit the regularised classifier, then add noise as large as one record can move the optimum.

Strong convexity bounds that move: with a loss whose slope lies in [-1, 0] and features of length at most 1, replacing
one of n records moves the optimum by at most 2 / (n lambda).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, centred_each, normal_each, one_draw
from dpaudit.catalogue.optimum import CMS, HUBER_HINGE, LOGISTIC, WEIGHT, classifier, in_unit_ball
from dpaudit.catalogue.promises import EPSILON, pure_if_replaced
from dpaudit.claims import GaussianDP, Relation

Data = list[list[float]]
Fit = Callable[[Data, float], Reals]
Rate = Callable[[Data, float, float], float]

NOTES = "CS 208, notes 002, 'Output Perturbation'"
REPLACED = "datasets of n records that differ in one of them"
in_room = partial(Entry, module="dpaudit.catalogue.learning", neighbours=REPLACED, promise=pure_if_replaced)
LABELLED = "datasets of n records, all labels -1 or +1, that differ in one of them"

_OTHERS: Data = [
    [0.6, 0.6, 1],
    [0.8, 0.4, 1],
    [0.3, 0.8, 1],
    [0.1, 0.5, 1],
    [-0.5, 0.6, -1],
    [-0.6, 0.2, -1],
    [-0.2, -0.7, -1],
    [-0.8, 0.3, -1],
    [0.2, -0.6, -1],
]
_PAIR = ([*_OTHERS, [0.6, -0.8, 1]], [*_OTHERS, [0.6, -0.8, -1]])
_IN_THREE: Data = [
    [0.5, 0.2, 0.1, 1],
    [0.1, 0.6, 0.2, -1],
    [-0.4, 0.3, 0.5, 1],
    [-0.5, -0.2, 0.1, -1],
    [0.3, -0.3, 0.2, 1],
]


def _fit(data: Data, weight: float) -> Reals:
    return classifier([in_unit_ball(record) for record in data], weight, HUBER_HINGE)


def _direction(dimensions: int, rng: Rng) -> Reals:
    z = rng.standard_normal(dimensions)
    return np.asarray(z / np.linalg.norm(z))


def _rate(data: Data, epsilon: float, weight: float) -> float:
    """Noise of density e^(-rate ||z||) makes epsilon where the optimum moves by 2 / (n lambda)."""
    return epsilon * len(data) * weight / 2.0


def _law(data: Data, epsilon: float, weight: float, fit: Fit = _fit, rate: Rate = _rate) -> tuple[Reals, float]:
    """The optimum, and the rate of the noise around it."""
    return fit(data, weight), rate(data, epsilon, weight)


def _gamma(rng: Rng, dimensions: int, scale: float) -> float:
    return rng.gamma(dimensions, scale)


def _output(
    data: Data, rng: Rng, *, radius: Callable[[Rng, int, float], float] = _gamma, **given: Any
) -> tuple[float, ...]:
    optimum, rate = _law(data, **given)
    noise = radius(rng, len(optimum), 1.0 / rate) * _direction(len(optimum), rng)
    return tuple((optimum + noise).tolist())


def _output_runs(data: Data, runs: int, rng: Rng, *, shape: float | None = None, **given: Any) -> Reals:
    """The direction is that of a normal draw, the length a gamma draw; `shape` is the number of dimensions."""
    optimum, rate = _law(data, **given)
    noise = rng.standard_normal((len(optimum), runs))
    length = rng.standard_gamma(len(optimum) if shape is None else shape, runs)
    length /= np.sqrt(np.einsum("ir,ir->r", noise, noise))
    length /= rate
    noise *= length
    noise += optimum[:, None]
    return noise.T


def _loss(first: Data, second: Data, **given: Any) -> float:
    """Far out along the line through both optima the densities differ by e^(rate * distance), and nowhere by more."""
    (one, rate), (other, _) = (_law(data, **given) for data in (first, second))
    return rate * float(np.linalg.norm(one - other))


def _radius_loss(first: Data, second: Data, **given: Any) -> float:
    loss = _loss(first, second, **given)
    return math.inf if loss and len(first[0]) > 2 else loss  # of one feature the radius has the right law


_CODE = Code(_output, _output_runs, _loss)

output_perturbation = in_room(
    name="output_perturbation",
    title="Output perturbation of a support vector machine",
    source=Source(NOTES, CMS),
    formula=(
        "w* + z with w* = argmin (1/n) sum huber(y <w, x>) + (lambda/2) ||w||^2, features scaled to ||x|| <= 1, "
        "z of density proportional to e^(-epsilon n lambda ||z|| / 2); huber is the hinge with its corner rounded"
    ),
    neighbours=LABELLED,
    code=_CODE,
    parameters=(EPSILON, WEIGHT),
    default_pair=_PAIR,
).with_twins(
    """half_sensitivity: Output perturbation for the sensitivity 1 / (n lambda)
        replacing a record takes one gradient out and puts another in: the optimum moves by 2 / (n lambda)
        w* + z, z of density proportional to e^(-epsilon n lambda ||z||)
    weight_left_out: Output perturbation with the regulariser left out of the sensitivity
        the loss moves by 2 / n, but the optimum by 1 / lambda times as much: a flat objective moves further
        w* + z, z of density proportional to e^(-epsilon n ||z|| / 2)
    features_not_scaled: Output perturbation of features of any length
        a record with ||x|| = 5 has a gradient of length 5, and moves the optimum up to five times too far
        as output perturbation, with the features as they come
    exponential_radius: Output perturbation with a radius from the exponential distribution
        the radius of that density is Gamma(d); an exponential one heaps the noise up at the optimum itself
        w* + r u with u uniform on the sphere and r exponential with mean 2 / (epsilon n lambda)
    laplace_per_coordinate: Output perturbation with Laplace noise for the l2 sensitivity
        independent Laplace noise pays for the l1 distance, up to sqrt(d) times the l2 distance
        each coordinate of w* plus its own draw of Lap(2 / (epsilon n lambda))""",
    half_sensitivity=Twin(code=_CODE.given(rate=lambda data, epsilon, weight: epsilon * len(data) * weight)),
    weight_left_out=Twin(code=_CODE.given(rate=lambda data, epsilon, weight: epsilon * len(data) / 2.0)),
    features_not_scaled=Twin(
        code=_CODE.given(fit=lambda data, weight: classifier(data, weight, HUBER_HINGE)),
        default_pair=([*_OTHERS, [4.0, 3.0, 1]], [*_OTHERS, [4.0, 3.0, -1]]),
    ),
    exponential_radius=Twin(
        code=Code(
            partial(_output, radius=lambda rng, dimensions, scale: rng.exponential(scale)),
            partial(_output_runs, shape=1.0),
            _radius_loss,
        )
    ),
    laplace_per_coordinate=Twin(
        code=centred_each(
            lambda data, weight, **_: _fit(data, weight),
            lambda data, epsilon, weight: 1.0 / _rate(data, epsilon, weight),
        ),
        default_pair=([*_IN_THREE, [0.57, 0.57, 0.57, 1]], [*_IN_THREE, [0.57, 0.57, 0.57, -1]]),
    ),
)


def _optimum(data: Data, weight: float, **_: float) -> Reals:
    return classifier([in_unit_ball(record) for record in data], weight, LOGISTIC)


def _sigma(data: Data, mu: float, weight: float) -> float:
    return 2.0 / (len(data) * weight * mu)


gaussian_output_perturbation = in_room(
    name="gaussian_output_perturbation",
    title="Output perturbation of logistic regression, normal noise",
    source=Source(
        NOTES,
        "Chaudhuri, Monteleoni & Sarwate 2011 (the sensitivity); Dong, Roth & Su 2022, Gaussian differential privacy",
    ),
    formula=(
        "w* + N(0, sigma^2 I), sigma = 2 / (n lambda mu), "
        "w* = argmin (1/n) sum ln(1 + e^(-y <w, x>)) + (lambda/2) ||w||^2, features scaled to ||x|| <= 1"
    ),
    neighbours=LABELLED,
    code=normal_each(_optimum, _sigma),
    parameters=(
        Parameter("mu", 1.0, "standard deviations", "the claim", validate.positive),
        replace(WEIGHT, default=1.0),
    ),
    promise=lambda mu, **_: GaussianDP(mu, relation=Relation.REPLACE_ONE),
    default_pair=_PAIR,
).with_twins(
    """variance_for_deviation: Logistic regression with sigma^2 passed for sigma
        samplers take the standard deviation: with sigma = 0.2 the noise is five times too little
        w* plus normal noise with the standard deviation (2 / (n lambda mu))^2 in each coordinate
    one_draw: Logistic regression with one draw for all coordinates
        the difference of two coordinates has no noise at all
        each coordinate of w* plus the same draw of N(0, sigma^2)""",
    variance_for_deviation=Twin(code=normal_each(_optimum, lambda data, mu, weight: _sigma(data, mu, weight) ** 2)),
    one_draw=Twin(code=one_draw(_optimum, _sigma, normal=True)),
)
