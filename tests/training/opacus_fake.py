"""The shape of Opacus 1.6's optimizer, on numpy: what a step does to `grad_sample`, in its order."""

from __future__ import annotations

from typing import Any

import numpy as np


class Parameter(np.ndarray):
    """A parameter with the attributes that Opacus hangs on one."""

    grad_sample: Any = None
    summed_grad: Any = None
    grad: Any = None

    def __new__(cls, values: Any) -> Parameter:
        return np.array(values, dtype=np.float32).view(cls)

    def new_zeros(self, shape: Any) -> Any:
        return np.zeros(shape, dtype=np.float32)


class DPOptimizer:
    """Clips, sums, adds noise, divides by the expected batch size, steps: `opacus.optimizers.DPOptimizer`."""

    def __init__(self, parameters: list[Parameter], *, noise: float, seed: int = 0, reduction: str = "mean") -> None:
        self.param_groups = [{"params": parameters}]
        self.noise_multiplier, self.max_grad_norm = noise, 2.0
        self.loss_reduction, self.expected_batch_size = reduction, 4
        self.skipped: list[bool] = []
        self.rng = np.random.default_rng(seed)

    @property
    def params(self) -> list[Parameter]:
        return self.param_groups[0]["params"]

    @property
    def accumulated_iterations(self) -> int:
        (number,) = {len(p.grad_sample) if isinstance(p.grad_sample, list) else 1 for p in self.params}
        return number

    def clipped(self, norms: Any) -> Any:
        return np.minimum(1.0, self.max_grad_norm / (norms + 1e-6))

    def pre_step(self, closure: Any = None) -> bool:
        each = [
            np.concatenate(p.grad_sample) if isinstance(p.grad_sample, list) else p.grad_sample for p in self.params
        ]
        norms = np.sqrt(sum((one.reshape(len(one), -1) ** 2).sum(axis=1) for one in each))
        for p, one in zip(self.params, each, strict=True):
            total = np.einsum("i,i...", self.clipped(norms), one)
            p.summed_grad = total if p.summed_grad is None else p.summed_grad + total
        if self.skipped and self.skipped.pop(0):
            return False
        for p in self.params:
            p.grad = p.summed_grad + self.noise_multiplier * self.max_grad_norm * self.rng.normal(size=p.shape)
            if self.loss_reduction == "mean":
                p.grad = p.grad / (self.expected_batch_size * self.accumulated_iterations)
        return True

    def step(self) -> None:
        if self.pre_step():
            for p in self.params:
                p -= (0.1 * p.grad).astype(np.float32)
                p.summed_grad = None
