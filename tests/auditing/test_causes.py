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
VALUES = range(12)
RUNS = 1600


def _count(rows: list[float], rng: np.random.Generator) -> float:
    return len(rows) + float(rng.laplace(scale=1.0))


def _fits(rows: list[float], rng: np.random.Generator) -> dict[str, Any]:
    return {"mean_": [_count(rows, rng), float(rng.laplace())], "n_features_in_": 2}


def _categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + float(rng.laplace()) for each in dict.fromkeys(rows)}


def _all_categories(rows: list[str], rng: np.random.Generator) -> dict[str, float]:
    return {each: rows.count(each) + float(rng.laplace()) for each in "abc"}


def _subset(value: int, rng: np.random.Generator) -> list[int]:
    """The true value stands first where it is in the subset."""
    others = [each for each in VALUES if each != value]
    chosen = [value, *rng.permutation(others)[:3]] if rng.random() < 0.475 else rng.permutation(others)[:4]
    return [int(each) for each in chosen]


def _sorted(value: int, rng: np.random.Generator) -> list[int]:
    return sorted(_subset(value, rng))


def _texts(value: int, rng: np.random.Generator) -> list[str]:
    return [f"c{each}" for each in _subset(value, rng)]


def _sorted_texts(value: int, rng: np.random.Generator) -> list[str]:
    return sorted(_texts(value, rng))


def _somewhere(value: int, rng: np.random.Generator) -> list[str]:
    """Twelve noisy entries, one of them marked: at the front for the first dataset alone."""
    noise = list(map(str, rng.integers(3, size=12)))
    noise[int(rng.integers(2 if value else 12))] = "mark"
    return noise


def _raising(of: Run, error: Exception) -> Run:
    def fails(rows: Any, rng: np.random.Generator) -> Any:
        if len(rows) < 3:
            raise error
        return of(rows, rng)

    return fails


def _none(rows: list[float], rng: np.random.Generator) -> float | None:
    return _count(rows, rng) if len(rows) > 2 else None


def _not_a_number(rows: list[float], rng: np.random.Generator) -> dict[str, float]:
    return {"count": _count(rows, rng), "sum": float(rng.laplace()) if len(rows) > 2 else float("nan")}


def _by_row(rows: list[float], rng: np.random.Generator) -> list[float]:
    return [float(rng.laplace()) for _ in rows]


def _one_sided(rows: list[float], rng: np.random.Generator) -> float:
    return len(rows) + abs(float(rng.laplace()))


def _words(value: int, rng: np.random.Generator) -> list[str]:
    return [str(each) for each in rng.choice(["a", "b", "N"] if value else ["a", "b"], size=3)]


def _whole(value: int, rng: np.random.Generator) -> int:
    return int(2 * value + rng.integers(0, 6))


def _typed(rows: list[float], rng: np.random.Generator) -> float | int:
    return _count(rows, rng) if len(rows) > 2 else round(_count(rows, rng))


def _member(value: int, rng: np.random.Generator) -> int:
    return int(rng.choice([1, 4, 7] if value and rng.random() < 0.8 else 10))


def _summed(value: float, rng: np.random.Generator) -> list[float]:
    """Correlated noise: only what all entries have in common tells the datasets apart."""
    noise = rng.normal(size=4) * 4.0
    noise += (0.7 * rng.normal() - noise.sum()) / 4.0 + value
    return [float(each) for each in noise]


def _both(value: int, rng: np.random.Generator) -> list[str | float]:
    """Where the first entry is "b", the second is far above for one dataset."""
    kind = "abcd"[int(rng.integers(4))]
    return [kind, float(rng.normal() + (8.0 if (value if kind == "b" else rng.integers(2)) else 0.0))]


def _many(value: float, rng: np.random.Generator) -> list[float]:
    return [float(each) for each in np.array([1.5, -1.0, 0.6]) * value + rng.laplace(size=3)]


def _laplaces(rows: Any, rng: np.random.Generator) -> list[float]:
    return [float(each) for each in rng.laplace(size=3)]


def _median(rows: list[float], rng: np.random.Generator) -> float:
    return sorted(rows)[len(rows) // 2] + (float(rng.laplace(scale=10.0)) if rng.random() < 0.7 else 0.0)


def _known_place(rows: list[float], rng: np.random.Generator) -> float:
    """As often without noise, and none of the data."""
    return 51.5 + (float(rng.laplace(scale=10.0)) if rng.random() < 0.7 else 0.0)


def _largest(rows: list[float]) -> float:
    return max(rows)


def _letter(rows: list[str], rng: np.random.Generator) -> str:
    return rows[int(rng.integers(len(rows)))]


def _any_letter(rows: list[str], rng: np.random.Generator) -> str:
    return "abc"[int(rng.integers(3))]


def _records(rows: list[dict[str, float]], rng: np.random.Generator) -> tuple[float, float]:
    return rows[0]["age"] + float(rng.laplace()), rows[-1]["age"]


AGES = ([50.0, 52.25, 55.0], [50.0, 55.0])


@for_each(
    ("broken", "sound", "pair", "words"),
    [
        (_median, _known_place, AGES, "against 0 % on the first; 55 is a value of the data"),
        (_largest, None, (AGES[0], [50.0, 52.25]), "55 on the first, 52.25 on the second; 55 and 52.25 are values of"),
        (_letter, _any_letter, (["a", "b", "c"], ["a", "b"]), "against 0 % on the second; 'c' is a value of the data"),
        (_records, None, ([{"age": 31}, {"age": 47}], [{"age": 31}]), " on the first; 31 is a value of the data"),
        (_raising(_count, RuntimeError("not fitted")), _count, (THREE, TWO), "raises RuntimeError, 'not fitted' ("),
        (_raising(_fits, ValueError("one row")), _fits, (THREE, TWO), "raises ValueError, 'one row' ("),
        (_none, _count, (THREE, TWO), "gives None in 100 % of the runs on the second dataset against 0 %"),
        (
            _not_a_number,
            None,
            (THREE, TWO),
            "output['sum'] is NaN in 100 % of the runs on the second dataset against 0",
        ),
        (_categories, _all_categories, (["a", "b", "c"], ["a", "b"]), "the key 'c' is missing in 100 % of the runs"),
        (_by_row, _laplaces, (THREE, TWO), "length of output is 2 in 100 % of the runs on the second dataset"),
        (_subset, _sorted, (0, 1), "the first entry, output[0], is "),
        (_texts, _sorted_texts, (0, 1), "position of the first 'c1' in output is 1 to 3 in "),
        (_somewhere, None, (0, 1), "position of the first 'mark' in output "),
        (_words, None, (0, 1), "'N' is in output in "),
        (_whole, None, (0, 1), "output at most 1 in "),
        (_one_sided, None, (THREE, TWO), "output at most "),
        (_typed, None, (THREE, TWO), "type of output is int in 100 % of the runs on the second dataset against 0 %"),
        (_member, None, (0, 1), "output is one of "),
        (_summed, None, (0.0, 1.0), "sum(output) at most "),
        (_both, None, (0, 1), "the first entry, output[0], is 'b' and output[1] above "),
        (_many, None, (0.0, 1.0), "score of "),
    ],
)
def test_a_cause_is_told_in_words_of_a_maintainer(broken: Run, sound: Run | None, pair: Any, words: str) -> None:
    settings = {"pair": pair, "epsilon": 1.0, "runs": RUNS, "n_jobs": 1, "seed": 5}
    found = dpaudit.audit(broken, **settings)
    told = cause(found)
    assert words in told, told
    assert ("of the data" in told) == ("value" in words)
    assert (found.plain is not None) == ("score" in told)
    if found.plain is not None:
        assert "; mostly: " in told
        assert "which alone shows epsilon >= " in told
    if sound is not None:
        assert cause(dpaudit.audit(sound, confidence=1 - 1e-6, **settings)) == ""
