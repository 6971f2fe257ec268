"""Exact losses of outputs that hold a number beside tops and bottoms: the largest log ratio over that number.

The number runs over a grid that is refined around its best point. The log ratios are smooth between the answers and
constant far from them, so that gives eight digits. `p` and `q` are the answers in both datasets, float64[answers] each,
in the unit of threshold and scales; losses are in nats.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from dpaudit.base.arrays import Integers, Reals
from dpaudit.losses.comparisons import below, density, outputs, panels
from dpaudit.losses.distribution import log_ratios

_COARSE, _FINE, _ROUNDS = 65, 17, 8
_FAR = 30.0  # scales of the noise beyond which a log ratio no longer changes


def largest(function: Callable[[Reals], Reals], low: float, high: float, knots: Sequence[float] = ()) -> float:
    """The maximum of a function on [low, high]: on a grid with the knots, then on finer ones around its best point.

    >>> round(largest(lambda x: -((x - 0.3) ** 2), 0.0, 1.0), 12)
    -0.0
    """
    grid = np.unique(np.concatenate([np.linspace(low, high, _COARSE), [x for x in knots if low <= x <= high]]))
    return highest(function, grid, _FINE, _ROUNDS)


def highest(function: Callable[[Reals], Reals], grid: Reals, points: int, rounds: int) -> float:
    """The highest value on a grid, then on finer ones of `points` points, each around the best point of the last."""
    best = -np.inf
    for _ in range(rounds):
        values = function(grid)
        place = int(np.argmax(values))
        best = max(best, float(values[place]))
        grid = np.linspace(grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)], points)
    return best


def gap_ratio(p: Reals, q: Reals, threshold: float, threshold_scale: float, query_scale: float) -> float:
    """The log ratio of a top at the last answer, which gives away how far it is above: the largest over the gap."""
    scales = (threshold, threshold_scale, query_scale)

    def ratio(gaps: Reals) -> Reals:
        return _log_gap_density(p, gaps, *scales) - _log_gap_density(q, gaps, *scales)

    return largest(ratio, 0.0, float(np.ptp([threshold, *p, *q])) + _FAR * threshold_scale)


def known_threshold_ratio(p: Reals, q: Reals, _: float, __: float, query_scale: float) -> float:
    """The same where the noisy answer is given away too, and with it the noisy threshold.

    The density of the threshold cancels; the noisy answer is any number above it.
    """
    before, after = p[-1], q[-1]

    def ratio(levels: Reals) -> Reals:
        move = (np.abs(levels - after) - np.abs(levels - before)) / query_scale
        bottoms = _sum_of_ratios(p[:-1], q[:-1], levels, query_scale)
        return np.asarray(bottoms + np.maximum(move, (before - after) / query_scale))  # at the threshold, or far up

    return _over_levels(ratio, p, q, query_scale)


def exact_gap_ratio(p: Reals, q: Reals, threshold: float, threshold_scale: float, query_scale: float) -> float:
    """The same where the gap is that of the answer itself, without its noise.

    The gap tells how far the noisy threshold is from the answer, and given the gap a top is as likely in both
    datasets; what differs is the density of the threshold, and the bottoms.
    """
    points = [threshold, *p, *q]

    def ratio(gaps: Reals) -> Reals:
        one, other = p[-1] - gaps, q[-1] - gaps
        moved = np.asarray((np.abs(other - threshold) - np.abs(one - threshold)) / threshold_scale)
        for before, after in zip(p[:-1], q[:-1], strict=True):
            moved += np.log(below(one - before, query_scale) / below(other - after, query_scale))
        return moved

    reach = max(points) - min(points) + 1.0
    return largest(ratio, -reach - _FAR * query_scale, reach, [side[-1] - x for side in (p, q) for x in points])


def announced_threshold_loss(p: Reals, q: Reals, query_scale: float) -> float:
    """The largest log ratio of AboveThreshold where the noisy threshold is part of the output."""

    def halts(place: int) -> float:
        last = slice(place, place + 1)

        def ratio(levels: Reals) -> Reals:
            bottoms = _sum_of_ratios(p[:place], q[:place], levels, query_scale)
            return bottoms + _sum_of_ratios(-p[last], -q[last], -levels, query_scale)

        return _over_levels(ratio, p, q, query_scale)

    return max(halts(place) for place in range(len(p) + 1))


def no_top_ratio(p: Reals, q: Reals, threshold: float, threshold_scale: float, query_scale: float) -> float:
    """The log ratio of bottoms only, at all answers."""
    end, scales = np.array([np.inf]), (threshold, threshold_scale, query_scale)
    return float((log_reached(p, end, *scales) - log_reached(q, end, *scales))[0])


def released_value_ratio(
    p: Reals, q: Reals, values: tuple[float, float], threshold: float, threshold_scale: float, query_scale: float
) -> float:
    """The log ratio of a top at the last answer that gives away another statistic with the noise of its comparison.

    `values` are that statistic in both datasets. Its noisy value v means the noise v - value, hence a noisy threshold
    of at most v - value + answer.
    """
    scales = (threshold, threshold_scale, query_scale)
    offsets = p[-1] - values[0], q[-1] - values[1]
    points = [threshold, *p, *q]

    def ratio(given: Reals) -> Reals:
        one = log_reached(p[:-1], given + offsets[0], *scales)
        other = log_reached(q[:-1], given + offsets[1], *scales)
        return np.asarray(one - other + (np.abs(given - values[1]) - np.abs(given - values[0])) / query_scale)

    low, high = min(points) - max(offsets) - 1.0, max(points) - min(offsets) + _FAR * query_scale
    return largest(ratio, low, high, [*(x - offset for x in points for offset in offsets), *values])


def one_threshold_values_loss(
    first: Reals, second: Reals, most: int, threshold: float, threshold_scale: float, query_scale: float
) -> float:
    """The largest log ratio, one way, where tops give away the noisy answers compared with one noisy threshold.

    That threshold lies below the lowest of them, v; the others are v as well, or far above, whichever shows more.
    """
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    known = list(dict.fromkeys(pairs))
    p, q = (np.array(side) for side in zip(*known, strict=True))
    classes = outputs([known.index(pair) for pair in pairs], most)
    scales = (threshold, threshold_scale, query_scale)
    points = [threshold, *p, *q]

    def shown(tops: Integers, bottoms: Integers, lowest: int) -> float:
        answers = [np.repeat(side, bottoms) for side in (p, q)]

        def ratio(values: Reals) -> Reals:
            moves = (np.abs(values[:, None] - q) - np.abs(values[:, None] - p)) / query_scale
            others = np.maximum(moves, (p - q) / query_scale) @ tops
            exchanged = np.minimum(0.0, moves[:, lowest] - (p - q)[lowest] / query_scale)
            below_all = log_reached(answers[0], values, *scales) - log_reached(answers[1], values, *scales)
            return np.asarray(below_all + others + exchanged)

        return largest(ratio, min(points) - 1.0, max(points) + _FAR * query_scale, points)

    losses = [no_top_ratio(first, second, *scales)]
    for tops, bottoms in zip(classes.tops, classes.bottoms, strict=True):
        losses += [shown(tops, bottoms, int(lowest)) for lowest in np.flatnonzero(tops)]
    return max(losses)


def log_reached(answers: Reals, cuts: Reals, threshold: float, threshold_scale: float, query_scale: float) -> Reals:
    """The log probability that all answers are bottoms and the noisy threshold is at most each cut: [cuts]."""
    steepness = 1.0 / threshold_scale + len(answers) / query_scale
    edges, nodes, weights = panels([threshold, *answers, *cuts[np.isfinite(cuts)]], threshold_scale, steepness)
    mass = weights * density(nodes - threshold, threshold_scale)
    for answer, times in zip(*np.unique(answers, return_counts=True), strict=True):
        mass = mass * below(nodes - answer, query_scale) ** int(times)
    sums = np.cumsum(mass.sum(axis=1))
    return np.asarray(np.log(sums[np.minimum(np.searchsorted(edges, cuts), len(sums)) - 1]))


def _log_gap_density(
    answers: Reals, gaps: Reals, threshold: float, threshold_scale: float, query_scale: float
) -> Reals:
    """The log density of a top at the last answer by each gap, after bottoms at the others.

    The noise of the top is the noisy threshold plus the gap minus the answer: it changes its sign at one threshold,
    on both sides of which the integral over it is a cumulative sum.
    """
    top, turns = answers[-1], answers[-1] - gaps
    steepness = 1.0 / threshold_scale + len(answers) / query_scale
    edges, nodes, weights = panels([threshold, *answers, *turns], threshold_scale, steepness)
    mass = weights * density(nodes - threshold, threshold_scale)
    for answer in answers[:-1]:
        mass = mass * below(nodes - answer, query_scale)
    left = np.concatenate([[0.0], np.cumsum((mass * np.exp((nodes - top) / query_scale)).sum(axis=1))])
    right = np.cumsum((mass * np.exp((top - nodes) / query_scale)).sum(axis=1)[::-1])[::-1]
    places = np.searchsorted(edges, turns)
    shift = np.exp(gaps / query_scale)
    return np.asarray(np.log(left[places] * shift + np.append(right, 0.0)[places] / shift))


def _sum_of_ratios(p: Reals, q: Reals, levels: Reals, query_scale: float) -> Reals:
    """The log ratio of bottoms at all these answers, given the noisy threshold."""
    total = np.zeros(len(levels))
    for before, after in zip(p, q, strict=True):
        total += log_ratios(below(levels - before, query_scale), below(levels - after, query_scale))
    return total


def _over_levels(ratio: Callable[[Reals], Reals], p: Reals, q: Reals, query_scale: float) -> float:
    points = [*p, *q]
    return largest(ratio, min(points) - 1.0, max(points) + _FAR * query_scale, points)


def geosample_steps(epsilon: float) -> int:
    """The k of GeoSample as its programs compute it: with the natural logarithm.

    >>> geosample_steps(0.1)
    3
    """
    return math.ceil(math.log(2.0 / epsilon))


def geosample_law(k: int, n: int, count: int) -> Reals:
    """The probabilities of 0, ..., n for GeoSample (Balcer & Vadhan 2018, algorithm 4.8), each rounded once.

    >>> (geosample_law(3, 5, 1) * 111_537).round().tolist()
    [52488.0, 6561.0, 5832.0, 5184.0, 4608.0, 36864.0]
    """
    outcomes = (2 ** (k + 1) + 1) * (2**k + 1) ** (n - 1)
    upto = [2 ** (k * (count - z)) * (2**k + 1) ** (n - count + z) for z in range(count)]
    upto += [outcomes - 2 ** (k * (z - count + 1)) * (2**k + 1) ** (n - 1 - z + count) for z in range(count, n)]
    edges = [0, *upto, outcomes]
    return np.array([(high - low) / outcomes for low, high in itertools.pairwise(edges)])


_REACH = 30.0  # scales of noise beyond the larger count; further out no ratio changes


def random_rounding_loss(first: Sequence[int], second: Sequence[int], base: int) -> float:
    """Rounding at random to multiples of `base`, up with a probability of remainder / base.

    >>> random_rounding_loss([3], [2], 3), round(random_rounding_loss([2], [1], 3), 4)
    (inf, 0.6931)
    """
    multiples = 2 + max(*first, *second) // base

    def law(count: int) -> Reals:
        chances = np.zeros(multiples)
        quotient, remainder = divmod(count, base)
        chances[quotient : quotient + 2] = 1.0 - remainder / base, remainder / base
        return chances

    return _sum_over_cells(first, second, law)


def rounded_noise_loss(first: Sequence[int], second: Sequence[int], scale: float, base: int) -> float:
    """Lap(scale) added, then rounded to a multiple of `base` and cut off at 0.

    >>> rounded_noise_loss([3], [2], 1.0, 5)
    1.0
    """
    multiples = 2 + int((max(*first, *second) + _REACH * scale) / base)
    edges = base * np.arange(0.5, multiples)

    def law(count: int) -> Reals:
        # what lies above an edge comes from the lower tail, which keeps its digits
        return -np.diff(below(np.asarray(count - edges, float), scale), prepend=1.0, append=0.0)

    return _sum_over_cells(first, second, law)


def _sum_over_cells(first: Sequence[int], second: Sequence[int], law: Callable[[int], Reals]) -> float:
    cells = [(law(p), law(q)) for p, q in zip(first, second, strict=True) if p != q]
    one = sum(float(np.max(log_ratios(p, q))) for p, q in cells)
    other = sum(float(np.max(log_ratios(q, p))) for p, q in cells)
    return round(max(one, other), 12)
