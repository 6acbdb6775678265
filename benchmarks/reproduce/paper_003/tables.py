"""Tables 1 and 2: how much images of samples vary, and how similar a discriminator finds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_003 import claims, sheets
from benchmarks.reproduce.paper_003.claims import BALLS, CONTROL, Mean, Rows, alike, deviations, fewer
from benchmarks.reproduce.paper_003.measures import (
    DEPTHS,
    METHODS,
    Settings,
    by_digits,
    by_steps,
    known,
    rows,
    settings,
)
from benchmarks.reproduce.paper_003.networks import DCGAN, FASHION, PAPERS, WASSERSTEIN, Model, pair
from benchmarks.reproduce.record import Number, Record, setting
from flipopt.common.checks import Array

COLUMNS = {"MNIST": "DCGAN-MNIST", "LSUN": "PGGAN-LSUN", "celebA": "PGGAN-celebA"}
"""Names in Table 1 by those in Table 2."""
PUBLISHED = {"l2": "epsilon_L2", "linf": "epsilon_Linf", "e-gbas": "E-GBAS"}
TABLE_1, TABLE_2 = "003.table_1_std_of_generated", "003.table_2_discriminator_cosine_similarity"
LOST = {("MNIST", "l2", 4)}
"""Lost in print in Table 2."""


def tables(desk: Desk) -> Record:
    """Of the generator of digits."""
    how, one = settings(desk), pair(desk, DCGAN)
    looked = _looked(desk, how, (DCGAN, WASSERSTEIN))
    found = {"MNIST": looked[DCGAN]} if one is not None else {}
    steps = {} if one is None else by_steps(desk, one, how)
    same = {} if one is None else by_digits(desk, one, how)
    return Record(
        title="Standard deviations and similarities of E-GBAS and of balls, DCGAN-MNIST (Tables 1 and 2)",
        summary=_summary(how, looked),
        setup=_setup(how, looked),
        seeds=[how.seed],
        numbers=[*_settings(how), *_numbers(("MNIST",), found)],
        claims=[
            *(claim for table in found.values() for claim in claims.claims(table)),
            *([claims.attributes(same)] if same else ()),
        ],
        sheets=[
            *(sheet for model, table in looked.items() for sheet in sheets.of(model, table)),
            *([sheets.digits(same)] if same else []),
            *([sheets.by_steps(DCGAN, steps)] if steps else []),
            *sheets.absent([model for model in (DCGAN, WASSERSTEIN) if model not in looked]),
        ],
        figures={
            **_figures(looked),
            "digits": {f"layer {layer}": few for layer, few in same.items()},
            "steps": {str(count): few for count, few in steps.items()},
        },
    )


def growing(desk: Desk) -> Record:
    """Of the growing generators, as far as there are any."""
    how, wanted = settings(desk), {name: PAPERS[name] for name in ("LSUN", "celebA")}
    models = (*wanted.values(), FASHION)
    looked = _looked(desk, how, models)
    found = {name: looked[model] for name, model in wanted.items() if model in looked}
    there = ", ".join(model.words for model in looked) or "none"
    return Record(
        title="The same of growing generators (Tables 1 and 2)",
        summary="The paper's generators of churches and of faces, and the images that they were trained on, cannot be "
        "had here; a growing generator of the clothes of FashionMNIST stands in, in columns of its own. The settings "
        f"are those of DCGAN-MNIST. Run so far: {there}.",
        setup=_setup(how, looked),
        seeds=[how.seed],
        numbers=_numbers(tuple(wanted), found),
        sheets=[
            *(sheet for model, table in looked.items() for sheet in sheets.of(model, table)),
            *sheets.absent([model for model in models if model not in looked]),
        ],
        figures=_figures(looked),
    )


def _looked(desk: Desk, how: Settings, models: Sequence[Model]) -> dict[Model, Rows]:
    """What is measured of those models that are there."""
    pairs = {model: pair(desk, model) for model in models}
    return {model: rows(desk, one, how) for model, one in pairs.items() if one is not None}


def _setup(how: Settings, looked: Mapping[Model, Rows]) -> dict[str, Any]:
    return {"settings": repr(how), "methods": METHODS, "layers": {model.name: model.layers for model in looked}}


def _figures(looked: Mapping[Model, Rows]) -> dict[str, Any]:
    return {m.name: {f"layer {layer}": list(table) for layer, table in t.items()} for m, t in looked.items()}


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


def _numbers(wanted: Sequence[str], found: Mapping[str, Rows]) -> list[Number]:
    """Of data sets: those that are found, and for the others why they are not."""
    return [
        number
        for data in wanted
        for number in (
            [*_table_1(data, found[data]), *_table_2(data, found[data])] if data in found else _missing(data)
        )
    ]


def _missing(data: str) -> list[Number]:
    nothing = Number("003.queries", "", None, PAPERS[data].not_run)
    blank: Rows = {layer: [] for layer in PAPERS[data].layers}
    return [
        replace(nothing, name=number.name, what=number.what)
        for number in (*_table_1(data, blank), *_table_2(data, blank))
    ]


def _table_1(data: str, table: Rows) -> Iterator[Number]:
    place, title = f"{TABLE_1}.{COLUMNS[data]}", COLUMNS[data]
    for k, layer in enumerate(table):
        yield setting(f"{place}.layers.{k}", f"layer of {title}, column {k + 1} of Table 1", layer)
    for method, name in PUBLISHED.items():
        for k, layer in enumerate(table):
            what = f"{title}, layer {layer}: deviation of images, {METHODS[method]}"
            yield _over_queries(f"{place}.{name}.{k}", what, deviations(table[layer], method))


def _table_2(data: str, table: Rows) -> Iterator[Number]:
    for method, name in PUBLISHED.items():
        for k, depth in enumerate(DEPTHS):
            if (data, method, depth) not in LOST:
                what = f"{COLUMNS[data]}: similarity in layer {depth} of the discriminator, {METHODS[method]}"
                yield _over_queries(f"{TABLE_2}.{data}.{name}.{k}", what, alike(table, method, depth))


def _over_queries(name: str, what: str, values: Array) -> Number:
    """A mean over queries. Its spread is that of such a mean, not of one query: ten random ones are published too."""
    mean, few = Mean.of(values), values[np.isfinite(values)]
    if mean.count == 0:
        return Number(name, what, None, "No query can be compared.")
    why = (
        f"The mean's 95% interval is {mean.low:.4f} to {mean.high:.4f}; queries have {few.min():.4f} to "
        f"{few.max():.4f}."
    )
    return Number(name, what, mean.value, why, mean.error, mean.count, "queries, standard error")
