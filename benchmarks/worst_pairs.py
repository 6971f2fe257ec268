"""Twelve mechanisms whose fault shows on one kind of pair only, and their sound twins, audited on one example dataset.

`python -m benchmarks worst_pairs` prints what was found of each, how many records its pair has, and the CPU seconds.
"""

from __future__ import annotations

import math
import os
import resource
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import print_table

Rng = np.random.Generator
CPU_S, RECORDS, NEEDED = 20.0, 5, 10
EPSILON = 1.0
PUBLIC, FEW, LARGE, CENTS = ("a", "b"), 2, 1e6, 2**30


def clipped(value: float, upper: float = 1.0) -> float:
    """To [0, upper]; NaN to 0."""
    return min(max(value, 0.0), upper) if value == value else 0.0


def outlier_sum(rows: list[float], rng: Rng, sound: bool) -> float:
    """Clips, but for what it takes for a sentinel."""
    return sum(row if LARGE < row < math.inf and not sound else clipped(row) for row in rows) + rng.laplace()


def crowded_sum(rows: list[float], rng: Rng, sound: bool) -> float:
    """Has less noise for more than twice the size that it was tested with."""
    return sum(map(clipped, rows)) + rng.laplace(scale=1.0 if sound or len(rows) <= 2 * FEW else 0.2)


def twins(rows: list[int], rng: Rng, sound: bool) -> float:
    """How many values are there several times; unsound, how many pairs of records are alike."""
    times = Counter(rows).values()
    return sum(many > 1 if sound else many * (many - 1) // 2 for many in times) + rng.laplace()


def histogram(rows: list[str], rng: Rng, sound: bool) -> dict[str, float]:
    """Noise for public labels alone; sound, for all others together too."""
    counts = {label: rows.count(label) + rng.laplace() for label in PUBLIC}
    return {**counts, "others": sum(row not in PUBLIC for row in rows) + (rng.laplace() if sound else 0.0)}


def nan_sum(rows: list[float], rng: Rng, sound: bool) -> float:
    """A NaN goes through the clip."""
    return sum(clipped(row) if sound else float(np.clip(row, 0.0, 1.0)) for row in rows) + rng.laplace()


def cents(rows: list[int], rng: Rng, sound: bool) -> float:
    """A sum of clipped cents in 32 bits, or in 64."""
    kept = np.array([clipped(row, CENTS) for row in rows], np.int64)
    return float(np.sum(kept, dtype=np.int64 if sound else np.int32)) + rng.laplace(scale=CENTS)


def changes(rows: list[float], rng: Rng, sound: bool) -> float:
    """How far values move from each to the next: one in between moves that by 2, one at an end by 1."""
    kept = [clipped(row) for row in rows]
    moves = sum(abs(one - other) for one, other in pairwise(kept))
    return moves + rng.laplace(scale=2.0 if sound else 1.0)


def visits(rows: list[tuple[str, int]], rng: Rng, sound: bool) -> float:
    """Counts every row of a user, or one of each."""
    return len({user for user, _ in rows} if sound else rows) + rng.laplace()


def average(rows: list[float], rng: Rng, sound: bool) -> float:
    """Of nobody it is 0; sound, it is a noisy sum over a noisy count."""
    if not rows and not sound:
        return 0.0
    count = len(rows) + rng.laplace(scale=2.0)
    return (sum(map(clipped, rows)) + rng.laplace(scale=2.0)) / max(count, 1.0)


def capped(rows: list[float], rng: Rng, sound: bool) -> float:
    """Clips above alone."""
    return sum(clipped(row) if sound else min(row, 1.0) if row == row else 0.0 for row in rows) + rng.laplace()


def chunks(rows: list[str], rng: Rng, sound: bool) -> float:
    """Texts come in chunks of 100 characters: counts these, or texts."""
    return sum(1 if sound else max(1, math.ceil(len(row) / 100)) for row in rows) + rng.laplace()


def excess(rows: list[float], rng: Rng, sound: bool) -> float:
    """A clipped sum as the sum without the excess, in which 1e16 swallows others."""
    kept = [min(max(row, 0.0), 1e17) if row == row else 0.0 for row in rows]
    total = sum(map(clipped, kept)) if sound else sum(kept) - sum(max(row - 1.0, 0.0) for row in kept)
    return total + rng.laplace()


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism with its sound twin, the example dataset, and what the question says beside it."""

    name: str
    mechanism: Callable[..., Any]
    data: Any
    asked: dict[str, Any] = field(default_factory=dict)


AMOUNTS, VISITS = [0.25, 0.5, 0.75, 1.0], [("ann", 3), ("bob", 5), ("ann", 4), ("cid", 5)]
CASES = (
    Case("a value above 1e6", outlier_sum, AMOUNTS),
    Case("more than 2 n0 records", crowded_sum, AMOUNTS[:2]),
    Case("duplicates", twins, [3, 1, 4, 5]),
    Case("a label never seen", histogram, ["a", "b", "a", "a"]),
    Case("NaN", nan_sum, AMOUNTS),
    Case("32 bits", cents, [120, 80, 990, 5]),
    Case("order", changes, [0.0, 0.2, 0.1, 0.0]),
    Case("a user of many rows", visits, VISITS, {"user": 0, "relation": "add_or_remove_user"}),
    Case("the empty dataset", average, AMOUNTS),
    Case("a value below the clip", capped, AMOUNTS),
    Case("a long text", chunks, ["ann", "bob", "cid", "dan"]),
    Case("floats at 1e16", excess, [1.0, 1.0, 1.0, 1.0]),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What an audit of one mechanism found: the leads handed to it, its pair, and the CPU seconds of all processes."""

    leads: int
    refuted: bool
    led: bool
    records: int
    pair: str
    cpu_s: float


def audited(case: Case, sound: bool, seed: int, runs: int | None = None) -> Row:
    """The audit of a mechanism, or of its twin."""
    from dpaudit import audit
    from dpaudit.data.patterns import FOUND

    before = _cpu_s()
    mechanism = partial(case.mechanism, sound=sound)
    result = audit(mechanism, data=case.data, epsilon=EPSILON, seed=seed, runs=runs, n_jobs=1, **case.asked)
    reasons = result.provenance["reasons"]
    leads = [name for name, reason in reasons.items() if reason.startswith(FOUND)]
    pair = result.pair
    values = [pair[side]["value"] for side in ("first", "second")]  # None where they are too large to be stored
    size = max(10**6 if each is None else len(each) for each in values)
    return Row(len(leads), result.refuted, pair["name"] in leads, size, pair["name"], _cpu_s() - before)


def _cpu_s() -> float:
    """Of this process and those that it has waited for, and of hosts that rest."""
    whole = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = 0
    for file in Path("/proc/self/task").glob("*/children"):
        for child in file.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return sum(each.ru_utime + each.ru_stime for each in whole) + ticks / os.sysconf("SC_CLK_TCK")


def found(row: Row) -> bool:
    """Whether it was refuted on a pair that a reader takes in, in time."""
    return row.refuted and row.records <= RECORDS and row.cpu_s <= CPU_S


def run(quick: bool) -> None:
    """Prints the table; `quick` has few runs."""
    runs = 20_000 if quick else 100_000
    rows = []
    for case in CASES:
        broken, twin = (audited(case, sound, 0, runs) for sound in (False, True))
        words = f"{'found' if found(broken) else 'NOT FOUND'}{', by a lead' if broken.led else ''}"
        rows.append((case.name, words, broken.pair, str(broken.records), f"{broken.cpu_s:.1f}", str(twin.leads)))
        print(rows[-1], file=sys.stderr)
    print_table("Worst pairs", ("fault", "data=", "pair", "records", "CPU s", "leads on the twin"), rows)
