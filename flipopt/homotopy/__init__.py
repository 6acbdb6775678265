"""From an easy network to the trained one: algorithms 1, 2, F1, F2 and F3 of Yousefzadeh and O'Leary (2020)."""

from flipopt.homotopy.options import Homotopy, StepControl
from flipopt.homotopy.path import follow
from flipopt.homotopy.transformation import Transformation, flip_bias, transform

__all__ = ["Homotopy", "StepControl", "Transformation", "flip_bias", "follow", "transform"]
