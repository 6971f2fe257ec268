"""Adjacent datasets: what the two sides of an audit are given."""

from dpaudit.data.data import digest
from dpaudit.data.pair import AdjacentPair, SealedPair
from dpaudit.data.patterns import PATTERNS, Pattern, pairs_of_data, stock_pairs

__all__ = ["PATTERNS", "AdjacentPair", "Pattern", "SealedPair", "digest", "pairs_of_data", "stock_pairs"]
