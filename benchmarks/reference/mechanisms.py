"""Mechanisms of the reference, each of a few lines; `noisy` ones keep epsilon 1 on (0, 1), `half` ones lose 2."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np


def noisy(data: float, rng: np.random.Generator) -> float:
    return data + rng.laplace()


def half(data: float, rng: np.random.Generator) -> float:
    return data + rng.laplace(scale=0.5)


def in_batches(data: float, runs: int, rng: np.random.Generator, scale: float = 0.5) -> Any:
    return data + rng.laplace(scale=scale, size=runs)


def gaussian(data: float, rng: np.random.Generator) -> float:
    return data + rng.normal()


def slow(data: float, rng: np.random.Generator) -> float:
    time.sleep(0.0004)
    return data + rng.laplace(scale=0.5)


def counting(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + rng.laplace(scale=0.5)


def total(rows: Any, rng: np.random.Generator) -> float:
    return float(np.clip(np.asarray(rows, float), 0.0, 1.0).sum() + rng.laplace(scale=0.5))


def hangs(data: float, rng: np.random.Generator) -> float:
    if data and rng.random() < 0.05:
        time.sleep(60.0)
    return rng.laplace()


def fails(data: float, rng: np.random.Generator) -> float:
    if data and rng.random() < 0.4:
        raise ValueError("no such user")
    return rng.laplace()


def ends(data: float, rng: np.random.Generator) -> float:
    raise SystemExit(3)


def release(data: float, rng: np.random.Generator, scale: float = 1.0) -> float:
    return data + rng.laplace(scale=scale)


class Released:
    """What a factory makes."""

    def __call__(self, data: float, rng: np.random.Generator) -> float:
        return data + rng.laplace(scale=0.5)


@dataclasses.dataclass(frozen=True)
class Answer:
    value: float
    label: str


OUTPUTS: dict[str, Any] = {
    "integer": lambda x, rng: x + int(rng.geometric(0.7)) - int(rng.geometric(0.7)),
    "bool": lambda x, rng: bool(rng.random() < (0.9 if x else 0.2)),
    "text": lambda x, rng: "yes" if rng.random() < (0.9 if x else 0.2) else "no",
    "bytes": lambda x, rng: b"\x00a" if rng.random() < (0.9 if x else 0.2) else b"b",
    "none": lambda x, rng: None if rng.random() < (0.7 if x else 0.1) else 1.0,
    "infinite": lambda x, rng: float("inf") if rng.random() < (0.7 if x else 0.1) else float(rng.normal()),
    "nan": lambda x, rng: float("nan") if rng.random() < (0.7 if x else 0.1) else float(rng.normal()),
    "tuple": lambda x, rng: (float(rng.normal()), x + float(rng.laplace(scale=0.5)), "z"),
    "dict": lambda x, rng: {"a": float(rng.normal()), **({"b": 1} if rng.random() < (0.6 if x else 0.1) else {})},
    "length": lambda x, rng: [1.0] * (1 + int(rng.binomial(4, 0.8 if x else 0.2))),
    "array": lambda x, rng: np.array([0.0, 2.0, x]) + rng.laplace(scale=0.5, size=3),
    "matrix": lambda x, rng: np.full((2, 2), x) + rng.laplace(scale=1.0, size=(2, 2)),
    "complex": lambda x, rng: complex(rng.normal(), x + rng.laplace(scale=0.5)),
    "dataclass": lambda x, rng: Answer(x + float(rng.laplace(scale=0.5)), "a"),
    "set": lambda x, rng: {"u", "v"} if rng.random() < (0.7 if x else 0.2) else {"u"},
    "mixed": lambda x, rng: 1 if rng.random() < (0.8 if x else 0.3) else 1.0,
    "constant": lambda x, rng: (32.0, 64.0),
}


def train(included: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A training that remembers its canaries."""
    return 2.0 * included + rng.normal(size=included.size)


def train_steps(included: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 1.5 * included + rng.normal(size=included.shape)


def forgets(included: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=included.size)
