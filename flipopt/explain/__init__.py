"""What flip points say about a classifier: trust, classes beyond a flip, directions, training data, attacks."""

from flipopt.explain.adversarial import Adversarial, adversarial
from flipopt.explain.alternate import Alternate, alternate
from flipopt.explain.ambiguity import Ambiguity, ambiguity
from flipopt.explain.directions import Directions, directions, directions_by_class
from flipopt.explain.first_order import TaylorComparison, compare_taylor
from flipopt.explain.training_data import Influence, Synthetic, influence, synthetic
from flipopt.explain.trust import Calibration, Predictor, Trust, TrustScore, trust, trust_score

__all__ = [
    "Adversarial", "Alternate", "Ambiguity", "Calibration", "Directions", "Influence", "Predictor", "Synthetic",
    "TaylorComparison", "Trust", "TrustScore", "adversarial", "alternate", "ambiguity", "compare_taylor", "directions",
    "directions_by_class", "influence", "synthetic", "trust", "trust_score",
]  # fmt: skip
