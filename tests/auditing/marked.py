"""Mechanisms with outputs of every kind, to be marked. This imports numpy alone: each fresh process imports it anew."""

from __future__ import annotations

from typing import Any

import numpy as np

Rng = np.random.Generator


def number(data: int, rng: Rng) -> float:
    return 0.01 * data + float(rng.laplace())


def count(data: int, rng: Rng) -> int:
    return round(number(data, rng))


def vector(data: int, rng: Rng) -> list[float]:
    return [number(0, rng) for _ in range(5)]


def histogram(data: int, rng: Rng) -> dict[str, int]:
    return {"a": round(number(data, rng)), "b": 1}


def json(data: int, rng: Rng) -> str:
    return f'{{"sum": {number(data, rng):.4f}}}'


def letters(data: int, rng: Rng) -> str:
    return "".join(rng.choice(["a", "b"], 20))


def words(data: int, rng: Rng) -> str:
    return str(rng.choice(["a", "b", "c", "d"]))


def two_outcomes(data: int, rng: Rng) -> bool:
    return bool(rng.random() < 0.5)


def raises(data: int, rng: Rng) -> float:
    return 1 / 0


def named(data: int, rng: Rng) -> tuple[float, str]:
    return data + float(rng.laplace()), "a"


def steps(data: int, runs: int, rng: Rng) -> Any:
    """Two-sided geometric noise for epsilon 1."""
    return data + rng.geometric(1 - np.exp(-1.0), runs) - rng.geometric(1 - np.exp(-1.0), runs)


def octets(data: int, runs: int, rng: Rng) -> Any:
    return np.clip(steps(data, runs, rng), 0, 255).astype(np.uint8)


def steps_and_digits(data: int, runs: int, rng: Rng) -> Any:
    return steps(data, runs, rng), rng.integers(0, 9, runs)


def records(data: int, runs: int, rng: Rng) -> Any:
    return np.rec.fromarrays([steps(data, runs, rng)], names="count")


def step_texts(data: int, runs: int, rng: Rng) -> Any:
    return steps(data, runs, rng).astype(str)


def step_mapping(data: int, runs: int, rng: Rng) -> Any:
    return {"count": steps(data, runs, rng)}


def bits(data: int, runs: int, rng: Rng) -> Any:
    return rng.random(runs) < (0.73 if data == 10 else 0.27)


def two_truths(data: int, runs: int, rng: Rng) -> Any:
    return rng.random((runs, 2)) < 0.5


def yes_or_no(data: int, runs: int, rng: Rng) -> Any:
    return np.where(bits(data, runs, rng), "yes", "no")
