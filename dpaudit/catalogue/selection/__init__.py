"""Selection: the best of several candidates.

Here: Report Noisy Max over counts (which is the largest, not how large any is) and permute-and-flip, a coin for each.
"""

import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Places, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import BASSI, EPSILON, doubled
from dpaudit.catalogue.selection.races import (
    BOTH,
    between,
    by_law,
    compared,
    in_room,
    of_answers,
    raced,
    rate,
    report_noisy_max_exponential,
    report_noisy_max_general,
    report_noisy_max_gumbel,
)
from dpaudit.catalogue.selection.utilities import (
    UTILITY,
    exponential_mechanism,
    exponential_mechanism_learning,
    most_common,
    private_median,
)
from dpaudit.losses.comparisons import below, winning
from dpaudit.losses.released import exponential, flip_in_order, flip_one_coin, releasing
from dpaudit.losses.released import permute_and_flip as law_of

HEAD_START = Parameter("head_start", 1.0, "counts", "what the first count is given, known to all", validate.real)


def _report_noisy_max(data: list[float], rng: Rng, epsilon: float) -> int:
    noisy = [answer + rng.laplace(scale=1.0 / epsilon) for answer in data]
    return noisy.index(max(noisy))


def _scale(epsilon: float) -> float:
    return 1.0 / epsilon


_INDEX = raced(laplace, _scale)


def _recycled_noise(data: list[float], rng: Rng, epsilon: float) -> int:
    draws = [rng.laplace(scale=1.0 / epsilon), rng.laplace(scale=1.0 / epsilon)]
    noisy = [answer + draws[index % 2] for index, answer in enumerate(data)]
    return noisy.index(max(noisy))


def _best_of_each_draw(data: list[float]) -> list[int]:
    """The places that can win: of the answers that share a draw, the first of the largest."""
    return [start + 2 * int(np.argmax(data[start::2])) for start in (0, 1)]


def _recycled_noise_runs(data: list[float], runs: int, rng: Rng, epsilon: float) -> Places:
    places = _best_of_each_draw(data)
    return np.array(places)[_INDEX([data[place] for place in places], runs, rng, epsilon=epsilon)]


def _recycled_noise_law(data: list[float], epsilon: float) -> Reals:
    places, chances = _best_of_each_draw(data), np.zeros(len(data))
    chances[places] = winning(np.array([float(data[place]) for place in places]), 1.0 / epsilon)
    return chances


def _noise_on_the_leader(data: list[float], rng: Rng, epsilon: float) -> int:
    leader = data.index(max(data))
    noisy = list(data)
    noisy[leader] += rng.laplace(scale=1.0 / epsilon)
    return noisy.index(max(noisy))


def _leader_and_runner_up(data: list[float]) -> tuple[int, int]:
    leader = int(np.argmax(data))
    return leader, int(np.argmax([-math.inf if j == leader else answer for j, answer in enumerate(data)]))


def _noise_on_the_leader_runs(data: list[float], runs: int, rng: Rng, epsilon: float) -> Places:
    leader, runner_up = _leader_and_runner_up(data)
    return np.where(data[leader] + laplace(rng, 1.0 / epsilon, runs) > data[runner_up], leader, runner_up)


def _noise_on_the_leader_law(data: list[float], epsilon: float) -> Reals:
    leader, runner_up = _leader_and_runner_up(data)
    falls = float(below(float(data[runner_up] - data[leader]), 1.0 / epsilon))
    chances = np.zeros(len(data))
    chances[leader], chances[runner_up] = 1.0 - falls, falls
    return chances


def _grouped_runs(data: list[float], runs: int, rng: Rng, epsilon: float) -> Places:
    return np.asarray(_INDEX(data, runs, rng, epsilon=epsilon) // 2)


def _grouped_law(data: list[float], epsilon: float) -> Reals:
    return np.add.reduceat(winning(np.asarray(data, float), 1.0 / epsilon), np.arange(0, len(data), 2))


report_noisy_max = in_room(
    name="report_noisy_max",
    title="Report Noisy Max over counts",
    source=Source(f"{BASSI}, 'Report Noisy Max'", "Dwork & Roth 2014, The algorithmic foundations, claim 3.9"),
    formula="the index of the largest answer after each got its own draw of Lap(1 / epsilon)",
    neighbours="counts that one person raises, or lowers, by at most 1 each: all in the same direction",
    adjacency=("up", "down"),
    code=Code(_report_noisy_max, _INDEX, compared(of_answers(winning, _scale))),
    parameters=(EPSILON,),
    default_pair=([1, 1, 1, 1, 0], [0, 0, 0, 0, 0]),
).with_twins(
    """half_noise: Report Noisy Max with noise of half the scale
        with Lap(1 / (2 epsilon)) a margin of 1 between two answers is worth 2 epsilon, not epsilon
        the index of the largest answer after each got its own draw of Lap(1 / (2 epsilon))
    replace_one: Report Noisy Max over counts, claimed for replacing one person
        one count can rise while another falls, so a margin moves by 2: the proof needs all to move one way
    value_released: Report Noisy Max that gives away the noisy count with the index
        a low value says that all noisy counts were low: each of them costs epsilon, as if all were released
        the index of the largest noisy answer, and that noisy answer
    recycled_noise: Report Noisy Max that uses two draws of noise over and over
        counts that share a draw are compared exactly: only the largest of them can win
        the index of the largest answer after they got, in turn, one of two draws of Lap(1 / epsilon)
    noise_on_the_leader: Report Noisy Max with noise on the largest count only
        only the exact leader and the exact runner-up can be reported: the others never
        the index of the largest answer after the largest alone got a draw of Lap(1 / epsilon)
    grouped: Report Noisy Max that says only in which pair of counts the winner is
        the group is computed from the index, and post-processing costs nothing
        half the index, rounded down, of the largest answer after each got its own draw of Lap(1 / epsilon)
    head_start: Report Noisy Max with a head start for the first count
        the head start does not depend on the data, so every count still moves by at most 1
        the index of the largest after each got a draw of Lap(1 / epsilon), and the first a constant besides""",
    half_noise=Twin(edit={"1.0 / epsilon": "1.0 / (2.0 * epsilon)"}, at=doubled),
    replace_one=Twin(
        default_pair=([0, 1, 1, 1, 1], [1, 0, 0, 0, 0]),
        neighbours="counts after one person is replaced by another: some rise by 1 and others fall by 1",
        adjacency=("all-differ",),
    ),
    value_released=Twin(
        code=Code(sampler=raced(laplace, _scale, "both"), loss=between(partial(releasing, index=True), _scale)),
        edit=BOTH,
        default_pair=([0, 0, 0, 0], [1, 1, 1, 1]),
    ),
    recycled_noise=Twin(
        code=Code(_recycled_noise, _recycled_noise_runs, compared(_recycled_noise_law)),
        default_pair=([0, 0, 1, 1], [0, 0, 0, 0]),
    ),
    noise_on_the_leader=Twin(
        code=Code(_noise_on_the_leader, _noise_on_the_leader_runs, compared(_noise_on_the_leader_law)),
        default_pair=([0, 0, 1, 1], [0, 0, 0, 0]),
    ),
    grouped=Harmless(
        code=Code(sampler=_grouped_runs, loss=compared(_grouped_law)), edit={"(max(noisy))": "(max(noisy)) // 2"}
    ),
    head_start=Harmless(on=lambda data, head_start, **_: [data[0] + head_start, *data[1:]], parameters=(HEAD_START,)),
)


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


def _runs(
    data: Utilities, runs: int, rng: Rng, epsilon: float, sensitivity: float, *, units: float = 0.5, one: bool = False
) -> Places:
    """In random order is: at independent uniform times, and the earliest of the heads wins; `one` coin for all."""
    coin = rng.random(runs) if one else None
    earliest, winner = np.full(runs, 2.0), np.zeros(runs, np.intp)
    for candidate, chance in enumerate(_heads(data, units * epsilon / sensitivity)):
        time = rng.random(runs)
        first = time < earliest
        if chance < 1.0:
            first &= (rng.random(runs) if coin is None else coin) < chance
        np.putmask(earliest, first, time)
        np.putmask(winner, first, candidate)
    return winner


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
    """factor_two_missing: Permute-and-flip without the 2 in the exponent
        the best utility and another one can move apart by 2 sensitivities: e^(2 epsilon) in one coin
        as permute-and-flip, with coins of probability e^(epsilon (u(r) - best) / sensitivity)
    no_permutation: Flip without permute: always from the first candidate to the last
        where the first candidate is the best its coin shows heads, and no other can ever be reported
        as permute-and-flip, in the order of the candidates
    one_coin: Permute-and-flip with one coin for all candidates
        all that lie behind win or lose together, however many: a leader that falls back among them loses its \
            lead, and shares with all of them what is left
        as permute-and-flip, with one uniform draw compared with every candidate's probability
    drawn_again: Permute-and-flip that puts refused candidates back
        candidates drawn with replacement until one is accepted are the exponential mechanism
        a candidate drawn uniformly, with replacement, until its coin shows heads""",
    factor_two_missing=Twin(
        code=Code(sampler=partial(_runs, units=1.0), loss=compared(of_answers(law_of, rate(1.0)))),
        edit={"(2.0 * sensitivity)": "sensitivity"},
        default_pair=([0, 1, 1, 1, 1], [1, 0, 0, 0, 0]),
    ),
    no_permutation=Twin(
        code=Code(sampler=_no_permutation_runs, loss=compared(of_answers(flip_in_order, rate(0.5)))),
        edit={"map(int, rng.permutation(len(data)))": "range(len(data))"},
        default_pair=([1, 0, 0], [0, 1, 0]),
    ),
    one_coin=Twin(
        code=Code(_one_coin, partial(_runs, one=True), compared(of_answers(flip_one_coin, rate(0.5)))),
        default_pair=([0, 0, -2, -2, -2], [-1, 1, -1, -1, -1]),
    ),
    drawn_again=Harmless(code=by_law(of_answers(exponential, rate(0.5)), _drawn_again)),
)


ENTRIES = (
    *(report_noisy_max, report_noisy_max_general, report_noisy_max_exponential, report_noisy_max_gumbel),
    *(permute_and_flip, exponential_mechanism, most_common, private_median, exponential_mechanism_learning),
)
