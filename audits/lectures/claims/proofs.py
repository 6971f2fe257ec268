"""Mechanisms of the notes in the language of proofs: what is proved of them holds for all inputs and any analyst.

A proof is one for every list of answers. What an analyst who sees outputs alone has asked is, once these are fixed, a
fixed list of queries: so nobody need be asked who the analyst is.
"""

from __future__ import annotations

from functools import cache

from dpaudit import AdjacentPair, BracketVerdict, bracket
from dpaudit.catalogue.noise import Rng


def thresholdout(data: list[float], rng: Rng, sigma: float, budget: int, threshold: float) -> list[float | None]:
    """Thresholdout (Bassi 2019, notes 001). A query gives one number, or two: how far its average on the holdout set
    is from that on the training set, and after a top this average itself. Both are in units of 1 / n, by which one
    record moves each of them in its own way. None: the training set answers, which is no secret.
    """
    assert sigma > 0
    assert budget >= 1
    noisy_threshold = threshold + rng.laplace(scale=2 * sigma)
    tops, told = 0, 0
    output: list[float | None] = []
    for number in data:
        if told < tops:
            output.append(number + rng.laplace(scale=sigma))
            told += 1
            if told >= budget:
                break
            noisy_threshold = threshold + rng.laplace(scale=2 * sigma)
        elif tops >= budget:
            break
        elif number + rng.laplace(scale=4 * sigma) > noisy_threshold:
            tops += 1
        else:
            output.append(None)
    return output


@cache
def is_proved(budget: int) -> bool:
    """Whether 2 budget / sigma is proved of it, for all numbers that move by at most 1, and accepted by the checker.

    >>> is_proved(3)
    True
    """
    given = {"sigma": 2 * budget, "budget": budget, "threshold": 0}
    pair = AdjacentPair([0, 0], [1, 1])  # any one: the proof is not about it
    found = bracket(thresholdout, "2*budget/sigma", pair=pair, adjacency="all-differ", parameters=given, runs=0)
    return found.verdict is BracketVerdict.PROVED
