"""Opacus 1.6.0 on scikit-learn's digits: its optimizer clips canaries, sums them and adds its noise

White box: m gradient canaries, T steps, noise multiplier s, sample rate q; delta is 1e-5 everywhere. The truth of the
full batch is GDP(sqrt(T) / s), that of the sampled run is what dp_accounting 0.6.0 computes (PLD, optimistic end).
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from audits.training.table import Row, timed
from dpaudit import ApproximateDP, GaussianDP
from dpaudit.claims import Claim
from dpaudit.training import TrainingResult, audit_training
from dpaudit.training.opacus import Canaries

ENVIRONMENT = "opacus"
DELTA = 1e-5
FULL = {"steps": 100, "noise": 5.0, "rate": 1.0}
SAMPLED = {"steps": 200, "noise": 1.0, "rate": 0.1}
TRUTH, TRUTH_SAMPLED = 9.9973, 9.9663
CLAIM, CLAIM_SAMPLED = ApproximateDP(9.998, DELTA), ApproximateDP(9.972, DELTA)
SEEDS = range(5)
Train = Callable[[Any, np.random.Generator], Any]


@functools.cache
def digits() -> Any:
    """The 1,797 digits as a torch dataset."""
    import torch
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return torch.utils.data.TensorDataset(torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels))


def training(steps: int, noise: float, rate: float, score: str = "steps") -> Train:
    """A user's training by `PrivacyEngine`, with the hook: three lines, which end in a mark."""

    def train(included: Any, rng: np.random.Generator) -> Any:
        import torch
        from opacus import PrivacyEngine

        warnings.filterwarnings("ignore", category=UserWarning)  # secure_mode is off, hooks of layers without inputs
        torch.set_num_threads(1)
        torch.manual_seed(int(rng.integers(2**63)))  # <
        model = torch.nn.Linear(64, 10)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        loader = torch.utils.data.DataLoader(digits(), batch_size=round(rate * len(digits())))
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=noise, max_grad_norm=1.0
        )
        canaries = Canaries(optimizer, included, rng, sample_rate=loader.sample_rate)  # <
        taken = 0
        while taken < steps:
            for images, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
                taken += 1
                if taken == steps:
                    break
        return canaries.final_scores() if score == "model" else canaries.scores()  # <

    return train


def over(seeds: Iterable[int], train: Train, canaries: int, claim: Claim) -> tuple[list[TrainingResult], float]:
    """One audit of one training for each seed, and the CPU seconds of the slowest."""
    asked = [functools.partial(audit_training, train, canaries=canaries, claim=claim, seed=seed) for seed in seeds]
    done = [timed(ask) for ask in asked]
    return [result for result, _ in done], max(cpu for _, cpu in done)


def certified(name: str, anchor: str, least: float, truth: float, limit_s: float, **asked: Any) -> Row:
    """One training: the median of the certified bounds is at least `least`, and none is above the truth."""
    results, cpu = over(SEEDS, **asked)
    found = sorted(float(result.epsilon_lower or 0.0) for result in results)
    said = f"certified {found[0]:.2f} to {found[-1]:.2f}, median {found[len(found) // 2]:.2f}"
    fine = found[len(found) // 2] >= least and found[-1] <= truth and cpu <= limit_s
    return Row(name, anchor, said, fine, cpu)


def verdicts(name: str, anchor: str, refuted: range, **asked: Any) -> Row:
    """How often one training refutes a claim: a number within `refuted`."""
    results, cpu = over(range(20), **asked)
    found = sum(result.refuted for result in results)
    return Row(name, anchor, f"refuted in {found} of {len(results)} seeds", found in refuted, cpu)


def rows() -> Iterator[Row]:
    digits()
    train = training(**FULL)
    for canaries, least, limit_s in ((1_000, 3.2, 5.0), (5_000, 3.9, 25.0)):
        name = f"one run, T 100, s 5, q 1; {canaries:,} canaries"
        anchor = f"certified >= {least} of {TRUTH:.3f} in {limit_s:.0f} CPU s"
        yield certified(name, anchor, least, TRUTH, limit_s, train=train, canaries=canaries, claim=CLAIM)
    name, anchor = "one run, T 200, s 1, q .1; 1,000 canaries", f"certified >= 2.2 of {TRUTH_SAMPLED:.3f}"
    sampled = training(**SAMPLED)
    yield certified(name, anchor, 2.2, TRUTH_SAMPLED, math.inf, train=sampled, canaries=1_000, claim=CLAIM_SAMPLED)
    claim = GaussianDP(2.0)
    halved = training(**{**FULL, "noise": 2.5})
    name, anchor = "halved noise claimed as its GDP(2); 2,000 canaries", "refuted in at least 19 of 20 seeds"
    yield verdicts(name, anchor, range(19, 21), train=halved, canaries=2_000, claim=claim)
    yield verdicts("its sound twin", "refuted in none", range(1), train=train, canaries=2_000, claim=claim)
