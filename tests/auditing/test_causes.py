"""Libraries' mistakes in small: the sentence on the cause holds the words of a maintainer; each sound twin is kept.

The audits are seeded; a sound twin is refuted by chance with probability at most 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dpaudit
from dpaudit.results.wording.cause import cause
from tests.cases import for_each

Run = Callable[[Any, np.random.Generator], Any]
THREE, TWO = [1.0, 2.0, 3.0], [1.0, 2.0]
NAMES = [f"c{number}" for number in range(8)]


def _count(rows: list[float], rng: np.random.Generator) -> float:
    return len(rows) + float(rng.laplace(scale=1.0))


def _fits(rows: list[float], rng: np.random.Generator) -> dict[str, Any]:
    return {"mean_": [_count(rows, rng), float(rng.laplace())], "n_features_in_": 2}


def _categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + float(rng.laplace()) for each in dict.fromkeys(rows)}


def _subset(value: int, rng: np.random.Generator) -> list[str]:
    others = [name for name in NAMES if name != NAMES[value]]
    return [NAMES[value], *rng.permutation(others)[:1]] if rng.random() < 0.4 else list(rng.permutation(others)[:2])


def _raising(of: Run, error: Exception) -> Run:
    def fails(rows: Any, rng: np.random.Generator) -> Any:
        if len(rows) < 3:
            raise error
        return of(rows, rng)

    return fails


def _sorted(value: int, rng: np.random.Generator) -> list[str]:
    return sorted(_subset(value, rng))


def _all_categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + float(rng.laplace()) for each in "abc"}


def _none(rows: list[float], rng: np.random.Generator) -> float | None:
    return _count(rows, rng) if len(rows) > 2 else None


def _by_row(rows: list[float], rng: np.random.Generator) -> list[float]:
    return [float(rng.laplace()) for _ in rows]


def _one_sided(rows: list[float], rng: np.random.Generator) -> float:
    return len(rows) + abs(float(rng.laplace()))


@for_each(
    ("broken", "sound", "pair", "words"),
    [
        (_raising(_count, RuntimeError("not fitted")), _count, (THREE, TWO), "raises RuntimeError, 'not fitted' ("),
        (_raising(_fits, ValueError("one row")), _fits, (THREE, TWO), "raises ValueError, 'one row' ("),
        (_none, _count, (THREE, TWO), "gives None in 100 % of the runs on the second dataset against 0 %"),
        (_categories, _all_categories, (["a", "b", "c"], ["a", "b"]), "the key 'c' is missing in 100 % of the runs"),
        (_by_row, _fits, (THREE, TWO), "length of output at "),
        (_subset, _sorted, (0, 1), "output[1] is 'c1' in "),
        (_one_sided, _count, (THREE, TWO), "output at most "),
    ],
)
def test_a_cause_is_told_in_words_of_a_maintainer(broken: Run, sound: Run, pair: Any, words: str) -> None:
    settings = {"pair": pair, "epsilon": 1.0, "runs": 2400, "n_jobs": 1, "seed": 5}
    told = cause(dpaudit.audit(broken, **settings))
    assert words in told, told
    assert cause(dpaudit.audit(sound, confidence=1 - 1e-6, **settings)) == ""
