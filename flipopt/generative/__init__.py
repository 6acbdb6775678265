"""Generators from inside (Jeon, Jeong and Choi, 003): regions of the latent space in which units keep their sign."""

from flipopt.generative.balls import Baselines, Rejection, baselines, rejection
from flipopt.generative.chains import Chains, hit_and_run
from flipopt.generative.discriminator import Discriminator
from flipopt.generative.egbas import Egbas, egbas
from flipopt.generative.essential import BerOpt, Curve, Essential, essential
from flipopt.generative.exploration import Exploration, explore
from flipopt.generative.generator import Generator
from flipopt.generative.layers import Layer
from flipopt.generative.measures import Averages, Comparison, Deviation, averaged, compare, deviation, similarity
from flipopt.generative.nearest import Boundaries, nearest_boundaries
from flipopt.generative.polytope import largest_ball
from flipopt.generative.regions import Crossings, Region, region, shares

__all__ = [
    "Averages", "Baselines", "BerOpt", "Boundaries", "Chains", "Comparison", "Crossings", "Curve", "Deviation",
    "Discriminator", "Egbas", "Essential", "Exploration", "Generator", "Layer", "Region", "Rejection", "averaged",
    "baselines", "compare", "deviation", "egbas", "essential", "explore", "hit_and_run", "largest_ball",
    "nearest_boundaries", "region", "rejection", "shares", "similarity",
]  # fmt: skip
