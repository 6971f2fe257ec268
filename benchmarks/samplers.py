"""What samplers of the catalogue cost beside drawing all the Laplace noise a run could need with `rng.laplace`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.tables import print_table

ROUNDS, CALLS, RUNS = 9, 40, 1 << 13
LINES: tuple[tuple[str, str, dict[str, Any], Any, int, float], ...] = (
    ("a number", "laplace", {}, 10.0, 1, 1.2),
    ("AboveThreshold, 10 answers", "above_threshold", {}, [0.0] * 10, 11, 0.5),
    ("Report Noisy Max, 10 answers", "report_noisy_max", {}, [0.0] * 10, 10, 1.3),
    ("Sparse, c = 3, 20 answers", "sparse", {"c": 3}, [0.0] * 20, 23, 1.4),
)


def seconds(call: Callable[[np.random.Generator], Any], seed: int) -> float:
    """CPU seconds of some calls."""
    rng = np.random.Generator(np.random.SFC64(seed))
    start = time.process_time()
    for _ in range(CALLS):
        call(rng)
    return time.process_time() - start


def run(quick: bool) -> None:
    """Prints the table; the two sides of each ratio take turns in one run."""
    from dpaudit.catalogue import find

    rows = []
    for title, name, parameters, data, draws, goal in LINES:
        sampler = find(name).with_parameters(parameters).open().call

        def sample(rng: np.random.Generator, sampler: Callable[..., Any] = sampler, data: Any = data) -> Any:
            return sampler(data, RUNS, rng)

        def noise(rng: np.random.Generator, draws: int = draws) -> Any:
            return rng.laplace(0.0, 1.0, (draws, RUNS))

        taken = [(seconds(sample, seed), seconds(noise, seed)) for seed in range(3 if quick else ROUNDS)]
        ratio = statistics.median(one / other for one, other in taken)
        each = 1e9 * statistics.median(one for one, _ in taken) / (CALLS * RUNS)
        rows.append((title, f"{each:.1f}", f"{ratio:.3f}", f"{goal:g} {'met' if ratio <= goal else 'MISSED'}"))
    header = ("sampler", "ns a run", "of the noise of rng.laplace", "goal")
    print_table(f"Samplers: CPU time, median of {ROUNDS} rounds", header, rows)
