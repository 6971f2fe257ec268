"""What an audit keeps of the bare throughput of mechanisms in calls of a fixed size: JAX and torch, on the CPU.

Bare is the same function in a loop, each call of `SIZE` runs with its result as an array of numpy: the mean of a loop
before an audit and one after it. Both are counted in CPU seconds of this process, where all runs of the audit are;
fresh processes, which import the library, stand apart: so many seconds each audit, however many runs it has. What does
not grow with the runs (search, its statistics) is told by an audit of `FEW` runs; the first audit of a process imports
too, and stands apart. `once` is the part that would be left were each output copied and compared once, and no more.

Both libraries have one thread: others wait by spinning, which would count as work of theirs.

A library that is not installed gives no rows. In its environment: `PYTHONPATH=. python -m benchmarks fixed_batches`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.tables import print_table

SIZE, RUNS = 4096, (1_000_000, 10_000_000)
LEAST, LONGEST_S, FEW = 0.5, 15.0, 20_000  # the part to be kept; bare seconds; runs that tell what does not grow
NUMBERS, RECORDS = 16, 32

Batch = Callable[[Any, int, Any], Any]


def of_jax() -> Iterator[tuple[str, Batch]]:
    """A noisy number, and a noisy sum of clipped gradients: one coordinate, and all; jitted for one shape."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    import jax
    import jax.numpy as jnp

    def laplace(runs: int) -> Any:
        return jax.jit(lambda key, x: x + jax.random.laplace(key, (runs,)))

    def gradients(runs: int) -> Any:
        return jax.jit(
            lambda key, x: summed(key, x, runs)[:, 0] + jax.random.normal(jax.random.fold_in(key, 1), (runs,))
        )

    def vectors(runs: int) -> Any:
        def released(key: Any, x: Any) -> Any:
            return summed(key, x, runs) + jax.random.normal(jax.random.fold_in(key, 1), (runs, NUMBERS))

        return jax.jit(released)

    def summed(key: Any, x: Any, runs: int) -> Any:
        records = jnp.outer(jnp.arange(1.0, RECORDS + 1.0), jnp.ones(NUMBERS)).at[0].set(x)
        weights = jax.random.normal(key, (runs, NUMBERS))
        found = jnp.tanh(weights @ records.T)[:, :, None] * records
        clipped = found / jnp.maximum(1.0, jnp.linalg.norm(found, axis=2, keepdims=True))
        return clipped.sum(axis=1)

    made = {"a noisy number": laplace, "clipped gradients": gradients, f"all {NUMBERS} of them": vectors}
    for name, make in made.items():
        compiled: dict[int, Any] = {}

        def batch(data: float, runs: int, rng: Any, make: Any = make, compiled: dict[int, Any] = compiled) -> Any:
            if runs not in compiled:
                compiled[runs] = make(runs)
            return np.asarray(compiled[runs](jax.random.key(int(rng.integers(1 << 62))), data))

        yield f"JAX: {name}", batch


def of_torch() -> Iterator[tuple[str, Batch]]:
    """The same in torch, without a compiler."""
    import torch

    torch.set_num_threads(1)

    def seeded(rng: Any) -> Any:
        return torch.Generator().manual_seed(int(rng.integers(1 << 62)))

    def laplace(data: float, runs: int, rng: Any) -> Any:
        uniform = torch.rand(runs, generator=seeded(rng), dtype=torch.float64) - 0.5
        return (data - uniform.sign() * torch.log1p(-2.0 * uniform.abs())).numpy()

    def gradients(data: float, runs: int, rng: Any, shape: tuple[int, ...] = (), coordinates: Any = 0) -> Any:
        source = seeded(rng)
        records = torch.arange(1.0, RECORDS + 1.0)[:, None].repeat(1, NUMBERS)
        records[0] = data
        weights = torch.randn((runs, NUMBERS), generator=source)
        found = torch.tanh(weights @ records.T)[:, :, None] * records
        clipped = found / found.norm(dim=2, keepdim=True).clamp(min=1.0)
        return (clipped.sum(dim=1)[:, coordinates] + torch.randn((runs, *shape), generator=source)).numpy()

    def vectors(data: float, runs: int, rng: Any) -> Any:
        return gradients(data, runs, rng, (NUMBERS,), slice(None))

    yield "torch: a noisy number", laplace
    yield "torch: clipped gradients", gradients
    yield f"torch: all {NUMBERS} of them", vectors


def bare(batch: Batch, least_s: float = 1.0) -> float:
    """Runs in a CPU second of a loop of calls."""
    rng, calls = np.random.default_rng(0), 0
    batch(0.0, SIZE, rng)
    start = time.process_time()
    while (spent := time.process_time() - start) < least_s:
        batch(0.0, SIZE, rng)
        calls += 1
    return calls * SIZE / spent


def once(batch: Batch, least_s: float = 0.2) -> float:
    """Outputs in a CPU second that are copied and compared with a number, and the hits counted."""
    found, calls = batch(0.0, SIZE, np.random.default_rng(0)), 0
    start = time.process_time()
    while (spent := time.process_time() - start) < least_s:
        np.count_nonzero(np.array(found) > 1.0)
        calls += 1
    return calls * SIZE / spent


def audited(batch: Batch, size: int | None, runs: int) -> float:
    """CPU seconds of an audit."""
    import dpaudit

    start = time.process_time()
    mechanism = dpaudit.batched(batch, size=size)
    dpaudit.audit(mechanism, pair=(0.0, 1.0), epsilon=4.0, runs=runs, confidence=0.999, n_jobs=1)
    return time.process_time() - start


def run(quick: bool) -> None:
    """Prints the table; `quick` makes audits of a tenth of the runs."""
    header = ("mechanism", "size", "runs", "bare runs/s", "audited runs/s", "part", "once", f"{FEW:,} runs, s")
    title = f"Calls of {SIZE:,} runs: what is left of a bare throughput, of which {LEAST} is asked"
    print_table(title, (*header, f"at {LEAST}"), _rows(quick))


def _rows(quick: bool) -> Iterator[tuple[str, ...]]:
    libraries = [make for name, make in (("jax", of_jax), ("torch", of_torch)) if find_spec(name) is not None]
    for number, (name, batch) in enumerate(each for make in libraries for each in make()):
        loop = bare(batch)
        first = f"first {audited(batch, SIZE, FEW):.2f}, then " if number == 0 else ""
        few = f"{first}{audited(batch, SIZE, FEW):.2f}"
        for size, runs in (*((SIZE, each) for each in RUNS if each < loop * LONGEST_S), (None, RUNS[0] // 10)):
            runs = runs // 10 if quick else runs
            before, seconds, after = bare(batch), audited(batch, size, runs), bare(batch)
            loop = 2.0 / (1.0 / before + 1.0 / after)
            kept, most = runs / seconds / loop, 1.0 / (1.0 + loop / once(batch))
            met = "" if size is None else "met" if kept >= LEAST else "not met"
            figures = (f"{loop:,.0f}", f"{runs / seconds:,.0f}", f"{kept:.2f}", f"{most:.2f}", few, met)
            yield name, f"{size or 'none'}", f"{runs:,}", *figures
