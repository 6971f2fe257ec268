"""How much of the best event's bound search reaches, class of leak by class of leak.

`python -m benchmarks.search --only atoms,lattices --seeds 1` takes some classes (by key or kind) and seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.classes.leak import Leak, oracle
from benchmarks.classes.lists import of_lists
from benchmarks.classes.missed import missed
from benchmarks.classes.numbers import of_numbers
from benchmarks.classes.texts import of_texts
from benchmarks.tables import print_table

SEEDS, QUICK_SEEDS = 10, 1
REFUTING_SEEDS = 20  # where the goal is a part of the seeds
HEADER = (
    "class",
    "runs",
    "certified",
    "oracle",
    "certified / oracle",
    "worst",
    "of all runs",
    "refuted",
    "search CPU, s",
    "goal",
    "event of the worst seed",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One audit of a leak: its bound, that of the best event with the same certifying runs and with all, and times."""

    bound: float
    oracle: float
    of_all: float
    refuted: bool
    search_s: float
    event: str

    @property
    def part(self) -> float:
        """Certified over oracle."""
        return self.bound / self.oracle


def measured(leak: Leak, seed: int) -> Measured:
    """One audit."""
    from dpaudit import ApproximateDP, PureDP, RenyiDP, UnsoundAudit, batched
    from dpaudit.api.audits import audit

    epsilon, delta = leak.claim
    claim: Any = PureDP(epsilon) if delta == 0.0 else ApproximateDP(epsilon, delta)
    options: dict[str, Any] = {"certifier": None}
    if leak.order is not None:
        claim, options = RenyiDP(leak.order, epsilon), {"certifier": "binned"}
    mechanism = leak.sampler if leak.alone else batched(leak.sampler)
    with timed() as spent:
        try:
            result = audit(
                mechanism,
                pair=leak.pair,
                claim=claim,
                runs=leak.runs,
                confidence=leak.confidence,
                seed=seed,
                n_jobs=1,
                **options,
            )
        except UnsoundAudit as error:
            return Measured(
                0.0, oracle(leak, leak.runs), oracle(leak, leak.runs), False, sum(spent), f"no verdict: {error}"
            )
    return Measured(
        result.certificate.lower,
        oracle(leak, result.evidence.runs),
        oracle(leak, leak.runs),
        result.certificate.refuted,
        sum(spent),
        str(result.witness.event),
    )


@contextmanager
def timed() -> Iterator[list[float]]:
    """The CPU time of search, its sampling included."""
    stages: Any = import_module("dpaudit.auditing.audit")

    spent: list[float] = []
    search = stages.find_witness

    def find_witness(*args: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return search(*args, **options)
        finally:
            spent.append(time.process_time() - start)

    stages.find_witness = find_witness
    try:
        yield spent
    finally:
        stages.find_witness = search


def row(leak: Leak, seeds: Sequence[int]) -> tuple[str, ...]:
    """One line of the table."""
    found = [measured(leak, seed) for seed in seeds]
    worst = min(found, key=lambda each: each.part)
    part, refuted = float(np.mean([each.part for each in found])), sum(each.refuted for each in found)
    if leak.wanted is None:
        goal = f"{leak.goal:g} {'MET' if part >= leak.goal else 'MISSED'}"
    else:
        goal = f"refuted in {leak.wanted:g} {'MET' if refuted >= leak.wanted * len(found) else 'MISSED'}"
    means = {name: float(np.mean([getattr(each, name) for each in found])) for name in ("bound", "oracle", "search_s")}
    of_all = float(np.mean([each.bound / each.of_all for each in found]))
    return (
        f"{leak.key}: {leak.title}",
        f"{leak.runs:,}",
        f"{means['bound']:.3f}",
        f"{means['oracle']:.3f}",
        f"{part:.3f}",
        f"{worst.part:.3f}",
        f"{of_all:.3f}",
        f"{refuted} of {len(found)}",
        f"{means['search_s']:.2f}",
        goal,
        f"`{worst.event[:90]}`".replace("|", "/"),
    )


def scalar(data: float, runs: int, rng: np.random.Generator) -> Any:
    """A noisy number."""
    return data + rng.laplace(size=runs)


def vector(data: float, runs: int, rng: np.random.Generator, entries: int) -> Any:
    """Noisy numbers, the first of which says something."""
    output = rng.laplace(size=(runs, entries))
    output[:, 0] += data
    return output


def text(data: float, runs: int, rng: np.random.Generator) -> list[str]:
    """A noisy number in JSON text."""
    return [f'{{"count": {x!r}}}' for x in scalar(data, runs, rng).tolist()]


SMALL: tuple[tuple[str, Any, float | None], ...] = (  # and the most milliseconds of search at `SMALL_RUNS` runs
    ("a number", scalar, 40.0),
    ("a vector of ten", partial(vector, entries=10), 120.0),
    ("a vector of 300", partial(vector, entries=300), None),
    ("JSON text", text, None),
)
SMALL_RUNS, SMALL_SEEDS = 20_000, 11


def small_ms(sampler: Any, seeds: int) -> tuple[float, float, float]:
    """The median, least and largest CPU time of search, its sampling included; one audit warms up."""
    from dpaudit import batched
    from dpaudit.api.audits import audit

    with timed() as spent:
        for seed in range(seeds + 1):
            audit(batched(sampler), pair=(1.0, 0.0), epsilon=1.0, runs=SMALL_RUNS, seed=seed, n_jobs=1)
    found = sorted(1e3 * each for each in spent[1:])
    return found[len(found) // 2], found[0], found[-1]


def _small(seeds: int) -> None:
    rows = []
    for title, sampler, most in SMALL:
        middle, least, largest = small_ms(sampler, seeds)
        goal = "" if most is None else f"{most:g} {'MET' if middle <= most else 'MISSED'}"
        rows.append((title, f"{middle:.0f}", f"{least:.0f} to {largest:.0f}", goal))
    header = ("outputs", "search CPU, ms", "all seeds", "goal")
    print_table(f"Search of small audits, {SMALL_RUNS:,} runs, median of {seeds} seeds", header, rows)


def leaks(only: Sequence[str] = ()) -> list[Leak]:
    """All classes, or those of these keys and kinds."""
    found = [*missed(), *of_numbers(), *of_lists(), *of_texts()]
    unknown = set(only) - {each for leak in found for each in (leak.key, leak.kind)}
    if unknown:
        known = ", ".join(dict.fromkeys(each for leak in found for each in (leak.kind, leak.key)))
        raise SystemExit(f"no class {sorted(unknown)[0]!r}; there are: {known}")
    return [leak for leak in found if not only or leak.key in only or leak.kind in only]


def run(quick: bool) -> None:
    """Prints the table; `quick` takes one seed."""
    _print([], range(QUICK_SEEDS) if quick else None)
    _small(3 if quick else SMALL_SEEDS)


def _print(only: Sequence[str], seeds: Sequence[int] | None) -> None:
    print_leaks("Search", leaks(only), seeds)


def print_leaks(title: str, leaks: Sequence[Leak], seeds: Sequence[int] | None) -> None:
    """Prints the table of these classes; without seeds, ten of each, and more where the goal is a part of them."""

    def rows() -> Iterator[tuple[str, ...]]:
        for leak in leaks:
            wanted = range(SEEDS if leak.wanted is None else REFUTING_SEEDS) if seeds is None else seeds
            yield row(leak, wanted)

    number = "ten seeds" if seeds is None else f"{len(seeds)} seed" + "s" * (len(seeds) > 1)
    print_table(f"{title}: certified bound over that of the best event, {number}, confidence 0.999", HEADER, rows())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--only", default="", help="keys or kinds of classes, with commas between")
    parser.add_argument("--seeds", type=int, help="how many seeds (default: ten)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--small", action="store_true", help="only the time of search in small audits")
    given = parser.parse_args()
    if given.small:
        _small(given.seeds or SMALL_SEEDS)
        raise SystemExit
    chosen = None if given.seeds is None else range(given.first, given.first + given.seeds)
    _print([each for each in given.only.split(",") if each], chosen)
