"""Gradient canaries in a training by Opacus: its own optimizer clips them, sums them and adds its noise.

Nothing of torch or opacus is imported: the optimizer that the user has made brings all that is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.errors import InvalidSpec
from dpaudit.training.canaries import GradientCanaries, longer_by

OTHERS = {  # optimizers that take a step in another way, and what to do instead
    "DPOptimizerFastGradientClipping": "ghost clipping keeps no gradient of an example: audit it by input canaries",
    "DPPerLayerOptimizer": "clipping by layers bounds no canary of one layer: audit it by input canaries",
    "AdaClipDPOptimizer": "the clip norm moves from step to step: audit it by input canaries",
    "DistributedDPOptimizer": "several workers take one step: audit the training on one",
    "SimpleDistributedPerLayerOptimizer": "several workers take one step: audit the training on one",
}


class Canaries(GradientCanaries):
    """Gradient canaries in the steps of an Opacus optimizer, as `PrivacyEngine.make_private` returns it.

    The optimizer gets one parameter more, a coordinate for each canary, and before each step `grad_sample` of every
    parameter gets a row for each canary that takes part. What is clipped, summed, noised, scaled and, for
    `final_scores`, applied is the library's doing. Gradients that are accumulated, and batches that a
    `BatchMemoryManager` splits, count as the one step that they are.

    `included` and `rng` are those that `train` was called with. `sample_rate` is what the accountant was told:
    `loader.sample_rate` of Opacus' loader, or 1.0 for full batches. `norm` is how long a canary is before it is
    clipped: ten times the clip norm.

    Raises `InvalidSpec` for an optimizer that takes its steps in another way.
    """

    def __init__(
        self, optimizer: Any, included: Any, rng: np.random.Generator, *, sample_rate: float, norm: float | None = None
    ) -> None:
        kinds = [kind.__name__ for kind in type(optimizer).__mro__]
        for kind in kinds:
            if kind in OTHERS:
                raise InvalidSpec(f"gradient canaries do not go through {kind}: {OTHERS[kind]}")
        if "DPOptimizer" not in kinds:
            raise InvalidSpec(f"optimizer must be the DPOptimizer that make_private returns, got {kinds[0]}")
        super().__init__(
            included,
            rng,
            clip_norm=optimizer.max_grad_norm,
            sample_rate=sample_rate,
            norm=norm,
            noise_multiplier=optimizer.noise_multiplier,
        )
        first = optimizer.params[0]
        self.parameter = type(first)(first.new_zeros(self.count))
        self.parameter.grad_sample = self.parameter.summed_grad = None
        optimizer.param_groups[0]["params"].append(self.parameter)
        self._optimizer, self._take = optimizer, optimizer.pre_step
        optimizer.pre_step = self._pre_step

    def final_scores(self) -> Reals:
        """Scores of the final model alone: how far each canary's coordinate went against its gradient."""
        self.scores()  # it raises where no step was taken
        return -np.asarray(self.parameter.tolist(), dtype=float)

    def _pre_step(self, closure: Any = None) -> Any:
        places = self.drawn()
        for parameter in self._optimizer.params:
            if parameter is not self.parameter:
                given = parameter.grad_sample
                parameter.grad_sample = _longer(given, len(places))
        pieces = given if isinstance(given, list) else [given]
        own = [self.rows(len(each), places[:0], self.parameter) for each in pieces[:-1]]
        own.append(self.rows(len(pieces[-1]), places, self.parameter))
        self.parameter.grad_sample = own if isinstance(given, list) else own[0]
        taken = self._take(closure)
        if taken:  # not where a batch that was split goes on
            mean = self._optimizer.loss_reduction == "mean"
            size = self._optimizer.expected_batch_size * self._optimizer.accumulated_iterations if mean else 1.0
            self.record(self.parameter.grad, size, self._optimizer.noise_multiplier)
        return taken


def _longer(given: Any, rows: int) -> Any:
    """Gradients of examples with rows of zeros after them; of several pieces the last one has them."""
    return [*given[:-1], longer_by(rows, given[-1])] if isinstance(given, list) else longer_by(rows, given)
