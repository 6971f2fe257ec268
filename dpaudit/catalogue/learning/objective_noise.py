"""Noise on the optimum, and noise in the objective.

Output perturbation fits the regularised classifier, then adds noise as large as one record can move the optimum. Strong
convexity bounds that move: with a loss whose slope lies in [-1, 0] and features of length at most 1, replacing one of n
records moves the optimum by at most 2 / (n lambda).

Objective perturbation adds a random linear term to the objective, then minimises it exactly. The noise b is
a function of the optimum w, so the density of w is that of b(w) times |det db / dw|, the determinant of the Hessian: a
record that bends the objective changes the law in all directions at once.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, centred_each, normal_each, one_draw
from dpaudit.catalogue.promises import (
    CMS,
    EPSILON,
    GDP,
    HUBER_HINGE,
    LOGISTIC,
    WEIGHT,
    classifier,
    in_unit_ball,
    pure_if_replaced,
    signed,
)
from dpaudit.claims import GaussianDP, Relation
from dpaudit.errors import InvalidSpec

Data = list[list[float]]
Fit = Callable[[Data, float], Reals]
Rate = Callable[[Data, float, float], float]

NOTES = "CS 208, notes 002, 'Output Perturbation'"
REPLACED = "datasets of n records that differ in one of them"
in_room = partial(Entry, module="dpaudit.catalogue.learning", neighbours=REPLACED, promise=pure_if_replaced)
LABELLED = "datasets of n records, all labels -1 or +1, that differ in one of them"

_LABELLED: Data = [
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
_PAIR = ([*_LABELLED, [0.6, -0.8, 1]], [*_LABELLED, [0.6, -0.8, -1]])
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


def _output(data: Data, rng: Rng, **given: Any) -> tuple[float, ...]:
    optimum, rate = _law(data, **given)
    noise = rng.gamma(len(optimum), 1.0 / rate) * _direction(len(optimum), rng)
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


def _output_loss(first: Data, second: Data, **given: Any) -> float:
    """Far out along the line through both optima the densities differ by e^(rate * distance), and nowhere by more."""
    (one, rate), (other, _) = (_law(data, **given) for data in (first, second))
    return rate * float(np.linalg.norm(one - other))


def _output_radius_loss(first: Data, second: Data, **given: Any) -> float:
    loss = _output_loss(first, second, **given)
    return math.inf if loss and len(first[0]) > 2 else loss  # of one feature the radius has the right law


_OUTPUT = Code(_output, _output_runs, _output_loss)

output_perturbation = in_room(
    name="output_perturbation",
    title="Output perturbation of a support vector machine",
    source=Source(NOTES, CMS),
    formula=(
        "w* + z with w* = argmin (1/n) sum huber(y <w, x>) + (lambda/2) ||w||^2, features scaled to ||x|| <= 1, "
        "z of density proportional to e^(-epsilon n lambda ||z|| / 2); huber is the hinge with its corner rounded"
    ),
    neighbours=LABELLED,
    code=_OUTPUT,
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
    half_sensitivity=Twin(code=_OUTPUT.given(rate=lambda data, epsilon, weight: epsilon * len(data) * weight)),
    weight_left_out=Twin(code=_OUTPUT.given(rate=lambda data, epsilon, weight: epsilon * len(data) / 2.0)),
    features_not_scaled=Twin(
        code=_OUTPUT.given(fit=lambda data, weight: classifier(data, weight, HUBER_HINGE)),
        default_pair=([*_LABELLED, [4.0, 3.0, 1]], [*_LABELLED, [4.0, 3.0, -1]]),
    ),
    exponential_radius=Twin(
        code=Code(sampler=partial(_output_runs, shape=1.0), loss=_output_radius_loss),
        edit={"gamma(len(optimum), ": "exponential("},
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
    source=Source(NOTES, f"Chaudhuri, Monteleoni & Sarwate 2011 (the sensitivity); {GDP}"),
    formula=(
        "w* + N(0, sigma^2 I), sigma = 2 / (n lambda mu), "
        "w* = argmin (1/n) sum ln(1 + e^(-y <w, x>)) + (lambda/2) ||w||^2, features scaled to ||x|| <= 1"
    ),
    neighbours=LABELLED,
    code=normal_each(_optimum, _sigma),
    parameters=(
        Parameter("mu", 1.0, "standard deviations", "the claim"),
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


Terms = Callable[[int, float, float], tuple[float, float]]

CURVATURE = 0.25  # the largest second derivative of the logistic loss
_BLOCK = 1 << 14
_NEWTON, _HALVINGS = 200, 60
_CLOSE, _EXACT = 1e-6, 1e-13  # lengths of steps: as close a whole step is the best; and the end
_FAR, _NODES = 12.0, {1: 20_001, 2: 241, 3: 31}  # sinh of it: how far out optima are looked at; points an axis
_ZOOM = 14  # times the grid is made three times finer around its best point


def corrected(epsilon: float, records: int, weight: float) -> tuple[float, float]:
    """epsilon' for the noise, and the weight to add to lambda: what the change of curvature leaves of epsilon.

    Chaudhuri, Monteleoni & Sarwate 2011, algorithm 2, steps 1 and 2, with c = 1/4.

    >>> corrected(1.0, 1, 0.25 / math.expm1(0.25))  # at this lambda nothing needs to be added
    (0.5, 0.0)
    """
    bend = CURVATURE / (records * weight)
    left = epsilon - math.log(1.0 + 2.0 * bend + bend * bend)
    if left > 0.0:
        return left, 0.0
    return epsilon / 2.0, CURVATURE / (records * math.expm1(epsilon / 4.0)) - weight


def spherical(rng: Rng, runs: int, features: int, shape: float | None = None) -> Reals:
    """Noise of density proportional to e^-||b||, float64[runs, features]: the length is Gamma(d), or Gamma(shape)."""
    noise = rng.standard_normal((runs, features))
    length = rng.standard_gamma(features if shape is None else shape, runs)
    return np.asarray(noise * (length / np.linalg.norm(noise, axis=1))[:, None])


def _gradient(signed: Reals, steepness: float, w: Reals) -> Reals:
    """That of n times the objective without its noise, at each row of w: minus the noise that has its optimum there."""
    return np.asarray(steepness * w + LOGISTIC.slope(w @ signed.T) @ signed)


def _hessian(signed: Reals, steepness: float, w: Reals) -> Reals:
    squares = (signed[:, :, None] * signed[:, None, :]).reshape(len(signed), -1)
    bend = (LOGISTIC.curvature(w @ signed.T) @ squares).reshape(*w.shape, -1)
    return np.asarray(bend + steepness * np.eye(w.shape[1]))


def minimisers(signed: Reals, steepness: float, noise: Reals) -> Reals:
    """The optimum for each row of the noise: Newton's method, each step halved while it leads past the least value."""
    w, going = np.zeros_like(noise), np.arange(len(noise))
    for _ in range(_NEWTON):
        at, b = w[going], noise[going]
        gradient = _gradient(signed, steepness, at) + b
        step = np.linalg.solve(_hessian(signed, steepness, at), gradient[:, :, None])[:, :, 0]
        steep, length = np.linalg.norm(gradient, axis=1), np.linalg.norm(step, axis=1)
        w[going], tried = at - step, np.flatnonzero(length > _CLOSE)
        for _ in range(_HALVINGS):
            after = _gradient(signed, steepness, w[going[tried]]) + b[tried]
            past = (after * step[tried]).sum(axis=1) < 0.0  # the value rises again along the step
            tried = tried[past & (2.0 * np.linalg.norm(after, axis=1) > steep[tried])]
            if not len(tried):
                break
            step[tried] /= 2.0
            w[going[tried]] = at[tried] - step[tried]
        going = going[length > _EXACT * (1.0 + np.linalg.norm(at, axis=1))]
        if not len(going):
            break
    return w


def _terms(records: int, epsilon: float, weight: float) -> tuple[float, float]:
    """Steepness of the quadratic term, and rate of the noise."""
    left, added = corrected(epsilon, records, weight)
    return records * (weight + added), left / 2.0


def _divided_twice(records: int, epsilon: float, weight: float) -> tuple[float, float]:
    steepness, rate = _terms(records, epsilon, weight)
    return steepness, records * rate


def _terms_of(
    data: Data, epsilon: float, weight: float, terms: Terms = _terms, scaled: bool = True
) -> tuple[Reals, float, float]:
    """Features times label, the steepness of the quadratic term, and the rate of the noise."""
    return signed(data, scaled), *terms(len(data), epsilon, weight)


def _runs(data: Data, runs: int, rng: Rng, *, shape: float | None = None, **given: Any) -> Reals:
    signed, steepness, rate = _terms_of(data, **given)
    blocks = [spherical(rng, min(_BLOCK, runs - start), signed.shape[1], shape) for start in range(0, runs, _BLOCK)]
    return np.concatenate([minimisers(signed, steepness, noise / rate) for noise in blocks])


def _objective(data: Data, rng: Rng, **given: Any) -> tuple[float, ...]:
    return tuple(_runs(data, 1, rng, **given)[0].tolist())


def _loss(first: Data, second: Data, **given: Any) -> float:
    """The largest log ratio of the densities: on grids of optima, made finer around the best point of each.

    Far out an objective is still bent along the lines on which a record has a small margin, and such a line is thin:
    so there is a grid along each record that is replaced, beside the one along the axes.
    """
    (one, steepness, rate), (other, *_) = _terms_of(first, **given), _terms_of(second, **given)
    both, width = (one, other), one.shape[1]
    if width not in _NODES:
        raise InvalidSpec("the exact loss is known for at most three features")

    def ratio(optima: Reals) -> Reals:
        logs = []
        for each in both:
            length = np.linalg.norm(_gradient(each, steepness, optima), axis=1)
            logs.append(np.linalg.slogdet(_hessian(each, steepness, optima))[1] - rate * length)
        return np.asarray(np.abs(logs[0] - logs[1]))

    kinks = np.concatenate([minimisers(signed, steepness, np.zeros((1, width))) for signed in both])
    grid = _FAR * np.array(list(itertools.product(np.linspace(-1.0, 1.0, _NODES[width]), repeat=width)))
    local = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 13), repeat=width)))
    replaced = [record for pair in zip(*both, strict=True) if (pair[0] != pair[1]).any() for record in pair]
    largest = 0.0
    for along in [np.eye(width), *(np.linalg.svd(record[None])[2] for record in replaced if width > 1)]:
        tried, reach = np.vstack([np.arcsinh(kinks @ along.T), grid]), 2.0 * _FAR / (_NODES[width] - 1)
        for _ in range(_ZOOM + 1):
            values = ratio(np.sinh(tried) @ along)
            best = tried[values.argmax()]
            tried, reach = np.vstack([best, best + reach * local]), reach / 3.0
        largest = max(largest, float(values.max()))
    return largest


def _radius_loss(first: Data, second: Data, epsilon: float, weight: float) -> float:
    """Infinite where there are two features or more: at the optimum without noise the density has no bound."""
    one, other = (minimisers(signed(data), 1.0, np.zeros((1, len(data[0]) - 1))) for data in (first, second))
    return 0.0 if np.allclose(one, other, atol=1e-9) else math.inf


_CODE = Code(_objective, _runs, _loss)
_OTHERS: Data = [[0.1, 0.1, 1], [0.1, -0.1, -1]]
_ALIKE: Data = [[0.1, -1]] * 7

objective_perturbation = in_room(
    name="objective_perturbation",
    title="Objective perturbation of logistic regression",
    source=Source(
        "CS 208, notes 002, 'Objective Perturbation'",
        "Chaudhuri, Monteleoni & Sarwate 2011, Differentially private empirical risk minimization, algorithm 2",
    ),
    formula=(
        "argmin (1/n) sum ln(1 + e^(-y <x, w>)) + ((lambda + Delta) / 2) ||w||^2 + <b, w> / n, ||x|| scaled down to 1, "
        "b of density proportional to e^(-epsilon' ||b|| / 2): its length is a draw of Gamma(d, 2 / epsilon'), its "
        "direction uniform; epsilon' = epsilon - 2 ln(1 + c / (n lambda)), Delta = 0 where that is positive, else "
        "epsilon' = epsilon / 2, Delta = c / (n (e^(epsilon / 4) - 1)) - lambda; c = 1/4"
    ),
    neighbours=LABELLED,
    code=_CODE,
    parameters=(EPSILON, replace(WEIGHT, default=0.01)),
    default_pair=([*_OTHERS, [1.0, 0.0, 1]], [*_OTHERS, [0.0, 1.0, 1]]),
).with_twins(
    """no_correction: Objective perturbation with all of epsilon for the noise
        a record that bends the objective also changes |det db / dw|, by a factor of up to 1 + c / (n lambda)
        argmin (1/n) sum loss + (lambda / 2) ||w||^2 + <b, w> / n, length of b from Gamma(d, 2 / epsilon)
    divided_twice: Objective perturbation with the noise divided by n twice
        b / n already stands beside an average; noise for a sensitivity of 2 / n is n times too little there
        as objective perturbation, the length of b from Gamma(d, 2 / (n epsilon'))
    radius_of_one_feature: Objective perturbation with the length of the noise drawn as for one feature
        the length of that density is Gamma(d); an exponential one heaps optima up at the one without noise
        as objective perturbation, ||b|| from the exponential distribution
    features_not_scaled: Objective perturbation of features of any length
        a record with ||x|| = 5 pulls five times as hard, and bends 25 times as much, as the noise is made for
        as objective perturbation, with the features as they come""",
    no_correction=Twin(code=_CODE.given(terms=lambda records, epsilon, weight: (records * weight, epsilon / 2.0))),
    divided_twice=Twin(
        code=_CODE.given(terms=_divided_twice), default_pair=([*_ALIKE, [1.0, 1]], [*_ALIKE, [0.1, -1]])
    ),
    radius_of_one_feature=Twin(code=Code(partial(_objective, shape=1.0), partial(_runs, shape=1.0), _radius_loss)),
    features_not_scaled=Twin(
        code=_CODE.given(scaled=False), default_pair=([*_OTHERS, [5.0, 0.0, 1]], [*_OTHERS, [0.0, 5.0, 1]])
    ),
)
