"""What the tests of proofs compare with."""

from benchmarks.proofs_oracle import Bounds, distance_by_pieces, network, rescaled

__all__ = ["Bounds", "distance_by_pieces", "network", "rescaled"]
