"""Output perturbation: fit the regularised classifier, then add noise as large as one record can move the optimum.

Strong convexity bounds that move: with a loss whose slope lies in [-1, 0] and features of length at most 1, replacing
one of n records moves the optimum by at most 2 / (n lambda).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around_each
from dpaudit.catalogue.optimum import CMS, HUBER_HINGE, LOGISTIC, WEIGHT, classifier, in_unit_ball
from dpaudit.catalogue.promises import EPSILON, pure_if_replaced
from dpaudit.claims import GaussianDP, Relation

Data = list[list[float]]
Fit = Callable[[Data, float], Reals]
Rate = Callable[[Data, float, float], float]

ROOM = "dpaudit.catalogue.learning"
NOTES = "CS 208, notes 002, 'Output Perturbation'"
REPLACED = "datasets of n records that differ in one of them"
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
_LONG = ([*_OTHERS, [4.0, 3.0, 1]], [*_OTHERS, [4.0, 3.0, -1]])
_IN_THREE: Data = [
    [0.5, 0.2, 0.1, 1],
    [0.1, 0.6, 0.2, -1],
    [-0.4, 0.3, 0.5, 1],
    [-0.5, -0.2, 0.1, -1],
    [0.3, -0.3, 0.2, 1],
]
_DIAGONAL = ([*_IN_THREE, [0.57, 0.57, 0.57, 1]], [*_IN_THREE, [0.57, 0.57, 0.57, -1]])


def _fit(data: Data, weight: float) -> Reals:
    return classifier([in_unit_ball(record) for record in data], weight, HUBER_HINGE)


def _fit_unscaled(data: Data, weight: float) -> Reals:
    return classifier(data, weight, HUBER_HINGE)


# --- noise with a density that falls with its length ------------------------------------------------------------


def _direction(dimensions: int, rng: Rng) -> Reals:
    z = rng.standard_normal(dimensions)
    return np.asarray(z / np.linalg.norm(z))


def _rate(data: Data, epsilon: float, weight: float) -> float:
    """Noise of density e^(-rate ||z||) makes epsilon where the optimum moves by 2 / (n lambda)."""
    return epsilon * len(data) * weight / 2.0


def _bare_rate(data: Data, epsilon: float, weight: float) -> float:
    return epsilon * len(data) / 2.0


def _double_rate(data: Data, epsilon: float, weight: float) -> float:
    return epsilon * len(data) * weight


def _output(
    data: Data,
    rng: Rng,
    epsilon: float,
    weight: float,
    *,
    fit: Fit = _fit,
    rate: Rate = _rate,
    radius: Callable[[Rng, int, float], float] = lambda rng, dimensions, scale: rng.gamma(dimensions, scale),
) -> tuple[float, ...]:
    optimum = fit(data, weight)
    scale = 1.0 / rate(data, epsilon, weight)
    noise = radius(rng, len(optimum), scale) * _direction(len(optimum), rng)
    return tuple((optimum + noise).tolist())


def _laplace_per_coordinate(data: Data, rng: Rng, epsilon: float, weight: float) -> tuple[float, ...]:
    scale = 1.0 / _rate(data, epsilon, weight)
    return tuple(coordinate + rng.laplace(scale=scale) for coordinate in _fit(data, weight).tolist())


def _output_runs(
    data: Data,
    runs: int,
    rng: Rng,
    epsilon: float,
    weight: float,
    *,
    fit: Fit = _fit,
    rate: Rate = _rate,
    shape: float | None = None,
) -> Reals:
    """The direction is that of a normal draw, the length a gamma draw; `shape` is the number of dimensions."""
    optimum = fit(data, weight)
    noise = rng.standard_normal((len(optimum), runs))
    length = rng.standard_gamma(len(optimum) if shape is None else shape, runs)
    length /= np.sqrt(np.einsum("ir,ir->r", noise, noise))
    length /= rate(data, epsilon, weight)
    noise *= length
    noise += optimum[:, None]
    return noise.T


def _laplace_runs(data: Data, runs: int, rng: Rng, epsilon: float, weight: float) -> Reals:
    return around_each(_fit(data, weight), 1.0 / _rate(data, epsilon, weight), runs, rng)


def _loss(
    first: Data, second: Data, epsilon: float, weight: float, *, fit: Fit = _fit, rate: Rate = _rate, norm: int = 2
) -> float:
    """Far out along the line through both optima the densities differ by e^(rate * distance), and nowhere by more."""
    moved = float(np.linalg.norm(fit(first, weight) - fit(second, weight), norm))
    return float(rate(first, epsilon, weight)) * moved


def _radius_loss(first: Data, second: Data, epsilon: float, weight: float) -> float:
    moved = not np.array_equal(_fit(first, weight), _fit(second, weight))
    if not moved or len(first[0]) == 2:  # one feature: the radius has the right law
        return _loss(first, second, epsilon, weight)
    return math.inf


_CODE = Code(_output, _output_runs, _loss)

output_perturbation = Entry(
    module=ROOM,
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
    promise=pure_if_replaced,
    default_pair=_PAIR,
).with_twins(
    Twin(
        name="half_sensitivity",
        title="Output perturbation for the sensitivity 1 / (n lambda)",
        reason="replacing a record takes one gradient out and puts another in: the optimum moves by 2 / (n lambda)",
        formula="w* + z, z of density proportional to e^(-epsilon n lambda ||z||)",
        code=_CODE.given(rate=_double_rate),
    ),
    Twin(
        name="weight_left_out",
        title="Output perturbation with the regulariser left out of the sensitivity",
        reason="the loss moves by 2 / n, but the optimum by 1 / lambda times as much: a flat objective moves further",
        formula="w* + z, z of density proportional to e^(-epsilon n ||z|| / 2)",
        code=_CODE.given(rate=_bare_rate),
    ),
    Twin(
        name="features_not_scaled",
        title="Output perturbation of features of any length",
        reason="a record with ||x|| = 5 has a gradient of length 5, and moves the optimum up to five times too far",
        formula="as output perturbation, with the features as they come",
        code=_CODE.given(fit=_fit_unscaled),
        default_pair=_LONG,
    ),
    Twin(
        name="exponential_radius",
        title="Output perturbation with a radius from the exponential distribution",
        reason="the radius of that density is Gamma(d); an exponential one heaps the noise up at the optimum itself",
        formula="w* + r u with u uniform on the sphere and r exponential with mean 2 / (epsilon n lambda)",
        code=Code(
            partial(_output, radius=lambda rng, dimensions, scale: rng.exponential(scale)),
            partial(_output_runs, shape=1.0),
            _radius_loss,
        ),
    ),
    Twin(
        name="laplace_per_coordinate",
        title="Output perturbation with Laplace noise for the l2 sensitivity",
        reason="independent Laplace noise pays for the l1 distance, up to sqrt(d) times the l2 distance",
        formula="each coordinate of w* plus its own draw of Lap(2 / (epsilon n lambda))",
        code=Code(_laplace_per_coordinate, _laplace_runs, partial(_loss, norm=1)),
        default_pair=_DIAGONAL,
    ),
)


# --- normal noise -----------------------------------------------------------------------------------------------


def _fit_logistic(data: Data, weight: float) -> Reals:
    return classifier([in_unit_ball(record) for record in data], weight, LOGISTIC)


def _sigma(data: Data, mu: float, weight: float) -> float:
    return 2.0 / (len(data) * weight * mu)


def _squared_sigma(data: Data, mu: float, weight: float) -> float:
    return _sigma(data, mu, weight) ** 2


def _gaussian(data: Data, rng: Rng, mu: float, weight: float, *, sigma: Rate = _sigma) -> tuple[float, ...]:
    scale = sigma(data, mu, weight)
    return tuple(coordinate + rng.normal(scale=scale) for coordinate in _fit_logistic(data, weight).tolist())


def _one_draw(data: Data, rng: Rng, mu: float, weight: float) -> tuple[float, ...]:
    noise = rng.normal(scale=_sigma(data, mu, weight))
    return tuple(coordinate + noise for coordinate in _fit_logistic(data, weight).tolist())


def _gaussian_runs(
    data: Data, runs: int, rng: Rng, mu: float, weight: float, *, sigma: Rate = _sigma, shared: bool = False
) -> Reals:
    optimum = _fit_logistic(data, weight)
    noise = rng.standard_normal((1 if shared else len(optimum), runs))
    noise *= sigma(data, mu, weight)
    return np.asarray((noise + optimum[:, None]).T)


def _gaussian_loss(first: Data, second: Data, mu: float, weight: float, *, sigma: Rate = _sigma) -> float:
    moved = float(np.linalg.norm(_fit_logistic(first, weight) - _fit_logistic(second, weight)))
    return moved / float(sigma(first, mu, weight))


def _one_draw_loss(first: Data, second: Data, mu: float, weight: float) -> float:
    moved = _fit_logistic(first, weight) - _fit_logistic(second, weight)
    return math.inf if np.ptp(moved) > 1e-9 else abs(float(moved[0])) / _sigma(first, mu, weight)


gaussian_output_perturbation = Entry(
    module=ROOM,
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
    code=Code(_gaussian, _gaussian_runs, _gaussian_loss),
    parameters=(
        Parameter("mu", 1.0, "standard deviations", "the claim", validate.positive),
        replace(WEIGHT, default=1.0),
    ),
    promise=lambda mu, **_: GaussianDP(mu, relation=Relation.REPLACE_ONE),
    default_pair=_PAIR,
).with_twins(
    Twin(
        name="variance_for_deviation",
        title="Logistic regression with sigma^2 passed for sigma",
        reason="samplers take the standard deviation: with sigma = 0.2 the noise is five times too little",
        formula="w* plus normal noise with the standard deviation (2 / (n lambda mu))^2 in each coordinate",
        code=Code(_gaussian, _gaussian_runs, _gaussian_loss).given(sigma=_squared_sigma),
    ),
    Twin(
        name="one_draw",
        title="Logistic regression with one draw for all coordinates",
        reason="the difference of two coordinates has no noise at all",
        formula="each coordinate of w* plus the same draw of N(0, sigma^2)",
        code=Code(_one_draw, partial(_gaussian_runs, shared=True), _one_draw_loss),
    ),
)

ENTRIES = (output_perturbation, gaussian_output_perturbation)
