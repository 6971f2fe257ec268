"""Answers with noise of their own: Laplace on one answer or several, and the truncated geometric noise of integers.

Where one answer moves, an output tells something by that coordinate alone. Under Laplace noise the ratio rises from
one answer to the other and is constant beyond them, so the likeliest sets are the half-lines that start between.
"""

from __future__ import annotations

import numpy as np

from audits.literature.laws.curve import ROUNDING, Curve, both
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry
from dpaudit.losses.released import geosample_law, geosample_steps

STARTS = 2_001  # of half-lines, from one answer to the other


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """The curves of a row whose noise depends on nothing but the parameters."""
    if entry.name.startswith("truncated_geometric"):
        steps, most = geosample_steps(float(entry.values()["epsilon"])), int(entry.values()["n"])
        p, q = (geosample_law(steps, most, int(data)) for data in (pair.first, pair.second))
        logs = np.log(p) - np.log(q)
        return both(p, q, (float(logs.max()), float(-logs.min())), "enumeration of all outputs", ROUNDING)
    distance = moved(entry, pair) / scale(entry)
    return _half_lines(distance), _half_lines(distance)


def moved(entry: Entry, pair: AdjacentPair) -> float:
    """How far the two released answers are apart; raises ValueError where more than one of them moves.

    >>> from dpaudit.catalogue.additive import laplace
    >>> moved(laplace, AdjacentPair(1.0, 3.0))
    2.0
    """
    first, second = (np.atleast_1d(np.asarray(data, float)) for data in (pair.first, pair.second))
    if entry.name.startswith("laplace_sum"):
        bound = entry.values()["bound"]
        return abs(float(np.clip(first, -bound, bound).sum() - np.clip(second, -bound, bound).sum()))
    distances = np.abs(first - second)
    if np.count_nonzero(distances) > 1:
        raise ValueError(f"{entry.name}: the likeliest sets are known where one answer moves, not several")
    return float(distances.sum())


def scale(entry: Entry) -> float:
    """The scale of the Laplace noise of an entry.

    >>> from dpaudit.catalogue.additive import laplace
    >>> scale(laplace.with_parameters({"epsilon": 0.1}))
    10.0
    """
    values = entry.values()
    sensitivity = float(values["bound"] if entry.name.startswith("laplace_sum") else values["sensitivity"])
    ratio = sensitivity / float(values["epsilon"])
    return 1.0 / ratio if entry.name.endswith("inverted_scale") else ratio


def _half_lines(distance: float) -> Curve:
    """The half-lines from 0 down to -distance where Lap(1) is around 0, against Lap(1) around -distance."""
    method = "closed form: half-lines that start between the two answers"
    if distance == 0.0:
        return Curve(np.ones(1), np.ones(1), 0.0, ROUNDING, method)
    starts = np.linspace(0.0, distance, STARTS)
    p = np.append(1.0 - np.exp(-starts) / 2.0, 1.0)
    q = np.append(np.exp(starts - distance) / 2.0, 1.0)
    return Curve(p, q, distance, ROUNDING, method)
