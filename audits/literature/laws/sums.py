"""PrefixSum and LaplaceParallel: Laplace noise on many answers, so the log ratio is a sum of clipped terms.

Noise of scale b on an answer that moves by s gives a log ratio of |x - q'| / b - |x - q| / b, which lies in [-a, a]
with a = s / b: it is a or -a beyond both answers, and moves evenly in between. With L the sum over m such answers,
P(L in ds) = e^(-m a / 2) e^(s / 2) M(ds) and Q(L in ds) = e^(-m a / 2) e^(-s / 2) M(ds), where M is the m-fold
convolution of half an atom at either end and the density 1/4 in between. So M is known in closed form: atoms at
-m a, -m a + 2 a, ..., m a, and between them polynomials, weighted sums of those of Irwin and Hall. All terms are
positive and nothing cancels.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from audits.literature.laws.curve import ROUNDING, Curve, Floats
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry

STEPS = 64  # sets between two atoms
METHOD = "closed form: a sum of clipped terms is a weighted sum of binomials and of the densities of Irwin and Hall"


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """Both directions, which are alike. Raises ValueError where the answers that move do so by different steps.

    The differences of neighbouring totals are the noisy answers, so running totals are told apart as those are.
    """
    moves = np.abs(np.subtract(pair.first, pair.second).astype(float))
    steps = set(moves[moves > 0.0].tolist())
    if len(steps) != 1:
        raise ValueError(f"the answers that move must move by the same, got moves by {sorted(steps)}")
    curve = sum_curve(int(np.count_nonzero(moves)), steps.pop() / scale(entry, pair))
    return curve, curve


def scale(entry: Entry, pair: AdjacentPair) -> float:
    """The scale of the noise on each answer; counts that share epsilon all move."""
    values = entry.values()
    return float(values.get("sensitivity", len(pair.first)) / values["epsilon"])


def sum_curve(terms: int, step: float) -> Curve:
    """The likeliest events of so many noisy answers, each of which moves by `step` scales of its noise.

    >>> curve = sum_curve(10, 0.1)
    >>> round(float(curve.p[0]), 8), round(float(np.log(curve.p[0] / curve.q[0])), 12)  # all beyond their answers
    (0.00097656, 1.0)
    """
    levels = step * (terms - 2.0 * np.arange(terms * STEPS + 1) / STEPS)
    levels[::STEPS] = step * (terms - 2.0 * np.arange(terms + 1))  # the atoms, exactly
    p, q = tails(terms, step, levels)
    return Curve(p, q, terms * step, (terms + 10) * ROUNDING, METHOD)


def tails(terms: int, step: float, levels: Floats) -> tuple[Floats, Floats]:
    """P(L >= level) and Q(L >= level) of the sum L of the log ratios, for each level.

    >>> [round(float(tail[0]), 12) for tail in tails(1, 0.1, np.array([0.1]))]  # of one answer: the half line
    [0.5, 0.452418709018]
    """
    ends = step * (2.0 * np.arange(terms + 1) - terms)
    nodes, weights = _legendre()
    place = np.clip(np.searchsorted(ends, levels, side="right") - 1, 0, terms - 1)  # the piece that a level cuts
    cut = np.clip((levels - ends[place]) / (2.0 * step), 0.0, 1.0)
    inside = cut[:, None] + (1.0 - cut)[:, None] * nodes
    density = np.take_along_axis(_densities(terms, step, inside), place[None, :, None], axis=0)[0]
    whole = _densities(terms, step, nodes)
    atoms = _atoms(terms)
    sums = []
    for sign in (1.0, -1.0):
        tilt = math.exp(-terms * step / 2.0) * np.exp(sign * ends / 2.0)
        rise = sign * step
        piece = tilt[:-1] * ((whole * np.exp(rise * nodes)) @ weights)
        above = np.append(np.cumsum((piece + tilt[1:] * atoms[1:])[::-1])[::-1], 0.0)  # everything above each end
        part = (1.0 - cut) * tilt[place] * ((density * np.exp(rise * inside)) @ weights)
        found = part + tilt[place + 1] * atoms[place + 1] + above[place + 1]
        found = np.where(levels <= ends[place], found + tilt[place] * atoms[place], found)
        sums.append(np.where(levels > ends[-1], 0.0, np.where(levels == ends[-1], tilt[-1] * atoms[-1], found)))
    return sums[0], sums[1]


def _densities(terms: int, step: float, places: Floats) -> Floats:
    """The density of M on each of its pieces (first axis), by the place in the piece from 0 to 1.

    Of the terms, n lie between their ends: that is the density of Irwin and Hall on n pieces, which the others, at one
    end or the other, shift by whole pieces.
    """
    found = np.zeros((terms, *places.shape))
    hall: list[Any] = [np.ones_like(places)]
    for n in range(1, terms + 1):
        if n > 1:
            hall = _one_more(hall, places)
        weight = math.comb(terms, n) * (step / 2.0) ** n
        for at_top, chance in enumerate(_atoms(terms - n)):
            for piece, values in enumerate(hall):
                found[at_top + piece] += weight * chance * values
    return found


def _one_more(hall: list[Any], places: Floats) -> list[Any]:
    """The density of a sum of one more uniform number, by pieces (the recursion of B-splines)."""
    n = len(hall) + 1
    left, right = [*hall, 0.0], [0.0, *hall]
    return [((j + places) * left[j] + (n - j - places) * right[j]) / (n - 1) for j in range(n)]


def _atoms(terms: int) -> Floats:
    """The part of the terms that all are at one end or the other, by the number at the upper one."""
    return np.array([math.comb(terms, k) for k in range(terms + 1)], float) / 2.0**terms


@cache
def _legendre() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]: exact for the polynomials of 20 terms, and to rounding for their tilt."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    return (nodes + 1.0) / 2.0, weights / 2.0
