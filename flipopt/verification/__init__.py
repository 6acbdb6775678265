"""The check of any claimed flip point, which never asks the solver: one definition for one point and for many."""

from flipopt.verification.bracket import Bracket
from flipopt.verification.check import BatchVerification, Verification, verify, verify_batch
from flipopt.verification.tolerances import ACTIVE, CONFIRMED, ON_BOUNDARY, STATIONARY

__all__ = [
    "ACTIVE",
    "CONFIRMED",
    "ON_BOUNDARY",
    "STATIONARY",
    "BatchVerification",
    "Bracket",
    "Verification",
    "verify",
    "verify_batch",
]
