"""Loops of a user's own, of Opacus, torch and numpy: the files in plain/, before and after at most ten added lines"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator
from pathlib import Path

from audits.training.table import Row, timed
from dpaudit import ApproximateDP, GaussianDP, audit_training

ENVIRONMENT = "opacus"
PLAIN = Path(__file__).parent / "plain"


def added(name: str) -> int:
    """How many lines the audited file has that the plain one has not."""
    both = [(PLAIN / f"{each}.py").read_text(encoding="utf-8").splitlines() for each in (name, f"{name}_audited")]
    return sum(line.startswith("+ ") and bool(line[2:].strip()) for line in difflib.ndiff(*both))


def rows() -> Iterator[Row]:
    import torch
    from sklearn.datasets import load_breast_cancer, load_digits

    from audits.training.plain import numpy_loop_audited, opacus_loop_audited, torch_loop_audited

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=UserWarning)
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels)
    features, ill = load_breast_cancer(return_X_y=True)
    features = (features - features.mean(axis=0)) / features.std(axis=0)

    def by_torch(included, rng):
        return torch_loop_audited.train(x, y, rng, included)

    def by_numpy(included, rng):
        return numpy_loop_audited.train(features, ill, rng, included)

    def by_opacus(included, rng):
        return opacus_loop_audited.train(torch.utils.data.TensorDataset(x, y), included, rng)

    sampled = ApproximateDP(9.972, 1e-5)
    loops = (
        ("torch", by_torch, GaussianDP(2.0), 9.9973),
        ("numpy", by_numpy, sampled, 9.9663),
        ("opacus", by_opacus, sampled, 9.9663),
    )
    for name, train, claim, truth in loops:
        lines = added(f"{name}_loop")
        result, cpu = timed(
            lambda train=train, claim=claim: audit_training(train, canaries=1_000, claim=claim, underpowered=True)
        )
        fine = lines <= 10 and not result.refuted and 2.0 <= float(result.epsilon_lower or 0.0) <= truth
        said = f"{lines} lines, {result.verdict.value}, epsilon >= {result.epsilon_lower:.2f} of {truth:.2f}"
        yield Row(f"{name}, one run of {claim}, 1,000 canaries", "at most 10 added lines, not refuted", said, fine, cpu)
