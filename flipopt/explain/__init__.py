"""What flip points say about a classifier: trust, alternate classes, ambiguity, directions, training data, attacks."""

from flipopt.explain.alternate import Alternate, alternate
from flipopt.explain.directions import Directions, directions, directions_by_class
from flipopt.explain.trust import Calibration, Predictor, Trust, TrustScore, trust, trust_score

__all__ = [
    "Alternate", "Calibration", "Directions", "Predictor", "Trust", "TrustScore", "alternate", "directions",
    "directions_by_class", "trust", "trust_score",
]  # fmt: skip
