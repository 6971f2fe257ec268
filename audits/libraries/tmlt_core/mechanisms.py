"""Base mechanisms of Tumult Core, called as its tour of measurements does, without Spark. It owns its randomness."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from tmlt.core.domains.numpy_domains import NumpyFloatDomain, NumpyIntegerDomain
from tmlt.core.domains.pandas_domains import PandasSeriesDomain
from tmlt.core.measurements.noise_mechanisms import (
    AddDiscreteGaussianNoise,
    AddGaussianNoise,
    AddGeometricNoise,
    AddLaplaceNoise,
)
from tmlt.core.measurements.pandas_measurements.series import AddNoiseToSeries, NoisyQuantile
from tmlt.core.measures import PureDP

import dpaudit

Number = Callable[[float], float]


def _make_laplace() -> Number:
    return AddLaplaceNoise(NumpyFloatDomain(), scale=1)


def _make_gaussian() -> Number:
    return AddGaussianNoise(NumpyFloatDomain(), sigma_squared=1)


def _make_geometric() -> Callable[[int], int]:
    return AddGeometricNoise(alpha=1)


def _make_discrete_gaussian() -> Callable[[int], int]:
    return AddDiscreteGaussianNoise(sigma_squared=1)


def _make_column(gaussian: bool) -> Callable[[list[float]], tuple[float, ...]]:
    noise = AddGaussianNoise(NumpyFloatDomain(), 1) if gaussian else AddLaplaceNoise(NumpyFloatDomain(), 1)
    each = AddNoiseToSeries(noise)
    return lambda values: tuple(each(pd.Series(values)))


def _make_median(epsilon: int, lower: int, upper: int) -> Callable[[list[int]], float]:
    median = NoisyQuantile(PandasSeriesDomain(NumpyIntegerDomain()), PureDP(), 0.5, lower, upper, epsilon)
    return lambda values: median(pd.Series(values, dtype="int64"))


laplace, gaussian = dpaudit.built_by(_make_laplace), dpaudit.built_by(_make_gaussian)
geometric, discrete_gaussian = dpaudit.built_by(_make_geometric), dpaudit.built_by(_make_discrete_gaussian)
column, median = dpaudit.built_by(_make_column), dpaudit.built_by(_make_median)


def beside_the_grid(output: float) -> bool:
    """The output is not a multiple of 2^-53."""
    return float(output) * 2.0**53 % 1.0 != 0.0


def column_beside_the_grid(output: tuple[float, ...]) -> bool:
    """The second value of the column is not a multiple of 2^-53."""
    return float(output[1]) * 2.0**53 % 1.0 != 0.0
