"""Adjacent datasets: what the two sides of an audit are given."""

from dpaudit.pairs.data import digest
from dpaudit.pairs.pair import AdjacentPair, SealedPair

__all__ = ["AdjacentPair", "SealedPair", "digest"]
