"""Exact losses where one noisy threshold meets all answers: outputs counted by kind of answer.

Given the threshold the comparisons are independent, and answers that move alike are of one kind: the probability of
an output depends only on how many answers of each kind were tops and how many were bottoms.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Integers, Reals
from dpaudit.losses.comparisons import below, density, panels
from dpaudit.losses.discrete import log_ratios


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
