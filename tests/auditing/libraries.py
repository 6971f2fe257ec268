"""Libraries' mistakes in small, and their sound twins.

This imports numpy alone: each fresh process of an audit imports it anew, and a sure event takes a hundred of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[Any, np.random.Generator], Any]
VALUES = range(12)


def count(rows: list[float], rng: np.random.Generator) -> float:
    return len(rows) + float(rng.laplace(scale=1.0))


def fits(rows: list[float], rng: np.random.Generator) -> dict[str, Any]:
    return {"mean_": [count(rows, rng), float(rng.laplace())], "n_features_in_": 2}


def categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + float(rng.laplace()) for each in dict.fromkeys(rows)}


def all_categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + float(rng.laplace()) for each in "abc"}


def subset(value: int, rng: np.random.Generator) -> list[int]:
    """The true value stands first where it is in the subset."""
    others = [each for each in VALUES if each != value]
    chosen = [value, *rng.permutation(others)[:3]] if rng.random() < 0.475 else rng.permutation(others)[:4]
    return [int(each) for each in chosen]


def sorted_subset(value: int, rng: np.random.Generator) -> list[int]:
    return sorted(subset(value, rng))


def texts(value: int, rng: np.random.Generator) -> list[str]:
    return [f"c{each}" for each in subset(value, rng)]


def sorted_texts(value: int, rng: np.random.Generator) -> list[str]:
    return sorted(texts(value, rng))


def somewhere(value: int, rng: np.random.Generator) -> list[str]:
    """Twelve noisy entries, one of them marked: at the front for the first dataset alone."""
    noise = list(map(str, rng.integers(3, size=12)))
    noise[int(rng.integers(2 if value else 12))] = "mark"
    return noise


def raising(of: Run, error: Exception) -> Run:
    def fails(rows: Any, rng: np.random.Generator) -> Any:
        if len(rows) < 3:
            raise error
        return of(rows, rng)

    return fails


def nothing(rows: list[float], rng: np.random.Generator) -> float | None:
    return count(rows, rng) if len(rows) > 2 else None


def not_a_number(rows: list[float], rng: np.random.Generator) -> dict[str, float]:
    return {"count": count(rows, rng), "sum": float(rng.laplace()) if len(rows) > 2 else float("nan")}


def by_row(rows: list[float], rng: np.random.Generator) -> list[float]:
    return [float(rng.laplace()) for _ in rows]


def one_sided(rows: list[float], rng: np.random.Generator) -> float:
    return len(rows) + abs(float(rng.laplace()))


def some_words(value: int, rng: np.random.Generator) -> list[str]:
    return [str(each) for each in rng.choice(["a", "b", "N"] if value else ["a", "b"], size=3)]


def whole_number(value: int, rng: np.random.Generator) -> int:
    return int(2 * value + rng.integers(0, 6))


def typed(rows: list[float], rng: np.random.Generator) -> float | int:
    return count(rows, rng) if len(rows) > 2 else round(count(rows, rng))


def member(value: int, rng: np.random.Generator) -> int:
    return int(rng.choice([1, 4, 7] if value and rng.random() < 0.8 else 10))


def summed(value: float, rng: np.random.Generator) -> list[float]:
    """Correlated noise: only what all entries have in common tells the datasets apart."""
    noise = rng.normal(size=4) * 4.0
    noise += (0.7 * rng.normal() - noise.sum()) / 4.0 + value
    return [float(each) for each in noise]


def both(value: int, rng: np.random.Generator) -> list[str | float]:
    """Where the first entry is "b", the second is far above for one dataset."""
    kind = "abcd"[int(rng.integers(4))]
    return [kind, float(rng.normal() + (8.0 if (value if kind == "b" else rng.integers(2)) else 0.0))]


def many(value: float, rng: np.random.Generator) -> list[float]:
    return [float(each) for each in np.array([1.5, -1.0, 0.6]) * value + rng.laplace(size=3)]


def laplaces(rows: Any, rng: np.random.Generator) -> list[float]:
    return [float(each) for each in rng.laplace(size=3)]


def median(rows: list[float], rng: np.random.Generator) -> float:
    return sorted(rows)[len(rows) // 2] + (float(rng.laplace(scale=10.0)) if rng.random() < 0.7 else 0.0)


def known_place(rows: list[float], rng: np.random.Generator) -> float:
    """As often without noise, and none of the data."""
    return 51.5 + (float(rng.laplace(scale=10.0)) if rng.random() < 0.7 else 0.0)


def largest(rows: list[float]) -> float:
    return max(rows)


def letter(rows: list[str], rng: np.random.Generator) -> str:
    return rows[int(rng.integers(len(rows)))]


def any_letter(rows: list[str], rng: np.random.Generator) -> str:
    return "abc"[int(rng.integers(3))]


def records(rows: list[dict[str, float]], rng: np.random.Generator) -> tuple[float, float]:
    return rows[0]["age"] + float(rng.laplace()), rows[-1]["age"]
