"""Each pattern that found something finds a small mechanism with that mistake, and accuses no sound twin of it."""

from __future__ import annotations

import math
from typing import Any

import dpaudit
from dpaudit.data import stock_pairs

LOWER, UPPER = 10.0, 11.0
SIZE: Any = {"runs": 4_000, "confidence": 1 - 1e-7, "epsilon": 1.0, "n_jobs": 1}  # seven sound twins: 7e-7 in all


def _by_label(rows: Any, rng: Any, moves: float) -> list[float]:
    sums = [sum(x for x, label in rows if label == each) for each in (0, 1)]
    return [float(each + rng.laplace(scale=2 * moves)) for each in sums]


def _sum(values: Any, rng: Any, moves: float) -> float:
    return float(sum(x for x in values if x == x) + rng.laplace(scale=moves))


def _counts(words: Any, rng: Any, known: Any) -> dict[str, float]:
    return {each: float(list(words).count(each) + rng.laplace()) for each in known or sorted(set(words))}


def _clipped(updates: Any, rng: Any, bound: float | None) -> float:
    norm = max(map(abs, updates)) if bound is None else bound
    return float(sum(min(each, norm) for each in updates) + rng.laplace(scale=2 * norm))


def _values(words: Any, rng: Any, order: Any) -> list[Any]:
    return [*order(dict.fromkeys(words)), float(len(words) + rng.laplace())]


def _total(values: Any, rng: Any, unread: Any) -> float:
    return float(sum(0.0 if each is unread else each for each in values) + rng.laplace(scale=2.0))


# by pattern: its keywords, its relation, the mechanism, what is wrong in it, what is right
LABELLED = [(10.0, 0), (11.0, 1), (11.0, 1), (10.0, 0)]
FOUND: dict[str, tuple[dict[str, Any], str, Any, Any, Any]] = {
    "change_label": ({"data": LABELLED}, "replace_one", _by_label, UPPER - LOWER, UPPER),
    "far_from_zero": ({"lower": LOWER, "upper": UPPER}, "add_or_remove_one", _sum, UPPER - LOWER, UPPER),
    "replace_by_nan": ({"data": [10.5] * 4}, "replace_one", _sum, UPPER - LOWER, UPPER),
    "last_of_category": ({"data": ["a", "b", "a"]}, "add_or_remove_one", _counts, None, ("a", "b")),
    "replace_by_zero": ({"data": [3.0]}, "replace_one", _clipped, None, 1.0),
    "replace_in_front": ({"data": ["a", "b"]}, "replace_one", _values, list, sorted),
    "replace_by_none": ({"data": [0.5, 1.0]}, "replace_one", _total, math.nan, None),
}


def test_each_finds_its_mistake_and_accuses_no_sound_twin() -> None:
    for name, (keywords, relation, mechanism, wrong, right) in FOUND.items():
        pairs = stock_pairs(name, relation=relation, **keywords)
        keyword = mechanism.__code__.co_varnames[2]
        for part, refuted in ((wrong, True), (right, False)):
            result = dpaudit.audit(mechanism, pairs=pairs, relation=relation, parameters={keyword: part}, **SIZE)
            assert (result.verdict is dpaudit.Verdict.REFUTED) is refuted, f"{name}: {result}"
            assert set(result.provenance["reasons"]) == {pair.name for pair in pairs}
