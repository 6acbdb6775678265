"""ReLU networks of several widths and depths for the proofs, trained on MNIST by one short recipe."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn

import flipopt as fo
from data_prep.datasets import load_dataset
from flipopt.common.checks import Array

HIDDEN = {"2 x 100": (100, 100), "3 x 100": (100, 100, 100), "4 x 50": (50, 50, 50, 50), "2 x 200": (200, 200)}
EPOCHS, BATCH, RATE = 3, 128, 1e-3


def trained(hidden: tuple[int, ...], seed: int = 0) -> tuple[fo.DenseNetwork, Array, float]:
    """A network, test images as points (images, 784) with pixels from 0 to 1, and its accuracy on them.

    Adam with a constant rate on the cross-entropy, from torch's own initial weights.
    """
    mnist = load_dataset("mnist")
    X = torch.from_numpy(mnist.train.images.reshape(len(mnist.train.images), -1) / np.float32(255))
    labels = torch.from_numpy(np.asarray(mnist.train.labels, dtype=np.int64))
    torch.manual_seed(seed)
    linear = [nn.Linear(*pair) for pair in pairwise((X.shape[1], *hidden, 10))]
    module = nn.Sequential(*[layer for first in linear[:-1] for layer in (first, nn.ReLU())], linear[-1])
    optimiser = torch.optim.Adam(module.parameters(), RATE)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(X)).split(BATCH):  # type: ignore[no-untyped-call]
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(X[rows]), labels[rows]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    weights = [layer.weight.detach().numpy().T for layer in linear]
    net = fo.DenseNetwork(weights, [layer.bias.detach().numpy() for layer in linear], fo.ReLU())
    images = mnist.test.images.reshape(len(mnist.test.images), -1) / np.float32(255)
    return net, images, float((net.predict(images) == mnist.test.labels).mean())
