"""Three mechanisms of diffprivlib, as its users call them. The library owns its randomness."""

from __future__ import annotations

from collections.abc import Callable

from diffprivlib.mechanisms import Geometric, Laplace
from diffprivlib.models import LinearRegression

import dpaudit


def _make_geometric(epsilon: float, sensitivity: int) -> Callable[[int], int]:
    return Geometric(epsilon=epsilon, sensitivity=sensitivity).randomise


geometric = dpaudit.built_by(_make_geometric)


def _make_laplace(epsilon: float, sensitivity: float) -> Callable[[float], float]:
    return Laplace(epsilon=epsilon, sensitivity=sensitivity).randomise


laplace = dpaudit.built_by(_make_laplace)


def linear_regression(records: list[tuple[float, float]], *, epsilon: float, largest: float) -> float:
    """The slope of y on x, through the origin, for records (x, y) with both values in [0, largest]."""
    bounds = (0.0, largest)
    model = LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=bounds, fit_intercept=False)
    model.fit([[x] for x, _ in records], [y for _, y in records])
    return float(model.coef_[0])
