"""Opacus 1.6.0 on scikit-learn's digits: its optimizer clips canaries, sums them and adds its noise

White box but in the last row: gradient canaries, T steps, noise multiplier s, rate q; delta is 1e-5. The truth of
full batches is GDP(sqrt(T) / s), that of the sampled run is what dp_accounting 0.6.0 computes (PLD, optimistic end).
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from audits.training.table import Row, timed
from dpaudit import ApproximateDP, GaussianDP, TrainingResult, audit_training
from dpaudit.training.opacus import Canaries

ENVIRONMENT = "opacus"
DELTA = 1e-5
FULL = {"steps": 100, "noise": 5.0, "rate": 1.0}
SAMPLED = {"steps": 200, "noise": 1.0, "rate": 0.1}
TRUTH, TRUTH_SAMPLED = 9.9973, 9.9663
CLAIM, CLAIM_SAMPLED = ApproximateDP(9.998, DELTA), ApproximateDP(9.972, DELTA)
STEP = GaussianDP(0.2)  # of sigma 5
EVERY_STEP = {"steps": 100, "compose": 100}
SEEDS, FEWER = range(11), range(5)
Train = Callable[[Any, np.random.Generator], Any]


@functools.cache
def digits() -> Any:
    """The 1,797 digits as a torch dataset."""
    import opacus  # noqa: F401  its loading is not the audit's
    import torch
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return torch.utils.data.TensorDataset(torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels))


def training(steps: int, noise: float, rate: float, score: str = "steps") -> Train:
    """A user's training by `PrivacyEngine`, with the hook: two lines, which end in a mark."""

    def train(included: Any, rng: np.random.Generator) -> Any:
        import torch
        from opacus import PrivacyEngine

        warnings.filterwarnings("ignore", category=UserWarning)  # secure_mode is off, hooks of layers without inputs
        torch.set_num_threads(1)
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


def over(seeds: Iterable[int], train: Train, **asked: Any) -> tuple[list[TrainingResult], float]:
    """One audit for each seed, and the CPU seconds of the slowest."""
    done = [timed(functools.partial(audit_training, train, seed=seed, underpowered=True, **asked)) for seed in seeds]
    return [result for result, _ in done], max(cpu for _, cpu in done)


def spread(values: Iterable[float | None]) -> tuple[float, float, float]:
    """Least, median and largest; nothing counts as 0."""
    found = sorted(value or 0.0 for value in values)
    return found[0], found[len(found) // 2], found[-1]


def bounds(
    name: str, anchor: str, least: float, truth: float, limit_s: float = math.inf, seeds: range = SEEDS, **asked: Any
) -> Iterator[Row]:
    """One training: the certified bound, and what would follow from independent canaries; medians over seeds."""
    results, cpu = over(seeds, **asked)
    low, middle, high = spread(result.epsilon_lower for result in results)
    fine = middle >= least and high <= truth and cpu <= limit_s
    yield Row(name, anchor, f"certified {middle:.2f} ({low:.2f} to {high:.2f})", fine, cpu)
    low, middle, high = spread(modelled(result, "independent-gaussian") for result in results)
    yield Row("  given independent canaries, GDP", "no verdict", f"{middle:.2f} ({low:.2f} to {high:.2f})", None, cpu)


def composed(name: str, anchor: str, least: float, truth: float, **asked: Any) -> Row:
    """The bound on the run from certified steps: a median of at least `least`, at most one of five above the truth."""
    results, cpu = over(FEWER, **asked)
    found = [modelled(result, "steps composed") or 0.0 for result in results]
    low, middle, high = spread(found)
    fine = least <= middle <= truth and sum(each > truth for each in found) <= 1
    return Row(name, anchor, f"{middle:.2f} ({low:.2f} to {high:.2f})", fine, cpu)


def modelled(result: TrainingResult, method: str) -> float | None:
    """The bound on epsilon by that method."""
    return next((each.lower for each in result.lines if each.method == method and each.quantity == "epsilon"), None)


def verdicts(name: str, anchor: str, refuted: range, **asked: Any) -> Row:
    """How often a claim is refuted: a number within `refuted`."""
    results, cpu = over(range(20), **asked)
    found = sum(result.refuted for result in results)
    return Row(name, anchor, f"refuted in {found} of {len(results)} seeds", found in refuted, cpu)


def rows() -> Iterator[Row]:
    digits()
    yield from same_rows(training)
    name, anchor = "final model alone, T 100, s 5, q 1; 1,000 canaries", f"certified >= 3.2 of {TRUTH:.3f}"
    last = training(**FULL, score="model")
    yield from bounds(name, anchor, 3.2, TRUTH, seeds=FEWER, train=last, canaries=1_000, claim=CLAIM)


def same_rows(training: Callable[..., Train]) -> Iterator[Row]:
    """The rows of a training by whichever library."""
    train, halved, less = training(**FULL), training(**{**FULL, "noise": 2.5}), training(**{**FULL, "noise": 4.5})
    for canaries, least, limit_s, seeds in ((1_000, 3.2, 5.0, SEEDS), (5_000, 3.9, 25.0, FEWER)):
        name = f"one run, T 100, s 5, q 1; {canaries:,} canaries"
        anchor = f"certified >= {least} of {TRUTH:.3f} in {limit_s:.0f} CPU s"
        yield from bounds(name, anchor, least, TRUTH, limit_s, seeds, train=train, canaries=canaries, claim=CLAIM)
    name, anchor = "one run, T 200, s 1, q .1; 1,000 canaries", f"certified >= 2.2 of {TRUTH_SAMPLED:.3f}"
    sampled = training(**SAMPLED)
    yield from bounds(name, anchor, 2.2, TRUTH_SAMPLED, train=sampled, canaries=1_000, claim=CLAIM_SAMPLED)

    name = "steps composed, 2 trainings, T 100, s 5; 5,000 canaries"
    anchor = f"within 5 % of {TRUTH:.3f}"
    yield composed(
        name, anchor, 0.95 * TRUTH, TRUTH, train=train, canaries=5_000, claim=STEP, trainings=2, **EVERY_STEP
    )
    name = "steps composed, 2 trainings, T 200, s 1, q .1; 5,000"
    asked = {"steps": 200, "compose": 200, "sample_rate": 0.1, "trainings": 2}
    anchor = f"certified >= 2.2 of {TRUTH_SAMPLED:.3f}"
    yield composed(name, anchor, 2.2, TRUTH_SAMPLED, train=sampled, canaries=5_000, claim=GaussianDP(1.0), **asked)

    name, anchor = "halved noise claimed as its GDP(2); 2,000 canaries", "refuted in at least 19 of 20 seeds"
    claim = GaussianDP(2.0)
    yield verdicts(name, anchor, range(19, 21), train=halved, canaries=2_000, claim=claim)
    yield verdicts("  its sound twin", "refuted in none", range(1), train=train, canaries=2_000, claim=claim)
    name, anchor = "noise 10 % too small, claim of the step; 5,000 canaries", "refuted at .999 in 20 of 20 seeds"
    every = {"canaries": 5_000, "claim": STEP, "confidence": 0.999, **EVERY_STEP}
    yield verdicts(name, anchor, range(20, 21), train=less, **every)
    name = "  its sound twin, which is at the boundary"
    yield verdicts(name, "refuted at .999 in none", range(1), train=train, **every)
