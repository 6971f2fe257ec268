"""Outputs to look at: a list of Python objects for each side, and what a search makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.claims import ApproximateDP
from dpaudit.events.scores import LogRatio, Part
from dpaudit.outputs.canonical import Outputs, Pilot, Sample, concatenate
from dpaudit.outputs.encode import encode_objects
from dpaudit.search.explore import SearchPlan, best, pilot_counts, plan
from dpaudit.search.goal import Goal
from dpaudit.search.learning import cells_of, log_ratio
from dpaudit.search.selection import Proposal

Side = Callable[[np.random.Generator], Any]  # one run

NAN, INF = math.nan, math.inf
ODD: list[Any] = [0.0, -0.0, 1.0, 2.5, -3.0, 7, True, NAN, INF, -INF, None, "a", "b", b"a", 1e-50, 1e300, 0.1 + 0.2]


def odd_outputs(runs: int, seed: int) -> list[tuple[Any, ...]]:
    """Tuples of up to four entries, of everything that an entry may be."""
    rng = np.random.default_rng(seed)
    return [tuple(ODD[j] for j in rng.integers(len(ODD), size=rng.integers(5))) for _ in range(runs)]


def outputs_of(run: Side, runs: int, rng: np.random.Generator) -> Outputs:
    """The canonical form of some runs."""
    return encode_objects([run(rng) for _ in range(runs)])


def learned_ratio(first: Outputs, second: Outputs, parts: Sequence[Part]) -> LogRatio:
    """The log-ratio score of these parts, from some outputs of each side."""
    terms = cells_of(parts, concatenate([first, second]))
    return log_ratio(terms, terms(Sample(first), Sample(second)))


def search(
    first: Side, second: Side, *, pilot: int = 2_000, longer: int = 4_000, delta: float = 0.0, seed: int = 1
) -> tuple[Proposal, SearchPlan]:
    """What a search proposes: a pilot, and a longer look at the features that the pilot chose."""
    rng = np.random.default_rng(seed)
    held = Pilot(outputs_of(first, pilot, rng), outputs_of(second, pilot, rng))
    goal = Goal(ApproximateDP(1.0, delta), runs=50_000, alpha=0.05)
    chosen = plan(held, goal)
    counts = pilot_counts(chosen, held)
    counts = counts + chosen.tables(Sample(outputs_of(first, longer, rng)), Sample(outputs_of(second, longer, rng)))
    found = best(chosen, counts, goal)
    assert found is not None
    return found, chosen


def rates(found: Proposal, first: Side, second: Side, *, runs: int = 4_000, seed: int = 2) -> tuple[float, float]:
    """How often the proposed event happens on the likelier side, and on the other: on fresh runs."""
    rng = np.random.default_rng(seed)
    both = [float(np.mean(found.event.contains(outputs_of(side, runs, rng)))) for side in (first, second)]
    return (both[0], both[1]) if found.p_side == "first" else (both[1], both[0])
