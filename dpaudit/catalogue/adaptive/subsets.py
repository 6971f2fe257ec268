"""Subsets of a sample, chosen by their own means: the notes' unrealistic example, without and with privacy.

A sample is cut into subsets of `size` values, and the subsets into groups. From every group the subset of the
largest mean is taken: an adaptive choice, since what is asked next depends on what the data answered. In the whole
example the average over the chosen ones is then released.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Places, Reals
from dpaudit.catalogue.entry import Code, Entry, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import one_of, pure_if_replaced
from dpaudit.claims import PureDP, Relation
from dpaudit.losses.comparisons import winning
from dpaudit.losses.distribution import log_ratios

in_room = partial(Entry, module="dpaudit.catalogue.adaptive", promise=pure_if_replaced)

Record = Sequence[float]
Records = Sequence[Record]
Query = Callable[[Record], float]  # into [0, 1]
Readings = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Analyst:
    """Chooses the next query: `asks(readings)`, from how each answer so far was read.

    A reading is whether the private data answered (1, a top) or not (0), and the place of the answer among the `cuts`,
    0 below all of them. So there are finitely many transcripts, and the loss of all of them together is exact.
    `queries` says how many are asked, None: as many as a record has numbers. Where only the numbers of answers and of
    tops matter, not their order, `counts` says so: that keeps the exact loss cheap. One that an audit names, one of
    `ANALYSTS` or `module:name`, is the same for both datasets.
    """

    asks: Callable[[Readings], Query]
    queries: int | None = None
    cuts: tuple[float, ...] = ()
    counts: bool = False

    def many(self, data: Records) -> int:
        """How many queries these records are asked."""
        return len(data[0]) if self.queries is None else self.queries

    def read(self, is_top: bool, answer: float) -> tuple[int, int]:
        """How an answer is read."""
        return int(is_top), bisect_left(self.cuts, answer)

    def state(self, readings: Readings) -> Readings:
        """What matters of the readings: their numbers, or all of them."""
        return tuple(sorted(readings)) if self.counts else readings


def _bisects(readings: Readings) -> Query:
    low, high = 0.0, 1.0
    for _, at_least_half in readings:
        middle = (low + high) / 2.0
        low, high = (low, middle) if at_least_half else (middle, high)
    return lambda record: float(record[0] <= (low + high) / 2.0)


def _follows(readings: Readings) -> Query:
    def query(record: Record) -> float:
        agree = [feature == record[-1] for feature in record[:-1]]
        if len(readings) < len(agree):
            return float(agree[len(readings)])
        votes = sum(agrees == bool(chosen) for agrees, (_, chosen) in zip(agree, readings, strict=False))
        return float(2 * votes > len(agree))

    return query


ANALYSTS = {
    "in order": Analyst(
        lambda readings: itemgetter(len(readings)), counts=True
    ),  # query j is the number at place j of a record, whatever the answers
    "repeats": Analyst(
        lambda readings: itemgetter(sum(top for top, _ in readings)), 8, counts=True
    ),  # asks for the first number until it is a top, then for the next one
    "bisects": Analyst(_bisects, 4, (0.5,)),  # looks for the median of the first number, in [0, 1]
    "follows": Analyst(_follows, None, (0.5,)),  # keeps features that agree with the label, then asks for their vote
}


def average(query: Query, data: Records) -> float:
    """E_S[phi], the average of a query over a dataset."""
    return sum(map(query, data)) / len(data)


def named(analyst: object, what: str = "analyst") -> Analyst:
    """The analyst of this name; raises `InvalidSpec`."""
    return one_of(what, ANALYSTS, Analyst, analyst)


ANALYST = Parameter(
    "analyst", "in order", "name", "who chooses the queries", lambda name, value: named(value, name) and value
)


Sample = Sequence[float]

SIZE = Parameter("size", 2, "samples", "the samples of a subset: ln(n) in the notes")
PER_GROUP = Parameter("per_group", 3, "subsets", "the subsets of a group", partial(validate.whole, least=2))
BOUND = Parameter("bound", 3.0, "units of a sample", "samples are clipped to [-bound, bound]")

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


Split = Callable[[Sample, int, int, float], list[Reals]]
Moves = Callable[[int, int, float], float]

BETA = Parameter(
    "beta", 0.05, "probability", "how often a subset fixed in advance may be a bad one", validate.open_probability
)


def _with_rest(data: Sample, size: int, per_group: int, bound: float) -> list[Reals]:
    """The samples that fill no subset make a small one, in the last group."""
    groups, rest = split(data, size, per_group, bound), data[len(data) // size * size :]
    mean = split(rest, max(1, len(rest)), per_group, bound)
    return [*groups[:-1], np.concatenate([groups[-1], *mean])]


def _overlapping(data: Sample, size: int, per_group: int, bound: float) -> list[Reals]:
    """A group for each subset: itself and the next ones, around."""
    means = np.concatenate(split(data, size, per_group, bound))
    return [np.roll(means, -first)[:per_group] for first in range(len(means))]


def _groups(
    data: Sample, beta: float, size: int, per_group: int, bound: float, cut: Split = split, moves: Moves = replaced
) -> tuple[list[Reals], float]:
    """The means of the subsets, group by group, and the scale of their noise; a mistake is another `cut` or `moves`."""
    return cut(data, size, per_group, bound), moves(len(data), size, bound) / price(beta, size)


def _runs(data: Sample, runs: int, rng: Rng, **given: Any) -> Places:
    return chosen(*_groups(data, **given), runs, rng)[0].T


def _loss(first: Sample, second: Sample, **given: Any) -> float:
    """The groups draw noise of their own: the sum over them of the largest log ratio, in the worse order."""
    p, q = (choices(*_groups(data, **given)) for data in (first, second))

    def one_way(here: list[Reals], there: list[Reals]) -> float:
        return sum(float(np.max(log_ratios(*pair))) for pair in zip(here, there, strict=True))

    return max(one_way(p, q), one_way(q, p))


def _noisy_value_runs(data: Sample, runs: int, rng: Rng, **given: Any) -> Reals:
    places, best = chosen(*_groups(data, **given), runs, rng)
    released = np.empty((2 * len(places), runs))
    released[::2], released[1::2] = places, best
    return released.T


def _noisy_value_loss(first: Sample, second: Sample, **given: Any) -> float:
    """The density of a winner falls by e^(move / scale), and so does the chance of a loser to stay below a low one.

    Exact where one mean of a group moves, as between neighbours.
    """
    (before, scale), (after, _) = (_groups(data, **given) for data in (first, second))
    return float(np.abs(np.concatenate(before) - np.concatenate(after)).sum()) / scale


def _select_subsets(data: Sample, rng: Rng, **given: Any) -> tuple[int, ...]:
    groups, scale = _groups(data, **given)
    return tuple(largest(group, scale, rng) for group in groups)


def _exact_maximum(data: Sample, rng: Rng, **given: Any) -> tuple[int, ...]:
    groups, _ = _groups(data, **given)
    return tuple(int(rng.choice([j for j, mean in enumerate(group) if mean == max(group)])) for group in groups)


def _noisy_value(data: Sample, rng: Rng, **given: Any) -> tuple[float, ...]:
    (groups, scale), released = _groups(data, **given), list[float]()
    for group in groups:
        noisy = [float(mean + rng.laplace(scale=scale)) for mean in group]
        released += [float(noisy.index(max(noisy))), max(noisy)]
    return tuple(released)


_CODE = Code(_select_subsets, _runs, _loss)


def _one_sample(value: float, rest: list[float]) -> tuple[list[float], list[float]]:
    """Two samples of two groups: the first value, or the negative of it."""
    return [value, *rest, *GROUP], [-value, *rest, *GROUP]


select_subsets = in_room(
    name="select_subsets",
    title="From every group, the subset of the largest mean",
    source=Source(LECTURE, PAPER),
    formula=(
        "clip the samples to [-bound, bound], average each subset, add Lap(2 bound / (size epsilon)) to each mean; of "
        "every group the index of the largest, with epsilon = sqrt(ln(1 / beta) / (2 size))"
    ),
    neighbours="samples of the same size that differ in one value",
    code=_CODE,
    parameters=(BETA, SIZE, PER_GROUP, BOUND),
    promise=lambda beta, size, **_: PureDP(price(beta, size), Relation.REPLACE_ONE),
    default_pair=_one_sample(3.0, [-3.0, 3.0, 3.0, 3.0, 0.0]),
).with_twins(
    """exact_maximum: The subset of the largest mean, without noise
        the choice is a function of the data: one sample decides which of two subsets is the larger
        clip the samples, average each subset; of every group the index of the largest mean, ties by chance
    half_sensitivity: The sensitivity of the notes: bound / size
        a sample that is replaced goes from -bound to bound, which moves a mean by twice bound / size
        as select_subsets with Lap(bound / (size epsilon)): 3 / ln(n) is what the notes take
    not_clipped: Samples beyond the bound left as they are
        a normal sample has no bound: from 9 to -9 it moves a mean three times as far as the noise hides
        as select_subsets, but the samples are not clipped
    sensitivity_of_all: Noise for the average of all samples
        a subset averages `size` samples, not all of them: each weighs as many times more as there are subsets
        as select_subsets with Lap(2 bound / (n epsilon)), n the number of all samples
    small_subset: The samples left over make a smaller subset
        a subset of one sample moves `size` times as far as the others, and its noise is theirs
        as select_subsets, and the samples that fill no subset make one of their own, in the last group
    groups_overlap: Overlapping groups, each with the whole epsilon
        every subset competes in `per_group` groups with noise of its own in each, and the losses add up
        as select_subsets, with a group for each subset: itself and the next per_group - 1, around
    noisy_value: The largest noisy mean released with its index
        the subsets are disjoint, so all noisy means together are epsilon-DP, and this is a function of them
        as select_subsets, and of every group also the noisy mean that won""",
    exact_maximum=Twin(
        code=Code(_exact_maximum, _runs, _loss).given(moves=lambda samples, size, bound: 0.0),
        default_pair=_one_sample(1.0, [0.5, 0.0, 1.0, -1.0, 0.0]),
    ),
    half_sensitivity=Twin(code=_CODE.given(moves=lambda samples, size, bound: bound / size)),
    not_clipped=Twin(
        code=_CODE.given(cut=lambda data, size, per_group, bound: split(data, size, per_group, math.inf)),
        default_pair=_one_sample(9.0, [-3.0, 3.0, 3.0, 3.0, 0.0]),
    ),
    sensitivity_of_all=Twin(
        code=_CODE.given(moves=lambda samples, size, bound: 2.0 * bound / samples),
        default_pair=([1.0, 0.5, *[0.0] * 4, *GROUP], [-2.0, 0.5, *[0.0] * 4, *GROUP]),
    ),
    small_subset=Twin(
        code=_CODE.given(cut=_with_rest),
        default_pair=([0.0, 1.0, 1.0, 0.0, 0.0, 0.0, *GROUP, 3.0], [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, *GROUP, -3.0]),
    ),
    groups_overlap=Twin(
        code=_CODE.given(cut=_overlapping), default_pair=([3.0, -3.0, *[0.0] * 10], [-3.0, -3.0, *[0.0] * 10])
    ),
    noisy_value=Harmless(code=Code(_noisy_value, _noisy_value_runs, _noisy_value_loss)),
)


class TwoStages(NamedTuple):
    """The means to choose by and those to average, group by group, and the noise of the choice and of the average."""

    groups: list[Reals]
    answers: list[Reals]
    choice: float
    last: float


def _plan(
    data: Sample,
    epsilon: float,
    size: int,
    per_group: int,
    bound: float,
    budgets: tuple[float, float] = (0.5, 0.5),
    of_all: bool = False,
    clip_answer: bool = True,
) -> TwoStages:
    """The two stages have the shares `budgets` of epsilon; a mistake is another way to answer in the last one."""
    groups = split(data, size, per_group, bound)
    answers = groups if clip_answer else split(data, size, per_group, math.inf)
    samples = len(data) if of_all else size * len(groups)
    choice, last = (replaced(len(data), taken, bound) / epsilon for taken in (size, samples))
    return TwoStages(groups, answers, choice / budgets[0], last / budgets[1] if budgets[1] else 0.0)


def _average_runs(data: Sample, runs: int, rng: Rng, **given: Any) -> Reals:
    groups, answers, choice, last = _plan(data, **given)
    places = chosen(groups, choice, runs, rng)[0]
    released = np.empty((len(groups) + 1, runs))
    released[:-1] = places
    released[-1] = laplace(rng, last, runs)
    for means, picks in zip(answers, places, strict=True):
        released[-1] += means[picks] / len(groups)
    return released.T


def _average_loss(first: Sample, second: Sample, **given: Any) -> float:
    """For every choice: its log ratio, and the whole shift of the average over it, which Laplace tails show."""
    one, other = _plan(first, **given), _plan(second, **given)
    p, q = (choices(plan.groups, one.choice) for plan in (one, other))
    most = 0.0
    for places in itertools.product(*(range(len(group)) for group in one.groups)):
        here, there = (math.prod(law[j] for law, j in zip(side, places, strict=True)) for side in (p, q))
        means = zip(one.answers, other.answers, places, strict=True)
        moved = sum(float(y[j] - x[j]) for x, y, j in means) / len(places)
        shown = abs(moved) / one.last if one.last else math.inf if moved else 0.0
        most = max(most, abs(float(log_ratios(np.array(here), np.array(there)))) + shown)
    return most


def _select_and_average(data: Sample, rng: Rng, **given: Any) -> tuple[float, ...]:
    groups, answers, choice, last = _plan(data, **given)
    picks = [largest(group, choice, rng) for group in groups]
    average = sum(float(group[pick]) for group, pick in zip(answers, picks, strict=True)) / len(groups)
    return (*map(float, picks), average + (rng.laplace(scale=last) if last else 0.0))


_AVERAGE = Code(_select_and_average, _average_runs, _average_loss)

select_and_average = in_room(
    name="select_and_average",
    title="The average over the subsets that were chosen",
    source=Source(LECTURE, PAPER),
    formula=(
        "clip the samples; of every group the subset of the largest mean after Lap(2 bound / (size epsilon / 2)); "
        "then the average of the chosen means plus Lap(2 bound / (size groups epsilon / 2))"
    ),
    neighbours="samples of the same size that differ in one value",
    code=_AVERAGE,
    parameters=(
        Parameter("epsilon", 1.0, "nats", "the claim, half of it for the choice"),
        SIZE,
        PER_GROUP,
        BOUND,
    ),
    default_pair=([3.0, 3.0, *[0.0] * 4, *GROUP], [3.0, -3.0, *[0.0] * 4, *GROUP]),
).with_twins(
    """final_answer_exact: The last query answered without noise
        that nobody adapts to the last answer saves the generalisation, not the privacy: it is exact
        the choice as in select_subsets at epsilon; then the average of the chosen means as it is
    budget_spent_twice: The whole epsilon for the choice, and again for the average
        a choice at epsilon and then an answer at epsilon compose to 2 epsilon
        as select_and_average with Lap(2 bound / (size epsilon)) and Lap(2 bound / (size groups epsilon))
    average_of_all: The noise of an average of all samples
        the average is over the chosen subsets only, so a sample in one weighs per_group times as much
        as select_and_average with Lap(2 bound / (n epsilon / 2)) on the average, n the number of all samples
    final_answer_unclipped: The average taken over the samples as they are
        only the choice saw clipped samples: from 15 to -15 one moves the average five times as far as 3 to -3
        as select_and_average, but the average is over the samples before clipping""",
    final_answer_exact=Twin(code=_AVERAGE.given(budgets=(1.0, 0.0))),
    budget_spent_twice=Twin(code=_AVERAGE.given(budgets=(1.0, 1.0))),
    average_of_all=Twin(code=_AVERAGE.given(of_all=True)),
    final_answer_unclipped=Twin(
        code=_AVERAGE.given(clip_answer=False),
        default_pair=([3.0, 15.0, *[0.0] * 4, *GROUP], [3.0, -15.0, *[0.0] * 4, *GROUP]),
    ),
)
