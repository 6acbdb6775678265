"""Data sets as files: reading, finding and fetching them, and reducing images to wavelet features.

A program run from a checkout (``python -m data_prep --help``); the library never imports it.
"""
