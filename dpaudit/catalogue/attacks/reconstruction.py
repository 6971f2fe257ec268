"""Reconstruction: secret bits from many counts over public subsets, by least squares and by a linear program."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from dpaudit.base.arrays import Bools, Reals
from dpaudit.catalogue.attacks.attack import Attack
from dpaudit.catalogue.entry import Entry, Source
from dpaudit.catalogue.releases.subsets import noisy_subset_counts, subsets
from dpaudit.data import AdjacentPair

Decoder = Callable[[Reals, int], Bools]

SARKAR = "Sarkar, notes 003, 'Aggregate functions' (data reconstruction attack)"
PEOPLE, QUERIES = 24, 72


def least_squares(counts: Reals, people: int) -> Bools:
    """The bits whose counts come nearest to the published ones in squares, rounded: (run, person).

    >>> least_squares((subsets(4, 8) @ [1, 0, 1, 1])[None], 4).astype(int)
    array([[1, 0, 1, 1]])
    """
    return np.asarray(counts @ _inverse(people, counts.shape[1]) > 0.5)


@lru_cache(maxsize=64)
def _inverse(people: int, queries: int) -> Reals:
    return np.linalg.pinv(subsets(people, queries).astype(float)).T


def linear_program(counts: Reals, people: int) -> Bools:
    """The bits whose counts come nearest to the published ones in absolute differences, rounded: (run, person).

    A linear program over numbers in [0, 1] (Dwork, McSherry & Talwar 2007, The price of privacy and the limits of LP
    decoding); it bears a few counts that are far off, which squares do not.
    """
    solved: dict[bytes, Bools] = {}
    for row in counts:
        key = np.asarray(row, float).tobytes()
        if key not in solved:  # what draws nothing publishes the same in every run
            solved[key] = _solve(np.asarray(row, float), people)
    return np.array([solved[np.asarray(row, float).tobytes()] for row in counts])


def _solve(counts: Reals, people: int) -> Bools:
    from scipy.optimize import linprog

    queries = len(counts)
    chosen, slack = subsets(people, queries).astype(float), np.eye(queries)
    solution = linprog(  # the variables: a number for each person, then the difference of each count
        np.concatenate([np.zeros(people), np.ones(queries)]),
        A_ub=np.block([[chosen, -slack], [-chosen, -slack]]),
        b_ub=np.concatenate([counts, -counts]),
        bounds=[(0.0, 1.0)] * people + [(0.0, None)] * queries,
        method="highs",
    )
    assert solution.x is not None  # the differences are free, so there always is a solution
    return np.asarray(solution.x[:people] > 0.5)


def fraction_recovered(decoder: Decoder, entry: Entry, secret: Sequence[int], runs: int, seed: int) -> float:
    """The fraction of all secret bits that the decoder finds from the release, over `runs` runs."""
    outputs = entry.open().call(secret, runs, np.random.Generator(np.random.SFC64(seed)))
    return float(np.mean(decoder(np.asarray(outputs, float), len(secret)) == np.asarray(secret, bool)))


def release(people: int, queries: int, epsilon: float = 1.0) -> Entry:
    """The noisy counts over `queries` subsets; its twins are those of the catalogue."""
    return noisy_subset_counts.with_parameters({"queries": queries, "epsilon": epsilon})


SECRET = [int(bit) for bit in np.random.default_rng(2003).integers(0, 2, PEOPLE)]
_TARGET = SECRET.index(1)
_PAIR = AdjacentPair(
    SECRET, [0 if place == _TARGET else bit for place, bit in enumerate(SECRET)], name="the target's bit is 1, or 0"
)


by_least_squares = Attack(
    name="reconstruction_by_least_squares",
    title="Reconstruction of 24 bits from 72 counts by least squares",
    source=Source(SARKAR, "Dwork & Yekhanin 2008, New efficient attacks on statistical disclosure control mechanisms"),
    formula="the bits x that make the sum of (A x - counts)^2 smallest, rounded; the attacker says the target's bit",
    without=release(PEOPLE, QUERIES).exact,
    private=release(PEOPLE, QUERIES),
    pair=_PAIR,
    guess=lambda counts: least_squares(np.asarray(counts, float), PEOPLE)[:, _TARGET],
)
by_linear_program = Attack(
    name="reconstruction_by_linear_program",
    title="Reconstruction of 24 bits from 72 counts by a linear program",
    source=Source(SARKAR, "Dinur & Nissim 2003, Revealing information while preserving privacy"),
    formula="the x in [0, 1] that make the sum of |A x - counts| smallest, rounded; the attacker says the target's bit",
    without=release(PEOPLE, QUERIES).exact,
    private=release(PEOPLE, QUERIES),
    pair=_PAIR,
    guess=lambda counts: linear_program(np.asarray(counts, float), PEOPLE)[:, _TARGET],
    runs=200,
)
