"""Gradient canaries in a training by Opacus: its own optimizer clips them, sums them and adds its noise.

Nothing of torch or opacus is imported: the optimizer that the user has made brings all that is needed.
"""

from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.errors import InvalidSpec
from dpaudit.training.canaries import GradientCanaries, longer_by

BY_INPUTS = "; put canaries into its data: canaries.own_features"
OTHERS = {  # optimizers that take a step in another way, and what to do instead
    "DPOptimizerFastGradientClipping": "ghost clipping keeps no gradient of an example" + BY_INPUTS,
    "DPPerLayerOptimizer": "each layer is clipped by itself, and a canary is in one layer" + BY_INPUTS,
    "AdaClipDPOptimizer": "its clip norm moves from step to step" + BY_INPUTS,
    "DistributedDPOptimizer": "several workers take one step; audit the training on one",
    "SimpleDistributedPerLayerOptimizer": "several workers take one step; audit the training on one",
}


class Canaries(GradientCanaries):
    """Gradient canaries in the steps of an Opacus optimizer, as `PrivacyEngine.make_private` returns it.

    The optimizer gets one parameter more, a coordinate for each canary, and before each step `grad_sample` of every
    parameter gets a row for each canary that takes part. What is clipped, summed, noised, scaled and, for
    `final_scores`, applied is the library's doing. Gradients that are accumulated, and batches that a
    `BatchMemoryManager` splits, count as the one step that they are.

    `included` and `rng` are those that `train` was called with. `sample_rate` is what the accountant was told:
    `loader.sample_rate` of Opacus' loader, or 1.0 for full batches. A canary is ten times as long as the clip norm.

    Raises `InvalidSpec` for an optimizer that takes its steps in another way.
    """

    def __init__(self, optimizer: Any, included: Any, rng: np.random.Generator, *, sample_rate: float) -> None:
        kinds = [kind.__name__ for kind in type(optimizer).__mro__]
        if other := next((kind for kind in kinds if kind in OTHERS), None):
            raise InvalidSpec(f"gradient canaries do not go through {other}: {OTHERS[other]}")
        if "DPOptimizer" not in kinds:
            raise InvalidSpec(f"optimizer must be the DPOptimizer that make_private returns, got {kinds[0]}")
        super().__init__(
            included,
            rng,
            clip_norm=optimizer.max_grad_norm,
            sample_rate=sample_rate,
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
        others = [each for each in self._optimizer.params if each is not self.parameter]
        if any(each.grad_sample is None for each in others):
            return self._take(closure)  # the library says what is missing
        places = self.drawn()
        for each in others:
            given = each.grad_sample
            *before, last = given if isinstance(given, list) else [given]
            longer = longer_by(len(places), last)
            each.grad_sample = [*before, longer] if isinstance(given, list) else longer
        own = [self.rows(len(piece), places[:0], self.parameter) for piece in before]
        own.append(self.rows(len(last), places, self.parameter))
        self.parameter.grad_sample = own if isinstance(given, list) else own[0]
        taken = self._take(closure)
        if taken:  # not where a batch that was split goes on
            mean = self._optimizer.loss_reduction == "mean"
            size = self._optimizer.expected_batch_size * self._optimizer.accumulated_iterations if mean else 1.0
            self.record(self.parameter.grad, size, self._optimizer.noise_multiplier)
        return taken
