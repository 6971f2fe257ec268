"""Permute-and-flip: the candidates in random order, a coin for each, until one shows heads."""

import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from dpaudit.arrays import Places, Reals
from dpaudit.catalogue.entry import Code, Harmless, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON
from dpaudit.catalogue.selection.races import by_law, compared, in_room, of_answers, rate
from dpaudit.catalogue.selection.utilities import UTILITY
from dpaudit.losses.selecting import exponential, flip_in_order, flip_one_coin
from dpaudit.losses.selecting import permute_and_flip as law_of

Utilities = list[float]


def _heads(data: Utilities, rate: float) -> Reals:
    utilities = np.asarray(data, float)
    return np.asarray(np.exp(rate * (utilities - utilities.max())))


def _first_heads(order: Iterable[int], data: Utilities, rng: Rng, rate: float) -> int:
    for candidate in order:
        if rng.random() < math.exp(rate * (data[candidate] - max(data))):
            break  # at the best candidate, if not before
    return candidate


def _permute_and_flip(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    return _first_heads(map(int, rng.permutation(len(data))), data, rng, epsilon / (2.0 * sensitivity))


def _runs(data: Utilities, runs: int, rng: Rng, epsilon: float, sensitivity: float, *, units: float = 0.5) -> Places:
    """In random order is: at independent uniform times, and the earliest of the heads wins."""
    earliest, winner = np.full(runs, 2.0), np.zeros(runs, np.intp)
    for candidate, chance in enumerate(_heads(data, units * epsilon / sensitivity)):
        time = rng.random(runs)
        first = time < earliest
        if chance < 1.0:
            first &= rng.random(runs) < chance
        np.putmask(earliest, first, time)
        np.putmask(winner, first, candidate)
    return winner


def _factor_two_missing(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    return _first_heads(map(int, rng.permutation(len(data))), data, rng, epsilon / sensitivity)


def _no_permutation(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    return _first_heads(range(len(data)), data, rng, epsilon / (2.0 * sensitivity))


def _no_permutation_runs(data: Utilities, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Places:
    winner = np.full(runs, -1, np.intp)
    for candidate, chance in enumerate(_heads(data, epsilon / (2.0 * sensitivity))):
        left = np.flatnonzero(winner < 0)
        winner[left[rng.random(len(left)) < chance]] = candidate
    return winner


def _one_coin(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    coin = rng.random()
    for candidate in map(int, rng.permutation(len(data))):
        if coin < math.exp(epsilon * (data[candidate] - max(data)) / (2.0 * sensitivity)):
            break  # at the best candidate, if not before
    return candidate


def _one_coin_runs(data: Utilities, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Places:
    coin = rng.random(runs)
    earliest, winner = np.full(runs, 2.0), np.zeros(runs, np.intp)
    for candidate, chance in enumerate(_heads(data, epsilon / (2.0 * sensitivity))):
        time = rng.random(runs)
        first = (time < earliest) & (coin < chance)
        np.putmask(earliest, first, time)
        np.putmask(winner, first, candidate)
    return winner


def _drawn_again(data: Utilities, rng: Rng, epsilon: float, sensitivity: float) -> int:
    while True:
        candidate = int(rng.integers(len(data)))
        if rng.random() < math.exp(epsilon * (data[candidate] - max(data)) / (2.0 * sensitivity)):
            return candidate


permute_and_flip = in_room(
    name="permute_and_flip",
    title="Permute-and-flip",
    source=Source(
        None, "McKenna & Sheldon 2020, Permute-and-flip: a new mechanism for differentially private selection"
    ),
    formula=(
        "the candidates in random order; the first whose coin shows heads, "
        "with probability e^(epsilon (u(r) - best) / (2 sensitivity))"
    ),
    neighbours="utilities that each move by at most `sensitivity`, in any direction",
    code=Code(_permute_and_flip, _runs, compared(of_answers(law_of, rate(0.5)))),
    parameters=(EPSILON, UTILITY),
    default_pair=([1, -1, -1, -1, -1], [0, 0, 0, 0, 0]),
).with_twins(
    factor_two_missing=Twin(
        title="Permute-and-flip without the 2 in the exponent",
        reason="the best utility and another one can move apart by 2 sensitivities: e^(2 epsilon) in one coin",
        formula="as permute-and-flip, with coins of probability e^(epsilon (u(r) - best) / sensitivity)",
        code=Code(_factor_two_missing, partial(_runs, units=1.0), compared(of_answers(law_of, rate(1.0)))),
        default_pair=([0, 1, 1, 1, 1], [1, 0, 0, 0, 0]),
    ),
    no_permutation=Twin(
        title="Flip without permute: always from the first candidate to the last",
        reason="where the first candidate is the best its coin shows heads, and no other can ever be reported",
        formula="as permute-and-flip, in the order of the candidates",
        code=Code(_no_permutation, _no_permutation_runs, compared(of_answers(flip_in_order, rate(0.5)))),
        default_pair=([1, 0, 0], [0, 1, 0]),
    ),
    one_coin=Twin(
        title="Permute-and-flip with one coin for all candidates",
        reason="all that lie behind win or lose together, however many: a leader that falls back among them "
        "loses its lead, and shares with all of them what is left",
        formula="as permute-and-flip, with one uniform draw compared with every candidate's probability",
        code=Code(_one_coin, _one_coin_runs, compared(of_answers(flip_one_coin, rate(0.5)))),
        default_pair=([0, 0, -2, -2, -2], [-1, 1, -1, -1, -1]),
    ),
    drawn_again=Harmless(
        title="Permute-and-flip that puts refused candidates back",
        reason="candidates drawn with replacement until one is accepted are the exponential mechanism",
        formula="a candidate drawn uniformly, with replacement, until its coin shows heads",
        code=by_law(_drawn_again, of_answers(exponential, rate(0.5))),
    ),
)
