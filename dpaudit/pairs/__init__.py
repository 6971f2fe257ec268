"""Adjacent datasets: what the two sides of an audit are given."""

from dpaudit.pairs.data import digest
from dpaudit.pairs.pair import AdjacentPair, SealedPair
from dpaudit.pairs.patterns import PATTERNS, Pattern, pairs_of_data, stock_pairs

__all__ = ["PATTERNS", "AdjacentPair", "Pattern", "SealedPair", "digest", "pairs_of_data", "stock_pairs"]
