"""Models as releases: a classifier of the same people before the last of them joined, and after."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Source, Twin
from dpaudit.catalogue.noise import centred_each, exact
from dpaudit.catalogue.optimum import CMS, LOGISTIC, WEIGHT, classifier, in_unit_ball
from dpaudit.catalogue.promises import EPSILON
from dpaudit.catalogue.releases.tables import in_room

Records = Sequence[Sequence[float]]  # a 1, the features, and a label of -1 or +1


def population(size: int, features: int, seed: int) -> list[list[float]]:
    """Records with standard normal features, to two digits; the label leans towards the first of them.

    >>> population(1, 2, 0)
    [[1.0, 0.13, -0.13, 1.0]]
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((size, features)).round(2)
    labels = np.where(x[:, 0] + 0.5 * rng.standard_normal(size) > 0.0, 1.0, -1.0)
    records: list[list[float]] = np.column_stack([np.ones(size), x, labels]).tolist()
    return records


def fit(data: Records, weight: float) -> Reals:
    """The coefficients of logistic regression, each record scaled into the unit ball."""
    return classifier([in_unit_ball(record) for record in data], weight, LOGISTIC)


def _both(data: Records, epsilon: float, weight: float) -> Reals:
    return np.concatenate([fit(data[:-1], weight), fit(data, weight)])


def _scale(data: Records, epsilon: float, weight: float) -> float:
    """A record moves each model by at most 2 / (n weight) in length, and sqrt(d) times that in absolute values."""
    return 2.0 * math.sqrt(len(data[0]) - 1) * 2.0 / ((len(data) - 1) * weight * epsilon)


def _read(reading: Callable[[Reals], Any]) -> Code:
    return exact(lambda data, **given: tuple(np.ravel(reading(_both(data, **given))).tolist()))


_PEOPLE = population(13, 3, 11)
_ASKED = np.array(population(21, 3, 13))[:, :-1]

noisy_models = in_room(
    name="noisy_models",
    title="A classifier before and after somebody joins, each with noise",
    source=Source("Sarkar, notes 003, 'What about machine learning models?'", CMS),
    formula=(
        "logistic regression with (weight / 2) ||w||^2 on all but the last of n records, then on all, ||x|| <= 1; plus "
        "a draw of Lap(4 sqrt(d) / ((n - 1) weight epsilon)) in each of the 2 d coefficients"
    ),
    neighbours="lists of n records (a 1, features, a label of -1 or +1) with one of them replaced",
    code=centred_each(_both, _scale),
    parameters=(EPSILON, WEIGHT),
    default_pair=(_PEOPLE, [[*_PEOPLE[0][:-1], -_PEOPLE[0][-1]], *_PEOPLE[1:]]),
).with_twins(
    """exact: A classifier before and after somebody joins, exactly
        the difference points to the features of who joined, and who knows the others finds them to the digit
        the d coefficients without the last record, then with it
    labels_only: Classifiers that answer only yes or no, to 21 questions
        a record that turns the boundary across one of the questions is seen
        for 21 public points: their labels by the model before, then by the one after""",
    exact=Twin(code=_read(lambda both: both)),
    labels_only=Twin(code=_read(lambda both: both.reshape(2, -1) @ _ASKED.T > 0.0)),
)
