"""Report Noisy Max over counts: which of several counts is the largest, without saying how large any of them is."""

import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Places, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON, doubled
from dpaudit.catalogue.selection.races import between, compared, in_room, of_answers, raced
from dpaudit.losses.comparisons import below, winning
from dpaudit.losses.selecting import releasing

HEAD_START = Parameter("head_start", 1.0, "counts", "what the first count is given, known to all", validate.real)


def _report_noisy_max(data: list[float], rng: Rng, epsilon: float) -> int:
    noisy = [answer + rng.laplace(scale=1.0 / epsilon) for answer in data]
    return noisy.index(max(noisy))


def _scale(epsilon: float) -> float:
    return 1.0 / epsilon


_INDEX = raced(laplace, _scale)


def _half_noise(data: list[float], rng: Rng, epsilon: float) -> int:
    noisy = [answer + rng.laplace(scale=1.0 / (2.0 * epsilon)) for answer in data]
    return noisy.index(max(noisy))


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


def _value_released(data: list[float], rng: Rng, epsilon: float) -> dict[int, float]:
    noisy = [answer + rng.laplace(scale=1.0 / epsilon) for answer in data]
    return {noisy.index(max(noisy)): max(noisy)}


def _grouped(data: list[float], rng: Rng, epsilon: float) -> int:
    noisy = [answer + rng.laplace(scale=1.0 / epsilon) for answer in data]
    return noisy.index(max(noisy)) // 2


def _grouped_runs(data: list[float], runs: int, rng: Rng, epsilon: float) -> Places:
    return np.asarray(_INDEX(data, runs, rng, epsilon=epsilon) // 2)


def _grouped_law(data: list[float], epsilon: float) -> Reals:
    return np.add.reduceat(winning(np.asarray(data, float), 1.0 / epsilon), np.arange(0, len(data), 2))


report_noisy_max = in_room(
    name="report_noisy_max",
    title="Report Noisy Max over counts",
    source=Source(
        "Bassi 2019, notes 001, 'Report Noisy Max'", "Dwork & Roth 2014, The algorithmic foundations, claim 3.9"
    ),
    formula="the index of the largest answer after each got its own draw of Lap(1 / epsilon)",
    neighbours="counts that one person raises, or lowers, by at most 1 each: all in the same direction",
    adjacency=("up", "down"),
    code=Code(_report_noisy_max, _INDEX, compared(of_answers(winning, _scale))),
    parameters=(EPSILON,),
    default_pair=([1, 1, 1, 1, 0], [0, 0, 0, 0, 0]),
).with_twins(
    half_noise=Twin(
        title="Report Noisy Max with noise of half the scale",
        reason="with Lap(1 / (2 epsilon)) a margin of 1 between two answers is worth 2 epsilon, not epsilon",
        formula="the index of the largest answer after each got its own draw of Lap(1 / (2 epsilon))",
        code=Code(_half_noise),
        at=doubled,
    ),
    replace_one=Twin(
        title="Report Noisy Max over counts, claimed for replacing one person",
        reason="one count can rise while another falls, so a margin moves by 2: the proof needs all to move one way",
        default_pair=([0, 1, 1, 1, 1], [1, 0, 0, 0, 0]),
        neighbours="counts after one person is replaced by another: some rise by 1 and others fall by 1",
        adjacency=("all-differ",),
    ),
    value_released=Twin(
        title="Report Noisy Max that gives away the noisy count with the index",
        reason="a low value says that all noisy counts were low: each of them costs epsilon, as if all were released",
        formula="the index of the largest noisy answer, and that noisy answer",
        code=Code(_value_released, raced(laplace, _scale, "both"), between(partial(releasing, index=True), _scale)),
        default_pair=([0, 0, 0, 0], [1, 1, 1, 1]),
    ),
    recycled_noise=Twin(
        title="Report Noisy Max that uses two draws of noise over and over",
        reason="counts that share a draw are compared exactly: only the largest of them can win",
        formula="the index of the largest answer after they got, in turn, one of two draws of Lap(1 / epsilon)",
        code=Code(_recycled_noise, _recycled_noise_runs, compared(_recycled_noise_law)),
        default_pair=([0, 0, 1, 1], [0, 0, 0, 0]),
    ),
    noise_on_the_leader=Twin(
        title="Report Noisy Max with noise on the largest count only",
        reason="only the exact leader and the exact runner-up can be reported: the others never",
        formula="the index of the largest answer after the largest alone got a draw of Lap(1 / epsilon)",
        code=Code(_noise_on_the_leader, _noise_on_the_leader_runs, compared(_noise_on_the_leader_law)),
        default_pair=([0, 0, 1, 1], [0, 0, 0, 0]),
    ),
    grouped=Harmless(
        title="Report Noisy Max that says only in which pair of counts the winner is",
        reason="the group is computed from the index, and post-processing costs nothing",
        formula="half the index, rounded down, of the largest answer after each got its own draw of Lap(1 / epsilon)",
        code=Code(_grouped, _grouped_runs, compared(_grouped_law)),
    ),
    head_start=Harmless(
        title="Report Noisy Max with a head start for the first count",
        reason="the head start does not depend on the data, so every count still moves by at most 1",
        formula="the index of the largest after each got a draw of Lap(1 / epsilon), and the first a constant besides",
        on=lambda data, head_start, **_: [data[0] + head_start, *data[1:]],
        parameters=(HEAD_START,),
    ),
)
