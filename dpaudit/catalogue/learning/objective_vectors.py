"""Objective perturbation with any number of features: the noise is a vector, and one run minimises the objective.

The noise b is a function of the optimum w, so the density of w is that of b(w) times |det db / dw|, the determinant of
the Hessian: a record that bends the objective changes the law in all directions at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Twin
from dpaudit.catalogue.learning.objective_noise import corrected, objective_perturbation
from dpaudit.catalogue.learning.optimum import LOGISTIC, in_unit_ball
from dpaudit.catalogue.learning.output_noise import WEIGHT, Data
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON
from dpaudit.errors import InvalidSpec

Terms = Callable[[int, float, float], tuple[float, float]]

_BLOCK = 1 << 14
_NEWTON, _EXACT = 200, 1e-13
_FAR, _NODES = 9.0, {1: 20_001, 2: 181, 3: 31}  # sinh of it: how far out optima are looked at; points an axis
_ZOOM = 14  # times the grid is made three times finer around its best point


def _signed(data: Data, scaled: bool = True) -> Reals:
    table = np.asarray([in_unit_ball(record) if scaled else record for record in data], float)
    return np.asarray(table[:, :-1] * table[:, -1:])


def spherical(rng: Rng, runs: int, features: int, shape: float | None = None) -> Reals:
    """Noise of density proportional to e^-||b||, float64[runs, features]: the length is Gamma(d), or Gamma(shape)."""
    noise = rng.standard_normal((runs, features))
    length = rng.standard_gamma(features if shape is None else shape, runs)
    return np.asarray(noise * (length / np.linalg.norm(noise, axis=1))[:, None])


def _derivatives(signed: Reals, steepness: float, w: Reals) -> tuple[Reals, Reals]:
    """Gradient and Hessian, at each row of w, of n times the objective without its noise."""
    margins = w @ signed.T
    gradient = steepness * w + LOGISTIC.slope(margins) @ signed
    squares = (signed[:, :, None] * signed[:, None, :]).reshape(len(signed), -1)
    bend = (LOGISTIC.curvature(margins) @ squares).reshape(*w.shape, -1)
    return gradient, bend + steepness * np.eye(w.shape[1])


def minimisers(signed: Reals, steepness: float, noise: Reals) -> Reals:
    """The optimum for each row of the noise: Newton's method, its steps cut as third derivatives ask (Bach 2010)."""
    w, going = -noise / steepness, np.arange(len(noise))
    reach = float(np.linalg.norm(signed, axis=1).max())
    for _ in range(_NEWTON):
        gradient, bend = _derivatives(signed, steepness, w[going])
        step = np.linalg.solve(bend, (gradient + noise[going])[:, :, None])[:, :, 0]
        length = np.maximum(reach * np.linalg.norm(step, axis=1), _EXACT)
        w[going] -= step * (np.log1p(length) / length)[:, None]
        going = going[length > _EXACT * (1.0 + np.linalg.norm(w[going], axis=1) * reach)]
        if not len(going):
            break
    return w


def _terms(records: int, epsilon: float, weight: float) -> tuple[float, float]:
    """Steepness of the quadratic term, and rate of the noise."""
    left, added = corrected(epsilon, records, weight)
    return records * (weight + added), left / 2.0


def _no_correction(records: int, epsilon: float, weight: float) -> tuple[float, float]:
    return records * weight, epsilon / 2.0


def _runs(
    data: Data,
    runs: int,
    rng: Rng,
    epsilon: float,
    weight: float,
    *,
    terms: Terms = _terms,
    scaled: bool = True,
    shape: float | None = None,
) -> Reals:
    signed, (steepness, rate) = _signed(data, scaled), terms(len(data), epsilon, weight)
    blocks = [spherical(rng, min(_BLOCK, runs - start), signed.shape[1], shape) for start in range(0, runs, _BLOCK)]
    return np.concatenate([minimisers(signed, steepness, noise / rate) for noise in blocks])


def _objective(data: Data, rng: Rng, epsilon: float, weight: float, **parts: Any) -> tuple[float, ...]:
    return tuple(_runs(data, 1, rng, epsilon, weight, **parts)[0].tolist())


def _loss(
    first: Data, second: Data, epsilon: float, weight: float, *, terms: Terms = _terms, scaled: bool = True
) -> float:
    """The largest log ratio of the densities: on a grid of optima, made finer around the best one."""
    both, (steepness, rate) = [_signed(data, scaled) for data in (first, second)], terms(len(first), epsilon, weight)
    width = both[0].shape[1]
    if width not in _NODES:
        raise InvalidSpec("the exact loss is known for at most three features")

    def ratio(places: Reals) -> Reals:
        logs = []
        for signed in both:
            gradient, bend = _derivatives(signed, steepness, np.sinh(places))
            logs.append(np.linalg.slogdet(bend)[1] - rate * np.linalg.norm(gradient, axis=1))
        return np.asarray(np.abs(logs[0] - logs[1]))

    kinks = np.arcsinh([minimisers(signed, steepness, np.zeros((1, width)))[0] for signed in both])
    axis = np.linspace(-1.0, 1.0, _NODES[width])
    tried, reach = np.vstack([kinks, _FAR * np.array(list(itertools.product(axis, repeat=width)))]), _FAR
    local = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 13), repeat=width)))
    values = ratio(tried)
    reach *= 2.0 / (_NODES[width] - 1)
    for _ in range(_ZOOM):
        best = tried[values.argmax()]
        tried = np.vstack([best, best + reach * local])
        values, reach = ratio(tried), reach / 3.0
    return float(values.max())


def _radius_loss(first: Data, second: Data, epsilon: float, weight: float) -> float:
    """Infinite where there are two features or more: at the optimum without noise the density has no bound."""
    one, other = (minimisers(_signed(data), 1.0, np.zeros((1, len(data[0]) - 1))) for data in (first, second))
    return 0.0 if np.allclose(one, other, atol=1e-9) else math.inf


_CODE = Code(_objective, _runs, _loss)
_OTHERS: Data = [[0.1, 0.1, 1], [0.1, -0.1, -1]]

objective_perturbation_vectors = replace(
    objective_perturbation,
    name="objective_perturbation_vectors",
    title="Objective perturbation of logistic regression with several features",
    formula=(
        "argmin (1/n) sum ln(1 + e^(-y <x, w>)) + ((lambda + Delta) / 2) ||w||^2 + <b, w> / n, ||x|| scaled down to 1, "
        "b of density proportional to e^(-epsilon' ||b|| / 2): its length is a draw of Gamma(d, 2 / epsilon'), its "
        "direction uniform; epsilon' and Delta as with one feature"
    ),
    code=_CODE,
    parameters=(EPSILON, replace(WEIGHT, default=0.01)),
    default_pair=([*_OTHERS, [1.0, 0.0, 1]], [*_OTHERS, [0.0, 1.0, 1]]),
    twins={},
).with_twins(
    Twin(
        name="no_correction",
        title="Objective perturbation in several directions with all of epsilon for the noise",
        reason="a record that bends the objective also changes |det db / dw|, by a factor of up to 1 + c / (n lambda)",
        formula="argmin (1/n) sum loss + (lambda / 2) ||w||^2 + <b, w> / n, ||b|| from Gamma(d, 2 / epsilon)",
        code=_CODE.given(terms=_no_correction),
    ),
    Twin(
        name="radius_of_one_feature",
        title="Objective perturbation with the length of the noise drawn as for one feature",
        reason="the length of that density is Gamma(d); an exponential one heaps optima up at the one without noise",
        formula="as objective perturbation with several features, ||b|| from the exponential distribution",
        code=Code(partial(_objective, shape=1.0), partial(_runs, shape=1.0), _radius_loss),
    ),
    Twin(
        name="features_not_scaled",
        title="Objective perturbation of features of any length",
        reason="a record with ||x|| = 5 pulls five times as hard, and bends 25 times as much, as the noise is made for",
        formula="as objective perturbation with several features, with the features as they come",
        code=_CODE.given(scaled=False),
        default_pair=([*_OTHERS, [5.0, 0.0, 1]], [*_OTHERS, [0.0, 5.0, 1]]),
    ),
)
