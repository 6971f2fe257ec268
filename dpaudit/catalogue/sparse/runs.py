"""Many runs of the sparse vector family at once, answer by answer: runs that have halted cost nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.catalogue.noise import laplace
from dpaudit.catalogue.sparse.common import BOTTOM, TOP

Rng = np.random.Generator
Answers = list[float]
Scales = tuple[float, float]
Drawn = Literal["once", "after each top", "each answer"]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Masked = np.ma.MaskedArray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A member of the family: `noises(**parameters)` are the scales for the threshold and for the answers.

    `threshold` says when its noise is drawn: once, again after each top, or for each answer. Without `halts` a run
    goes on to the last answer, however many tops it saw.
    """

    noises: Callable[..., Scales]
    threshold: Drawn = "after each top"
    halts: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """What happened at one answer: the runs that saw a top, with noisy answer and threshold, and those that halted."""

    place: int
    tops: Indices
    halted: Indices
    noisy: Floats
    level: Floats


def bits(data: Answers, runs: int, rng: Rng, threshold: float, c: int = 1, *, rule: Rule, **given: Any) -> Masked:
    """Tops and bottoms, masked after the halt; the run is the first axis."""
    tops = np.full((len(data), runs), BOTTOM, np.int8)
    halted = np.full(runs, len(data), np.int16)
    for seen in comparisons(data, runs, rng, threshold, rule.noises(c=c, **given), c, rule.threshold, rule.halts):
        tops[seen.place, seen.tops] = TOP
        halted[seen.halted] = seen.place
    hidden = np.arange(len(data), dtype=np.int16)[:, None] > halted
    return np.ma.MaskedArray(tops.T, mask=hidden.T)


def released(
    data: Answers,
    runs: int,
    rng: Rng,
    threshold: float,
    c: int = 1,
    *,
    rule: Rule,
    value: Callable[..., Floats],
    **given: Any,
) -> Masked:
    """A number for each top, `value(rng, answer, seen, **parameters)`; bottoms are masked, as is what follows."""
    values = np.zeros((len(data), runs))
    hidden = np.ones((len(data), runs), np.bool_)
    for seen in comparisons(data, runs, rng, threshold, rule.noises(c=c, **given), c, rule.threshold, rule.halts):
        values[seen.place, seen.tops] = value(rng, data[seen.place], seen, c=c, **given)
        hidden[seen.place, seen.tops] = False
    return np.ma.MaskedArray(values.T, mask=hidden.T)


def comparisons(
    data: Answers, runs: int, rng: Rng, threshold: float, scales: Scales, c: int, drawn: Drawn, halts: bool
) -> Iterator[Seen]:
    """Answer by answer what the runs see that still go on; those that have halted are left out, with their noise."""
    counts = halts and c > 1
    going, left = np.arange(runs), np.full(runs if counts else 0, c, np.int16)
    level = laplace(rng, scales[0], runs)
    level += threshold
    for place, answer in enumerate(data):
        noisy = laplace(rng, scales[1], len(going))
        noisy += answer
        is_top = noisy > level
        above = np.flatnonzero(is_top)
        stays: slice | Indices = slice(None)
        ends = above[:0]
        if counts:
            left[above] -= 1
            ends, stays = np.flatnonzero(left == 0), np.flatnonzero(left)
            left = left[stays]
        elif halts:
            ends, stays = above, np.flatnonzero(~is_top)
        yield Seen(place, going[above], going[ends], noisy[above], level[above])
        if drawn == "each answer":
            level = threshold + laplace(rng, scales[0], len(level))
        elif drawn == "after each top" and (counts or not halts):
            level[above] = threshold + laplace(rng, scales[0], len(above))
        going, level = going[stays], level[stays]
