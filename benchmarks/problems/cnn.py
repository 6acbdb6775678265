"""A small convolutional network for MNIST, as a user's torch module would be.

``python -m benchmarks.problems.cnn`` trains it anew (seed 0, two epochs, about a minute) and writes its parameters to
cnn.npz beside this file, with its test accuracy.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from torch import Tensor, nn

from flipopt.common.files import read_npz
from flipopt.common.writing import atomic_path
from flipopt.networks import TorchNetwork

FILE = Path(__file__).with_name("cnn.npz")
SEED, EPOCHS, BATCH, RATE = 0, 2, 128, 2e-3


def module() -> nn.Sequential:
    """28 x 28 pixels, two convolutions with stride 2 and smooth activations, ten logits."""
    first, second = nn.Conv2d(1, 8, 5, stride=2), nn.Conv2d(8, 16, 5, stride=2)
    return nn.Sequential(first, nn.ELU(), second, nn.ELU(), nn.Flatten(), nn.Linear(256, 10))


@cache
def network() -> TorchNetwork:
    """The trained network, float32, for flattened images with pixels in [0, 1]."""
    net, arrays = module(), read_npz(FILE, required=("accuracy",))
    net.load_state_dict({name: torch.tensor(arrays[name]) for name in net.state_dict()})
    return TorchNetwork(net, input_shape=(1, 28, 28))


def train() -> None:
    """Train, and write parameters and accuracy."""
    from data_prep.datasets import load_dataset

    images = load_dataset("mnist")
    X, y = _tensors(images.train.images), torch.tensor(images.train.labels.astype(np.int64))
    torch.manual_seed(SEED)
    net = module()
    optimiser = torch.optim.Adam(net.parameters(), RATE)
    for epoch in range(EPOCHS):
        for rows in track(torch.split(torch.randperm(len(X)), BATCH), f"epoch {epoch + 1} of {EPOCHS}"):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    with torch.no_grad():
        labels = net(_tensors(images.test.images)).argmax(dim=1).numpy()
    accuracy = float((labels == images.test.labels).mean())
    arrays = {name: tensor.numpy() for name, tensor in net.state_dict().items()}
    with atomic_path(FILE) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, accuracy=np.array(accuracy), **arrays)
    print(f"test accuracy {accuracy:.4f}, in {FILE}")


def _tensors(images: np.ndarray) -> Tensor:
    return torch.tensor(images.reshape(len(images), 1, 28, 28) / 255.0, dtype=torch.float32)


if __name__ == "__main__":
    train()
