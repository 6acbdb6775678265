"""The check of any claimed flip point, which never asks the solver."""
