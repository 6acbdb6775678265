"""The operators of ai.onnx.ml that linear models, support vector machines and their scalers are written in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from flipopt.networks.onnx_graph.node import Function, Node
from flipopt.networks.onnx_graph.scores import class_count


def scaler(node: Node) -> Function:
    """Scaler: (x - offset) scale."""
    node.hold(node.get("offset", [0.0]))
    node.hold(node.get("scale", [1.0]))
    return lambda x, offset, scale: (x - offset) * scale


def normalizer(node: Node) -> Function:
    """Normalizer by the sum of absolute values or by the 2-norm; the kinks of MAX are not translated."""
    norm = node.get("norm", "MAX")
    if norm not in ("L1", "L2"):
        raise ValueError(f"norm {norm} is not translated")
    if norm == "L1":
        return lambda x: x / torch.abs(x).sum(dim=-1, keepdim=True)
    return lambda x: x / x.square().sum(dim=-1, keepdim=True).sqrt()


def extractor(node: Node) -> Function:
    """ArrayFeatureExtractor: columns of the last axis."""
    return lambda x, index: x.index_select(-1, index.reshape(-1))


def linear_classifier(node: Node) -> Function:
    """LinearClassifier: its scores as the second output, after its transform. The labels are not made."""
    classes, b = class_count(node.proto), node.get("intercepts") or [0.0] * class_count(node.proto)
    coefficients = np.asarray(node.get("coefficients", []), dtype=np.float64)
    if classes < 2 or len(b) != classes or coefficients.size % classes or not coefficients.size:
        raise ValueError(
            f"expected coefficients and intercepts for each of {classes} classes, found {len(b)} intercepts"
        )
    node.hold(coefficients.reshape(classes, -1).T)
    node.hold(b)
    transforms: dict[str, Any] = {
        "NONE": lambda y: y,
        "SOFTMAX": lambda y: torch.softmax(y, dim=-1),
        "LOGISTIC": torch.sigmoid,
    }
    transform = node.get("post_transform", "NONE")
    if transform not in transforms:
        raise ValueError(f"post_transform {transform} is not translated")
    return lambda x, W, c: (None, transforms[transform](x @ W + c))


def svm_classifier(node: Node) -> Function:
    """SVMClassifier: the decisions d_ij of every pair of classes i < j as the second output; (-d_01, d_01) of two.

    d_ij = sum over vectors s of class i of a_(j-1)s k(x, s) + sum over those of class j of a_is k(x, s) + rho_ij, and
    d_ij > 0 speaks for i (Chang and Lin, LIBSVM: a library for support vector machines, 2011).
    """
    sizes = [int(size) for size in node.get("vectors_per_class") or []]
    classes, count = len(sizes), sum(sizes)
    rho, a = np.asarray(node.get("rho") or []), np.asarray(node.get("coefficients") or [])
    vectors = np.asarray(node.get("support_vectors") or [])
    if classes < 2 or classes != class_count(node.proto) or min(sizes) < 0 or not count or vectors.size % count:
        raise ValueError("expected support vectors of every class")
    if a.size != (classes - 1) * count or rho.size != classes * (classes - 1) // 2:
        raise ValueError(f"expected {(classes - 1) * count} coefficients, found {a.size}")
    if node.get("post_transform", "NONE") != "NONE" or node.get("prob_a"):
        raise ValueError("probabilities of support vector machines inside a graph are not translated")
    node.hold(vectors.reshape(count, -1))
    node.hold(_pairwise_weights(sizes, a.reshape(classes - 1, count)))
    node.hold(rho)
    k = kernel(node)

    def run(x: Tensor, S: Tensor, A: Tensor, r: Tensor) -> tuple[None, Tensor]:
        d = k(x, S) @ A + r
        return None, torch.cat([-d, d], dim=-1) if classes == 2 else d

    return run


def _pairwise_weights(sizes: list[int], a: Any) -> Any:
    """(vectors, pairs): the weight of every vector in every decision."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    pairs = list(combinations(range(len(sizes)), 2))
    A = np.zeros((len(owner), len(pairs)))
    for p, (i, j) in enumerate(pairs):
        A[owner == i, p], A[owner == j, p] = a[j - 1, owner == i], a[i, owner == j]
    return A


def kernel(node: Node) -> Callable[[Tensor, Tensor], Tensor]:
    """k(X, S), (rows, vectors), of rows X and support vectors S."""
    kind, parameters = node.get("kernel_type", "LINEAR"), node.get("kernel_params") or [0.0, 0.0, 3.0]
    gamma, shift, degree = (float(value) for value in parameters)
    power = int(degree) if degree == int(degree) else degree
    kernels: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "LINEAR": lambda X, S: X @ S.T,
        "POLY": lambda X, S: (gamma * (X @ S.T) + shift) ** power,
        "RBF": lambda X, S: torch.exp(-gamma * (X.unsqueeze(-2) - S).square().sum(dim=-1)),
        "SIGMOID": lambda X, S: torch.tanh(gamma * (X @ S.T) + shift),
    }
    if kind not in kernels:
        raise ValueError(f"kernel {kind} is not translated")
    return kernels[kind]


OPERATORS: dict[str, Callable[[Node], Any]] = {
    "Scaler": scaler,
    "Normalizer": normalizer,
    "ArrayFeatureExtractor": extractor,
    "LinearClassifier": linear_classifier,
    "SVMClassifier": svm_classifier,
}
