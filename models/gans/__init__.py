"""Generative adversarial networks in torch: architectures, games, training and export.

A generator takes latents (batch, latent), standard normal, to images (batch, channels, side, side) in [-1, 1]; a
discriminator takes such images to scores (batch, 1), higher for what it holds to be real. The exported files speak of
pixels in [0, 1] instead, as data sets and classifiers do.
"""
