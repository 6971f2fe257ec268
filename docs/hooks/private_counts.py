"""The module of the tutorial, as it is before the mistake in it is found."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np


def noisy_count(rows: Sized, rng: np.random.Generator, epsilon: float = 1.0) -> float:
    """The number of rows, meant to be epsilon-differentially private for one row more or less."""
    return len(rows) + rng.laplace(scale=0.5 / epsilon)
