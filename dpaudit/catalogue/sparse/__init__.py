"""The sparse vector technique."""

from dpaudit.catalogue.sparse.first import above_threshold
from dpaudit.catalogue.sparse.lyu import sparse_lyu_1, sparse_lyu_7, sparse_monotone
from dpaudit.catalogue.sparse.restarted import sparse, sparse_approximate
from dpaudit.catalogue.sparse.thresholds import sparse_thresholds
from dpaudit.catalogue.sparse.values import gap_sparse, numeric_sparse, numerical_sparse

ENTRIES = (
    *(above_threshold, sparse, sparse_approximate, sparse_lyu_1, sparse_lyu_7, sparse_monotone),
    *(sparse_thresholds, gap_sparse, numeric_sparse, numerical_sparse),
)
