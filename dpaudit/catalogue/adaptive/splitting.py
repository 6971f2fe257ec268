"""Samples cut into subsets and groups of subsets, and the noisy choice of one subset from every group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Places, Reals
from dpaudit.catalogue.entry import Parameter
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.losses.comparisons import winning

Sample = Sequence[float]

SIZE = Parameter("size", 2, "samples", "the samples of a subset: ln(n) in the notes", partial(validate.whole, least=1))
PER_GROUP = Parameter("per_group", 3, "subsets", "the subsets of a group", partial(validate.whole, least=2))
BOUND = Parameter("bound", 3.0, "units of a sample", "samples are clipped to [-bound, bound]", validate.positive)

LECTURE = "Bassi 2019, notes 001, 'Unrealistic example (revisited)' and 'Notes on the unrealistic example (cont.)'"
PAPER = (
    "Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, Preserving statistical validity in adaptive data analysis"
)

GROUP = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]  # three subsets of two samples, a group that neighbours share


def price(beta: float, size: int) -> float:
    """The epsilon that the appendix of the notes takes: sqrt(ln(1 / beta) / (2 size)), where the size is ln(n).

    >>> round(price(0.05, 2), 4)
    0.8654
    """
    return math.sqrt(math.log(1.0 / beta) / (2.0 * size))


def split(data: Sample, size: int, per_group: int, bound: float) -> list[Reals]:
    """The means of the subsets, group by group; samples that fill no subset are left out.

    >>> split([1.0, 9.0, 0.0, 0.0, 2.0], 2, 3, 3.0)
    [array([2., 0.])]
    """
    samples = np.clip(np.asarray(data, float), -bound, bound)
    means = samples[: len(samples) // size * size].reshape(-1, size).mean(axis=1)
    return [means[start : start + per_group] for start in range(0, len(means), per_group)]


def replaced(samples: int, size: int, bound: float) -> float:
    """How far one replaced sample moves the mean of its subset."""
    return 2.0 * bound / size


def choices(groups: Sequence[Reals], scale: float) -> list[Reals]:
    """For each group the probability of each of its subsets to have the largest mean after Lap(scale).

    Without noise ties are broken by chance.

    >>> choices([np.array([2.0, 1.0, 2.0])], 0.0)
    [array([0.5, 0. , 0.5])]
    """
    if scale == 0.0:
        return [(means == means.max()) / np.count_nonzero(means == means.max()) for means in groups]
    return [winning(means, scale) for means in groups]


def chosen(groups: Sequence[Reals], scale: float, runs: int, rng: Rng) -> tuple[Places, Reals]:
    """For each group and run the subset of the largest noisy mean, and that noisy mean."""
    places, best = np.zeros((len(groups), runs), np.intp), np.empty((len(groups), runs))
    for group, means in enumerate(groups):
        if scale == 0.0:
            places[group] = rng.choice(np.flatnonzero(means == means.max()), runs)
            best[group] = means.max()
            continue
        for place, mean in enumerate(means):
            noisy = laplace(rng, scale, runs)
            noisy += mean
            if place == 0:
                best[group] = noisy
                continue
            np.putmask(places[group], noisy > best[group], place)
            np.maximum(best[group], noisy, out=best[group])
    return places, best


def largest(means: Iterable[float], scale: float, rng: Rng) -> int:
    """The place of the largest mean after each got its own draw of Lap(scale): one run for one group."""
    noisy = [mean + rng.laplace(scale=scale) for mean in means]
    return noisy.index(max(noisy))
