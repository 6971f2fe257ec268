"""One step of DP-SGD with jax_privacy: gradients clipped by `clipped_grad`, noise by `gaussian_privatizer`.

The model is one weight, whose gradient is the record; every batch is all of the data. The library owns its randomness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax_privacy
import numpy as np

import dpaudit


def _make_step(sigma: float, precision: str, noise: str | None = None) -> Callable[[list[float]], float]:
    """The noisy gradient of clip norm 1; `precision` is that of weight and records, `noise` that of the noise."""
    weight = jnp.zeros((), precision)
    gradient = jax_privacy.clipped_grad(lambda weight, records: jnp.mean(weight * records), l2_clip_norm=1.0)
    seed = int(np.random.default_rng().integers(2**31))  # as gaussian_privatizer draws it, but not alike in all workers
    privatizer = jax_privacy.noise_addition.gaussian_privatizer(
        stddev=sigma * gradient.sensitivity(), prng_key=jax.random.key(seed), dtype=noise
    )
    state = privatizer.init(weight)

    @jax.jit
    def descend(records: Any, state: Any) -> tuple[Any, Any]:
        return privatizer.update(gradient(weight, records), state)

    def step(records: list[float]) -> float:
        nonlocal state
        noisy, state = descend(np.array(records, weight.dtype), state)
        return float(noisy)

    return step


step = dpaudit.built_by(_make_step)


def beside_the_grid(output: float) -> bool:
    """The output is not a multiple of 2^-24: single precision has finer numbers only below 1/2."""
    return output * 2.0**24 % 1.0 != 0.0


def beside_the_coarse_grid(output: float) -> bool:
    """The output is not a multiple of 2^-8: bfloat16 has finer numbers only below 1/2."""
    return output * 2.0**8 % 1.0 != 0.0
