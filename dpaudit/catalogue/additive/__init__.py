"""Additive noise."""

from dpaudit.catalogue.additive.integers import clamped_geometric, geometric, truncated_geometric
from dpaudit.catalogue.additive.normal import (
    gaussian,
    gaussian_analytic,
    gaussian_gdp,
    gaussian_vector,
    gaussian_version_2,
    gaussian_version_2_corrected,
    gaussian_zcdp,
    k_norm_l2,
    k_norm_linf,
    norm_l1,
    norm_l2,
    norm_linf,
)
from dpaudit.catalogue.additive.records import (
    counting_queries,
    histogram,
    laplace_average,
    laplace_sum,
    laplace_vector,
    prefix_sums,
)
from dpaudit.catalogue.additive.single import laplace, snapping

ENTRIES = (
    *(laplace, laplace_vector, laplace_average, laplace_sum, counting_queries, histogram, geometric),
    *(clamped_geometric, norm_l1, norm_l2, norm_linf, k_norm_l2, k_norm_linf, gaussian, gaussian_version_2),
    *(gaussian_version_2_corrected, gaussian_analytic, gaussian_zcdp, gaussian_gdp, gaussian_vector, snapping),
    *(truncated_geometric, prefix_sums),
)
