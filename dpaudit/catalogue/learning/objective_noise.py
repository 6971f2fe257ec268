"""Objective perturbation: add a random linear term to the objective, then minimise it exactly.

With one feature the noise b is a function of the optimum w, so the density of w is that of b(w) times |db / dw|: the
curvature of the objective is part of the law, and a record that bends it changes the law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.learning.optimum import LOGISTIC
from dpaudit.catalogue.learning.output_noise import LABELLED, ROOM, Data
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON, pure_if_replaced

CURVATURE = 0.25  # the largest second derivative of the logistic loss
EDGE = 10.0  # where the twin without a regulariser stops looking for a minimum
_FAR = 12.0  # sinh of it: as far out as optima are tabulated
_NODES, _FINE = 4_001, 200_001
_NEWTON = 3

_OTHERS: Data = [[0.1, -1], [0.12, -1], [0.08, -1], [0.1, -1], [0.11, -1], [0.09, -1], [0.1, -1]]


@dataclass(frozen=True, slots=True)
class Terms:
    """What is added to n times the loss: (steepness / 2) w^2 + b w, b of density proportional to e^(-rate |b|).

    `edge` is how far out the minimum is looked for.
    """

    steepness: float
    rate: float
    edge: float = math.inf


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


# --- one run: b, then the w at which the slope of the objective is zero ------------------------------------------


def _minimiser(data: Data, steepness: float, noise: float, edge: float = math.inf) -> float:
    """argmin over |w| <= edge of sum ln(1 + e^(-y x w)) + (steepness / 2) w^2 + noise w: Newton in a bracket."""
    signed = [max(-1.0, min(1.0, x)) * label for x, label in data]
    reach = min(edge, (abs(noise) + len(data)) / steepness if steepness else edge)
    low, high, w = -reach, reach, 0.0
    for _ in range(200):
        tails = [1.0 / (1.0 + math.exp(min(700.0, z * w))) for z in signed]
        slope = steepness * w + noise - sum(z * tail for z, tail in zip(signed, tails, strict=True))
        bend = steepness + sum(z * z * tail * (1.0 - tail) for z, tail in zip(signed, tails, strict=True))
        low, high = (low, w) if slope > 0.0 else (w, high)
        step = w - slope / bend if bend else low
        step = step if low < step < high else (low + high) / 2.0
        if abs(step - w) <= 1e-13 * max(1.0, abs(w)):
            break
        w = step
    return w


# --- the same for many runs, and the law ------------------------------------------------------------------------


def _terms(records: int, epsilon: float, weight: float) -> Terms:
    left, added = corrected(epsilon, records, weight)
    return Terms(records * (weight + added), left / 2.0)


def _terms_no_correction(records: int, epsilon: float, weight: float) -> Terms:
    return Terms(records * weight, epsilon / 2.0)


def _terms_no_regulariser(records: int, epsilon: float, weight: float) -> Terms:
    return Terms(0.0, epsilon / 2.0, EDGE)


def _terms_divided_twice(records: int, epsilon: float, weight: float) -> Terms:
    left, added = corrected(epsilon, records, weight)
    return Terms(records * (weight + added), records * left / 2.0)


def _objective(data: Data, rng: Rng, epsilon: float, weight: float, *, terms: Callable[..., Terms] = _terms) -> float:
    added = terms(len(data), epsilon, weight)
    return _minimiser(data, added.steepness, rng.laplace(scale=1.0 / added.rate), added.edge)


def _slopes(data: Data, steepness: float, w: Reals) -> tuple[Reals, Reals]:
    """Slope and curvature, at w, of n times the objective without its noise: the noise that puts the minimum there."""
    signed, counts = np.unique([max(-1.0, min(1.0, x)) * label for x, label in data], return_counts=True)
    slope, bend = steepness * w, np.full_like(w, steepness)
    for z, count in zip(signed, counts, strict=True):
        margin = z * w
        slope += count * z * LOGISTIC.slope(margin)
        bend += count * z * z * LOGISTIC.curvature(margin)
    return slope, bend


def _grid(terms: Terms, nodes: int) -> Reals:
    """Points from far left to far right, dense around 0, where the objective bends."""
    return np.sinh(np.linspace(-1.0, 1.0, nodes) * min(_FAR, math.asinh(terms.edge)))


def _runs(
    data: Data, runs: int, rng: Rng, epsilon: float, weight: float, *, terms: Callable[..., Terms] = _terms
) -> Reals:
    """The optimum is looked up in a table of the slope, and brought to the last digits by Newton's method."""
    added = terms(len(data), epsilon, weight)
    noise = laplace(rng, 1.0 / added.rate, runs)
    table = _grid(added, _NODES)
    w = np.interp(-noise, _slopes(data, added.steepness, table)[0], table)
    for _ in range(_NEWTON):
        slope, bend = _slopes(data, added.steepness, w)
        slope += noise
        slope /= bend
        w -= slope
        np.clip(w, -added.edge, added.edge, out=w)
    return w


def _log_density(data: Data, added: Terms, w: Reals) -> Reals:
    slope, bend = _slopes(data, added.steepness, w)
    return added.rate * -np.abs(slope) + np.log(bend) + math.log(added.rate / 2.0)


def _log_tails(data: Data, added: Terms) -> Reals:
    """The log probabilities that the minimum lies at the left and at the right edge."""
    slopes = _slopes(data, added.steepness, np.array([-added.edge, added.edge]))[0]
    need = added.rate * np.array([slopes[0], -slopes[1]])  # noise above -slope at the left, below it at the right
    return np.where(need > 0.0, np.log1p(-0.5 * np.exp(-np.abs(need))), -np.abs(need) - math.log(2.0))


def _loss(first: Data, second: Data, epsilon: float, weight: float, *, terms: Callable[..., Terms] = _terms) -> float:
    """The largest log ratio of the densities: on a fine grid with the kinks, where the noise of a dataset is 0."""
    added = terms(len(first), epsilon, weight)
    kinks = [_minimiser(data, added.steepness, 0.0, added.edge) for data in (first, second)]
    w = np.append(_grid(added, _FINE), kinks)
    ratio = np.abs(_log_density(first, added, w) - _log_density(second, added, w)).max()
    if math.isinf(added.edge):
        return float(ratio)
    return float(max(ratio, np.abs(_log_tails(first, added) - _log_tails(second, added)).max()))


_CODE = Code(_objective, _runs, _loss)

objective_perturbation = Entry(
    module=ROOM,
    name="objective_perturbation",
    title="Objective perturbation of logistic regression",
    source=Source(
        "CS 208, notes 002, 'Objective Perturbation'",
        "Chaudhuri, Monteleoni & Sarwate 2011, Differentially private empirical risk minimization, algorithm 2",
    ),
    formula=(
        "argmin (1/n) sum ln(1 + e^(-y x w)) + ((lambda + Delta) / 2) w^2 + b w / n, x clipped to [-1, 1], "
        "b from Lap(2 / epsilon'); epsilon' = epsilon - 2 ln(1 + c / (n lambda)), Delta = 0 where that is positive, "
        "else epsilon' = epsilon / 2, Delta = c / (n (e^(epsilon / 4) - 1)) - lambda; c = 1/4"
    ),
    neighbours=LABELLED,
    code=_CODE,
    parameters=(
        EPSILON,
        Parameter("weight", 0.005, "loss per squared unit of w", "lambda, of the regulariser", validate.positive),
    ),
    promise=pure_if_replaced,
    default_pair=([*_OTHERS, [1.0, 1]], [*_OTHERS, [0.1, -1]]),
).with_twins(
    Twin(
        name="no_correction",
        title="Objective perturbation with all of epsilon for the noise",
        reason="a record that bends the objective also changes |db / dw|, by up to 1 + c / (n lambda), for free",
        formula="argmin (1/n) sum loss + (lambda / 2) w^2 + b w / n, b from Lap(2 / epsilon)",
        code=_CODE.given(terms=_terms_no_correction),
    ),
    Twin(
        name="no_regulariser",
        title="Objective perturbation with the noise as the only regulariser",
        reason="without a quadratic term the curvature comes from the records alone, and one record can be most of it",
        formula="argmin over |w| <= 10 of (1/n) sum loss + b w / n, b from Lap(2 / epsilon)",
        code=_CODE.given(terms=_terms_no_regulariser),
    ),
    Twin(
        name="divided_twice",
        title="Objective perturbation with the noise divided by n twice",
        reason="b w / n already stands beside an average; noise for a sensitivity of 2 / n is n times too little there",
        formula="as objective perturbation with b from Lap(2 / (n epsilon'))",
        code=_CODE.given(terms=_terms_divided_twice),
    ),
)

ENTRIES = (objective_perturbation,)
