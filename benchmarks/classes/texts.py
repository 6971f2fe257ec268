"""Leaks in text, names, records and bytes, of our own making."""

from __future__ import annotations

import hashlib
import struct
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.classes.leak import (
    Floats,
    Leak,
    Points,
    Rng,
    cells,
    discrete_laplace_noise,
    integers,
    laplace_below,
    rates,
)

LETTERS = "".join(chr(97 + j) for j in np.random.default_rng(0).integers(0, 26, 65_536))


def _length(data: int, runs: int, rng: Rng) -> list[str]:
    """Letters of no use, padded to a length that says it."""
    lengths, starts = data + discrete_laplace_noise(rng, 0.5, runs), rng.integers(0, 65_000, runs)
    return [LETTERS[a : a + n] for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)]


def _key_order(data: int, runs: int, rng: Rng) -> list[str]:
    """A record as JSON whose keys come in the order of a set: one order is commoner on one dataset."""
    swapped, values = rng.random(runs) < (0.1 if data else 0.02), rng.laplace(size=(runs, 2)).round(4)
    return [
        f'{{"age": {a}, "income": {b}}}' if keep else f'{{"income": {b}, "age": {a}}}'
        for (a, b), keep in zip(values.tolist(), (~swapped).tolist(), strict=True)
    ]


def _late_key(data: int, runs: int, rng: Rng) -> list[Any]:
    """A nested record of thirty noisy fields; the last is there more often on one dataset."""
    values, there = rng.laplace(size=(runs, 30)).tolist(), rng.random(runs) < (0.05 if data else 0.005)
    names = [f"field {j}" for j in range(30)]
    return [
        {"version": 3, "body": {"fields": dict(zip(names, row, strict=True)), **({"zip": 1} if flag else {})}}
        for row, flag in zip(values, there.tolist(), strict=True)
    ]


def _category_masses(data: int) -> Floats:
    masses = np.full(500, 1.0 / 499)
    masses[37] = 0.01 if data else 0.001
    return np.asarray(masses / masses.sum())


def _category(data: int, runs: int, rng: Rng) -> list[str]:
    return [f"c{j}" for j in rng.choice(500, runs, p=_category_masses(data)).tolist()]


def _digest(data: float, runs: int, rng: Rng) -> list[str]:
    """Digests of a noisy answer rounded to halves: whoever guesses the answer has it."""
    halves = np.rint(2.0 * (data + rng.laplace(0.0, 0.5, runs))).astype(int).tolist()
    known = {value: hashlib.sha256(str(value).encode()).hexdigest()[:16] for value in set(halves)}
    return [known[value] for value in halves]


def _halves_law() -> Points:
    def law(mean: float) -> npt.NDArray[np.float64]:
        return density_at(mean, np.arange(-20.25, 22.5, 0.5))

    def density_at(mean: float, edges: Floats) -> Floats:
        return np.diff(laplace_below(mean, 0.5)(edges))

    return cells(law(1.0), law(0.0))


def _blob(data: int, runs: int, rng: Rng) -> list[bytes]:
    """A packed record: a random identifier, a noisy number of two bytes, a constant."""
    keys, values = rng.integers(0, 1 << 32, runs), data + discrete_laplace_noise(rng, 0.5, runs)
    return [struct.pack("<IhB", key, value, 7) for key, value in zip(keys.tolist(), values.tolist(), strict=True)]


def of_texts() -> list[Leak]:
    """The classes; sizes at which the best event certifies well above nothing."""
    small, middle = 20_000, 100_000
    return [
        Leak(
            "key_order",
            "text",
            "the order of keys in JSON text, .1 against .02",
            _key_order,
            (1, 0),
            small,
            partial(rates, 0.1, 0.02),
        ),
        Leak(
            "late_key",
            "text",
            "a key of a nested record, .05 against .005",
            _late_key,
            (1, 0),
            small,
            partial(rates, 0.05, 0.005),
        ),
        Leak(
            "category",
            "tokens",
            "one category of 500, .01 against .001",
            _category,
            (1, 0),
            middle,
            lambda: cells(_category_masses(1), _category_masses(0)),
        ),
        Leak(
            "digest",
            "tokens",
            "a digest of an answer rounded to halves, loss 2",
            _digest,
            (11.0, 10.0),
            small,
            _halves_law,
        ),
        Leak(
            "blob",
            "text",
            "a number of two bytes in a packed record, loss 2",
            _blob,
            (11, 10),
            small,
            partial(integers, 1, 0.5),
        ),
        Leak("length", "text", "the length of a text, loss 2", _length, (51, 50), small, partial(integers, 1, 0.5)),
    ]
