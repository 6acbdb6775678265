"""Generators from inside (Jeon, Jeong and Choi, 003): regions of the latent space in which units keep their sign."""

from flipopt.generative.chains import Chains, hit_and_run
from flipopt.generative.discriminator import Discriminator
from flipopt.generative.essential import BerOpt, Curve, Essential, essential
from flipopt.generative.exploration import Exploration, explore
from flipopt.generative.generator import Generator
from flipopt.generative.layers import Layer
from flipopt.generative.regions import Crossings, Region, region, shares

__all__ = [
    "BerOpt", "Chains", "Crossings", "Curve", "Discriminator", "Essential", "Exploration", "Generator", "Layer",
    "Region", "essential", "explore", "hit_and_run", "region", "shares",
]  # fmt: skip
