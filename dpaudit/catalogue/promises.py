"""What many entries share: where they come from, their promise and its parameter, losses, and checks of parameters."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Loss, Parameter
from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.importing import import_reference

Named = TypeVar("Named")
HAGHTALAB, BASSI = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001"
CS208, SARKAR, CHEEMA = "CS 208, notes 002", "Sarkar, notes 003", "Cheema & Huszár, notes 004"
DMNS = "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity in private data analysis"
MCSHERRY = "McSherry & Talwar 2007, Mechanism design via differential privacy"
SHADOW = "Wang, Ding, Wang, Kifer & Zhang 2019, Proving differential privacy with shadow execution"
GDP = "Dong, Roth & Su 2022, Gaussian differential privacy"
BOOK = "Dwork & Roth 2014, The algorithmic foundations of differential privacy"
EPSILON = Parameter("epsilon", 1.0, "nats", "the claim")
DELTA = Parameter("delta", 0.01, "probability", "the additive part of the claim", validate.open_probability)


def pure(epsilon: float, *, relation: Relation | None = None, **_: Any) -> PureDP:
    """epsilon-DP; without a relation the entry says in words what neighbours are."""
    return PureDP(epsilon, relation)


pure_if_added_or_removed = partial(pure, relation=Relation.ADD_OR_REMOVE_ONE)
pure_if_replaced = partial(pure, relation=Relation.REPLACE_ONE)
pure_if_local = partial(pure, relation=Relation.LOCAL)


def approximate(epsilon: float, delta: float, **_: Any) -> ApproximateDP:
    """(epsilon, delta)-DP, for neighbours that the entry states in words."""
    return ApproximateDP(epsilon, delta)


def doubled(data: Any, epsilon: float, **_: Any) -> dict[str, float]:
    """Twice the epsilon, as where the noise is half of what it should be."""
    return {"epsilon": 2.0 * epsilon}


def unless_same(of: Callable[..., Any]) -> Loss:
    """The loss of outputs that give away something of the data for certain: 0 where it is the same, else infinite.

    >>> unless_same(max)([1, 2], [1, 3])
    inf
    """
    return lambda first, second, **given: 0.0 if of(first, **given) == of(second, **given) else math.inf


unbounded = unless_same(lambda data, **_: data)  # any change of the data makes outputs that only one dataset has


def per_unit(first: float, second: float, epsilon: float, sensitivity: float = 1.0, **_: Any) -> float:
    """The loss of one number: epsilon for each `sensitivity` between its two values."""
    return epsilon * abs(first - second) / sensitivity


def also(check: Callable[[str, object], float], holds: Callable[[float], bool], must: str, why: str = "") -> Any:
    """A check of a parameter with one condition more, which its value `must` meet."""

    def checked(name: str, value: object) -> float:
        number = check(name, value)
        if not holds(number):
            raise InvalidSpec(f"{name} must {must}, got {value!r}{why}")
        return number

    return checked


def one_of(what: str, known: Mapping[str, Named], kind: type[Named], name: object) -> Named:
    """What has this name: one of those `known`, or `module:name`. Raises `InvalidSpec`."""
    value = None
    if isinstance(name, str):
        value = known.get(name) or (import_reference(name) if ":" in name else None)
    if not isinstance(value, kind):
        raise InvalidSpec(f"{what} must be one of {', '.join(known)}, or `module:name`, got {name!r}")
    return value


CMS = "Chaudhuri, Monteleoni & Sarwate 2011, Differentially private empirical risk minimization, algorithm 1"
WEIGHT = Parameter("weight", 0.4, "loss per squared unit of w", "lambda, of the regulariser")

Records = Sequence[Sequence[float]]

_STEPS = 200
_FLAT = 1e-15  # of the gradient: what rounding leaves of it
_ROUNDING = 1e-14  # of the objective, which is below 1 or so: close to the optimum a full step may not lower it
HUBER = 0.5  # half the width of the rounded corner of the hinge


@dataclass(frozen=True, slots=True)
class MarginLoss:
    """A convex loss of the margin: its value, its slope, which lies in [-1, 0], and its curvature."""

    value: Callable[[Reals], Reals]
    slope: Callable[[Reals], Reals]
    curvature: Callable[[Reals], Reals]


LOGISTIC = MarginLoss(
    lambda margin: np.logaddexp(0.0, -margin),
    lambda margin: -0.5 * (1.0 - np.tanh(margin / 2.0)),
    lambda margin: 0.25 * (1.0 - np.tanh(margin / 2.0) ** 2),
)
HUBER_HINGE = MarginLoss(
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


def classifier(data: Records, weight: float, loss: MarginLoss) -> Reals:
    """argmin over w of (1 / n) sum loss(margin) + (weight / 2) ||w||^2, by Newton's method with halved steps.

    >>> classifier([[1.0, 1.0], [0.5, 1.0]], 2.0, HUBER_HINGE)
    array([0.375])
    """
    return _classifier(tuple(map(tuple, data)), weight, loss).copy()


@lru_cache(maxsize=256)
def _classifier(data: tuple[tuple[float, ...], ...], weight: float, loss: MarginLoss) -> Reals:
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
