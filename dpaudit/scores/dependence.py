"""A test of dependence between the canaries of one training: what stands beside every statement that assumes none.

Two tests on normal scores, each at half the error probability: the correlation of neighbours, and the spread of the
sums over blocks of neighbours (McSweeney & Penfield 1969).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.scores.inputs import coins_of

SEES = "neighbours, and blocks of neighbours, in the order of the canaries"
BLIND = (
    "it cannot see one coin that all canaries of a training share (answer all or none), nor dependence between "
    "canaries far apart in their order; several trainings show the first"
)


@dataclass(frozen=True, slots=True)
class Dependence:
    """The test's answer: `p_value` that of independence, `statistic` the correlation of neighbours, both in `words`."""

    p_value: float
    statistic: float
    words: str


def dependence(scores: Any, included: Any) -> Dependence:
    """Looks for dependence between neighbouring canaries; `scores` and `included` have shape ([rows,] canaries).

    Of several rows it is the strongest finding, at so many times its p-value. Raises `InvalidSpec` for scores or coins
    that cannot be used.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise, coins = rng.normal(size=2000), rng.random(2000) < 0.5
    >>> dependence(noise + coins, coins).p_value > 0.01, dependence(np.repeat(noise[::4], 4), coins).p_value < 1e-6
    (True, True)
    """
    rows = [coins_of(*each) for each in zip(np.atleast_2d(scores), np.atleast_2d(included), strict=True)]
    found = [made for each in rows if (made := _in_row(*each)) is not None]
    if not found:
        return Dependence(1.0, 0.0, f"too little to look for dependence between {rows[0][0].size} canaries; {BLIND}")
    least, near = min(found)
    p = min(1.0, len(rows) * least)
    told = f"correlation {near:.3f}, p-value {p:.3g}" + (f" over {len(rows):,} rows" if len(rows) > 1 else "")
    return Dependence(p, near, f"{'' if p <= 0.01 else 'no '}dependence seen between {SEES}: {told}; {BLIND}")


def _in_row(values: Any, members: Any) -> tuple[float, float] | None:
    """The p-value and the correlation of neighbours; None where there is too little to look at."""
    from scipy.special import chdtrc, ndtr, ndtri

    residual = np.zeros(values.size)
    for side in (members, ~members):
        part = values[side]
        if part.size:
            low = np.searchsorted(np.sort(part), part, side="left")
            high = np.searchsorted(np.sort(part), part, side="right")  # equal scores share their ranks' middle
            residual[side] = ndtri((low + high) / (2.0 * part.size))
    m, energy = values.size, float(np.dot(residual, residual))
    if energy == 0.0 or m < 8:
        return None
    near = float(np.dot(residual[1:], residual[:-1])) / energy
    p_near = 2.0 * float(ndtr(-abs(near) * math.sqrt(m)))
    blocks = np.array_split(residual, max(2, math.isqrt(m)))
    spread = sum(float(block.sum()) ** 2 / block.size for block in blocks) / (energy / m)
    return min(1.0, 2.0 * min(p_near, float(chdtrc(len(blocks), spread)))), near
