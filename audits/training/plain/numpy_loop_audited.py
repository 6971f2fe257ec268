"""Private logistic regression on scikit-learn's breast cancer in numpy alone, on batches that are Poisson samples."""

import numpy as np
from sklearn.datasets import load_breast_cancer

from dpaudit import audit_training
from dpaudit.training.canaries import GradientCanaries

STEPS, CLIP, NOISE, SAMPLED, RATE = 200, 1.0, 1.0, 0.1, 0.5


def train(x, y, rng, included):
    canaries = GradientCanaries(included, rng, clip_norm=CLIP, sample_rate=SAMPLED, noise_multiplier=NOISE)
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        batch = rng.random(len(x)) < SAMPLED
        gradients = (1.0 / (1.0 + np.exp(-x[batch] @ weights)) - y[batch])[:, None] * x[batch]
        gradients = canaries.beside(gradients)
        norms = np.linalg.norm(gradients, axis=1)
        total = (gradients * np.minimum(1.0, CLIP / (norms + 1e-12))[:, None]).sum(axis=0)
        released = total + rng.normal(scale=NOISE * CLIP, size=total.shape)
        released = canaries.read(released)
        weights = weights - RATE * released / (SAMPLED * len(x))
    return canaries.scores()


if __name__ == "__main__":
    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    asked = {"epsilon": 9.98, "delta": 1e-5, "underpowered": True}  # a bound: one run cannot refute so large a claim
    print(audit_training(lambda included, rng: train(x, y, rng, included), canaries=1_000, **asked))
