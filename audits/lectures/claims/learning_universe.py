"""Learning on a finite universe by the exponential mechanism: the sample grows with the log of its size.

CS 208, notes 002, theorem 4.1; Kasiviswanathan, Lee, Nissim, Raskhodnikova & Smith 2011, What can we learn privately?
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from scipy import stats

from audits.lectures.claims.statement import Figure, Truth

EPSILON, ALPHA, BETA = 1.0, 0.1, 0.05


def missed_point(size: int, records: int) -> float:
    """How likely the exponential mechanism over `size` point functions misses an error ALPHA: exact.

    The target holds 2 ALPHA of the distribution and the rest is a point with the label 0 outside all of them: every
    other point function errs on 2 ALPHA, and on as many records as hit the target.
    """
    hits = np.arange(records + 1)
    others = np.exp(math.log(size - 1) - EPSILON / 2.0 * hits)
    return float(stats.binom.pmf(hits, records, 2.0 * ALPHA) @ (others / (1.0 + others)))


def records_needed(size: int) -> int:
    """The least m at which that is at most BETA, by bisection: it falls with m."""
    low, high = 0, general_sample(size)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if missed_point(size, middle) <= BETA else (middle, high)
    return high


def general_sample(size: int) -> int:
    """The m that suffices for any class of `size` hypotheses: (8 / (epsilon alpha)) ln(2 size / beta), epsilon <= 1."""
    return math.ceil(8.0 / (EPSILON * ALPHA) * math.log(2.0 * size / BETA))


SIZES = (2**4, 2**8, 2**16, 2**32)


def check_universe() -> Truth:
    """The sample of the exponential mechanism over point functions, for larger and larger universes."""
    needed, general = [records_needed(size) for size in SIZES], [general_sample(size) for size in SIZES]
    plain = math.ceil(math.log(BETA) / math.log1p(-2.0 * ALPHA))
    steps = [(needed[i + 1] - needed[i]) / math.log2(SIZES[i + 1] / SIZES[i]) for i in range(3)]
    within = all(a <= b for a, b in zip(needed, general, strict=True))
    return Truth(
        ("right" if min(steps) > 0.5 * max(steps) else "right and loose") if within else "wrong",
        r"By the exponential mechanism over all hypotheses, one record moving an error by 1: "
        r"$m = \frac{8}{\varepsilon\alpha}\ln\frac{2|H|}{\beta}$ suffices for any finite class (epsilon at most 1), "
        r"and on $|X|$ points one "
        r"of VC dimension $v$ has at most $|X|^v$ hypotheses that differ. Point functions show the logarithm: without "
        f"privacy {plain} records are enough for any universe (error {ALPHA}, beta = {BETA}), with epsilon = 1 exactly "
        + ", ".join(f"{m} for {size:,}" for m, size in zip(needed, SIZES, strict=True))
        + f" points: {steps[-1]:.1f} more for each doubling, where the formula has "
        f"{(general[-1] - general[-2]) / 16:.1f}. It says nothing of the time it takes.",
        {f"m at {size}": m for size, m in zip(SIZES, needed, strict=True)}
        | {"without privacy": plain, "a doubling": steps[-1]},
    )


def _draw(axes: Axes) -> None:
    doublings = np.arange(2, 41, 2)
    axes.plot(doublings, [records_needed(2 ** int(k)) for k in doublings], color="C0", label="measured, exactly")
    axes.plot(
        doublings, [general_sample(2 ** int(k)) for k in doublings], color="C1", linestyle="--", label="the formula"
    )
    axes.axhline(math.log(BETA) / math.log1p(-2.0 * ALPHA), color="C5", linestyle=":", label="without privacy")
    axes.set(xlabel="log2 of the size of the universe", ylabel="records m")
    axes.legend(frameon=False)


UNIVERSE = Figure(
    "Point functions learned by the exponential mechanism: the sample grows with the log of the universe.", _draw
)
