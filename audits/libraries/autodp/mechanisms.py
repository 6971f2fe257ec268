"""Mechanisms that autodp describes, made with numpy's noise; what autodp promises of each is asked of it once a worker.

autodp has no samplers: the noise is that of the docstrings, and a claim that autodp no longer makes is an error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from autodp.calibrator_zoo import ana_gaussian_calibrator
from autodp.mechanism_zoo import GaussianMechanism, LaplaceMechanism, LaplaceSVT_Mechanism
from autodp.transformer_zoo import Composition

import dpaudit

Floats = npt.NDArray[np.float64]
Halt = Callable[[list[float], np.random.Generator], int]


def _promised(found: float, claimed: float) -> None:
    if not 0.99 * claimed <= found <= claimed:
        raise ValueError(f"autodp promises epsilon {found}, the claim is {claimed}")


def _make_svt(b: float, length: int, query: float, epsilon: float) -> Halt:
    """Sparse vectors with one answer: threshold 0, noise of scale b, and `query` times b on the queries."""
    _promised(float(LaplaceSVT_Mechanism({"b": b, "k": length, "c": 1}).RenyiDP(np.inf)), epsilon)

    def halts(answers: list[float], rng: np.random.Generator) -> int:
        """The number of the first query above the threshold; 0 where there is none."""
        above = np.array(answers) + rng.laplace(scale=query * b, size=len(answers)) >= rng.laplace(scale=b)
        return int(above.argmax()) + 1 if above.any() else 0

    return halts


def _make_gaussian(epsilon: float, delta: float) -> object:
    sigma = ana_gaussian_calibrator()(GaussianMechanism, epsilon, delta).params["sigma"]

    def noisy(total: float, runs: int, rng: np.random.Generator) -> Floats:
        return total + sigma * rng.standard_normal(runs)

    return dpaudit.batched(noisy)


def _make_composed(b: float, sigma: float, epsilon: float, delta: float) -> object:
    """One answer with Laplace noise and one with Gaussian noise."""
    both = Composition()([LaplaceMechanism(b=b), GaussianMechanism(sigma=sigma)], [1, 1])
    _promised(float(both.get_approxDP(delta)), epsilon)

    def noisy(total: float, runs: int, rng: np.random.Generator) -> Floats:
        noise = rng.laplace(scale=b, size=runs), sigma * rng.standard_normal(runs)
        return total + np.column_stack(noise)

    return dpaudit.batched(noisy)


svt, gaussian, composed = map(dpaudit.built_by, (_make_svt, _make_gaussian, _make_composed))


def fifth(output: int) -> bool:
    """The fifth query is the first above the threshold."""
    return output == 5
