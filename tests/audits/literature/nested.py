"""Runs of a mechanism against the nested sets of outputs of a curve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from audits.literature.laws import Curve

Floats = npt.NDArray[np.float64]
APART = 1e-6  # of two log ratios, for a set to end between them


def assert_hits(curves: Iterable[Curve], ratios: Sequence[Floats], shares: Iterable[float], chance: float) -> None:
    """Sets that hold these shares are hit as often as the curve says; each count is wrong with at most `chance`.

    `ratios` are ln(dP/dQ) of the outputs of either dataset, and the curves those of both directions.
    """
    for curve, sign in zip(curves, (1, -1), strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            levels = np.log(np.diff(curve.p, prepend=0.0)) - np.log(np.diff(curve.q, prepend=0.0))
        for share in shares:
            place = int(np.searchsorted(curve.p, share))
            while place < len(levels) - 1 and not levels[place] - levels[place + 1] > APART:
                place += 1
            if place == len(levels) - 1:
                continue  # all outputs: nothing to count
            split = levels[place + 1] + min(1.0, levels[place] - levels[place + 1]) / 2.0
            expected = (curve.p[place], curve.q[place])[::sign]  # of the first dataset's runs, of the second's
            for runs, likely in zip(ratios, expected, strict=True):
                hits = int(np.sum(sign * runs > split))
                assert binom.cdf(hits, len(runs), likely) > chance / 2.0
                assert binom.sf(hits - 1, len(runs), likely) > chance / 2.0
