"""The snapping mechanism: Laplace noise on a grid of powers of two, with all of both tails at the two bounds."""

from __future__ import annotations

import math

import numpy as np

from audits.literature.laws.curve import Curve, Floats, both
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry

ERROR = 1e-11  # relative: the floats of the noise are as fine as the least of them, and so are the logarithms


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """The curves of the few outputs of a coarse grid."""
    p, q = (chances(entry, float(data)) for data in (pair.first, pair.second))
    logs = np.log(p) - np.log(q)
    method = "closed form: the masses of Laplace noise on the cells that are rounded to one output"
    return both(p, q, (float(logs.max()), float(-logs.min())), method, ERROR)


def outputs(entry: Entry) -> Floats:
    """The values that can be released, rising: the multiples of the grid within the bounds, and the bounds.

    >>> from dpaudit.catalogue.additive import snapping
    >>> outputs(snapping.with_parameters({"epsilon": 0.1, "bound": 40.0})).tolist()
    [-40.0, -32.0, -16.0, 0.0, 16.0, 32.0, 40.0]
    """
    bound, grid = float(entry.values()["bound"]), _grid(entry)
    steps = math.ceil(bound / grid) - 1
    return np.array([-bound, *(grid * step for step in range(-steps, steps + 1)), bound])


def chances(entry: Entry, answer: float) -> Floats:
    """The probability of each of `outputs`.

    >>> from dpaudit.catalogue.additive import snapping
    >>> float(chances(snapping, 3.0).sum().round(12))
    1.0
    """
    values, grid = entry.values(), _grid(entry)
    bound, scale = float(values["bound"]), float(values["sensitivity"]) / float(values["epsilon"])
    steps = math.ceil(bound / grid) - 1
    edges = (np.arange(-steps, steps + 2) - 0.5) * grid - min(max(answer, -bound), bound)
    tails = np.exp(-np.abs(edges) / scale) / 2.0  # beyond the edge, on the side away from the answer
    left = np.where(edges < 0.0, tails, 1.0 - tails)
    inner = np.where(edges[:-1] > 0.0, tails[:-1] - tails[1:], np.diff(left))
    return np.array([left[0], *inner, tails[-1] if edges[-1] >= 0.0 else 1.0 - tails[-1]])


def _grid(entry: Entry) -> float:
    """The least power of two that is at least the scale of the noise."""
    values = entry.values()
    return float(2.0 ** math.ceil(math.log2(float(values["sensitivity"]) / float(values["epsilon"]))))
