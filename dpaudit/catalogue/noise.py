"""Laplace noise in bulk: half the cost of `Generator.laplace`, the same distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.arrays import Reals

Rng = np.random.Generator

# their raw words are 64 random bits, five times cheaper to get than bytes; those of MT19937 are half empty
_FULL_WORDS = (np.random.SFC64, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox)


def laplace(rng: Rng, scale: float, size: int) -> Reals:
    """`size` draws of Lap(scale): an exponential with a fair sign, the sign bit of a random byte.

    A scale of 0 gives zeros, for the twins that leave a noise out.
    """
    if scale == 0.0:
        return np.zeros(size)
    noise = rng.standard_exponential(size)
    noise *= scale
    np.copysign(noise, _bytes(rng, size), out=noise)
    return noise


def _bytes(rng: Rng, size: int) -> npt.NDArray[np.int8]:
    if isinstance(rng.bit_generator, _FULL_WORDS):
        return rng.bit_generator.random_raw(-(-size // 8)).view(np.int8)[:size]
    return np.frombuffer(rng.bytes(size), np.int8)
