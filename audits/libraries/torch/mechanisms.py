"""Textbook noise in torch's floats, as its users draw it. The stream of the audit seeds torch at each call.

torch promises nothing of privacy: the claims are the textbook's, for noise that is a real number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import dpaudit

Floats = npt.NDArray[np.floating]
Rng = np.random.Generator
SIGMA = 4.0  # (1, 1e-5) of answers that move by 1: the analytic Gaussian asks for 3.73


def _laplace(value: float, runs: int, rng: Rng, *, precision: str) -> Floats:
    """A distribution around the answer."""
    _seed(rng)
    answer = torch.tensor(value, dtype=getattr(torch, precision))
    return _array(torch.distributions.Laplace(answer, torch.ones_like(answer)).sample((runs,)))


def _gaussian(value: float, runs: int, rng: Rng) -> Floats:
    """The answer with `torch.randn`, in the precision that is torch's default."""
    _seed(rng)
    return _array(torch.tensor(value) + SIGMA * torch.randn(runs))


def _clamped(value: float, runs: int, rng: Rng, *, precision: str) -> Floats:
    return np.clip(_laplace(value, runs, rng, precision=precision), 0.0, 1.0)


def _coarse(value: float, runs: int, rng: Rng, *, precision: str) -> Floats:
    """The noise on a grid of 1/1024 before it is added: no sum is rounded."""
    return value + np.rint(1024.0 * _laplace(0.0, runs, rng, precision=precision)) / 1024.0


def _whole(value: float, runs: int, rng: Rng, *, precision: str) -> Floats:
    """The noisy answer to the nearest whole number."""
    return np.rint(_laplace(value, runs, rng, precision=precision))


def _seed(rng: Rng) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(int(rng.integers(2**63)))


def _array(drawn: Any) -> Floats:
    return drawn.double().numpy()


laplace, gaussian = dpaudit.batched(_laplace), dpaudit.batched(_gaussian)
clamped, coarse, whole = map(dpaudit.batched, (_clamped, _coarse, _whole))


def beside_the_grid_of_doubles(output: float) -> bool:
    """The output is not a multiple of 2^-53."""
    return output * 2.0**53 % 1.0 != 0.0


def beside_the_grid_of_singles(output: float) -> bool:
    """The output is not a multiple of 2^-24."""
    return output * 2.0**24 % 1.0 != 0.0


def beside_the_grid_of_halves(output: float) -> bool:
    """The output is not a multiple of 2^-11."""
    return output * 2.0**11 % 1.0 != 0.0


def beside_the_grid_of_bfloat16(output: float) -> bool:
    """The output is not a multiple of 2^-8."""
    return output * 2.0**8 % 1.0 != 0.0
