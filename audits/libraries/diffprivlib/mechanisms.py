"""Mechanisms, tools and models of diffprivlib 0.6.6, as its users call them. The library owns its randomness.

Records of GaussianNB are (feature, label). NaN, which JSON has not, is the text "nan" in a list of numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from diffprivlib import tools
from diffprivlib.mechanisms import Geometric, Laplace, Snapping
from diffprivlib.models import GaussianNB, KMeans, LinearRegression

import dpaudit

Bounds = tuple[float, float]
Numbers = list[float]


def _make_geometric(epsilon: float, sensitivity: int) -> Callable[[int], int]:
    return Geometric(epsilon=epsilon, sensitivity=sensitivity).randomise


geometric = dpaudit.built_by(_make_geometric)


def _make_laplace(epsilon: float, sensitivity: float) -> Callable[[float], float]:
    return Laplace(epsilon=epsilon, sensitivity=sensitivity).randomise


laplace = dpaudit.built_by(_make_laplace)


def _make_snapping(epsilon: float, sensitivity: float, lower: float, upper: float) -> Callable[[float], float]:
    return Snapping(epsilon=epsilon, sensitivity=sensitivity, lower=lower, upper=upper).randomise


snapping = dpaudit.built_by(_make_snapping)


def mean(values: Numbers, *, epsilon: float, bounds: Bounds) -> float:
    """`tools.mean`."""
    return float(tools.mean(_array(values), epsilon=epsilon, bounds=tuple(bounds)))


def nanmean(values: Numbers, *, epsilon: float, bounds: Bounds) -> float:
    """`tools.nanmean`."""
    return float(tools.nanmean(_array(values), epsilon=epsilon, bounds=tuple(bounds)))


def nansum(values: Numbers, *, epsilon: float, bounds: Bounds) -> float:
    """`tools.nansum`."""
    return float(tools.nansum(_array(values), epsilon=epsilon, bounds=tuple(bounds)))


def histogram(values: Numbers, *, epsilon: float, bins: int, ends: Bounds) -> list[int]:
    """The counts of `tools.histogram`."""
    return [int(count) for count in tools.histogram(_array(values), epsilon=epsilon, bins=bins, range=tuple(ends))[0]]


def linear_regression(records: list[tuple[float, float]], *, epsilon: float, largest: float) -> float:
    """The slope of y on x, through the origin, for records (x, y) with both values in [0, largest]."""
    bounds = (0.0, largest)
    model = LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=bounds, fit_intercept=False)
    model.fit([[x] for x, _ in records], [y for _, y in records])
    return float(model.coef_[0])


def naive_bayes(records: list[tuple[float, int]], *, epsilon: float, bounds: Bounds) -> Numbers:
    """What a fitted `GaussianNB` says of class 0, its count and its mean, and the mean of class 1."""
    model = GaussianNB(epsilon=epsilon, bounds=tuple(bounds))
    model.fit([[x] for x, _ in records], [label for _, label in records])
    return [float(model.class_count_[0]), *(float(mean) for mean in model.theta_.ravel())]


def centres(values: Numbers, *, epsilon: float, bounds: Bounds) -> list[float]:
    """`KMeans` with two clusters: both centres, the smaller first."""
    model = KMeans(n_clusters=2, epsilon=epsilon, bounds=tuple(bounds)).fit(_array(values).reshape(-1, 1))
    return sorted(float(centre) for centre in model.cluster_centers_.ravel())


def _array(values: Numbers) -> np.ndarray:
    return np.array([float(value) for value in values])


def a_member_of_its_own() -> tuple[Numbers, Numbers]:
    """A hundred and ninety-nine records at 0 and one at 10; or all two hundred at 0."""
    return [0.0] * 199 + [10.0], [0.0] * 200


# --- events, counted plainly ---------------------------------------------------------------------------------------


def means_at_the_ends(output: Numbers) -> bool:
    """Class 0 counts 6, its mean is at the upper bound, 11, and the mean of class 1 is at the lower, 10."""
    return output == [6.0, 11.0, 10.0]


def nine_and_none(output: list[int]) -> bool:
    """The first bin counts nine or more, the last none."""
    return output[0] >= 9 and output[2] == 0


def centre_near_the_upper_end(output: Numbers) -> bool:
    """The larger centre is above 9."""
    return output[1] > 9.0


def steep(output: float) -> bool:
    """The slope is above 20 or below -20."""
    return abs(output) > 20.0


def off_the_grid(output: float) -> bool:
    """The output is no multiple of 2^-53: a Laplace draw around 0 has finer bits, one around 1 has not."""
    return output * 2.0**53 % 1.0 != 0.0


def above_half(output: float) -> bool:
    """The output is above 0.5."""
    return output > 0.5


def at_the_upper_end(output: float) -> bool:
    """The sum is at its upper end, 110."""
    return output == 110.0
