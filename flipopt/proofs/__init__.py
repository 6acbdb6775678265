"""Is it the closest? Proofs for piecewise linear networks, and a checker that does not believe them."""

from flipopt.proofs.check import Checked, check
from flipopt.proofs.proof import Proof
from flipopt.proofs.prove import Proofs, prove, prove_many
from flipopt.proofs.search import Effort
from flipopt.proofs.table import prove_flips

__all__ = ["Checked", "Effort", "Proof", "Proofs", "check", "prove", "prove_flips", "prove_many"]
