"""Where models change their mind on the lines, and how far images are from the closest flip: what 004 lacks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_004 import drawing
from benchmarks.reproduce.paper_004.answers import Answers, answers
from benchmarks.reproduce.paper_004.networks import NINE_AT_TARGETS, TARGETS, Model, network, train
from benchmarks.reproduce.paper_004.words import at, mean, missing
from benchmarks.reproduce.record import Claim, Picture, Record, Sheet
from flipopt.common.checks import Array
from flipopt.disagreement import ByDistance, Crossings
from flipopt.networks.protocol import Network
from flipopt.runs.fingerprint import digest

PICTURE, NEAR = "004-lines.png", "004-distances.png"
TOLERANCE = 1e-6
STEP = 0.1
"""Between two images of the paper on a line."""
EVERY = {"MLP": 1, "CNN": 3, "ViT": 15}
"""Of the images of the first choice, whose closest flips are looked for: each, every third, ..."""
FIELDS = ("line", "classes", "alpha", "third", "first", "into")


def lines(desk: Desk) -> Record:
    """Of as many of the 27 networks as there are as files."""
    train(desk, [model for model in NINE_AT_TARGETS if not model.file(desk).exists()])
    found = answers(desk, NINE_AT_TARGETS)
    nets = {model: net for model in found.models if (net := network(desk, model)) is not None}
    nets = dict(list(nets.items())[:: desk.few(1, 5)])
    found = found.where(nets.__contains__)
    crossed, seconds = _crossed(desk, found, nets)
    D = np.array([_distances(desk, found, model, net) for model, net in nets.items()])
    table = {t: _by_distance(found, D, t) for t in TARGETS if len(found.at(t)) > 1}
    return Record(
        title="Where models change their mind, and how far flips are (beyond the paper)",
        summary=_summary(found, crossed, seconds, D) + missing(desk, NINE_AT_TARGETS, found.models),
        setup={"tolerance": TOLERANCE, "models": [m.words for m in found.models], "images with distances": EVERY},
        seeds=list(range(len(found.sets.choices))),
        claims=_claims(found, crossed, table),
        pictures=_pictures(desk, found, crossed, D) if nets else [],
        sheets=[_places(found, crossed), _by_line(found, crossed), _areas(found, D, table)] if nets else [],
        figures={
            "crossings": [{name: getattr(one, name) for name in ("model", *FIELDS)} for one in crossed],
            "seconds of the processor, first choice": seconds,
            "distances": {model.words: row for model, row in zip(found.models, D, strict=True)},
        },
    )


def _pictures(desk: Desk, found: Answers, crossed: Sequence[Crossings], D: Array) -> list[Picture]:
    drawing.crossings(desk.picture(PICTURE), crossed[0], found)
    if not np.isfinite(D).any():
        return [Picture(PICTURE, CAPTION)]
    drawing.distances(desk.picture(NEAR), found, D)
    return [Picture(PICTURE, CAPTION), Picture(NEAR, NEAR_CAPTION)]


CAPTION = (
    "Where models first change their mind on the lines of the first choice of latent vectors, from the digit at the "
    "left (alpha 0) to that at the right: a dot a model, by architecture, of all three accuracies. Ticks are where the "
    "paper "
    "has images."
)
NEAR_CAPTION = (
    "Distance from each image of the first choice to its closest flip, the mean over models for which it was looked "
    "for, against its place on the line: blue where at least one of all models disagrees, grey where all agree."
)


def _crossed(desk: Desk, found: Answers, nets: Mapping[Model, Network]) -> tuple[list[Crossings], float]:
    """The places on all lines, by choice, and the seconds of the processor that the first choice took."""
    made, seconds = [], 0.0
    for choice in range(len(found.sets.choices) if nets else 0):
        parts = []
        for number, (model, net) in enumerate(nets.items()):
            kept = _crossings(desk, found, model, net, choice)
            columns = {name: _array(name, kept[name]) for name in FIELDS}
            parts.append(Crossings(np.full(len(columns["line"]), number), **columns))
            seconds += float(kept["seconds"]) if choice == 0 else 0.0
        made.append(Crossings.join(parts))
    return made, seconds


def _crossings(desk: Desk, found: Answers, model: Model, net: Network, choice: int) -> dict[str, Any]:
    """Of one model on all lines of a choice, and the seconds of the processor."""

    def compute() -> dict[str, Any]:
        start = time.process_time()
        one = fo.disagreement.crossings([net], found.sets.choices[choice], tol=TOLERANCE)
        columns = {name: _nulls(getattr(one, name).tolist()) for name in FIELDS}
        return {"seconds": time.process_time() - start, **columns}

    return desk.kept(f"004-crossings-{_key(desk, model)}-{found.sets.key[:16]}-{choice}", compute)


def _nulls(values: list[Any]) -> list[Any]:
    """NaN as null, for JSON."""
    return [None if isinstance(value, float) and np.isnan(value) else value for value in values]


def _array(name: str, values: list[Any]) -> Array:
    kind = np.float64 if name in ("alpha", "first") else np.int64
    return np.array(values, dtype=kind)


def _key(desk: Desk, model: Model) -> str:
    return model.words if desk.quick else digest(model.file(desk).read_bytes())[:16]


def _distances(desk: Desk, found: Answers, model: Model, net: Network) -> Any:
    """From the images of the first choice to the closest flip, a list, NaN of those that were not looked at."""
    images = found.sets.first
    rows = np.arange(0, len(images), desk.few(EVERY[model.kind], 15))

    def compute() -> dict[str, Any]:
        desk.console.print(f"{model.words}: closest flips of {len(rows)} images")
        values = fo.disagreement.distances([net], images.images[rows])[0]
        return {"distances": _nulls(values.tolist())}

    name = f"004-distances-{_key(desk, model)}-{found.sets.key[:16]}-{len(rows)}"
    values = np.full(len(images), np.nan)
    if not desk.training and not desk.is_kept(name):
        return values.tolist()
    values[rows] = np.array(desk.kept(name, compute)["distances"], dtype=np.float64)
    return values.tolist()


def _by_distance(found: Answers, D: Array, target: float) -> ByDistance:
    """How well distances of models of an accuracy tell where these disagree."""
    rows = [k for k, model in enumerate(found.models) if model.target == target]
    return fo.disagreement.by_distance(found.at(target).study(0), D[rows])


def _at(crossed: Crossings, found: Answers, target: float) -> Crossings:
    """The records of models of an accuracy."""
    numbers = [k for k, model in enumerate(found.models) if model.target == target]
    rows = np.isin(crossed.model, numbers)
    return Crossings(**{name: getattr(crossed, name)[rows] for name in ("model", *FIELDS)})


def widths(crossed: Sequence[Crossings], found: Answers, target: float) -> Array:
    """How far the places of models of an accuracy are apart, where they first change, on all lines of all choices."""
    spreads = [_at(one, found, target).spread(first=True) for one in crossed]
    return np.concatenate([(s.highest - s.lowest)[s.models > 1] for s in spreads])


def _claims(found: Answers, crossed: Sequence[Crossings], table: Mapping[float, ByDistance]) -> list[Claim]:
    wide = {t: widths(crossed, found, t) for t in table}
    areas = {t: one for t, one in table.items() if np.isfinite(one.models_area[-1])}
    return [*([_places_differ(wide)] if wide else []), *([_near(areas)] if areas else [])]


def _places_differ(wide: Mapping[float, Array]) -> Claim:
    return Claim(
        "models of the same accuracy change their mind at different places of a line, by more than the paper's step "
        "between two images (our question)",
        "section 3",
        "; ".join(
            f"at {at(t)} the places are {np.median(w):.3f} apart (median over lines), more than {STEP:g} on "
            f"{100 * np.mean(w > STEP):.0f}% of the lines"
            for t, w in wide.items()
        )
        + ". It holds where it is so on most lines.",
        {at(t): bool(np.mean(w > STEP) > 0.5) for t, w in wide.items()},
    )


def _near(table: Mapping[float, ByDistance]) -> Claim:
    return Claim(
        "models disagree on the images that are nearest to flips (our question)",
        "section 3",
        "; ".join(
            f"at {at(t)} an image on which they disagree is nearer than one on which they agree in "
            f"{100 * one.models_area[-1]:.0f}% of pairs [{100 * one.models_low[-1]:.0f}, "
            f"{100 * one.models_high[-1]:.0f}]"
            for t, one in table.items()
        )
        + ": by the mean distance over models, with 95% intervals that take images for independent. It holds where "
        "the interval is above 50%.",
        {at(t): bool(one.models_low[-1] > 0.5) for t, one in table.items()},
    )


def _summary(found: Answers, crossed: Sequence[Crossings], seconds: float, D: Array) -> str:
    text = (
        f"alpha* is where the digits that a model sees at the two ends of a line tie, to {TOLERANCE:g}, by bisection "
        "of all 15 lines of a model at once; beside it is the place where the model first changes its mind, which is "
        "another where a third digit is ahead in between. Closest flips are looked for without bounds of pixels, for "
        f"MLPs on every image of the first choice, for CNNs on every {EVERY['CNN']}rd and for ViTs on every "
        f"{EVERY['ViT']}th, as they cost more."
    )
    if crossed:
        text += (
            f" They are known of {int(np.isfinite(D).any(axis=1).sum())} of the {len(found)} networks that are there."
        )
        text += (
            f" {len(found)} models on 15 lines took {seconds:.0f} s of the processor. "
            f"{int(crossed[0].success.sum())} of {len(crossed[0])} go directly from the one digit to the other."
        )
    return text


def _places(found: Answers, crossed: Sequence[Crossings]) -> Sheet:
    rows = []
    for target in TARGETS:
        if len(found.at(target)) < 2:
            continue
        each = [_at(one, found, target) for one in crossed]
        direct = [100 * float(one.success.mean()) for one in each]
        both = [
            [float(np.median(s.deviation[s.models > 1])) for s in (one.spread(f) for one in each)]
            for f in (False, True)
        ]
        wide = [float(np.median(widths([one], found, target))) for one in crossed]
        rows.append(
            [
                at(target),
                str(len(found.at(target))),
                mean(direct, 0),
                *(mean(v, 3, "") for v in both),
                mean(wide, 3, ""),
            ]
        )
    return Sheet(
        "Places on the lines: medians over lines, and their mean with its deviation over choices of latent vectors",
        [
            "accuracy",
            "models",
            "direct crossings",
            "deviation of alpha*",
            "of the first change",
            "first changes are apart",
        ],
        rows,
    )


def _by_line(found: Answers, crossed: Sequence[Crossings]) -> Sheet:
    spread, first = crossed[0].spread(), crossed[0].spread(first=True)
    rows = []
    for k, (i, j) in enumerate(found.sets.first.pairs):
        cells = [
            [str(s.models[k]), f"{s.mean[k]:.6f}", f"{s.deviation[k]:.6f}", f"{s.lowest[k]:.6f} to {s.highest[k]:.6f}"]
            if s.models[k]
            else ["0", "—", "—", "—"]
            for s in (spread, first)
        ]
        rows.append([f"{i} to {j}", *cells[0], *cells[1]])
    return Sheet(
        f"Crossings on the lines of the first choice, over all {len(found)} models that cross directly between the two "
        "most frequent digits, and the first change of those that have the most frequent one",
        ["line", "models", "mean alpha*", "deviation", "from", "models", "mean first change", "deviation", "from"],
        rows,
    )


def _areas(found: Answers, D: Array, table: Mapping[float, ByDistance]) -> Sheet:
    rows = []
    for target, one in table.items():
        models = found.at(target).models
        for k, model in enumerate([*models, None]):
            if not one.images[k]:
                continue
            known = D[[m in models for m in found.models]] if model is None else D[found.models.index(model)]
            name = "mean over models" if model is None else model.name
            area = f"{one.models_area[k]:.2f} [{one.models_low[k]:.2f}, {one.models_high[k]:.2f}]"
            rows.append([at(target), name, str(one.images[k]), f"{np.nanmedian(known):.3f}", area])
    return Sheet(
        "Distance to the closest flip against disagreement of the models of an accuracy: how often an image on which "
        "they disagree is the nearer one (area under the ROC curve; 0.5 by chance), by the distance of each model",
        ["accuracy", "distance of", "images", "median distance", "area and its 95% interval"],
        rows,
    )
