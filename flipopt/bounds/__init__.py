"""What is proved of a network: Lipschitz bounds, enclosures, and distances that are free of flips."""

from flipopt.bounds.lower import lower

__all__ = ["lower"]
