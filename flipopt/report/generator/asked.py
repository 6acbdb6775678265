"""The first sections of the page: the query, the units that its image needs, and samples of their regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.report.audit.section import NONE, Grid, Section, counted, number, share
from flipopt.report.generator.seen import as_drawn, in_unit
from flipopt.report.generator.study import Explored, Looked

FOLDER = "generator"
"""Of the templates."""
ACROSS = 6
"""Images beside each other."""


def query(study: Explored) -> Section:
    """The image, and the layers of the generator."""
    G, chosen = study.generator, {looked.layer.number for looked in study.layers}
    length = float(np.linalg.norm(study.query))
    answer = f"A latent vector of {G.n_latent} numbers and length {number(length)} becomes an image"
    if study.reader is not None:
        chances = study.reader.probabilities(in_unit(study.image[None], study.span))[0]
        k = int(chances.argmax())
        answer += f" that the classifier takes for “{study.reader.names[k]}” ({share(float(chances[k]))})"
    how = (
        "A generator makes an image of a latent vector, numbers that are drawn from a standard normal distribution, "
        "layer by layer. A unit is one number of a layer before its activation, after batch normalisation. Where "
        "a unit is 0 there is a boundary in the space of latent vectors: on one side of it the unit is active, on the "
        "other it is not."
    )
    rows = []
    for layer in G.layers:
        active = int(np.count_nonzero(G.activate(G.forward(study.query, to=layer.number), layer.number)))
        rows.append(
            (
                str(layer.number),
                layer.name,
                " x ".join(map(str, layer.shape)),
                f"{layer.units:,}",
                f"{active:,}",
                layer.activation + (", looked at" if layer.number in chosen else ""),
            )
        )
    head = ("layer", "tensor", "shape", "units", "active here", "activation")
    facts: dict[str, Any] = {"layers": Grid(head, tuple(rows), worded=True), "image": _one(study, study.image)}
    return Section("query", "The query", f"{answer}.", how, facts, folder=FOLDER)


def units(study: Explored) -> Section:
    """How many units are enough for the image."""
    target = study.how.target_error
    how = (
        "An active unit is put out by setting what comes out of its activation to 0. Units are essential if the image "
        f"that they make by themselves is within a relative error of {number(target)} of the query's, |x_m - x_0| / "
        "|x_0|. They are found by BerOpt, Algorithm 1 of Jeon, Jeong and Choi (2020), which gives every unit a "
        "probability of being kept and makes few of them likely. Of the smallest set none can be taken away any more: "
        "what is left when the essential units are removed for as long as the error allows it."
    )
    rows, cards = [], []
    for one in study.layers:
        found = one.essential
        rows.append(
            (
                str(one.layer.number),
                f"{one.layer.units:,}",
                f"{found.active:,}",
                f"{found.mask.sum():,}",
                share(float(found.mask.sum()), found.active),
                number(found.error),
                f"{found.smallest.sum():,}",
                number(found.smallest_error),
                number(found.lam),
                f"{found.evaluations:,}",
                found.estimator,
            )
        )
        cards.append({"layer": one.layer.number, "pictures": _put_out(study, one)})
    head = (
        "layer", "units", "active", "essential", "of the active", "error", "smallest set", "its error", "lambda",
        "images made", "estimator",
    )  # fmt: skip
    facts = {
        "units": Grid(head, tuple(rows), worded=True),
        "cards": cards if study.pictures is not None else [],
        "missed": [one.layer.number for one in study.layers if not one.essential.success],
    }
    return Section("units", "Which units the image needs", _units_answer(study), how, facts, folder=FOLDER)


def _units_answer(study: Explored) -> str:
    parts = [f"{one.essential.mask.sum():,} of {one.essential.active:,}" for one in study.layers]
    missed = [str(one.layer.number) for one in study.layers if not one.essential.success]
    within = (
        f", but not within the error in layer {in_words(missed)}" if missed else ", up to the error that is allowed"
    )
    return f"Of the active units these make the image{within}: {by_layer(study, parts)}."


def samples(study: Explored) -> Section:
    """Sheets of images of every region, beside those of points as far away."""
    how = (
        "The region of a layer: all latent vectors at which its essential units have the signs that they have at the "
        "query. Samples of it are found by GB-RRT, Algorithm 2 of the same paper: a tree that grows from the query in "
        f"steps of one length, {number(study.layers[0].exploration.delta)}, and keeps those that end in the region. "
        "Beside them are images of latent vectors that are as far from the middle of the samples, each in a random "
        "direction, so that what only the samples have in common is the region's doing."
    )
    cards = [
        {
            "layer": one.layer.number,
            "words": words_of(one),
            "sheets": {name: _sheet(study, images) for name, images in one.sheets.items()},
        }
        for one in study.layers
    ]
    found = [f"{len(one.exploration.accepted) - 1:,}" for one in study.layers]
    checked = np.concatenate([one.exploration.verified for one in study.layers])
    wrong = int((~checked).sum())
    verdict = f"the signs of {counted(wrong, 'sample')} wrong" if wrong else "the signs of all of them right"
    answer = (
        f"Of {counted(study.how.expansions, 'step')} a layer these became samples: {by_layer(study, found)}. Another "
        f"computation, in float64, found {verdict}."
    )
    return Section(
        "samples", "Images of the same region", answer, how,
        {"cards": cards, "drawn": study.pictures is not None}, folder=FOLDER,
    )  # fmt: skip


def words_of(one: Looked) -> str:
    """What became of the steps in a layer."""
    tree = one.exploration
    mean, most = tree.reach
    left = f", {tree.left:,} left it on the way" if tree.left else ""
    if len(tree.accepted) == 1:
        return f"No step of {tree.expansions:,} ended in the region: it is smaller than a step; take a smaller delta."
    return (
        f"{counted(len(tree.accepted) - 1, 'sample')}, {number(mean)} from the query on average and {number(most)} at "
        f"most; {counted(len(tree.rejected), 'step')} ended outside{left}, {tree.crowded:,} too near another sample."
    )


def in_words(parts: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def by_layer(study: Explored, parts: list[str]) -> str:
    """ "a in layer 1, b in layer 2 and c in layer 4"."""
    return in_words([f"{part} in layer {one.layer.number}" for part, one in zip(parts, study.layers, strict=True)])


def _one(study: Explored, image: Array) -> str | None:
    """An image (\\*image_shape) as a data URI."""
    return None if study.pictures is None else study.pictures.png(as_drawn(image[None], study.pictures)[0])


def _sheet(study: Explored, images: Array) -> str | None:
    return None if study.pictures is None else study.pictures.sheet(as_drawn(images, study.pictures), ACROSS)


def _put_out(study: Explored, one: Looked) -> list[tuple[str | None, str]]:
    """The image, that by the essential units alone and that by the smallest set, with words."""
    G, number_, found = study.generator, one.layer.number, one.essential
    h = G.forward(study.query, to=number_)
    kept = ((found.mask, "essential"), (found.smallest, "smallest set"))
    alone = [(_one(study, G.decode(h, frm=number_, mask=mask)), f"{mask.sum():,} units, {name}") for mask, name in kept]
    return [(_one(study, study.image), f"all {found.active:,}"), *alone]


def or_none(value: float | None, digits: int = 3) -> str:
    """A number or a dash."""
    return NONE if value is None else number(value, digits)
