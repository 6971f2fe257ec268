"""Adjacent datasets: what the two sides of an audit are given."""

from dpaudit.pairs.data import digest
from dpaudit.pairs.pair import AdjacentPair, SealedPair
from dpaudit.pairs.patterns import PATTERNS, Pattern, stock_pairs

__all__ = ["PATTERNS", "AdjacentPair", "Pattern", "SealedPair", "digest", "stock_pairs"]
