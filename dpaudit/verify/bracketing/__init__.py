"""Brackets: upper bounds of a mechanism and an audit of it, joined."""

from dpaudit.verify.bracketing.above import bound_of_proofs
from dpaudit.verify.bracketing.join import Joined, Wanted, run_bracket
from dpaudit.verify.bracketing.targets import WAYS, Target, target_named, target_of

__all__ = ["WAYS", "Joined", "Target", "Wanted", "bound_of_proofs", "run_bracket", "target_named", "target_of"]
