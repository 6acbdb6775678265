"""Is it the closest? Proofs for piecewise linear networks, with a checker; evidence for all others."""

from flipopt.proofs.check import Checked, check
from flipopt.proofs.proof import Proof
from flipopt.proofs.prove import Proofs, prove, prove_many
from flipopt.proofs.search import Effort
from flipopt.proofs.starts import Starts, starts
from flipopt.proofs.strong_minimum import StrongMinimum, strong_minimum
from flipopt.proofs.table import prove_flips

__all__ = [
    "Checked",
    "Effort",
    "Proof",
    "Proofs",
    "Starts",
    "StrongMinimum",
    "check",
    "prove",
    "prove_flips",
    "prove_many",
    "starts",
    "strong_minimum",
]
