"""Descriptions of DataSynthesizer, as its notebooks make them, of tables that are lists of rows.

The description is what is saved and what synthetic rows are drawn from. It draws from numpy's global state.
"""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.lib.PrivBayes import construct_noisy_conditional_distributions

COLUMNS = ["sex", "smokes"]


def _described(rows: list[list[str]], epsilon: float, **keywords: int) -> dict[str, dict[str, object]]:
    describer, file = DataDescriber(), io.StringIO(pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False))
    with contextlib.redirect_stdout(io.StringIO()):
        describer.describe_dataset_in_independent_attribute_mode(file, epsilon=epsilon, **keywords)
    return describer.data_description["attribute_description"]


def independent(rows: list[list[str]], *, epsilon: float) -> list[float]:
    """The noisy distributions of both columns, with all defaults."""
    found = _described(rows, epsilon)
    return [share for column in COLUMNS for share in found[column]["distribution_probabilities"]]


def independent_of_a_seed(rows: list[list[str]], rng: np.random.Generator, *, epsilon: float) -> list[float]:
    """The same with a fresh seed in each call."""
    found = _described(rows, epsilon, seed=int(rng.integers(2**32)))
    return [share for column in COLUMNS for share in found[column]["distribution_probabilities"]]


def second_column(rows: list[list[str]], rng: np.random.Generator, *, epsilon: float) -> list[float]:
    """The rate of missing values and the noisy distribution of the second column, with a fresh seed in each call."""
    found = _described(rows, epsilon, seed=int(rng.integers(2**32)))["smokes"]
    return [found["missing_rate"], *found["distribution_probabilities"]]


def conditional(rows: list[list[int]], rng: np.random.Generator, *, epsilon: float) -> list[float]:
    """The noisy distributions of correlated attribute mode, of a network of two encoded columns that is given."""
    np.random.seed(rng.integers(2**32))
    table = pd.DataFrame(rows, columns=COLUMNS)
    found = construct_noisy_conditional_distributions([("sex", ["smokes"])], table, epsilon)
    return [*found["smokes"], *(shares[0] for shares in found["sex"].values())]


def women_above(output: list[float]) -> bool:
    """The share of women is above 0.66."""
    return output[0] > 0.66


def complete(output: list[float]) -> bool:
    """No value is missing."""
    return output[0] == 0.0


def about_a_half(output: list[float]) -> bool:
    """Of those who smoke about as many are women as men."""
    return 0.45 < output[3] < 0.55
