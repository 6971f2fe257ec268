"""The (epsilon, delta) region in the square of error rates, and the two ways between curve and trade-off.

A point (fpr, fnr) of an attack is possible under (epsilon, delta)-DP where fnr >= 1 - delta - e^epsilon fpr and
fnr >= e^-epsilon (1 - delta - fpr), and the same for the attack that says the opposite (Kairouz, Oh & Viswanath
2015, theorem 2.1; Dong, Roth & Su 2022, equation 5).
"""

from __future__ import annotations

import math
from typing import Any

from dpaudit.errors import InvalidSpec


def epsilon_of(fpr: float, fnr: float, delta: float = 0.0) -> float:
    """The least epsilon at `delta` that allows an attack with these two error rates; 0.0 where every one does.

    >>> round(epsilon_of(0.1, 0.6), 4)  # 0.4 of the members against 0.1 of the others
    1.3863
    >>> epsilon_of(0.0, 0.6), epsilon_of(0.0, 1.0)
    (inf, 0.0)
    """
    if fpr + fnr > 1.0:  # the attack that says the opposite
        fpr, fnr = 1.0 - fpr, 1.0 - fnr
    small, large = min(fpr, fnr), max(fpr, fnr)
    gap = 1.0 - delta - large
    if gap <= small:
        return 0.0
    return math.inf if small <= 0.0 else math.log(gap / small)


def epsilon_curve_of(fpr: Any, fnr: Any, deltas: Any, *, limits: bool = False) -> Any:
    """epsilon(delta) of a trade-off curve given by points: the largest of the points' epsilons at each delta.

    `fpr` and `fnr` are arrays of the same shape (points), `deltas` an array; the answer has the shape of `deltas`.
    With `limits` the points are upper limits of both error rates: one above the diagonal then says nothing, and is
    not turned into the attack that says the opposite.

    >>> epsilon_curve_of([0.1], [0.6], [0.0, 0.3]).round(4).tolist()
    [1.3863, 0.0]
    """
    import numpy as np

    x, y = np.asarray(fpr, dtype=float).ravel(), np.asarray(fnr, dtype=float).ravel()
    d = np.asarray(deltas, dtype=float)
    if x.shape != y.shape:
        raise InvalidSpec(f"fpr and fnr must be equally long, got {x.size} and {y.size}")
    flipped = (x + y > 1.0) & (not limits)
    x, y = np.where(flipped, 1.0 - x, x), np.where(flipped, 1.0 - y, y)
    small, large = np.minimum(x, y), np.maximum(x, y)
    gap = 1.0 - d[..., None] - large
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(gap > small, np.log(np.maximum(gap, 0.0)) - np.log(small), 0.0)
    return each.max(axis=-1, initial=0.0)


def tradeoff_of_curve(epsilons: Any, deltas: Any, fpr: Any = None) -> tuple[Any, Any]:
    """The trade-off curve (fpr, fnr) that a list of (epsilon, delta) guarantees implies together.

    Without `fpr` the answer is at the corners of the curve and at 0 and 1: between them it is a straight line.
    Dong, Roth & Su 2022, proposition 6: the largest of the guarantees' own curves.

    >>> x, y = tradeoff_of_curve([0.0], [0.1])
    >>> x.round(3).tolist(), y.round(3).tolist()
    ([0.0, 0.9, 1.0], [0.9, 0.0, 0.0])
    """
    import numpy as np

    e, d = np.atleast_1d(np.asarray(epsilons, dtype=float)), np.atleast_1d(np.asarray(deltas, dtype=float))
    if e.shape != d.shape or e.size == 0:
        raise InvalidSpec(f"epsilons and deltas must be equally long and not empty, got {e.size} and {d.size}")
    finite = np.isfinite(e)
    slopes = np.concatenate([-np.exp(e[finite]), -np.exp(-e[finite]), [0.0]])
    heights = np.concatenate([1.0 - d[finite], (1.0 - d[finite]) * np.exp(-e[finite]), [0.0]])

    def height(x: Any) -> Any:
        return np.maximum(0.0, (slopes[None, :] * x[:, None] + heights[None, :]).max(axis=1))

    if fpr is not None:
        x = np.asarray(fpr, dtype=float).ravel()
        return x, height(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (heights[None, :] - heights[:, None]) / (slopes[:, None] - slopes[None, :])
    inside = crossings[np.isfinite(crossings) & (crossings > 0.0) & (crossings < 1.0)]
    x = np.unique(np.concatenate([[0.0, 1.0], inside]))
    y = height(x)
    keep = np.ones(x.size, dtype=bool)  # corners only: drop what lies on the line through its neighbours
    if x.size > 2:
        left = (y[1:-1] - y[:-2]) * (x[2:] - x[1:-1])
        right = (y[2:] - y[1:-1]) * (x[1:-1] - x[:-2])
        keep[1:-1] = np.abs(left - right) > 1e-12 * (x[2:] - x[:-2])
    return x[keep], y[keep]
