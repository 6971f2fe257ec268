"""Many choices at once: a race of noisy answers, and draws from probabilities that can be listed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dpaudit.arrays import Masked, Places, Reals
from dpaudit.catalogue.entry import Code, Loss, Program, Sampler
from dpaudit.catalogue.noise import Rng
from dpaudit.losses.discrete import largest_log_ratio


def race(answers: Sequence[float], runs: int, noise: Callable[[int], Reals]) -> tuple[Places, Reals]:
    """The index of the largest noisy answer, and that answer; `noise(runs)` draws the noise of one answer.

    >>> winner, best = race([1.0, 3.0], 2, np.zeros)
    >>> winner.tolist(), best.tolist()
    ([1, 1], [3.0, 3.0])
    """
    best = noise(runs)
    best += answers[0]
    winner = np.zeros(runs, np.intp)
    for index in range(1, len(answers)):
        noisy = noise(runs)
        noisy += answers[index]
        np.putmask(winner, noisy > best, index)
        np.maximum(best, noisy, out=best)
    return winner, best


def chosen(law: Reals, runs: int, rng: Rng) -> Places:
    """Indices drawn with these probabilities."""
    inner = np.cumsum(law)[:-1]
    return np.searchsorted(inner / law.sum(), rng.random(runs), side="right")


def with_values(winner: Places, values: Reals, candidates: int) -> Masked:
    """The winner with a value: one coordinate for each candidate, all masked but the winner's."""
    rows = np.arange(len(winner))
    filled, hidden = np.zeros((len(winner), candidates)), np.ones((len(winner), candidates), np.bool_)
    filled[rows, winner] = values
    hidden[rows, winner] = False
    return np.ma.MaskedArray(filled, mask=hidden)


# --- programs, samplers and losses made of fewer things ---------------------------------------------------------------

Law = Callable[..., Reals]  # the probabilities of the outcomes 0, 1, ..., from a dataset and the parameters


def pick(exponents: Sequence[float], rng: Rng) -> int:
    """One choice, with probabilities proportional to the exponentials."""
    weights = [math.exp(exponent) for exponent in exponents]
    return int(rng.choice(len(weights), p=[weight / sum(weights) for weight in weights]))


def compared(law: Law) -> Loss:
    """The loss of a choice with this law."""
    return lambda first, second, **given: largest_log_ratio(law(first, **given), law(second, **given))


def by_law(program: Program, law: Law) -> Code:
    """A choice by its law: many are drawn from it, and the loss is that of its probabilities."""
    return Code(program, lambda data, runs, rng, **given: chosen(law(data, **given), runs, rng), compared(law))


def rate(units: float) -> Callable[..., float]:
    """So many times epsilon / sensitivity."""
    return lambda epsilon, sensitivity: units * epsilon / sensitivity


def scale(units: float) -> Callable[..., float]:
    """So many times sensitivity / epsilon."""
    return lambda epsilon, sensitivity: units * sensitivity / epsilon


def of_answers(law: Callable[[Reals, float], Reals], number: Callable[..., float]) -> Law:
    """A law of answers and one number, a rate or a scale, which is made from the parameters."""
    return lambda data, **given: law(np.asarray(data, float), number(**given))


def between(loss: Callable[[Reals, Reals, float], float], number: Callable[..., float]) -> Loss:
    """A loss of two vectors of answers and one number, which is made from the parameters."""
    return lambda first, second, **given: loss(np.asarray(first, float), np.asarray(second, float), number(**given))


def raced(noise: Callable[[Rng, float, int], Reals], width: Callable[..., float], out: str = "index") -> Sampler:
    """Many races with noise of a width: the index of the winner, its value, or both."""

    def sampler(data: Sequence[float], runs: int, rng: Rng, **given: float) -> Places | Reals | Masked:
        winner, best = race(data, runs, partial(noise, rng, width(**given)))
        if out == "both":
            return with_values(winner, best, len(data))
        return winner if out == "index" else best

    return sampler
