"""What all entries of the sparse vector technique share, and many runs of it at once: halted ones cost nothing more."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.base import validate
from dpaudit.base.arrays import Masked, Places, Reals
from dpaudit.catalogue.entry import Entry, Parameter
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON, pure

TOP, BOTTOM = 1, 0

LYU = "Lyu, Su & Li 2017, Understanding the sparse vector technique for differential privacy"
NEIGHBOURS = "vectors of answers that each move by at most 1, in any direction"

THRESHOLD = Parameter("threshold", 0.0, "units of the answers", "what the answers are compared with", validate.real)
TOPS = Parameter("c", 2, "answers", "the tops after which a run halts")

in_room = partial(
    Entry,
    module="dpaudit.catalogue.sparse",
    neighbours=NEIGHBOURS,
    adjacency=("all-differ",),
    parameters=(EPSILON, THRESHOLD, TOPS),
    promise=pure,
    default_pair=([1, 1, 1, 1, 1, 1, -1, -1], [2, 2, 2, 2, 2, 2, -2, -2]),
)


Answers = list[float]
Scales = tuple[float, float]
Drawn = Literal["once", "after each top", "each answer"]


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
    """What happened at one answer: the runs that saw a top, and those of them that halted."""

    place: int
    tops: Places
    halted: Places
    above: Places  # where the tops stand among the runs that still went on
    all_noisy: Reals  # of those runs, as are the levels
    all_levels: Reals

    @property
    def noisy(self) -> Reals:
        """The noisy answers of the tops."""
        return self.all_noisy[self.above]

    @property
    def level(self) -> Reals:
        """The noisy thresholds of the tops."""
        return self.all_levels[self.above]


def one_run(data: Answers, rng: Rng, threshold: float, c: int = 1, *, rule: Rule, **given: Any) -> tuple[int, ...]:
    """Tops and bottoms of one run, as the notes write it."""
    for_threshold, for_answers = rule.noises(c=c, **given)
    noisy_threshold = threshold + rng.laplace(scale=for_threshold)
    output: list[int] = []
    for answer in data:
        is_top = answer + (rng.laplace(scale=for_answers) if for_answers else 0.0) >= noisy_threshold
        output.append(TOP if is_top else BOTTOM)
        if rule.threshold == "each answer" or (is_top and rule.threshold == "after each top"):
            noisy_threshold = threshold + rng.laplace(scale=for_threshold)
        if rule.halts and output.count(TOP) >= c:
            break
    return tuple(output)


def bits(data: Answers, runs: int, rng: Rng, threshold: float, c: int = 1, *, rule: Rule, **given: Any) -> Masked:
    """Tops and bottoms, masked after the halt; the run is the first axis."""
    if rule.threshold == "once" and not rule.halts:
        return _all_compared(data, runs, rng, threshold, rule.noises(c=c, **given))
    tops = np.full((len(data), runs), BOTTOM, np.int8)

    def top(seen: Seen) -> None:
        tops[seen.place, seen.tops] = TOP

    return up_to_the_halt(tops, comparisons(data, runs, rng, threshold, c, rule, **given), top)


def up_to_the_halt(table: npt.NDArray[Any], comparing: Iterator[Seen], fill: Callable[[Seen], None]) -> Masked:
    """A table (answer, run), filled answer by answer, as the outputs of the runs: masked after their halt."""
    places, runs = table.shape
    halted = np.full(runs, places, np.int32)
    for seen in comparing:
        fill(seen)
        halted[seen.halted] = seen.place
    hidden = np.arange(places, dtype=np.int32)[:, None] > halted
    return np.ma.MaskedArray(table.T, mask=hidden.T)


def _all_compared(data: Answers, runs: int, rng: Rng, threshold: float, scales: Scales) -> Masked:
    """Every answer against one noisy threshold."""
    level = laplace(rng, scales[0], runs)
    level += threshold
    tops = np.empty((len(data), runs), np.bool_)
    for row, answer in zip(tops, data, strict=True):
        if scales[1] == 0.0:
            np.less_equal(level, answer, out=row)
            continue
        noisy = laplace(rng, scales[1], runs)
        noisy += answer
        np.greater_equal(noisy, level, out=row)
    return np.ma.MaskedArray(tops.view(np.int8).T, mask=np.zeros(tops.shape, np.bool_).T)


def released(
    data: Answers,
    runs: int,
    rng: Rng,
    threshold: float,
    c: int = 1,
    *,
    rule: Rule,
    value: Callable[..., Reals],
    **given: Any,
) -> Masked:
    """A number for each top, `value(rng, answer, seen, **parameters)`; bottoms are masked, as is what follows."""
    values = np.zeros((len(data), runs))
    hidden = np.ones((len(data), runs), np.bool_)
    for seen in comparisons(data, runs, rng, threshold, c, rule, **given):
        values[seen.place, seen.tops] = value(rng, data[seen.place], seen, c=c, **given)
        hidden[seen.place, seen.tops] = False
    return np.ma.MaskedArray(values.T, mask=hidden.T)


# tops that give away the noisy answers compared
compared_values = partial(released, value=lambda rng, answer, seen, **_: seen.noisy)


def comparisons(
    data: Answers, runs: int, rng: Rng, threshold: float, c: int, rule: Rule, **given: Any
) -> Iterator[Seen]:
    """Answer by answer what the runs see that still go on; those that have halted are left out, with their noise."""
    scales, drawn = rule.noises(c=c, **given), rule.threshold
    halts = rule.halts and c <= len(data)  # there are no more tops than answers
    counts = halts and c > 1
    going, left = np.arange(runs), np.full(runs if counts else 0, c, np.int32)
    level = laplace(rng, scales[0], runs)
    level += threshold
    for place, answer in enumerate(data):
        noisy = laplace(rng, scales[1], len(going))
        noisy += answer
        is_top = noisy > level
        above = np.flatnonzero(is_top)
        stays: slice | Places = slice(None)
        ends = above[:0]
        if counts:
            left[above] -= 1
            if place + 1 >= c:  # the first place where a run can halt
                done = left == 0
                ends, stays = np.flatnonzero(done), np.flatnonzero(~done)
                left = left[stays]
        elif halts:
            ends, stays = above, np.flatnonzero(~is_top)
        tops = going[above]
        yield Seen(place, tops, tops if ends is above else going[ends], above, noisy, level)
        if drawn == "each answer":
            level = threshold + laplace(rng, scales[0], len(level))
        elif drawn == "after each top" and (counts or not halts):
            level[above] = threshold + laplace(rng, scales[0], len(above))
        going, level = going[stays], level[stays]
