"""Mechanisms on records, for who counts as one step: a member of disjoint parts, a household, a replaced record."""

import math
from functools import partial

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.composition.counts import in_room
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around_each, centred, centred_each
from dpaudit.catalogue.promises import EPSILON, at_least_one, pure_if_added_or_removed, pure_if_replaced

Members = list[list[int]]

SARKAR = "Sarkar, notes 003"
BOOK = "Dwork & Roth 2014, The algorithmic foundations of differential privacy"


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
    parameters=(EPSILON, Parameter("parts", 3, "parts", "how many there are", at_least_one)),
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
    parameters=(EPSILON, Parameter("size", 3, "people", "the most that a household counts for", at_least_one)),
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
    parameters=(EPSILON, Parameter("bins", 3, "values", "how many there are", at_least_one)),
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
