"""The sparse vector technique."""

from dpaudit.catalogue.sparse.family import above_threshold, sparse

ENTRIES = (above_threshold, sparse)
