"""Exact laws of a choice among few candidates: the probability of each, for the ways of choosing that have one.

The race of Laplace noises itself is `winning` in `comparisons`.
"""

import itertools
import math

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.losses.comparisons import below, density, panels
from dpaudit.losses.released import highest

_POINTS = 4_001  # of the grid of released values; two zooms then leave an error of about 1e-12
_TAIL = 40.0  # scales of noise beyond which a released value says no more


def exponential(utilities: Reals, rate: float) -> Reals:
    """Probabilities proportional to e^(rate * utility) (McSherry & Talwar 2007).

    >>> exponential(np.array([0.0, 0.0]), 1.0)
    array([0.5, 0.5])
    """
    weights = np.exp(rate * (utilities - np.max(utilities)))
    return np.asarray(weights / weights.sum())


def permute_and_flip(utilities: Reals, rate: float) -> Reals:
    """The law of permute-and-flip: coins of e^(rate * (utility - best)) in random order, until one shows heads.

    In random order means at independent uniform times: a candidate that comes at time t wins if its coin shows heads
    and no earlier one did. The integral over t is that of a polynomial, so Gauss-Legendre is exact.
    Report Noisy Max with exponential noise of mean 1 / rate has the same law (Ding et al. 2021).

    >>> permute_and_flip(np.array([0.0, 0.0]), 1.0)
    array([0.5, 0.5])
    """
    heads = np.exp(rate * (utilities - np.max(utilities)))
    nodes, weights = np.polynomial.legendre.leggauss(len(heads) // 2 + 1)
    failed = 1.0 - heads[:, None] * (nodes + 1.0) / 2.0
    others = [np.prod(np.delete(failed, j, axis=0), axis=0) for j in range(len(heads))]
    return np.array([chance * (rest @ weights) / 2.0 for chance, rest in zip(heads, others, strict=True)])


def flip_in_order(utilities: Reals, rate: float) -> Reals:
    """The same coins as `permute_and_flip`, always from the first candidate to the last.

    >>> flip_in_order(np.array([1.0, 0.0]), 1.0)
    array([1., 0.])
    """
    heads = np.exp(rate * (utilities - np.max(utilities)))
    return np.asarray(heads * np.cumprod(np.concatenate([[1.0], 1.0 - heads[:-1]])))


def flip_one_coin(utilities: Reals, rate: float) -> Reals:
    """As `permute_and_flip`, but one uniform draw serves as every coin: any candidate whose chance exceeds it may win.

    >>> flip_one_coin(np.array([0.0, 0.0]), 1.0)
    array([0.5, 0.5])
    """
    heads = np.exp(rate * (utilities - np.max(utilities)))
    steps = np.append(np.sort(heads)[::-1], 0.0)
    shares = -np.diff(steps) / np.arange(1, len(steps))
    return np.array([shares[steps[:-1] <= chance].sum() for chance in heads])


def last_clock(answers: Reals, rate: float) -> Reals:
    """The law of the largest answer plus ln(E) / rate, E exponential: the last of the clocks of mean e^(rate * answer).

    The first of the clocks of mean e^(-rate * answer) would be the exponential mechanism. By inclusion and exclusion
    over those still running, so for few candidates only.

    >>> last_clock(np.array([0.0, 0.0]), 1.0)
    array([0.5, 0.5])
    """
    speeds = np.exp(-rate * (answers - np.max(answers)))

    def last(j: int) -> float:
        others = np.delete(speeds, j)
        sets = (np.array(chosen) for size in range(len(answers)) for chosen in itertools.combinations(others, size))
        return float(sum((-1.0) ** len(chosen) * speeds[j] / (speeds[j] + chosen.sum()) for chosen in sets))

    return np.array([last(j) for j in range(len(answers))])


def top_two(answers: Reals, scale: float) -> Reals:
    """The probabilities that i is the largest and j the second once Lap(scale) is added to all (row i, column j).

    >>> top_two(np.array([3.0, 3.0]), 1.0).round(12)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    _, nodes, weights = panels(list(answers), scale, len(answers) / scale)
    level, mass = nodes.ravel(), weights.ravel()
    under = np.stack([below(level - answer, scale) for answer in answers])
    law = np.zeros((len(answers), len(answers)))
    for i, j in itertools.permutations(range(len(answers)), 2):
        rest = np.prod(np.delete(under, (i, j), axis=0), axis=0)
        law[i, j] = mass @ (density(level - answers[j], scale) * below(answers[i] - level, scale) * rest)
    return law


def releasing(first: Reals, second: Reals, scale: float, *, index: bool) -> float:
    """The loss when the largest answer plus Lap(scale) is given away, with its index or without.

    The answers in both datasets are float64[answers], in the unit of the scale.

    The largest log ratio of the two densities over the value given away: a grid that holds all answers, then zooms.
    """
    knots = np.concatenate([first, second])
    grid = np.union1d(knots, np.linspace(knots.min() - scale, knots.max() + _TAIL * scale, _POINTS))

    def apart(values: Reals) -> Reals:
        ratios = _densities(first, values, scale, index) - _densities(second, values, scale, index)
        return np.asarray(np.max(np.abs(ratios), axis=0))

    return highest(apart, grid, _POINTS, rounds=3)


def _densities(answers: Reals, values: Reals, scale: float, index: bool) -> Reals:
    """The log density of the winner's noisy value, for each winner (winner, value) or for all together."""
    gaps = (values[None, :] - answers[:, None]) / scale
    under = np.where(gaps < 0.0, gaps - np.log(2.0), np.log1p(-np.exp(-np.abs(gaps)) / 2.0))
    winners = under.sum(axis=0) - under - np.abs(gaps)
    return np.asarray(winners if index else np.logaddexp.reduce(winners, axis=0, keepdims=True))


def releasing_one_sided(first: Reals, second: Reals, scale: float) -> float:
    """The loss when index and value of the largest answer plus exponential noise of mean `scale` are given away.

    The value lies above every answer, and near the largest of them all that lie there must keep still: infinite
    otherwise. Then they cancel, and the rest is tried on a grid of values.

    >>> releasing_one_sided(np.array([0.0, 5.0]), np.array([1.0, 5.0]), 2.0)
    0.5
    """
    top = np.max(first)
    if not np.array_equal(first == top, second == top) or top != np.max(second):
        return math.inf
    values = top + np.linspace(0.0, _TAIL * scale, 20 * _POINTS)
    moved = first[first < top], second[first < top]
    under = [np.log(-np.expm1((side[:, None] - values) / scale)) for side in moved]
    ratios = under[0] - under[1]  # of those below the top; each falls or rises with the value
    winners = ratios.sum(axis=0) - np.vstack([np.zeros(len(values)), ratios])
    apart = np.concatenate([[0.0], (moved[0] - moved[1]) / scale])
    return float(np.max(np.abs(winners + apart[:, None])))


def largest_one_sided(first: Reals, second: Reals, scale: float) -> float:
    """The loss when the largest answer plus exponential noise of mean `scale` is given away, without its index.

    The value lies above every answer, and with k answers at the top its density starts as the power k - 1 of the
    distance to them: infinite where the top or this k differs. Else the largest log ratio of the densities.

    >>> largest_one_sided(np.array([0.0]), np.array([1.0]), 2.0)
    inf
    >>> round(largest_one_sided(np.array([5.0, 0.0]), np.array([5.0, 1.0]), 2.0), 4)  # at the top: all of the other
    0.0598
    """
    top = float(np.max(first))
    if top != np.max(second) or np.count_nonzero(first == top) != np.count_nonzero(second == top):
        return math.inf

    def density(answers: Reals, above: Reals) -> Reals:
        gaps = (above + (top - answers)[:, None]) / scale
        under = np.log(-np.expm1(-gaps))
        return np.asarray(under.sum(axis=0) + np.logaddexp.reduce(-gaps - under, axis=0))

    grid = scale * np.concatenate([[1e-12], np.linspace(0.0, _TAIL, 10 * _POINTS)[1:]])
    return highest(lambda above: np.abs(density(first, above) - density(second, above)), grid, _POINTS, rounds=3)
