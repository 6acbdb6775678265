"""What the model is: its parts, its classes, and how often it is right."""

from __future__ import annotations

from collections import Counter

import numpy as np

from flipopt.networks import DenseNetwork, OnnxNetwork, TorchNetwork
from flipopt.networks.protocol import Network
from flipopt.networks.stages import StagedNetwork
from flipopt.report.audit.section import NONE, Grid, Section, counted, number, share
from flipopt.report.audit.study import Given, Study


def model(given: Given) -> Section:
    """Parts of the network, classes and accuracy."""
    network, sound = given.network, int(given.sound.sum())
    kind, parts, parameters = described(network)
    size = f" and {counted(parameters, 'parameter')}" if parameters else ""
    answer = f"{kind} with {counted(network.n_inputs, 'input')}, {counted(network.n_classes, 'class', 'classes')}{size}"
    if given.wrong is None or given.labels is None:
        answer += "; without labels nothing can be said of how often it is right."
    elif sound:
        right = sound - int(given.wrong.sum())
        answer += f"; it is right on {right:,} of {counted(sound, 'input')} ({share(right, sound)})."
    else:
        answer += "; none of the inputs is a row of numbers."
    how = (
        "Parts as the file or object has them; a prediction is the class with the largest logit. Recall: of the inputs "
        "with a label those that are predicted so; precision: of the predictions those that are right."
    )
    bad = given.row[~given.sound]
    return Section("model", "What the model is", answer, how, {"parts": parts, "classes": _classes(given), "bad": bad})


def described(network: Network) -> tuple[str, Grid, int]:
    """What a network is, its parts, and how many parameters it has (0 if that is not known)."""
    if isinstance(network, DenseNetwork):
        return "A network of dense layers", _layers(network), network.n_parameters
    if isinstance(network, OnnxNetwork):
        operators = tuple((name, f"{number:,}") for name, number in network.operators.most_common())
        return "An ONNX graph", Grid(("operator", "nodes"), operators), network.n_parameters
    if isinstance(network, TorchNetwork):
        return "A torch module", *_modules(network)
    if isinstance(network, StagedNetwork):
        stages = tuple((f"{k}", type(stage).__name__) for k, stage in enumerate(network.stages, 1))
        return "A chain of scikit-learn steps", Grid(("step", "kind"), stages), 0
    return "A classifier", Grid(("part", "kind"), (("1", type(network).__name__),)), 0


def _layers(network: DenseNetwork) -> Grid:
    kinds = [type(activation).__name__ for activation in network.activations] + ["output"]
    rows = tuple(
        (f"{k}", f"{W.shape[0]:,}", f"{W.shape[1]:,}", kind)
        for k, (W, kind) in enumerate(zip(network.weights, kinds, strict=True), 1)
    )
    return Grid(("layer", "inputs", "neurons", "activation"), rows)


def _modules(network: TorchNetwork) -> tuple[Grid, int]:
    leaves = [part for part in network.module.modules() if not list(part.children())]
    kinds = Counter(type(part).__name__ for part in leaves)
    rows = tuple((kind, f"{number:,}") for kind, number in kinds.most_common())
    return Grid(("module", "how many"), rows), sum(values.numel() for values in network.module.parameters())


def _classes(given: Given) -> Grid:
    """A line a class that is predicted or true: how many inputs, and how often right."""
    rows = []
    for k, name in enumerate(given.classes):
        mine = given.predicted == k
        line = [name, f"{int(mine.sum()):,}"]
        if given.labels is not None and given.wrong is not None:
            true = (given.labels == k) & given.sound
            right = int((true & mine).sum())
            line += [f"{int(true.sum()):,}", share(right, int(true.sum())), share(right, int(mine.sum()))]
        if isinstance(given, Study):
            distances = given.distance[mine & given.found]
            line.append(number(float(np.median(distances))) if len(distances) else NONE)
        if mine.any() or (given.labels is not None and (given.labels == k).any()):
            rows.append(tuple(line))
    labelled = ("labelled", "recall", "precision") if given.labels is not None else ()
    measured = ("median distance",) if isinstance(given, Study) else ()
    return Grid(("class", "predicted", *labelled, *measured), tuple(rows))
