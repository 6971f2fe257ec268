"""Many candidate pairs: how surely screening finds the one bad pair, and how surely a search over pairs makes one."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.tables import print_table

SEEDS, QUICK_SEEDS = 20, 4
CONFIDENCE = 0.95
RUNS = 150_000
SCREENED = (  # pairs, loss of the bad one, of the others; the claim is 1
    (100, 1.1, 0.5, 0.95),
    (10, 1.1, 0.5, 0.95),
    (100, 1.5, 1.0, 0.95),
)
FORGOTTEN = 90.0  # beyond it a value is not clipped
TRIES, SEARCH_RUNS = 40, 100_000

Floats = npt.NDArray[np.float64]


def noisy_count(data: float, runs: int, rng: np.random.Generator) -> Floats:
    """A count with Lap(1): the loss of a pair is the distance of its counts."""
    return data + rng.laplace(size=runs)


def forgetful_sum(rows: list[float], runs: int, rng: np.random.Generator) -> Floats:
    """A sum of values clipped to [0, 1], but for large ones, which somebody forgot; Lap(1)."""
    total = sum(row if row > FORGOTTEN else min(max(row, 0.0), 1.0) for row in rows)
    return total + rng.laplace(size=runs)


def clipped_sum(rows: list[float], runs: int, rng: np.random.Generator) -> Floats:
    """The same sum, with every value clipped."""
    return sum(min(max(row, 0.0), 1.0) for row in rows) + rng.laplace(size=runs)


def one_more(value: float) -> tuple[list[float], list[float]]:
    """A dataset, and the same with one value more."""
    return [0.5], [0.5, value]


def screened(pairs: int, bad: float, other: float, seed: int) -> tuple[bool, Any]:
    """Whether the bad pair, at a place that depends on the seed, was chosen; and the result."""
    from dpaudit import AdjacentPair, PureDP, audit, batched

    place = (37 * seed + 11) % pairs
    candidates = [AdjacentPair(float(j), j + (bad if j == place else other), f"pair {j}") for j in range(pairs)]
    result = audit(
        batched(noisy_count), pairs=candidates, claim=PureDP(1.0), runs=RUNS, confidence=CONFIDENCE, seed=seed
    )
    return result.witness.pair == place, result


def run(quick: bool) -> None:
    """Prints the tables; `quick` takes few seeds."""
    seeds = range(QUICK_SEEDS if quick else SEEDS)
    rows = []
    for pairs, bad, other, goal in SCREENED:
        found = [screened(pairs, bad, other, seed) for seed in seeds]
        refuted = sum(result.certificate.refuted for _, result in found)
        needed = math.ceil(goal * len(seeds))
        rows.append(
            (
                f"{pairs} pairs, one of loss {bad:g}, the others {other:g}",
                f"{max(result.runs_used for _, result in found):,}",
                f"{sum(right for right, _ in found)} of {len(seeds)}",
                f"{refuted} of {len(seeds)}",
                f"at least {needed} {'met' if refuted >= needed else 'MISSED'}",
                f"{statistics.median(result.certificate.lower for _, result in found):.4f}",
            )
        )
    header = ("Laplace count, claim epsilon = 1", "runs in all", "bad pair chosen", "refuted", "goal", "median bound")
    print_table(f"Pairs: screening, confidence {CONFIDENCE}", header, rows)
    _searched(seeds)


def _searched(seeds: range) -> None:
    from dpaudit import PureDP, batched
    from dpaudit.auditing.pair_search import search_pairs

    rows = []
    for title, mechanism in (("clipping forgotten above 90", forgetful_sum), ("its sound twin", clipped_sum)):
        found = [
            search_pairs(
                batched(mechanism),
                one_more,
                bounds={"value": (0.0, 100.0)},
                claim=PureDP(1.0),
                runs=SEARCH_RUNS,
                tries=TRIES,
                confidence=0.999,
                seed=seed,
            )
            for seed in seeds
        ]
        rows.append(
            (
                title,
                f"{max(each.runs_used for each in found):,}",
                f"{max(len(each.tried) for each in found)}",
                f"{sum(each.result.certificate.refuted for each in found)} of {len(seeds)}",
                f"{statistics.median(each.result.certificate.lower for each in found):.4f}",
            )
        )
    header = (
        "sum of clipped values, one of them anywhere in [0, 100]",
        "runs in all",
        "tries",
        "refuted",
        "median bound",
    )
    print_table("Pairs: search over a parametrised pair, confidence 0.999", header, rows)
