"""Wavelets chosen by pivoted QR; the networks and samples that come with the package."""
