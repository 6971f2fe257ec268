"""Textbook noise in JAX's floats, as its users draw it. The stream of the audit makes the keys.

JAX promises nothing of privacy: the claims are the textbook's, for noise that is a real number.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

import dpaudit

Floats = npt.NDArray[np.floating]
Rng = np.random.Generator
SIZE = 4096  # of every call: it is compiled for this size
SIGMA = 4.0  # (1, 1e-5) of answers that move by 1: the analytic Gaussian asks for 3.73


def _laplace(value: float, runs: int, rng: Rng, *, precision: str) -> Floats:
    """The answer with `jax.random.laplace`."""
    return _array(jnp.array(value, precision) + jax.random.laplace(_key(rng), (runs,), precision))


def _gaussian(value: float, runs: int, rng: Rng) -> Floats:
    """The answer with `jax.random.normal`, in the precision that is JAX's default."""
    return _array(value + SIGMA * jax.random.normal(_key(rng), (runs,)))


def _coarse(value: float, runs: int, rng: Rng) -> Floats:
    """The noise on a grid of 1/1024 before it is added: no sum is rounded."""
    return value + np.rint(1024.0 * _laplace(0.0, runs, rng, precision="float32")) / 1024.0


def _whole(value: float, runs: int, rng: Rng) -> Floats:
    """The noisy answer to the nearest whole number."""
    return np.rint(_laplace(value, runs, rng, precision="float32"))


def _key(rng: Rng) -> Any:
    return jax.random.key(int(rng.integers(2**31)))


def _array(drawn: Any) -> Floats:
    return np.asarray(drawn.astype(jnp.float32)).astype(float)


laplace, gaussian = dpaudit.batched(_laplace, size=SIZE), dpaudit.batched(_gaussian, size=SIZE)
coarse, whole = dpaudit.batched(_coarse, size=SIZE), dpaudit.batched(_whole, size=SIZE)


def beside_the_grid_of_singles(output: float) -> bool:
    """The output is not a multiple of 2^-24."""
    return output * 2.0**24 % 1.0 != 0.0


def beside_the_grid_of_bfloat16(output: float) -> bool:
    """The output is not a multiple of 2^-8."""
    return output * 2.0**8 % 1.0 != 0.0
