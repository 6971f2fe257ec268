"""Private training on scikit-learn's digits by Opacus, on batches that its loader samples."""

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits

EPOCHS, CLIP, NOISE, BATCH = 20, 1.0, 1.0, 180


def train(data):
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=NOISE, max_grad_norm=CLIP
    )
    for _ in range(EPOCHS):
        for images, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    x, y = load_digits(return_X_y=True)
    data = torch.utils.data.TensorDataset(torch.tensor(x / 16.0, dtype=torch.float32), torch.tensor(y))
    train(data)
