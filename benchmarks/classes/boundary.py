"""Mechanisms of nasty structure whose loss is exactly known: claims of it are true, and search does what it can."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.classes.leak import Floats, Rng

LOSS = 1.0


@dataclass(frozen=True, slots=True)
class Sound:
    """`sampler(data, runs, rng)` on 1 against 0 has a loss of `LOSS` exactly, or none at all.

    `null`: both sides are one law, and the claim is epsilon = 0. `slow`: a tenth of the audits is made.
    """

    title: str
    sampler: Callable[..., Any]
    null: bool = False
    slow: bool = False

    @property
    def epsilon(self) -> float:
        """The claim, which is true and could not be smaller."""
        return 0.0 if self.null else LOSS


def _told(data: int, runs: int, rng: Rng, mass: float) -> Any:
    """Where the outcome that tells is shown: of this probability on 1, and of e^-1 of it on 0."""
    return rng.random(runs) < (mass if data else mass * math.exp(-LOSS))


def _atom(data: int, runs: int, rng: Rng, mass: float) -> Floats:
    return np.where(_told(data, runs, rng, mass), 3.0, rng.normal(0.0, 50.0, runs))


def _atoms(data: int, runs: int, rng: Rng) -> Floats:
    """Forty atoms among noise, each at loss 1 one way or the other."""
    chances = np.full(40, 0.005) * np.where((np.arange(40) % 2 == 0) ^ (data == 0), 1.0, math.exp(-LOSS))
    place = rng.choice(41, runs, p=[*chances, 1.0 - chances.sum()])
    return np.where(place < 40, place * 2.5 - 50.0, rng.normal(0.0, 50.0, runs))


def _bit(data: int, runs: int, rng: Rng) -> Any:
    """Randomised response of loss 1: 1 on data 1 the likelier."""
    return (rng.random(runs) < 1.0 / (1.0 + math.exp(-LOSS))) == bool(data)


def _parity(data: int, runs: int, rng: Rng) -> Any:
    return 2 * np.rint(rng.laplace(0.0, 50.0, runs)).astype(int) + _bit(data, runs, rng)


def _grid(data: int, runs: int, rng: Rng) -> Floats:
    """Two grids of hundredths, one beside the other: which one is a randomised response."""
    return np.asarray(np.round(rng.laplace(0.0, 5.0, runs), 2) + 0.005 * _bit(data, runs, rng))


def _residue(data: int, runs: int, rng: Rng) -> Any:
    """Multiples of five, of loss 1; the rest of the integers elsewhere."""
    value = rng.integers(0, 2_000, runs) * 5
    return value + np.where(_told(data, runs, rng, 0.2), 0, rng.integers(1, 5, runs))


def _decimals(data: int, runs: int, rng: Rng) -> Floats:
    noise = rng.normal(50.0, 10.0, runs)
    return np.where(_told(data, runs, rng, 0.1), np.round(noise, 3), np.round(noise, 1))


def _number(data: int, runs: int, rng: Rng) -> Floats:
    return data + rng.laplace(0.0, 1.0 / LOSS, runs)


def _json(data: int, runs: int, rng: Rng) -> list[str]:
    return [f'{{"count": {x!r}, "unit": "people"}}' for x in _number(data, runs, rng).tolist()]


def _decimal_text(data: int, runs: int, rng: Rng) -> list[str]:
    return [f"n={x:.3f};ok" for x in _number(data, runs, rng).tolist()]


def _length(data: int, runs: int, rng: Rng) -> list[str]:
    lengths = np.clip(rng.poisson(20, runs), 1, None) * 2 + _bit(data, runs, rng)
    return ["abcdefghij" * (n // 10) + "k" * (n % 10) for n in lengths.tolist()]


def _tokens(data: int, runs: int, rng: Rng) -> list[str]:
    """A hundred tokens, half of them likelier on one dataset and half on the other, each at loss 1."""
    masses = np.where((np.arange(100) % 2 == 0) == bool(data), math.exp(LOSS), 1.0)
    return [f"token {j}" for j in rng.choice(100, runs, p=masses / masses.sum()).tolist()]


def _wide(data: int, runs: int, rng: Rng) -> Floats:
    output = rng.laplace(size=(runs, 300))
    output[:, 280] += LOSS * data
    return output


def _dense(data: int, runs: int, rng: Rng, entries: int) -> Floats:
    """Each entry spends as much of the loss: the whole of it is where all lie above, 2^-d of the runs."""
    return rng.laplace(size=(runs, entries)) + LOSS / entries * data


def _majority(data: int, runs: int, rng: Rng) -> Floats:
    """The sign of a sum of neighbours' products is a randomised response: nothing is in any one entry."""
    x = rng.standard_normal((runs, 8))
    sign = np.sign((x[:, 1:] * x[:, :-1]).sum(axis=1))
    x[:, 1::2] *= (sign * np.where(_bit(data, runs, rng), 1.0, -1.0))[:, None]
    return x


def _list(data: int, runs: int, rng: Rng) -> list[Any]:
    """A list whose last entry but one is a noisy answer, and whose length is nothing's."""
    lengths, numbers = rng.poisson(6, runs) + 2, rng.laplace(size=(runs, 40))
    numbers[np.arange(runs), np.minimum(lengths, 40) - 2] += LOSS * data
    return [row[:n].tolist() for row, n in zip(numbers, lengths, strict=True)]


def _ignoring(sampler: Callable[..., Any], data: int, runs: int, rng: Rng) -> Any:
    """The same mechanism with its data left out."""
    return sampler(0, runs, rng)


def sound() -> list[Sound]:
    """Claims that are exactly true, and the same mechanisms as nulls: both sides one law."""
    cases = [
        Sound("an atom of .1 inside noise", partial(_atom, mass=0.1)),
        Sound("an atom of .01 inside noise", partial(_atom, mass=0.01)),
        Sound("forty atoms inside noise", _atoms),
        Sound("parity of integers", _parity),
        Sound("two grids of hundredths", _grid),
        Sound("multiples of five", _residue),
        Sound("number of decimals", _decimals),
        Sound("number in JSON text", _json),
        Sound("number between fields of text", _decimal_text),
        Sound("length of text", _length),
        Sound("a hundred tokens", _tokens),
        Sound("entry 280 of 300", _wide, slow=True),
        Sound("loss spread over 5 entries", partial(_dense, entries=5)),
        Sound("loss spread over 100 entries", partial(_dense, entries=100), slow=True),
        Sound("sign of products of neighbours", _majority),
        Sound("last but one of a list", _list, slow=True),
    ]
    alike = ", both sides alike"
    return [*cases, *(Sound(each.title + alike, partial(_ignoring, each.sampler), True, each.slow) for each in cases)]
