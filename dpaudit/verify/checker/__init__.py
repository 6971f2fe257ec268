"""The checker: a stored proof doubted from end to end, and judged by lines of its own."""

from dpaudit.verify.checker.checking import Checked, check, epsilon
from dpaudit.verify.checker.formulas import ProofRejected

__all__ = ["Checked", "ProofRejected", "check", "epsilon"]
