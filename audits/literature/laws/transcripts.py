"""SVT34Parallel: what SVT3 and SVT4 give away about the same answers, each with its own noise.

Given the answers the two parts are independent: probabilities multiply and log ratios add up. That of SVT3 comes in
bins of cells, that of SVT4 is a list of outputs.
"""

from __future__ import annotations

import numpy as np

from audits.literature.laws.cells import gathered
from audits.literature.laws.curve import Curve
from audits.literature.laws.released import METHOD, QUADRATURE, Noises, released_cells, released_losses
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry
from dpaudit.catalogue.sparse.lyu import FOUR, THREE
from dpaudit.losses.comparisons import one_threshold_laws
from dpaudit.losses.distribution import log_ratios

WIDTH = 1e-4  # of the bins: each meets every output of SVT4


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """Both directions, for a halt at the first top or the second."""
    values = entry.values()
    epsilon, threshold, most = values["epsilon"], values["threshold"], values["c"]
    noises = Noises(threshold, *THREE.noises(epsilon, most))
    parts = gathered(released_cells(pair.first, pair.second, most, noises), WIDTH)
    losses = released_losses(pair.first, pair.second, most, noises)
    answers = np.asarray(pair.first, float), np.asarray(pair.second, float)
    found, first, second, _ = one_threshold_laws(*answers, most, threshold, *FOUR.noises(epsilon, most))
    forth, back = (
        part.beside(p * found.size, q * found.size).curve(
            loss + float(np.max(log_ratios(p, q))), f"{METHOD}; times an enumeration", 2.0 * QUADRATURE
        )
        for part, loss, (p, q) in zip(parts, losses, ((first, second), (second, first)), strict=True)
    )
    return forth, back
