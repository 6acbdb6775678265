"""The networks of the papers in torch: architectures, training and export.

A program run from a checkout (``python -m models --help``); the library never imports it.
"""
