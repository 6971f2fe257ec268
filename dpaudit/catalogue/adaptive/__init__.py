"""Adaptive data analysis: holdouts and chosen statistics."""

from dpaudit.catalogue.adaptive.answers import adaptive_laplace, adaptive_sparse, thresholdout
from dpaudit.catalogue.adaptive.subsets import select_and_average, select_subsets

ENTRIES = (adaptive_laplace, adaptive_sparse, select_subsets, select_and_average, thresholdout)
