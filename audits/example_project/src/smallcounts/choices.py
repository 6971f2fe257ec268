"""One of several words, chosen with noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def most_common(rows: Sequence[str], rng: np.random.Generator, *, words: Sequence[str], epsilon: float) -> str:
    """A word that is common among the rows: exponential mechanism, epsilon-DP for one row more or less."""
    counts = [sum(row == word for row in rows) for word in words]
    weights = np.exp([epsilon * (count - max(counts)) / 2.0 for count in counts])
    return words[int(rng.choice(len(words), p=weights / weights.sum()))]
