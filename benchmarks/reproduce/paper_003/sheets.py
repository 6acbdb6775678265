"""Small tables beside the numbers of 003: the control, differences, and what is behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.reproduce.paper_003.claims import BALLS, CONTROL, OURS, Mean, Rows, alike, deviations, fewer, more
from benchmarks.reproduce.paper_003.measures import CENTRES, DEPTHS, JUDGE, METHODS, Row, column, known
from benchmarks.reproduce.paper_003.networks import Model
from benchmarks.reproduce.record import Sheet
from flipopt.common.checks import Array


def of(model: Model, table: Rows) -> list[Sheet]:
    """Of one generator: Tables 1 and 2 with the control, and what is behind them."""
    return [
        _deviations(model, table),
        _differences(model, table),
        _similarities(model, table),
        _behind(model, table),
    ]


def _deviations(model: Model, table: Rows) -> Sheet:
    body = [
        [METHODS[method], centre, *(Mean.of(deviations(t, method, centre)).words() for t in table.values())]
        for centre in CENTRES
        for method in METHODS
        if method != OURS or centre == CENTRES[0]
    ]
    return Sheet(
        f"{model.words}, Table 1 with the control: deviation of images by the generator's layer, mean over queries "
        "and its 95% interval; balls around the mean of the samples, as above, or around the query",
        ["method", "around the", *(f"layer {layer}" for layer in table)],
        body,
    )


def _differences(model: Model, table: Rows) -> Sheet:
    body = [
        [METHODS[other], centre, *(fewer(t, other, centre).words() for t in table.values())]
        for centre in CENTRES
        for other in (*BALLS, CONTROL)
    ]
    return Sheet(
        f"{model.words}: deviation of E-GBAS less that of the others, query by query; below 0 it varies less",
        ["less that of the", "around the", *(f"layer {layer}" for layer in table)],
        body,
    )


def _similarities(model: Model, table: Rows) -> Sheet:
    body = [[METHODS[name], *(Mean.of(alike(table, name, depth)).words(3) for depth in DEPTHS)] for name in METHODS]
    body += [
        [f"E-GBAS less the {METHODS[name]}", *(more(table, d, name).words() for d in DEPTHS)]
        for name in (*BALLS, CONTROL)
    ]
    return Sheet(
        f"{model.words}, Table 2 with the control: similarity by the discriminator's layer, each a mean over the "
        "generator's layers, mean over queries and its 95% interval",
        ["method", *(f"layer {depth}" for depth in DEPTHS)],
        body,
    )


def _behind(model: Model, table: Rows) -> Sheet:
    def mean(*path: str | int, digits: int = 0) -> list[str]:
        columns = [known(t, *path) for t in table.values()]
        return [f"{values.mean():,.{digits}f}" if len(values) else "" for values in columns]

    body = [
        ["units", *mean("units")],
        ["active at the query", *mean("active")],
        ["essential", *mean("essential")],
        ["relative error of the essential alone", *mean("error", digits=3)],
        ["queries within the target error", *(f"{int(known(t, 'success').sum())} of {len(t)}" for t in table.values())],
        ["queries compared", *(f"{len(known(t, 'mean', OURS, 'deviation'))} of {len(t)}" for t in table.values())],
        ["samples", *mean("accepted")],
        ["rejected", *mean("rejected")],
        ["verified in float64", *(f"{100 * known(t, 'verified').min():.0f}%" for t in table.values())],
        ["distance of samples from the query", *mean("reach", 0, digits=2)],
        ["the farthest", *mean("reach", 1, digits=2)],
        ["distance of points uniform in the region within the box", *mean("whole", "reach", 0, digits=2)],
        ["deviation of the images of these", *mean("whole", "deviation", digits=4)],
        ["R-hat of these, the largest", *(_largest(known(t, "whole", "rhat")) for t in table.values())],
        ["radius of the 2-norm's ball", *mean("mean", "epsilon_2", digits=2)],
        ["half the side of the infinity norm's", *mean("mean", "epsilon_inf", digits=3)],
        *([f"distance from the centre, {METHODS[m]}", *mean("mean", m, "distance", digits=2)] for m in METHODS),
        *([f"share inside the region, {METHODS[m]}", *mean("mean", m, "inside", digits=3)] for m in METHODS),
    ]  # fmt: skip
    return Sheet(
        f"{model.words}: what is behind the figures, means over queries",
        ["", *(f"layer {layer}" for layer in table)],
        body,
    )


def by_steps(model: Model, found: Mapping[int, Sequence[Row]]) -> Sheet:
    """How much depends on a setting that the paper does not give."""
    body = []
    for steps, few in found.items():
        for one in few:
            words = (
                [f"{one['mean'][name]['deviation']:.4f}" for name in METHODS] if "mean" in one else [""] * len(METHODS)
            )
            sizes = (one["essential"], one["accepted"], one["rejected"])
            body.append([str(one["number"]), str(steps), *(f"{v:,}" for v in sizes), f"{one['reach'][0]:.2f}", *words])
    return Sheet(
        f"{model.words}, layer {model.layers[0]}: what depends on the steps of BerOpt, with the same target error; "
        "deviations of images by method",
        ["query", "steps", "essential", "samples", "rejected", "distance from the query", *METHODS.values()],
        body,
    )


def digits(table: Rows) -> Sheet:
    """Of rows of :func:`~benchmarks.reproduce.paper_003.measures.by_digits`."""
    return Sheet(
        f"What is alike: share of images that `{JUDGE}` takes for the digit that it takes the query's for, mean over "
        "queries and its 95% interval",
        ["method", *(f"layer {layer}" for layer in table)],
        [[METHODS[name], *(Mean.of(column(rows, name)).words(3) for rows in table.values())] for name in METHODS],
    )


def _largest(values: Array) -> str:
    return f"{values.max():.3f}" if len(values) else ""


def absent(models: Sequence[Model]) -> list[Sheet]:
    """Those that were not run, if there are any."""
    body = [[model.words, ", ".join(map(str, model.layers)), model.not_run] for model in models]
    head = ["generator", "layers", "why, and what would"]
    return [Sheet("Generators that were not run", head, body)] if body else []
