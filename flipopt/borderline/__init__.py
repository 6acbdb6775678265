"""Borderline instances and the character of a boundary: DeepDIG, refinement, two baselines, closest flips, IDC, EDC."""

from flipopt.borderline.autoencoders import Architecture, Autoencoder
from flipopt.borderline.baselines import epbs, rpbs
from flipopt.borderline.boundary import Measuring
from flipopt.borderline.closest import Farther, closest, farther, nearest_of
from flipopt.borderline.correlation import Correlation, pearson
from flipopt.borderline.deepdig import DeepDigOptions, deepdig
from flipopt.borderline.dug import DeepDig, carry
from flipopt.borderline.edc import EDC, Plane, edc
from flipopt.borderline.embedding import Embedding, embed
from flipopt.borderline.idc import IDC, idc, oscillation
from flipopt.borderline.instances import Instances, Outcome
from flipopt.borderline.learning import Training
from flipopt.borderline.maps import Maps, MapStatus
from flipopt.borderline.profile import Profile
from flipopt.borderline.refinement import Refinement, refine
from flipopt.borderline.sweep import profile
from flipopt.borderline.tradeoff import Tradeoff, tradeoff

__all__ = [
    "EDC", "IDC", "Architecture", "Autoencoder", "Correlation", "DeepDig", "DeepDigOptions", "Embedding", "Farther",
    "Instances", "MapStatus", "Maps", "Measuring", "Outcome", "Plane", "Profile", "Refinement", "Tradeoff", "Training",
    "carry", "closest", "deepdig", "edc", "embed", "epbs", "farther", "idc", "nearest_of", "oscillation", "pearson",
    "profile", "refine", "rpbs", "tradeoff",
]  # fmt: skip
