"""What an audit keeps of the bare throughput of mechanisms in calls of a fixed size: JAX and torch, on the CPU.

Bare is the same function in a loop, each call of `SIZE` runs with its result as an array of numpy. Both are counted in
CPU seconds of this process, where all runs of the audit are; fresh processes, which import the library, stand apart:
so many seconds each audit, however many runs it has. Without `size` a compiled function is compiled for every size.

A library that is not installed gives no rows. In its environment: `PYTHONPATH=. python -m benchmarks fixed_batches`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.tables import print_table

SIZE, RUNS = 4096, (1_000_000, 10_000_000)
LEAST, FAST = 0.5, 5e6  # the part to be kept; runs a second above which what an audit does with an output costs more
NUMBERS, RECORDS = 16, 32

Batch = Callable[[Any, int, Any], Any]


def of_jax() -> Iterator[tuple[str, Batch]]:
    """A noisy number, and one coordinate of a noisy sum of clipped gradients, jitted for a shape that is given."""
    import jax
    import jax.numpy as jnp

    def laplace(runs: int) -> Any:
        return jax.jit(lambda key, x: x + jax.random.laplace(key, (runs,)))

    def gradients(runs: int) -> Any:
        def released(key: Any, x: Any) -> Any:
            records = jnp.outer(jnp.arange(1.0, RECORDS + 1.0), jnp.ones(NUMBERS)).at[0].set(x)
            weights = jax.random.normal(key, (runs, NUMBERS))
            found = jnp.tanh(weights @ records.T)[:, :, None] * records
            clipped = found / jnp.maximum(1.0, jnp.linalg.norm(found, axis=2, keepdims=True))
            return clipped.sum(axis=1)[:, 0] + jax.random.normal(jax.random.fold_in(key, 1), (runs,))

        return jax.jit(released)

    for name, make in (("JAX: a noisy number", laplace), ("JAX: clipped gradients", gradients)):
        compiled: dict[int, Any] = {}

        def batch(data: float, runs: int, rng: Any, make: Any = make, compiled: dict[int, Any] = compiled) -> Any:
            if runs not in compiled:
                compiled[runs] = make(runs)
            return np.asarray(compiled[runs](jax.random.key(int(rng.integers(1 << 62))), data))

        yield name, batch


def of_torch() -> Iterator[tuple[str, Batch]]:
    """The same two in torch, without a compiler."""
    import torch

    torch.set_num_threads(1)

    def seeded(rng: Any) -> Any:
        return torch.Generator().manual_seed(int(rng.integers(1 << 62)))

    def laplace(data: float, runs: int, rng: Any) -> Any:
        uniform = torch.rand(runs, generator=seeded(rng), dtype=torch.float64) - 0.5
        return (data - uniform.sign() * torch.log1p(-2.0 * uniform.abs())).numpy()

    def gradients(data: float, runs: int, rng: Any) -> Any:
        source = seeded(rng)
        records = torch.arange(1.0, RECORDS + 1.0)[:, None].repeat(1, NUMBERS)
        records[0] = data
        weights = torch.randn((runs, NUMBERS), generator=source)
        found = torch.tanh(weights @ records.T)[:, :, None] * records
        clipped = found / found.norm(dim=2, keepdim=True).clamp(min=1.0)
        return (clipped.sum(dim=1)[:, 0] + torch.randn(runs, generator=source)).numpy()

    yield "torch: a noisy number", laplace
    yield "torch: clipped gradients", gradients


def bare(batch: Batch, least_s: float = 1.0) -> float:
    """Runs in a CPU second of a loop of calls."""
    rng, calls = np.random.default_rng(0), 0
    batch(0.0, SIZE, rng)
    start = time.process_time()
    while (spent := time.process_time() - start) < least_s:
        batch(0.0, SIZE, rng)
        calls += 1
    return calls * SIZE / spent


def run(quick: bool) -> None:
    """Prints the table; `quick` makes audits of a tenth of the runs."""
    import dpaudit

    rows, kept_all = [], True
    libraries = [make for name, make in (("jax", of_jax), ("torch", of_torch)) if find_spec(name) is not None]
    for name, batch in (each for make in libraries for each in make()):
        loop = bare(batch)
        for size, runs in (*((SIZE, each) for each in RUNS if each < loop * 15), (None, RUNS[0] // 10)):
            runs = runs // 10 if quick else runs
            start = time.process_time()
            mechanism = dpaudit.batched(batch, size=size)
            dpaudit.audit(mechanism, pair=(0.0, 1.0), epsilon=4.0, runs=runs, confidence=0.999, n_jobs=1)
            speed = runs / (time.process_time() - start)
            kept_all &= size is None or loop > FAST or speed >= LEAST * loop
            rows.append(
                (name, f"{size or 'none'}", f"{runs:,}", f"{loop:,.0f}", f"{speed:,.0f}", f"{speed / loop:.2f}")
            )
    met = "met" if kept_all else "NOT MET"
    title = f"Calls of {SIZE:,} runs: at least {LEAST} of a bare throughput up to {FAST:,.0f} runs/s: {met}"
    print_table(title, ("mechanism", "size", "runs", "bare runs/s", "audited runs/s", "part"), rows)
