"""Loops compiled by numba, and nothing else. numba takes half a second to load: import from here where it is used."""
