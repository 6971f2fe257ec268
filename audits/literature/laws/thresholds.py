"""Sparse vector variants whose output is tops and bottoms: given the noisy threshold the comparisons are independent.

The integral over the threshold's noise is the catalogue's. Without noise on the answers it is a sum of few terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from audits.literature.laws.curve import Curve, Floats, both
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry
from dpaudit.losses.comparisons import one_threshold_laws
from dpaudit.losses.distribution import log_ratios

ERROR = 1e-9  # relative: of the quadrature over the threshold's noise


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """The curves of a variant that draws the noise of its threshold once, or halts before it would draw it again."""
    p, q = laws(entry, pair)
    up, down = (float(np.max(log_ratios(*order))) for order in ((p, q), (q, p)))
    return both(p, q, (up, down), "all outputs, by Gauss-Legendre quadrature over the threshold's noise", ERROR)


def laws(entry: Entry, pair: AdjacentPair) -> tuple[Floats, Floats]:
    """The probabilities of all outputs under both datasets; outputs of equal probabilities are taken together.

    Raises ValueError for a variant that draws the noise of its threshold again before it halts.
    """
    loss: Any = entry.loss
    rule, values = loss.keywords["rule"], entry.values()
    threshold, most = values.pop("threshold"), values.get("c", 1)
    if rule.threshold != "once" and not (rule.halts and most == 1):
        raise ValueError(f"{entry.name}: the threshold is drawn again; its law is not that of one threshold")
    scales = rule.noises(**{"c": most, **values})
    first, second = (np.asarray(data, float) for data in (pair.first, pair.second))
    found, p, q, _ = one_threshold_laws(first, second, most if rule.halts else None, threshold, *scales)
    return p * found.size, q * found.size
