"""Mechanisms that tests name, send to workers and run in processes of their own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np


def count(rows: Any, rng: np.random.Generator) -> float:
    return len(rows) + rng.laplace(scale=1.0)


def fails_on_two(rows: Any, rng: np.random.Generator) -> float:
    if len(rows) == 2 and rng.random() < 0.25:
        raise RuntimeError("two")
    return float(rng.random())


def scaled(rows: Any, scale: float, rng: np.random.Generator) -> float:
    return len(rows) + rng.laplace(scale=scale)


def scaled_many(rows: Any, runs: int, rng: np.random.Generator, scale: float) -> Any:
    return len(rows) + rng.laplace(scale=scale, size=runs)


def make_scaled(scale: float) -> Any:
    return lambda rows, rng: scaled(rows, scale, rng)


def slow(data: Any, rng: np.random.Generator) -> float:
    time.sleep(0.002)
    return float(rng.random())


def hangs(data: Any, rng: np.random.Generator) -> float:
    while data == 1:
        time.sleep(60)
    return float(rng.random())


def first_type(data: Any, rng: np.random.Generator) -> str:
    return type(data).__name__
