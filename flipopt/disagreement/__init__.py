"""People and models on images between two classes (Vlaar, 004): who disagrees, where, and how near flips are."""

from flipopt.disagreement.crossings import Crossings, Spread, crossings
from flipopt.disagreement.curves import Curves, certainty, curves
from flipopt.disagreement.distances import ByDistance, by_distance, distances
from flipopt.disagreement.importers import read_cifar_10h, read_label_errors, read_varimnist
from flipopt.disagreement.interpolation import Interpolations, Latents, choose_latents, interpolations, pairs
from flipopt.disagreement.labelling import read_images, write_form
from flipopt.disagreement.labels import Labels, merge, read_labels
from flipopt.disagreement.measures import Agreement, Certainty, SoftmaxByType
from flipopt.disagreement.study import Images, Study, study

__all__ = [
    "Agreement", "ByDistance", "Certainty", "Crossings", "Curves", "Images", "Interpolations", "Labels", "Latents",
    "SoftmaxByType", "Spread", "Study", "by_distance", "certainty", "choose_latents", "crossings", "curves",
    "distances", "interpolations", "merge", "pairs", "read_cifar_10h", "read_images", "read_label_errors",
    "read_labels", "read_varimnist", "study", "write_form",
]  # fmt: skip
