"""Generators from inside (Jeon, Jeong and Choi, 003): regions of the latent space in which units keep their sign."""

from flipopt.generative.discriminator import Discriminator
from flipopt.generative.generator import Generator
from flipopt.generative.layers import Layer

__all__ = ["Discriminator", "Generator", "Layer"]
