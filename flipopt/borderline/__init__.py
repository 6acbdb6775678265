"""Borderline instances and the character of a boundary: refinement, two baselines, closest flips, IDC, EDC."""

from flipopt.borderline.baselines import epbs, rpbs
from flipopt.borderline.boundary import Measuring
from flipopt.borderline.closest import Farther, closest, farther, nearest_of
from flipopt.borderline.correlation import Correlation, pearson
from flipopt.borderline.edc import EDC, Plane, edc
from flipopt.borderline.embedding import Embedding, embed
from flipopt.borderline.idc import IDC, idc, oscillation
from flipopt.borderline.instances import Instances, Outcome
from flipopt.borderline.profile import Profile
from flipopt.borderline.refinement import refine
from flipopt.borderline.sweep import profile

__all__ = [
    "EDC", "IDC", "Correlation", "Embedding", "Farther", "Instances", "Measuring", "Outcome", "Plane", "Profile",
    "closest", "edc", "embed", "epbs", "farther", "idc", "nearest_of", "oscillation", "pearson", "profile", "refine",
    "rpbs",
]  # fmt: skip
