"""The checker: a stored proof doubted from end to end, by code of its own."""

from dpaudit.verify.checker.checking import Checked, check, epsilon
from dpaudit.verify.checker.rejection import ProofRejected

__all__ = ["Checked", "ProofRejected", "check", "epsilon"]
