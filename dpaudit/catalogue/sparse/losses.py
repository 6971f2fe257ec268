"""Exact losses of the sparse vector family, from its rules."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.base import validate
from dpaudit.base.arrays import Masked, Places, Reals
from dpaudit.catalogue.entry import EPSILON, Code, Entry, Parameter, Program, pure
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.losses.comparisons import epochs, halting, halting_ratios
from dpaudit.losses.discrete import epsilon_of, log_ratios
from dpaudit.losses.one_threshold import one_threshold_laws, one_threshold_loss
from dpaudit.losses.released import no_top_ratio

TOP, BOTTOM = 1, 0

BASSI = "Bassi 2019, notes 001"
BOOK = "Dwork & Roth 2014, The algorithmic foundations of differential privacy"
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

    comparing = comparisons(data, runs, rng, threshold, rule.noises(c=c, **given), c, rule.threshold, rule.halts)
    return up_to_the_halt(tops, comparing, top)


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
    for seen in comparisons(data, runs, rng, threshold, rule.noises(c=c, **given), c, rule.threshold, rule.halts):
        values[seen.place, seen.tops] = value(rng, data[seen.place], seen, c=c, **given)
        hidden[seen.place, seen.tops] = False
    return np.ma.MaskedArray(values.T, mask=hidden.T)


def _compared(rng: Rng, answer: float, seen: Seen, **_: Any) -> Reals:
    return seen.noisy


compared_values = partial(released, value=_compared)  # tops that give away the noisy answers compared


def comparisons(
    data: Answers, runs: int, rng: Rng, threshold: float, scales: Scales, c: int, drawn: Drawn, halts: bool
) -> Iterator[Seen]:
    """Answer by answer what the runs see that still go on; those that have halted are left out, with their noise."""
    halts = halts and c <= len(data)  # there are no more tops than answers
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


TopRatio = Callable[..., float]


def bits_loss(first: Answers, second: Answers, threshold: float, c: int = 1, *, rule: Rule, **given: Any) -> float:
    """The loss of tops and bottoms."""
    before, after = np.asarray(first, float), np.asarray(second, float)
    scales = (threshold, *rule.noises(c=c, **given))
    if rule.threshold == "once":
        return one_threshold_loss(before, after, c if rule.halts else None, *scales)
    most = c if rule.halts else len(first)
    if rule.threshold == "each answer":
        return epochs_loss(before, after, most, lambda p, q: _unshared_ratios(p, q, *scales))
    return epochs_loss(before, after, most, lambda p, q: halting_ratios(p, q, *scales))


def _unshared_ratios(p: Reals, q: Reals, *scales: float) -> Reals:
    """As `halting_ratios`, where every comparison has noise of its own: log ratios of bottoms before a top add up."""
    one, other = (np.array([halting(np.array([answer]), *scales) for answer in side]) for side in (p, q))
    ratios = log_ratios(one, other)  # (answer, top or bottom)
    before = np.concatenate([[0.0], np.cumsum(ratios[:, 1])])
    return np.append(before[:-1] + ratios[:, 0], before[-1])


def by_rule(rule: Rule, program: Program | None = None, loss: Callable[..., float] = bits_loss) -> Code:
    """Tops and bottoms by a rule; a program that is to be read for a proof is written out."""
    return Code(program or partial(one_run, rule=rule), partial(bits, rule=rule), partial(loss, rule=rule))


def tops_loss(
    first: Answers, second: Answers, threshold: float, c: int = 1, *, rule: Rule, top: TopRatio, **given: Any
) -> float:
    """The loss where tops give away a number.

    `top` is the log ratio of an epoch with its top at the last of its answers, the largest over that number.
    """
    before, after = np.asarray(first, float), np.asarray(second, float)
    scales = (threshold, *rule.noises(c=c, **given))

    @cache  # most epochs hold the same answers as another
    def ratio(p: tuple[float, ...], q: tuple[float, ...]) -> float:
        return top(np.array(p), np.array(q), *scales)

    def ratios(p: Reals, q: Reals) -> Reals:
        tops = (ratio(tuple(p[: place + 1]), tuple(q[: place + 1])) for place in range(len(p)))
        return np.array([*tops, no_top_ratio(p, q, *scales)])

    return epochs_loss(before, after, c, ratios)


def epochs_loss(before: Reals, after: Reals, most: int, ratios: Callable[[Reals, Reals], Reals]) -> float:
    """A fresh threshold after each top makes the epochs independent: the best sum of their log ratios, either way."""

    def one_way(p: Reals, q: Reals) -> float:
        return epochs(len(p), most, lambda start: ratios(p[start:], q[start:]))

    return max(one_way(before, after), one_way(after, before))


def bits_loss_at(
    first: Answers, second: Answers, threshold: float, c: int, delta: float, *, rule: Rule, **given: Any
) -> float:
    """The epsilon of tops and bottoms at a delta: all outputs are listed, at most 2^len(first) of them."""
    before, after = np.asarray(first, float), np.asarray(second, float)
    scales = (threshold, *rule.noises(c=c, delta=delta, **given))
    if rule.threshold == "once":
        found, p, q, _ = one_threshold_laws(before, after, c if rule.halts else None, *scales)
        return epsilon_of(p * found.size, q * found.size, delta)
    most = c if rule.halts else len(first)
    return epsilon_of(listed(before, most, *scales), listed(after, most, *scales), delta)


def listed(answers: Reals, most: int, threshold: float, threshold_scale: float, query_scale: float) -> Reals:
    """The probabilities of all outputs, with a fresh threshold after each top; in one order for all datasets.

    >>> listed(np.array([0.0, 0.0]), 1, 0.0, 0.0, 1.0).tolist()  # a top at once, at the second answer, none
    [0.5, 0.25, 0.25]
    """

    @cache
    def rest(start: int, left: int) -> Reals:
        if left == 0 or start == len(answers):
            return np.ones(1)
        epoch = halting(answers[start:], threshold, threshold_scale, query_scale)
        tops = [epoch[j] * rest(start + j + 1, left - 1) for j in range(len(epoch) - 1)]
        return np.concatenate([*tops, epoch[-1:]])

    return rest(0, most)


def unbounded_where_moved(first: Answers, second: Answers, **_: Any) -> float:
    """The loss where an answer itself is given away."""
    return math.inf if list(first) != list(second) else 0.0
