"""Selection: which of several answers is the largest, without saying how large any of them is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit import validate
from dpaudit.catalogue.entry import Entry, Parameter, Source, Twin
from dpaudit.catalogue.exact.comparisons import winning
from dpaudit.catalogue.exact.discrete import largest_log_ratio
from dpaudit.catalogue.noise import laplace
from dpaudit.claims import PureDP

Rng = np.random.Generator
Indices = npt.NDArray[np.intp]


def _report_noisy_max(data: list[float], rng: Rng, epsilon: float) -> int:
    noisy = [answer + rng.laplace(scale=1.0 / epsilon) for answer in data]
    return noisy.index(max(noisy))


def _report_noisy_max_runs(data: list[float], runs: int, rng: Rng, epsilon: float) -> Indices:
    best = laplace(rng, 1.0 / epsilon, runs)
    best += data[0]
    winner = np.zeros(runs, np.intp)
    for index in range(1, len(data)):
        noisy = laplace(rng, 1.0 / epsilon, runs)
        noisy += data[index]
        np.putmask(winner, noisy > best, index)
        np.maximum(best, noisy, out=best)
    return winner


def _report_noisy_max_loss(first: list[float], second: list[float], epsilon: float) -> float:
    return largest_log_ratio(*(winning(np.asarray(answers, float), 1.0 / epsilon) for answers in (first, second)))


def _half_noise(data: list[float], rng: Rng, epsilon: float) -> int:
    noisy = [answer + rng.laplace(scale=1.0 / (2.0 * epsilon)) for answer in data]
    return noisy.index(max(noisy))


def _half_noise_runs(data: list[float], runs: int, rng: Rng, epsilon: float) -> Indices:
    return _report_noisy_max_runs(data, runs, rng, 2.0 * epsilon)


def _half_noise_loss(first: list[float], second: list[float], epsilon: float) -> float:
    return _report_noisy_max_loss(first, second, 2.0 * epsilon)


def _pure(epsilon: float, **_: Any) -> PureDP:
    return PureDP(epsilon)


report_noisy_max = Entry(
    module="dpaudit.catalogue.selection",
    name="report_noisy_max",
    title="Report Noisy Max over counts",
    source=Source(
        "Bassi 2019, notes 001, 'Report Noisy Max'", "Dwork & Roth 2014, The algorithmic foundations, claim 3.9"
    ),
    formula="the index of the largest answer after each got its own draw of Lap(1 / epsilon)",
    neighbours="counts that one person raises, or lowers, by at most 1 each: all in the same direction",
    program=_report_noisy_max,
    sampler=_report_noisy_max_runs,
    parameters=(Parameter("epsilon", 1.0, "nats", "the claim", validate.positive),),
    promise=_pure,
    loss=_report_noisy_max_loss,
    default_pair=([1, 1, 1, 1, 0], [0, 0, 0, 0, 0]),
).with_twins(
    Twin(
        name="half_noise",
        title="Report Noisy Max with noise of half the scale",
        reason="with Lap(1 / (2 epsilon)) a margin of 1 between two answers is worth 2 epsilon, not epsilon",
        formula="the index of the largest answer after each got its own draw of Lap(1 / (2 epsilon))",
        program=_half_noise,
        sampler=_half_noise_runs,
        loss=_half_noise_loss,
    ),
)

ENTRIES = (report_noisy_max,)
