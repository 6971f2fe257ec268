"""Many counts over public subsets of the people, of whom each holds one secret bit."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dpaudit.base.arrays import Integers, Reals
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, centred_each, exact
from dpaudit.catalogue.promises import EPSILON, unless_same
from dpaudit.catalogue.releases.tables import in_room

Bits = Sequence[int]

QUERIES = Parameter("queries", 6, "queries", "how many subsets are counted")
DINUR = "Dinur & Nissim 2003, Revealing information while preserving privacy"


@lru_cache(maxsize=64)
def subsets(people: int, queries: int) -> Integers:
    """The public subsets, the same for everybody: a row for each query, with a 1 for everyone it counts.

    Each holds each person with probability one half, drawn once and for all.

    >>> subsets(4, 2).shape
    (2, 4)
    """
    chosen = np.random.default_rng([people, queries]).integers(0, 2, (queries, people))
    chosen.flags.writeable = False
    return chosen


def most_queries_of_one(people: int, queries: int) -> int:
    """The l1 sensitivity: how many of the counts the person in most subsets is in.

    >>> most_queries_of_one(8, 6)
    5
    """
    return int(subsets(people, queries).sum(axis=0).max())


def _noisy(data: Bits, rng: Rng, epsilon: float, queries: int) -> tuple[float, ...]:
    scale = most_queries_of_one(len(data), queries) / epsilon
    chosen = subsets(len(data), queries)
    return tuple(sum(bit for bit, c in zip(data, row, strict=True) if c) + rng.laplace(scale=scale) for row in chosen)


def _counts(data: Bits, queries: int, **_: float) -> Reals:
    return np.asarray(subsets(len(data), queries) @ np.asarray(data), float)


def _bounded(data: Bits, rng: Rng, epsilon: float, queries: int, error: float) -> tuple[float, ...]:
    return tuple(float(count + rng.uniform(-error, error)) for count in _counts(data, queries))


def _bounded_runs(data: Bits, runs: int, rng: Rng, epsilon: float, queries: int, error: float) -> Reals:
    return _counts(data, queries) + rng.uniform(-error, error, (runs, queries))


def _flipped(data: Bits, queries: int) -> list[int]:
    """The data with another bit for the person who is in most of the subsets."""
    person = int(subsets(len(data), queries).sum(axis=0).argmax())
    return [1 - bit if place == person else bit for place, bit in enumerate(data)]


_BITS = [0, 1, 1, 0, 1, 0, 0, 1]

noisy_subset_counts = in_room(
    name="noisy_subset_counts",
    title="Counts over many subsets of the people, with noise for all of them together",
    source=Source("Sarkar, notes 003, 'Aggregate functions' (data reconstruction attack)", DINUR),
    formula="for each public subset: how many in it have the bit, plus Lap(s / epsilon); nobody is in more than s",
    neighbours="lists of bits, one a person in a public order, with one of them replaced",
    code=centred_each(
        _counts, lambda data, epsilon, queries: most_queries_of_one(len(data), queries) / epsilon, _noisy
    ),
    parameters=(EPSILON, QUERIES),
    default_pair=(_BITS, _flipped(_BITS, 6)),
).with_twins(
    """exact: Exact counts over many subsets
        as many counts as people are linear equations for all the bits
        for each public subset: how many in it have the bit
    bounded_noise: Counts over many subsets, each off by at most a little
        the noise ends, and errors well below the square root of the people leave nearly every bit to be found
        for each public subset: how many in it have the bit, plus a draw from the uniform on [-error, error]
    noise_of_one_query: Counts over many subsets, each with the noise that one alone would need
        every count is epsilon-DP by itself, and a person in five of them pays five times
        for each public subset: how many in it have the bit, plus a draw of Lap(1 / epsilon)""",
    exact=Twin(code=exact(lambda data, epsilon, queries: tuple(map(int, _counts(data, queries))))),
    bounded_noise=Twin(
        code=Code(_bounded, _bounded_runs, unless_same(lambda data, queries, **_: _counts(data, queries).tolist())),
        parameters=(Parameter("error", 1.0, "people", "the largest noise"),),
    ),
    noise_of_one_query=Twin(code=centred_each(_counts, lambda data, epsilon, queries: 1.0 / epsilon)),
)
