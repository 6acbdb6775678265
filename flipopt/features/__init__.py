"""Inputs made of images: wavelets chosen by pivoted QR, and the networks and samples that come with the package."""
