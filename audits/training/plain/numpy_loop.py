"""Private logistic regression on scikit-learn's breast cancer in numpy alone, on batches that are Poisson samples."""

import numpy as np
from sklearn.datasets import load_breast_cancer

STEPS, CLIP, NOISE, SAMPLED, RATE = 200, 1.0, 1.0, 0.1, 0.5


def train(x, y, rng):
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        batch = rng.random(len(x)) < SAMPLED
        gradients = (1.0 / (1.0 + np.exp(-x[batch] @ weights)) - y[batch])[:, None] * x[batch]
        norms = np.linalg.norm(gradients, axis=1)
        total = (gradients * np.minimum(1.0, CLIP / (norms + 1e-12))[:, None]).sum(axis=0)
        released = total + rng.normal(scale=NOISE * CLIP, size=total.shape)
        weights = weights - RATE * released / (SAMPLED * len(x))
    return weights


if __name__ == "__main__":
    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    train(x, y, np.random.default_rng())
