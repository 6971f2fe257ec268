"""The largest of several noisy answers: its index, or its value.

The value is a number: the law is cut into fine cells, whose masses have a closed form. They are finest right above
the largest answer, where exponential noise starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from audits.literature.laws.curve import Curve, Floats, both
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry
from dpaudit.losses.comparisons import winning
from dpaudit.losses.released import largest, permute_and_flip

ERROR = 1e-9  # relative: of the quadrature of a race
CLOSED = 1e-11  # relative: of a cell's mass, a difference of two numbers that are at least a cell apart
REACH = 45.0  # scales of noise on both sides of the answers: what lies beyond is one cell
CELLS = 20_000
NEAREST = 1e-4  # scales of noise: where the cells above the largest answer start to widen


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """The curves of Report Noisy Max, with Laplace or exponential noise, by index or by value."""
    p, q = (np.asarray(data, float) for data in (pair.first, pair.second))
    scale, one_sided = noise(entry)
    if not entry.name.endswith("value_only"):
        laws = [permute_and_flip(side, 1.0 / scale) if one_sided else winning(side, scale) for side in (p, q)]
        logs = np.log(laws[0]) - np.log(laws[1])
        method = "Gauss-Legendre quadrature over the winner's noise"
        return both(laws[0], laws[1], (float(logs.max()), float(-logs.min())), method, ERROR)
    edges = cells(p, q, scale, one_sided=one_sided)
    masses = [between(side, edges, scale, one_sided=one_sided) for side in (p, q)]
    sup = _one_sided_loss if one_sided else _loss
    method = "cells of the released value, each with a mass in closed form"
    return both(masses[0], masses[1], (sup(p, q, scale), sup(q, p, scale)), method, CLOSED)


def noise(entry: Entry) -> tuple[float, bool]:
    """The scale of the noise on an answer, and whether it is exponential, not Laplace."""
    values, one_sided = entry.values(), entry.name.startswith("report_noisy_max_exponential")
    return 2.0 * float(values["sensitivity"]) / float(values["epsilon"]), one_sided


def cells(p: Floats, q: Floats, scale: float, *, one_sided: bool) -> Floats:
    """Edges of cells of the released value, the first and the last of them infinite.

    >>> edges = cells(np.array([1.0]), np.array([2.0]), 1.0, one_sided=True)
    >>> float(edges[0]), [bool(np.isin(answer, edges)) for answer in (1.0, 2.0)]
    (-inf, [True, True])
    """
    answers = np.unique(np.concatenate([p, q]))
    low, high = float(answers[0]), float(answers[-1])
    if one_sided:
        widening = scale * np.geomspace(NEAREST, REACH, CELLS // 2)
        parts = [answers, p.max() + widening, q.max() + widening]
    else:
        parts = [answers, np.linspace(low - REACH * scale, high + REACH * scale, CELLS)]
    return np.concatenate([[-np.inf], np.unique(np.concatenate(parts)), [np.inf]])


def between(answers: Floats, edges: Floats, scale: float, *, one_sided: bool) -> Floats:
    """The probability that the largest noisy answer lies between each edge and the next.

    >>> between(np.array([0.0, 0.0]), np.array([-np.inf, 0.0, np.inf]), 1.0, one_sided=False)
    array([0.25, 0.75])
    """
    logs = log_at_most(answers, edges, scale, one_sided=one_sided)
    upper, lower = logs[1:], logs[:-1]
    with np.errstate(invalid="ignore"):
        share = np.where(np.isneginf(lower), 1.0, -np.expm1(lower - upper))  # of what lies below the upper edge
        above = np.where(np.isneginf(upper), 0.0, np.exp(upper) * share)
    return np.asarray(above)


def log_at_most(answers: Floats, values: Floats, scale: float, *, one_sided: bool) -> Floats:
    """ln of the probability that all noisy answers are at most each value.

    >>> log_at_most(np.array([0.0]), np.array([0.0]), 1.0, one_sided=False).round(4).tolist()
    [-0.6931]
    """
    gaps = (values[None, :] - answers[:, None]) / scale
    with np.errstate(divide="ignore", over="ignore"):
        above = np.log1p(-np.exp(-np.abs(gaps)) / (1.0 if one_sided else 2.0))
        below = np.full_like(gaps, -np.inf) if one_sided else gaps - math.log(2.0)
    return np.asarray(np.where(gaps < 0.0, below, above).sum(axis=0))


def log_density(answers: Floats, values: Floats, scale: float, one_sided: bool) -> Floats:
    """ln of the density: of the largest being each answer in turn, where all others are below; less ln(scale).

    One-sided noise leaves none below the largest answer: there it is -inf.
    """
    gaps = (values[None, :] - answers[:, None]) / scale
    alone = np.abs(gaps)
    factor = 1.0 if one_sided else 2.0
    at_most = np.where(gaps < 0.0, gaps - math.log(2.0), np.log1p(-np.exp(-alone) / factor))
    found = np.logaddexp.reduce(at_most.sum(axis=0) - at_most - alone - math.log(factor), axis=0)
    return np.asarray(np.where(values < answers.max(), -np.inf, found) if one_sided else found)


def _ratio(p: Floats, q: Floats, scale: float, one_sided: bool) -> Callable[[Floats], Floats]:
    return lambda values: log_density(p, values, scale, one_sided) - log_density(q, values, scale, one_sided)


def _loss(p: Floats, q: Floats, scale: float) -> float:
    """The log ratio is constant below all answers, and e^-REACH from constant as far above them."""
    answers = [*p.tolist(), *q.tolist()]
    return largest(_ratio(p, q, scale, False), min(answers) - scale, max(answers) + REACH * scale, answers)


def _one_sided_loss(p: Floats, q: Floats, scale: float) -> float:
    """Infinite where the largest answer is smaller, or as large and held by fewer: near it the other has no density."""
    top = float(max(p.max(), q.max()))
    if p.max() < q.max() or (p.max() == q.max() and np.sum(p == top) < np.sum(q == top)):
        return math.inf
    ratio = _ratio(p, q, scale, True)
    return largest(lambda logs: ratio(top + scale * np.exp(logs)), math.log(1e-9), math.log(REACH))
