"""Many choices at once: a race of noisy answers, and draws from probabilities that can be listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpaudit.arrays import Masked, Places, Reals
from dpaudit.catalogue.noise import Rng


def race(answers: Sequence[float], runs: int, noise: Callable[[int], Reals]) -> tuple[Places, Reals]:
    """The index of the largest noisy answer, and that answer; `noise(runs)` draws the noise of one answer.

    >>> winner, best = race([1.0, 3.0], 2, np.zeros)
    >>> winner.tolist(), best.tolist()
    ([1, 1], [3.0, 3.0])
    """
    best = noise(runs)
    best += answers[0]
    winner = np.zeros(runs, np.intp)
    for index in range(1, len(answers)):
        noisy = noise(runs)
        noisy += answers[index]
        np.putmask(winner, noisy > best, index)
        np.maximum(best, noisy, out=best)
    return winner, best


def chosen(law: Reals, runs: int, rng: Rng) -> Places:
    """Indices drawn with these probabilities."""
    inner = np.cumsum(law)[:-1]
    return np.searchsorted(inner / law.sum(), rng.random(runs), side="right")


def with_values(winner: Places, values: Reals, candidates: int) -> Masked:
    """The winner with a value: one coordinate for each candidate, all masked but the winner's."""
    rows = np.arange(len(winner))
    filled, hidden = np.zeros((len(winner), candidates)), np.ones((len(winner), candidates), np.bool_)
    filled[rows, winner] = values
    hidden[rows, winner] = False
    return np.ma.MaskedArray(filled, mask=hidden)
