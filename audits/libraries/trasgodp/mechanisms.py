"""Mechanisms of trasgoDP on one column, called as in its README. The library draws from numpy's global state."""

from __future__ import annotations

import numpy as np
import pandas as pd
from trasgodp.categorical import dp_exponential, dp_randomized_response_binary, dp_randomized_response_kary
from trasgodp.geoindis import metric_privacy
from trasgodp.numerical import dp_clip_laplace

COLUMNS = ["latitude", "longitude"]


def exponential(column: list[str], *, epsilon: float) -> list[str]:
    return list(dp_exponential(pd.DataFrame({"workclass": column}), "workclass", epsilon)["workclass"])


def k_ary(column: list[str], *, epsilon: float) -> list[str]:
    return list(dp_randomized_response_kary(pd.DataFrame({"workclass": column}), "workclass", epsilon)["workclass"])


def binary(column: list[str], *, epsilon: float) -> list[str]:
    return list(dp_randomized_response_binary(pd.DataFrame({"sex": column}), "sex", epsilon)["sex"])


def age(column: list[float], *, epsilon: float) -> list[float]:
    """Ages from 16 to 100, the bounds of the README."""
    return dp_clip_laplace(pd.DataFrame({"age": column}), "age", epsilon, 16, 100)["age"].tolist()


def places(points: list[list[float]], *, epsilon: float) -> list[list[float]]:
    """The places that are released, with all defaults."""
    return metric_privacy(_table(points), "latitude", "longitude", epsilon)[COLUMNS].to_numpy().tolist()


def places_of_a_seed(points: list[list[float]], rng: np.random.Generator, *, epsilon: float) -> list[list[float]]:
    """The same with a fresh seed in each call."""
    seed = int(rng.integers(2**32))
    return metric_privacy(_table(points), "latitude", "longitude", epsilon, seed=seed)[COLUMNS].to_numpy().tolist()


def _table(points: list[list[float]]) -> pd.DataFrame:
    return pd.DataFrame(points, columns=COLUMNS)


def someone_never_worked(output: list[str]) -> bool:
    """Some value of the column is Never-worked."""
    return "Never-worked" in output


def was_raised(output: object) -> bool:
    """The run ended in an exception."""
    return isinstance(output, Exception)


def is_missing(output: list[float]) -> bool:
    """The last value is NaN."""
    return output[-1] != output[-1]


def east(output: list[list[float]]) -> bool:
    """The longitude is above 0.0008."""
    return output[0][1] > 0.0008
