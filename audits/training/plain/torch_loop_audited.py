"""Private training on scikit-learn's digits in torch alone: per-example gradients, clipped, summed and noised."""

import torch
from sklearn.datasets import load_digits
from torch.func import functional_call, grad, vmap

from dpaudit import GaussianDP, audit_training
from dpaudit.training.canaries import GradientCanaries

STEPS, CLIP, NOISE, RATE = 100, 1.0, 5.0, 0.5


def train(x, y, rng, included):
    canaries = GradientCanaries(included, rng, clip_norm=CLIP, sample_rate=1.0)
    model = torch.nn.Linear(64, 10)
    weights = {name: each.detach() for name, each in model.named_parameters()}

    def loss(weights, image, label):
        return torch.nn.functional.cross_entropy(functional_call(model, weights, image[None]), label[None])

    for _ in range(STEPS):
        gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
        gradients = canaries.beside(gradients)
        norms = torch.stack([each.flatten(1).norm(dim=1) for each in gradients.values()]).norm(dim=0)
        clipped = (CLIP / norms).clamp(max=1.0)
        released = {name: torch.einsum("i,i...", clipped, each) for name, each in gradients.items()}
        released = {name: each + NOISE * CLIP * torch.randn_like(each) for name, each in released.items()}
        canaries.read(released)
        weights = {name: each - RATE * released[name] / len(x) for name, each in weights.items()}
    return canaries.scores()


if __name__ == "__main__":
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16.0, dtype=torch.float32), torch.tensor(y)
    print(audit_training(lambda included, rng: train(x, y, rng, included), canaries=1_000, claim=GaussianDP(2.0)))
