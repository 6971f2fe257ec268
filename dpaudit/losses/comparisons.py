"""Exact losses under Laplace noise: of answers, and of comparisons by one integral over the noise that they share.

Given that noise the comparisons are independent, so the probability of an output is the mean of a product of
Laplace tails. The product is smooth between the query answers: Gauss-Legendre panels that end at them give
it to about ten digits, for the query answers and scales of an audit.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from dpaudit.base.arrays import Integers, Reals
from dpaudit.losses.distribution import log_ratios

_REACH = 45.0  # scales of noise beyond the outermost query answer; what is left out is e^-45 of the rest
_NODES = 24  # a panel: enough for e^(steepness * width) with the exponent at most _RISE
_RISE = 4.0


def below(value: Reals | float, scale: float) -> Reals:
    """Pr(Lap(scale) < value) for each value; a step at 0 where there is no noise. Scales are in units of the answer."""
    if scale == 0.0:
        return (np.asarray(value) > 0.0).astype(np.float64)
    tail = np.exp(-np.abs(value) / scale) / 2.0
    return np.where(np.asarray(value) < 0.0, tail, 1.0 - tail)


def density(value: Reals, scale: float) -> Reals:
    """The density of Lap(scale) at each value, per unit of the answer."""
    return np.asarray(np.exp(-np.abs(value) / scale) / (2.0 * scale))


def panels(knots: Sequence[float], scale: float, steepness: float) -> tuple[Reals, Reals, Reals]:
    """Edges of panels, [panels + 1], that end at the knots and reach far beyond; nodes and weights [panels, nodes].

    `steepness` is how fast the logarithm of what is integrated may change, per unit of the answer.
    """
    low, high = min(knots) - _REACH * scale, max(knots) + _REACH * scale
    cuts = np.linspace(low, high, 2 + math.ceil((high - low) * steepness / _RISE))
    edges = np.unique(np.concatenate([cuts, np.asarray(knots, float)]))
    nodes, weights = _legendre()
    half = np.diff(edges)[:, None] / 2.0
    return edges, edges[:-1, None] + half * (nodes + 1.0), half * weights


@cache  # it takes as long as a panel
def _legendre() -> tuple[Reals, Reals]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def halting(answers: Reals, threshold: float, threshold_scale: float, query_scale: float) -> Reals:
    """The probabilities that the first answer above the noisy threshold is 0, 1, ..., and, last, that there is none.

    float64[answers] in, float64[answers + 1] out; answers, threshold and scales have one unit.

    >>> halting(np.array([0.0]), 0.0, 2.0, 4.0)
    array([0.5, 0.5])
    """
    if query_scale == 0.0:  # the threshold lies between the largest answer so far and this one
        reached = below(np.maximum.accumulate(answers) - threshold, threshold_scale)
        return np.diff(reached, prepend=0.0, append=1.0)
    if threshold_scale == 0.0:
        return _first_above(answers, np.array([threshold]), query_scale)[:, 0]
    steepness = 1.0 / threshold_scale + len(answers) / query_scale
    _, nodes, weights = panels([threshold, *answers], threshold_scale, steepness)
    mass = (weights * density(nodes - threshold, threshold_scale)).ravel()
    return _first_above(answers, nodes.ravel(), query_scale) @ mass


def winning(answers: Reals, scale: float) -> Reals:
    """The probabilities that each answer is the largest once Lap(scale) is added to all.

    >>> winning(np.array([3.0, 3.0]), 1.0).round(12)
    array([0.5, 0.5])
    """
    _, nodes, weights = panels(list(answers), scale, len(answers) / scale)
    level, mass = nodes.ravel(), weights.ravel()
    others = np.stack([below(level - answer, scale) for answer in answers])
    product = np.prod(others, axis=0)
    return np.array([mass @ (density(level - a, scale) * product / others[j]) for j, a in enumerate(answers)])


def epochs(answers: int, most: int, step: Callable[[int], Reals]) -> float:
    """The largest sum of log ratios over the outputs of a mechanism that starts afresh after each top.

    `step(i)` holds the log ratios of an epoch that starts at answer i: its top at answer i, i + 1, ..., and,
    last, no top at all. The mechanism halts after `most` tops, or when the answers are used up.
    """
    best = np.zeros((most + 1, answers + 1))  # of what follows, by tops left and next answer
    for start in reversed(range(answers if most > 1 else min(1, answers))):  # one top leaves no second epoch
        ratios = step(start)
        for left in range(1, most + 1):
            tops = ratios[:-1] + np.where(np.isneginf(ratios[:-1]), 0.0, best[left - 1, start + 1 :])
            best[left, start] = max(ratios[-1], np.max(tops))
    return float(best[most, 0])


def halting_ratios(p: Reals, q: Reals, threshold: float, threshold_scale: float, query_scale: float) -> Reals:
    """The log ratios of an epoch, in nats, by the place of its top, and, last, of none: [answers + 1].

    `p` and `q` are the answers in both datasets, of one length.
    """
    scales = (threshold, threshold_scale, query_scale)
    return log_ratios(halting(p, *scales), halting(q, *scales))


def _first_above(answers: Reals, levels: Reals, query_scale: float) -> Reals:
    """Given the noisy threshold: the probability of each place of the first top, and of none (place, level)."""
    gaps = levels[None, :] - answers[:, None]
    bottoms = np.cumprod(below(gaps, query_scale), axis=0)
    before = np.concatenate([np.ones((1, len(levels))), bottoms[:-1]])
    return np.concatenate([before * below(-gaps, query_scale), bottoms[-1:]])


def centred_loss(first: float, first_scale: float, second: float, second_scale: float) -> float:
    """The loss between Lap(first_scale) around one centre and Lap(second_scale) around another; a scale may be 0.

    Where the scales differ the wider noise wins in the tails without bound. Where they agree the log ratio of the
    densities is largest beyond both centres.

    >>> centred_loss(3.0, 0.5, 4.0, 0.5), centred_loss(3.0, 0.5, 3.0, 1.0)
    (2.0, inf)
    """
    if (first, first_scale) == (second, second_scale):
        return 0.0
    if first_scale != second_scale or first_scale == 0.0:
        return math.inf
    return abs(first - second) / first_scale


def clamped_loss(first: float, second: float, scale: float, low: float, high: float) -> float:
    """The loss between two answers whose noisy versions are clamped to [low, high]: that of the two ends.

    The log ratio is monotone from one end to the other, and an end holds the whole tail beyond it.

    >>> clamped_loss(10.0, 9.0, 1.0, 0.0, 10.0)
    1.0
    """
    above = [log_tail((high - answer) / scale) for answer in (first, second)]
    below = [log_tail((answer - low) / scale) for answer in (first, second)]
    return max(abs(above[0] - above[1]), abs(below[0] - below[1]))


def log_tail(distance: float) -> float:
    """ln Pr(Lap(1) > distance).

    >>> log_tail(3.0) == -3.0 - math.log(2.0)
    True
    """
    if distance >= 0.0:
        return -distance - math.log(2.0)
    return math.log1p(-math.exp(distance) / 2.0)


def vector_loss(first: Reals, second: Reals, scale: float) -> float:
    """The loss between vectors of answers that each get Laplace noise of their own: their l1 distance over the scale.

    >>> vector_loss(np.array([1.0, 2.0]), np.array([2.0, 0.0]), 6.0)
    0.5
    """
    return float(np.abs(np.subtract(first, second)).sum()) / scale


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Classes of outputs: tops and bottoms of each kind (class, kind), and how many outputs a class holds."""

    tops: Integers
    bottoms: Integers
    size: Integers


def outputs(kinds: Sequence[int], most: int | None) -> Transcripts:
    """All outputs for answers of these kinds; a run halts at its top number `most`, and never where that is None.

    >>> outputs([0, 0], 1).size.tolist()  # no top at all, a top at once, a bottom and then a top
    [1, 1, 1]
    """
    rows = list(_outputs(list(kinds), most))
    tops, bottoms, size = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Transcripts(tops, bottoms, size)


def chances(
    answers: Reals, classes: Transcripts, threshold: float, threshold_scale: float, query_scale: float
) -> Reals:
    """The probability of one output of each class, float64[classes]; `answers` holds the answer of each kind.

    >>> chances(np.array([0.0]), outputs([0], 1), 0.0, 2.0, 4.0).round(12).tolist()
    [0.5, 0.5]
    """
    most = int((classes.tops + classes.bottoms).sum(axis=1).max())
    levels, mass = noisy_levels(answers, threshold, threshold_scale, query_scale, most)
    product = np.broadcast_to(mass, (len(classes.size), len(mass))).copy()
    for kind, answer in enumerate(answers):
        under, over = below(levels - answer, query_scale), below(answer - levels, query_scale)
        product *= under ** classes.bottoms[:, kind, None] * over ** classes.tops[:, kind, None]
    return np.asarray(product.sum(axis=1))


def noisy_levels(
    answers: Reals, threshold: float, threshold_scale: float, query_scale: float, count: int
) -> tuple[Reals, Reals]:
    """Values of the noisy threshold and their weights, [levels] each: sums over them are integrals over its noise.

    Without noise on the answers only the order counts, so one value between two answers stands for all.
    """
    if threshold_scale == 0.0:
        return np.array([threshold]), np.array([1.0])
    if query_scale == 0.0:
        edges = np.unique(answers)
        between = np.concatenate([[edges[0] - 1.0], (edges[1:] + edges[:-1]) / 2.0, [edges[-1] + 1.0]])
        return between, np.diff(below(edges - threshold, threshold_scale), prepend=0.0, append=1.0)
    steepness = 1.0 / threshold_scale + count / query_scale
    _, nodes, weights = panels([threshold, *answers], threshold_scale, steepness)
    return nodes.ravel(), (weights * density(nodes - threshold, threshold_scale)).ravel()


def one_threshold_laws(
    first: Reals,
    second: Reals,
    most: int | None,
    threshold: float,
    threshold_scale: float,
    query_scale: float,
    costs: Reals | None = None,
) -> tuple[Transcripts, Reals, Reals, Reals]:
    """The classes of outputs, the probabilities of one output of each in both datasets, and the costs by kind.

    `first` and `second` are the answers in both datasets, float64[answers]; the probabilities are float64[classes], the
    costs float64[kinds], in nats. `costs`, float64[answers], tells answers apart that move alike; by default none do.
    """
    each = np.zeros(len(first)) if costs is None else costs
    rows = list(zip(first.tolist(), second.tolist(), each.tolist(), strict=True))
    known = list(dict.fromkeys(rows))
    classes = outputs([known.index(row) for row in rows], most)
    before, after, by_kind = (np.array(column) for column in zip(*known, strict=True))
    scales = (threshold, threshold_scale, query_scale)
    return classes, chances(before, classes, *scales), chances(after, classes, *scales), by_kind


def one_threshold_loss(
    first: Reals,
    second: Reals,
    most: int | None,
    threshold: float,
    threshold_scale: float,
    query_scale: float,
    costs: Reals | None = None,
) -> float:
    """The largest |log ratio| of an output; each top adds its cost, that of a value released with fresh noise.

    Arrays as `one_threshold_laws` takes them.

    >>> round(one_threshold_loss(np.zeros(8), np.ones(8), None, 0.0, 0.0, 4.0), 4)
    2.0
    """
    classes, p, q, by_kind = one_threshold_laws(first, second, most, threshold, threshold_scale, query_scale, costs)
    happens = (p > 0.0) | (q > 0.0)
    losses = np.abs(log_ratios(p, q)) + classes.tops @ by_kind
    return float(np.max(losses, initial=0.0, where=happens))


def _outputs(kinds: list[int], most: int | None) -> Iterator[tuple[list[int], list[int], int]]:
    """Tops and bottoms by kind, and the size of the class."""
    for tops, bottoms, size in _splits(kinds, kinds):
        if most is None or sum(tops) < most:
            yield tops, bottoms, size
    for place, kind in enumerate(kinds if most is not None else []):  # the last top, after which nothing follows
        for tops, bottoms, size in _splits(kinds, kinds[:place]):
            if sum(tops) + 1 == most:
                yield [count + (each == kind) for each, count in enumerate(tops)], bottoms, size


def _splits(kinds: list[int], seen: list[int]) -> Iterator[tuple[list[int], list[int], int]]:
    counts = Counter(seen)
    numbers = [counts[kind] for kind in range(max(kinds) + 1)]
    for tops in itertools.product(*(range(count + 1) for count in numbers)):
        size = math.prod(math.comb(count, top) for count, top in zip(numbers, tops, strict=True))
        yield list(tops), [count - top for count, top in zip(numbers, tops, strict=True)], size
