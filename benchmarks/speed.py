"""What an audit costs beside the mechanism it runs: ratios of CPU time, both sides measured in turn in one run.

The bare loop of a per-run function is `for _ in range(runs): f(data, rng)`; raw sampling of a batched one
is `f(data, 8192, rng)` as often as needed. Both take as many runs as the audit, and nothing looks at what they return.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.search import timed
from benchmarks.tables import print_table
from dpaudit.api.audits import audit
from dpaudit.data import AdjacentPair
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import batched, wrap
from dpaudit.outputs.canonical import token
from dpaudit.running.streams import Stage, shards

ROUNDS = 5
CALL = 1 << 13
SCALE = 1.0
TEN = [float(answer) for answer in range(10)]


def scalar(data: float, rng: np.random.Generator) -> float:
    """About 500 ns of Python: a number."""
    return data + rng.laplace(0.0, SCALE)


def index(data: float, rng: np.random.Generator) -> Any:
    """A microsecond and more: the index of the largest of three noisy numbers, an integer of numpy's."""
    return (data + rng.laplace(0.0, SCALE, 3)).argmax()


def pair_of_numbers(data: float, rng: np.random.Generator) -> tuple[int, float]:
    """About 600 ns of Python: an index and a value."""
    value = data + rng.laplace(0.0, SCALE)
    return (0 if value > data else 1, value)


def small_list(data: float, rng: np.random.Generator) -> list[float]:
    """Some microseconds of Python: five numbers, one by one."""
    return [data + rng.laplace(0.0, SCALE) for _ in range(5)]


def small_array(data: float, rng: np.random.Generator) -> Any:
    """About a microsecond: five numbers."""
    return data + rng.laplace(0.0, SCALE, 5)


def small_dict(data: float, rng: np.random.Generator) -> dict[str, float]:
    """About a microsecond of Python: two noisy numbers by name, and what is known."""
    return {"sum": data + rng.laplace(0.0, SCALE), "count": data + rng.laplace(0.0, SCALE), "size": 10}


def text(data: float, rng: np.random.Generator) -> str:
    """About 500 ns of Python: one of two words."""
    return "above" if data + rng.laplace(0.0, SCALE) > 9.5 else "below"


def above_threshold(data: list[float], rng: np.random.Generator) -> tuple[bool, ...]:
    """Some microseconds of Python: tops and bottoms as a tuple that ends at the first top."""
    threshold = 8.0 + rng.laplace(0.0, 2.0)
    answers = []
    for answer in data:
        answers.append(bool(answer + rng.laplace(0.0, 4.0) >= threshold))
        if answers[-1]:
            break
    return tuple(answers)


def vector_laplace(data: float, runs: int, rng: np.random.Generator) -> Any:
    """The cheapest batched mechanism there is: the hardest case for whatever stands around it."""
    return data + rng.laplace(0.0, SCALE, runs)


def vector_gaussian(data: float, runs: int, rng: np.random.Generator) -> Any:
    """A batched mechanism of half that cost."""
    return data + rng.normal(0.0, SCALE, runs)


def vector(data: Any, runs: int, rng: np.random.Generator) -> Any:
    """As many numbers a run as the data have, each with noise of its own."""
    return data + rng.laplace(0.0, SCALE, (runs, len(data)))


PER_RUN: tuple[tuple[str, Callable[..., Any], Any, float], ...] = (
    ("a number", scalar, (10.0, 9.0), 1.10),
    ("an index", index, (10.0, 9.0), 1.10),
    ("text", text, (10.0, 9.0), 1.10),
    ("an index and a number", pair_of_numbers, (10.0, 9.0), 1.20),
    ("a tuple of booleans, AboveThreshold", above_threshold, (TEN, [answer + 1 for answer in TEN]), 1.20),
    ("a list of five numbers", small_list, (10.0, 9.0), 1.30),
    ("an array of five numbers", small_array, (10.0, 9.0), 1.30),
    ("a dict of three numbers", small_dict, (10.0, 9.0), 1.60),
)


def above(path: tuple[int | str, ...]) -> Event:
    """One number of the output above a threshold: what certification costs where the event costs nothing."""
    return Event(Coordinate(path), intervals=((9.5, math.inf),))


EVENTS = {
    "scalar": above(()),
    "index": Event(Coordinate(()), intervals=((0.5, math.inf),)),
    "pair_of_numbers": above((1,)),
    "text": Event(Coordinate(()), tokens=(token("text", "above"),)),
    "above_threshold": above((2,)),
    "small_list": above((3,)),
    "small_array": above((3,)),
    "small_dict": above(("sum",)),
}
BATCHED = (("Laplace", vector_laplace), ("Gaussian", vector_gaussian))


def run(quick: bool) -> None:
    """Prints the tables; `quick` takes a tenth of the runs."""
    _per_run(100_000 if quick else 3_000_000)
    _batched(10_000_000 if quick else 100_000_000)
    _searching(6 if quick else 8, 1 if quick else 3)
    _workers(2.0 if quick else 20.0)


def _ratio(ours: Callable[[], Any], bare: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, float, float]:
    """The median of paired ratios, with the least and the greatest, after one round to warm up."""
    ratios = []
    for turn in range(rounds + 1):
        times = []
        for work in (ours, bare):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        if turn:
            ratios.append(times[0] / times[1])
    return statistics.median(ratios), min(ratios), max(ratios)


def _per_run(runs: int) -> None:
    rows = []
    for name, function, pair, goal in PER_RUN:
        bare = partial(_bare_loop, function, pair, runs, np.random.Generator(np.random.SFC64(1)))
        ask = partial(audit, function, pair=pair, epsilon=1.0, runs=runs, n_jobs=1)
        certify = _certification(function, pair, EVENTS[function.__name__], runs)
        start = time.process_time()
        bare()
        body = (time.process_time() - start) / runs * 1e9
        ratios = [f"{_ratio(work, bare)[0]:.3f}" for work in (certify, ask)]
        rows.append((name, f"{body:.0f}", *ratios, f"{goal:.2f}"))
    header = (
        "a per-run mechanism that returns",
        "bare loop, ns a run",
        "certification",
        "whole audit",
        "goal of certification",
    )
    print_table(f"Per-run mechanisms against a bare loop, {runs:,} runs, one process", header, rows)


def _batched(runs: int) -> None:
    rows = []
    for name, function in BATCHED:
        raw = partial(_raw_sampling, function, runs, np.random.Generator(np.random.SFC64(1)))
        ask = partial(audit, batched(function), pair=(10.0, 9.0), epsilon=1.0, runs=runs, n_jobs=1)
        certify = _certification(batched(function), (10.0, 9.0), above(()), runs)
        for work, what, goal in ((certify, "certification", "1.10"), (ask, "whole audit", "1.25")):
            rows.append((f"{name}, {what}", *(f"{ratio:.3f}" for ratio in _ratio(work, raw)), goal))
    header = ("a batched mechanism", "ours / raw sampling", "min", "max", "goal")
    print_table(f"Batched mechanisms against raw sampling, {runs:,} runs, one process", header, rows)


def _searching(largest: int, rounds: int) -> None:
    """Whole audits of batched mechanisms from 1e6 to 10 to the `largest` runs, and what of them is search."""
    rows = []
    numbers = [("a number", vector_laplace, (10.0, 9.0), power, 1.25 if power == 8 else None) for power in (6, 7, 8)]
    vectors = [(f"{k} numbers", vector, (np.full(k, 1.0 / k), np.zeros(k)), 6, goal) for k, goal in ((10, 8), (100, 4))]
    for name, function, pair, power, goal in [*numbers[: largest - 5], *vectors]:
        runs, seeds = 10**power, iter(range(ROUNDS + 1))
        raw = partial(_raw_sampling, function, runs, np.random.Generator(np.random.SFC64(1)), pair)

        def ask(function: Any = function, pair: Any = pair, runs: int = runs, seeds: Any = seeds) -> None:
            audit(batched(function), pair=pair, epsilon=1.0, runs=runs, n_jobs=1, seed=next(seeds))

        with timed() as search:
            ratio = _ratio(ask, raw, rounds)
        spent = f"{statistics.median(search[1:]):.3f}"
        rows.append(
            (name, f"1e{power}", *(f"{each:.2f}" for each in ratio), "" if goal is None else f"{goal:g}", spent)
        )
    header = (
        "a batched mechanism that returns",
        "runs",
        "whole audit / raw sampling",
        "min",
        "max",
        "goal",
        "search CPU, s",
    )
    print_table(
        "Whole audits of batched mechanisms, one process; search of a number at 1e6: at most .06 s", header, rows
    )


def _bare_loop(function: Callable[..., Any], pair: Any, runs: int, rng: np.random.Generator) -> None:
    for data in pair:
        for _ in range(runs // 2):
            function(data, rng)


def _raw_sampling(
    function: Callable[..., Any], runs: int, rng: np.random.Generator, pair: tuple[Any, Any] = (10.0, 9.0)
) -> None:
    for call in range(runs // CALL):
        function(pair[call % 2], CALL, rng)


def _certification(mechanism: Any, pair: Any, event: Event, runs: int) -> Callable[[], None]:
    """The certifying stage alone, of so many runs."""
    wrapped = wrap(mechanism)
    work = shards(Stage.CERTIFY, 0, runs, 1 << 18)

    def certify() -> None:
        with Engine(1) as engine, engine.session(wrapped, (AdjacentPair(*pair),), 1, None) as session:
            session.counts(work, HitCounter(event))

    return certify


def slow(data: float, rng: np.random.Generator) -> float:
    """About ten microseconds of plain Python and one draw."""
    total = 0
    for step in range(150):
        total += step
    return data + rng.laplace(0.0, SCALE)


def _workers(seconds: float) -> None:
    """Wall time of one worker against two, on a per-run job of about so many seconds."""
    rng = np.random.Generator(np.random.SFC64(1))
    start = time.perf_counter()
    for _ in range(20_000):
        slow(10.0, rng)
    runs = int(seconds / ((time.perf_counter() - start) / 20_000))
    walls: dict[int, list[float]] = {1: [], 2: []}
    audit(slow, pair=(10.0, 9.0), epsilon=1.0, runs=20_000, n_jobs=2, backend="loky")
    for _ in range(3):
        for n_jobs, found in walls.items():
            start = time.perf_counter()
            audit(slow, pair=(10.0, 9.0), epsilon=1.0, runs=runs, n_jobs=n_jobs)
            found.append(time.perf_counter() - start)
    one, two = (statistics.median(found) for found in walls.values())
    load = os.getloadavg()[0]
    rows = [(f"{runs:,}", f"{one:.2f}", f"{two:.2f}", f"{two / one:.3f}", "0.60", f"{load:.1f}")]
    header = ("runs", "1 worker, s", "2 workers, s", "ratio", "goal", "load")
    print_table("Two worker processes, wall time (needs two free cores)", header, rows)
