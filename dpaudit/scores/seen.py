"""What a result keeps of scores so that they can be looked at: a histogram of both groups, the corners of the ROC."""

from typing import Any

import numpy as np

from dpaudit.results.beside import BINS, Histogram, counts_on, grid
from dpaudit.scores import roc

FEWEST_BINS = 12


def histogram(inside: Any, outside: Any, feature: str = "score") -> Histogram:
    """How the finite scores of both groups lie, `first` those that were in; arrays of any shape, at least one score.

    >>> import numpy as np
    >>> seen = histogram(np.array([1.0, 1.0, 0.0]), np.array([0.0]))
    >>> seen.values, seen.first, seen.second
    ((0.0, 1.0), (1, 2), (1, 0))
    """
    sides = np.sort(np.ravel(inside)), np.sort(np.ravel(outside))
    every = np.concatenate(sides)
    edges, values = grid(every, min(BINS, max(FEWEST_BINS, int(2.0 * every.size ** (1.0 / 3.0)))))
    if len(values) > max(2, every.size // 2):  # few scores, no two alike
        edges, values = tuple(np.linspace(every.min(), every.max(), FEWEST_BINS + 1).tolist()), ()
    first, second = (counts_on(side, edges, values) for side in sides)
    return Histogram(feature, edges, values, first, second, (), (), (), sides[0].size, sides[1].size)


def corners(inside: Any, outside: Any) -> tuple[tuple[float, float], ...]:
    """(fpr, fnr) at the corners of the upper hull of the empirical ROC: an estimate that was chosen on these scores."""
    curve = roc.roc(inside, outside)
    places = roc.hull(curve)
    x, y = curve.fp[places] / curve.others, 1.0 - curve.tp[places] / curve.members
    return tuple(zip(x.tolist(), y.tolist(), strict=True))
