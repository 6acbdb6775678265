"""Tables 3 to 9 of the paper beside ours, and small tables of what it does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import flipopt as fo
from benchmarks.reproduce.paper_000.classifiers import Model
from benchmarks.reproduce.paper_000.measures import METHODS, WAYS, Row, column, mean
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Number, Sheet, over_seeds, setting
from flipopt.borderline import Correlation, DeepDigOptions, pearson
from flipopt.borderline.refinement import Refinement

TABLE_9 = (
    ("IDC", "IDC"),
    ("edc1_test", "EDC1 of test samples"),
    ("edc1_borderline", "EDC1 of borderline instances"),
    ("edc2_test", "EDC2 of test samples, %"),
    ("edc2_borderline", "EDC2 of borderline instances, %"),
)
FIGURE_3 = {"I": "tsstssts", "II": "ttssssst"}
"""Classes on the two lines."""
BOTH = "seeds and directions"
Rows = Mapping[Model, Sequence[Row]]
"""Of every classifier a row a seed."""


def settings() -> list[Number]:
    """Section 5.2."""
    options, beta = DeepDigOptions(), Refinement().beta
    values: Mapping[str, tuple[str, float]] = {
        "components_I_II.steps": ("steps of an autoencoder", options.steps),
        "components_I_II.batch": ("images in a batch", options.batch),
        "components_I_II.adam_learning_rate": ("learning rate of an autoencoder", options.learning_rate),
        "components_I_II.decay": ("its factor", options.decay),
        "components_I_II.decay_every_steps": ("after so many steps", options.decay_every),
        "components_I_II.alpha": ("alpha", options.alpha),
        "components_I_II.train_percent": ("images to train on, %", 100 * options.train_share),
        "components_I_II.validation_percent": ("images to validate on, %", 100 - 100 * options.train_share),
        "component_III.beta": ("beta", beta),
        "pca_components": ("principal components in Figures 4 to 6", 2),
    }
    return [setting(f"000.setup.{name}", what, value) for name, (what, value) in values.items()]


def figure_3() -> list[Number]:
    """Its two oscillations."""
    why = "By equation (3) from the classes in the figure; the values are lost in print and follow from it."
    return [
        Number(
            f"000.figure_3_oscillation.value_{name}",
            f"oscillation of line {name} in Figure 3",
            float(fo.borderline.oscillation(np.array(list(classes)))),
            why,
        )
        for name, classes in FIGURE_3.items()
    ]


def numbers(model: Model, rows: Sequence[Row]) -> list[Number]:
    """Those of one classifier."""
    return [*_components(model, rows), *_searches(model, rows), *_measures(model, rows)]


def _components(model: Model, rows: Sequence[Row]) -> list[Number]:
    """Tables 3, 4 and 5."""
    found = []
    for k, (way, component) in enumerate((way, component) for way in WAYS for component in ("I", "II")):
        s, t = model.pair if way == WAYS[0] else model.pair[::-1]
        values = [row[f"{way} {component} accuracy"] for row in rows]
        what = f"{model.words}: share in “{s}” after component {component}, “{s}” to “{t}”"
        why = f"Of images held back; from {min(values):.3f} to {max(values):.3f}."
        found.append(over_seeds(f"000.table_3_4_5_component_accuracy.{model.name}.{k}", what, values, why))
    return found


def _searches(model: Model, rows: Sequence[Row]) -> list[Number]:
    """Tables 6, 7 and 8."""
    found = []
    for method in METHODS:
        place = f"000.table_6_7_8_borderline_search.{model.name}.{method}"
        gaps, rates = (column(rows, f"{method} {what}") for what in ("gap", "success"))
        misprint = published()[f"{place}.0"] > Refinement().beta
        why = "Printed above beta, where the search stops: it must be e-5." if misprint else "Of all instances found."
        found.append(over_seeds(f"{place}.0", f"{model.words}: mean gap by {method}", gaps, why, BOTH))
        why = f"From {min(rates):.1f} to {max(rates):.1f}."
        found.append(over_seeds(f"{place}.1", f"{model.words}: success of {method}, %", rates, why, BOTH))
    return found


def _measures(model: Model, rows: Sequence[Row]) -> list[Number]:
    """Table 9."""
    found = []
    for k, (name, what) in enumerate(TABLE_9):
        values = column(rows, name)
        why = f"From {min(values):.3g} to {max(values):.3g}."
        over = BOTH if name == "IDC" else "seeds"
        found.append(over_seeds(f"000.table_9.{model.name}.{k}", f"{model.words}: {what}", values, why, over))
    return found


def least_edc2(table: Rows) -> Number:
    """Section 6.3: a linear model tells test samples apart."""
    least = {model: min(column(rows, "edc2_test")) for model, rows in table.items()}
    worst = min(least, key=lambda model: least[model])
    return Number(
        "000.section_6_3_EDC2_test_percent_above",
        "EDC2 of test samples, %, the least of all classifiers",
        least[worst],
        f"The least is that of {worst.words}.",
        kind="at least",
    )


def linked(table: Rows) -> list[Number]:
    """Section 6.3: Pearson's correlations over classifiers, by seed of the autoencoders."""
    found = []
    for side in ("borderline", "test"):
        values = [correlation(table, k, f"edc2_{side}").r for k in range(min(map(len, table.values())))]
        found.append(
            over_seeds(
                f"000.section_6_3_pearson.IDC_vs_EDC2_{side}",
                f"Pearson's correlation of IDC and EDC2 of {side} samples over classifiers",
                values,
                f"Over {len(table)} classifiers, without the two for CIFAR-10; p and n are in the claims.",
            )
        )
    return found


def correlation(table: Rows, k: int, name: str) -> Correlation:
    """Of IDC and another figure over classifiers, for one seed."""
    return pearson([mean([rows[k]], "IDC") for rows in table.values()], [rows[k][name] for rows in table.values()])


def methods(table: Rows, beside: Mapping[Model, Row]) -> Sheet:
    """What every method finds, and how far away."""
    head = ["classifier", "method", "success, %", "yield, %", "distance", "times as far as the closest flip"]
    body = []
    for model, rows in table.items():
        for method in METHODS:
            values = [mean(rows, f"{method} {name}") for name in ("success", "yield", "distance")]
            farther = mean([beside[model]], f"{method} farther")
            body.append([model.words, method, *(f"{v:.1f}" for v in values[:2]), f"{values[2]:.2f}", f"{farther:.2f}"])
        closest = {name: mean([beside[model]], f"closest {name}") for name in ("success", "converged", "distance")}
        share = f"{closest['success']:.1f} ({closest['converged']:.1f} verified as closest)"
        body.append([model.words, "closest flip points", share, "", f"{closest['distance']:.2f}", "1"])
    return Sheet(
        "Four methods: means over seeds and directions of shares and of median distances from the source; closest flip "
        "points of a sample of the sources, within [0, 1], and the medians of how much farther other instances of the "
        "same sources are (seed 0)",
        head,
        body,
    )


def as_coded(beside: Mapping[Model, Row]) -> Sheet:
    """EPBS with one partner for all."""
    body = [
        [model.words, way, f"{row[f'{way} EPBS as coded'][0]:.1f}", ", ".join(f"{v:.1f}" for v in others)]
        for model, row in beside.items()
        for way in WAYS
        if (others := row[f"{way} EPBS as coded"][1:]) is not None
    ]
    return Sheet(
        "EPBS as the authors' code has it, success in %: every source with the first training image of class t that is "
        "classified right, and with each of the next",
        ["classifier", "direction", "first image", "each of the next"],
        body,
    )


def maps(table: Rows) -> Sheet:
    """Errors of the autoencoders, and how many collapsed."""
    body = []
    for model, rows in table.items():
        for way in WAYS:
            for component in ("I", "II"):
                prefix = f"{way} {component}"
                errors = [row[f"{prefix} error"] for row in rows]
                variance = np.mean([row[f"{prefix} variance"] for row in rows])
                again = sum(row[f"{prefix} tries"] > 1 for row in rows)
                collapsed = sum(row[f"{prefix} collapsed"] for row in rows)
                spread = f"{np.mean(errors):.1f} ({min(errors):.1f} to {max(errors):.1f})"
                body.append([model.words, way, component, spread, f"{variance:.1f}", str(again), str(collapsed)])
    head = ["classifier", "direction", "component", "error", "variance", "tried again", "collapsed for good"]
    return Sheet(
        "Squared error of the autoencoders on images held back, beside the variance of what they map", head, body
    )


def own_planes(table: Rows) -> Sheet:
    """Distances from the classifier's own last hyperplane."""
    head = ["classifier", "test samples", "borderline instances", "half-width of IDC's interval, at most"]
    body = [
        [
            model.words,
            f"{mean(rows, 'own_test'):.3g}",
            f"{mean(rows, 'own_borderline'):.2g}",
            f"{max(column(rows, 'IDC half-width')):.5f}",
        ]
        for model, rows in table.items()
    ]
    return Sheet(
        "Mean distance from the classifier's own plane between the two classes in the embedding space: borderline "
        "instances lie on it by construction, so that EDC of these mostly compares a support vector machine with it",
        head,
        body,
    )
