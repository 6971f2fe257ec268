"""One step of DP-SGD with Opacus: the model wrapped by its PrivacyEngine, one weight, gradients that are the records.

The optimizer's noisy gradient is what the accountant counts as released; of full batches, so that nothing is sampled.
Opacus owns its randomness, torch's default generator. `secure_mode` of the engine needs torchcsprng, which has no build
for this torch; DPOptimizer takes it too, and its sum of four normal numbers is the same with any generator.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch.utils.data import DataLoader, TensorDataset

import dpaudit

Step = Callable[[list[float]], float]


def _make_step(sigma: float, secure: bool = False) -> Step:
    """What the optimizer hands to SGD: clipped to norm 1, summed, with noise."""
    model, optimizer = _private(sigma)
    if secure:
        optimizer = DPOptimizer(
            optimizer.original_optimizer,
            noise_multiplier=sigma,
            max_grad_norm=1.0,
            expected_batch_size=1,
            secure_mode=True,
        )
    (weight,) = model.parameters()

    def step(records: list[float]) -> float:
        _descend(model, optimizer, records)
        return weight.grad.item()

    return step


def _make_layers(sigma: float) -> Callable[[list[float]], tuple[float, ...]]:
    """The same of a weight and a bias, each clipped by itself."""
    model, optimizer = _private(sigma, bias=True, max_grad_norm=[1.0, 1.0], clipping="per_layer")

    def step(records: list[float]) -> tuple[float, ...]:
        _descend(model, optimizer, records)
        return tuple(each.grad.item() for each in model.parameters())

    return step


def _make_adaptive(sigma: float) -> Step:
    """The bound that the first step clips by is 1; the one that the second step will clip by is what it returns."""
    model, optimizer = _private(
        sigma,
        clipping="adaptive",
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.2,
        min_clipbound=0.01,
        max_clipbound=100.0,
        unclipped_num_std=2.0 * sigma,
    )

    def step(records: list[float]) -> float:
        optimizer.max_grad_norm = 1.0
        _descend(model, optimizer, records)
        return float(optimizer.max_grad_norm)

    return step


def _private(sigma: float, bias: bool = False, **asked: Any) -> tuple[Any, Any]:
    """A model and its optimizer, as `make_private` returns them."""
    warnings.filterwarnings("ignore", category=UserWarning)  # secure_mode is off, hooks of layers without inputs
    torch.set_num_threads(1)
    torch.seed()  # from the system's entropy: workers that are forked must not share a state
    model = torch.nn.Linear(1, 1, bias=bias)
    private, optimizer, _ = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(torch.zeros(1, 1))),
        noise_multiplier=sigma,
        poisson_sampling=False,  # every batch is all of the data
        **{"max_grad_norm": 1.0, **asked},
    )
    return private, optimizer


def _descend(model: Any, optimizer: Any, records: list[float]) -> None:
    """One step; the gradient of a record is the record, and 1 for a bias."""
    optimizer.zero_grad()
    model(torch.tensor(records).reshape(-1, 1)).sum().backward()
    optimizer.step()


step, layers, adaptive = map(dpaudit.built_by, (_make_step, _make_layers, _make_adaptive))


def beside_the_grid(output: float) -> bool:
    """The output is not a multiple of 2^-24: single precision has finer numbers only below 1/2."""
    return output * 2.0**24 % 1.0 != 0.0


def far_from_its_start(output: float) -> bool:
    """The next clipping bound is below 0.3 or above 4."""
    return not 0.3 < output < 4.0


def was_raised(output: object) -> bool:
    """The run ended in an exception."""
    return isinstance(output, Exception)
