"""The MWEM of smartnoise-synth on a table of one column, made and called as in its documentation.

A dataset is the list of the values of a categorical column. It draws from the system's entropy and numpy's and
Python's global state.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from snsynth import Synthesizer

warnings.filterwarnings("ignore", message="Flattened dimensionality")  # of tables as small as this one


def mwem(
    cities: Sequence[str], rng: np.random.Generator, *, epsilon: float, rows: int, measure_only: bool = False
) -> dict[str, int]:
    """How often each city stands in synthetic rows, after one iteration."""
    seed = int(rng.integers(2**32))
    random.seed(seed)
    np.random.seed(seed)
    synthesizer = Synthesizer.create("mwem", epsilon=epsilon, iterations=1, measure_only=measure_only)
    synthesizer.fit(pd.DataFrame({"city": list(cities)}), categorical_columns=["city"])
    return synthesizer.sample(rows)["city"].value_counts().to_dict()


def mwem_in_rome(
    cities: Sequence[str], rng: np.random.Generator, *, epsilon: float, rows: int, measure_only: bool = False
) -> int:
    """How many of the synthetic rows are in Rome."""
    return mwem(cities, rng, epsilon=epsilon, rows=rows, measure_only=measure_only).get("Rome", 0)


def has_lima(output: dict[str, int]) -> bool:
    """Lima stands in a synthetic row."""
    return "Lima" in output


def mostly_rome(output: int) -> bool:
    """At least 150 of the rows are in Rome."""
    return output >= 150
