"""The tables of a study: agreement (Tables 2 and 3), softmax (4) and certainty (5) of Vlaar (004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.tables import Table
from flipopt.disagreement.votes import Votes

TYPE_A, BOTH_DISAGREE, BOTH_AGREE, DIFFERENT, TYPE_C = KINDS = (
    "type A", "type B, both disagree", "type B, both agree", "both agree, labels differ", "type C",
)  # fmt: skip
"""Every image that people have labelled is one of these: Table 1, with what is in its footnote apart."""
ALONE = ("models disagree", "models agree")
"""What is known of an image without people."""
EVERY_MODEL, EVERY_PERSON = "models disagree", "people disagree"
TWO_MODELS, TWO_PEOPLE = "two models disagree", "two people disagree"
WRONG, EVER_WRONG = "misclassified by a model", "misclassified by any model"


@dataclass(frozen=True, eq=False)
class Agreement(Table):
    """Shares of the images, a record a measure: Tables 2 and 3.

    Attributes
    ----------
    measure
        Its name. An image is misclassified by a model that says another class than all people do.
    share
        Of all images; where it is one of a model or of a pair, the mean over those.
    deviation
        Standard deviation over models, or over pairs (with their number as divisor); NaN of other measures.
    images
        How many that is; a fraction if it is a mean.
    low, high
        95% bootstrap interval over images, for these models and people.
    low_models, high_models
        The same over images and models.
    """

    measure: Array
    share: Array
    deviation: Array
    images: Array
    low: Array
    high: Array
    low_models: Array
    high_models: Array

    def of(self, measure: str) -> dict[str, float]:
        """The record of one measure."""
        (k,) = np.flatnonzero(self.measure == measure)
        return {name: float(getattr(self, name)[k]) for name in self.names()[1:]}

    def __contains__(self, measure: object) -> bool:
        return bool((self.measure == measure).any())


@dataclass(frozen=True, eq=False)
class SoftmaxByType(Table):
    """The largest softmax of models, by what kind of image it is: Table 4.

    Attributes
    ----------
    kind
        As in ``Study.kind``.
    images
        How many there are.
    mean, deviation
        Over all pairs of a model and an image of the kind; NaN without any.
    low, high
        95% bootstrap interval of the mean, over images and models.
    """

    kind: Array
    images: Array
    mean: Array
    deviation: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Certainty(Table):
    """How certain models are where people are so certain, a record a certainty of people: Table 5.

    The certainty of raters on an image is the share of them that give the most frequent class.

    Attributes
    ----------
    people
        The certainty of people, highest first.
    images
        How many images have it.
    models
        Mean certainty of the models on these.
    deviation
        Standard deviation over repeats with other models; NaN of a single study.
    low, high
        95% bootstrap interval of the mean, over images and models; NaN of several studies.
    """

    people: Array
    images: Array
    models: Array
    deviation: Array
    low: Array
    high: Array


def kinds_of(agree: Array, people_agree: Array | None, right: Array) -> Array:
    """The kind of every image (images,), one of KINDS, or of ALONE without people.

    ``agree`` and ``people_agree`` say whether all of them give one class, ``right`` whether no model gives another
    class than people who agree.
    """
    if people_agree is None:
        return np.where(agree, ALONE[1], ALONE[0]).astype(object)
    return np.select(
        (~agree & people_agree, ~agree & ~people_agree, agree & people_agree & right, agree & people_agree, agree),
        KINDS,
        "",
    ).astype(object)


@dataclass(frozen=True, eq=False)
class Ballots:
    """What models say of every image, ready to be counted with any weights of the models.

    Attributes
    ----------
    each
        Whether model m gives image k the c-th of the classes that models give it, (models, images, classes).
    wrong
        Whether it gives another class than people who agree, (models, images).
    people
        What people say, or None.
    two_people
        Share of the pairs of people that differ on an image, (images,), or None.
    """

    each: Array
    wrong: Array
    people: Votes | None
    two_people: Array | None

    @classmethod
    def of(cls, predicted: Array, people: Votes | None) -> Ballots:
        """Of classes (models, images)."""
        order = np.argsort(predicted, axis=0, kind="stable")
        places = np.take_along_axis(predicted, order, axis=0)
        rank = np.concatenate([np.zeros_like(places[:1]), np.cumsum(places[1:] != places[:-1], axis=0)])
        codes = np.empty_like(rank)
        np.put_along_axis(codes, order, rank, axis=0)
        each = (codes[:, :, None] == np.arange(rank[-1].max() + 1)).astype(np.float64)
        wrong = np.zeros(predicted.shape, dtype=bool) if people is None else people.agree & (predicted != people.top)
        return cls(each, wrong, people, None if people is None else people.pairs)

    def counted(self, weights: Array) -> dict[str, Array]:
        """The value of every measure on every image, (images,) each: their means are the shares.

        ``weights`` (models,) say how often each model counts; twice the same model is no pair.
        """
        counts, total = np.tensordot(weights, self.each, axes=1), weights.sum()
        agree, wrong = counts.max(axis=1) == total, weights @ self.wrong / total
        found = {EVERY_MODEL: ~agree}
        pairs = total**2 - (weights**2).sum()
        if pairs > 0:
            found[TWO_MODELS] = (total**2 - (counts**2).sum(axis=1)) / pairs
        if self.people is not None:
            kinds = kinds_of(agree, self.people.agree, wrong == 0)
            found |= {WRONG: wrong, EVER_WRONG: wrong > 0, **{kind: kinds == kind for kind in KINDS}}
            found[EVERY_PERSON] = ~self.people.agree
        if self.two_people is not None:
            found[TWO_PEOPLE] = self.two_people
        return {name: values.astype(np.float64) for name, values in found.items()}

    def certainty(self, weights: Array) -> Array:
        """Share of the models that give the most frequent class, (images,)."""
        return np.asarray(np.tensordot(weights, self.each, axes=1).max(axis=1) / weights.sum())
