"""Broken functions and their sound twins: one of each kind of diagnosis, and what libraries got wrong, in small.

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


def early_return(rows: list[Any], rng: np.random.Generator) -> float:
    return count(rows, rng) if len(rows) > 2 else 0.0


def by_category(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + laplace(rng) for each in dict.fromkeys(rows)}


def all_categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + laplace(rng) for each in "abc"}


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


def says(rows: list[Any], rng: np.random.Generator) -> float:
    if rng.random() < 0.5:
        raise ValueError(f"sum {sum(rows)} is out of range")
    return 0.0


def hides(rows: list[Any], rng: np.random.Generator) -> float:
    if rng.random() < 0.5:
        raise ValueError("out of range")
    return 0.0


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


def cut_off(data: int, runs: int, rng: np.random.Generator) -> Any:
    half = -np.log1p(-rng.random(runs) * (1.0 - np.exp(-3.0)))  # Laplace noise redrawn until it is at most 3
    return data + half * rng.choice([-1.0, 1.0], runs)


def die(rows: list[Any], rng: np.random.Generator) -> int:
    return len(rows) + int(rng.integers(-5, 6))


def whole_count(rows: list[Any], rng: np.random.Generator) -> int:
    return round(count(rows, rng))


def clamped(rows: list[float], rng: np.random.Generator) -> float:
    return max(0.0, sum(rows) + laplace(rng))


def clamped_widely(rows: list[float], rng: np.random.Generator) -> float:
    return max(0.0, sum(rows) + laplace(rng, 99.0))


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


def raises(rows: list[Any], rng: np.random.Generator) -> float:
    if len(rows) < 3:
        raise ValueError("too few rows")
    return count(rows, rng)


def nothing(rows: list[Any], rng: np.random.Generator) -> float | None:
    return count(rows, rng) if len(rows) > 2 else None


def own_size(rows: list[float], rng: np.random.Generator) -> float:
    return sum(rows) / len(rows) + laplace(rng, 1.0 / len(rows))


def public_size(rows: list[float], rng: np.random.Generator) -> float:
    return sum(rows) / 2 + laplace(rng, 1.0)


def median(rows: list[float], rng: np.random.Generator) -> float:
    return sorted(rows)[len(rows) // 2] + (laplace(rng, 10.0) if rng.random() < 0.7 else 0.0)


def known_place(rows: list[float], rng: np.random.Generator) -> float:
    """As often without noise, and none of the data."""
    return 51.5 + (laplace(rng, 10.0) if rng.random() < 0.7 else 0.0)


def largest(rows: list[float]) -> float:
    return max(rows)


def records(rows: list[dict[str, float]], rng: np.random.Generator) -> tuple[float, float]:
    return rows[0]["age"] + laplace(rng), rows[-1]["age"]


def subset(value: int, rng: np.random.Generator) -> list[int]:
    """The true value stands first where it is in the subset."""
    others = [each for each in range(12) if each != value]
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


def some_words(value: int, rng: np.random.Generator) -> list[str]:
    return [str(each) for each in rng.choice(["a", "b", "N"] if value else ["a", "b"], size=3)]


def one_sided(rows: list[float], rng: np.random.Generator) -> float:
    return len(rows) + abs(laplace(rng))


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
