"""Broken functions and their sound twins, one of each kind of diagnosis.

This imports numpy alone: each fresh process of an audit imports it anew, and a sure event takes a hundred of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

THREE = [1.0, 2.0, 3.0]


def laplace(rng: np.random.Generator, scale: float = 1.0) -> float:
    return float(rng.laplace(scale=scale))


def count(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + laplace(rng)


def fixed_seed(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + float(np.random.default_rng(7).laplace())


def no_noise(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {"count": len(rows), "sum": sum(rows)}


def sometimes(rows: list[Any], rng: np.random.Generator) -> float:
    return count(rows, rng) if rng.random() < 0.7 else float(len(rows))


def early_return(rows: list[Any], rng: np.random.Generator) -> float:
    return count(rows, rng) if len(rows) > 2 else 0.0


def by_category(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + laplace(rng) for each in dict.fromkeys(rows)}


def all_categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + laplace(rng) for each in "abc"}


def warns(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {"count": count(rows, rng), **({"many": 1.0} if len(rows) > 2 else {})}


def as_dict(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {"count": count(rows, rng), "many": 0.0}


def by_row(rows: list[Any], rng: np.random.Generator) -> list[float]:
    return [laplace(rng) for _ in rows]


def three_draws(rows: list[Any], rng: np.random.Generator) -> list[float]:
    return [laplace(rng) for _ in range(3)]


def in_order(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {each: laplace(rng) for each in (("a", "b") if len(rows) > 2 else ("b", "a"))}


def rounded(rows: list[Any], rng: np.random.Generator) -> float | int:
    return count(rows, rng) if len(rows) > 2 else round(count(rows, rng))


def raises(rows: list[Any], rng: np.random.Generator) -> float:
    if len(rows) < 3:
        raise ValueError("too few rows")
    return count(rows, rng)


def says(rows: list[Any], rng: np.random.Generator) -> float:
    if rng.random() < 0.5:
        raise ValueError(f"sum {sum(rows)} is out of range")
    return 0.0


def hides(rows: list[Any], rng: np.random.Generator) -> float:
    if rng.random() < 0.5:
        raise ValueError("out of range")
    return 0.0


def nothing(rows: list[Any], rng: np.random.Generator) -> float | None:
    return count(rows, rng) if len(rows) > 2 else None


def not_a_number(rows: list[Any], rng: np.random.Generator) -> dict[str, float]:
    return {"count": count(rows, rng), "spread": laplace(rng) if len(rows) > 2 else float("nan")}


def small_scale(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + laplace(rng, 0.3)


def scale_of_data(rows: list[float], rng: np.random.Generator) -> float:
    return laplace(rng, max(rows))


def public_scale(rows: list[float], rng: np.random.Generator) -> float:
    return laplace(rng, 30.0)


def noisy_sum(rows: list[float], rng: np.random.Generator) -> float:
    return sum(rows) + laplace(rng, 3.0)


def clipped_sum(rows: list[float], rng: np.random.Generator) -> float:
    return sum(min(max(each, 0.0), 3.0) for each in rows) + laplace(rng, 3.0)


def uniform(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + float(rng.uniform(-4.0, 4.0))


def normal(data: int, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.normal(scale=1.5, size=runs)


def wide_normal(data: int, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.normal(scale=6.0, size=runs)


def own_size(rows: list[float], rng: np.random.Generator) -> float:
    return sum(rows) / len(rows) + laplace(rng, 1.0 / len(rows))


def public_size(rows: list[float], rng: np.random.Generator) -> float:
    return sum(rows) / 2 + laplace(rng, 1.0)


def with_size(rows: list[float], rng: np.random.Generator) -> dict[str, float]:
    return {"mean": laplace(rng), "n": len(rows)}


def one_draw(rows: list[Any], rng: np.random.Generator) -> list[float]:
    noise = laplace(rng, 3.0)
    return [len(rows) + noise, 2.0 * len(rows) + noise]


def two_draws(rows: list[Any], rng: np.random.Generator) -> list[float]:
    return [len(rows) + laplace(rng, 3.0), 2.0 * len(rows) + laplace(rng, 3.0)]


def candidates(rows: list[str], rng: np.random.Generator) -> str:
    return str(rng.choice(list(dict.fromkeys(rows))))


def any_letter(rows: list[str], rng: np.random.Generator) -> str:
    return str(rng.choice(["a", "b", "c"]))


def response(value: int, rng: np.random.Generator) -> int:
    return value if rng.random() < 0.9 else 1 - value


def fair_response(value: int, rng: np.random.Generator) -> int:
    return value if rng.random() < 0.6 else 1 - value


def four_entries(value: float, rng: np.random.Generator) -> list[float]:
    return [value + laplace(rng) for _ in range(4)]


def four_shared(value: float, rng: np.random.Generator) -> list[float]:
    return [value + laplace(rng, 4.5) for _ in range(4)]


def all_bits(data: int, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=runs)


def grid(data: int, runs: int, rng: np.random.Generator) -> Any:
    return np.round((data + rng.laplace(scale=1.5, size=runs)) * 16.0) / 16.0


def shuffled(rows: list[float], rng: np.random.Generator) -> list[float]:
    return [float(each) for each in rng.permutation(rows)]


def three_shuffled(rows: list[float], rng: np.random.Generator) -> list[float]:
    return shuffled(THREE, rng)


def cut_off(data: int, runs: int, rng: np.random.Generator) -> Any:
    half = -np.log1p(-rng.random(runs) * (1.0 - np.exp(-3.0)))  # Laplace noise redrawn until it is at most 3
    return data + half * rng.choice([-1.0, 1.0], runs)


def whole_number(rows: list[Any], rng: np.random.Generator) -> int:
    return round(len(rows) + laplace(rng, 0.3))


def die(rows: list[Any], rng: np.random.Generator) -> int:
    return len(rows) + int(rng.integers(-5, 6))


def whole_count(rows: list[Any], rng: np.random.Generator) -> int:
    return round(count(rows, rng))


def new_word(value: int, rng: np.random.Generator) -> str:
    return "c" if value and rng.random() < 0.015 else str(rng.choice(["a", "b"]))


def same_words(value: int, rng: np.random.Generator) -> str:
    return "c" if rng.random() < 0.015 else str(rng.choice(["a", "b"]))


def clamped(rows: list[float], rng: np.random.Generator) -> float:
    return max(0.0, sum(rows) + laplace(rng))


def clamped_widely(rows: list[float], rng: np.random.Generator) -> float:
    return max(0.0, sum(rows) + laplace(rng, 99.0))


def capped(rows: list[float], rng: np.random.Generator) -> dict[str, float]:
    return {"sum": min(100.0, sum(rows) + 101.0 + laplace(rng))}


def capped_widely(rows: list[float], rng: np.random.Generator) -> dict[str, float]:
    return {"sum": min(100.0, sum(rows) + 101.0 + laplace(rng, 99.0))}


def codes_of_last(rows: list[str], rng: np.random.Generator, known: str = "") -> list[int]:
    """The codes of the last four, half of them random: by order of appearance, where the letters are not known."""
    order = list(dict.fromkeys([*known, *rows]))
    return [int(rng.integers(3)) if rng.random() < 0.5 else order.index(each) for each in rows[-4:]]


def known_codes(rows: list[str], rng: np.random.Generator) -> list[int]:
    return codes_of_last(rows, rng, "abc")


def one_vector(rows: list[float], rng: np.random.Generator, own: float = 0.0) -> dict[str, list[float]]:
    """The gradients of two layers, with one noise vector for both."""
    noise, gradient = rng.normal(size=2) * 5.0, float(np.clip(sum(rows), -1.0, 1.0))
    return {"w": (gradient + noise).tolist(), "b": (noise + own * rng.normal(size=2)).tolist()}


def two_vectors(rows: list[float], rng: np.random.Generator) -> dict[str, list[float]]:
    return one_vector(rows, rng, 5.0)
