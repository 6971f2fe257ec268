"""The optimum that the private fits perturb: a regularised linear classifier, found to the last digits.

A record is its features and, last, its label of -1 or +1; the margin of a record at w is label * <w, features>.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Parameter

CMS = "Chaudhuri, Monteleoni & Sarwate 2011, Differentially private empirical risk minimization, algorithm 1"
WEIGHT = Parameter("weight", 0.4, "loss per squared unit of w", "lambda, of the regulariser")

Records = Sequence[Sequence[float]]

_STEPS = 200
_FLAT = 1e-15  # of the gradient: what rounding leaves of it
_ROUNDING = 1e-14  # of the objective, which is below 1 or so: close to the optimum a full step may not lower it
HUBER = 0.5  # half the width of the rounded corner of the hinge


@dataclass(frozen=True, slots=True)
class Loss:
    """A convex loss of the margin: its value, its slope, which lies in [-1, 0], and its curvature."""

    value: Callable[[Reals], Reals]
    slope: Callable[[Reals], Reals]
    curvature: Callable[[Reals], Reals]


LOGISTIC = Loss(
    lambda margin: np.logaddexp(0.0, -margin),
    lambda margin: -0.5 * (1.0 - np.tanh(margin / 2.0)),
    lambda margin: 0.25 * (1.0 - np.tanh(margin / 2.0) ** 2),
)
HUBER_HINGE = Loss(
    lambda margin: np.where(
        margin < 1.0 - HUBER, 1.0 - margin, np.maximum(1.0 + HUBER - margin, 0.0) ** 2 / (4.0 * HUBER)
    ),
    lambda margin: -np.clip((1.0 + HUBER - margin) / (2.0 * HUBER), 0.0, 1.0),
    lambda margin: np.where(np.abs(1.0 - margin) < HUBER, 0.5 / HUBER, 0.0),
)


def in_unit_ball(record: Sequence[float]) -> list[float]:
    """The record with its features scaled down to length 1 where they are longer."""
    *features, label = record
    length = float(np.linalg.norm(features))
    return [*(feature / max(1.0, length) for feature in features), label]


def signed(data: Records, scaled: bool = True) -> Reals:
    """label * features of each record, scaled into the unit ball or as they are: (record, feature)."""
    table = np.asarray([in_unit_ball(record) if scaled else record for record in data], float)
    return np.asarray(table[:, :-1] * table[:, -1:])


def classifier(data: Records, weight: float, loss: Loss) -> Reals:
    """argmin over w of (1 / n) sum loss(margin) + (weight / 2) ||w||^2, by Newton's method with halved steps.

    >>> classifier([[1.0, 1.0], [0.5, 1.0]], 2.0, HUBER_HINGE)
    array([0.375])
    """
    return _classifier(tuple(map(tuple, data)), weight, loss).copy()


@lru_cache(maxsize=256)
def _classifier(data: tuple[tuple[float, ...], ...], weight: float, loss: Loss) -> Reals:
    rows = signed(data, scaled=False)

    def objective(w: Reals) -> float:
        return float(loss.value(rows @ w).mean() + weight / 2.0 * (w @ w))

    at = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        margins = rows @ at
        gradient = weight * at + (loss.slope(margins)[:, None] * rows).mean(axis=0)
        if np.abs(gradient).max() <= _FLAT:
            break
        bend = weight * np.eye(len(at)) + (rows.T * loss.curvature(margins)) @ rows / len(rows)
        step, length = np.linalg.solve(bend, gradient), 1.0
        while length > 1e-9 and objective(at - length * step) > objective(at) + _ROUNDING:
            length /= 2.0
        at = at - length * step
    return at
