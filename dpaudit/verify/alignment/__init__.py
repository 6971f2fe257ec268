"""Proofs by randomness alignment: the search. Its proofs are data; the checker doubts them by its own lines."""

from dpaudit.verify.alignment.search import prove
from dpaudit.verify.proof import Unproved

__all__ = ["Unproved", "prove"]
