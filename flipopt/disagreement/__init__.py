"""People and models on images between two classes (Vlaar, 004): who disagrees, where, and how near flips are."""

from flipopt.disagreement.curves import Curves, certainty, curves
from flipopt.disagreement.measures import Agreement, Certainty, SoftmaxByType
from flipopt.disagreement.study import Images, Study, study

__all__ = ["Agreement", "Certainty", "Curves", "Images", "SoftmaxByType", "Study", "certainty", "curves", "study"]
