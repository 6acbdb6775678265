"""Do models that are equally good agree, and do they disagree where people do: the study of Vlaar (004)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flipopt.common.checks import Array, as_floats, as_sequence, as_whole
from flipopt.common.errors import InputError
from flipopt.common.later import later
from flipopt.common.tables import Table
from flipopt.disagreement.labels import Labels
from flipopt.disagreement.measures import (
    BOTH_AGREE,
    BOTH_DISAGREE,
    DIFFERENT,
    EVER_WRONG,
    EVERY_MODEL,
    EVERY_PERSON,
    KINDS,
    TWO_MODELS,
    TWO_PEOPLE,
    TYPE_A,
    TYPE_C,
    WRONG,
    Agreement,
    Ballots,
    Certainty,
    SoftmaxByType,
    kinds_of,
)
from flipopt.disagreement.resampling import Resampling
from flipopt.disagreement.votes import Votes, as_ratings, pair_disagreement
from flipopt.explain.matching import counted, percent
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network

if TYPE_CHECKING:
    import pandas

IMAGES_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Images(Table):
    """One record an image.

    Attributes
    ----------
    image
        Its number.
    block
        Which images it was made with.
    kind
        "type A", "type B, both disagree", "type B, both agree", "type C", or "both agree, labels differ": an image that
        all models call by another class than all people. Without people "models disagree" or "models agree".
    model_class, model_certainty, model_split
        The class that most models give, the share of them that do, and how many classes they give.
    people_class, people_certainty, people_split
        The same of people; without them -1, NaN and 0.
    softmax
        The largest softmax, the mean over models; NaN where it is not known.
    """

    image: Array
    block: Array
    kind: Array
    model_class: Array
    model_certainty: Array
    model_split: Array
    people_class: Array
    people_certainty: Array
    people_split: Array
    softmax: Array


@dataclass(frozen=True, eq=False)
class Study:
    """Who agrees with whom on which images; :func:`study` makes one.

    Attributes
    ----------
    predicted
        Classes by models, (models, images).
    labels
        Classes by people, (people, images), -1 where a person has not seen an image; or None.
    softmax
        The largest softmax of every model on every image, (models, images); or None.
    blocks
        Which images were made together, (images,).
    classes
        Their names.
    resamples, seed
        Of the bootstrap.
    anonymous
        Whether rows of ``labels`` are not of one person each; two people then have no deviation over pairs.
    """

    predicted: Array = field(repr=False)
    labels: Array | None = field(repr=False)
    softmax: Array | None = field(repr=False)
    blocks: Array = field(repr=False)
    classes: tuple[str, ...] = field(repr=False)
    resamples: int = 1000
    seed: int = 0
    anonymous: bool = False

    @cached_property
    def models(self) -> Votes:
        """The votes of models on every image."""
        return Votes.of(self.predicted)

    @cached_property
    def people(self) -> Votes | None:
        """The votes of people, or None."""
        return None if self.labels is None else Votes.of(self.labels)

    @cached_property
    def kind(self) -> Array:
        """What kind of image each is, (images,); see :class:`Images`."""
        people = None if self.people is None else self.people.agree
        return kinds_of(self.models.agree, people, np.asarray(~self.wrong.any(axis=0)))

    @property
    def disagree(self) -> Array:
        """Whether at least one model gives another class than the others, (images,)."""
        return ~self.models.agree

    @property
    def people_disagree(self) -> Array | None:
        """The same of people."""
        return None if self.people is None else ~self.people.agree

    @property
    def type_a(self) -> Array | None:
        """Models disagree where people agree, (images,); None without people, as the others."""
        return self._is(TYPE_A)

    @property
    def type_b(self) -> Array | None:
        """Models disagree where people do, or agree with people who agree, (images,)."""
        return self._is(BOTH_DISAGREE, BOTH_AGREE)

    @property
    def type_c(self) -> Array | None:
        """Models agree where people disagree, (images,)."""
        return self._is(TYPE_C)

    @property
    def different(self) -> Array | None:
        """All models agree, and all people, on another class, (images,): the exception to type B."""
        return self._is(DIFFERENT)

    def _is(self, *kinds: str) -> Array | None:
        return None if self.labels is None else np.isin(self.kind, kinds)

    @property
    def wrong(self) -> Array:
        """Whether a model gives another class than people who all agree, (models, images)."""
        return self._ballots.wrong

    @cached_property
    def _ballots(self) -> Ballots:
        return Ballots.of(self.predicted, self.people)

    @cached_property
    def _resampling(self) -> Resampling:
        return Resampling(self._ballots, self.blocks, self.resamples, self.seed)

    @cached_property
    def agreement(self) -> Agreement:
        """Shares of images on which models or people disagree, by type: Tables 2 and 3."""
        values = self._ballots.counted(np.ones(len(self.predicted)))
        names = [name for name in (TWO_MODELS, EVERY_MODEL, WRONG, EVER_WRONG, *KINDS) if name in values]
        names += [name for name in values if name not in names]
        over = {
            TWO_MODELS: pair_disagreement(self.predicted),
            WRONG: self.wrong.mean(axis=1),
        }
        if self.labels is not None and not self.anonymous:
            over[TWO_PEOPLE] = pair_disagreement(self.labels)
        share = np.array([over[name].mean() if name in over else values[name].mean() for name in names])
        fixed, both = (
            np.array([self._resampling.share(name, float(at), models) for name, at in zip(names, share, strict=True)])
            for models in (False, True)
        )
        deviation = np.array([over[name].std() if name in over else np.nan for name in names])
        images = share * self.predicted.shape[1]
        return Agreement(np.array(names, dtype=object), share, deviation, images, *fixed.T, *both.T)

    @cached_property
    def softmax_by_type(self) -> SoftmaxByType:
        """The largest softmax by what kind of image it is: Table 4."""
        if self.softmax is None:
            raise InputError("softmax: expected the largest softmax of every model on every image, found none")
        kinds = [kind for kind in (*KINDS, *np.unique(self.kind)) if (self.kind == kind).any()]
        kinds = list(dict.fromkeys(kinds))
        groups = [self.kind == kind for kind in kinds]
        values = [self.softmax[:, group] for group in groups]
        ends = np.array([self._resampling.mean(self.softmax, group) for group in groups])
        return SoftmaxByType(
            np.array(kinds, dtype=object),
            np.array([group.sum() for group in groups]),
            np.array([some.mean() for some in values]),
            np.array([some.std() for some in values]),
            *ends.T,
        )

    @cached_property
    def certainty(self) -> Certainty:
        """Certainty of models where people are so certain: Table 5, with all images."""
        levels, groups = self.levels()
        found = [self.models.share[group].mean() for group in groups]
        ends = np.array([self._resampling.certainty(group) for group in groups])
        images = np.array([group.sum() for group in groups])
        return Certainty(levels, images, np.array(found), np.full(len(levels), np.nan), *ends.T)

    def levels(self) -> tuple[Array, list[Array]]:
        """The certainties of people that there are, highest first, and which images have each."""
        if self.people is None:
            raise InputError("labels: expected labels by people, found none")
        rounded = np.round(self.people.share, 9)
        levels = np.unique(rounded)[::-1]
        return levels, [rounded == level for level in levels]

    @cached_property
    def images(self) -> Images:
        """What is known of every image."""
        k, models, people = self.predicted.shape[1], self.models, self.people
        return Images(
            np.arange(k),
            self.blocks,
            self.kind,
            models.top,
            models.share,
            models.split,
            np.full(k, -1) if people is None else people.top,
            np.full(k, np.nan) if people is None else people.share,
            np.zeros(k, dtype=np.int64) if people is None else people.split,
            np.full(k, np.nan) if self.softmax is None else self.softmax.mean(axis=0),
        )

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame with a row an image (needs pandas)."""
        return self.images.to_pandas()

    def save(self, path: str | Path) -> None:
        """Write a Parquet file with a row an image, whole or not at all."""
        self.images.save(path)

    def summary(self) -> str:
        """In plain words."""
        models, k = self.predicted.shape
        table = self.agreement
        every = table.of(EVERY_MODEL)
        text = f"{counted(models, 'model')} on {counted(k, 'image')}: "
        if TWO_MODELS in table:
            text += f"any two disagree on {_spread(table, TWO_MODELS)} of them, "
        text += f"at least one of all disagrees on {_interval(every)}. "
        if self.labels is None:
            return f"{text}Nothing is known of people."
        text += (
            f"{counted(len(self.labels), 'person', 'people')} disagree on {_interval(table.of(EVERY_PERSON), False)}"
        )
        text += f", any two of them on {_spread(table, TWO_PEOPLE)}. " if TWO_PEOPLE in table else ". "
        text += f"Type A, models disagree where people agree: {_interval(table.of(TYPE_A))}. "
        text += f"Type C, models agree where people disagree: {_interval(table.of(TYPE_C))}. "
        text += f"A model gives another class than people who all agree on {_spread(table, WRONG)} of the images"
        both = int((self.kind == DIFFERENT).sum())
        return text + (f"; on {counted(both, 'image')} all models do, and agree." if both else ".")

    def __str__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path, **options: Any) -> None:
        """Draw the heat map of Figure 4 to ``path``; see :func:`flipopt.report.draw_disagreement`."""
        later("report.disagreement:draw_disagreement")(path, self, **options)


def _spread(table: Agreement, measure: str) -> str:
    record = table.of(measure)
    deviation = "" if np.isnan(record["deviation"]) else f" ± {percent(record['deviation'])}"
    return f"{percent(record['share'])}{deviation}"


def _interval(record: dict[str, float], models: bool = True) -> str:
    low, high = (record[f"{end}_models" if models else end] for end in ("low", "high"))
    interval = "" if np.isnan(low) else f" (95% interval {percent(low)} to {percent(high)})"
    return f"{percent(record['share'])}{interval}"


def study(
    models: Any,
    images: Any = None,
    labels: Any = None,
    *,
    softmax: Any = None,
    blocks: Any = None,
    classes: Sequence[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Study:
    """On which images models disagree, and whether people do there: Tables 2 to 5 and Figure 4 of Vlaar (004).

    Parameters
    ----------
    models
        Classifiers, with the images; or the classes that they predict, (models, images), with None for the images.
        Any number of them.
    images
        Images (k, n_inputs), also in their own shape (k, ...), as the models take them; or what
        :func:`interpolations` makes. None for models that are predicted classes.
    labels
        What :func:`read_labels` reads, or classes by people, (people, images), -1 where a person has not seen an
        image; or None. All that saw an image count; each must have been seen by one.
    softmax
        For predicted classes: the largest softmax of every model on every image, (models, images).
    blocks
        Which images were made together, (images,), such as those of a line; they are drawn together for intervals.
        By default every image is on its own, or if they are interpolations, those of a line are together.
    classes
        Names; by default numbers. Labels may be any of them: so people may have a word that no model has.
    resamples, seed
        Of the bootstrap; without resamples there are no intervals.
    """
    anonymous = isinstance(labels, Labels) and labels.anonymous
    if isinstance(labels, Labels):
        classes, labels = classes or labels.classes or None, labels.labels
    names = None if classes is None else tuple(str(name) for name in as_sequence(classes, "classes", "names"))
    blocks = getattr(images, "line", None) if blocks is None else blocks
    if images is None:
        predicted = as_ratings(models, "models", None, None if names is None else len(names))
        known = None if names is None else len(names)
    else:
        if softmax is not None:
            raise InputError("softmax: expected None where there are images, as the models say it themselves")
        nets, rows = networks_on(models, images)
        predicted, softmax = _asked(nets, rows)
        n_classes, own = nets[0].n_classes, getattr(nets[0], "class_names", None)
        names = tuple(str(name) for name in own or range(n_classes)) if names is None else names
        if len(names) < n_classes:
            raise InputError(f"classes: expected at least the {n_classes} of the models, found {len(names)}")
        known = len(names)
    k = predicted.shape[1]
    given = None if labels is None else as_ratings(labels, "labels", k, known, missing=True)
    if names is None:
        most = max(int(predicted.max()), -1 if given is None else int(given.max()))
        names = tuple(str(number) for number in range(most + 1))
    return Study(
        predicted,
        given,
        None if softmax is None else _as_softmax(softmax, predicted.shape),
        _as_blocks(blocks, k),
        names,
        as_whole(resamples, "resamples"),
        as_whole(seed, "seed"),
        anonymous,
    )


def networks_on(models: Any, images: Any) -> tuple[list[Network], list[Array]]:
    """Classifiers, one or several, and the images as rows of each, which must have the same classes."""
    if hasattr(models, "logits") or not hasattr(models, "__iter__"):
        models = [models]
    X = getattr(images, "images", images)
    nets = [as_network(model, X, many=True) for model in as_sequence(models, "models", "classifiers")]
    if not nets:
        raise InputError("models: expected at least one, found none")
    if len({net.n_classes for net in nets}) > 1:
        found = ", ".join(str(net.n_classes) for net in nets)
        raise InputError(f"models: expected the same number of classes in all, found {found}")
    rows = [as_points(_flat(X, net), net, "images") for net in nets]
    if rows[0].ndim != 2 or not len(rows[0]):
        raise InputError(f"images: expected a row an image, found shape {np.shape(X)}")
    return nets, rows


def _flat(images: Any, net: Network) -> Any:
    """Images in a shape of their own as rows, for networks of rows."""
    array = np.asarray(images)
    return array.reshape(len(array), -1) if array.ndim > 2 and array[0].size == net.n_inputs else images


def _asked(nets: list[Network], rows: list[Array]) -> tuple[Array, Array]:
    """Classes and the largest softmax, (models, images) each."""
    parts = [slice(first, first + IMAGES_AT_ONCE) for first in range(0, len(rows[0]), IMAGES_AT_ONCE)]
    predicted, softmax = [], []
    for number, (net, X) in enumerate(zip(nets, rows, strict=True)):
        quick = getattr(net, "forward_only", net)
        Z = np.concatenate([quick.probabilities(X[part]) for part in parts])
        bad = np.flatnonzero(~np.isfinite(Z).all(axis=1))
        if len(bad):
            raise InputError(f"models: model {number} says of image {bad[0]} what is no number")
        predicted.append(Z.argmax(axis=1))
        softmax.append(Z.max(axis=1))
    return np.stack(predicted), np.stack(softmax)


def _as_softmax(values: Any, shape: tuple[int, ...]) -> Array:
    found = as_floats(values, "softmax").astype(np.float64)
    if found.shape != shape or found.min() < 0 or found.max() > 1:
        span = f"from {found.min():g} to {found.max():g}" if found.size else "none"
        raise InputError(f"softmax: expected numbers from 0 to 1, {shape}, found {found.shape} {span}")
    return found


def _as_blocks(blocks: Any, k: int) -> Array:
    if blocks is None:
        return np.arange(k)
    found = np.asarray(blocks)
    if found.shape != (k,) or found.dtype.kind not in "iuU":
        raise InputError(f"blocks: expected {k} numbers, one an image, found {found.dtype} {found.shape}")
    return np.unique(found, return_inverse=True)[1].astype(np.int64)
