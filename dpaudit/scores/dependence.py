"""Tests of dependence between canaries, for the statements that assume none.

In a row, of normal scores of ranks: the correlation of neighbours, and the spread of the sums over blocks of neighbours
(McSweeney & Penfield 1969). Between rows: whether two halves of the canaries are guessed right in the same rows. The
law of each is that of the same numbers in a random order, as Besag & Clifford (1991) draw it: exact, whatever the
scores are.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.scores.counts import coins_of

SEES = "neighbours, and blocks of neighbours, in the order of the"
BLIND = (
    "it cannot see one coin that all canaries of a training share (answer all or none), nor dependence between "
    "canaries far apart in their order; several trainings show the first"
)
FAR = "it cannot see dependence between trainings far apart in their order, nor what one learned that shifts no score"
FEWEST, MOST, WORK = 99, 999, 20_000_000  # orders that are drawn, and how many numbers they may hold in all
ENOUGH = 10  # orders as strong as the one seen, which end the drawing


@dataclass(frozen=True, slots=True)
class Dependence:
    """The test's answer: `p_value` that of independence, `statistic` the correlation of neighbours, both in `words`."""

    p_value: float
    statistic: float
    words: str


def dependence(scores: Any, included: Any, of: str = "canaries") -> Dependence:
    """Looks for dependence between neighbouring canaries; `scores` and `included` have shape ([rows,] canaries).

    Of several rows it is the strongest finding. `of` "trainings": one canary each, in their order. Raises
    `InvalidSpec` for scores or coins that cannot be used.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise, coins = rng.normal(size=2000), rng.random(2000) < 0.5
    >>> dependence(noise + coins, coins).p_value > 0.01, dependence(np.repeat(noise[::4], 4), coins).p_value
    (True, 0.001)
    """
    rows = [coins_of(*each) for each in zip(np.atleast_2d(scores), np.atleast_2d(included), strict=True)]
    residuals = np.array([_residual(*each) for each in rows])
    residuals, blind = residuals[residuals.any(axis=1)], BLIND if of == "canaries" else FAR
    if not len(residuals) or residuals.shape[1] < 8:
        return Dependence(1.0, 0.0, f"too little to look for dependence between {rows[0][0].size} {of}; {blind}")
    least, near = _strongest(residuals)
    p = ordered_p_value(lambda rng: _strongest(rng.permuted(residuals, axis=1))[0] <= least, residuals)
    finding = f"correlation {near:.3f}, p-value {p:.3g}" + (f" over {len(rows):,} rows" if len(rows) > 1 else "")
    return Dependence(p, near, f"{'' if p <= 0.01 else 'no '}dependence seen between {SEES} {of}: {finding}; {blind}")


def ordered_p_value(as_strong: Callable[[np.random.Generator], bool], values: Reals) -> float:
    """The p-value of the order of `values`; `as_strong` draws another one and says whether it is as strong.

    The draws are seeded by the values. It is at least 1 / (MOST + 1).
    """
    rng = np.random.default_rng(list(hashlib.sha256(values.tobytes()).digest()))
    most, strong = min(MOST, max(FEWEST, WORK // max(1, values.size))), 0
    for drawn in range(1, most + 1):
        strong += as_strong(rng)
        if strong == ENOUGH:
            return strong / drawn
    return (strong + 1) / (most + 1)


def halves_right(scores: Reals, included: Any) -> Reals:
    """How much more than half of every second canary of a row, and of the others, is guessed right: shape (2,)."""
    sides = np.where(included, 1.0, -1.0)
    return np.array([np.sign(scores[k::2] - np.median(scores[k::2])) @ sides[k::2] for k in (0, 1)])


def halves_p_value(halves: Reals) -> float:
    """The p-value of independence of two halves of canaries, by the rows that they are guessed right in: (rows, 2)."""
    away = halves - halves.mean(axis=0)
    seen = float(away[:, 0] @ away[:, 1])
    seen -= 1e-9 * abs(seen)  # the order itself is as strong as itself, with either sign
    return ordered_p_value(lambda rng: bool(away[:, 0] @ rng.permutation(away[:, 1]) >= seen), halves)


def _residual(values: Any, members: Any) -> Reals:
    """Normal scores of the ranks on each side: zeros where there are none."""
    from scipy.special import ndtri

    residual = np.zeros(values.size)
    for side in (members, ~members):
        part = values[side]
        if part.size:
            low = np.searchsorted(np.sort(part), part, side="left")
            high = np.searchsorted(np.sort(part), part, side="right")  # equal scores share their ranks' middle
            residual[side] = ndtri((low + high) / (2.0 * part.size))
    return residual


def _strongest(residuals: Reals) -> tuple[float, float]:
    """The least of all p-values of a normal law, as a measure of strength, and the correlation of neighbours there."""
    from scipy.special import chdtrc, ndtr

    m = residuals.shape[1]
    energy = (residuals**2).sum(axis=1)
    near = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / energy
    starts = np.linspace(0, m, max(2, math.isqrt(m)), endpoint=False).astype(int)
    sums = np.add.reduceat(residuals, starts, axis=1)
    spread = (sums**2 / np.diff([*starts, m])).sum(axis=1) / (energy / m)
    p = np.minimum(2.0 * ndtr(-abs(near) * math.sqrt(m)), chdtrc(len(starts), spread))
    at = int(np.argmin(p))
    return float(p[at]), float(near[at])
