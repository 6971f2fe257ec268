"""Input canaries through Opacus 1.6.0: examples that its own loader samples; the score is the final model's margin

A canary is an example with a feature of its own and a random label. It goes through `DPDataLoader`, the model, the
loss, the per-example gradients and the clipping of the library; nothing is put beside its gradients. The attacker sees
the final model alone, and knows its first weights, which are public in the analysis.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from audits.training.table import Row, timed
from dpaudit import ApproximateDP, audit_training
from dpaudit.training.canaries import margins, own_features

ENVIRONMENT = "opacus"
SIZE = 30.0  # of a canary's feature: its gradient is clipped until it is learned by heart
CANARIES = 1_000


def training(steps: int, noise: float, rate: float, clip: float = 1.0) -> Callable[[Any, np.random.Generator], Any]:
    """Logistic regression on digits with input canaries. The rate is fixed: their number is a secret of the coins."""
    import torch
    from opacus import GradSampleModule
    from opacus.data_loader import DPDataLoader
    from opacus.optimizers import DPOptimizer
    from sklearn.datasets import load_digits

    warnings.filterwarnings("ignore", category=UserWarning)
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    data, canaries = own_features((images / 16.0).astype(np.float32), CANARIES, SIZE)
    wrong = np.random.default_rng(0).integers(10, size=CANARIES)

    def train(included: Any, rng: np.random.Generator) -> Any:
        x = torch.tensor(np.concatenate([data, canaries[included]]))
        y = torch.tensor(np.concatenate([labels, wrong[included]]))
        loader = DPDataLoader(torch.utils.data.TensorDataset(x, y), sample_rate=rate)
        model = GradSampleModule(torch.nn.Linear(data.shape[1], 10, bias=False))
        optimizer = DPOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.5),
            noise_multiplier=noise,
            max_grad_norm=clip,
            expected_batch_size=round(rate * len(data)),
        )

        def seen() -> Any:
            with torch.no_grad():
                return margins(model(torch.tensor(canaries)).numpy(), wrong)

        first, taken = seen(), 0
        while taken < steps:
            for inputs, targets in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs), targets).backward()
                optimizer.step()
                taken += 1
                if taken == steps:
                    break
        return seen() - first

    return train


def rows() -> Iterator[Row]:
    for steps, noise, rate, truth, least in ((200, 1.0, 0.1, 9.9663, 1.5), (100, 5.0, 1.0, 9.9973, 2.0)):
        train = training(steps, noise, rate)
        claim = ApproximateDP(round(truth + 0.006, 3), 1e-5)
        result, cpu = timed(
            lambda train=train, claim=claim: audit_training(train, canaries=CANARIES, claim=claim, underpowered=True)
        )
        found = float(result.epsilon_lower or 0.0)
        name = f"one run, T {steps}, s {noise:g}, q {rate:g}; {CANARIES:,} examples"
        yield Row(name, f"certified >= {least} of {truth:.3f}", f"certified {found:.2f}", least <= found <= truth, cpu)
