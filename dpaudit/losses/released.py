"""Exact laws of a choice among few candidates, and losses of outputs with a number beside tops and bottoms.

The loss of such an output is the largest log ratio over its number, which runs over a grid that is refined around its
best point. The log ratios are smooth between the answers and constant far from them, so that gives eight digits. `p`
and `q` are the answers in both datasets, float64[answers] each, in the unit of threshold and scales; losses are in
nats. The race of Laplace noises itself is `winning` in `comparisons`.
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
