"""The average of many attributes at once, as of gene variants over the patients of a study."""

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Source, Twin
from dpaudit.catalogue.noise import exact, normal_each
from dpaudit.catalogue.promises import DELTA, EPSILON
from dpaudit.catalogue.releases.tables import in_room
from dpaudit.claims import ApproximateDP, Relation
from dpaudit.losses.normal import gaussian_mu

Rows = Sequence[Sequence[float]]

HOMER = "Homer et al. 2008, Resolving individuals contributing trace amounts of DNA to highly complex mixtures"
BALLE = "Balle & Wang 2018, Improving the Gaussian mechanism"


def noise_of(people: int, attributes: int, epsilon: float, delta: float) -> float:
    """The standard deviation: one person of `people` moves the average by 2 sqrt(attributes) / people at most.

    >>> noise_of(10, 4, 1.0, 0.01) / noise_of(10, 1, 1.0, 0.01)
    2.0
    """
    return 2.0 * math.sqrt(attributes) / (people * gaussian_mu(epsilon, delta))


def _average(data: Rows, **_: float) -> Reals:
    return np.asarray(np.clip(np.asarray(data, float), -1.0, 1.0).mean(axis=0))


_OTHERS = [[1, -1, 1, 1, -1, 1], [-1, -1, 1, -1, 1, 1], [1, 1, -1, -1, -1, 1], [-1, 1, 1, 1, 1, -1]]

noisy_mean_vector = in_room(
    name="noisy_mean_vector",
    title="The average of many attributes, with normal noise",
    source=Source("Sarkar, notes 003, 'Aggregate functions' (high-d average)", f"{HOMER}; the noise: {BALLE}"),
    formula=(
        "the average of the n rows, every attribute cut to [-1, 1], plus N(0, sigma^2) in each of the d attributes; "
        "sigma is the least that hides a shift of 2 sqrt(d) / n at (epsilon, delta)"
    ),
    neighbours="lists of n rows of d attributes with one row replaced",
    code=normal_each(_average, lambda data, epsilon, delta: noise_of(len(data), len(data[0]), epsilon, delta)),
    parameters=(EPSILON, DELTA),
    promise=lambda epsilon, delta: ApproximateDP(epsilon, delta, relation=Relation.REPLACE_ONE),
    default_pair=([[1] * 6, *_OTHERS], [[-1] * 6, *_OTHERS]),
).with_twins(
    """exact: The exact average of many attributes
        every attribute leans a little towards a member's, and many attributes add up to certainty
        the average of the n rows, every attribute cut to [-1, 1]
    noise_of_one_attribute: The average of many attributes, each with the noise that one alone would need
        a person moves all d attributes at once: sqrt(d) times as far as the noise is for
        the average of the n rows, plus N(0, sigma^2) in each attribute; sigma hides a shift of 2 / n only""",
    exact=Twin(code=exact(lambda data, **_: tuple(map(float, _average(data))))),
    noise_of_one_attribute=Twin(
        code=normal_each(_average, lambda data, epsilon, delta: noise_of(len(data), 1, epsilon, delta))
    ),
)
