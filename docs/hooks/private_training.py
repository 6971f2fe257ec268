"""The training whose report the pages show: a private logistic regression whose noise is half of what was accounted."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.training.canaries import GradientCanaries

STEPS, CLIP, NOISE = 10, 1.0, 10**0.5 / 2.0  # ten full-batch steps at this noise multiplier are 2-GDP
DATA = np.random.default_rng(0).normal(size=(200, 8))
LABELS = (DATA[:, 0] > 0.0).astype(float)


def train(included: Any, rng: np.random.Generator) -> Any:
    """Noisy gradient descent; the canaries are rows beside the gradients of every step."""
    canaries = GradientCanaries(included, rng, clip_norm=CLIP, sample_rate=1.0)
    weights = np.zeros(DATA.shape[1])
    for _ in range(STEPS):
        gradients = (1.0 / (1.0 + np.exp(-DATA @ weights)) - LABELS)[:, None] * DATA
        rows = canaries.beside(gradients)
        clipped = rows * np.minimum(1.0, CLIP / np.linalg.norm(rows, axis=1, keepdims=True))
        noisy = clipped.sum(axis=0) + rng.normal(scale=0.5 * NOISE * CLIP, size=rows.shape[1])  # the mistake: 0.5
        weights -= canaries.read(noisy) / len(DATA)
    return canaries.scores()
