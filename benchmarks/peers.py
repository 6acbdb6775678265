"""Attack libraries as peers: how near is the nearest point of another class, by foolbox and by adv-lib?

Every peer minimises the 2-norm over all other classes, in float32 as these libraries are used, with its defaults unless
said otherwise here. An image counts as solved where the float64 network has another class at the point that the peer
returns, and the distance is that of this point.

The libraries clip to a box, in adv-lib [0, 1]. Features have none, so ours is the range of the data widened by its own
length on both sides, where nothing is clipped. Measured on the first 20 images of mnist-net1, as the median (mean)
ratio to the nearest of the flips that IPOPT finds in every class:

- DDN, FAB, DeepFool and SuperDeepFool hardly depend on the box. With the range widened by 0.02, 1 and 10 of its lengths
  DDN-200 has 1.001 (1.07) each time, FAB 1.02, 1.03 and 1.03 (1.23), SuperDeepFool 1.32, 1.35 and 1.35 (1.4). The last
  finds nothing for 12 to 14 of 200 images, with ten times the steps too.
- The steps of C&W are fractions of the box: 1.006, 1.03 and 3.1 (medians of 10 images) with its default stepsize of
  0.01. In our box stepsizes of 0.01, 0.003 and 0.001 have 1.03 (1.16), 1.008 (1.08) and 1.001 (1.08), so 0.001 it is.
  The default of 10000 steps came 0.2% nearer than 1000 in thirteen times the time (10 images), so 1000 it is.
- DDN-200 aimed at each other class in turn has 1.001 (1.002): what DDN misses is the class, not the distance.
- FMN of foolbox 3.3.4 has 2.2 (2.5) with 100 or 1000 steps in any box: its projection on the ball scales by
  norms / norms, which does nothing. FMN of adv-lib has 1.000 (1.07) with 1000 steps; its default is 10.
- Brendel and Bethge's attack has 1.000 (1.07). foolbox multiplies its trust region by the number of images, which we
  take back. Its points and those of FMN are so near the boundary that float64 has most of them on the wrong side; hence
  the moves in OUTWARDS.
"""

from __future__ import annotations

import copy
import importlib
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from flipopt.common.checks import Array, one_of
from flipopt.common.errors import InputError
from flipopt.networks import DenseNetwork, TorchNetwork
from flipopt.networks.activations import Activation, Erf, Identity, PReLU, ReLU, Tanh
from models.architectures import DenseModule, TrainedErf

Box = tuple[float, float]
Attack = Callable[[nn.Module, Tensor, Tensor, Box], Tensor]
"""From a module that gives logits, points (images, n), their classes (images,) and the box to points (images, n)."""


class Classifier(Protocol):
    """Anything that gives points (images, n) classes (images,)."""

    def predict(self, X: Array) -> Array: ...


CHUNK = 250
"""Images that are attacked at once, so that memory stays flat."""
OUTWARDS = (0.0, 1e-6, 1e-5, 1e-4)
"""How far a point that float32 put on the wrong side of the boundary may be moved away from x, relatively."""
PACKAGES = {
    "foolbox": (("foolbox",), "pip install 'flipopt[bench]'"),
    "adv_lib": (("adv_lib", "distutils"), "pip install adv-lib setuptools"),
}
"""The modules a peer needs, and what brings them. From Python 3.12 on adv-lib's distutils comes with setuptools."""


@dataclass(frozen=True)
class Peer:
    """An attack of a package. ``load`` imports and compiles what it needs, which is not part of its time."""

    name: str
    package: str
    load: Callable[[], Attack]

    @cached_property
    def attack(self) -> Attack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.load()


def closest(
    peer: Peer, network: DenseNetwork | TorchNetwork, X: Array, classes: Array, box: Box | None = None
) -> tuple[Array, Array, float]:
    """The nearest points of another class that a peer finds.

    Parameters
    ----------
    X
        (images, n).
    classes
        (images,), as the network predicts them in float64.
    box
        What the points are clipped to; by default that of :func:`widened`, where nothing is.

    Returns
    -------
    Distances (images,), inf where it failed; points (images, n) in float64, nan where it failed; seconds in total, with
    as many threads as torch has been given.
    """
    attack, module, inside = peer.attack, as_module(network), widened(X) if box is None else box
    P, seconds = np.empty(X.shape), 0.0
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        torch.manual_seed(0)
        warnings.simplefilter("ignore")
        for start in range(0, len(X), CHUNK):
            rows = slice(start, start + CHUNK)
            x, labels = torch.tensor(X[rows], dtype=torch.float32), torch.tensor(classes[rows], dtype=torch.int64)
            begin = time.perf_counter()
            found = attack(module, x, labels, inside)
            seconds += time.perf_counter() - begin
            P[rows] = found.detach().numpy()
    return *verified(network.astype(np.float64), X, classes, P, box), seconds


def verified(network: Classifier, X: Array, classes: Array, P: Array, box: Box | None = None) -> tuple[Array, Array]:
    """Distances (images,) and points (images, n) of those of P (images, n) that have another class in float64.

    A point that has not is moved outwards from x by the smallest of OUTWARDS that will do, within the box if there is
    one; inf and nan if none does.
    """
    there = np.isfinite(P).all(axis=1, keepdims=True) & P.any(axis=1, keepdims=True)  # where C&W fails it returns zeros
    D = np.where(there, P - X, 0.0)
    distances, points = np.full(len(X), np.inf), np.full(X.shape, np.nan)
    for share in OUTWARDS:
        moved = X + (1 + share) * D
        if box is not None:
            moved = np.clip(moved, *box)
        flips = np.isinf(distances) & (network.predict(moved) != classes)
        distances[flips], points[flips] = np.linalg.norm(moved - X, axis=1)[flips], moved[flips]
    return distances, points


def widened(X: Array) -> Box:
    """The range of all entries of X, widened by its length on both sides."""
    low, high = float(X.min()), float(X.max())
    return 2 * low - high, 2 * high - low


def as_module(network: DenseNetwork | TorchNetwork, dtype: torch.dtype = torch.float32) -> nn.Module:
    """The network as a torch module of rows (images, n) that gives logits, in evaluation mode and without gradients for
    its parameters."""
    if isinstance(network, TorchNetwork):
        images = nn.Sequential(nn.Unflatten(1, network.input_shape), copy.deepcopy(network.module))
        return images.to(dtype).eval().requires_grad_(False)
    module = DenseModule(network.widths, "relu")
    for layer, W, b in zip(module.layers, network.weights, network.biases, strict=True):
        layer.weight, layer.bias = nn.Parameter(torch.tensor(W.T)), nn.Parameter(torch.tensor(b))
    module.activations = nn.ModuleList(_in_torch(activation) for activation in network.activations)
    return module.to(dtype).eval().requires_grad_(False)


def _in_torch(activation: Activation) -> nn.Module:
    match activation:
        case Erf():
            erf = TrainedErf()
            erf.sigma = nn.Parameter(torch.tensor(activation.sigma, dtype=torch.float64))
            return erf
        case ReLU():
            return nn.ReLU()
        case PReLU():
            prelu = nn.PReLU(np.size(activation.alpha))
            prelu.weight = nn.Parameter(torch.tensor(activation.alpha, dtype=torch.float64).reshape(-1))
            return prelu
        case Tanh():
            return nn.Tanh()
        case Identity():
            return nn.Identity()
    raise InputError(f"activations: expected erf, (P)ReLU, tanh or identity, found {activation!r}")


# foolbox


def _foolbox(name: str, each_class: bool = False, **settings: Any) -> Attack:
    """An attack of foolbox, without a target or at each other class in turn."""
    foolbox = importlib.import_module("foolbox")
    attack = getattr(foolbox.attacks, name)(**settings)

    def run(module: nn.Module, X: Tensor, classes: Tensor, box: Box) -> Tensor:
        model = foolbox.PyTorchModel(module, bounds=box, device=X.device)
        if each_class:
            return _nearest_target(foolbox, attack, model, X, classes)
        points: Tensor = attack(model, X, foolbox.criteria.Misclassification(classes), epsilons=None)[0]
        return points

    return run


def _nearest_target(foolbox: ModuleType, attack: Any, model: Any, X: Tensor, classes: Tensor) -> Tensor:
    """The nearest of the points (images, n) that attacks at every other class find; x where all fail."""
    points, nearest, n_classes = X.clone(), torch.full((len(X),), torch.inf), model(X[:1]).shape[1]
    for shift in range(1, n_classes):
        target = foolbox.criteria.TargetedMisclassification((classes + shift) % n_classes)
        P, _, success = attack(model, X, target, epsilons=None)
        distances = (P - X).norm(dim=1)
        closer = success & (distances < nearest)
        points[closer], nearest[closer] = P[closer], distances[closer]
    return points


def _brendel_bethge() -> Attack:
    """Brendel and Bethge's attack; an image for which there is no start stays where it is."""
    foolbox = importlib.import_module("foolbox")

    def run(module: nn.Module, X: Tensor, classes: Tensor, box: Box, steps: int = 1000) -> Tensor:
        model = foolbox.PyTorchModel(module, bounds=box, device=X.device)
        points = _starts(foolbox, model, X, classes)
        ready = model(points).argmax(dim=1) != classes
        if ready.any():
            # foolbox multiplies lr by the number of images.
            attack = foolbox.attacks.L2BrendelBethgeAttack(steps=steps, lr=1e-3 / int(ready.sum()))
            criterion = foolbox.criteria.Misclassification(classes[ready])
            points[ready] = attack.run(model, X[ready], criterion, starting_points=points[ready])
        return points

    # numba compiles the attack on its first step, here with the network whose logits are x.
    run(nn.Identity().eval(), torch.eye(2)[:1], torch.tensor([0]), (-9.0, 9.0), steps=1)
    return run


def _starts(foolbox: ModuleType, model: Any, X: Tensor, classes: Tensor) -> Tensor:
    """Points (images, n) of other classes: the default start, blended noise, or DDN's point where that fails."""
    noise, ddn = foolbox.attacks.LinearSearchBlendedUniformNoiseAttack(), foolbox.attacks.DDNAttack(steps=200)
    points: Tensor = noise.run(model, X, foolbox.criteria.Misclassification(classes))
    failed = model(points).argmax(dim=1) == classes
    if failed.any():
        points[failed] = ddn.run(model, X[failed], foolbox.criteria.Misclassification(classes[failed]))
    return points


# adv-lib


def _adv_lib(module: str, name: str, **settings: Any) -> Attack:
    """An attack of adv-lib, which takes inputs in [0, 1]: the box is mapped there."""
    attack = getattr(_adv_lib_module(module), name)

    def run(classifier: nn.Module, X: Tensor, classes: Tensor, box: Box) -> Tensor:
        low, width = box[0], box[1] - box[0]
        scaled = _Scaled(classifier, low, width)
        points: Tensor = scaled.unscaled(attack(scaled, (X - low) / width, classes, **settings))
        return points

    return run


class _Scaled(nn.Module):
    """The classifier as a function of u, where x = low + width u."""

    def __init__(self, classifier: nn.Module, low: float, width: float) -> None:
        super().__init__()
        self.classifier, self.low, self.width = classifier, low, width

    def unscaled(self, U: Tensor) -> Tensor:
        return self.low + self.width * U

    def forward(self, U: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.unscaled(U))
        return logits


def _adv_lib_module(name: str) -> ModuleType:
    """adv_lib.attacks.<name>, whether or not torchvision, visdom and tqdm are there.

    Those serve other attacks, plots and a progress bar; the ``__init__`` of adv_lib.attacks, which imports them all, is
    not run.
    """
    found = find_spec("adv_lib")
    assert found is not None
    attacks = ModuleType("adv_lib.attacks")
    attacks.__path__ = [str(Path(folder) / "attacks") for folder in found.submodule_search_locations or ()]
    stand_ins = {"adv_lib.attacks": attacks}
    if find_spec("tqdm") is None:
        stand_ins["tqdm"] = ModuleType("tqdm")
    with patch.dict(sys.modules, stand_ins):
        return importlib.import_module(f"adv_lib.attacks.{name}")


def _offered(package: str) -> bool:
    return all(find_spec(module) is not None for module in PACKAGES[package][0])


KNOWN = {
    peer.name: peer
    for peer in (
        Peer("ddn-200", "foolbox", partial(_foolbox, "DDNAttack", steps=200)),
        Peer("ddn-1000", "foolbox", partial(_foolbox, "DDNAttack", steps=1000)),
        Peer("ddn-200-each-class", "foolbox", partial(_foolbox, "DDNAttack", each_class=True, steps=200)),
        Peer("brendel-bethge", "foolbox", _brendel_bethge),
        Peer("cw", "foolbox", partial(_foolbox, "L2CarliniWagnerAttack", steps=1000, stepsize=1e-3)),
        Peer("deepfool", "foolbox", partial(_foolbox, "L2DeepFoolAttack")),
        Peer("fmn-foolbox", "foolbox", partial(_foolbox, "L2FMNAttack")),
        Peer("fmn", "adv_lib", partial(_adv_lib, "fast_minimum_norm", "fmn", norm=2, steps=1000)),
        Peer("fab", "adv_lib", partial(_adv_lib, "fast_adaptive_boundary", "fab", norm=2)),
        Peer(
            "fab-each-class",
            "adv_lib",
            partial(_adv_lib, "fast_adaptive_boundary", "fab", norm=2, targeted_restarts=True),
        ),
        Peer("superdeepfool", "adv_lib", partial(_adv_lib, "superdeepfool", "sdf")),
    )
}
"""Every peer, whether or not its package is here."""
PEERS = {name: peer for name, peer in KNOWN.items() if _offered(peer.package)}
"""The peers that a package here offers."""
CHEAP_CW = Peer("cw-200", "foolbox", partial(_foolbox, "L2CarliniWagnerAttack", steps=200, stepsize=5e-3))
"""C&W for images one at a time: 1800 passes instead of 9000, in longer steps."""
PIXEL_CW = Peer("cw", "foolbox", partial(_foolbox, "L2CarliniWagnerAttack", steps=1000, stepsize=1e-2))
"""C&W for pixels in [0, 1], with its default stepsize. On the first 10 images of mnist-cnn it has 1.003 (0.995) of the
distances of DDN-1000; with 0.03 it has 1.004 (0.992), with 0.003 1.03 (1.04), and with 0.001 it finds nothing for 6."""


def missing(name: str) -> str:
    """What to install for a peer that is not in PEERS; nothing for one that is."""
    peer = KNOWN[one_of(name, tuple(KNOWN), "peer")]
    return "" if _offered(peer.package) else f"{name} needs {peer.package}: {PACKAGES[peer.package][1]}"
