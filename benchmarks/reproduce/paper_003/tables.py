"""Tables 1 and 2: how much images of samples vary, and how similar a discriminator finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_003 import claims
from benchmarks.reproduce.paper_003.claims import BALLS, CONTROL, OURS, Mean, Rows, alike, deviations, fewer, more
from benchmarks.reproduce.paper_003.measures import (
    CENTRES,
    DEPTHS,
    JUDGE,
    METHODS,
    Row,
    Settings,
    by_digits,
    by_steps,
    column,
    known,
    rows,
    settings,
)
from benchmarks.reproduce.paper_003.networks import DCGAN, PAPERS, STAND_INS, Model, pair
from benchmarks.reproduce.record import Number, Record, Sheet, setting
from flipopt.common.checks import Array

COLUMNS = {"MNIST": "DCGAN-MNIST", "LSUN": "PGGAN-LSUN", "celebA": "PGGAN-celebA"}
"""Names in Table 1 by those in Table 2."""
PUBLISHED = {"l2": "epsilon_L2", "linf": "epsilon_Linf", "e-gbas": "E-GBAS"}
TABLE_1, TABLE_2 = "003.table_1_std_of_generated", "003.table_2_discriminator_cosine_similarity"
CELLS = {1: 3, 2: 4}
"""Layers of a growing generator in Table 1, and of every discriminator in Table 2."""
LOST = {("MNIST", "l2", 4)}
"""Lost in print in Table 2."""


def tables(desk: Desk) -> Record:
    """Every generator that is there."""
    how = settings(desk)
    wanted = {name: pair(desk, model) for name, model in PAPERS.items()}
    others = {model: pair(desk, model) for model in STAND_INS}
    found = {name: rows(desk, one, how) for name, one in wanted.items() if one is not None}
    beside = {model: rows(desk, one, how) for model, one in others.items() if one is not None}
    looked = {PAPERS[name]: table for name, table in found.items()} | beside
    digits = wanted["MNIST"]
    steps = {} if digits is None else by_steps(desk, digits, how)
    same = {} if digits is None else by_digits(desk, digits, how)
    return Record(
        title="Standard deviations and similarities of E-GBAS and of balls (Tables 1 and 2)",
        summary=_summary(how, looked),
        setup={"settings": repr(how), "methods": METHODS, "layers": {m.name: m.layers for m in looked}},
        seeds=[how.seed],
        numbers=[*_settings(how), *_table_1(found), *_table_2(found)],
        claims=[
            *(claims.claims(found["MNIST"]) if "MNIST" in found else ()),
            *([claims.attributes(same)] if same else ()),
        ],
        sheets=[
            *(sheet for model, table in looked.items() for sheet in sheets(model, table)),
            *([_digits(same)] if same else []),
            *([_by_steps(DCGAN, steps)] if steps else []),
            _absent([model for model in (*PAPERS.values(), *STAND_INS) if model not in looked]),
        ],
        figures={
            **{m.name: {f"layer {layer}": list(table) for layer, table in t.items()} for m, t in looked.items()},
            "digits": {f"layer {layer}": few for layer, few in same.items()},
            "steps": {str(count): few for count, few in steps.items()},
        },
    )


def _summary(how: Settings, looked: Mapping[Model, Rows]) -> str:
    text = (
        f"{how.queries} queries from N(0, I), each in every layer: BerOpt with a target error of {how.target_error:g} "
        f"and p = {how.threshold:g}, GB-RRT with {how.expansions:,} expansions, I = {how.interval:g} and a step of "
        f"0.08 I sqrt(d), and {how.count} samples of what it found against as many points of each ball, and of a "
        "control at the same distances in random directions. These settings were fixed before the run, on other "
        "queries. Deviations are of pixels from -1 to 1, as G ends in tanh. Our generator was trained by "
        "cross-entropy, the paper's by the Wasserstein distance."
    )
    if DCGAN not in looked:
        return text
    table = looked[DCGAN]
    below = {name: sum(fewer(t, name).high < 0 for t in table.values()) for name in (*BALLS, CONTROL)}
    above = sum(fewer(t, CONTROL).low > 0 for t in table.values())
    near, far = (Mean.of(known(table[min(table)], *path)).value for path in (("reach", 0), ("whole", "reach", 0)))
    return text + (
        f" What we found: with the interval over queries, images of E-GBAS vary less than those of the 2-norm's ball "
        f"in {below['l2']} of {len(table)} layers, than those of the infinity norm's in {below['linf']}, and than "
        f"those of the control in {below[CONTROL]} (more than these in {above}). GB-RRT stays near its query: "
        f"{near:.2f} on average in layer {min(table)}, where points uniform in the same region and box are "
        f"{far:.2f} away."
    )


def _settings(how: Settings) -> list[Number]:
    return [
        setting("003.queries", "queries", how.queries),
        setting("003.threshold_p", "threshold p of essential units", how.threshold),
        *(
            setting(f"{TABLE_2}.layers.{k}", f"layer of the discriminator, column {k + 1} of Table 2", depth)
            for k, depth in enumerate(DEPTHS)
        ),
    ]


def _table_1(found: Mapping[str, Rows]) -> list[Number]:
    numbers = []
    for data, title in COLUMNS.items():
        model = PAPERS[data]
        for k, layer in enumerate(model.layers):
            place, what = f"{TABLE_1}.{title}", f"layer of {title}, column {k + 1} of Table 1"
            taken = setting(f"{place}.layers.{k}", what, layer)
            numbers.append(taken if data in found else _missing(f"{place}.layers.{k}", what, model))
        for method, name in PUBLISHED.items():
            for k, layer in enumerate(model.layers):
                place, what = (
                    f"{TABLE_1}.{title}.{name}.{k}",
                    f"{title}, layer {layer}: deviation of images, {METHODS[method]}",
                )
                if data not in found:
                    numbers.append(_missing(place, what, model))
                    continue
                numbers.append(_over_queries(place, what, deviations(found[data][layer], method)))
    return numbers


def _table_2(found: Mapping[str, Rows]) -> list[Number]:
    numbers = []
    for data, title in COLUMNS.items():
        for method, name in PUBLISHED.items():
            for k, depth in enumerate(DEPTHS):
                place = f"{TABLE_2}.{data}.{name}.{k}"
                what = f"{title}: similarity in layer {depth} of the discriminator, {METHODS[method]}"
                if (data, method, depth) in LOST:
                    continue
                if data not in found:
                    numbers.append(_missing(place, what, PAPERS[data]))
                    continue
                numbers.append(_over_queries(place, what, alike(found[data], method, depth)))
    return numbers


def _over_queries(name: str, what: str, values: Array) -> Number:
    """A mean over queries. Its spread is that of such a mean, not of one query: ten random ones are published too."""
    mean = Mean.of(values)
    why = (
        "No query can be compared."
        if mean.count == 0
        else (
            f"The mean's 95% interval is {mean.low:.4f} to {mean.high:.4f}; queries have {values.min():.4f} to "
            f"{values.max():.4f}."
        )
    )
    return Number(name, what, mean.value, why, mean.error, mean.count, "queries, standard error")


def _missing(name: str, what: str, model: Model) -> Number:
    return Number(name, what, None, model.not_run)


def sheets(model: Model, table: Rows) -> list[Sheet]:
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


def _by_steps(model: Model, found: Mapping[int, Sequence[Row]]) -> Sheet:
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


def _digits(table: Rows) -> Sheet:
    return Sheet(
        f"What is alike: share of images that `{JUDGE}` takes for the digit that it takes the query's for, mean over "
        "queries and its 95% interval",
        ["method", *(f"layer {layer}" for layer in table)],
        [[METHODS[name], *(Mean.of(column(rows, name)).words(3) for rows in table.values())] for name in METHODS],
    )


def _largest(values: Array) -> str:
    return f"{values.max():.3f}" if len(values) else ""


def _absent(models: Sequence[Model]) -> Sheet:
    body = [[model.words, ", ".join(map(str, model.layers)), model.not_run] for model in models]
    return Sheet("Generators that were not run", ["generator", "layers", "why, and what would"], body)
