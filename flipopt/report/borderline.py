"""Pictures of borderline instances: what all pairs of classes have, where instances lie, and what they look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline import Instances, Profile, embed
from flipopt.common.checks import Array, as_whole, one_of
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.explain.matching import as_labels, class_names
from flipopt.networks.points import as_points
from flipopt.networks.wrapping import as_network

TITLES = {
    "rpbs_success": "Lines between random samples\nthat end on the boundary",
    "rpbs_yield": "Samples with a borderline instance\nfrom a random pair",
    "rpbs_distance": "Distance of borderline instances\nof random pairs (median)",
    "rpbs_farther": "Random pairs: times as far\nas the closest flip point (median)",
    "epbs_success": "Lines between samples nearest in the\nembedding that end on the boundary",
    "epbs_yield": "Samples with a borderline instance\nfrom the pair nearest in the embedding",
    "epbs_distance": "Distance of borderline instances of pairs\nnearest in the embedding (median)",
    "epbs_farther": "Pairs nearest in the embedding: times as\nfar as the closest flip point (median)",
    "given_success": "Given pairs that end\non the boundary",
    "given_yield": "Samples with a given\nborderline instance",
    "given_distance": "Distance of given borderline\ninstances (median)",
    "given_farther": "Given instances: times as far\nas the closest flip point (median)",
    "closest_success": "Samples whose closest flip search\nends on the boundary",
    "closest_converged": "Samples with a verified\nclosest flip point",
    "closest_distance": "Distance to the closest\nflip point (median)",
    "idc": "IDC: changes of class on lines between\nborderline instances, as a share of points",
    "third": "Points on those lines\nin a third class",
    "edc1_test": "EDC1 of test samples: how far from\na linear boundary of embeddings (0 to 1)",
    "edc1_borderline": "EDC1 of borderline instances: how far from\na linear boundary of embeddings (0 to 1)",
    "edc2_test": "EDC2 of test samples: percent on their\nside of a linear boundary",
    "edc2_borderline": "EDC2 of borderline instances: percent on\nthe side they come from",
    "own_test": "Distance of test samples from the\nnetwork's own last hyperplane",
    "own_borderline": "Distance of borderline instances from\nthe network's own last hyperplane",
}
"""What a heat map of each measure says."""
FIRST = (
    "closest_distance",
    "given_success",
    "epbs_success",
    "rpbs_success",
    "idc",
    "edc1_borderline",
    "edc2_borderline",
)
SHARES = ("success", "yield", "converged", "third")
MOST_NUMBERS = 12
"""Classes up to which the numbers are written into the cells."""
ACROSS = 3
FIRST_CLASS, SECOND_CLASS, BORDER = "#2166ac", "#d6604d", "#1a1a1a"


def draw_profile(path: str | Path, profile: Profile, names: Sequence[str] | None = None) -> None:
    """Heat maps of measures of every ordered pair of classes, written to ``path`` (.png, .pdf, .svg).

    ``names`` are columns of the profile; by default distances, success, IDC and EDC of borderline instances, as far as
    there are any.
    """
    known = [name for name in FIRST if np.isfinite(getattr(profile, name)).any()]
    chosen = known if names is None else [one_of(name, profile.measures(), "names") for name in names]
    if len(profile) == 0 or not chosen:
        raise InputError("profile: expected at least one pair of classes with a number, found none")
    across = min(ACROSS, len(chosen))
    down, side = -(-len(chosen) // across), max(3.6, 0.42 * profile.n_classes + 1.2)
    figure = _figure(across * side, down * (side + 0.1) + 0.4)
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.1)
    axes = figure.subplots(down, across, squeeze=False).reshape(-1)
    for axis in axes[len(chosen) :]:
        axis.axis("off")
    for axis, name in zip(axes, chosen, strict=False):
        _heat_map(axis, profile, name)
    figure.suptitle(f"{len(profile)} ordered pairs of {profile.n_classes} classes; grey: not measured", fontsize=10)
    _save(figure, path, dpi=100)


def draw_embedding(
    path: str | Path,
    net: Any,
    X: ArrayLike,
    labels: ArrayLike,
    instances: Instances,
    test: ArrayLike | None = None,
    classes: Sequence[str] | None = None,
) -> None:
    """Samples of two classes and the borderline instances between them, in the first two principal components of the
    embedding, which are those of the samples of both classes.

    Parameters
    ----------
    path
        A .png, .pdf or .svg file.
    net, X, labels
        The network, training samples (rows, n_inputs) and their classes (rows,).
    instances
        Of one boundary, approached from one side or from both; those that were found are drawn.
    test
        Further samples of the two classes, to be drawn beside.
    classes
        Names of the classes.
    """
    network = as_network(net, X, many=True)
    names, found = class_names(classes, network), instances.found
    if len(found) == 0:
        raise InputError("instances: expected at least one borderline instance, found none")
    pairs = np.unique(np.sort(found.classes, axis=1), axis=0)
    if len(pairs) > 1:
        raise InputError(f"instances: expected those of one pair of classes, found {len(pairs)} pairs")
    s, t = (int(k) for k in pairs[0])
    points = np.atleast_2d(as_points(X, network, "X"))
    truth = as_labels(labels, len(points), getattr(network, "class_names", None), network.n_classes)
    space = embed(network, points[np.isin(truth, (s, t))])
    figure = _figure(6.4, 5.2)
    axis = figure.subplots()
    for k, colour in ((s, FIRST_CLASS), (t, SECOND_CLASS)):
        some = points[truth == k]
        if len(some):
            label = f"“{names[k]}”: {len(some):,} samples"
            axis.scatter(*space.places(some).T, s=9, color=colour, alpha=0.5, lw=0, label=label)
    if test is not None:
        other = space.places(test)
        label = f"{len(other):,} test samples"
        axis.scatter(*other.T, s=26, facecolors="none", edgecolors="0.45", lw=0.7, label=label)
    label = f"{len(found):,} borderline instances"
    axis.scatter(*space.places(found).T, s=20, marker="x", color=BORDER, lw=0.9, label=label)
    axis.legend(frameon=False, fontsize=8)
    places = [f"{which} principal component ({share:.0%} of the variance)" for which, share in _shares(space.share)]
    axis.set(xlabel=places[0], ylabel=places[1])
    axis.set_title(f"The last hidden layer between “{names[s]}” and “{names[t]}”", fontsize=10)
    _save(figure, path)


def draw_instances(
    path: str | Path,
    instances: Instances | Mapping[str, Instances],
    X: ArrayLike,
    shape: Sequence[int],
    count: int = 6,
    classes: Sequence[str] | None = None,
) -> None:
    """Sources and their borderline instances as images, a line a source and a column a method.

    Parameters
    ----------
    path
        A .png, .pdf or .svg file.
    instances
        Of one method, or of several by their names. The sources that have one by every method are drawn, the first of
        them.
    X, shape
        The samples (rows, n_inputs) that ``instances.row`` counts, and the shape of them as images: (height, width) or
        (height, width, 3), with values from 0 to 1.
    count
        Sources, at most.
    classes
        Names of the classes.
    """
    methods = {"borderline instance": instances} if isinstance(instances, Instances) else dict(instances)
    if not methods or not all(isinstance(some, Instances) for some in methods.values()):
        raise InputError("instances: expected Instances, or a mapping of names to them")
    found = [some.found for some in methods.values()]
    keys = [{(int(r), int(s), int(t)) for r, (s, t) in zip(some.row, some.classes, strict=True)} for some in found]
    shared = sorted(set.intersection(*keys))[: as_whole(count, "count", least=1)]
    if not shared:
        raise InputError("instances: expected a source with an instance by every method, found none")
    points, sides = np.asarray(X, dtype=np.float64), tuple(shape)
    if points.ndim != 2 or len(points) <= shared[-1][0] or int(np.prod(sides)) != points.shape[1]:
        raise InputError(f"X, shape: expected rows of as many pixels as {sides} has, found shape {points.shape}")
    figure = _figure(1.7 * (1 + len(methods)) + 0.3, 1.75 * len(shared) + 0.5)
    axes = figure.subplots(len(shared), 1 + len(methods), squeeze=False)
    for line, (row, s, t) in zip(axes, shared, strict=True):
        _image(line[0], points[row].reshape(sides))
        line[0].set_xlabel(f"row {row}, “{_name(s, classes)}” to “{_name(t, classes)}”", fontsize=8)
        for axis, some in zip(line[1:], found, strict=True):
            k = int(np.flatnonzero((some.row == row) & (some.classes == (s, t)).all(axis=1))[0])
            _image(axis, some.x[k].reshape(sides))
            axis.set_xlabel(f"{some.distance[k]:.3g} away", fontsize=8)
    for axis, name in zip(axes[0], ("source", *methods), strict=True):
        axis.set_title(name, fontsize=9)
    _save(figure, path)


def _heat_map(axis: Any, profile: Profile, name: str) -> None:
    """One measure: the class that the boundary is approached from down, the other one across."""
    values, percent = profile.matrix(name), name.endswith(SHARES)
    known = values[np.isfinite(values)]
    most = 100.0 if name.startswith("edc2") else 1.0 if percent or name.startswith("edc1") else None
    low, high = (known.min(initial=np.inf), known.max(initial=-np.inf)) if most is None else (0.0, most)
    axis.set_facecolor("0.9")
    shades = axis.imshow(values, cmap="YlGnBu", vmin=low, vmax=high if high > low else low + 1)
    if profile.n_classes > MOST_NUMBERS:
        axis.figure.colorbar(shades, ax=axis, shrink=0.8)
    for (s, t), value in np.ndenumerate(values):
        if np.isfinite(value) and profile.n_classes <= MOST_NUMBERS:
            dark = high > low and value > low + 0.6 * (high - low)
            text = f"{100 * value:.0f}%" if percent else _short(value)
            axis.text(t, s, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    labels = [profile.name_of(k) for k in range(profile.n_classes)]
    turned = 45 if max(map(len, labels)) > 3 else 0
    axis.set_xticks(range(len(labels)), labels, fontsize=7, rotation=turned)
    axis.set_yticks(range(len(labels)), labels, fontsize=7)
    axis.set_xlabel("to class", fontsize=8)
    axis.set_ylabel("from class", fontsize=8)
    axis.set_title(TITLES.get(name, name), fontsize=9)


def _short(value: float) -> str:
    """Three digits at most."""
    text = f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}" if abs(value) < 1 else f"{value:.1f}"
    return text.replace("0.", ".", 1) if text.startswith("0.") else text


def _shares(share: Array) -> list[tuple[str, float]]:
    return list(zip(("first", "second"), share.tolist(), strict=True))


def _image(axis: Any, image: Array) -> None:
    axis.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1)
    axis.set_xticks([])
    axis.set_yticks([])


def _name(k: int, classes: Sequence[str] | None) -> str:
    return str(k) if classes is None else str(classes[k])


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: str | Path, dpi: int = 150) -> None:
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=dpi)
