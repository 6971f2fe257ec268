"""Composition: several releases as one transcript.

Who counts as one step (a person, a group, a record that is replaced) and what may be done to a release afterwards
belong here too: they are the rules by which claims are put together.
"""

import math
from functools import partial

import numpy as np

from dpaudit.base.arrays import Integers, Reals
from dpaudit.catalogue.composition.counts import (
    advanced_counts,
    averaged_count,
    composed_counts,
    composed_gaussians,
    halving_budget,
    in_room,
    of_answers,
    sampled_counts,
)
from dpaudit.catalogue.composition.transcripts import leaky_responses, noisy_bisection, repeated_response, sparse_twice
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around, around_each, centred, centred_each, laplace
from dpaudit.catalogue.promises import (
    BOOK,
    EPSILON,
    SARKAR,
    per_unit,
    pure_if_added_or_removed,
    pure_if_replaced,
    unbounded,
)
from dpaudit.losses.distribution import largest_log_ratio

Members = list[list[int]]


def _parallel_counts(data: Members, rng: Rng, epsilon: float, parts: int) -> tuple[float, ...]:
    counts = [0] * parts
    for belongs in data:
        counts[belongs[0]] += 1
    return tuple(count + rng.laplace(scale=1.0 / epsilon) for count in counts)


def _exact_total(data: Members, rng: Rng, epsilon: float, parts: int) -> tuple[float, ...]:
    return (float(len(data)), *_parallel_counts(data, rng, epsilon, parts))


def _total_of_noisy(data: Members, rng: Rng, epsilon: float, parts: int) -> tuple[float, ...]:
    noisy = _parallel_counts(data, rng, epsilon, parts)
    return (sum(noisy), *noisy)


def _members(data: Members, parts: int, overlap: bool = False, **_: float) -> Reals:
    counted = [part for belongs in data for part in (belongs if overlap else belongs[:1])]
    return np.bincount(counted, minlength=parts).astype(float)


def _exact_total_runs(data: Members, runs: int, rng: Rng, epsilon: float, parts: int) -> Reals:
    noisy = around_each(_members(data, parts), 1.0 / epsilon, runs, rng)
    return np.vstack([np.full((1, runs), float(len(data))), noisy.T]).T


def _total_of_noisy_runs(data: Members, runs: int, rng: Rng, epsilon: float, parts: int) -> Reals:
    noisy = around_each(_members(data, parts), 1.0 / epsilon, runs, rng).T
    return np.vstack([noisy.sum(axis=0), noisy]).T


def _parallel_loss(first: Members, second: Members, epsilon: float, parts: int) -> float:
    return epsilon * float(np.abs(_members(first, parts) - _members(second, parts)).sum())


def _exact_total_loss(first: Members, second: Members, epsilon: float, parts: int) -> float:
    return math.inf if len(first) != len(second) else _parallel_loss(first, second, epsilon, parts)


def _parallel(*, overlap: bool) -> Code:
    return centred_each(partial(_members, overlap=overlap), lambda data, epsilon, parts: 1.0 / epsilon)


parallel_counts = in_room(
    name="parallel_counts",
    title="A noisy count for each of several disjoint parts",
    source=Source(
        "Bassi 2019, notes 001, 'Preliminaries (cont.)' (m disjoint counting queries)",
        "McSherry 2009, Privacy integrated queries (parallel composition)",
    ),
    formula="each member counts in the first part on his list; every count plus its own draw of Lap(1 / epsilon)",
    neighbours="lists of members, one of them added or removed; a member is the list of the parts he belongs to",
    code=_parallel(overlap=False),
    parameters=(EPSILON, Parameter("parts", 3, "parts", "how many there are")),
    promise=pure_if_added_or_removed,
    default_pair=([[0], [1], [2], [0, 1]], [[0], [1], [2]]),
).with_twins(
    """parts_overlap: Parallel composition claimed for parts that overlap
        a member of two parts moves two counts, and each of them costs epsilon
        each member counts in every part on his list; every count plus its own draw of Lap(1 / epsilon)
    exact_total: Noisy counts of the parts beside their exact total
        a member who joins or leaves moves the total, and no noise hides it
        the number of members, and then the noisy counts of the parts
    total_of_noisy: Noisy counts of the parts beside their sum
        the total is computed from what is published anyway: post-processing, which costs nothing
        the sum of the noisy counts of the parts, and then these counts""",
    parts_overlap=Twin(code=_parallel(overlap=True)),
    exact_total=Twin(code=Code(_exact_total, _exact_total_runs, _exact_total_loss)),
    total_of_noisy=Harmless(code=Code(_total_of_noisy, _total_of_noisy_runs, _parallel_loss)),
)


def _people(data: list[int], size: int, enforced: bool, **_: float) -> float:
    return float(sum(min(household, size) if enforced else household for household in data))


def _group(*, grouped: bool = True, enforced: bool = True) -> Code:
    return centred(
        partial(_people, enforced=enforced), lambda data, epsilon, size: (size if grouped else 1.0) / epsilon
    )


group_count = in_room(
    name="group_count",
    title="A noisy count of people that protects whole households",
    source=Source(f"{SARKAR}, 'What about privacy other than one person?'", f"{BOOK}, theorem 2.2"),
    formula="the number of people, at most `size` of each household, plus one draw of Lap(size / epsilon)",
    neighbours="lists of households by their number of people, one household added or removed",
    code=_group(),
    parameters=(EPSILON, Parameter("size", 3, "people", "the most that a household counts for")),
    promise=pure_if_added_or_removed,
    default_pair=([2, 1, 3, 3], [2, 1, 3]),
).with_twins(
    """noise_of_one_person: A count that protects one person, claimed for households
        epsilon-DP for one person is no more than k epsilon-DP for a group of k
        the number of people, at most `size` of each household, plus one draw of Lap(1 / epsilon)
    size_not_enforced: A count for households of limited size, with the limit taken on trust
        nothing cuts a larger household down to the size that the noise was made for
        the number of people, all of each household, plus one draw of Lap(size / epsilon)""",
    noise_of_one_person=Twin(code=_group(grouped=False)),
    size_not_enforced=Twin(code=_group(enforced=False), default_pair=([2, 1, 7], [2, 1])),
)


def _bins(moved: float) -> Code:
    return centred_each(
        lambda data, bins, **_: np.bincount(data, minlength=bins).astype(float),
        lambda data, epsilon, bins: moved / epsilon,
    )


replaced_histogram = in_room(
    name="replaced_histogram",
    title="A histogram that hides which value a person has",
    source=Source(f"{SARKAR}, 'Hiding values'", f"{BOOK}, section 3.3; Kifer & Machanavajjhala 2011 (bounded DP)"),
    formula="the number of records of each value plus its own draw of Lap(2 / epsilon)",
    neighbours="lists of values in 0, ..., bins - 1, one of them replaced by another",
    code=_bins(2.0),
    parameters=(EPSILON, Parameter("bins", 3, "values", "how many there are")),
    promise=pure_if_replaced,
    default_pair=([0, 0, 1, 2], [0, 1, 1, 2]),
).with_twins(
    """noise_for_removal: A histogram with the noise of remove-one, claimed for replace-one
        a record that is replaced leaves one bin and enters another: two counts move, each at epsilon
        the number of records of each value plus its own draw of Lap(1 / epsilon)
    one_bin: One count with the noise of remove-one, claimed for replace-one
        a record that is replaced moves a single count by at most 1, so here nothing is to be doubled
        the number of records of value 0 plus one draw of Lap(1 / epsilon)""",
    noise_for_removal=Twin(code=_bins(1.0)),
    one_bin=Harmless(code=centred(lambda data, **_: data.count(0), lambda data, epsilon, bins: 1.0 / epsilon)),
)


PAPER = "Dwork & Roth 2014, The algorithmic foundations of differential privacy, proposition 2.1"
SOURCE = Source("Bassi 2019, notes 001, 'Post-processing'", PAPER)
NEIGHBOURS = "counts at most 1 apart"


def _nonnegative_count(data: int, rng: Rng, epsilon: float) -> float:
    return max(0.0, data + rng.laplace(scale=1.0 / epsilon))


def _drawn_again(data: int, rng: Rng, epsilon: float) -> float:
    return _draws_counted(data, rng, epsilon)[0]


def _draws_counted(data: int, rng: Rng, epsilon: float) -> tuple[float, float]:
    draws = 0
    while True:
        draws += 1
        noisy = data + rng.laplace(scale=1.0 / epsilon)
        if noisy >= 0.0:
            return noisy, float(draws)


def _nonnegative_runs(data: int, runs: int, rng: Rng, epsilon: float) -> Reals:
    return np.maximum(around(data, 1.0 / epsilon, runs, rng), 0.0)


def _drawn_again_runs(data: int, runs: int, rng: Rng, epsilon: float) -> Reals:
    return _draws_counted_runs(data, runs, rng, epsilon)[:, 0]


def _draws_counted_runs(data: int, runs: int, rng: Rng, epsilon: float) -> Reals:
    """The first draw that is not negative, and its number."""
    noisy, draws = np.empty(runs), np.zeros(runs)
    left = np.arange(runs)
    while len(left):
        tried = around(data, 1.0 / epsilon, len(left), rng)
        noisy[left] = tried
        draws[left] += 1.0
        left = left[tried < 0.0]
    return np.stack([noisy, draws], axis=1)


def _drawn_again_loss(first: int, second: int, epsilon: float) -> float:
    """At 0 the smaller count is likelier by the Laplace ratio, and once more by what the larger one need not repeat."""
    chances = sorted(1.0 - math.exp(-epsilon * count) / 2.0 for count in (first, second))
    return epsilon * abs(first - second) + math.log(chances[1] / chances[0])


nonnegative_count = of_answers(
    name="nonnegative_count",
    title="A noisy count, with 0 in place of what is negative",
    source=SOURCE,
    formula="the larger of 0 and the count plus one draw of Lap(1 / epsilon)",
    neighbours=NEIGHBOURS,
    code=Code(_nonnegative_count, _nonnegative_runs, per_unit),
    parameters=(EPSILON,),
    default_pair=(1, 0),
).with_twins(
    """drawn_again: A noisy count, drawn again until it is not negative
        the chance of having to draw again depends on the count, and so the density is divided by another number: \
            that adds up to ln 2 to the loss
        the count plus a draw of Lap(1 / epsilon), anew until the sum is at least 0
    draws_counted: A noisy count, drawn again until it is not negative, with the number of draws
        each draw that was thrown away tells that the count is small, and there is no end to their number
        as drawn again, and beside it how many draws there were""",
    drawn_again=Twin(code=Code(_drawn_again, _drawn_again_runs, _drawn_again_loss)),
    draws_counted=Twin(code=Code(_draws_counted, _draws_counted_runs, unbounded)),
)


def _rounded_count(data: int, rng: Rng, epsilon: float, least: int) -> int:
    noisy = round(data + rng.laplace(scale=1.0 / epsilon))
    return noisy if noisy >= least else 0


def _suppressed_by_truth(data: int, rng: Rng, epsilon: float, least: int) -> int:
    return round(data + rng.laplace(scale=1.0 / epsilon)) if data >= least else 0


def _whole(data: int, runs: int, rng: Rng, epsilon: float) -> Integers:
    return np.rint(laplace(rng, 1.0 / epsilon, runs)).astype(np.int64) + data


def _rounded_runs(data: int, runs: int, rng: Rng, epsilon: float, least: int) -> Integers:
    noisy = _whole(data, runs, rng, epsilon)
    return np.where(noisy < least, 0, noisy)


def _rounded_to_truth_runs(data: int, runs: int, rng: Rng, epsilon: float, least: int) -> Integers:
    noisy = laplace(rng, 1.0 / epsilon, runs).astype(np.int64) + data  # cut off, towards 0
    return np.where(noisy < least, 0, noisy)


def _suppressed_by_truth_runs(data: int, runs: int, rng: Rng, epsilon: float, least: int) -> Integers:
    return np.zeros(runs, np.int64) if data < least else _whole(data, runs, rng, epsilon)


def _rounded_to_truth_loss(first: int, second: int, epsilon: float, least: int) -> float:
    """Beyond both counts all whole numbers have one ratio, so the cells up to there are enough."""
    published = np.arange(least, max(first, second, least) + 2)

    def law(count: int) -> Reals:
        moved = np.abs(published - count)
        cells = np.where(moved == 0, 1.0, 0.5) * np.exp(-epsilon * moved) * -math.expm1(-epsilon)
        beyond = math.exp(-epsilon * abs(least - count)) / 2.0
        below = 1.0 - beyond if least > count else beyond * math.exp(-epsilon)
        return np.append(cells, below)

    return largest_log_ratio(law(first), law(second))


def _suppressed_by_truth_loss(first: int, second: int, epsilon: float, least: int) -> float:
    if (first < least) != (second < least):
        return math.inf
    return epsilon * abs(first - second) if first >= least else 0.0


rounded_count = of_answers(
    name="rounded_count",
    title="A noisy count, rounded, and small ones suppressed",
    source=SOURCE,
    formula="the count plus one draw of Lap(1 / epsilon), rounded to a whole number; 0 where that is below `least`",
    neighbours=NEIGHBOURS,
    code=Code(_rounded_count, _rounded_runs, per_unit),
    parameters=(EPSILON, Parameter("least", 5, "people", "smaller noisy counts are given as 0")),
    default_pair=(10, 9),
).with_twins(
    """rounded_to_truth: A noisy count, rounded towards the truth
        noise cut off towards 0 leaves the true count as it is on an interval twice as long as any other has: \
            epsilon + ln 2
        the count plus the whole part of one draw of Lap(1 / epsilon), cut off towards 0
    suppressed_by_truth: A noisy count, suppressed where the true count is small
        whether it is suppressed is an exact comparison: a count just below the limit is never published
        0 where the true count is below `least`; else the count plus one draw of Lap(1 / epsilon), rounded""",
    rounded_to_truth=Twin(
        code=Code(sampler=_rounded_to_truth_runs, loss=_rounded_to_truth_loss), edit={"round(data + ": "data + int("}
    ),
    suppressed_by_truth=Twin(
        code=Code(_suppressed_by_truth, _suppressed_by_truth_runs, _suppressed_by_truth_loss), default_pair=(5, 4)
    ),
)


ENTRIES = (
    *(composed_counts, halving_budget, averaged_count, noisy_bisection, repeated_response, leaky_responses),
    *(advanced_counts, composed_gaussians, parallel_counts, sampled_counts, nonnegative_count, rounded_count),
    *(group_count, replaced_histogram, sparse_twice),
)
