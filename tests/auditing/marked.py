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


def pair(data: int, rng: Rng) -> list[float]:
    return [number(0, rng), number(0, rng)]


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


def answer(data: int, rng: Rng) -> str:
    return "yes" if rng.random() < (0.6 if data == 10 else 0.4) else "no"


def named(data: int, rng: Rng) -> tuple[float, str]:
    return data + float(rng.laplace()), "a"


def two_truths(data: int, runs: int, rng: Rng) -> Any:
    return rng.random((runs, 2)) < 0.5
